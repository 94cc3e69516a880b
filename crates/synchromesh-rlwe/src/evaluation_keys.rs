//! Evaluation keys: the switch keys under one secret key or two, and what is prepared of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use synchromesh_ring::{Backend, Cpu};

use crate::context::Context;
use crate::error::Error;
use crate::key_part::KeyPart;
use crate::level_plans::LevelPlans;
use crate::params::Params;
use crate::prepared_key::{PreparedKey, PreparedKeys};
use crate::randomness::Randomness;
use crate::secret_key::SecretKey;
use crate::switch_key::{Source, SwitchKey};
use crate::switch_plan::SwitchPlan;
use crate::wire::KeyId;

/// The switch keys of one secret key, and their prepared forms, made at first use.
pub struct EvaluationKeys<B: Backend = Cpu> {
    target: KeyId,
    keys: BTreeMap<Source, Arc<SwitchKey<B>>>,
    /// Those under both secret keys.
    prepared: Arc<PreparedKeys<B>>,
    second: Option<Box<Self>>,
    sparse: Option<Box<Self>>,
    inside: Option<Inside<B>>,
}

/// The keys of a larger ring, in which ciphertexts under these keys are bootstrapped, with its parameters.
struct Inside<B: Backend> {
    params: Params,
    keys: Arc<EvaluationKeys<B>>,
}

impl<B: Backend> EvaluationKeys<B> {
    /// No keys yet.
    #[must_use]
    pub fn new(target: KeyId) -> Self {
        Self { target, keys: BTreeMap::new(), prepared: Arc::default(), second: None, sparse: None, inside: None }
    }

    /// Adds the keys under the second secret key; their prepared forms share the budget of these.
    pub fn set_second(&mut self, mut keys: Self) {
        keys.prepared = Arc::clone(&self.prepared);
        self.second = Some(Box::new(keys));
    }

    /// Adds the keys under the sparse secret key; their prepared forms share the budget of these.
    pub fn set_sparse(&mut self, mut keys: Self) {
        keys.prepared = Arc::clone(&self.prepared);
        self.sparse = Some(Box::new(keys));
    }

    /// The keys under the sparse secret key.
    #[must_use]
    pub fn sparse(&self) -> Option<&Self> {
        self.sparse.as_deref()
    }

    /// Adds the keys of a larger ring in which ciphertexts are bootstrapped, under the same secret key.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] for keys under another secret key.
    pub fn set_inside(&mut self, params: &Params, keys: Arc<Self>) -> Result<(), Error> {
        self.target.require(keys.target)?;
        self.inside = Some(Inside { params: params.clone(), keys });
        Ok(())
    }

    /// The keys of the larger ring in which ciphertexts are bootstrapped.
    #[must_use]
    pub fn inside(&self) -> Option<&Arc<Self>> {
        self.inside.as_ref().map(|inside| &inside.keys)
    }

    /// The parameters of that ring.
    pub(crate) fn inside_params(&self) -> Option<&Params> {
        self.inside.as_ref().map(|inside| &inside.params)
    }

    /// These keys with those of the larger ring that others come with.
    fn with_inside_of(mut self, other: &Self) -> Self {
        let copy = |inside: &Inside<B>| Inside { params: inside.params.clone(), keys: Arc::clone(&inside.keys) };
        self.inside = other.inside.as_ref().map(copy);
        self
    }

    /// The keys under the second secret key.
    #[must_use]
    pub fn second(&self) -> Option<&Self> {
        self.second.as_deref()
    }

    /// Makes keys for each of `sources` (relinearisation and rotations).
    ///
    /// # Errors
    /// As [`SwitchKey::generate`].
    pub fn generate(
        context: &Context<B>,
        secret: &SecretKey<B>,
        sources: impl IntoIterator<Item = Source>,
        plan: &SwitchPlan,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let part = KeyPart::whole(context.params(), plan.shape())?;
        Self::generate_parts(context, secret, sources.into_iter().map(|source| (source, part.clone())), randomness)
    }

    /// Keys for each of `sources`, under the secret key by `plan`, and, where the parameters have a second one, under
    /// that by `second`, with the key that brings ciphertexts to it.
    ///
    /// # Errors
    /// As [`SwitchKey::generate`].
    pub fn generate_all(
        context: &Context<B>,
        secret: &SecretKey<B>,
        sources: impl IntoIterator<Item = Source> + Clone,
        plan: &SwitchPlan,
        second: Option<&SwitchPlan>,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let mut keys = Self::generate(context, secret, sources.clone(), plan, randomness)?;
        if let (Some(plan), Some(lower)) = (second, secret.second()) {
            let mut under = Self::generate(context, lower, sources, plan, randomness)?;
            let source = Source::Key(secret.id());
            under.insert(SwitchKey::generate(context, lower, source, Some(secret), plan, randomness)?)?;
            keys.set_second(under);
        }
        Ok(keys)
    }

