//! CKKS: real or complex numbers in N/2 slots.

use std::sync::Arc;

use synchromesh_rlwe::codec::Trust;
use synchromesh_rlwe::ring::{Backend, Coeff, Ntt, Poly, Ring};
use synchromesh_rlwe::wire::EnvelopeKey;
use synchromesh_rlwe::{self as rlwe, EvaluationKeys, KeyId, Randomness, SecretKey, SwitchPlan};

use super::operation::coefficient;
use super::{Binary, Encryptor, Scheme, State, Values, Where};
use crate::circuits::functions::Approximation;
use crate::circuits::{Arithmetic, Polynomial};
use crate::ckks::{Ciphertext, Ckks, Complex64, Context, Evaluator, Params, Plaintext, Published, Release};
use crate::error::Result;
use crate::opening::{Hiding, Opening};
use crate::plan::{Joint, Plan, SchemeName};
use crate::rotations::Rotations;

/// Public numbers, with their largest modulus as the bound.
fn plaintext<B: Backend>(context: &Context<B>, values: &Values) -> Result<Plaintext<B>> {
    if let Values::Reals(values) = values {
        let bound = values.iter().fold(f64::MIN_POSITIVE, |bound, x| bound.max(x.abs()));
        return context.encode_bounded(values, usable(bound));
    }
    let values = values.complexes(Ckks::NAME.name())?;
    let bound = values.iter().fold(f64::MIN_POSITIVE, |bound, z| bound.max(z.re.hypot(z.im)));
    context.encode_complex(&values, usable(bound * (1.0 + 1e-12)))
}

/// A bound that encoding takes: of zeros, and of numbers next to them, a tiny one.
fn usable(bound: f64) -> f64 {
    if bound.is_finite() { bound.max(2f64.powi(-199)) } else { 1.0 }
}

impl Scheme for Ckks {
    const NAME: SchemeName = SchemeName::Ckks;
    type Params = Params;
    type Context<B: Backend> = Context<B>;
    type Evaluator<B: Backend> = Evaluator<B>;
    type Ciphertext<B: Backend> = Ciphertext<B>;
    type Number = Complex64;

    fn params(plan: &Plan) -> Result<Params> {
        plan.ckks()
    }

    fn with_joint(params: &Params, joint: &Joint) -> Params {
        params.with_joint(joint)
    }

    fn ring(params: &Params) -> &Arc<Ring> {
        params.rlwe().ring()
    }

    fn open<B: Backend>(params: Params, backend: B) -> Result<Evaluator<B>> {
        Ok(Evaluator::new(&Context::with_backend(params, backend)?, None))
    }

    fn open_plan<B: Backend>(
        plan: &Plan,
        params: Params,
        device: &dyn Fn(&Arc<Ring>) -> Result<B>,
    ) -> Result<Evaluator<B>> {
        let backend = device(params.rlwe().ring())?;
        plan.on_ckks(Self::open(params, backend)?)
    }

    fn with_keys<B: Backend>(e: &Evaluator<B>, keys: Arc<EvaluationKeys<B>>) -> Evaluator<B> {
        e.with_keys(keys)
    }

    fn top_level<B: Backend>(e: &Evaluator<B>) -> usize {
        e.top_level()
    }

    fn generate_all_keys<B: Backend>(
        e: &Evaluator<B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        e.generate_keys(secret, rotations, randomness)
    }

    fn context<B: Backend>(e: &Evaluator<B>) -> &Arc<Context<B>> {
        e.context()
    }

    fn rlwe<B: Backend>(context: &Context<B>) -> &Arc<rlwe::Context<B>> {
        context.rlwe()
    }

    fn switch_plan<B: Backend>(context: &Context<B>) -> &SwitchPlan {
        context.params().plan()
    }

    fn generate_evaluation_keys<B: Backend>(
        context: &Context<B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        context.generate_evaluation_keys(secret, rotations, randomness)
    }

    fn galois_elements<B: Backend>(context: &Context<B>, rotations: &Rotations) -> Result<Vec<usize>> {
        Ok(context.galois_elements(rotations))
    }

    fn numbers(values: &Values) -> Result<Vec<Complex64>> {
        Ok(std::mem::take(&mut *values.complexes(Self::NAME.name())?))
    }

    fn values(numbers: &[Complex64]) -> Values {
        numbers.into()
    }

    fn require_held<B: Backend>(_: &Context<B>, _: &[Complex64]) -> Result<()> {
        Ok(())
    }

