//! Sessions and ciphertexts whose scheme is known at run time.

use std::any::Any;
use std::sync::{Arc, PoisonError};

use synchromesh_rlwe::codec::Trust;
use synchromesh_rlwe::ring::{Backend, Cpu, Threads};
use synchromesh_rlwe::{self as rlwe, EvaluationKeys, KeyId, Randomness, SecretKey};

use super::Session;
use crate::circuits::{Arithmetic, Cost, MatrixChoices, MatrixPlan, PreparedTransform, SlotShape};
use crate::ckks::{Published, Release};
use crate::error::{Error, Result};
use crate::rotations::Rotations;
use crate::scheme::{self, Encryptor, Entries, Operation, Scheme, State, Values};

/// A ciphertext, or a prepared linear map, of some scheme on some device.
pub struct Erased(Box<dyn Any + Send + Sync>);

impl Erased {
    /// What is inside, without its type.
    #[must_use]
    pub fn new<T: Any + Send + Sync>(value: T) -> Self {
        Self(Box::new(value))
    }

    /// What is inside.
    ///
    /// # Errors
    /// [`Error::OtherScheme`] for an object of another type.
    pub fn get<T: Any>(&self) -> Result<&T> {
        self.0.downcast_ref().ok_or(Error::OtherScheme)
    }
}

/// Computes on ciphertexts of one scheme on one device, each with the evaluation keys of its secret key.
///
/// Every operation fails with [`Error::OtherScheme`] for an object of another session's scheme or device.
pub trait Engine: Send + Sync {
    /// How slots are laid out.
    ///
    /// # Errors
    /// [`crate::batch::BatchError::NoSlots`] where t has none.
    fn slots(&self) -> Result<SlotShape>;

    /// The highest level that messages are encrypted at.
    fn top_level(&self) -> usize;

    /// The threads on which whole operations may be asked for side by side.
    fn threads(&self) -> Threads;

    /// What products cost.
    fn cost(&self) -> Cost;

    /// Fails unless slots hold these numbers as they are.
    ///
    /// # Errors
    /// As [`Scheme::numbers`] and [`Scheme::require_held`].
    fn require_held(&self, values: &Values) -> Result<()>;