    /// Adds the keys that raising takes: from the secret key to the sparse one, at the primes of level 0, and back by `plan`.
    ///
    /// # Errors
    /// [`Error::MissingKey`] where the parameters have no sparse key, or as [`SwitchKey::generate`].
    pub fn add_raising(
        &mut self,
        context: &Context<B>,
        secret: &SecretKey<B>,
        plan: &SwitchPlan,
        randomness: &mut Randomness,
    ) -> Result<(), Error> {
        let there = SwitchPlan::sparse(context.params())?;
        let Some((sparse, there)) = secret.sparse().zip(there) else {
            let have = "parameters without a sparse key".to_owned();
            return Err(Error::MissingKey { source_name: "the sparse secret key".to_owned(), have });
        };
        let back = Source::Key(sparse.id());
        self.insert(SwitchKey::generate(context, secret, back, Some(sparse), plan, randomness)?)?;
        let mut under = Self::new(sparse.id());
        let source = Source::Key(secret.id());
        under.insert(SwitchKey::generate(context, sparse, source, Some(secret), &there, randomness)?)?;
        self.set_sparse(under);
        Ok(())
    }

    /// The keys that bring what is under `from`, and under its second secret key where it has one, under `secret`. Who knows
    /// `secret` learns `from` from them.
    ///
    /// # Errors
    /// As [`SwitchKey::generate`].
    pub fn rekeying(
        context: &Context<B>,
        secret: &SecretKey<B>,
        from: &SecretKey<B>,
        plan: &SwitchPlan,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let mut keys = Self::new(secret.id());
        for from in std::iter::once(from).chain(from.second()) {
            let source = Source::Key(from.id());
            keys.insert(SwitchKey::generate(context, secret, source, Some(from), plan, randomness)?)?;
        }
        Ok(keys)
    }

    /// The part of each key that is named beside it, made side by side on the device's threads.
    ///
    /// # Errors
    /// As [`SwitchKey::generate`].
    pub fn generate_parts(
        context: &Context<B>,
        secret: &SecretKey<B>,
        parts: impl IntoIterator<Item = (Source, KeyPart)>,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        // Seeds are drawn in the order of the keys, whoever makes them.
        let rooted = parts.into_iter().map(|(source, part)| Ok((source, part, randomness.next_seed()?)));
        let rooted = rooted.collect::<Result<Vec<_>, Error>>()?;
        let make = |(source, part, root)| SwitchKey::from_root(context, secret, (source, None), &part, &root);
        let mut keys = Self::new(secret.id());
        for key in context.backend().threads().try_map(rooted, make)? {
            keys.insert(key)?;
        }
        Ok(keys)
    }

    /// Adds a key.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] when it switches to another secret key.
    pub fn insert(&mut self, key: SwitchKey<B>) -> Result<(), Error> {
        self.target.require(key.target())?;
        self.keys.insert(key.source(), Arc::new(key));
        self.prepared.clear();
        Ok(())
    }

    /// The secret key they belong to.
    #[must_use]
    pub const fn target(&self) -> KeyId {
        self.target
    }

