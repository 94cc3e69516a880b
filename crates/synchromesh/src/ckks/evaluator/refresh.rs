//! Refreshes that an evaluator makes: on demand, and by itself where a circuit would run out of levels.
//!
//! An operation that takes levels refreshes an operand that has too few above the lowest one that can be refreshed; whole
//! polynomials and maps look ahead, so that no value is refreshed in their middle that need not be. A plan names values
//! that are refreshed as soon as something takes them, by their [`Lineage`]; where it knows of none it is as without it.
//! What was refreshed is kept beside the ciphertext, for the other operations that take it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::{EvaluationKeys, Operation, Randomness, SecretKey};

use super::Evaluator;
use super::recording::{Event, Recorder};
use crate::ckks::bootstrap::{Bootstrap, Bootstrapper};
use crate::ckks::ciphertext::Ciphertext;
use crate::ckks::lineage::Lineage;
use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// How an evaluator refreshes; its public vectors are made when they are needed first.
pub(crate) struct Refresher<B: Backend> {
    bootstrap: Bootstrap,
    /// Values that are refreshed before they are used.
    placed: Arc<HashSet<Lineage>>,
    recorder: Option<Arc<Recorder>>,
    made: Mutex<Option<Arc<Bootstrapper<B>>>>,
}

impl<B: Backend> Refresher<B> {
    fn new(bootstrap: Bootstrap) -> Self {
        Self { bootstrap, placed: Arc::default(), recorder: None, made: Mutex::default() }
    }

    /// The same for other keys.
    pub(super) fn with_keys(&self) -> Arc<Self> {
        let Self { bootstrap, placed, recorder, .. } = self;
        let (bootstrap, placed, recorder) = (bootstrap.clone(), Arc::clone(placed), recorder.clone());
        Arc::new(Self { bootstrap, placed, recorder, made: Mutex::default() })
    }
}

impl<B: Backend> Evaluator<B> {
    /// The same evaluator, which can refresh, and does so by itself where a level is missing.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::ParamsDiffer`] for bootstrapping at other parameters.
    pub fn with_bootstrap(self, bootstrap: Bootstrap) -> Result<Self> {
        self.context.params().rlwe().require_digest(bootstrap.params().rlwe().digest())?;
        Ok(Self { refresher: Some(Arc::new(Refresher::new(bootstrap))), ..self })
    }

    /// The same evaluator, which refreshes these values before it uses them; nothing without [`Self::with_bootstrap`].
    #[must_use]
    pub fn with_refreshes(self, values: impl IntoIterator<Item = Lineage>) -> Self {
        let placed = Arc::new(values.into_iter().collect());
        let refresher = self.refresher.as_ref().map(|old| {
            let Refresher { bootstrap, recorder, .. } = &**old;
            Arc::new(Refresher { placed, recorder: recorder.clone(), ..Refresher::new(bootstrap.clone()) })
        });
        Self { refresher, ..self }
    }

    /// The same evaluator, whose recorder is told what becomes of levels. A value that is too large to be refreshed is
    /// taken for refreshed and told: this is for runs without data.
    pub(crate) fn with_recorder(self, recorder: &Arc<Recorder>) -> Self {
        let refresher = self.refresher.as_ref().map(|old| {
            let (bootstrap, placed) = (old.bootstrap.clone(), Arc::clone(&old.placed));
            let recorder = Some(Arc::clone(recorder));
            Arc::new(Refresher { placed, recorder, ..Refresher::new(bootstrap) })
        });
        Self { refresher, ..self }
    }

    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.refresher.as_ref().and_then(|refresher| refresher.recorder.as_deref())
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
        let made = self.bootstrapper()?.refresh(x)?;
        let from = [x.parent()];
        let made = made.with_lineage(Lineage::of(Operation::Refresh, &from));
        self.record(Operation::Refresh, &from, &made)?;
        Ok(made)
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

    /// x; refreshed where it is below `level` and a refresh would help, or where a plan says so, and brought down to where
    /// keys begin where it is above.
    pub(super) fn renew<'x>(&self, x: &'x Ciphertext<B>, level: usize) -> Result<&'x Ciphertext<B>> {
        let Some(refresher) = &self.refresher else { return Ok(x) };
        let highest = refresher.bootstrap.output_level();
        let level = level.min(highest);
        if let (Some(recorder), true) = (&refresher.recorder, level > 0) {
            recorder.push(Event::Needs { value: x.parent(), level });
        }
        if (level..=highest).contains(&x.level()) && !refresher.places(x) {
            return Ok(x);
        }
        x.renewed_by(|| if x.level() > highest { self.brought_to(x, highest) } else { self.renewal(x) })
    }

    /// x as operations that copy it take it: refreshed where a plan says so.
    pub(super) fn placed(&self, x: Ciphertext<B>) -> Result<Ciphertext<B>> {
        if !self.refresher.as_ref().is_some_and(|refresher| refresher.places(&x)) {
            return Ok(x);
        }
        self.renew(&x, 0)?;
        x.into_renewed().ok_or(Error::NoBootstrap)
    }

    /// x refreshed, in its place.
    fn renewal(&self, x: &Ciphertext<B>) -> Result<Ciphertext<B>> {
        let bootstrapper = self.bootstrapper()?;
        let made = match (self.recorder(), bootstrapper.refresh(x)) {
            (Some(recorder), Err(Error::MessageBound { most, .. })) => {
                recorder.push(Event::TooLarge(x.parent()));
                let (inner, header) = x.duplicate(&self.context)?.into_parts();
                let small = Ciphertext::checked(&self.context, Operation::Copy, inner, header.scale, most)?;
                let (inner, small) = bootstrapper.refresh(&small)?.into_parts();
                Ciphertext::checked(&self.context, Operation::Copy, inner, small.scale, header.bound)?
            }
            (recorder, made) => {
                if let (Some(recorder), Ok(_)) = (recorder, &made) {
                    recorder.push(Event::Refreshed);
                }
                made?
            }
        };
        // Where the message was 0 it still is, but for the error.
        let beside = x.beside().map(|beside| beside.with(made.inner().noise()));
        Ok(made.refreshed_from(x).with_beside(beside))
    }
}

impl<B: Backend> Refresher<B> {
    /// Whether x is one of the values to refresh, and can be. One that cannot be is left as it is, since a refresh is never
    /// more than a means to levels.
    fn places(&self, x: &Ciphertext<B>) -> bool {
        let levels = self.bootstrap.input_level()..self.bootstrap.output_level();
        !x.is_refreshed()
            && self.placed.contains(&x.lineage())
            && levels.contains(&x.level())
            && x.bound() <= self.bootstrap.literal().message_bound
    }
}
