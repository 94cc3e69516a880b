//! Parameters from a description: the smallest secure degree whose certificate survives the circuit described.
//!
//! A candidate is judged by a dry run: the scheme's own evaluator runs the circuit on the [`Dry`] backend, which holds
//! no data, and every certificate that real data would get decides. Nothing here repeats a noise formula.

mod circuit;
mod exact;
mod limit;
pub mod look_ahead;
mod memory;
mod prediction;
mod real;
mod search;
mod shape;
pub mod static_bgv;
pub(crate) mod trace;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::codec::switch_key_bytes;
use synchromesh_rlwe::ring::Dry;
use synchromesh_rlwe::wire::{HEADER_BYTES, KeyId, TRAILER_BYTES};
use synchromesh_rlwe::{KeyPart, LevelPlans, Params, PrimeSwitching, Security, Source, SwitchPlan};

pub use self::limit::{Limit, Nearest};
pub use self::memory::Forecast;
use self::search::Found;
pub use self::trace::Node;
use self::trace::Traced;
use crate::cost::Profile;
use crate::error::{Error, Result};
use crate::rotations::Routes;
use crate::{bfv, bgv, ckks};

/// The format name in a plan file.
const FORMAT: &str = "synchromesh plan";
/// The newest version this library reads and the one it writes; 1 lacks budgets and composed rotations.
const VERSION: u32 = 2;

/// Bits of precision where none are asked for.
const PRECISION: u32 = 20;

/// Widths of the widest prime that plans have.
const WIDTHS: std::ops::RangeInclusive<u32> = 30..=60;

/// Most nodes of a circuit that a plan lists.
pub const MOST_NODES: usize = 4096;

/// Which scheme a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemeName {
    /// Exact, message in the high bits.
    Bfv,
    /// Exact, message in the low bits.
    Bgv,
    /// Approximate, real or complex slots.
    Ckks,
}

impl SchemeName {
    /// "bfv", "bgv" or "ckks".
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bfv => "bfv",
            Self::Bgv => "bgv",
            Self::Ckks => "ckks",
        }
    }
}

/// What shall be computed: `depth` multiplications after one another, each operand a sum of `additions` + 1
/// ciphertexts, one of them rotated when there are rotations, and such a sum at the end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The scheme.
    pub scheme: SchemeName,
    /// Plaintext modulus of BFV and BGV, decimal or `0x` hexadecimal, 2 to 256 bits; none: 65537.
    pub t: Option<String>,
    /// CKKS: results shall be within 2^-precision for inputs of absolute value 1; none: 20.
    pub precision: Option<u32>,
    /// Multiplications after one another.
    pub depth: usize,
    /// Additions before each multiplication and at the end.
    pub additions: usize,
    /// Rotations to make keys for, to the left.
    pub rotations: Vec<i64>,
    /// Whether to make the key that swaps rows (BFV, BGV) or conjugates (CKKS).
    pub swap: bool,
    /// Least number of slots; 0: any.
    pub min_slots: usize,
    /// Required security.
    pub security: Security,
    /// Most bytes all evaluation keys may have on the wire. Where a key for each rotation takes more, rotations are
    /// composed from fewer keys.
    pub max_key_bytes: Option<u64>,
    /// Most bytes of the host's memory, as [`Forecast`] counts them.
    #[serde(default)]
    pub max_memory_bytes: Option<u64>,
    /// Widest prime in bits, 30 to 60; none: 50, or with a machine profile the faster of 50 and 60.
    #[serde(default)]
    pub width: Option<u32>,
    /// Most digits of a key switch: a larger degree where a smaller one needs more.
    #[serde(default)]
    pub max_digits: Option<usize>,
    /// Mostly large primes and a few small ones, by this rule, where widths allow it; none: one width a level.
    #[serde(default)]
    pub prime_switching: Option<PrimeSwitching>,
    /// BGV: the levels of the static rule ([`static_bgv`]) in place of those with the fewest bits.
    #[serde(default)]
    pub static_levels: bool,
    /// Levels under the first secret key, counted from the top, where there shall be a second one; 0: one key.
    #[serde(default)]
    pub leading_levels: usize,
}

impl Description {
    /// A description of `depth` multiplications at 128-bit security, all else default.
    #[must_use]
    pub const fn new(scheme: SchemeName, depth: usize) -> Self {
        Self {
            scheme,
            t: None,
            precision: None,
            depth,
            additions: 0,
            rotations: Vec::new(),
            swap: false,
            min_slots: 0,
            security: Security::Bits128,
            max_key_bytes: None,
            max_memory_bytes: None,
            width: None,
            max_digits: None,
            prime_switching: None,
            static_levels: false,
            leading_levels: 0,
        }
    }

