//! The plaintext modulus t, 2 <= t < 2^256: checked once, with the arithmetic of Z_t and the facts encoders ask about.

mod primality;
mod wide;
mod word;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use num_bigint::BigUint;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use wide::{U256, WideModulus, from_biguint, to_biguint};
pub(crate) use wide::{at_least, difference};
pub use word::{WORD_LIMIT, WordModulus};

/// The widest plaintext modulus, in bits.
pub const MAX_BITS: u32 = 256;

/// Digits of the longest decimal numeral accepted, leading zeros included.
const MAX_DIGITS: usize = 80;

/// Why a plaintext modulus was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlainModulusError {
    /// t is 0 or 1.
    #[error("plaintext modulus {value} is below 2")]
    TooSmall {
        /// The value given.
        value: u64,
    },
    /// t has more than 256 bits.
    #[error("plaintext modulus has {bits} bits, at most {max} are supported")]
    TooWide {
        /// Bits of the value given.
        bits: u64,
        /// Most bits supported.
        max: u32,
    },
    /// The text is neither decimal nor `0x` and hexadecimal digits.
    #[error("plaintext modulus of {length} characters is not a number: {reason}")]
    NotANumber {
        /// Characters given.
        length: usize,
        /// What is wrong with them.
        reason: &'static str,
    },
    /// No prime of this width is 1 mod 2N.
    #[error("no prime of {bits} bits is 1 mod 2^{}", u64::from(*log_n) + 1)]
    NoSlotPrime {
        /// Bits asked for.
        bits: u32,
        /// Base-two logarithm of N.
        log_n: u32,
    },
}

impl PlainModulusError {
    /// A stable name of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TooSmall { .. } => "plain_modulus_too_small",
            Self::TooWide { .. } => "plain_modulus_too_wide",
            Self::NotANumber { .. } => "plain_modulus_not_a_number",
            Self::NoSlotPrime { .. } => "no_slot_prime",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::TooSmall { .. } => "use a modulus of at least 2".into(),
            Self::TooWide { max, .. } => format!("use a modulus below 2^{max}"),
            Self::NotANumber { .. } => "write it in decimal, or in hexadecimal after 0x".into(),
            Self::NoSlotPrime { log_n, .. } => {
                format!("ask for between {} and {MAX_BITS} bits", u64::from(*log_n) + 3)
            }
        }
    }
}

/// How residues mod t are stored and computed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// One word each, for t < 2^62.
    Word(WordModulus),
    /// Four limbs each, for 2^62 <= t < 2^256.
    Wide(WideModulus),
}

/// A checked plaintext modulus, 2 <= t < 2^256. Public data; clones share their tables.
#[derive(Clone)]
pub struct PlainModulus(Arc<Inner>);

struct Inner {
    value: BigUint,
    arithmetic: Arithmetic,
    prime: bool,
}

impl PlainModulus {
    /// A modulus from an integer.
    ///
    /// # Errors
    /// [`TooSmall`](PlainModulusError::TooSmall) below 2, [`TooWide`](PlainModulusError::TooWide) from 2^256 on.
    pub fn new(value: impl Into<BigUint>) -> Result<Self, PlainModulusError> {
        let value: BigUint = value.into();
        if value.bits() < 2 {
            return Err(PlainModulusError::TooSmall { value: u64::from(value.bit(0)) });
        }
        let too_wide = PlainModulusError::TooWide { bits: value.bits(), max: MAX_BITS };
        let word = value.iter_u64_digits().next().filter(|_| value.bits() <= 62).and_then(WordModulus::new);
        let arithmetic = match word {
            Some(word) => Arithmetic::Word(word),
            None => Arithmetic::Wide(WideModulus::new(&value).ok_or(too_wide)?),
        };
        let prime = primality::is_prime(&value);
        Ok(Self(Arc::new(Inner { value, arithmetic, prime })))
    }

    /// The largest prime of exactly `bits` bits that gives N = 2^log_n slots, that is, t = 1 mod 2N.
    ///
    /// # Errors
    /// [`NoSlotPrime`](PlainModulusError::NoSlotPrime) when there is none or `bits` exceeds 256.
    pub fn next_slot_prime(bits: u32, log_n: u32) -> Result<Self, PlainModulusError> {
        Self::found(primality::slot_prime(bits, log_n, true), bits, log_n)
    }

    /// The smallest prime above 2^(bits - 1), of exactly `bits` bits, that gives N = 2^log_n slots.
    ///
    /// # Errors
    /// [`NoSlotPrime`](PlainModulusError::NoSlotPrime) when there is none or `bits` exceeds 256.
    pub fn smallest_slot_prime(bits: u32, log_n: u32) -> Result<Self, PlainModulusError> {
        Self::found(primality::slot_prime(bits, log_n, false), bits, log_n)
    }

    fn found(prime: Option<BigUint>, bits: u32, log_n: u32) -> Result<Self, PlainModulusError> {
        Self::new(prime.ok_or(PlainModulusError::NoSlotPrime { bits, log_n })?)
    }

    /// The integer t.
    pub fn value(&self) -> &BigUint {
        &self.0.value
    }

    /// t where it fits one word.
    pub fn as_u64(&self) -> Option<u64> {
        u64::try_from(&self.0.value).ok()
    }