    fn encrypt<B: Backend>(
        context: &Arc<Context<B>>,
        by: &Encryptor<'_, B>,
        values: &Values,
        bound: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<B>> {
        let plaintext = context.encode_complex(&values.complexes(Self::NAME.name())?, bound)?;
        match by {
            Encryptor::Public(key) => context.encrypt_at(key, &plaintext, level, randomness),
            Encryptor::Secret(key) => Ok(context.encrypt_with_secret(key, &plaintext, level, randomness)?.0),
        }
    }

    fn decrypt<B: Backend>(context: &Context<B>, secret: &SecretKey<B>, x: &Ciphertext<B>) -> Result<Values> {
        Ok(context.decode_complex(&context.decrypt(secret, x)?)?.into())
    }

    fn publish<B: Backend>(
        context: &Context<B>,
        secret: &SecretKey<B>,
        x: &Ciphertext<B>,
        release: &Release,
    ) -> Result<Published> {
        context.publish(secret, x, release)
    }

    fn opening<B: Backend>(
        context: &Context<B>,
        x: &Ciphertext<B>,
        hiding: &Hiding,
    ) -> Result<Opening<Ciphertext<B>, B>> {
        context.opening(x, hiding)
    }

    fn opened<B: Backend>(
        context: &Context<B>,
        opening: &Opening<Ciphertext<B>, B>,
        phase: &Poly<B, Coeff>,
    ) -> Result<Values> {
        Ok(context.opened(&opening.ciphertext, phase)?.into())
    }

    fn passed_on<B: Backend>(
        context: &Context<B>,
        opening: &Opening<Ciphertext<B>, B>,
        key: KeyId,
        parts: [Poly<B, Ntt>; 2],
    ) -> Result<Ciphertext<B>> {
        context.passed_on(opening, key, parts)
    }

    fn write<B: Backend>(context: &Context<B>, x: &Ciphertext<B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
        x.to_bytes(context, envelope)
    }

    fn read<B: Backend>(
        context: &Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        trust: Trust<'_>,
    ) -> Result<Ciphertext<B>> {
        Ciphertext::from_bytes(context, bytes, key, trust)
    }

    fn transfer<B: Backend, To: Backend>(
        from: &Context<B>,
        x: &Ciphertext<B>,
        to: &Context<To>,
    ) -> Result<Ciphertext<To>> {
        let inner = x.inner().transfer(from.rlwe(), to.rlwe())?;
        let made = Ciphertext::from_parts(to, inner, x.header().clone())?;
        Ok(made.with_beside(x.beside().cloned()).standing_for(x))
    }

    fn key<B: Backend>(x: &Ciphertext<B>) -> KeyId {
        x.inner().key()
    }

    /// The noise is the certified error times the scale.
    fn state<B: Backend>(context: &Context<B>, x: &Ciphertext<B>) -> Result<State> {
        let error_bound = context.error_bound(x);
        Ok(State {
            noise_bits: error_bound.log2() + x.log2_scale(),
            noise_budget: context.noise_budget(x),
            error_bound,
            bound: x.bound(),
            lineage: Some(x.lineage()),
            ..State::of(context.rlwe(), x.inner())?
        })
    }

    fn rekey<B: Backend>(e: &Evaluator<B>, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        e.rekey(x)
    }

    fn plain<B: Backend>(e: &Evaluator<B>, op: Binary, x: &Ciphertext<B>, values: &Values) -> Result<Ciphertext<B>> {
        let p = plaintext(e.context(), values)?;
        match op {
            Binary::Add => e.add_plain(x, &p),
            Binary::Sub => e.sub_plain(x, &p),
            Binary::Mul => e.mul_plain(x, &p),
        }
    }

    fn scalar<B: Backend>(e: &Evaluator<B>, op: Binary, x: &Ciphertext<B>, c: Complex64) -> Result<Ciphertext<B>> {
        match op {
            Binary::Add => e.add_scalar(x, c),
            Binary::Sub => e.add_scalar(x, Complex64::new(-c.re, -c.im)),
            Binary::Mul => e.mul_scalar(x, c),
        }
    }

    fn approximate<B: Backend>(e: &Evaluator<B>, x: &Ciphertext<B>, error: f64) -> Result<Ciphertext<B>> {
        e.declare_error(e.renewed(x, 0)?.duplicate(e.context())?, error)
    }

    fn zeros<B: Backend>(e: &Evaluator<B>, x: &Ciphertext<B>, own: &[bool]) -> Result<Ciphertext<B>> {
        e.declare_zeros(e.renewed(x, 0)?.duplicate(e.context())?, own)
    }

    fn function<B: Backend>(
        e: &Evaluator<B>,
        approximation: &Approximation,
        x: &[&Ciphertext<B>],
    ) -> Result<Ciphertext<B>> {
        approximation.evaluate(e, x)
    }

    fn chebyshev<B: Backend>(
        e: &Evaluator<B>,
        x: &Ciphertext<B>,
        coefficients: &[f64],
        interval: (f64, f64),
        slots: Where<'_>,
    ) -> Result<Ciphertext<B>> {
        let coefficients = coefficients.iter().map(|&c| coefficient(Complex64::from(c), slots));
        Polynomial::chebyshev(coefficients, interval)?.evaluate(e, x)
    }
}
