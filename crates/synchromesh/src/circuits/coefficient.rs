//! Public numbers of circuits: one for all slots, or one for each.

use num_bigint::BigInt;
use num_traits::Zero;

use crate::embedding::Complex64;

/// A public number that circuits compute with.
pub trait Number: Clone + PartialEq + std::fmt::Debug + Send + Sync {
    /// A small integer.
    fn integer(value: i64) -> Self;
    /// Whether it is 0.
    fn is_zero(&self) -> bool;
    /// self - other.
    #[must_use]
    fn minus(&self, other: &Self) -> Self;
    /// Its absolute value; 0 for a residue, whose size means nothing.
    fn modulus(&self) -> f64;
}

impl Number for BigInt {
    fn integer(value: i64) -> Self {
        value.into()
    }
    fn is_zero(&self) -> bool {
        Zero::is_zero(self)
    }
    fn minus(&self, other: &Self) -> Self {
        self - other
    }
    fn modulus(&self) -> f64 {
        0.0
    }
}

impl Number for Complex64 {
    fn integer(value: i64) -> Self {
        Self::new(value as f64, 0.0)
    }
    fn is_zero(&self) -> bool {
        self.re == 0.0 && self.im == 0.0
    }
    fn minus(&self, other: &Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
    fn modulus(&self) -> f64 {
        let square = self.re * self.re + self.im * self.im;
        // `hypot` takes several times as long, and is better only where squares leave the range of doubles.
        if (1e-280..1e280).contains(&square) { square.sqrt() } else { self.re.hypot(self.im) }
    }
}

/// A public constant: one number, or one for each slot (zero where none is given).
#[derive(Debug, Clone, PartialEq)]
pub enum Coefficient<T> {
    /// The same in every slot; where there are no slots, the constant polynomial.
    All(T),
    /// One a slot.
    Slots(Vec<T>),
}

impl<T: Number> Coefficient<T> {
    /// Whether it is 0 everywhere.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match self {
            Self::All(x) => x.is_zero(),
            Self::Slots(xs) => xs.iter().all(T::is_zero),
        }
    }

    /// self - other, slot by slot.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let zero = T::integer(0);
        match (self, other) {
            (Self::All(x), Self::All(y)) => Self::All(x.minus(y)),
            (Self::Slots(xs), Self::All(y)) => Self::Slots(xs.iter().map(|x| x.minus(y)).collect()),
            (Self::All(x), Self::Slots(ys)) => Self::Slots(ys.iter().map(|y| x.minus(y)).collect()),
            (Self::Slots(xs), Self::Slots(ys)) => {
                let at = |v: &[T], i: usize| v.get(i).unwrap_or(&zero).clone();
                Self::Slots((0..xs.len().max(ys.len())).map(|i| at(xs, i).minus(&at(ys, i))).collect())
            }
        }
    }
}

impl From<i64> for Coefficient<BigInt> {
    fn from(value: i64) -> Self {
        Self::All(value.into())
    }
}

impl From<BigInt> for Coefficient<BigInt> {
    fn from(value: BigInt) -> Self {
        Self::All(value)
    }
}

impl From<Vec<i64>> for Coefficient<BigInt> {
    fn from(values: Vec<i64>) -> Self {
        Self::Slots(values.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<BigInt>> for Coefficient<BigInt> {
    fn from(values: Vec<BigInt>) -> Self {
        Self::Slots(values)
    }
}

impl From<f64> for Coefficient<Complex64> {
    fn from(value: f64) -> Self {
        Self::All(value.into())
    }
}

impl From<Complex64> for Coefficient<Complex64> {
    fn from(value: Complex64) -> Self {
        Self::All(value)
    }
}

impl From<Vec<f64>> for Coefficient<Complex64> {
    fn from(values: Vec<f64>) -> Self {
        Self::Slots(values.into_iter().map(Into::into).collect())
    }
}

impl From<Vec<Complex64>> for Coefficient<Complex64> {
    fn from(values: Vec<Complex64>) -> Self {
        Self::Slots(values)
    }
}