    /// Searches the parameters; the same on every machine.
    ///
    /// # Errors
    /// [`Error::NoPlan`] when no parameters of this library fit, with the limit and the nearest request that works;
    /// [`Error::PlainModulus`] for a plaintext modulus that cannot be used; [`Error::Params`] for numbers that no plan
    /// is made for.
    pub fn plan(&self) -> Result<Plan> {
        self.plan_for(None)
    }

    /// Searches the parameters that are fastest on the machine of `profile`: digits, width of the primes, prime
    /// switching, a second secret key and a larger degree with fewer digits, as far as the description leaves them open.
    ///
    /// # Errors
    /// As [`Self::plan`], and [`Error::Params`] when the profile lacks an operation.
    pub fn plan_for(&self, profile: Option<&Profile>) -> Result<Plan> {
        self.check()?;
        profile.map_or_else(|| self.plan_at(None), |profile| prediction::fastest(self, profile))
    }

    /// The plan with primes of the width described.
    fn plan_at(&self, profile: Option<&Profile>) -> Result<Plan> {
        match self.found(profile)? {
            Ok(found) => {
                let mut plan = Plan::new(self, found);
                if let Some(profile) = profile {
                    plan.predict(profile)?;
                }
                Ok(plan)
            }
            Err(search::Refusal { limit, reason, least }) => Err(self.refused(limit, reason, least)),
        }
    }

    /// The search of the scheme described.
    fn found(&self, profile: Option<&Profile>) -> Result<std::result::Result<Found, search::Refusal>> {
        match self.scheme {
            SchemeName::Bfv => search::search(&exact::Exact::<bfv::Bfv>::new(self)?, self, profile),
            SchemeName::Bgv => search::search(&exact::Exact::<bgv::Bgv>::new(self)?, self, profile),
            SchemeName::Ckks => search::search(&real::Real::new(self), self, profile),
        }
    }

    /// Widest prime in bits.
    fn width(&self) -> u32 {
        self.width.unwrap_or(shape::WIDTH)
    }

    /// Whether slots are rotated or swapped.
    fn rotates(&self) -> bool {
        !self.rotations.is_empty() || self.swap
    }
}

/// The checked literal of a scheme, with its primes listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SchemeParams {
    /// BFV.
    Bfv(bfv::ParamsLiteral),
    /// BGV.
    Bgv(bgv::ParamsLiteral),
    /// CKKS.
    Ckks(ckks::ParamsLiteral),
}

impl SchemeParams {
    /// Builds the parameters, which checks primes, levels and security.
    ///
    /// # Errors
    /// As the schemes' own constructors.
    pub fn check(&self) -> Result<(Params, SwitchPlan)> {
        Ok(match self {
            Self::Bfv(literal) => {
                let params = bfv::Params::new(literal.clone())?;
                (params.rlwe().clone(), params.plan().clone())
            }
            Self::Bgv(literal) => {
                let params = bgv::Params::new(literal.clone())?;
                (params.rlwe().clone(), params.plan().clone())
            }
            Self::Ckks(literal) => {
                let params = ckks::Params::new(literal.clone())?;
                (params.rlwe().clone(), params.plan().clone())
            }
        })
    }
}

/// How one level switches keys.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LevelSwitch {
    /// The level.
    pub level: usize,
    /// "ghs" for one digit, "hybrid" for more.
    pub method: String,
    /// Digits at this level.
    pub omega: usize,
    /// Primes in the largest digit.
    pub digit_primes: usize,
    /// Width of the widest prime in bits.
    pub width: u32,
    /// Digits of the key in an extended ring, where the inner product is computed in one (double decomposition and
    /// linear key switching); the key at rest is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omega2: Option<usize>,
    /// Predicted milliseconds of one relinearisation; none without a machine profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// Parameters with what they cost and why they were chosen; a file that key generation accepts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Always "synchromesh plan".
    pub format: String,
    /// Version of the schema.
    pub version: u32,
    /// The scheme.
    pub scheme: SchemeName,
    /// log2 of the ring degree N.
    pub log_n: u32,
    /// Slots: N for BFV and BGV where t allows them (else 0), N/2 for CKKS.
    pub slots: usize,
    /// Widths of the ciphertext primes in bits.
    pub q_bits: Vec<u32>,
    /// Widths of the special primes in bits.
    pub p_bits: Vec<u32>,
    /// Bits of the product of all primes of a key.
    pub log_qp: u32,
    /// Estimated security.
    pub security_bits: f64,
    /// Multiplications after one another.
    pub depth: usize,
    /// Rotations that can be made.
    pub rotations: Vec<i64>,
    /// Which rotations keys are made for, and how the others are composed; none: a key for each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routes: Option<Routes>,
    /// Whether the key that swaps rows or conjugates is made.
    pub swap: bool,
    /// Bytes of all evaluation keys on the wire, seeds in place of their uniform halves.
    pub key_bytes: u64,
    /// Bytes of temporary memory of one key switch at the top level.
    pub scratch_bytes: u64,
    /// Memory of the host while the keys are held and the circuit runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Forecast>,
    /// What the security is claimed against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_model: Option<String>,
    /// Predicted milliseconds of one multiplication; none without a machine profile.
    pub predicted_ms: Option<f64>,
    /// Predicted milliseconds of the circuit, its [`Self::nodes`] together; none without a machine profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_ms: Option<f64>,
    /// log2 of the failure probability of a decryption.
    pub log2_p_fail: f64,
    /// Key switching at each level, lowest first.
    pub switch: Vec<LevelSwitch>,
    /// Why each choice was made.
    pub explain: Vec<String>,
    /// The ciphertexts that the circuit makes, in order: of a description its circuit, else the caller's function; the
    /// first [`MOST_NODES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<Node>,
    #[serde(skip)]
    traced: Traced,
    /// The parameters.
    pub params: SchemeParams,
}

