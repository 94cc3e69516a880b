//! BFV and BGV: integers modulo t in two rows of N/2 slots.

use std::sync::Arc;

use num_bigint::{BigInt, Sign};
use synchromesh_rlwe::codec::Trust;
use synchromesh_rlwe::ring::{Backend, Coeff, Ntt, Poly, Ring};
use synchromesh_rlwe::wire::EnvelopeKey;
use synchromesh_rlwe::{
    self as rlwe, EvaluationKeys, KeyId, Operand as DomainOperand, Operation, Randomness, SecretKey, SwitchDomain,
    SwitchPlan,
};

use super::{Binary, Encryptor, Scheme, State, Values};
use crate::circuits::functions::Table;
use crate::ckks::{Published, Release};
use crate::error::{Error, Result};
use crate::exact::{self, Ciphertext, Context, Evaluator, Plaintext};
use crate::opening::{self, Hiding, Opening};
use crate::plan::{Joint, Plan, SchemeName};
use crate::rotations::Rotations;

/// Integers modulo t of at most this many bits are decoded to words.
const WORD_BITS: u32 = 63;

/// Whether x is from -(t-1)/2 to t/2.
const fn small(x: i64, t: u64) -> bool {
    let twice = 2 * x as i128;
    twice <= t as i128 && -twice < t as i128
}

/// All slots of a decrypted plaintext.
fn decoded<S: exact::Scheme, B: Backend>(context: &Context<S, B>, plaintext: &Plaintext) -> Result<Values> {
    Ok(if context.params().t().bits() <= WORD_BITS {
        context.decode(plaintext)?.into()
    } else {
        context.decode_big(plaintext)?.into()
    })
}

impl<S: exact::Scheme> Scheme for S {
    const NAME: SchemeName = S::SCHEME;
    type Params = exact::Params<S>;
    type Context<B: Backend> = Context<S, B>;
    type Evaluator<B: Backend> = Evaluator<S, B>;
    type Ciphertext<B: Backend> = Ciphertext<S, B>;
    type Number = BigInt;

    fn params(plan: &Plan) -> Result<Self::Params> {
        plan.exact()
    }

    fn with_joint(params: &Self::Params, joint: &Joint) -> Self::Params {
        params.with_joint(joint)
    }

    fn ring(params: &Self::Params) -> &Arc<Ring> {
        params.rlwe().ring()
    }

    fn open<B: Backend>(params: Self::Params, backend: B) -> Result<Evaluator<S, B>> {
        Ok(Evaluator::new(&Context::with_backend(params, backend)?, None))
    }

    fn open_plan<B: Backend>(
        plan: &Plan,
        params: Self::Params,
        device: &dyn Fn(&Arc<Ring>) -> Result<B>,
    ) -> Result<Evaluator<S, B>> {
        let backend = device(params.rlwe().ring())?;
        let evaluator = plan.on_exact(params, (backend, None), device)?;
        Ok(evaluator.with_routes(plan.routes.clone().map(Arc::new)))
    }

    fn with_keys<B: Backend>(e: &Evaluator<S, B>, keys: Arc<EvaluationKeys<B>>) -> Evaluator<S, B> {
        e.with_keys(keys)
    }

    fn context<B: Backend>(e: &Evaluator<S, B>) -> &Arc<Context<S, B>> {
        e.context()
    }

    fn rlwe<B: Backend>(context: &Context<S, B>) -> &Arc<rlwe::Context<B>> {
        context.rlwe()
    }

    fn switch_plan<B: Backend>(context: &Context<S, B>) -> &SwitchPlan {
        context.params().plan()
    }

    fn generate_evaluation_keys<B: Backend>(
        context: &Context<S, B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        context.generate_evaluation_keys(secret, rotations, randomness)
    }

    fn generate_all_keys<B: Backend>(
        e: &Evaluator<S, B>,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        e.generate_keys(secret, rotations, randomness)
    }

    fn galois_elements<B: Backend>(context: &Context<S, B>, rotations: &Rotations) -> Result<Vec<usize>> {
        context.galois_elements(rotations)
    }

    fn numbers(values: &Values) -> Result<Vec<BigInt>> {
        values.integers(<S as exact::Scheme>::NAME)
    }

    fn values(numbers: &[BigInt]) -> Values {
        numbers.into()
    }

    fn require_held<B: Backend>(context: &Context<S, B>, numbers: &[BigInt]) -> Result<()> {
        let t = context.params().t().value();
        let fits = |value: &BigInt| {
            let twice = value.magnitude() << 1u32;
            if value.sign() == Sign::Minus { twice < *t } else { twice <= *t }
        };
        match numbers.iter().position(|value| !fits(value)) {
            None => Ok(()),
            Some(index) => {
                let (value, t) = (numbers[index].to_string(), t.to_string());
                Err(Error::NumberExceedsModulus { index, value, t })
            }
        }
    }

