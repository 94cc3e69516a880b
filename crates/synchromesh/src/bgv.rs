//! BGV (ePrint 2011/277; usable form of ePrint 2021/204, section 4): exact arithmetic modulo t.
//!
//! A ciphertext at level l holds m in the low digits of its phase: c_0 + c_1 s = f m + t e mod Q_l.
//! f is the correction factor: public, and canonical when it is S_l, where S_L = 1 and S_{l-1} = S_l^2 / D_l mod t,
//! D_l being the product of the primes that the switch from l to l-1 drops. So fresh ciphertexts of a level, and
//! products of one level up that were switched once, have the same factor and add at no cost.
//! Modulus switching happens right before a multiplication, and there only where it leaves more room.
//! Two ciphertexts with different factors are multiplied by small public constants before they are added.

mod factor;
mod noise;
mod recover;
mod switching;

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::One;
use synchromesh_rlwe::noise::Noise;
use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, Ntt, Poly};

pub use factor::Factor;

use crate::batch::PlainPoly;
use crate::error::{Error, Result};
use crate::exact::{self, Scheme, lift};
pub use crate::exact::{Integers, ParamsLiteral, Plaintext, PrimeLists, Rotations};
use crate::plain_modulus::PlainModulus;

/// The scheme, for code that is generic over BFV and BGV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bgv {}

/// Checked parameters.
pub type Params = exact::Params<Bgv>;
/// Parameters on a device.
pub type Context<B = Cpu> = exact::Context<Bgv, B>;
/// A ciphertext, in slots.
pub type Ciphertext<B = Cpu> = exact::Ciphertext<Bgv, B>;
/// Operations on ciphertexts.
pub type Evaluator<B = Cpu> = exact::Evaluator<Bgv, B>;

impl Scheme for Bgv {
    const NAME: &'static str = "bgv";
    const SECOND_BASE: bool = false;
    type Domain = Ntt;
    type Header = Factor;
    type Tables<B: Backend> = recover::Tables;

    fn error_multiple(t: &PlainModulus) -> BigUint {
        t.value().clone()
    }

    fn tables<B: Backend>(params: &Params) -> Result<Self::Tables<B>> {
        recover::Tables::new(params)
    }

    fn fresh_header<B: Backend>(context: &Context<B>, level: usize) -> Result<Factor> {
        context.params().rlwe().level(level)?;
        Ok(context.tables().canonical(level).clone())
    }

    fn check_header(params: &Params, header: &Factor) -> Result<()> {
        let t = params.t().value();
        if header.value() < t && header.value().gcd(t).is_one() {
            return Ok(());
        }
        let reason = format!("{} is not an invertible residue modulo t = {t}", header.value());
        Err(Error::Header { field: "correction factor", reason })
    }

    /// The factor, little-endian, in as few bytes as it takes.
    fn header_to_bytes(header: &Factor) -> Vec<u8> {
        header.value().to_bytes_le()
    }

    fn header_from_bytes(params: &Params, bytes: &[u8]) -> Result<Factor> {
        let value = BigUint::from_bytes_le(bytes);
        if &value >= params.t().value() || value.to_bytes_le() != bytes {
            let reason = format!("its {} bytes are no residue modulo t = {}", bytes.len(), params.t());
            return Err(Error::Header { field: "correction factor", reason });
        }
        Ok(Factor::new(value, params.t().value()))
    }

    fn message<B: Backend>(
        context: &Context<B>,
        plaintext: &PlainPoly,
        level: usize,
        header: &Factor,
    ) -> Result<(Poly<B, Coeff>, Noise)> {
        let primes = context.params().rlwe().level(level)?;
        Ok((lift(context.backend(), primes, plaintext, header.value())?, Noise::ZERO))
    }

    fn room(params: &Params, level: usize) -> Result<f64> {
        noise::room(params, level)
    }

    fn sum_noise() -> Noise {
        noise::sum()
    }

    fn product_noise(log2_norm1: f64) -> Noise {
        noise::message_product(log2_norm1)
    }

    fn recover<B: Backend>(
        context: &Context<B>,
        ciphertext: &Ciphertext<B>,
        phase: &Poly<B, Coeff>,
    ) -> Result<PlainPoly> {
        recover::recover(context, ciphertext, phase)
    }

    fn align<'a, B: Backend>(
        context: &Context<B>,
        a: &'a Ciphertext<B>,
        b: &'a Ciphertext<B>,
    ) -> Result<[exact::Operand<'a, Self, B>; 2]> {
        switching::align(context, a, b)
    }

    fn mod_switch_to<B: Backend>(
        context: &Context<B>,
        ciphertext: &Ciphertext<B>,
        level: usize,
    ) -> Result<Ciphertext<B>> {
        switching::mod_switch_to(context, ciphertext, level)
    }

    fn tensor<B: Backend>(context: &Context<B>, a: &Ciphertext<B>, b: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        switching::tensor(context, a, b)
    }
}