    /// All keys in their wire form.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<SwitchKey<B>>> {
        self.keys.values()
    }

    /// The wire form of one key.
    ///
    /// # Errors
    /// [`Error::MissingKey`].
    pub fn get(&self, source: Source) -> Result<&Arc<SwitchKey<B>>, Error> {
        self.keys.get(&source).ok_or_else(|| {
            let have: Vec<String> = self.keys.keys().take(8).map(Source::to_string).collect();
            let more = self.keys.len().saturating_sub(8);
            let suffix = if more > 0 { format!(" and {more} more") } else { String::new() };
            let have = if have.is_empty() { "none".to_owned() } else { have.join(", ") + &suffix };
            Error::MissingKey { source_name: source.to_string(), have }
        })
    }

    /// One key prepared for `plan`, from the cache if it was made before.
    ///
    /// # Errors
    /// [`Error::MissingKey`], or as [`SwitchKey::prepare`].
    pub fn prepared(
        &self,
        context: &Context<B>,
        source: Source,
        plan: &SwitchPlan,
    ) -> Result<Arc<PreparedKey<B>>, Error> {
        let key = self.get(source)?;
        self.prepared
            .get_or_make((self.target, source, plan.digest()), context.params().n(), || key.prepare(context, plan))
    }

    /// These keys as they are computed with, by the plans of all levels, in two thirds of the memory: each is prepared and then
    /// loses its stored form. They cannot be written, trimmed, moved to another device or used by other plans any more, nor
    /// once their prepared forms are dropped; so add what is to be added before. Those under a second and a sparse secret key,
    /// and of a larger ring, stay as they are.
    ///
    /// # Errors
    /// As [`SwitchKey::prepare`], for a key that no plan can use.
    pub fn into_prepared(mut self, context: &Context<B>, plans: &LevelPlans) -> Result<Self, Error> {
        let plans = plans.distinct();
        for source in self.keys.keys().copied().collect::<Vec<_>>() {
            let (mut used, mut refused) = (false, None);
            for plan in &plans {
                match self.prepared(context, source, plan) {
                    Ok(_) => used = true,
                    // A plan of levels that the key was not made for.
                    Err(error @ Error::TrimmedKey { .. }) => refused = Some(error),
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = refused.filter(|_| !used) {
                return Err(error);
            }
            let described = self.get(source)?.without_rows();
            self.keys.insert(source, Arc::new(described));
        }
        Ok(self)
    }

    /// Keeps at most `bytes` of prepared forms from now on, and of those the ones used last; the others are derived again
    /// at need. One larger than that is made for each use. Without this call all are kept.
    pub fn set_prepared_budget(&self, bytes: u64) {
        self.prepared.set_budget(bytes);
    }

    /// Bytes of prepared forms kept now.
    #[must_use]
    pub fn prepared_bytes(&self) -> u64 {
        self.prepared.bytes()
    }

    /// These keys and those of `other` that are not among them, the larger ring's likewise.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] when the others switch to another secret key, those under derived keys included;
    /// [`Error::ParamsDiffer`] for another larger ring.
    pub fn and(&self, other: &Self) -> Result<Self, Error> {
        self.target.require(other.target)?;
        let mut both = Self::new(self.target);
        let named = |keys: &BTreeMap<Source, Arc<SwitchKey<B>>>| keys.clone().into_iter();
        both.keys = named(&other.keys).chain(named(&self.keys)).collect();
        let derived = |pair: (Option<&Self>, Option<&Self>)| match pair {
            (Some(mine), Some(others)) => mine.and(others).map(Some),
            (Some(one), None) | (None, Some(one)) => one.and(&Self::new(one.target)).map(Some),
            (None, None) => Ok(None),
        };
        if let Some(second) = derived((self.second(), other.second()))? {
            both.set_second(second);
        }
        if let Some(sparse) = derived((self.sparse(), other.sparse()))? {
            both.set_sparse(sparse);
        }
        match (&self.inside, &other.inside) {
            (Some(mine), Some(others)) => {
                mine.params.require_digest(others.params.digest())?;
                both.set_inside(&mine.params, Arc::new(mine.keys.and(&others.keys)?))?;
                Ok(both)
            }
            (Some(_), None) => Ok(both.with_inside_of(self)),
            (None, _) => Ok(both.with_inside_of(other)),
        }
    }

    /// The keys with of each the part that `part` names; those under a second secret key stay whole.
    ///
    /// # Errors
    /// As [`SwitchKey::trim`].
    pub fn trim(&self, context: &Context<B>, part: &KeyPart) -> Result<Self, Error> {
        self.trim_where(context, part, |_| true)
    }

    /// As [`Self::trim`], for the keys of these sources; the others stay as they are.
    ///
    /// # Errors
    /// As [`SwitchKey::trim`].
    pub fn trim_where(
        &self,
        context: &Context<B>,
        part: &KeyPart,
        sources: impl Fn(Source) -> bool,
    ) -> Result<Self, Error> {
        let mut trimmed = Self::new(self.target);
        for (&source, key) in &self.keys {
            let key = if sources(source) { Arc::new(key.trim(context, part)?) } else { Arc::clone(key) };
            trimmed.keys.insert(source, key);
        }
        if let Some(second) = self.second() {
            trimmed.set_second(Self { keys: second.keys.clone(), ..Self::new(second.target) });
        }
        if let Some(sparse) = self.sparse() {
            trimmed.set_sparse(Self { keys: sparse.keys.clone(), ..Self::new(sparse.target) });
        }
        Ok(trimmed.with_inside_of(self))
    }

    /// Drops the prepared forms; they are derived again at need.
    pub fn drop_prepared(&self) {
        self.prepared.clear();
    }
}
