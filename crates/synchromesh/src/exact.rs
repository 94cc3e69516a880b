//! Exact arithmetic modulo t: what BFV and BGV share, written once and instantiated for each by [`Scheme`].
//!
//! Both hold a message m of Z_t\[X\]/(X^N+1) in a ciphertext whose phase c_0 + c_1 s is, modulo Q,
//! ```text
//! BFV: (Q/t) m + e          BGV: f m + t e
//! ```
//! with a correction factor f that is public. Parameters, plaintexts, keys, encryption and all linear operations
//! differ only in how m enters and leaves; products differ altogether.

pub mod bootstrap;
mod ciphertext;
mod combine;
mod context;
mod evaluator;
mod hoisted;
mod integers;
mod lift;
mod matrix_keys;
mod merged;
mod opening;
mod params;
mod plaintext;
mod recompose;
mod refreshing;
mod rotation_sum;
mod rotations;
mod second;
mod wire;

use num_bigint::{BigInt, BigUint};
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::{Backend, Coeff, Poly};
use synchromesh_rlwe::{Operation, SwitchDomain, ring};

pub use crate::rotations::Rotations;
pub use ciphertext::Ciphertext;
pub use ciphertext::Operand;
pub(crate) use ciphertext::require_room;
pub use context::Context;
pub(crate) use context::Secret;
pub use evaluator::Evaluator;
pub(crate) use evaluator::times_integer;
pub use integers::{Integers, log2_biguint};
pub(crate) use integers::{centred, residue};
pub(crate) use lift::lift;
pub(crate) use opening::{hidden, hidden_budget};
pub use params::{Params, ParamsLiteral, PrimeLists};
pub use plaintext::Plaintext;
pub(crate) use recompose::{FixedPoint, Recompose, Weights, fixed_point_margin};

use crate::batch::PlainPoly;
use crate::error::Result;
use crate::plain_modulus::PlainModulus;
use crate::scheme_name::SchemeName;

/// A header, and terms of a sum at one level, each with the unit mod t that brings it to that header.
pub type Equalised<'a, S, B> = (<S as Scheme>::Header, Vec<(Operand<'a, S, B>, BigUint)>);