impl Plan {
    fn new(description: &Description, found: Found) -> Self {
        let Found { params, rlwe, switch, slots, routes, key_bytes, memory, traced, explain } = found;
        let widths = |set: &synchromesh_rlwe::ring::IndexSet| -> Vec<u32> {
            set.iter().map(|i| rlwe.ring().modulus(i).bits()).collect()
        };
        let n = rlwe.n();
        let limbs = rlwe.q().len() + rlwe.p().len();
        // Checked when the parameters were made.
        let second = SwitchPlan::second(&rlwe).ok().flatten();
        let at = |level: usize| match (&second, rlwe.second()) {
            (Some(plan), Some(set)) if level <= set.top_level => plan,
            _ => &switch,
        };
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            scheme: description.scheme,
            log_n: rlwe.ring().log_n(),
            slots,
            q_bits: widths(rlwe.q()),
            p_bits: widths(rlwe.p()),
            log_qp: rlwe.log_qp(),
            security_bits: rlwe.security_bits(),
            depth: description.depth,
            rotations: description.rotations.clone(),
            routes: Some(routes).filter(|routes| !routes.is_direct()),
            swap: description.swap,
            key_bytes,
            memory: Some(memory),
            cost_model: description.security.level().map(|_| description.security.model().name().to_owned()),
            scratch_bytes: (8 * n * ((switch.digits.len() + 2) * limbs + rlwe.q().len())) as u64,
            predicted_ms: None,
            circuit_ms: None,
            log2_p_fail: -f64::from(synchromesh_rlwe::noise::DEFAULT_LOG2_FAILURE),
            switch: (0..=rlwe.top_level()).filter_map(|level| level_switch(&rlwe, at(level), level)).collect(),
            explain,
            nodes: traced.nodes.clone(),
            traced,
            params,
        }
    }

    /// The parameters of a plan for BFV.
    ///
    /// # Errors
    /// [`Error::Params`] for a plan of another scheme, or as [`bfv::Params::new`].
    pub fn bfv(&self) -> Result<bfv::Params> {
        match &self.params {
            SchemeParams::Bfv(literal) => {
                let params = bfv::Params::new(literal.clone())?;
                let plans = self.level_plans(params.rlwe(), params.plan())?;
                plans.map_or_else(|| Ok(params.clone()), |plans| params.with_plans(plans))
            }
            _ => Err(self.other_scheme(SchemeName::Bfv)),
        }
    }

    /// The parameters of a plan for BGV.
    ///
    /// # Errors
    /// [`Error::Params`] for a plan of another scheme, or as [`bgv::Params::new`].
    pub fn bgv(&self) -> Result<bgv::Params> {
        match &self.params {
            SchemeParams::Bgv(literal) => {
                let params = bgv::Params::new(literal.clone())?;
                let plans = self.level_plans(params.rlwe(), params.plan())?;
                plans.map_or_else(|| Ok(params.clone()), |plans| params.with_plans(plans))
            }
            _ => Err(self.other_scheme(SchemeName::Bgv)),
        }
    }

    /// The parameters of a plan for CKKS.
    ///
    /// # Errors
    /// [`Error::Params`] for a plan of another scheme, or as [`ckks::Params::new`].
    pub fn ckks(&self) -> Result<ckks::Params> {
        match &self.params {
            SchemeParams::Ckks(literal) => {
                let params = ckks::Params::new(literal.clone())?;
                let plans = self.level_plans(params.rlwe(), params.plan())?;
                plans.map_or_else(|| Ok(params.clone()), |plans| params.with_plans(plans))
            }
            _ => Err(self.other_scheme(SchemeName::Ckks)),
        }
    }

    fn other_scheme(&self, wanted: SchemeName) -> Error {
        Error::params(format!("the plan is for {}, not for {}", self.scheme.name(), wanted.name()))
    }

    /// How keys are switched at each level, where levels differ in more than what is left of one plan.
    fn level_plans(&self, params: &Params, plan: &SwitchPlan) -> Result<Option<LevelPlans>> {
        if self.switch.iter().all(|switch| switch.omega2.is_none()) {
            return Ok(None);
        }
        let at = |level: usize| -> Result<SwitchPlan> {
            match self.switch.iter().find(|switch| switch.level == level).and_then(|switch| switch.omega2) {
                None => Ok(plan.clone()),
                Some(omega2) => extended(params, plan, level, omega2),
            }
        };
        let plans = (0..=params.top_level()).map(at).collect::<Result<_>>()?;
        Ok(Some(LevelPlans::new(params, plans)?))
    }

    /// The rotations that keys are made for.
    #[must_use]
    pub fn rotation_keys(&self) -> &[i64] {
        self.routes.as_ref().map_or(&self.rotations, Routes::keys)
    }

    /// The plan as JSON.
    ///
    /// # Errors
    /// [`Error::Params`] when it cannot be written, which no plan made here causes.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::params(e.to_string()))
    }

    /// Reads a plan and checks its parameters.
    ///
    /// # Errors
    /// [`Error::Params`] for text that is no plan or of a newer version, and as [`SchemeParams::check`].
    pub fn from_json(text: &str) -> Result<Self> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| Error::params(format!("the plan is no JSON: {e}")))?;
        if value["format"] != FORMAT {
            return Err(Error::params(format!("this is no plan: its format is {}, not {FORMAT:?}", value["format"])));
        }
        let version = value["version"].as_u64().unwrap_or(0);
        if !(1..=u64::from(VERSION)).contains(&version) {
            return Err(Error::params(format!("the plan has version {version}; this library reads 1 to {VERSION}")));
        }
        let plan: Self =
            serde_json::from_value(value).map_err(|e| Error::params(format!("the plan breaks its schema: {e}")))?;
        let (params, switch) = plan.params.check()?;
        plan.level_plans(&params, &switch)?;
        Ok(plan)
    }
}

