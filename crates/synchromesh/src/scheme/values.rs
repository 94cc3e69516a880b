//! Numbers on their way into slots and out of them, in the forms that schemes compute with.

use num_bigint::BigInt;
use num_traits::ToPrimitive;
use zeroize::Zeroizing;

use crate::ckks::Complex64;
use crate::error::{Error, Result};

/// A vector of numbers, overwritten with zeros when dropped where memory allows it.
#[derive(Clone)]
pub enum Values {
    /// Integers of a word.
    Integers(Zeroizing<Vec<i64>>),
    /// Integers of any size.
    Wide(Vec<BigInt>),
    /// Real numbers.
    Reals(Zeroizing<Vec<f64>>),
    /// Complex numbers.
    Complexes(Zeroizing<Vec<Complex64>>),
}

impl Values {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(x) => x.len(),
            Self::Wide(x) => x.len(),
            Self::Reals(x) => x.len(),
            Self::Complexes(x) => x.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Integers of a word, as BFV and BGV decrypt for t below 2^63.
    ///
    /// # Errors
    /// [`Error::NumberForm`] for any other form.
    pub fn words(&self) -> Result<&[i64]> {
        match self {
            Self::Integers(x) => Ok(x),
            Self::Wide(_) => Err(Error::NumberForm { found: "wide integers", scheme: "words" }),
            _ => Err(Error::NumberForm { found: FRACTIONS, scheme: "words" }),
        }
    }

    /// As integers.
    ///
    /// # Errors
    /// [`Error::NumberForm`] for real and complex numbers, whatever their values; `scheme` is who asks.
    pub fn integers(&self, scheme: &'static str) -> Result<Vec<BigInt>> {
        match self {
            Self::Integers(x) => Ok(x.iter().map(|&x| x.into()).collect()),
            Self::Wide(x) => Ok(x.clone()),
            _ => Err(Error::NumberForm { found: FRACTIONS, scheme }),
        }
    }

    /// As complex numbers.
    ///
    /// # Errors
    /// [`Error::NumberForm`] for wide integers; `scheme` is who asks.
    pub fn complexes(&self, scheme: &'static str) -> Result<Zeroizing<Vec<Complex64>>> {
        match self {
            Self::Integers(x) => Ok(Zeroizing::new(x.iter().map(|&x| (x as f64).into()).collect())),
            Self::Reals(x) => Ok(Zeroizing::new(x.iter().map(|&x| x.into()).collect())),
            Self::Complexes(x) => Ok(x.clone()),
            Self::Wide(_) => Err(Error::NumberForm { found: "wide integers", scheme }),
        }
    }

    /// The same numbers in runs of `size`, of which the last may be shorter.
    pub(crate) fn runs(&self, size: usize) -> Box<dyn Iterator<Item = Self> + '_> {
        match self {
            Self::Integers(x) => Box::new(x.chunks(size).map(Self::from)),
            Self::Wide(x) => Box::new(x.chunks(size).map(Self::from)),
            Self::Reals(x) => Box::new(x.chunks(size).map(Self::from)),
            Self::Complexes(x) => Box::new(x.chunks(size).map(Self::from)),
        }
    }

    /// The real parts, each as the nearest double.
    #[must_use]
    pub fn reals(&self) -> Zeroizing<Vec<f64>> {
        Zeroizing::new(match self {
            Self::Integers(x) => x.iter().map(|&x| x as f64).collect(),
            Self::Wide(x) => x.iter().map(|x| x.to_f64().unwrap_or(f64::NAN)).collect(),
            Self::Reals(x) => return x.clone(),
            Self::Complexes(x) => x.iter().map(|z| z.re).collect(),
        })
    }
}

const FRACTIONS: &str = "numbers with fractions";

macro_rules! from_numbers {
    ($($number:ty => $form:expr),*) => {$(
        impl From<Vec<$number>> for Values {
            fn from(values: Vec<$number>) -> Self {
                $form(values)
            }
        }
        impl From<&[$number]> for Values {
            fn from(values: &[$number]) -> Self {
                values.to_vec().into()
            }
        }
        impl<const K: usize> From<[$number; K]> for Values {
            fn from(values: [$number; K]) -> Self {
                Vec::from(values).into()
            }
        }
    )*};
}

from_numbers!(
    i64 => |x| Self::Integers(Zeroizing::new(x)),
    f64 => |x| Self::Reals(Zeroizing::new(x)),
    Complex64 => |x| Self::Complexes(Zeroizing::new(x)),
    BigInt => Self::Wide
);
