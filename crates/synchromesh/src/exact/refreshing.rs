//! Refreshes that an evaluator makes: on demand, and by itself before an operation that would leave too little room for one.
//!
//! Whether an operation needs one is found by carrying it out. Where its result would not decrypt, or could not be refreshed
//! any more, the operand with the smallest noise budget is refreshed, and it is carried out again: a refresh takes as long as
//! some hundred products. What was refreshed is kept beside the ciphertext, for the other operations that take it.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_rlwe as rlwe;
use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{EvaluationKeys, Randomness, SecretKey};

use super::bootstrap::{Bootstrap, Bootstrapper};
use super::{Ciphertext, Evaluator, Rotations, Scheme};
use crate::ckks;
use crate::error::{Error, Result};

/// How an evaluator refreshes; its public vectors are made when they are needed first.
pub(crate) struct Refresher<S: Scheme, B: Backend> {
    bootstrap: Bootstrap<S>,
    inside: Arc<ckks::Context<B>>,
    made: Mutex<Option<Arc<Bootstrapper<S, B>>>>,
}

impl<S: Scheme, B: Backend> Refresher<S, B> {
    /// The same for other keys.
    pub(super) fn with_keys(&self) -> Arc<Self> {
        let (bootstrap, inside) = (self.bootstrap.clone(), Arc::clone(&self.inside));
        Arc::new(Self { bootstrap, inside, made: Mutex::default() })
    }
}

impl<S: Scheme, B: Backend> Evaluator<S, B> {
    /// The same evaluator, which can refresh, and does so by itself where room for noise is missing. `inside` is a context of
    /// the CKKS ring that refreshes run in, on the same device.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`] for bootstrapping at other parameters, or for another ring.
    pub fn with_bootstrap(self, bootstrap: Bootstrap<S>, inside: &Arc<ckks::Context<B>>) -> Result<Self> {
        self.context().params().rlwe().require_digest(bootstrap.params().rlwe().digest())?;
        bootstrap.inside().rlwe().require_digest(inside.params().rlwe().digest())?;
        let refresher = Refresher { bootstrap, inside: Arc::clone(inside), made: Mutex::default() };
        Ok(Self { refresher: Some(Arc::new(refresher)), ..self })
    }

    /// How it refreshes, if it does.
    #[must_use]
    pub fn bootstrap(&self) -> Option<&Bootstrap<S>> {
        self.refresher.as_ref().map(|refresher| &refresher.bootstrap)
    }

    /// The keys that it takes for multiplication, these rotations, and refreshes where it makes them.
    ///
    /// # Errors
    /// [`rlwe::Error::ParamsDiffer`], [`rlwe::Error::Entropy`] without randomness, rotations where t has no slots, or when the
    /// device fails.
    pub fn generate_keys(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let mut keys = self.context().generate_evaluation_keys(secret, rotations, randomness)?;
        if let Some(refresher) = &self.refresher {
            let larger = refresher.bootstrap.generate_keys(&refresher.inside, secret, randomness)?;
            keys.set_inside(refresher.inside.params().rlwe(), Arc::new(larger))?;
        }
        Ok(keys)
    }

    /// The same message at the top level, with the noise budget that was planned for at the least.
    ///
    /// # Errors
    /// [`Error::NoBootstrap`] for an evaluator without [`Self::with_bootstrap`], [`Error::NoKeys`],
    /// [`rlwe::Error::MissingKey`] for keys without those of refreshes, or as [`Bootstrapper::refresh`].
    pub fn refresh(&self, x: &Ciphertext<S, B>) -> Result<Ciphertext<S, B>> {
        self.require(x)?;
        self.bootstrapper()?.refresh(x)
    }

    fn bootstrapper(&self) -> Result<Arc<Bootstrapper<S, B>>> {
        let refresher = self.refresher.as_ref().ok_or(Error::NoBootstrap)?;
        let mut made = refresher.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*made {
            return Ok(Arc::clone(made));
        }
        let missing = || rlwe::Error::MissingKey { source_name: "refreshes".to_owned(), have: "none".to_owned() };
        let keys = Arc::clone(self.switching("bootstrapping")?.keys().inside().ok_or_else(missing)?);
        let new = Bootstrapper::new(self.context(), &refresher.inside, refresher.bootstrap.clone(), keys)?;
        let new = Arc::new(new);
        *made = Some(Arc::clone(&new));
        Ok(new)
    }

    /// What `run` makes of the operands; where that leaves too little room, of operands of which some are refreshed.
    pub(super) fn with_room_for<'x>(
        &self,
        operands: &[&'x Ciphertext<S, B>],
        run: impl Fn(&[&'x Ciphertext<S, B>]) -> Result<Ciphertext<S, B>>,
    ) -> Result<Ciphertext<S, B>> {
        let made = run(operands);
        let Some(refresher) = &self.refresher else { return made };
        let least = refresher.bootstrap.least_budget()?;
        let (mut made, mut operands) = (made, operands.to_vec());
        while self.lacks_room(&made, least)? {
            let Some(worn) = self.most_worn(&operands, &refresher.bootstrap, least)? else { break };
            let renewed = worn.renewed_by(|| self.refresh(worn))?;
            operands.iter_mut().filter(|x| ptr::eq(**x, worn)).for_each(|x| *x = renewed);
            made = run(&operands);
        }
        made
    }

    /// Whether a result cannot be refreshed, or was refused for its noise.
    fn lacks_room(&self, made: &Result<Ciphertext<S, B>>, least: f64) -> Result<bool> {
        match made {
            Ok(made) => Ok(self.context().noise_budget(made)? < least),
            Err(Error::Rlwe(rlwe::Error::Noise { .. } | rlwe::Error::Level { .. })) => Ok(true),
            Err(_) => Ok(false),
        }
    }

    /// Of those that can be refreshed and gain by it, the one with the smallest noise budget.
    fn most_worn<'x>(
        &self,
        operands: &[&'x Ciphertext<S, B>],
        bootstrap: &Bootstrap<S>,
        least: f64,
    ) -> Result<Option<&'x Ciphertext<S, B>>> {
        let (top, planned) = (bootstrap.params().top_level(), f64::from(bootstrap.literal().budget_bits));
        let mut worst: Option<(f64, &Ciphertext<S, B>)> = None;
        for &x in operands {
            let budget = self.context().noise_budget(x)?;
            let gains = x.components() == 2 && budget >= least && (x.level() < top || budget < planned);
            if gains && worst.is_none_or(|(least, _)| budget < least) {
                worst = Some((budget, x));
            }
        }
        Ok(worst.map(|(_, x)| x))
    }
}
