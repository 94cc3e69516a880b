//! Parameters of an exact scheme: widths and a plaintext modulus become primes, levels and a key-switching plan.

use std::marker::PhantomData;
use std::sync::Arc;

use num_bigint::BigUint;
use num_traits::Zero;
use serde::{Deserialize, Serialize};
use synchromesh_rlwe::noise::FailureLimit;
use synchromesh_rlwe::ring::IndexSet;
use synchromesh_rlwe::ring::prime::{MAX_PRIME_BITS, PrimeError, ntt_primes_excluding};
use synchromesh_rlwe::{LevelPlans, Schedule, Security, SwitchPlan};

use super::Scheme;
use crate::error::{Error, Result};
use crate::plain_modulus::PlainModulus;

/// Primes by value, as a plan file lists them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrimeLists {
    /// Ciphertext primes, the one that stays longest first.
    pub q: Vec<u64>,
    /// Special primes of key switching.
    pub p: Vec<u64>,
    /// The second base of BFV multiplication, one prime for each of q; empty for BGV.
    #[serde(default)]
    pub aux: Vec<u64>,
}

/// Parameters as typed or read: unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamsLiteral {
    /// log2 of the ring degree N.
    pub log_n: u32,
    /// The plaintext modulus, decimal or after `0x` hexadecimal, from 2 to 256 bits.
    pub t: String,
    /// Widths of the ciphertext primes in bits, the one that stays longest first.
    pub q_bits: Vec<u32>,
    /// Widths of the special primes in bits; empty where key switches borrow ciphertext primes.
    pub p_bits: Vec<u32>,
    /// Primes present at level 0, 1, ..; empty: one prime a level.
    #[serde(default)]
    pub level_limbs: Vec<usize>,
    /// Active primes of each level, where they are more than prefixes.
    #[serde(default, skip_serializing_if = "Schedule::is_simple")]
    pub schedule: Schedule,
    /// Digits of a key switch; without special primes, of a stored key: one for each prime, see [`LevelPlans::of`].
    pub omega: usize,
    /// Required security.
    #[serde(default)]
    pub security: Security,
    /// The primes themselves; without them, the largest of each width are taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primes: Option<PrimeLists>,
}

impl ParamsLiteral {
    /// The literal of S on these primes, q up to each level as long as `level_limbs` says; a second base is chosen where S has
    /// one.
    pub(crate) fn over<S: Scheme>(log_n: u32, t: &str, [q, p]: [&[u64]; 2], level_limbs: Vec<usize>) -> Result<Self> {
        let bits = |primes: &[u64]| primes.iter().map(|q| 64 - q.leading_zeros()).collect::<Vec<_>>();
        let modulus: PlainModulus = t.parse()?;
        let q_bits = bits(q);
        let aux = second_base::<S>(log_n, &q_bits, modulus.value(), [q, p].concat())?;
        Ok(Self {
            log_n,
            t: t.to_owned(),
            q_bits,
            p_bits: bits(p),
            level_limbs,
            schedule: Schedule::default(),
            omega: 1,
            security: Security::default(),
            primes: Some(PrimeLists { q: q.to_vec(), p: p.to_vec(), aux }),
        })
    }
}

struct Inner {
    literal: ParamsLiteral,
    t: PlainModulus,
    rlwe: synchromesh_rlwe::Params,
    plans: LevelPlans,
    second: Option<SwitchPlan>,
}

/// Checked, immutable parameters of the scheme S; cheap to clone.
pub struct Params<S>(Arc<Inner>, PhantomData<S>);

impl<S> Clone for Params<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0), PhantomData)
    }
}

impl<S> PartialEq for Params<S> {
    fn eq(&self, other: &Self) -> bool {
        self.0.rlwe == other.0.rlwe
    }
}

impl<S> std::fmt::Debug for Params<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.literal.fmt(f)
    }
}

