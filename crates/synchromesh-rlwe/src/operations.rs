//! Key switching on ciphertexts: relinearise, rotate (one by one or hoisted), re-key, and lazy sums.

use std::sync::Arc;

use synchromesh_ring::Backend;

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::evaluation_keys::EvaluationKeys;
use crate::key_switch::{Output, Switcher};
use crate::level_plans::LevelPlans;
use crate::params::Params;
use crate::switch_key::Source;
use crate::switch_plan::SwitchPlan;
use crate::wire::KeyId;

/// Evaluation keys with the plans they are used by, one for each level.
pub struct KeySwitching<B: Backend> {
    keys: Arc<EvaluationKeys<B>>,
    plans: LevelPlans,
    second: Option<SwitchPlan>,
}

impl<B: Backend> Clone for KeySwitching<B> {
    fn clone(&self) -> Self {
        Self { keys: Arc::clone(&self.keys), plans: self.plans.clone(), second: self.second.clone() }
    }
}

impl<B: Backend> KeySwitching<B> {
    /// Uses `keys` by `plans`: one [`SwitchPlan`] for all levels, or [`LevelPlans`].
    #[must_use]
    pub fn new(keys: Arc<EvaluationKeys<B>>, plans: impl Into<LevelPlans>) -> Self {
        Self { keys, plans: plans.into(), second: None }
    }

    /// Uses the keys under the second secret key, if there are any, by this plan.
    #[must_use]
    pub fn with_second(mut self, plan: Option<SwitchPlan>) -> Self {
        self.second = plan;
        self
    }

    /// The keys under the second secret key and their plan, if there are any.
    fn lower(&self) -> Option<(&EvaluationKeys<B>, &SwitchPlan)> {
        self.keys.second().zip(self.second.as_ref())
    }

    /// The keys and the plan for ciphertexts under `key` at a level.
    pub(crate) fn under(&self, key: KeyId, level: usize) -> Result<(&EvaluationKeys<B>, &SwitchPlan), Error> {
        match self.lower() {
            Some((keys, plan)) if keys.target() == key => Ok((keys, plan)),
            _ => self.keys.target().require(key).map(|()| (&*self.keys, self.plan(level))),
        }
    }

    /// The secret key that ciphertexts of a level are under when they have gone as far as they go: the second one below
    /// the leading levels.
    #[must_use]
    pub fn key_at(&self, params: &Params, level: usize) -> KeyId {
        let first = self.keys.target();
        let lower = self.lower().filter(|_| self.should_rekey(params, first, level));
        lower.map_or(first, |(keys, _)| keys.target())
    }

    /// The plan of a level under the first secret key.
    #[must_use]
    pub fn plan(&self, level: usize) -> &SwitchPlan {
        self.plans.at(level)
    }

    /// The keys.
    #[must_use]
    pub const fn keys(&self) -> &Arc<EvaluationKeys<B>> {
        &self.keys
    }

    pub(crate) fn switcher(
        context: &Context<B>,
        plan: &SwitchPlan,
        from: usize,
        to: usize,
    ) -> Result<Arc<Switcher<B>>, Error> {
        let params = context.params();
        context.switcher(plan, params.level(from)?, params.level(to)?)
    }

    /// The error that one switch adds at `level`.
    ///
    /// # Errors
    /// As [`Context::switcher`].
    pub fn noise(&self, context: &Context<B>, level: usize) -> Result<crate::noise::Noise, Error> {
        self.noise_to(context, level, level)
    }

    /// The error that one switch at level `from`, merged with a modulus switch to level `to`, adds.
    ///
    /// # Errors
    /// As [`Context::switcher`].
    pub fn noise_to(&self, context: &Context<B>, from: usize, to: usize) -> Result<crate::noise::Noise, Error> {
        Ok(Self::switcher(context, self.plan(from), from, to)?.noise())
    }

    /// As [`Self::noise_to`], for a ciphertext under `key`, the first secret key or the second.
    ///
    /// # Errors
    /// As [`Context::switcher`], and [`Error::KeysDiffer`].
    pub fn noise_under(
        &self,
        context: &Context<B>,
        key: KeyId,
        from: usize,
        to: usize,
    ) -> Result<crate::noise::Noise, Error> {
        Ok(Self::switcher(context, self.under(key, from)?.1, from, to)?.noise())
    }

