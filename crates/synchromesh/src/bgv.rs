//! BGV (ePrint 2011/277; usable form of ePrint 2021/204, section 4): exact arithmetic modulo t.
//!
//! A ciphertext at level l holds m in the low digits of its phase: c_0 + c_1 s = f m + t e mod Q_l.
//! f is the correction factor: public, and canonical when it is S_l, where S_L = 1 and S_{l-1} = S_l^2 / D_l mod t,
//! D_l being the product of the primes that the switch from l to l-1 drops (over that of those it brings in). So fresh ciphertexts of a level, and
//! products of one level up that were switched once, have the same factor and add at no cost.
//! Modulus switching happens right before a multiplication, and there only where it leaves more room.
//! Two ciphertexts with different factors are multiplied by small public constants before they are added.
//! Other rules for factors and levels, the original scheme's among them, are values of [`Management`].
//! A ciphertext becomes one of BFV, and the reverse, without noise: [`Bridge`].

mod bridge;
mod factor;
mod management;
pub(crate) mod noise;
mod recover;
mod switching;

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use num_integer::Integer;
use num_traits::One;
use synchromesh_rlwe::noise::{KeyBound, Noise};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::{Backend, Coeff, Cpu, Ntt, Poly};

pub use bridge::{Bridge, bridged_literal};
pub use factor::Factor;
pub use management::{Factors, Levels, Management, original_primes};

use crate::batch::PlainPoly;
use crate::error::{Error, Result};
use crate::exact::{self, Scheme, lift, log2_biguint};
pub use crate::exact::{Integers, ParamsLiteral, Plaintext, PrimeLists, Rotations};
use crate::plain_modulus::PlainModulus;
use crate::scheme_name::SchemeName;

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
    const SCHEME: SchemeName = SchemeName::Bgv;
    const SECOND_BASE: bool = false;
    type Domain = Ntt;
    type Header = Factor;
    type Variant = ();
    type Tables<B: Backend> = recover::Tables;

    fn error_multiple(t: &PlainModulus) -> BigUint {
        t.value().clone()
    }

    fn tables<B: Backend>(params: &Params) -> Result<Self::Tables<B>> {
        recover::Tables::new(params, Management::default())
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

    fn tensor_noise(params: &Params, a: Noise, b: Noise) -> Noise {
        noise::product(params.log_n(), log2_biguint(params.t().value()), a, b)
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

    fn equalise<'a, B: Backend>(
        context: &Context<B>,
        terms: &[(&'a Ciphertext<B>, Option<BigInt>)],
    ) -> Result<exact::Equalised<'a, Self, B>> {
        switching::equalise(context, terms)
    }

    fn mod_switch_to<B: Backend>(
        context: &Context<B>,
        ciphertext: &Ciphertext<B>,
        level: usize,
    ) -> Result<Ciphertext<B>> {
        switching::mod_switch_to(context, ciphertext, level)
    }

    fn lowered(params: &Params, header: &Factor, from: usize, to: usize) -> Result<(Factor, Noise)> {
        Ok((header.over(&params.divisor_mod_t(from, to)?, params.t().value()), noise::message_switch()))
    }

    /// \[f m\]_t is at most t/2.
    fn higher(params: &Params, header: &Factor, from: usize, to: usize) -> Result<(Factor, Noise)> {
        Ok((header.times(&params.divisor_mod_t(to, from)?, params.t().value()), Noise::bounded(0.5)))
    }

    fn tensor<B: Backend>(
        context: &Context<B>,
        (): (),
        pairs: &[[&Ciphertext<B>; 2]],
        _: Option<&KeySwitching<B>>,
    ) -> Result<Ciphertext<B>> {
        switching::tensor(context, pairs)
    }
}

impl Params {
    /// The same parameters for keys that are sums of shares which others made, of which only these norms are known:
    /// certificates then hold for any such keys.
    #[must_use]
    pub fn with_key_bound(&self, bound: KeyBound) -> Self {
        self.with_rlwe(self.rlwe().clone().with_key_bound(bound))
    }
}

impl Context<Cpu> {
    /// The parameters on this machine's CPU, with factors and levels managed in another way than the default.
    ///
    /// # Errors
    /// [`Error::Params`] for [`Factors::One`] with primes that are not 1 mod t, or as
    /// [`Context::new`](exact::Context::new).
    pub fn managed(params: Params, management: Management) -> Result<Arc<Self>> {
        let backend = Cpu::open(Arc::clone(params.rlwe().ring()))?;
        Self::managed_on(params, backend, management)
    }
}

impl<B: Backend> Context<B> {
    /// As [`Context::managed`], on a device of the caller's choice.
    ///
    /// # Errors
    /// As [`Context::managed`].
    pub fn managed_on(params: Params, backend: B, management: Management) -> Result<Arc<Self>> {
        let tables = recover::Tables::new(&params, management)?;
        let rlwe = synchromesh_rlwe::Context::observed(params.rlwe().clone(), backend, None);
        Self::with_tables(rlwe, params, tables)
    }

    /// How factors and levels are managed.
    #[must_use]
    pub const fn management(&self) -> Management {
        self.tables().management()
    }
}