impl<S: Scheme> Params<S> {
    /// Checks a literal and chooses its primes.
    ///
    /// # Errors
    /// [`Error::PlainModulus`], [`Error::Primes`] when a width has too few, [`Error::SharedFactor`] when t and a prime
    /// are not coprime, [`Error::Params`] for a rule of this crate, [`Error::Rlwe`] for degree, levels or security.
    pub fn new(literal: ParamsLiteral) -> Result<Self> {
        let t: PlainModulus = literal.t.parse()?;
        let primes = match &literal.primes {
            Some(lists) => {
                require_widths("q_bits", &literal.q_bits, &lists.q)?;
                require_widths("p_bits", &literal.p_bits, &lists.p)?;
                lists.clone()
            }
            None => choose::<S>(&literal, t.value())?,
        };
        for &prime in [&primes.q, &primes.p, &primes.aux].into_iter().flatten() {
            if prime != 0 && (t.value() % prime).is_zero() {
                return Err(Error::SharedFactor { t: t.to_string(), prime });
            }
        }
        let needed = if S::SECOND_BASE { primes.q.len() } else { 0 };
        if primes.aux.len() != needed {
            let have = primes.aux.len();
            return Err(Error::params(format!("{} needs {needed} auxiliary primes, {have} are listed", S::NAME)));
        }
        let rlwe = synchromesh_rlwe::Params::new(synchromesh_rlwe::ParamsLiteral {
            tag: format!("{} t={t}", S::NAME),
            log_n: literal.log_n,
            q: primes.q.clone(),
            p: primes.p.clone(),
            aux: primes.aux.clone(),
            level_limbs: literal.level_limbs.clone(),
            schedule: literal.schedule.clone(),
            error_multiple: S::error_multiple(&t).to_string(),
            error: Default::default(),
            security: literal.security,
        })?;
        let (plans, second) = (LevelPlans::of(&rlwe, literal.omega)?, SwitchPlan::second(&rlwe)?);
        let literal = ParamsLiteral { primes: Some(primes), ..literal };
        Ok(Self(Arc::new(Inner { literal, t, rlwe, plans, second }), PhantomData))
    }

    /// The literal, with the primes that were chosen.
    #[must_use]
    pub fn literal(&self) -> &ParamsLiteral {
        &self.0.literal
    }

    /// The plaintext modulus t.
    #[must_use]
    pub fn t(&self) -> &PlainModulus {
        &self.0.t
    }

    /// The parameters of the layer below.
    #[must_use]
    pub fn rlwe(&self) -> &synchromesh_rlwe::Params {
        &self.0.rlwe
    }

    /// How keys are switched at the highest level.
    #[must_use]
    pub fn plan(&self) -> &SwitchPlan {
        self.0.plans.at(self.top_level())
    }

    /// How keys are switched at each level.
    #[must_use]
    pub fn plans(&self) -> &LevelPlans {
        &self.0.plans
    }

    /// The same parameters with other plans, for keys stored with the plans' digits. Objects stay compatible: plans say
    /// how to compute, not what.
    ///
    /// # Errors
    /// As [`LevelPlans::check`].
    pub fn with_plans(&self, plans: impl Into<LevelPlans>) -> Result<Self> {
        let plans = plans.into();
        plans.check(self.rlwe())?;
        let Inner { literal, t, rlwe, second, .. } = &*self.0;
        let (literal, t, rlwe, second) = (literal.clone(), t.clone(), rlwe.clone(), second.clone());
        Ok(Self(Arc::new(Inner { literal, t, rlwe, plans, second }), PhantomData))
    }

    /// The same parameters with another largest probability of a wrong decryption, which decides what is refused.
    #[must_use]
    pub fn with_failure_limit(&self, limit: FailureLimit) -> Self {
        self.with_rlwe(self.rlwe().clone().with_failure_limit(limit))
    }

    /// The same parameters for keys that so many parties make and hold together: certificates then hold for those.
    #[must_use]
    pub fn with_parties(&self, parties: usize) -> Self {
        self.with_rlwe(self.rlwe().clone().with_parties(parties))
    }

    /// The same parameters for a key that parties hold together, made as it says.
    #[must_use]
    pub fn with_joint(&self, joint: &crate::joint::Joint) -> Self {
        self.with_rlwe(joint.params(self.rlwe().clone()))
    }

    /// The same with other parameters of ring learning with errors that have the same digest.
    pub(crate) fn with_rlwe(&self, rlwe: synchromesh_rlwe::Params) -> Self {
        let Inner { literal, t, plans, second, .. } = &*self.0;
        let (literal, t, plans, second) = (literal.clone(), t.clone(), plans.clone(), second.clone());
        Self(Arc::new(Inner { literal, t, rlwe, plans, second }), PhantomData)
    }

    /// The largest probability of a wrong decryption, 2^-128 unless another was chosen.
    #[must_use]
    pub fn failure_limit(&self) -> FailureLimit {
        self.rlwe().failure_limit()
    }

    /// How keys are switched under the second secret key, where the schedule has one.
    #[must_use]
    pub fn second_plan(&self) -> Option<&SwitchPlan> {
        self.0.second.as_ref()
    }

