//! Parameters: an unchecked literal becomes checked, immutable [`Params`] by one constructor.

mod noise;

use std::sync::Arc;

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::{One, Zero};
use serde::{Deserialize, Serialize};
use synchromesh_ring::sampler::{ErrorDistribution, SecretDistribution};
use synchromesh_ring::{IndexSet, Ring};

use crate::error::Error;
use crate::noise::{FailureLimit, KeyBound, Norm, SharedKey};
use crate::schedule::{Schedule, SecondSet, SparseSet};
use crate::security::{self, CostModel, SecurityError, SecurityLevel};
pub use noise::KeyOrigin;

/// How much security the parameters must have; less than 128 bits only by the word `insecure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// At least 128 bits, classical.
    #[default]
    #[serde(rename = "128")]
    Bits128,
    /// At least 192 bits, classical.
    #[serde(rename = "192")]
    Bits192,
    /// At least 256 bits, classical.
    #[serde(rename = "256")]
    Bits256,
    /// At least 128 bits against quantum computers, by [`CostModel::QuantumLaaMosPol14`].
    #[serde(rename = "128q")]
    Quantum128,
    /// At least 192 bits against quantum computers, by the same model.
    #[serde(rename = "192q")]
    Quantum192,
    /// At least 256 bits against quantum computers, by the same model.
    #[serde(rename = "256q")]
    Quantum256,
    /// No check at all: for tests and measurements.
    Insecure,
}

impl Security {
    /// The level to check against, if any.
    #[must_use]
    pub const fn level(self) -> Option<SecurityLevel> {
        match self {
            Self::Bits128 | Self::Quantum128 => Some(SecurityLevel::Bits128),
            Self::Bits192 | Self::Quantum192 => Some(SecurityLevel::Bits192),
            Self::Bits256 | Self::Quantum256 => Some(SecurityLevel::Bits256),
            Self::Insecure => None,
        }
    }

    /// What an attacker's lattice reduction is assumed to cost.
    #[must_use]
    pub const fn model(self) -> CostModel {
        match self {
            Self::Quantum128 | Self::Quantum192 | Self::Quantum256 => CostModel::QuantumLaaMosPol14,
            _ => CostModel::ClassicalMatzov,
        }
    }

    /// Most bits of QP at N = 2^`log_n`: 0 where the table has no entry, no limit when nothing is checked.
    #[must_use]
    pub fn max_log_qp(self, log_n: u32) -> u32 {
        let limit = |level| security::max_log_qp_for(log_n, level, self.model()).unwrap_or(0);
        self.level().map_or(u32::MAX, limit)
    }

    /// Accepts a modulus of `log_qp` bits at N = 2^`log_n`.
    ///
    /// # Errors
    /// [`SecurityError`] when the table gives less.
    pub fn check(self, log_n: u32, log_qp: u32) -> Result<(), SecurityError> {
        self.level().map_or(Ok(()), |level| security::check_for(log_n, log_qp, level, self.model()))
    }

    /// Accepts a modulus of `log_qp` bits at N = 2^`log_n` under a sparse secret of this weight.
    ///
    /// # Errors
    /// [`SecurityError::SparseSecret`] above the limit, or where none is known.
    pub fn check_sparse(self, log_n: u32, weight: usize, log_qp: u32) -> Result<(), SecurityError> {
        let Some(level) = self.level() else { return Ok(()) };
        let limit = security::max_log_qp_sparse(log_n, weight, level, self.model());
        if limit.is_some_and(|limit| log_qp <= limit) {
            return Ok(());
        }
        Err(SecurityError::SparseSecret { log_n, weight, log_qp, limit, level })
    }
}

/// Error distribution of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ErrorChoice {
    /// Centred binomial of 21 + 21 coins, standard deviation 3.24.
    #[default]
    Cbd21,
    /// Discrete Gaussian of width 3.19.
    Gaussian,
}

