//! A session: a scheme at a plan on a device, with the keys it was given; from a plan in one line.
//!
//! [`Session`] knows its scheme by type, so that mixing schemes does not compile: [`Plan::open`]. [`AnySession`] is one of
//! which the scheme is known at run time: [`Plan::open_any`]. Both make the keys that the plan names, trimmed as it says,
//! and compose rotations by its routes.

mod any;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use synchromesh_rlwe::ring::backend::Open;
use synchromesh_rlwe::ring::{Backend, Cpu, Ring};
use synchromesh_rlwe::{self as rlwe, EvaluationKeys, KeyId, KeyPart, PublicKey, Randomness, SecretKey, Source};

pub use self::any::{AnySession, Engine, Erased};
use crate::bfv::Bfv;
use crate::bgv::Bgv;
use crate::ckks::Ckks;
use crate::error::{Error, Result};
use crate::plan::key_bytes::trim;
use crate::plan::{Plan, SchemeName};
use crate::rotations::{Rotations, Routes};
use crate::scheme::{Encryptor, Scheme, Values};

/// A scheme at a plan on a device.
pub struct Session<S: Scheme, B: Backend = Cpu> {
    /// Without keys.
    plain: Arc<S::Evaluator<B>>,
    /// For each secret key whose evaluation keys it was given.
    keyed: RwLock<HashMap<KeyId, Arc<S::Evaluator<B>>>>,
    routes: Option<Arc<Routes>>,
    /// Those that the plan has keys for.
    rotations: Rotations,
    /// What keys for rotations hold, where they are not whole.
    trimmed: Option<KeyPart>,
}

impl<S: Scheme, B: Backend> Session<S, B> {
    /// A session with an evaluator of the caller's, for parameters that no plan made: its keys are whole, one for each
    /// rotation.
    #[must_use]
    pub fn new(evaluator: S::Evaluator<B>) -> Self {
        let (keyed, rotations) = (RwLock::default(), Rotations::none());
        Self { plain: Arc::new(evaluator), keyed, routes: None, rotations, trimmed: None }
    }

    fn of(plan: &Plan, device: &dyn Fn(&Arc<Ring>) -> Result<B>) -> Result<Self> {
        let routes = plan.routes.clone().map(Arc::new);
        let plain = S::open_plan(plan, S::params(plan)?, device)?;
        let rotations = Rotations { swap: plan.swap, ..Rotations::by(plan.rotation_keys().iter().copied()) };
        Ok(Self { routes, rotations, trimmed: plan.trimmed()?, ..Self::new(plain) })
    }

    /// Encodes, encrypts and decrypts; says what a certificate means.
    pub fn context(&self) -> &Arc<S::Context<B>> {
        S::context(&self.plain)
    }

    /// The context of the layer below, where keys live.
    pub fn rlwe(&self) -> &Arc<rlwe::Context<B>> {
        S::rlwe(self.context())
    }

    /// Computes with these keys, rotations composed as the plan says.
    pub fn evaluator(&self, keys: EvaluationKeys<B>) -> S::Evaluator<B> {
        S::with_keys(&self.plain, Arc::new(keys))
    }

    /// Computes what takes no keys.
    pub fn keyless(&self) -> &S::Evaluator<B> {
        &self.plain
    }

    /// The rotations that the plan has keys for.
    pub const fn rotations(&self) -> &Rotations {
        &self.rotations
    }

    /// A new secret key and its public key.
    ///
    /// # Errors
    /// [`rlwe::Error::Entropy`] without randomness, or when the device fails.
    pub fn generate_keys(&self, randomness: &mut Randomness) -> Result<(SecretKey<B>, PublicKey<B>)> {
        let secret = SecretKey::generate(self.rlwe(), randomness)?;
        let public = PublicKey::generate(self.rlwe(), &secret, randomness)?;
        Ok((secret, public))
    }

    /// The keys that the plan's circuit takes: for products, and for its rotations.
    ///
    /// # Errors
    /// As [`Self::generate_keys_for`].
    pub fn generate_evaluation_keys(
        &self,
        secret: &SecretKey<B>,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        self.generate_keys_for(secret, &self.rotations, randomness)
    }

    /// Keys for products and for other rotations than the plan's; those that the plan composes are made of its keys.
    ///
    /// # Errors
    /// [`Error::TooManyRotations`] for more than there are; rotations where there are no slots; or as
    /// [`Self::generate_keys`].
    pub fn generate_keys_for(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let expanded = self.routes.as_ref().map(|routes| routes.expand(rotations));
        let rotations = expanded.as_ref().unwrap_or(rotations);
        let (count, most) = (rotations.by.len(), 2 * self.rlwe().params().n());
        if count > most {
            return Err(Error::TooManyRotations { count, most });
        }
        let keys = S::generate_all_keys(&self.plain, secret, rotations, randomness)?;
        trim(self.rlwe(), self.trimmed.as_ref(), keys)
    }