    /// The ring degree N.
    #[must_use]
    pub fn n(&self) -> usize {
        self.0.rlwe.n()
    }

    /// log2 N.
    #[must_use]
    pub fn log_n(&self) -> u32 {
        self.0.literal.log_n
    }

    /// Level of a fresh ciphertext: how many modulus switches it has.
    #[must_use]
    pub fn top_level(&self) -> usize {
        self.0.rlwe.top_level()
    }

    /// The product Q of the primes of `level`.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    pub fn modulus(&self, level: usize) -> Result<BigUint> {
        Ok(self.rlwe().ring().product(self.rlwe().level(level)?))
    }

    /// log2 of [`Self::modulus`].
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    pub fn log2_modulus(&self, level: usize) -> Result<f64> {
        Ok(self.rlwe().ring().log2(self.rlwe().level(level)?))
    }

    /// The auxiliary primes that go with the ciphertext primes of `level`: as many, P about Q.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    pub fn second_base(&self, level: usize) -> Result<IndexSet> {
        let aux = self.rlwe().aux().as_slice();
        Ok(self.rlwe().level(level)?.iter().filter_map(|i| aux.get(i).copied()).collect())
    }

    /// What a switch from one level to another divides by, modulo t: the product of the primes that leave over that of
    /// those that come in.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Level`] above the top level.
    pub fn divisor_mod_t(&self, from: usize, to: usize) -> Result<BigUint> {
        let (ring, t) = (self.rlwe().ring(), self.0.t.value());
        let (from, to) = (self.rlwe().level(from)?, self.rlwe().level(to)?);
        let coming = ring.product(&to.without(from)) % t;
        // Checked parameters have no prime that divides t.
        let inverse = coming.modinv(t).unwrap_or_else(|| BigUint::from(1u32));
        Ok(ring.product(&from.without(to)) * inverse % t)
    }
}

fn require_widths(name: &str, widths: &[u32], primes: &[u64]) -> Result<()> {
    let have: Vec<u32> = primes.iter().map(|q| 64 - q.leading_zeros()).collect();
    if widths.is_empty() || widths == have {
        return Ok(());
    }
    Err(Error::params(format!("{name} is {widths:?} and the primes listed have {have:?} bits")))
}

/// The largest primes of each width, all different: q first, then p, then the second base.
fn choose<S: Scheme>(literal: &ParamsLiteral, t: &BigUint) -> Result<PrimeLists> {
    let mut taken = Vec::new();
    let q = take(literal.log_n, &literal.q_bits, t, &mut taken)?;
    let p = take(literal.log_n, &literal.p_bits, t, &mut taken)?;
    let aux = second_base::<S>(literal.log_n, &literal.q_bits, t, taken)?;
    Ok(PrimeLists { q, p, aux })
}

/// The second base for primes of these widths, where S has one: none of those taken.
fn second_base<S: Scheme>(log_n: u32, q_bits: &[u32], t: &BigUint, mut taken: Vec<u64>) -> Result<Vec<u64>> {
    let widths = if S::SECOND_BASE { q_bits } else { &[] };
    widths.iter().map(|&width| at_least_as_wide(log_n, width, t, &mut taken)).collect()
}

fn take(log_n: u32, widths: &[u32], t: &BigUint, taken: &mut Vec<u64>) -> Result<Vec<u64>> {
    widths.iter().map(|&width| next(log_n, width, t, taken)).collect()
}

/// The largest prime of this width, not taken and not dividing t.
fn next(log_n: u32, width: u32, t: &BigUint, taken: &mut Vec<u64>) -> Result<u64> {
    loop {
        let found = ntt_primes_excluding(width, log_n, 1, taken)?;
        let Some(&prime) = found.first() else {
            return Err(Error::params(format!("no prime of {width} bits is 1 mod 2^{}", log_n + 1)));
        };
        taken.push(prime);
        if !(t % prime).is_zero() {
            return Ok(prime);
        }
    }
}

/// As [`next`], wider where this width has no prime left.
fn at_least_as_wide(log_n: u32, width: u32, t: &BigUint, taken: &mut Vec<u64>) -> Result<u64> {
    let mut result = next(log_n, width, t, taken);
    for wider in width + 1..=MAX_PRIME_BITS {
        if !matches!(result, Err(Error::Primes(PrimeError::NotEnoughPrimes { .. }))) {
            break;
        }
        result = next(log_n, wider, t, taken);
    }
    result
}
