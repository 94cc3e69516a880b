//! Key switching on ciphertexts: relinearise, rotate (one by one or hoisted), re-key, and lazy sums.

use std::sync::Arc;

use synchromesh_ring::Backend;

use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::key_switch::{Output, Switcher};
use crate::switch_key::{EvaluationKeys, Source};
use crate::switch_plan::SwitchPlan;

/// Evaluation keys with the plan they are used by.
pub struct KeySwitching<B: Backend> {
    keys: Arc<EvaluationKeys<B>>,
    plan: SwitchPlan,
}

impl<B: Backend> KeySwitching<B> {
    /// Uses `keys` by `plan`.
    #[must_use]
    pub const fn new(keys: Arc<EvaluationKeys<B>>, plan: SwitchPlan) -> Self {
        Self { keys, plan }
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &SwitchPlan {
        &self.plan
    }

    /// The keys.
    #[must_use]
    pub const fn keys(&self) -> &Arc<EvaluationKeys<B>> {
        &self.keys
    }

    fn switcher(&self, context: &Context<B>, from: usize, to: usize) -> Result<Arc<Switcher<B>>, Error> {
        let params = context.params();
        context.switcher(&self.plan, params.level(from)?, params.level(to)?)
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
        Ok(self.switcher(context, from, to)?.noise())
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
        self.require(context, ct)?;
        if level > ct.level() {
            return Err(Error::Level { needed: level, have: ct.level(), top: context.params().top_level() });
        }
        let switcher = self.switcher(context, ct.level(), level)?;
        let key = self.keys.prepared(context, Source::Square, &self.plan)?;
        let [c0, c1, c2] = [0, 1, 2].map(|i| &ct.parts()[i]);
        let parts = switcher.switch(context, c2, &key, [Some(c0), Some(c1)], 1)?;
        let params = context.params();
        let dropped = params.ring().log2(params.level(ct.level())?) - params.ring().log2(params.level(level)?);
        let noise = ct.noise().times(-dropped).plus(switcher.noise());
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
        self.require(context, ct)?;
        if g == 1 {
            return ct.duplicate(context);
        }
        let switcher = self.switcher(context, ct.level(), ct.level())?;
        let key = self.keys.prepared(context, Source::Galois(g), &self.plan)?;
        let parts = switcher.switch(context, &ct.parts()[1], &key, [Some(&ct.parts()[0]), None], 1)?;
        let parts = parts.iter().map(|p| Ok(p.automorphism(context.backend(), g)?)).collect::<Result<_, Error>>()?;
        Ciphertext::new(context.params(), parts, ct.level(), ct.key(), ct.noise().plus(switcher.noise()))
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
        self.require(context, ct)?;
        let switcher = self.switcher(context, ct.level(), ct.level())?;
        let digits = switcher.hoist(context, switcher.decompose(context, D::operand(&ct.parts()[1]))?)?;
        let mut out = Vec::with_capacity(elements.len());
        for &g in elements {
            if g == 1 {
                out.push(ct.duplicate(context)?);
                continue;
            }
            let key = self.keys.prepared(context, Source::Galois(g), &self.plan)?;
            let accumulator = switcher.inner_product(context, &digits, &key, None)?;
            let addends = [Some(D::operand(&ct.parts()[0])), None];
            let output = Output { ntt: D::ntt_primes(switcher.target()), galois: g };
            let parts = switcher.mod_down(context, accumulator, addends, &output)?.map(D::take);
            let noise = ct.noise().plus(switcher.noise());
            out.push(Ciphertext::new(context.params(), Vec::from(parts), ct.level(), ct.key(), noise)?);
        }
        Ok(out)
    }

    /// The ciphertext under another secret key: plain re-keying from the key it is under to the keys' own.
    ///
    /// # Errors
    /// [`Error::MissingKey`] without a key for it, or when the device fails.
    pub fn rekey<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        ct: &Ciphertext<B, D>,
    ) -> Result<Ciphertext<B, D>, Error> {
        ct.require_components(2)?;
        context.params().require_digest(ct.params_digest())?;
        let switcher = self.switcher(context, ct.level(), ct.level())?;
        let key = self.keys.prepared(context, Source::Key(ct.key()), &self.plan)?;
        let parts = switcher.switch(context, &ct.parts()[1], &key, [Some(&ct.parts()[0]), None], 1)?;
        let noise = ct.noise().plus(switcher.noise());
        Ciphertext::new(context.params(), Vec::from(parts), ct.level(), self.keys.target(), noise)
    }

    /// The relinearised sum of three-component ciphertexts of one level: their c_2 are added first and switched once
    /// (lazy key switching, ePrint 2023/1642 section 2.2).
    ///
    /// # Errors
    /// [`Error::Params`] for an empty list, or as [`Self::relinearize`].
    pub fn relinearize_sum<D: SwitchDomain>(
        &self,
        context: &Context<B>,
        terms: &[Ciphertext<B, D>],
    ) -> Result<Ciphertext<B, D>, Error> {
        let Some((first, rest)) = terms.split_first() else {
            return Err(Error::params("a lazy sum needs at least one term"));
        };
        let mut sum = first.duplicate(context)?;
        for term in rest {
            sum.add_assign(context, term, false)?;
        }
        self.relinearize(context, &sum)
    }

    fn require<D: SwitchDomain>(&self, context: &Context<B>, ct: &Ciphertext<B, D>) -> Result<(), Error> {
        context.params().require_digest(ct.params_digest())?;
        self.keys.target().require(ct.key())
    }
}