    fn encrypt<B: Backend>(
        context: &Arc<Context<S, B>>,
        by: &Encryptor<'_, B>,
        values: &Values,
        _: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Ciphertext<S, B>> {
        let plaintext = match (values, context.params().t().as_u64()) {
            (Values::Integers(words), Some(t)) if words.iter().all(|x| small(*x, t)) => context.encode(&words[..])?,
            _ => {
                let integers = Self::numbers(values)?;
                Self::require_held(context, &integers)?;
                context.encode(&integers)?
            }
        };
        let fresh = match by {
            Encryptor::Public(key) => return context.encrypt_at(key, &plaintext, level, randomness),
            Encryptor::Secret(key) => context.encrypt_with_secret(key, &plaintext, randomness)?.0,
        };
        if level == fresh.level() { Ok(fresh) } else { Evaluator::new(context, None).mod_switch_to(&fresh, level) }
    }

    fn decrypt<B: Backend>(context: &Context<S, B>, secret: &SecretKey<B>, x: &Ciphertext<S, B>) -> Result<Values> {
        decoded(context, &context.decrypt(secret, x)?)
    }

    fn opening<B: Backend>(
        context: &Context<S, B>,
        x: &Ciphertext<S, B>,
        hiding: &Hiding,
    ) -> Result<Opening<Ciphertext<S, B>, B>> {
        let (ciphertext, sigma_bits, noise) = exact::hidden(context, x, hiding)?;
        let (backend, parts) = (context.backend(), ciphertext.inner().parts());
        let c0 = match S::Domain::operand(&parts[0]) {
            DomainOperand::Coeff(c0) => c0.duplicate(backend)?,
            _ => S::Domain::to_ntt(backend, &parts[0])?.into_coeff(backend)?,
        };
        let c1 = S::Domain::to_ntt(backend, &parts[1])?;
        let multiple = S::error_multiple(context.params().t());
        let subject = opening::subject(context.rlwe(), opening::OPENED, x.inner())?;
        let (own_bits, error_bound) = (None, 0.0);
        Ok(Opening { c0, c1, ciphertext, sigma_bits, multiple, own_bits, noise, error_bound, subject })
    }

    fn opened<B: Backend>(
        context: &Context<S, B>,
        opening: &Opening<Ciphertext<S, B>, B>,
        phase: &Poly<B, Coeff>,
    ) -> Result<Values> {
        let plaintext = S::recover(context, &opening.ciphertext, phase)?.into();
        if context.slot_encoder().is_ok() {
            return decoded(context, &plaintext);
        }
        Ok(context.decode_coefficients_big(&plaintext)?.into())
    }

    fn passed_on<B: Backend>(
        context: &Context<S, B>,
        opening: &Opening<Ciphertext<S, B>, B>,
        key: KeyId,
        parts: [Poly<B, Ntt>; 2],
    ) -> Result<Ciphertext<S, B>> {
        let parts = parts.into_iter().map(|part| S::Domain::from_ntt(context.backend(), part));
        let (level, params) = (opening.ciphertext.level(), context.params().rlwe());
        let inner =
            rlwe::Ciphertext::new(params, parts.collect::<std::result::Result<_, _>>()?, level, key, opening.noise)?;
        Ciphertext::new(inner, opening.ciphertext.header().clone()).certified(context, Operation::Copy)
    }

    fn publish<B: Backend>(
        _: &Context<S, B>,
        _: &SecretKey<B>,
        _: &Ciphertext<S, B>,
        _: &Release,
    ) -> Result<Published> {
        let name = <S as exact::Scheme>::NAME;
        let reason = format!("results of {name} are exact and are released by decrypting; noise is for ckks");
        Err(Error::Release { reason })
    }

    fn write<B: Backend>(
        context: &Context<S, B>,
        x: &Ciphertext<S, B>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Vec<u8>> {
        x.to_bytes(context, envelope)
    }

    fn read<B: Backend>(
        context: &Context<S, B>,
        bytes: &[u8],
        key: Option<KeyId>,
        trust: Trust<'_>,
    ) -> Result<Ciphertext<S, B>> {
        Ciphertext::from_bytes(context, bytes, key, trust)
    }

    fn transfer<B: Backend, To: Backend>(
        from: &Context<S, B>,
        x: &Ciphertext<S, B>,
        to: &Context<S, To>,
    ) -> Result<Ciphertext<S, To>> {
        let inner = x.inner().transfer(from.rlwe(), to.rlwe())?;
        Ciphertext::from_parts(to.params(), inner, x.header().clone())
    }

    fn key<B: Backend>(x: &Ciphertext<S, B>) -> KeyId {
        x.inner().key()
    }

    fn state<B: Backend>(context: &Context<S, B>, x: &Ciphertext<S, B>) -> Result<State> {
        let (noise_budget, state) = (context.noise_budget(x)?, State::of(context.rlwe(), x.inner())?);
        Ok(State { noise_budget, noise_bits: state.modulus_bits - noise_budget, ..state })
    }

    fn rekey<B: Backend>(e: &Evaluator<S, B>, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        e.rekey(x)
    }

    fn plain<B: Backend>(
        e: &Evaluator<S, B>,
        op: Binary,
        x: &Ciphertext<S, B>,
        values: &Values,
    ) -> Result<Ciphertext<S, B>> {
        let integers = Self::numbers(values)?;
        Self::require_held(e.context(), &integers)?;
        let p = e.context().encode(&integers)?.with_public_norms();
        match op {
            Binary::Add => e.add_plain(x, &p),
            Binary::Sub => e.sub_plain(x, &p),
            Binary::Mul => e.mul_plain(x, &p),
        }
    }

    fn scalar<B: Backend>(
        e: &Evaluator<S, B>,
        op: Binary,
        x: &Ciphertext<S, B>,
        c: BigInt,
    ) -> Result<Ciphertext<S, B>> {
        let constant =
            || Ok::<_, Error>(e.context().encode_coefficients(std::slice::from_ref(&c))?.with_public_norms());
        match op {
            Binary::Add => e.add_plain(x, &constant()?),
            Binary::Sub => e.sub_plain(x, &constant()?),
            Binary::Mul => e.mul_scalar(x, c),
        }
    }

    fn table<B: Backend>(e: &Evaluator<S, B>, table: &Table, x: &[&Ciphertext<S, B>]) -> Result<Ciphertext<S, B>> {
        Self::require_held(e.context(), table.values())?;
        table.evaluate(e, &e.context().params().t().value().clone().into(), x)
    }
}