fn level_switch(rlwe: &Params, plan: &SwitchPlan, level: usize) -> Option<LevelSwitch> {
    let primes = rlwe.level(level).ok()?;
    let digits = plan.active_digits(primes);
    Some(LevelSwitch {
        level,
        method: if digits.len() == 1 { "ghs" } else { "hybrid" }.to_owned(),
        omega: digits.len(),
        digit_primes: digits.iter().map(|(_, d)| d.len()).max().unwrap_or(0),
        width: primes.iter().map(|i| rlwe.ring().modulus(i).bits()).max().unwrap_or(0),
        omega2: None,
        predicted_ms: None,
    })
}

/// The plan with the inner products of a level in an extended ring, the key in so many digits there.
fn extended(params: &Params, plan: &SwitchPlan, level: usize, omega2: usize) -> Result<SwitchPlan> {
    let active = params.level(level)?;
    Ok(plan.clone().up_to(active).in_extended_ring_at(params, active, omega2)?)
}

/// Bytes of an object of `keys` evaluation keys on the wire, under both secret keys where there are two.
fn key_bytes(rlwe: &Params, switch: &SwitchPlan, keys: usize) -> Result<u64> {
    let all = |plan: &SwitchPlan| -> Result<[u64; 2]> {
        let part = KeyPart::whole(rlwe, plan.shape())?;
        let one = |source| switch_key_bytes(rlwe, source, &part);
        let rotations = keys.saturating_sub(1) as u64 * one(Source::Galois(3));
        Ok([one(Source::Square) + rotations, one(Source::Key(KeyId([0; 16])))])
    };
    let container = (HEADER_BYTES + TRAILER_BYTES + 4) as u64;
    // One key more brings ciphertexts under the second secret key; their number is counted again.
    let second = SwitchPlan::second(rlwe)?.map_or(Ok(0), |plan| Ok::<_, Error>(4 + all(&plan)?.iter().sum::<u64>()))?;
    Ok(container + all(switch)?[0] + second)
}

/// The dry backend for checked parameters.
fn dry(params: &Params) -> Dry {
    Dry::new(std::sync::Arc::clone(params.ring()))
}

/// Whether an error means "these parameters are too small", as opposed to a request that can never work.
const fn too_small(error: &Error) -> bool {
    matches!(
        error,
        Error::Rlwe(
            synchromesh_rlwe::Error::Noise { .. }
                | synchromesh_rlwe::Error::Level { .. }
                | synchromesh_rlwe::Error::Security(_)
        )
    )
}

/// The smallest value in `low..=high` that `fits`, which is monotone; none when even `high` does not.
fn smallest(low: u32, high: u32, mut fits: impl FnMut(u32) -> Result<bool>) -> Result<Option<u32>> {
    if low > high || !fits(high)? {
        return Ok(None);
    }
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if fits(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(Some(high))
}