    /// As [`Self::noise_under`], for a rotation.
    ///
    /// # Errors
    /// As [`Self::noise_under`].
    pub fn rotation_noise_under(
        &self,
        context: &Context<B>,
        key: KeyId,
        from: usize,
        to: usize,
    ) -> Result<crate::noise::Noise, Error> {
        Ok(Self::switcher(context, self.under(key, from)?.1, from, to)?.rotation_noise())
    }

    /// Three components to two.
    ///
    /// # Errors
    /// [`Error::Components`], [`Error::MissingKey`], [`Error::KeysDiffer`], or when the device fails.
    pub fn relinearize<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
    ) -> Result<Ciphertext<B, D>, Error> {
        self.relinearize_to(context, ct, ct.level())
    }

    /// Three components to two, merged with a modulus switch to `level`: one division by P and the dropped primes
    /// (ePrint 2023/1642, section 6.1).
    ///
    /// # Errors
    /// As [`Self::relinearize`], and [`Error::Level`] when `level` is above the ciphertext's.
    pub fn relinearize_to<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
        level: usize,
    ) -> Result<Ciphertext<B, D>, Error> {
        ct.require_components(3)?;
        let (keys, plan) = self.own(context, ct)?;
        if level > ct.level() {
            return Err(Error::Level { needed: level, have: ct.level(), top: context.params().top_level() });
        }
        let switcher = Self::switcher(context, plan, ct.level(), level)?;
        let key = keys.prepared(context, Source::Square, plan)?;
        let [c0, c1, c2] = [0, 1, 2].map(|i| &ct.parts()[i]);
        let parts = switcher.switch(context, c2, &key, [Some(c0), Some(c1)], 1)?;
        let params = context.params();
        let dropped = params.ring().log2(params.level(ct.level())?) - params.ring().log2(params.level(level)?);
        let noise = ct.noise().times(-dropped).plus_switching(switcher.noise());
        Ciphertext::new(params, Vec::from(parts), level, ct.key(), noise)
    }

    /// The ciphertext of m(X^g).
    ///
    /// # Errors
    /// [`Error::Components`], [`Error::MissingKey`], [`Error::KeysDiffer`], or when the device fails.
    pub fn automorphism<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
        g: usize,
    ) -> Result<Ciphertext<B, D>, Error> {
        ct.require_components(2)?;
        let (keys, plan) = self.own(context, ct)?;
        if g == 1 {
            return ct.duplicate(context);
        }
        let switcher = Self::switcher(context, plan, ct.level(), ct.level())?;
        let key = keys.prepared(context, Source::Galois(g), plan)?;
        let parts = switcher.switch(context, &ct.parts()[1], &key, [Some(&ct.parts()[0]), None], g)?;
        let noise = ct.noise().moved().plus_switching(switcher.rotation_noise());
        Ciphertext::new(context.params(), Vec::from(parts), ct.level(), ct.key(), noise)
    }

    /// The ciphertexts of m(X^g) for each g, decomposing once (hoisting).
    ///
    /// # Errors
    /// As [`Self::automorphism`].
    pub fn automorphisms_hoisted<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
        elements: &[usize],
    ) -> Result<Vec<Ciphertext<B, D>>, Error> {
        ct.require_components(2)?;
        let (keys, plan) = self.own(context, ct)?;
        let switcher = Self::switcher(context, plan, ct.level(), ct.level())?;
        let digits = switcher.hoist(context, switcher.decompose(context, D::operand(&ct.parts()[1]))?)?;
        let mut out = Vec::with_capacity(elements.len());
        for &g in elements {
            if g == 1 {
                out.push(ct.duplicate(context)?);
                continue;
            }
            let key = keys.prepared(context, Source::Galois(g), plan)?;
            let accumulator = switcher.inner_product(context, &digits, &key, None)?;
            let addends = [Some(D::operand(&ct.parts()[0])), None];
            let output = Output { ntt: D::ntt_primes(switcher.target()), galois: g };
            let parts = switcher.mod_down(context, accumulator, addends, &output)?.map(D::take);
            let noise = ct.noise().moved().plus_switching(switcher.rotation_noise());
            out.push(Ciphertext::new(context.params(), Vec::from(parts), ct.level(), ct.key(), noise)?);
        }
        Ok(out)
    }

    /// The ciphertext under another secret key: from the first to the second where there is one, otherwise from
    /// whatever key it is under to the keys' own.
    ///
    /// # Errors
    /// [`Error::MissingKey`] without a key for it, or when the device fails.
    pub fn rekey<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
    ) -> Result<Ciphertext<B, D>, Error> {
        context.params().require_digest(ct.params_digest())?;
        let own = (&*self.keys, self.plan(ct.level()));
        let (keys, plan) = self.lower().filter(|_| self.keys.target() == ct.key()).unwrap_or(own);
        Self::switched(context, ct, keys, plan)
    }

    /// The ciphertext of m + Q I at the highest level, for one of level 0 and its modulus Q: brought under the sparse secret
    /// key, raised, and brought back; see [`crate::raise`].
    ///
    /// # Errors
    /// [`Error::MissingKey`] without the keys for it, [`Error::Level`] unless the ciphertext is at level 0, or when the device
    /// fails.
    pub fn raise<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
    ) -> Result<Ciphertext<B, D>, Error> {
        let params = context.params();
        params.require_digest(ct.params_digest())?;
        if ct.level() > 0 {
            return Err(Error::Level { needed: 0, have: ct.level(), top: params.top_level() });
        }
        let missing = || Error::MissingKey { source_name: "the sparse secret key".to_owned(), have: "none".to_owned() };
        let keys = self.keys.sparse().ok_or_else(missing)?;
        let plan = SwitchPlan::sparse(params)?.ok_or_else(missing)?;
        let ct = Self::switched(context, ct, keys, &plan)?.raise_to(context, params.top_level())?;
        Self::switched(context, &ct, &self.keys, self.plan(ct.level()))
    }

    /// The ciphertext under the secret key of `keys`.
    fn switched<D: SwitchDomain>(
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
        keys: &EvaluationKeys<B>,
        plan: &SwitchPlan,
    ) -> Result<Ciphertext<B, D>, Error> {
        ct.require_components(2)?;
        let switcher = Self::switcher(context, plan, ct.level(), ct.level())?;
        let key = keys.prepared(context, Source::Key(ct.key()), plan)?;
        let parts = switcher.switch(context, &ct.parts()[1], &key, [Some(&ct.parts()[0]), None], 1)?;
        let noise = ct.noise().plus_switching(switcher.noise());
        Ciphertext::new(context.params(), Vec::from(parts), ct.level(), keys.target(), noise)
    }

    /// Whether a ciphertext at this level and under this key should be brought to the second secret key: it is under
    /// the first, and no longer at a leading level.
    #[must_use]
    pub fn should_rekey(&self, params: &Params, key: KeyId, level: usize) -> bool {
        let first = self.lower().is_some() && self.keys.target() == key;
        first && params.second().is_some_and(|second| level <= second.top_level)
    }

    /// The highest level that key switches of a ciphertext under `key` reach.
    #[must_use]
    pub fn highest(&self, params: &Params, key: KeyId) -> usize {
        let second = params.second().filter(|_| self.lower().is_some_and(|(keys, _)| keys.target() == key));
        second.map_or_else(|| params.top_level(), |second| second.top_level)
    }

    /// The relinearised sum of three-component ciphertexts of one level: their c_2 are added first and switched once
    /// (lazy key switching, ePrint 2023/1642 section 2.2).
    ///
    /// # Errors
    /// [`Error::Argument`] for an empty list, or as [`Self::relinearize`].
    pub fn relinearize_sum<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        terms: &[Ciphertext<B, D>],
    ) -> Result<Ciphertext<B, D>, Error> {
        let Some((first, rest)) = terms.split_first() else {
            return Err(Error::argument("a lazy sum needs at least one term"));
        };
        let mut sum = first.duplicate(context)?;
        for term in rest {
            sum.add_assign(context, term, false)?;
        }
        self.relinearize(context, &sum)
    }

    /// The keys and the plan for a ciphertext.
    pub(crate) fn own<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
    ) -> Result<(&EvaluationKeys<B>, &SwitchPlan), Error> {
        context.params().require_digest(ct.params_digest())?;
        self.under(ct.key(), ct.level())
    }
}