/// Parameters as typed or read: unchecked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamsLiteral {
    /// What the scheme above wants bound into the digest, for example `bfv t=65537`.
    pub tag: String,
    /// log2 of the ring degree N, 10..17 (18 for measurement only).
    pub log_n: u32,
    /// Ciphertext primes, the one that stays longest first.
    pub q: Vec<u64>,
    /// Special primes P of key switching; empty where key switches borrow ciphertext primes that the input has lost.
    pub p: Vec<u64>,
    /// Primes that no key and no ciphertext at rest uses (the second base of BFV multiplication).
    #[serde(default)]
    pub aux: Vec<u64>,
    /// Limbs present at level 0, 1, ..; empty: one prime a level. The highest level has all of q, or fewer where there is
    /// no p: the primes beyond are borrowed by key switches at every level.
    #[serde(default)]
    pub level_limbs: Vec<usize>,
    /// Active primes and secret keys of the levels where they are more than prefixes under one key.
    #[serde(default, skip_serializing_if = "Schedule::is_simple")]
    pub schedule: Schedule,
    /// The error multiple t in decimal: 1 for BFV and CKKS, the plaintext modulus for BGV; at most 256 bits.
    pub error_multiple: String,
    /// Error distribution.
    #[serde(default)]
    pub error: ErrorChoice,
    /// Required security.
    #[serde(default)]
    pub security: Security,
}

#[derive(Debug)]
struct Inner {
    literal: ParamsLiteral,
    ring: Arc<Ring>,
    q: IndexSet,
    p: IndexSet,
    aux: IndexSet,
    levels: Vec<IndexSet>,
    second: Option<SecondSet>,
    sparse: Option<SparseSet>,
    error_multiple: BigUint,
    log_qp: u32,
    digest: [u8; 32],
}

/// Checked, immutable parameters; cheap to clone.
#[derive(Debug, Clone)]
pub struct Params {
    checked: Arc<Inner>,
    failure_limit: FailureLimit,
    key_origin: KeyOrigin,
    norm: Norm,
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.checked.digest == other.checked.digest
    }
}

impl Params {
    /// Checks a literal.
    ///
    /// # Errors
    /// [`Error::Ring`] for a degree or prime that cannot be used, [`Error::Params`] for a rule of this crate,
    /// [`Error::Security`] when the log2 QP of either secret key exceeds the table's limit.
    pub fn new(literal: ParamsLiteral) -> Result<Self, Error> {
        let table: Vec<u64> = [&literal.q, &literal.p, &literal.aux].into_iter().flatten().copied().collect();
        let ring = Ring::new(literal.log_n, &table)?;
        let (l, k) = (literal.q.len(), literal.p.len());
        if l == 0 {
            return Err(Error::params("the list q of ciphertext primes is empty"));
        }
        let error_multiple = parse_multiple(&literal.error_multiple)?;
        if let Some(q) = table.iter().find(|&&q| error_multiple.gcd(&BigUint::from(q)) != BigUint::one()) {
            return Err(Error::params(format!("the error multiple {error_multiple} shares a factor with prime {q}")));
        }
        let levels = literal.schedule.levels(&literal.level_limbs, [l, k], &ring)?;
        let keyed: IndexSet = (0..l + k).collect();
        let second = literal.schedule.second_set(&levels, &keyed, table.len())?;
        // A secret key is as secure as the largest modulus it is used with.
        let moduli = [Some(keyed), second.as_ref().map(SecondSet::keyed)].into_iter().flatten();
        let bits = |set: IndexSet| security::log_qp_bits(&set.iter().map(|i| table[i]).collect::<Vec<u64>>());
        let log_qp = moduli.map(bits).max().unwrap_or(0);
        literal.security.check(literal.log_n, log_qp)?;
        let p = (l..l + k).collect();
        let sparse = literal.schedule.sparse_set(&levels, &p, [table.len(), ring.n()])?;
        if let Some(sparse) = &sparse {
            literal.security.check_sparse(literal.log_n, sparse.weight, bits(sparse.keyed()))?;
        }
        let canonical = serde_json::to_vec(&literal).map_err(|e| Error::params(e.to_string()))?;
        let digest =
            *blake3::Hasher::new_derive_key("synchromesh v1 params digest").update(&canonical).finalize().as_bytes();
        Ok(Self {
            checked: Arc::new(Inner {
                ring: Arc::new(ring),
                q: (0..l).collect(),
                p,
                aux: (l + k..table.len()).collect(),
                levels,
                second,
                sparse,
                error_multiple,
                log_qp,
                digest,
                literal,
            }),
            failure_limit: FailureLimit::default(),
            key_origin: KeyOrigin::Drawn,
            norm: Norm::default(),
        })
    }

