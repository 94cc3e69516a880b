//! Plaintext polynomials in Z_t[X]/(X^N+1): secret residues in `[0, t)`, erased when dropped.

use std::fmt;

use synchromesh_rlwe::ring::secrecy;
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::error::BatchError;
use crate::plain_modulus::{Arithmetic, PlainModulus, U256, at_least};

/// Residues mod t, in one word each for t < 2^62 and in four limbs above. `Debug` shows how many, never which.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub enum Residues {
    /// One word each.
    Word(Vec<u64>),
    /// Four limbs each, least significant first.
    Wide(Vec<U256>),
}

impl Residues {
    /// `length` zeros in the storage this modulus uses.
    pub fn zero(modulus: &PlainModulus, length: usize) -> Self {
        match modulus.arithmetic() {
            Arithmetic::Word(_) => Self::Word(vec![0; length]),
            Arithmetic::Wide(_) => Self::Wide(vec![[0; 4]; length]),
        }
    }

    /// How many residues.
    pub fn len(&self) -> usize {
        match self {
            Self::Word(words) => words.len(),
            Self::Wide(limbs) => limbs.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The residues where one word holds each.
    pub fn as_word(&self) -> Option<&[u64]> {
        match self {
            Self::Word(words) => Some(words),
            Self::Wide(_) => None,
        }
    }

    /// The residues where four limbs hold each.
    pub fn as_wide(&self) -> Option<&[U256]> {
        match self {
            Self::Word(_) => None,
            Self::Wide(limbs) => Some(limbs),
        }
    }

    /// Residue `to` becomes residue `from` of another list in the same storage, for (to, from) = `place(i)` and all i.
    pub(super) fn permute(&mut self, source: &Self, place: impl Fn(usize) -> (usize, usize)) {
        let pairs = (0..self.len()).map(place);
        match (self, source) {
            (Self::Word(out), Self::Word(source)) => pairs.for_each(|(to, from)| out[to] = source[from]),
            (Self::Wide(out), Self::Wide(source)) => pairs.for_each(|(to, from)| out[to] = source[from]),
            _ => {}
        }
    }

    /// Residue `index` as four limbs, whichever the storage.
    pub fn at(&self, index: usize) -> Option<U256> {
        match self {
            Self::Word(words) => words.get(index).map(|&word| [word, 0, 0, 0]),
            Self::Wide(limbs) => limbs.get(index).copied(),
        }
    }
}

impl fmt::Debug for Residues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let storage = match self {
            Self::Word(_) => "Word",
            Self::Wide(_) => "Wide",
        };
        write!(f, "{storage}({} residues)", self.len())
    }
}

/// Equality in time that depends on the lengths alone.
impl PartialEq for Residues {
    fn eq(&self, other: &Self) -> bool {
        let difference = |a: &[u64], b: &[u64]| a.iter().zip(b).fold(0, |acc, (x, y)| acc | (x ^ y));
        match (self, other) {
            (Self::Word(a), Self::Word(b)) => a.len() == b.len() && difference(a, b) == 0,
            (Self::Wide(a), Self::Wide(b)) => a.len() == b.len() && difference(a.as_flattened(), b.as_flattened()) == 0,
            _ => false,
        }
    }
}

impl Eq for Residues {}

/// A plaintext polynomial: N coefficients in `[0, t)`, lowest degree first, with the t they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPoly {
    modulus: PlainModulus,
    coeffs: Residues,
}

impl PlainPoly {
    /// A polynomial from its coefficients, all of which are checked.
    ///
    /// # Errors
    /// [`WrongStorage`](BatchError::WrongStorage) when the residues are not stored as t asks,
    /// [`ResidueOutOfRange`](BatchError::ResidueOutOfRange) when one is t or more,
    /// [`LengthNotDegree`](BatchError::LengthNotDegree) when their number is no power of two.
    pub fn new(modulus: &PlainModulus, coeffs: Residues) -> Result<Self, BatchError> {
        if !coeffs.len().is_power_of_two() {
            return Err(BatchError::LengthNotDegree { length: coeffs.len() });
        }
        let above = match (modulus.arithmetic(), &coeffs) {
            (Arithmetic::Word(t), Residues::Word(words)) => {
                // One comparison a residue and no early exit: only the verdict is revealed.
                words.iter().fold(0, |acc, &word| acc | u64::from(word >= t.value()))
            }
            (Arithmetic::Wide(t), Residues::Wide(limbs)) => {
                limbs.iter().fold(0, |acc, limb| acc | at_least(limb, t.value()))
            }
            _ => return Err(BatchError::WrongStorage { bits: modulus.bits() }),
        };
        if secrecy::reveal(above) != 0 {
            return Err(BatchError::ResidueOutOfRange { bits: modulus.bits() });
        }
        Ok(Self { modulus: modulus.clone(), coeffs })
    }

    /// A polynomial whose coefficients are already in range.
    pub(super) fn from_reduced(modulus: &PlainModulus, coeffs: Residues) -> Self {
        Self { modulus: modulus.clone(), coeffs }
    }

    /// m(X^step), with `step` times as many coefficients.
    pub(crate) fn spread(&self, step: usize) -> Self {
        let mut coeffs = Residues::zero(&self.modulus, self.coeffs.len() * step);
        match (&mut coeffs, &self.coeffs) {
            (Residues::Word(out), Residues::Word(from)) => {
                out.iter_mut().step_by(step).zip(from).for_each(|(out, x)| *out = *x);
            }
            (Residues::Wide(out), Residues::Wide(from)) => {
                out.iter_mut().step_by(step).zip(from).for_each(|(out, x)| *out = *x);
            }
            _ => {}
        }
        Self { modulus: self.modulus.clone(), coeffs }
    }

    /// The plaintext modulus t.
    pub fn modulus(&self) -> &PlainModulus {
        &self.modulus
    }

    /// The N coefficients.
    pub fn coeffs(&self) -> &Residues {
        &self.coeffs
    }
}