    /// Bit length of t.
    pub fn bits(&self) -> u32 {
        self.0.value.bits() as u32
    }

    /// The arithmetic of Z_t.
    pub fn arithmetic(&self) -> &Arithmetic {
        &self.0.arithmetic
    }

    /// Whether t is prime: proven below 2^64, by 76 rounds of Miller-Rabin (error below 2^-128) above.
    pub fn is_prime(&self) -> bool {
        self.0.prime
    }

    /// Whether R_t splits into N = 2^log_n slots: t is prime and 1 mod 2N.
    pub fn supports_slots(&self, log_n: u32) -> bool {
        let twos = (&self.0.value - 1u8).trailing_zeros().unwrap_or(0);
        self.0.prime && twos > u64::from(log_n)
    }

    /// Whether `other` is this modulus.
    fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.value == other.0.value
    }
}

impl PartialEq for PlainModulus {
    fn eq(&self, other: &Self) -> bool {
        self.same(other)
    }
}

impl Eq for PlainModulus {}

impl fmt::Debug for PlainModulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlainModulus({})", self.0.value)
    }
}

impl fmt::Display for PlainModulus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.value.fmt(f)
    }
}

impl FromStr for PlainModulus {
    type Err = PlainModulusError;

    fn from_str(text: &str) -> Result<Self, PlainModulusError> {
        let refuse = |reason| PlainModulusError::NotANumber { length: text.chars().count(), reason };
        let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            Some(hex) => (hex, 16),
            None => (text, 10),
        };
        if digits.is_empty() {
            return Err(refuse("it has no digits"));
        }
        if digits.len() > MAX_DIGITS {
            return Err(refuse("it has more than 80 digits"));
        }
        if !digits.chars().all(|c| c.is_digit(radix)) {
            return Err(refuse("it holds a character that is no digit"));
        }
        let value = BigUint::parse_bytes(digits.as_bytes(), radix).ok_or(refuse("it has no value"))?;
        Self::new(value)
    }
}

impl Serialize for PlainModulus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PlainModulus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_hexadecimal_text_make_the_same_modulus() {
        let hex: PlainModulus = "0xffffffffffffffffffffffffff820001".parse().expect("hex");
        let decimal: PlainModulus = "340282366920938463463374607431759953921".parse().expect("decimal");
        assert_eq!(hex, decimal);
        assert!(hex.is_prime() && hex.supports_slots(16) && !hex.supports_slots(17));
        assert_eq!(hex.bits(), 128);
        assert_eq!(hex.as_u64(), None);
    }

    #[test]
    fn bad_text_and_bad_values_are_typed_errors() {
        for text in ["", "0x", "12 ", "-3", "1_000", "0xg", "ten", "\u{663}"] {
            let error = text.parse::<PlainModulus>().expect_err(text);
            assert_eq!(error.kind(), "plain_modulus_not_a_number", "{text}");
        }
        assert_eq!("9".repeat(5000).parse::<PlainModulus>().expect_err("long").kind(), "plain_modulus_not_a_number");
        assert_eq!("1".parse::<PlainModulus>(), Err(PlainModulusError::TooSmall { value: 1 }));
        assert_eq!(PlainModulus::new(0u64), Err(PlainModulusError::TooSmall { value: 0 }));
        let wide = BigUint::from(1u8) << 256u32;
        assert_eq!(PlainModulus::new(wide), Err(PlainModulusError::TooWide { bits: 257, max: 256 }));
        let error = PlainModulus::next_slot_prime(10, 12).expect_err("too narrow");
        assert_eq!(error, PlainModulusError::NoSlotPrime { bits: 10, log_n: 12 });
        assert_eq!(error.to_string(), "no prime of 10 bits is 1 mod 2^13");
        assert_eq!(error.remedy(), "ask for between 15 and 256 bits");
    }

    #[test]
    fn serde_writes_a_decimal_string_and_checks_what_it_reads() {
        let t = PlainModulus::new(65_537u64).expect("modulus");
        let text = serde_json::to_string(&t).expect("json");
        assert_eq!(text, "\"65537\"");
        assert_eq!(serde_json::from_str::<PlainModulus>(&text).expect("back"), t);
        for bad in ["\"1\"", "65537", "\"x\""] {
            assert!(serde_json::from_str::<PlainModulus>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn storage_changes_at_the_word_limit() {
        for (value, word) in [(2, true), (WORD_LIMIT - 1, true), (WORD_LIMIT, false), (u64::MAX, false)] {
            let t = PlainModulus::new(value).expect("modulus");
            assert_eq!(matches!(t.arithmetic(), Arithmetic::Word(_)), word, "t = {value}");
            assert_eq!(t.as_u64(), Some(value));
        }
    }

    #[test]
    fn slot_primes_of_every_width_support_their_slots() {
        for bits in [17, 20, 30, 61, 62, 63, 64, 65, 128, 255, 256] {
            for t in [PlainModulus::next_slot_prime(bits, 15), PlainModulus::smallest_slot_prime(bits, 15)] {
                let t = t.expect("exists");
                assert!(t.bits() == bits && t.supports_slots(15), "{t}");
            }
        }
    }
}
