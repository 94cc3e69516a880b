//! Bootstrapping of BFV and BGV for any plaintext modulus, by bootstrapping the error in CKKS (ePrint 2024/109).
//!
//! A phase x of BFV is, modulo Q, (Q m + E) / t with E = t e: multiplied by t the message is gone, and E is left. A phase of
//! BGV is such an E as it stands, f m + t e. Whatever t is, E is small, and CKKS refreshes small integers: not exactly, but to
//! p bits. A **pass** takes a ciphertext c at level l and, with the CKKS ring of the same primes and the same secret,
//! 1. multiplies by an integer M and drops to the smallest modulus q_j that holds M E with r bits to spare (no rounding, as
//!    E is an integer), and switches down to q_0;
//! 2. raises it to the largest modulus, and makes of it, by CoeffsToSlots, EvalMod and SlotsToCoeffs, a ciphertext z modulo
//!    the output level's Q' with phase D E / (t F), where D = Q' / Q and F is an integer; whatever real factor that takes is
//!    the size of EvalMod's sine;
//! 3. subtracts: D c - F z has the phase (Q' m + E') / t in BFV, D c - t F z has D f m + E' in BGV, with an E' that is to Q'
//!    what E is to Q, p bits less.
//!
//! Passes repeat until the noise budget is what was planned for: t decides how many bits a product takes, and so how many
//! passes, and nothing else.
//!
//! The certificate bounds each coefficient of E', whatever E is: what EvalMod is off by in a slot, its sine's bend and series
//! with it, is what SlotsToCoeffs leaves a coefficient off by, beside its own noise and the rounding of the switch to q_0.

mod literal;
mod pass;

use std::sync::Arc;

use synchromesh_rlwe::ring::{Backend, Cpu};
use synchromesh_rlwe::{EvaluationKeys, Operation, Randomness, SecretKey};

pub use self::literal::BootstrapLiteral;
use self::pass::Pass;
use super::{Ciphertext, Context, Params, Rotations, Scheme, log2_biguint};
use crate::ckks;
use crate::error::{Error, Result};

/// Bits by which a pass must make the noise budget larger, or it is the last.
const LEAST_GAIN: f64 = 1.0;

/// By how many bits an error may be larger at the failure probability of a bound that enters another: products of up to six
/// Gaussians, each by less than an eighth.
const TAILS: f64 = 0.75;

/// Bootstrapping at some parameters of S.
#[derive(Debug, Clone)]
pub struct Bootstrap<S: Scheme> {
    literal: BootstrapLiteral,
    params: Params<S>,
    inside: ckks::bootstrap::Bootstrap,
}

impl<S: Scheme> Bootstrap<S> {
    /// Checks the choices against parameters, and these against those of the CKKS ring `inside` which refreshes run.
    ///
    /// # Errors
    /// [`Error::Params`] for choices that the ring has no levels for, and for parameters that do not go together: degree,
    /// security, what keys are taken to be, and primes of each level up to the output level must be the same.
    pub fn new(params: &Params<S>, inside: &ckks::Params, literal: BootstrapLiteral) -> Result<Self> {
        let refresh = literal.refresh(inside)?;
        let (own, ring) = (params.rlwe(), inside.rlwe());
        let differ = |what: &str, a: String, b: String| {
            Error::params(format!(
                "the {} parameters and those of the CKKS ring differ in {what}: {a} and {b}",
                S::NAME
            ))
        };
        if own.n() != ring.n() {
            return Err(differ("degree", own.n().to_string(), ring.n().to_string()));
        }
        let [a, b] = [own, ring].map(|params| format!("{:?}", params.literal().security));
        if a != b {
            return Err(differ("security", a, b));
        }
        if own.key_origin() != ring.key_origin() {
            return Err(differ("keys", format!("{:?}", own.key_origin()), format!("{:?}", ring.key_origin())));
        }
        if own.second().is_some() {
            return Err(Error::params("bootstrapping and a second secret key for lower levels do not go together"));
        }
        let (top, output) = (params.top_level(), refresh.output_level());
        if top != output {
            return Err(differ("levels", format!("{top} for the user"), format!("an output level of {output}")));
        }
        for level in 0..=top {
            let primes = |params: &synchromesh_rlwe::Params| -> Result<Vec<(usize, u64)>> {
                Ok(params.level(level)?.iter().map(|i| (i, params.ring().modulus(i).value())).collect())
            };
            let (a, b) = (primes(own)?, primes(ring)?);
            if a != b {
                return Err(differ(&format!("the primes of level {level}"), format!("{a:?}"), format!("{b:?}")));
            }
        }
        Ok(Self { literal, params: params.clone(), inside: refresh })
    }

    /// The parameters it is for.
    #[must_use]
    pub const fn params(&self) -> &Params<S> {
        &self.params
    }

    /// The parameters of the CKKS ring that refreshes run in.
    #[must_use]
    pub const fn inside(&self) -> &ckks::Params {
        self.inside.params()
    }

    /// The choices.
    #[must_use]
    pub const fn literal(&self) -> &BootstrapLiteral {
        &self.literal
    }