/// What tells BFV from BGV.
pub trait Scheme: Copy + std::fmt::Debug + Send + Sync + 'static {
    /// Which scheme it is.
    const SCHEME: SchemeName;
    /// The scheme's name, as in the tag of its parameters.
    const NAME: &'static str = Self::SCHEME.name();
    /// Whether products need a second base P about Q of auxiliary primes.
    const SECOND_BASE: bool;
    /// The domain that ciphertexts rest in.
    type Domain: SwitchDomain;
    /// What a ciphertext carries beside its components: the correction factor of BGV.
    type Header: Clone + PartialEq + std::fmt::Debug + Send + Sync;
    /// Constants of the scheme, made once for each context.
    type Tables<B: Backend>: Send + Sync;
    /// How products are computed, where there is a choice.
    type Variant: Copy + Default + PartialEq + std::fmt::Debug + Send + Sync;

    /// The multiple of the error in a phase: 1 or t.
    fn error_multiple(t: &PlainModulus) -> BigUint;

    /// The scheme's constants.
    ///
    /// # Errors
    /// When the device fails.
    fn tables<B: Backend>(params: &Params<Self>) -> Result<Self::Tables<B>>;

    /// The header of a fresh ciphertext at `level`.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    fn fresh_header<B: Backend>(context: &Context<Self, B>, level: usize) -> Result<Self::Header>;

    /// Whether `header` can belong to a ciphertext of these parameters.
    ///
    /// # Errors
    /// [`crate::Error::Header`].
    fn check_header(params: &Params<Self>, header: &Self::Header) -> Result<()>;

    /// The header as the scheme header of a container.
    fn header_to_bytes(header: &Self::Header) -> Vec<u8>;

    /// The header that [`Self::header_to_bytes`] writes so.
    ///
    /// # Errors
    /// [`crate::Error::Header`] for bytes that it does not write.
    fn header_from_bytes(params: &Params<Self>, bytes: &[u8]) -> Result<Self::Header>;

    /// The polynomial that `plaintext` adds to a phase with this header, and the error it brings.
    ///
    /// # Errors
    /// When the device fails.
    fn message<B: Backend>(
        context: &Context<Self, B>,
        plaintext: &PlainPoly,
        level: usize,
        header: &Self::Header,
    ) -> Result<(Poly<B, Coeff>, Noise)>;

    /// log2 of the largest |e| that decrypts at `level`.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    fn room(params: &Params<Self>, level: usize) -> Result<f64>;

    /// The error of a sum of two messages, beyond the sum of their errors.
    fn sum_noise() -> Noise;

    /// The error of a message times a public polynomial p, beyond e p: |p|_1 is given as log2.
    fn product_noise(log2_norm1: f64) -> Noise;

    /// The error of a product of two different ciphertexts with errors `a` and `b`; unknown where products go through a
    /// second base.
    fn tensor_noise(params: &Params<Self>, a: Noise, b: Noise) -> Noise {
        let _ = (params, a, b);
        Noise::UNKNOWN
    }

    /// The message of a phase.
    ///
    /// # Errors
    /// When the device fails.
    fn recover<B: Backend>(
        context: &Context<Self, B>,
        ciphertext: &Ciphertext<Self, B>,
        phase: &Poly<B, Coeff>,
    ) -> Result<PlainPoly>;

    /// Both operands at one level with one header, so that they add.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Noise`] when one does not survive it, or when the device fails.
    fn align<'a, B: Backend>(
        context: &Context<Self, B>,
        a: &'a Ciphertext<Self, B>,
        b: &'a Ciphertext<Self, B>,
    ) -> Result<[Operand<'a, Self, B>; 2]>;

    /// A header, and each x_i brought to one level with a unit u_i mod t, so that the sum of u_i c_i times them, under
    /// that header, is sum_i c_i m_i; a constant c_i of `None` is a polynomial of any size.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Noise`] when one does not survive it, or when the device fails.
    fn equalise<'a, B: Backend>(
        context: &Context<Self, B>,
        terms: &[(&'a Ciphertext<Self, B>, Option<BigInt>)],
    ) -> Result<Equalised<'a, Self, B>>;

    /// The ciphertext at a lower level.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] unless `level` is below the ciphertext's.
    fn mod_switch_to<B: Backend>(
        context: &Context<Self, B>,
        ciphertext: &Ciphertext<Self, B>,
        level: usize,
    ) -> Result<Ciphertext<Self, B>>;

    /// The header after a switch to a lower level without constants, and the error that comes in with it beside rounding.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    fn lowered(params: &Params<Self>, header: &Self::Header, from: usize, to: usize) -> Result<(Self::Header, Noise)>;

    /// The header after all is multiplied by the quotient of the moduli of a higher level and this one, and what a message
    /// is of t in the phase, where it stands beside the error.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    fn higher(params: &Params<Self>, header: &Self::Header, from: usize, to: usize) -> Result<(Self::Header, Noise)>;

    /// The sum of the products of `pairs` in three components, computed in the way `how` says, at the level that it
    /// or the scheme chooses; `keys` are those that it will be relinearised with, if any.
    ///
    /// # Errors
    /// [`crate::Error::Argument`] for an empty list, [`synchromesh_rlwe::Error::Noise`] when the result could decrypt
    /// wrongly, or when the device fails.
    fn tensor<B: Backend>(
        context: &Context<Self, B>,
        how: Self::Variant,
        pairs: &[[&Ciphertext<Self, B>; 2]],
        keys: Option<&KeySwitching<B>>,
    ) -> Result<Ciphertext<Self, B>>;

    /// As [`Self::tensor`], relinearised.
    ///
    /// # Errors
    /// As [`Self::tensor`], and those of the relinearisation.
    fn multiply<B: Backend>(
        context: &Context<Self, B>,
        how: Self::Variant,
        pairs: &[[&Ciphertext<Self, B>; 2]],
        keys: &KeySwitching<B>,
    ) -> Result<Ciphertext<Self, B>> {
        let product = Self::tensor(context, how, pairs, Some(keys))?.certified(context, Operation::Product)?;
        let inner = keys.relinearize(context.rlwe(), product.inner())?;
        Ok(Ciphertext::new(inner, product.header().clone()))
    }

    /// A product of operands at `level`, relinearised or not, as the caller gets it.
    ///
    /// # Errors
    /// When the device fails.
    fn finish_product<B: Backend>(
        context: &Context<Self, B>,
        how: Self::Variant,
        product: Ciphertext<Self, B>,
        level: usize,
    ) -> Result<Ciphertext<Self, B>> {
        let _ = (context, how, level);
        Ok(product)
    }
}

/// The residues of a signed integer modulo each prime of `set`.
pub(crate) fn signed_residues(ring: &ring::Ring, set: &ring::IndexSet, x: &BigInt) -> Vec<u64> {
    let residues = ring.residues(set, x.magnitude());
    let negative = x.sign() == num_bigint::Sign::Minus;
    let signed = |(i, r)| if negative { ring.modulus(i).neg(r) } else { r };
    set.iter().zip(residues).map(signed).collect()
}