    /// The result of an operation on the ciphertexts `x`.
    ///
    /// # Errors
    /// As [`scheme::apply`].
    fn apply(&self, operation: &Operation<'_>, x: &[&Erased]) -> Result<Erased>;

    /// A linear map with these entries, for ciphertexts like `x`.
    ///
    /// # Errors
    /// As [`scheme::linear_map`] and [`prepare`](crate::circuits::LinearTransform::prepare).
    fn prepare(&self, x: &Erased, entries: &Entries) -> Result<Erased>;

    /// The image of a ciphertext under the linear map with these entries, which is encoded as it is needed and not kept.
    ///
    /// # Errors
    /// As [`scheme::linear_map`] and [`apply`](crate::circuits::LinearTransform::apply).
    fn linear(&self, entries: Entries, x: &Erased) -> Result<Erased>;

    /// The image of a ciphertext under a map that was prepared for its level.
    ///
    /// # Errors
    /// As [`PreparedTransform::apply`].
    fn map(&self, map: &Erased, x: &Erased) -> Result<Erased>;

    /// The ciphertexts of a product of matrices.
    ///
    /// # Errors
    /// As [`MatrixPlan::multiply`].
    fn multiply(
        &self,
        plan: &MatrixPlan,
        choices: &MatrixChoices,
        left: &[&Erased],
        right: &[&Erased],
    ) -> Result<Vec<Erased>>;

    /// Where a ciphertext stands.
    ///
    /// # Errors
    /// As [`Scheme::state`].
    fn state(&self, x: &Erased) -> Result<State>;

    /// The ciphertext as a container, for a file that is authenticated as a whole or not at all.
    ///
    /// # Errors
    /// As [`Scheme::write`].
    fn write(&self, x: &Erased) -> Result<Vec<u8>>;

    /// The ciphertext in a container, under the secret key `key` if one is named; its certificate is believed as far as
    /// `trust` gives a reason.
    ///
    /// # Errors
    /// As [`Scheme::read`].
    fn read(&self, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Erased>;
}

/// A session of some scheme, with its keys; what [`Session`] says of its methods holds here.
pub trait AnySession<B: Backend = Cpu>: Engine {
    /// The context of the layer below, where keys live.
    fn rlwe(&self) -> &Arc<rlwe::Context<B>>;

    /// The rotations that the plan has keys for.
    fn rotations(&self) -> &Rotations;

    /// A new secret key and its public key.
    ///
    /// # Errors
    /// As [`Session::generate_keys`].
    fn generate_keys(&self, randomness: &mut Randomness) -> Result<(SecretKey<B>, rlwe::PublicKey<B>)>;

    /// Keys for products and these rotations.
    ///
    /// # Errors
    /// As [`Session::generate_keys_for`].
    fn generate_keys_for(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>>;

    /// Keys that bring what is encrypted under `from` under `secret`.
    ///
    /// # Errors
    /// As [`Session::generate_rekeying`].
    fn generate_rekeying(
        &self,
        secret: &SecretKey<B>,
        from: &SecretKey<B>,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>>;

    /// The ciphertext under the secret key of these keys.
    ///
    /// # Errors
    /// As [`Scheme::rekey`].
    fn rekey(&self, keys: &Arc<EvaluationKeys<B>>, x: &Erased) -> Result<Erased>;

    /// Computes with these keys on ciphertexts under their secret key, from now on.
    fn add_keys(&self, keys: &Arc<EvaluationKeys<B>>);

    /// Encrypts numbers, none larger than `bound`, at a level.
    ///
    /// # Errors
    /// As [`Scheme::encrypt`].
    fn encrypt(
        &self,
        by: &Encryptor<'_, B>,
        values: &Values,
        bound: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Erased>;

    /// A ciphertext of another session of the same scheme and parameters, on this one's device.
    ///
    /// # Errors
    /// As [`Scheme::transfer`], [`Error::OtherScheme`].
    fn bring(&self, from: &Arc<dyn AnySession<B>>, x: &Erased) -> Result<Erased>;

    /// All slots.
    ///
    /// # Errors
    /// As [`Scheme::decrypt`].
    fn decrypt(&self, secret: &SecretKey<B>, x: &Erased) -> Result<Values>;

    /// All slots for others to see.
    ///
    /// # Errors
    /// As [`Scheme::publish`].
    fn publish(&self, secret: &SecretKey<B>, x: &Erased, release: &Release) -> Result<Published>;

    /// The session itself, for what one scheme alone does.
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

fn all<'a, T: Any>(list: &[&'a Erased]) -> Result<Vec<&'a T>> {
    list.iter().map(|x| x.get()).collect()
}

impl<S: Scheme, B: Backend> Engine for Session<S, B> {
    fn slots(&self) -> Result<SlotShape> {
        self.plain.slots()
    }

    fn top_level(&self) -> usize {
        S::top_level(&self.plain)
    }

    fn threads(&self) -> Threads {
        self.rlwe().backend().threads()
    }

    fn cost(&self) -> Cost {
        S::Evaluator::<B>::COST
    }

    fn require_held(&self, values: &Values) -> Result<()> {
        S::require_held(self.context(), &S::numbers(values)?)
    }

    fn apply(&self, operation: &Operation<'_>, x: &[&Erased]) -> Result<Erased> {
        let x = all::<S::Ciphertext<B>>(x)?;
        let e = x.first().map_or_else(|| Arc::clone(&self.plain), |x| self.evaluator_of(x));
        scheme::apply::<S, B>(&e, operation, &x).map(Erased::new)
    }

    fn prepare(&self, x: &Erased, entries: &Entries) -> Result<Erased> {
        let x = x.get()?;
        let e = self.evaluator_of(x);
        let level = e.level(e.renewed(x, e.lowest_level() + 1)?);
        scheme::linear_map::<S, B>(&e, entries)?.prepare(&*e, level).map(Erased::new)
    }

    fn linear(&self, entries: Entries, x: &Erased) -> Result<Erased> {
        let x = x.get()?;
        let e = self.evaluator_of(x);
        let map = scheme::linear_map::<S, B>(&e, &entries)?;
        drop(entries);
        map.apply(&*e, x).map(Erased::new)
    }

    fn map(&self, map: &Erased, x: &Erased) -> Result<Erased> {
        let (map, x): (&PreparedTransform<S::Evaluator<B>>, _) = (map.get()?, x.get()?);
        map.apply(&*self.evaluator_of(x), x).map(Erased::new)
    }

    fn multiply(
        &self,
        plan: &MatrixPlan,
        choices: &MatrixChoices,
        left: &[&Erased],
        right: &[&Erased],
    ) -> Result<Vec<Erased>> {
        let (left, right) = (all::<S::Ciphertext<B>>(left)?, all(right)?);
        let none = || Error::Shape { reason: "a product of no ciphertexts".to_owned() };
        let e = self.evaluator_of(left.first().ok_or_else(none)?);
        let copies = |list: &[&_]| list.iter().map(|x| e.duplicate(x)).collect::<Result<Vec<_>>>();
        let product = plan.multiply(&*e, choices, &copies(&left)?, &copies(&right)?)?;
        Ok(product.into_iter().map(Erased::new).collect())
    }

    fn state(&self, x: &Erased) -> Result<State> {
        S::state(self.context(), x.get()?)
    }

    fn write(&self, x: &Erased) -> Result<Vec<u8>> {
        S::write(self.context(), x.get()?, None)
    }

    fn read(&self, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Erased> {
        S::read(self.context(), bytes, key, trust).map(Erased::new)
    }
}

impl<S: Scheme, B: Backend> AnySession<B> for Session<S, B> {
    fn rlwe(&self) -> &Arc<rlwe::Context<B>> {
        Self::rlwe(self)
    }

    fn rotations(&self) -> &Rotations {
        Self::rotations(self)
    }

    fn generate_keys(&self, randomness: &mut Randomness) -> Result<(SecretKey<B>, rlwe::PublicKey<B>)> {
        Self::generate_keys(self, randomness)
    }

    fn generate_keys_for(
        &self,
        secret: &SecretKey<B>,
        rotations: &Rotations,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        Self::generate_keys_for(self, secret, rotations, randomness)
    }

    fn generate_rekeying(
        &self,
        secret: &SecretKey<B>,
        from: &SecretKey<B>,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<B>> {
        Self::generate_rekeying(self, secret, from, randomness)
    }

    fn rekey(&self, keys: &Arc<EvaluationKeys<B>>, x: &Erased) -> Result<Erased> {
        S::rekey(&S::with_keys(&self.plain, Arc::clone(keys)), x.get()?).map(Erased::new)
    }

    fn add_keys(&self, keys: &Arc<EvaluationKeys<B>>) {
        let evaluator = Arc::new(S::with_keys(&self.plain, Arc::clone(keys)));
        let mut held = self.keyed.write().unwrap_or_else(PoisonError::into_inner);
        for id in [Some(keys.target()), keys.second().map(EvaluationKeys::target)].into_iter().flatten() {
            held.insert(id, Arc::clone(&evaluator));
        }
    }

    fn encrypt(
        &self,
        by: &Encryptor<'_, B>,
        values: &Values,
        bound: f64,
        level: usize,
        randomness: &mut Randomness,
    ) -> Result<Erased> {
        S::encrypt(self.context(), by, values, bound, level, randomness).map(Erased::new)
    }

    fn bring(&self, from: &Arc<dyn AnySession<B>>, x: &Erased) -> Result<Erased> {
        let from = Arc::clone(from).into_any().downcast::<Self>().map_err(|_| Error::OtherScheme)?;
        S::transfer(from.context(), x.get()?, self.context()).map(Erased::new)
    }

    fn decrypt(&self, secret: &SecretKey<B>, x: &Erased) -> Result<Values> {
        S::decrypt(self.context(), secret, x.get()?)
    }

    fn publish(&self, secret: &SecretKey<B>, x: &Erased, release: &Release) -> Result<Published> {
        S::publish(self.context(), secret, x.get()?, release)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}
