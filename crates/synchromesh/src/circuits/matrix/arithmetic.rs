//! What matrix products ask of a scheme beyond the operations of all circuits: hoisted rotations, and sums that stay in
//! three components.

use synchromesh_rlwe::Params;

use crate::circuits::{Arithmetic, Number};
use crate::error::{Error, Result};

/// Levels of a product of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Levels {
    /// At which the left factor is rotated and masked.
    pub left: usize,
    /// At which the right factor is rotated and both are multiplied.
    pub product: usize,
}

/// A vector of zeros and ones as it multiplies ciphertexts of one level under one set of parameters.
pub struct Mask<T> {
    encoded: T,
    level: usize,
    params_digest: [u8; 32],
}

impl<T> Mask<T> {
    /// A mask that was encoded for ciphertexts of `level`.
    pub(crate) fn new(encoded: T, level: usize, params: &Params) -> Self {
        Self { encoded, level, params_digest: *params.digest() }
    }

    /// The encoding, which says nothing about ciphertexts of another level.
    pub(crate) fn at(&self, level: usize, params: &Params) -> Result<&T> {
        params.require_digest(&self.params_digest)?;
        if self.level == level {
            return Ok(&self.encoded);
        }
        Err(synchromesh_rlwe::Error::Level { needed: self.level, have: level, top: params.top_level() }.into())
    }

    /// The encoding, whatever it will multiply.
    pub(crate) const fn encoded(&self) -> &T {
        &self.encoded
    }
}

/// Fails unless this is a period of a vector of zeros and ones: certificates take a slot to be one or the other of two.
pub(crate) fn require_mask<T: Number>(period: &[T], row: usize) -> Result<()> {
    if period.is_empty() || !row.is_multiple_of(period.len()) {
        return Err(Error::shape(format!(
            "a mask of period {} in rows of {row} slots: it must divide them",
            period.len()
        )));
    }
    let chooses = |x: &T| x.is_zero() || x.minus(&T::integer(1)).is_zero();
    match period.iter().position(|x| !chooses(x)) {
        Some(at) => Err(Error::shape(format!("entry {at} of a mask is {:?}: a mask is of zeros and ones", period[at]))),
        None => Ok(()),
    }
}

/// The operations that products of matrices are made of; the evaluators of BFV, BGV and CKKS have them.
///
/// Errors are those of the scheme's rotations and products.
#[expect(clippy::missing_errors_doc, reason = "each fails as the evaluator's rotations and products do")]
pub trait MatrixArithmetic: Arithmetic<Ciphertext: Send + Sync> + Sync {
    /// A ciphertext decomposed once.
    type Hoisted: Send + Sync;
    /// Two ciphertexts decomposed once, for masks that choose between their slots.
    type Pair: Send + Sync;
    /// A vector of zeros and ones, as [`Self::mask`] makes it.
    type Mask: Send + Sync;

    /// Decomposes; where `rotates` is false, for rotations by 0 only.
    fn hoist(&self, x: &Self::Ciphertext, rotates: bool) -> Result<Self::Hoisted>;
    /// The ciphertext rotated to the left by k, at its level.
    fn rotated(&self, x: &Self::Hoisted, k: i64) -> Result<Self::Ciphertext>;
    /// Both for masks.
    fn pair(&self, ones: &Self::Hoisted, zeros: &Self::Hoisted) -> Result<Self::Pair>;
    /// The vector of this period, which divides a row, all rows alike, as it meets ciphertexts of `level`; fails for an
    /// entry that is neither 0 nor 1.
    fn mask(&self, period: &[Self::Scalar], level: usize) -> Result<Self::Mask>;
    /// `ones` where the mask is 1 and `zeros` where it is 0, `pair` being theirs; then rotated to the left by k, and
    /// brought down to `level` in the same division.
    fn chosen(
        &self,
        of: [&Self::Hoisted; 2],
        pair: &Self::Pair,
        mask: &Self::Mask,
        k: i64,
        level: usize,
    ) -> Result<Self::Ciphertext>;
    /// The levels at which `terms` products of rotations of two factors leave the most room; with a mask, the left one
    /// is chosen by it before.
    fn levels(
        &self,
        left: &Self::Ciphertext,
        right: &Self::Ciphertext,
        mask: Option<&Self::Mask>,
        terms: usize,
    ) -> Result<Levels>;
    /// The sum of the products, in three components.
    fn sum_of_tensors(&self, pairs: &[[&Self::Ciphertext; 2]]) -> Result<Self::Ciphertext>;
    /// Three components to two, in one division with the modulus switch or rescale that is due.
    fn settle_product(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext>;
}