    /// Keys that bring what is encrypted under `from` under `secret`: for a holder of both, to leave an old key. Whoever holds
    /// them can do that with every ciphertext under `from`. They are an encryption of `from` under `secret`: who knows
    /// `secret` learns `from` from them.
    ///
    /// # Errors
    /// As [`Self::generate_keys`].
    pub fn generate_rekeying(
        &self,
        secret: &SecretKey<B>,
        from: &SecretKey<B>,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        let plan = S::switch_plan(self.context());
        Ok(EvaluationKeys::rekeying(self.rlwe(), secret, from, plan, randomness)?)
    }

    /// The keys that the plan's circuit takes, for parties who make them together: of each the part that there will be.
    ///
    /// # Errors
    /// Rotations where there are no slots, or a shape that the parameters do not have.
    pub fn key_parts(&self) -> Result<Vec<(Source, KeyPart)>> {
        let whole = KeyPart::whole(self.rlwe().params(), S::switch_plan(self.context()).shape())?;
        let trimmed = self.trimmed.as_ref().unwrap_or(&whole);
        let rotations = S::galois_elements(self.context(), &self.rotations)?.into_iter();
        let rotations = rotations.map(|g| (Source::Galois(g), trimmed.clone()));
        Ok(std::iter::once((Source::Square, whole.clone())).chain(rotations).collect())
    }

    /// Encrypts at the highest level that computations begin at; in CKKS, numbers of absolute value at most 1.
    ///
    /// # Errors
    /// As [`Scheme::encrypt`], which takes other levels and bounds.
    pub fn encrypt(
        &self,
        key: &PublicKey<B>,
        values: impl Into<Values>,
        randomness: &mut Randomness,
    ) -> Result<S::Ciphertext<B>> {
        let (by, top) = (Encryptor::Public(key), S::top_level(&self.plain));
        S::encrypt(self.context(), &by, &values.into(), 1.0, top, randomness)
    }

    /// All slots; see [`Scheme::decrypt`].
    ///
    /// # Errors
    /// As [`Scheme::decrypt`].
    pub fn decrypt(&self, secret: &SecretKey<B>, x: &S::Ciphertext<B>) -> Result<Values> {
        S::decrypt(self.context(), secret, x)
    }

    /// The evaluator with the keys that a ciphertext needs, or without keys.
    pub fn evaluator_of(&self, x: &S::Ciphertext<B>) -> Arc<S::Evaluator<B>> {
        let held = self.keyed.read().unwrap_or_else(PoisonError::into_inner).get(&S::key(x)).cloned();
        held.unwrap_or_else(|| Arc::clone(&self.plain))
    }
}

impl Plan {
    /// A session of the scheme S on this machine's CPU.
    ///
    /// # Errors
    /// [`Error::Argument`] for a plan of another scheme, or parameters that fail their checks.
    pub fn open<S: Scheme>(&self) -> Result<Session<S>> {
        self.open_on(<Cpu as Open>::open)
    }

    /// A session of the scheme S on a device that `device` opens for its ring, and for that of refreshes where they have one.
    ///
    /// # Errors
    /// As [`Self::open`], and those of `device`.
    pub fn open_on<S: Scheme, B: Backend, E: Into<Error>>(
        &self,
        device: impl Fn(&Arc<Ring>) -> std::result::Result<B, E>,
    ) -> Result<Session<S, B>> {
        Session::of(self, &|ring| device(ring).map_err(Into::into))
    }

    /// A session of the plan's scheme on this machine's CPU.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_any(&self) -> Result<Arc<dyn AnySession>> {
        self.open_any_on(<Cpu as Open>::open)
    }

    /// A session of the plan's scheme on a device that `device` opens for its ring.
    ///
    /// # Errors
    /// As [`Self::open_on`].
    pub fn open_any_on<B: Backend, E: Into<Error>>(
        &self,
        device: impl Fn(&Arc<Ring>) -> std::result::Result<B, E>,
    ) -> Result<Arc<dyn AnySession<B>>> {
        Ok(match self.scheme {
            SchemeName::Bfv => Arc::new(self.open_on::<Bfv, B, E>(device)?),
            SchemeName::Bgv => Arc::new(self.open_on::<Bgv, B, E>(device)?),
            SchemeName::Ckks => Arc::new(self.open_on::<Ckks, B, E>(device)?),
        })
    }
}