    /// The literal these parameters were made from.
    #[must_use]
    pub fn literal(&self) -> &ParamsLiteral {
        &self.checked.literal
    }

    /// The ring with the whole prime table.
    #[must_use]
    pub fn ring(&self) -> &Arc<Ring> {
        &self.checked.ring
    }

    /// The ring degree N.
    #[must_use]
    pub fn n(&self) -> usize {
        self.checked.ring.n()
    }

    /// All ciphertext primes.
    #[must_use]
    pub fn q(&self) -> &IndexSet {
        &self.checked.q
    }

    /// The special primes.
    #[must_use]
    pub fn p(&self) -> &IndexSet {
        &self.checked.p
    }

    /// Auxiliary primes, outside every key.
    #[must_use]
    pub fn aux(&self) -> &IndexSet {
        &self.checked.aux
    }

    /// The primes of every key: those of q, then those of P.
    #[must_use]
    pub fn keyed(&self) -> IndexSet {
        self.checked.q.union(&self.checked.p)
    }

    /// Fails when a key over `primes` would be less secure than these parameters demand.
    ///
    /// # Errors
    /// [`Error::Security`], and [`Error::Ring`] for an index outside the prime table.
    pub fn require_secure(&self, primes: &IndexSet) -> Result<(), Error> {
        Ok(self.checked.literal.security.check(self.checked.ring.log_n(), self.bits(primes)?)?)
    }

    /// Fails when a key over `primes` under a sparse secret of this weight would be less secure than these parameters
    /// demand.
    ///
    /// # Errors
    /// As [`Self::require_secure`].
    pub fn require_secure_sparse(&self, weight: usize, primes: &IndexSet) -> Result<(), Error> {
        Ok(self.checked.literal.security.check_sparse(self.checked.ring.log_n(), weight, self.bits(primes)?)?)
    }

    /// Bit length of the product of these primes.
    fn bits(&self, primes: &IndexSet) -> Result<u32, Error> {
        let table = self.checked.ring.moduli();
        let value = |i: usize| {
            let missing = || synchromesh_ring::Error::NoSuchPrime { index: i, have: (0..table.len()).collect() };
            table.get(i).map(|q| q.value()).ok_or_else(missing)
        };
        Ok(security::log_qp_bits(&primes.iter().map(value).collect::<Result<Vec<u64>, _>>()?))
    }

    /// Level of a fresh ciphertext: how many rescales or modulus switches it has.
    #[must_use]
    pub fn top_level(&self) -> usize {
        self.checked.levels.len() - 1
    }

    /// The primes of a ciphertext at `level`.
    ///
    /// # Errors
    /// [`Error::Level`] above the top level.
    pub fn level(&self, level: usize) -> Result<&IndexSet, Error> {
        self.checked.levels.get(level).ok_or(Error::Level {
            needed: level,
            have: self.top_level(),
            top: self.top_level(),
        })
    }

    /// The second secret key's levels and primes, if there is one.
    #[must_use]
    pub fn second(&self) -> Option<&SecondSet> {
        self.checked.second.as_ref()
    }

    /// The sparse secret key's weight and primes, if there is one.
    #[must_use]
    pub fn sparse(&self) -> Option<&SparseSet> {
        self.checked.sparse.as_ref()
    }

    /// The error multiple t.
    #[must_use]
    pub fn error_multiple(&self) -> &BigUint {
        &self.checked.error_multiple
    }

    /// The error distribution.
    #[must_use]
    pub fn error(&self) -> ErrorDistribution {
        match self.checked.literal.error {
            ErrorChoice::Cbd21 => ErrorDistribution::Cbd21,
            ErrorChoice::Gaussian => ErrorDistribution::Gaussian319,
        }
    }

    /// The secret distribution.
    #[must_use]
    pub fn secret(&self) -> SecretDistribution {
        SecretDistribution::Ternary
    }

