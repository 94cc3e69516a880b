//! BFV (ePrint 2012/144; the variant of ePrint 2021/204, section 3): exact arithmetic modulo t.
//!
//! A ciphertext at level l holds m in the high digits of its phase: c_0 + c_1 s = (Q/t) m + e mod Q.
//! Encryption rounds Q m / t as a whole, so e starts at 1/2 and decryption works while |e| < Q / (2t).
//! A product switches one operand to a second base P about Q, takes the tensor product modulo QP and scales it by t/P
//! back to Q; other ways are values of [`Multiplication`]. Its noise grows by a factor that does not depend on the noise, so levels are optional: a lower level
//! is smaller and faster.
//! Decryption rounds t x / Q with doubles, digit-decomposed doubles, integers or multi-limb fixed point: [`Decryption`].
//! The original scheme's encoding floor(Q/t) m is a ciphertext with more noise: [`Encryption`].

mod encrypt;
mod multiply;
mod noise;
mod raise;
mod recover;
mod variant;

use num_bigint::{BigInt, BigUint};
use num_traits::One;
use synchromesh_rlwe::SecretKey;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, Poly};

pub use encrypt::{Encoding, Encryption};
pub use recover::Decryption;
pub use variant::{Dropping, Multiplication, Tensor};

use crate::batch::PlainPoly;
use crate::error::{Error, Result};
use crate::exact::{self, Operand, Scheme};
pub use crate::exact::{Integers, ParamsLiteral, Plaintext, PrimeLists, Rotations};
use crate::plain_modulus::PlainModulus;
use crate::scheme_name::SchemeName;

/// The scheme, for code that is generic over BFV and BGV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bfv {}

/// Checked parameters.
pub type Params = exact::Params<Bfv>;
/// Parameters on a device.
pub type Context<B = Cpu> = exact::Context<Bfv, B>;
/// A ciphertext, in coefficients.
pub type Ciphertext<B = Cpu> = exact::Ciphertext<Bfv, B>;
/// Operations on ciphertexts.
pub type Evaluator<B = Cpu> = exact::Evaluator<Bfv, B>;

/// Constants of multiplication and decryption, made at a level's first use.
pub struct Tables<B: Backend> {
    products: multiply::Products<B>,
    decryptions: recover::Levels,
}

impl Scheme for Bfv {
    const SCHEME: SchemeName = SchemeName::Bfv;
    const SECOND_BASE: bool = true;
    type Domain = Coeff;
    type Header = ();
    type Tables<B: Backend> = Tables<B>;
    type Variant = Multiplication;

    fn error_multiple(_: &PlainModulus) -> BigUint {
        BigUint::one()
    }

    fn tables<B: Backend>(params: &Params) -> Result<Tables<B>> {
        let levels = params.top_level() + 1;
        Ok(Tables { products: multiply::Products::default(), decryptions: recover::Levels::new(levels) })
    }

    fn fresh_header<B: Backend>(context: &Context<B>, level: usize) -> Result<()> {
        context.params().rlwe().level(level)?;
        Ok(())
    }

    fn check_header(_: &Params, (): &()) -> Result<()> {
        Ok(())
    }

    fn header_to_bytes((): &()) -> Vec<u8> {
        Vec::new()
    }

    fn header_from_bytes(_: &Params, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        Err(Error::Header { field: "scheme header", reason: format!("it has {} bytes, and bfv has none", bytes.len()) })
    }

    fn message<B: Backend>(
        context: &Context<B>,
        plaintext: &PlainPoly,
        level: usize,
        (): &(),
    ) -> Result<(Poly<B, Coeff>, Noise)> {
        encrypt::message(context, Encoding::Rounded, plaintext, level)
    }

    fn room(params: &Params, level: usize) -> Result<f64> {
        noise::room(params, level)
    }

    fn sum_noise() -> Noise {
        Noise::ZERO
    }

    fn product_noise(_: f64) -> Noise {
        Noise::ZERO
    }

    fn recover<B: Backend>(
        context: &Context<B>,
        ciphertext: &Ciphertext<B>,
        phase: &Poly<B, Coeff>,
    ) -> Result<PlainPoly> {
        recover::recover(context, ciphertext, phase, None)
    }

    fn align<'a, B: Backend>(
        context: &Context<B>,
        a: &'a Ciphertext<B>,
        b: &'a Ciphertext<B>,
    ) -> Result<[Operand<'a, Self, B>; 2]> {
        let level = a.level().min(b.level());
        Ok([Operand::at_level(context, a, level)?, Operand::at_level(context, b, level)?])
    }

    fn equalise<'a, B: Backend>(
        context: &Context<B>,
        terms: &[(&'a Ciphertext<B>, Option<BigInt>)],
    ) -> Result<exact::Equalised<'a, Self, B>> {
        let level = terms.iter().map(|(x, _)| x.level()).min().unwrap_or(0);
        let bring = |(x, _): &(&'a Ciphertext<B>, _)| Ok((Operand::at_level(context, x, level)?, BigUint::one()));
        Ok(((), terms.iter().map(bring).collect::<Result<_>>()?))
    }

    fn mod_switch_to<B: Backend>(
        context: &Context<B>,
        ciphertext: &Ciphertext<B>,
        level: usize,
    ) -> Result<Ciphertext<B>> {
        Ok(Ciphertext::new(ciphertext.inner().mod_switch_to(context.rlwe(), level)?, ()))
    }

    fn lowered(_: &Params, (): &(), _: usize, _: usize) -> Result<((), Noise)> {
        Ok(((), Noise::ZERO))
    }

    fn higher(_: &Params, (): &(), _: usize, _: usize) -> Result<((), Noise)> {
        Ok(((), Noise::ZERO))
    }

    fn tensor<B: Backend>(
        context: &Context<B>,
        how: Multiplication,
        pairs: &[[&Ciphertext<B>; 2]],
        keys: Option<&KeySwitching<B>>,
    ) -> Result<Ciphertext<B>> {
        multiply::tensor(context, how, pairs, keys)
    }

    fn multiply<B: Backend>(
        context: &Context<B>,
        how: Multiplication,
        pairs: &[[&Ciphertext<B>; 2]],
        keys: &KeySwitching<B>,
    ) -> Result<Ciphertext<B>> {
        multiply::relinearized(context, how, pairs, keys)
    }

    fn finish_product<B: Backend>(
        context: &Context<B>,
        how: Multiplication,
        product: Ciphertext<B>,
        level: usize,
    ) -> Result<Ciphertext<B>> {
        if how.raise && product.level() < level {
            return multiply::raise(context, &product, level);
        }
        Ok(product)
    }
}

impl<B: Backend> Context<B> {
    /// Decrypts by the way of rounding asked for.
    ///
    /// # Errors
    /// [`crate::Error::Decryption`] where it is not exact for this t, level and certificate, or as
    /// [`Context::decrypt`](exact::Context::decrypt).
    pub fn decrypt_by(&self, way: Decryption, secret: &SecretKey<B>, ciphertext: &Ciphertext<B>) -> Result<Plaintext> {
        let phase = self.phase(secret, ciphertext)?;
        Ok(recover::recover(self, ciphertext, phase.poly(), Some(way))?.into())
    }
}
