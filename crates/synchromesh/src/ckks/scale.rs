//! The exact scale of a message, 2^a prod_i q_i^(e_i) with integer exponents.
//!
//! Squaring and dividing by primes act on the exponents alone, so two scales are equal if and only if their exponents
//! are. At depth d the exponents reach 2^d times those of a fresh message while the value stays near one size: views
//! of it go through a binary float with a 320-bit mantissa, whose relative error is below 2^-200 at depth 100.

mod wide;

use std::fmt;

use num_bigint::BigUint;
use serde::{Deserialize, Serialize};

use crate::embedding;
use crate::error::{Error, Result};
use wide::Wide;

/// log2 of the largest exponent that is accepted.
const LOG2_EXPONENT_LIMIT: u32 = 112;

/// An exact positive number 2^a prod_i q_i^(e_i).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "ScaleLiteral", into = "ScaleLiteral")]
pub struct Scale {
    two: i128,
    /// Odd numbers in rising order with their exponents, none of them 0.
    factors: Vec<(u64, i128)>,
}

/// A [`Scale`] as written: exponents in decimal, because JSON readers differ on large integers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ScaleLiteral {
    /// a.
    pub two: String,
    /// Each q_i with its e_i.
    pub primes: Vec<(u64, String)>,
}

impl Scale {
    /// 2^a prod_i q_i^(e_i); factors with exponent 0 are left out.
    ///
    /// # Errors
    /// [`Error::Header`] for a factor that is even or stands twice, or an exponent of 2^112 or more.
    pub fn new(two: i128, factors: impl IntoIterator<Item = (u64, i128)>) -> Result<Self> {
        let mut factors: Vec<(u64, i128)> = factors.into_iter().filter(|&(_, e)| e != 0).collect();
        factors.sort_unstable();
        if let Some((q, _)) = factors.iter().find(|(q, _)| q % 2 == 0 || *q < 3) {
            return Err(refusal(format!("its factor {q} is no odd prime")));
        }
        if let Some(pair) = factors.windows(2).find(|w| w[0].0 == w[1].0) {
            return Err(refusal(format!("its factor {} stands twice", pair[0].0)));
        }
        let exponents = || factors.iter().map(|(_, e)| e).chain([&two]);
        if let Some(e) = exponents().find(|e| e.unsigned_abs() >> LOG2_EXPONENT_LIMIT > 0) {
            return Err(refusal(format!("its exponent {e} is 2^{LOG2_EXPONENT_LIMIT} or more")));
        }
        Ok(Self { two, factors })
    }

    /// 2^a.
    #[must_use]
    pub const fn power_of_two(a: u32) -> Self {
        Self { two: a as i128, factors: Vec::new() }
    }

    /// The product of distinct primes.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn product(primes: impl IntoIterator<Item = u64>) -> Result<Self> {
        Self::new(0, primes.into_iter().map(|q| (q, 1)))
    }

    /// The exponent a of 2.
    #[must_use]
    pub const fn two(&self) -> i128 {
        self.two
    }

    /// Each prime with its exponent, in rising order.
    #[must_use]
    pub fn factors(&self) -> &[(u64, i128)] {
        &self.factors
    }

    /// self * other.
    ///
    /// # Errors
    /// [`Error::Header`] when an exponent reaches 2^112.
    pub fn times(&self, other: &Self) -> Result<Self> {
        self.combine(other, 1)
    }

    /// self / other.
    ///
    /// # Errors
    /// [`Error::Header`] when an exponent reaches 2^112.
    pub fn over(&self, other: &Self) -> Result<Self> {
        self.combine(other, -1)
    }

    /// self * other^sign. Exponents are below 2^112, so that their sums cannot overflow.
    fn combine(&self, other: &Self, sign: i128) -> Result<Self> {
        let mut factors = self.factors.clone();
        for &(q, e) in &other.factors {
            match factors.binary_search_by_key(&q, |&(p, _)| p) {
                Ok(at) => factors[at].1 += sign * e,
                Err(at) => factors.insert(at, (q, sign * e)),
            }
        }
        Self::new(self.two + sign * other.two, factors)
    }

    fn wide(&self) -> Wide {
        let powers = self.factors.iter().map(|&(q, e)| Wide::power(q, e));
        powers.fold(Wide::power_of_two(self.two), |product, power| product.times(&power))
    }

    /// log2 of the scale, within 2^-44 below 2^256.
    #[must_use]
    pub fn log2(&self) -> f64 {
        self.wide().log2()
    }

    /// The nearest integer.
    ///
    /// # Errors
    /// [`Error::Header`] for a scale of 2^4096 or more.
    pub fn to_integer(&self) -> Result<BigUint> {
        self.wide().to_integer().ok_or_else(|| refusal(format!("2^{:.1} is no size of a scale", self.log2())))
    }

    /// The double nearest to the scale, as a mantissa and an exponent, for encoding and decoding.
    ///
    /// # Errors
    /// [`Error::Embedding`] outside 2^-400 to 2^401.
    pub fn to_double(&self) -> Result<embedding::Scale> {
        let (mantissa, exponent) = self.wide().into_parts();
        if exponent.unsigned_abs() > 4096 {
            let clamped = exponent.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32;
            return Ok(embedding::Scale::power_of_two(clamped)?);
        }
        let one = BigUint::from(1u32);
        let shift = exponent.unsigned_abs() as u64;
        Ok(if exponent < 0 {
            embedding::Scale::from_ratio(&mantissa, &(one << shift))?
        } else {
            embedding::Scale::from_ratio(&(mantissa << shift), &one)?
        })
    }
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "2^{:.6}", self.log2())
    }
}

