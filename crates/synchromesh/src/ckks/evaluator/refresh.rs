//! Refreshes that an evaluator makes: on demand, and by itself where a circuit would run out of levels.
//!
//! An operation that takes levels refreshes an operand that has too few above the lowest one that can be refreshed; whole
//! polynomials and maps look ahead, so that no value is refreshed in their middle that need not be. What was refreshed is
//! kept beside the ciphertext, for the other operations that take it.

use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{EvaluationKeys, Randomness, SecretKey};

use super::Evaluator;
use crate::ckks::bootstrap::{Bootstrap, Bootstrapper};
use crate::ckks::ciphertext::Ciphertext;
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// How an evaluator refreshes; its public vectors are made when they are needed first.
pub(crate) struct Refresher<B: Backend> {
    bootstrap: Bootstrap,
    made: Mutex<Option<Arc<Bootstrapper<B>>>>,
}

impl<B: Backend> Refresher<B> {
    pub(super) fn new(bootstrap: Bootstrap) -> Arc<Self> {
        Arc::new(Self { bootstrap, made: Mutex::default() })
    }
}

impl<B: Backend> Evaluator<B> {
    /// The same evaluator, which can refresh, and does so by itself where a level is missing.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`] for bootstrapping at other parameters.
    pub fn with_bootstrap(self, bootstrap: Bootstrap) -> Result<Self> {
        self.context.params().rlwe().require_digest(bootstrap.params().rlwe().digest())?;
        Ok(Self { refresher: Some(Refresher::new(bootstrap)), ..self })
    }

    /// How it refreshes, if it does.
    #[must_use]
    pub fn bootstrap(&self) -> Option<&Bootstrap> {
        self.refresher.as_ref().map(|refresher| &refresher.bootstrap)
    }

    /// The highest level that messages are encrypted at: that of a refreshed one, where it refreshes.
    #[must_use]
    pub fn top_level(&self) -> usize {
        self.bootstrap().map_or_else(|| self.context.params().top_level(), Bootstrap::output_level)
    }

    /// The keys that it takes for multiplication, these rotations, and refreshes where it makes them.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`], [`synchromesh_rlwe::Error::Entropy`] without randomness, or when the device
    /// fails.
    pub fn generate_keys(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        match self.bootstrap() {
            Some(bootstrap) => bootstrap.generate_keys(&self.context, secret, rotations, randomness),
            None => self.context.generate_evaluation_keys(secret, rotations, randomness),
        }
    }

    /// The same message at the highest level that a refresh leaves.
    ///
    /// # Errors
    /// [`Error::NoBootstrap`] for an evaluator without [`Self::with_bootstrap`], [`Error::NoKeys`], or as
    /// [`Bootstrapper::refresh`].
    pub fn refresh(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        self.bootstrapper()?.refresh(x)
    }

    fn bootstrapper(&self) -> Result<Arc<Bootstrapper<B>>> {
        let refresher = self.refresher.as_ref().ok_or(Error::NoBootstrap)?;
        let mut made = refresher.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*made {
            return Ok(Arc::clone(made));
        }
        let keys = Arc::clone(self.switching("bootstrapping")?.keys());
        let new = Arc::new(Bootstrapper::new(&self.context, refresher.bootstrap.clone(), keys)?);
        *made = Some(Arc::clone(&new));
        Ok(new)
    }

    /// The lowest level of results: that of ciphertexts that can be refreshed.
    pub(super) fn lowest(&self) -> usize {
        self.bootstrap().map_or(0, Bootstrap::input_level)
    }

    /// x; refreshed where it is below `level` and a refresh would help, and brought down to where keys begin where it is
    /// above.
    pub(super) fn renew<'x>(&self, x: &'x Ciphertext<B>, level: usize) -> Result<&'x Ciphertext<B>> {
        let Some(bootstrap) = self.bootstrap() else { return Ok(x) };
        let highest = bootstrap.output_level();
        if (level.min(highest)..=highest).contains(&x.level()) {
            return Ok(x);
        }
        x.renewed_by(|| if x.level() > highest { self.mod_switch_to(x, highest) } else { self.refresh(x) })
    }
}
