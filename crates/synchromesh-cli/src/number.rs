//! Numbers as they appear in files and expressions: integers in Z of any size, or finite reals in binary64.

use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use synchromesh::scheme::Values;

/// The longest number, in characters, that is read: 256-bit integers need 78 digits, binary64 at most 1100.
pub const MAX_DIGITS: usize = 1200;

/// Largest integer magnitude up to which every integer is a binary64 number, 2^53.
pub const EXACT_REAL: u64 = 1 << 53;

/// An integer of any size, or a finite binary64 real.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// An integer, exact.
    Int(BigInt),
    /// A real; never NaN or infinite when made by [`Number::parse`] or [`Number::real`].
    Real(f64),
}

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumberError {
    /// Not decimal notation.
    Text,
    /// NaN, an infinity, or a magnitude beyond binary64.
    NotFinite,
    /// More than [`MAX_DIGITS`] characters.
    TooLong,
}

impl Number {
    /// Reads decimal notation: digits with an optional sign are an [`Number::Int`]; a point or an exponent makes a
    /// [`Number::Real`].
    ///
    /// # Errors
    /// [`NumberError`] says which of the three ways a text can fail.
    pub fn parse(text: &str) -> Result<Self, NumberError> {
        if text.len() > MAX_DIGITS {
            return Err(NumberError::TooLong);
        }
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().map(Self::Int).map_err(|_| NumberError::Text);
        }
        let value: f64 = text.parse().map_err(|_| NumberError::Text)?;
        Self::real(value).ok_or(NumberError::NotFinite)
    }

    /// A real, unless it is NaN or infinite.
    #[must_use]
    pub fn real(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self::Real(value))
    }

    /// The nearest binary64 number; `None` when an integer is too large to have one.
    #[must_use]
    pub fn to_f64(&self) -> Option<f64> {
        match self {
            Self::Int(value) => value.to_f64().filter(|v| v.is_finite()),
            Self::Real(value) => Some(*value),
        }
    }

    /// The integer this is: an [`Number::Int`], or a real without a fraction of magnitude at most [`EXACT_REAL`].
    #[must_use]
    pub fn to_integer(&self) -> Option<BigInt> {
        match self {
            Self::Int(value) => Some(value.clone()),
            Self::Real(value) if value.fract() == 0.0 && value.abs() <= EXACT_REAL as f64 => {
                Some(BigInt::from(*value as i64))
            }
            Self::Real(_) => None,
        }
    }

    /// Whether it is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Self::Int(value) => value.is_zero(),
            Self::Real(value) => *value == 0.0,
        }
    }

    /// Whether it is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        match self {
            Self::Int(value) => value.is_negative(),
            Self::Real(value) => *value < 0.0,
        }
    }
}

/// Decrypted numbers: integers, or real parts.
#[must_use]
pub fn numbers(values: &Values) -> Vec<Number> {
    match values {
        Values::Integers(x) => x.iter().map(|&x| x.into()).collect(),
        Values::Wide(x) => x.iter().cloned().map(Number::Int).collect(),
        Values::Reals(_) | Values::Complexes(_) => values.reals().iter().copied().map(Number::Real).collect(),
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Self::Int(BigInt::from(value))
    }
}

/// The shortest text that [`Number::parse`] reads back to the same number and the same kind.
impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_of_256_bits_survive() {
        let text = "-115792089237316195423570985008687907853269984665640564039457584007913129639935";
        let number = Number::parse(text).unwrap();
        assert_eq!(number.to_string(), text);
        assert_eq!(number.to_integer().unwrap().bits(), 256);
    }

    #[test]
    fn reals_keep_their_kind_through_text() {
        for text in ["3.0", "0.1", "-0.0", "1e300", "5e-324"] {
            let number = Number::parse(text).unwrap();
            assert!(matches!(number, Number::Real(_)));
            assert_eq!(Number::parse(&number.to_string()).unwrap(), number);
        }
    }

    #[test]
    fn what_is_not_a_finite_number_is_refused() {
        for text in ["nan", "NaN", "inf", "-infinity", "1e400"] {
            assert_eq!(Number::parse(text), Err(NumberError::NotFinite), "{text}");
        }
        for text in ["", "+", "abc", "1_000", "0x10", "1,5", "--1", "1 2"] {
            assert_eq!(Number::parse(text), Err(NumberError::Text), "{text}");
        }
        assert_eq!(Number::parse(&"9".repeat(MAX_DIGITS + 1)), Err(NumberError::TooLong));
    }

    #[test]
    fn a_real_with_a_fraction_or_beyond_2_53_is_no_integer() {
        assert_eq!(Number::Real(-7.0).to_integer(), Some(BigInt::from(-7)));
        assert_eq!(Number::Real(0.5).to_integer(), None);
        assert_eq!(Number::Real(1e17).to_integer(), None);
    }
}