impl From<Scale> for ScaleLiteral {
    fn from(scale: Scale) -> Self {
        let primes = scale.factors.iter().map(|(q, e)| (*q, e.to_string())).collect();
        Self { two: scale.two.to_string(), primes }
    }
}

impl TryFrom<ScaleLiteral> for Scale {
    type Error = Error;

    fn try_from(literal: ScaleLiteral) -> Result<Self> {
        let exponent =
            |text: &str| text.parse::<i128>().map_err(|_| refusal(format!("its exponent {text:?} is no integer")));
        let factors: Result<Vec<_>> = literal.primes.iter().map(|(q, e)| Ok((*q, exponent(e)?))).collect();
        Self::new(exponent(&literal.two)?, factors?)
    }
}

fn refusal(reason: String) -> Error {
    Error::Header { field: "scale", reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equality_is_that_of_exponents() {
        let a = Scale::new(45, [(97, 2), (193, -1)]).unwrap();
        let b = Scale::product([97, 193]).unwrap();
        let back = a.times(&b).unwrap().over(&b).unwrap();
        assert_eq!(back, a);
        assert_eq!(a.over(&a).unwrap(), Scale::power_of_two(0));
        assert_ne!(a, Scale::new(45, [(97, 2)]).unwrap());
        // (2^60 + 1) / 2^60 is 1 as a double and not as a scale.
        let near = Scale::new(-60, [((1 << 60) + 1, 1)]).unwrap();
        assert_eq!((near.log2(), near == Scale::power_of_two(0)), (0.0, false));
    }

    #[test]
    fn values_survive_cancellation_at_depth_forty() {
        // S -> S^2 / q, forty times, with q as near to S^2 / 2^45 as an odd number gets.
        let mut s = Scale::power_of_two(45);
        for _ in 0..40 {
            let square = s.times(&s).unwrap();
            let ideal = square.over(&Scale::power_of_two(45)).unwrap().to_integer().unwrap();
            let mut q = ideal.iter_u64_digits().next().unwrap() | 1;
            while s.factors().iter().any(|&(p, _)| p == q) {
                q += 2;
            }
            s = square.over(&Scale::product([q]).unwrap()).unwrap();
            assert!((s.log2() - 45.0).abs() < 1e-11, "{s}");
        }
        assert!(s.two() > 1 << 45);
        assert!((s.to_double().unwrap().to_f64() / 45f64.exp2() - 1.0).abs() < 1e-11);
    }

    #[test]
    fn views_agree_with_integers() {
        let s = Scale::new(3, [(5, 2), (7, 1), (3, -1)]).unwrap();
        // 8 * 25 * 7 / 3 = 466.67
        assert_eq!(s.to_integer().unwrap(), BigUint::from(467u32));
        assert_eq!(s.to_double().unwrap().to_f64(), 1400.0 / 3.0);
        assert!((s.log2() - (1400.0f64 / 3.0).log2()).abs() < 1e-14);
        assert_eq!(Scale::new(0, [(3, -1)]).unwrap().to_integer().unwrap(), BigUint::ZERO);
        let large = Scale::power_of_two(5000);
        assert_eq!(large.to_integer().unwrap_err().kind(), "header");
        assert_eq!(large.to_double().unwrap_err().kind(), "scale_out_of_range");
    }

    #[test]
    fn the_written_form_is_integers_and_checked() {
        let s = Scale::new(90, [(193, -12), (97, 1 << 100)]).unwrap();
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(text, r#"{"two":"90","primes":[[97,"1267650600228229401496703205376"],[193,"-12"]]}"#);
        assert_eq!(serde_json::from_str::<Scale>(&text).unwrap(), s);
        for bad in [
            r#"{"two":"x","primes":[]}"#,
            r#"{"two":"1","primes":[[4,"1"]]}"#,
            r#"{"two":"1","primes":[[5,"1"],[5,"2"]]}"#,
            r#"{"two":"5192296858534827628530496329220096","primes":[]}"#,
        ] {
            assert!(serde_json::from_str::<Scale>(bad).is_err(), "{bad}");
        }
    }
}