    /// The same parameters with another largest probability of a wrong decryption. It decides what operations refuse and
    /// is no part of the digest: ciphertexts carry bounds, not verdicts.
    #[must_use]
    pub const fn with_failure_limit(mut self, limit: FailureLimit) -> Self {
        self.failure_limit = limit;
        self
    }

    /// The largest probability of a wrong decryption.
    #[must_use]
    pub const fn failure_limit(&self) -> FailureLimit {
        self.failure_limit
    }

    /// The same parameters for keys of which only these norms are known: shares that others made go into them. It decides
    /// what [`Self::rounding_noise`] and [`Self::gadget_noise`] say, and with them certificates of BGV, and is no part of the
    /// digest.
    #[must_use]
    pub const fn with_key_bound(mut self, bound: KeyBound) -> Self {
        self.key_origin = KeyOrigin::Bounded(bound);
        self
    }

    /// The same parameters for keys that so many parties have made together, each as this library does. It decides what
    /// certificates say, and is no part of the digest.
    #[must_use]
    pub const fn with_parties(mut self, parties: usize) -> Self {
        self.key_origin = KeyOrigin::Shared(SharedKey::of(parties));
        self
    }

    /// The same parameters for keys that so many parties have made together, each with proofs of its shares.
    #[must_use]
    pub fn with_proven_parties(self, parties: usize) -> Self {
        let bound = KeyBound::proven(&self, parties);
        self.with_key_bound(bound)
    }

    /// The bound of keys of which only norms are known.
    #[must_use]
    pub const fn key_bound(&self) -> Option<KeyBound> {
        match self.key_origin {
            KeyOrigin::Bounded(bound) => Some(bound),
            KeyOrigin::Drawn | KeyOrigin::Shared(_) => None,
        }
    }

    /// What certificates take the keys to be.
    #[must_use]
    pub const fn key_origin(&self) -> KeyOrigin {
        self.key_origin
    }

    /// The same parameters for a scheme that bounds errors in this norm. It decides what [`Self::rounding_noise`] and
    /// [`Self::gadget_noise`] say, and is no part of the digest.
    #[must_use]
    pub const fn with_norm(mut self, norm: Norm) -> Self {
        self.norm = norm;
        self
    }

    /// The norm in which errors are bounded.
    #[must_use]
    pub const fn norm(&self) -> Norm {
        self.norm
    }

    /// Bits of the largest modulus that a key lives in: the product of q and P, or that of the second key's primes.
    #[must_use]
    pub fn log_qp(&self) -> u32 {
        self.checked.log_qp
    }

    /// Estimated bits of security of the least secure key: the one of the largest modulus, [`Self::log_qp`], or the sparse
    /// one, of which it is known only that it has 128 bits or (0 then) that nobody says so.
    #[must_use]
    pub fn security_bits(&self) -> f64 {
        let log_n = self.checked.ring.log_n();
        let uniform = security::estimate_bits(log_n, self.checked.log_qp);
        let known = |sparse: &SparseSet| {
            let bits = self.bits(&sparse.keyed()).unwrap_or(u32::MAX);
            Security::Bits128.check_sparse(log_n, sparse.weight, bits).map_or(0.0, |()| 128.0)
        };
        self.sparse().map_or(uniform, |sparse| uniform.min(known(sparse)))
    }

    /// Digest that binds objects to these parameters.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.checked.digest
    }

    /// Fails unless both are the same parameters.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`].
    pub fn require_digest(&self, other: &[u8; 32]) -> Result<(), Error> {
        if self.digest() == other {
            return Ok(());
        }
        Err(Error::ParamsDiffer { left: hex(self.digest()), right: hex(other) })
    }
}

/// The first bytes of an identifier, for messages.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn parse_multiple(text: &str) -> Result<BigUint, Error> {
    let value: BigUint =
        text.parse().map_err(|_| Error::params(format!("error multiple {text:?} is not a decimal number")))?;
    if value.is_zero() || value.bits() > 256 {
        return Err(Error::params(format!("the error multiple has {} bits; it must be 1..2^256", value.bits())));
    }
    Ok(value)
}