    /// A noise budget, in bits, with which a ciphertext of the top level can surely be refreshed: about r.
    ///
    /// # Errors
    /// None at parameters that [`Self::new`] has taken.
    pub fn least_budget(&self) -> Result<f64> {
        let (params, top) = (&self.params, self.params.top_level());
        let whole = params.log2_modulus(top)? - log2_biguint(params.t().value());
        Ok(f64::from(self.literal.ratio_bits) - (whole - S::room(params, top)?) + TAILS)
    }

    /// The keys of refreshes, of the CKKS ring, under the secret key of S. Products and rotations of S have keys of their own.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`], [`synchromesh_rlwe::Error::Entropy`] without randomness, or when the device
    /// fails.
    pub fn generate_keys<B: Backend>(
        &self,
        inside: &ckks::Context<B>,
        secret: &SecretKey<B>,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        secret.require_params(self.params.rlwe())?;
        let secret = SecretKey::from_small(inside.rlwe(), secret.id(), secret.small().clone())?;
        self.inside.generate_keys(inside, &secret, &Rotations::none(), randomness)
    }
}

/// Refreshes ciphertexts of S; one may serve many threads.
pub struct Bootstrapper<S: Scheme, B: Backend = Cpu> {
    context: Arc<Context<S, B>>,
    bootstrap: Bootstrap<S>,
    inside: ckks::bootstrap::Bootstrapper<B>,
}

impl<S: Scheme, B: Backend> Bootstrapper<S, B> {
    /// Prepares all public vectors; they stay in memory.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`] for contexts or keys of other parameters, [`Error::MissingRotations`] or
    /// [`synchromesh_rlwe::Error::MissingKey`] for keys that lack some, or when the device fails.
    pub fn new(
        context: &Arc<Context<S, B>>,
        inside: &Arc<ckks::Context<B>>,
        bootstrap: Bootstrap<S>,
        keys: Arc<EvaluationKeys<B>>,
    ) -> Result<Self> {
        context.params().rlwe().require_digest(bootstrap.params.rlwe().digest())?;
        let inside = ckks::bootstrap::Bootstrapper::new(inside, bootstrap.inside.clone(), keys)?;
        Ok(Self { context: Arc::clone(context), bootstrap, inside })
    }

    /// What it does.
    #[must_use]
    pub const fn bootstrap(&self) -> &Bootstrap<S> {
        &self.bootstrap
    }

    /// Bytes of the public vectors that are kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inside.bytes()
    }

    /// The same message at the top level, with a noise budget of [`BootstrapLiteral::budget_bits`] at the least.
    ///
    /// # Errors
    /// [`Error::RefreshBudget`] for a ciphertext with too much noise, [`Error::RefreshStalls`] where passes do not reach the
    /// budget, [`synchromesh_rlwe::Error::ParamsDiffer`], [`synchromesh_rlwe::Error::Components`] unless there are two,
    /// [`synchromesh_rlwe::Error::KeysDiffer`] for another secret key, [`synchromesh_rlwe::Error::UnknownNoise`] without a
    /// certificate, [`synchromesh_rlwe::Error::MissingKey`], or when the device fails.
    pub fn refresh(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.refresh_watched(x, |_| ())
    }

    /// As [`Self::refresh`]; `done` is shown what each pass makes.
    ///
    /// # Errors
    /// As [`Self::refresh`].
    pub fn refresh_watched(
        &self,
        x: &Ciphertext<S, B>,
        done: impl FnMut(&Ciphertext<S, B>),
    ) -> Result<Ciphertext<S, B>> {
        self.refresh_to(x, self.bootstrap.literal.budget_bits, done)
    }

    /// As [`Self::refresh_watched`], to another noise budget.
    pub(crate) fn refresh_to(
        &self,
        x: &Ciphertext<S, B>,
        wanted: u32,
        mut done: impl FnMut(&Ciphertext<S, B>),
    ) -> Result<Ciphertext<S, B>> {
        let context = &self.context;
        let mut budget = context.noise_budget(x)?;
        x.inner().require_components(2)?;
        let keys = self.inside.evaluator().switching("bootstrapping")?.keys();
        keys.target().require(x.inner().key())?;
        // Who watches is told as it begins and as it ends.
        x.told(context, Operation::Refresh)?;
        let mut made = None;
        loop {
            let from = made.as_ref().unwrap_or(x);
            if from.level() == self.bootstrap.params.top_level() && budget >= f64::from(wanted) {
                let made = made.map_or_else(|| x.duplicate(context), Ok)?;
                made.told(context, Operation::Refresh)?;
                return Ok(made);
            }
            let pass = Pass::of(&self.bootstrap, from)?;
            let next = pass.run(context, &self.inside, from)?.certified(context, Operation::Sum)?;
            done(&next);
            let reached = context.noise_budget(&next)?;
            if made.is_some() && reached < budget + LEAST_GAIN {
                return Err(Error::RefreshStalls { reached, wanted });
            }
            (made, budget) = (Some(next), reached);
        }
    }
}
