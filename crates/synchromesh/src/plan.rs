//! Parameters from a description: the smallest secure degree whose certificate survives the circuit described.
//!
//! A candidate is judged by a dry run: the scheme's own evaluator runs the circuit on the [`Dry`] backend, which holds
//! no data, and every certificate that real data would get decides. Nothing here repeats a noise formula.

pub mod bootstrap;
mod circuit;
mod derived;
mod exact;
mod holders;
mod inside;
pub(crate) mod key_bytes;
mod limit;
mod memory;
mod placement;
mod placing;
mod prediction;
mod real;
mod refreshing;
mod search;
mod shape;
pub mod static_bgv;
mod switches;
pub(crate) mod trace;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::noise::FailureLimit;
use synchromesh_rlwe::ring::Dry;
use synchromesh_rlwe::{LevelPlans, Params, PrimeSwitching, Security, SwitchPlan};

pub use self::inside::Inside;
pub use self::memory::Forecast;
pub use self::placing::Placed;
use self::search::Found;
pub use self::switches::LevelSwitch;
pub use self::trace::Node;
use self::trace::Traced;
use crate::ckks::bootstrap::{BootstrapLiteral, Messages};
use crate::cost::Profile;
use crate::error::{Error, Result};
pub use crate::error::{Limit, Nearest};
pub use crate::joint::Joint;
use crate::rotations::Routes;
pub use crate::scheme_name::SchemeName;
use crate::{bfv, bgv, ckks};

/// The format name in a plan file.
const FORMAT: &str = "synchromesh plan";
/// The newest version this library reads and the one it writes; 1 lacks budgets and composed rotations, 2 lacks merged
/// digits, parts of P and keys that are trimmed.
const VERSION: u32 = 3;

/// The plaintext modulus where none is named.
const DEFAULT_T: &str = "65537";

/// Bits of precision where none are asked for.
const PRECISION: u32 = 20;

/// Widths of the widest prime that plans have.
const WIDTHS: std::ops::RangeInclusive<u32> = 30..=60;

/// Largest rotation that a plan is made for, either way: more than any row has slots.
const MOST_ROTATION: u64 = 1 << 20;

/// Most nodes of a circuit that a plan lists.
pub const MOST_NODES: usize = 4096;

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
    /// The highest level at which slots are rotated or swapped, so that the keys for that are trimmed to it; none: any.
    #[serde(default)]
    pub rotation_level: Option<usize>,
    /// Rotations that will be asked for and are not listed yet, by whose keys degrees are weighed.
    #[serde(default)]
    pub expected_rotations: usize,
    /// CKKS: bits by which level 0 is wider than messages of absolute value 1 need, for results that are larger.
    #[serde(default)]
    pub headroom: u32,
    /// CKKS: bits by which scales are larger than the precision takes where squares follow one another, for circuits in which
    /// errors grow more.
    #[serde(default)]
    pub finer: u32,
    /// Ciphertexts are refreshed where levels, in BFV and BGV room for noise, run out: the depth is then that between two
    /// refreshes (0: those levels that take the least time each, in BFV and BGV one product). In CKKS this bounds messages,
    /// and the precision is what a refresh keeps. None: no refreshes.
    #[serde(default)]
    pub bootstrap: Option<f64>,
    /// What slots of messages may be that are refreshed.
    #[serde(default)]
    pub messages: Messages,
    /// The key is one that parties hold together: certificates are for such keys, and results have room for the noise of a
    /// decryption by all of them, of CKKS with the precision. None: one party holds the key.
    #[serde(default)]
    pub joint: Option<Joint>,
    /// The largest probability that a decryption goes wrong or, in CKKS, that an error exceeds what its certificate says.
    #[serde(default)]
    pub failure: FailureLimit,
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
            rotation_level: None,
            expected_rotations: 0,
            headroom: 0,
            finer: 0,
            bootstrap: None,
            messages: Messages::Complex,
            joint: None,
            failure: FailureLimit::Negligible,
        }
    }

    /// Searches the parameters; the same on every machine.
    ///
    /// # Errors
    /// [`Error::NoPlan`] when no parameters of this library fit, with the limit and the nearest request that works;
    /// [`Error::PlainModulus`] for a plaintext modulus that cannot be used; [`Error::Request`] for numbers that no plan
    /// is made for.
    pub fn plan(&self) -> Result<Plan> {
        self.plan_for(None)
    }

    /// Searches the parameters that are fastest on the machine of `profile`: digits, width of the primes, prime
    /// switching, a second secret key and a larger degree with fewer digits, as far as the description leaves them open.
    ///
    /// # Errors
    /// As [`Self::plan`], and [`Error::Format`] when the profile lacks an operation.
    pub fn plan_for(&self, profile: Option<&Profile>) -> Result<Plan> {
        self.check()?;
        match profile {
            Some(profile) if self.bootstrap.is_none() => prediction::fastest(self, profile),
            _ => self.plan_at(profile),
        }
    }

    /// The plan with primes of the width described.
    fn plan_at(&self, profile: Option<&Profile>) -> Result<Plan> {
        if let Some(bound) = self.bootstrap {
            return self.plan_refreshing(bound, profile);
        }
        match self.found(profile)? {
            Ok(found) => {
                let mut plan = Plan::new(self, found);
                if let Some(profile) = profile {
                    plan.predict(profile)?;
                }
                Ok(plan)
            }
            Err(refusal) => Err(self.refused(refusal)),
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

    /// Whether they are rotated at this level.
    fn rotates_at(&self, level: usize) -> bool {
        !self.rotations.is_empty() && self.rotation_level.is_none_or(|highest| level <= highest)
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
        let (params, plans) = self.plans()?;
        let plan = plans.at(params.top_level()).clone();
        Ok((params, plan))
    }

    /// As [`Self::check`], with how keys are switched at each level unless told otherwise.
    fn plans(&self) -> Result<(Params, LevelPlans)> {
        Ok(match self {
            Self::Bfv(literal) => {
                let params = bfv::Params::new(literal.clone())?;
                (params.rlwe().clone(), params.plans().clone())
            }
            Self::Bgv(literal) => {
                let params = bgv::Params::new(literal.clone())?;
                (params.rlwe().clone(), params.plans().clone())
            }
            Self::Ckks(literal) => {
                let params = ckks::Params::new(literal.clone())?;
                (params.rlwe().clone(), params.plans().clone())
            }
        })
    }
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
    /// The highest level at which slots are rotated or swapped: the keys for that are trimmed to it; none: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_level: Option<usize>,
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
    /// Threads for which times are predicted: those that the profile was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_threads: Option<usize>,
    /// Predicted milliseconds of the circuit, its [`Self::nodes`] together; none without a machine profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_ms: Option<f64>,
    /// log2 of the largest probability that a decryption fails, or in CKKS that an error exceeds its certificate: -128, -64
    /// or -40.
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
    /// How ciphertexts of CKKS are refreshed; none: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<BootstrapLiteral>,
    /// How ciphertexts of BFV and BGV are refreshed; none: not at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<Inside>,
    /// Who holds the key together; none: one party holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joint: Option<Joint>,
    /// Values of the circuit that are refreshed before something takes them; where a circuit lacks levels beside these,
    /// what lacks them is refreshed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refreshes: Vec<Placed>,
    /// The parameters.
    pub params: SchemeParams,
}

impl Plan {
    fn new(description: &Description, found: Found) -> Self {
        let Found { params, rlwe, switch, slots, routes, key_bytes, memory, traced, explain } = found;
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            scheme: description.scheme,
            log_n: rlwe.ring().log_n(),
            slots,
            q_bits: derived::widths(&rlwe, rlwe.q()),
            p_bits: derived::widths(&rlwe, rlwe.p()),
            log_qp: rlwe.log_qp(),
            security_bits: rlwe.security_bits(),
            depth: description.depth,
            rotations: description.rotations.clone(),
            routes: Some(routes).filter(|routes| !routes.is_direct()),
            swap: description.swap,
            rotation_level: description.rotation_level,
            key_bytes,
            memory: Some(memory),
            cost_model: derived::cost_model(&rlwe),
            scratch_bytes: derived::scratch_bytes(&rlwe, &switch),
            predicted_ms: None,
            predicted_threads: None,
            circuit_ms: None,
            log2_p_fail: derived::log2_p_fail(description.failure),
            switch: switches::described(&rlwe, &switch.clone().into()),
            explain,
            nodes: traced.nodes.clone(),
            traced,
            bootstrap: None,
            inside: None,
            joint: description.joint,
            refreshes: Vec::new(),
            params,
        }
    }

    /// The parameters of a plan for BFV.
    ///
    /// # Errors
    /// [`Error::Argument`] for a plan of another scheme, or as [`bfv::Params::new`].
    pub fn bfv(&self) -> Result<bfv::Params> {
        self.exact()
    }

    /// The parameters of a plan for BGV.
    ///
    /// # Errors
    /// [`Error::Argument`] for a plan of another scheme, or as [`bgv::Params::new`].
    pub fn bgv(&self) -> Result<bgv::Params> {
        self.exact()
    }

    /// The parameters of a plan for BFV or BGV.
    pub(crate) fn exact<S: crate::exact::Scheme>(&self) -> Result<crate::exact::Params<S>> {
        match &self.params {
            SchemeParams::Bfv(literal) | SchemeParams::Bgv(literal) if self.params.scheme() == S::SCHEME => {
                let params = crate::exact::Params::new(literal.clone())?.with_failure_limit(self.failure_limit());
                let params = self.joint.map_or(params.clone(), |joint| params.with_joint(&joint));
                let plans = self.level_plans(params.rlwe(), params.plans())?;
                plans.map_or_else(|| Ok(params.clone()), |plans| params.with_plans(plans))
            }
            _ => Err(self.other_scheme(S::SCHEME)),
        }
    }

    /// The parameters of a plan for CKKS.
    ///
    /// # Errors
    /// [`Error::Argument`] for a plan of another scheme, or as [`ckks::Params::new`].
    pub fn ckks(&self) -> Result<ckks::Params> {
        match &self.params {
            SchemeParams::Ckks(literal) => {
                let params = ckks::Params::new(literal.clone())?.with_failure_limit(self.failure_limit());
                let params = self.joint.map_or(params.clone(), |joint| params.with_joint(&joint));
                let plans = self.level_plans(params.rlwe(), params.plans())?;
                plans.map_or_else(|| Ok(params.clone()), |plans| params.with_plans(plans))
            }
            _ => Err(self.other_scheme(SchemeName::Ckks)),
        }
    }

    /// The parameters for keys as this plan has them, with how keys are switched unless told otherwise.
    fn plans(&self) -> Result<(Params, LevelPlans)> {
        let (params, plans) = self.params.plans()?;
        Ok((self.joint.map_or(params.clone(), |joint| joint.params(params)), plans))
    }

    fn other_scheme(&self, wanted: SchemeName) -> Error {
        Error::argument(format!("the plan is for {}, not for {}", self.scheme.name(), wanted.name()))
    }

    /// The largest probability of a wrong decryption under the plan's parameters.
    #[must_use]
    pub fn failure_limit(&self) -> FailureLimit {
        FailureLimit::ALL.into_iter().find(|&limit| derived::log2_p_fail(limit) == self.log2_p_fail).unwrap_or_default()
    }

    /// The rotations that keys are made for.
    #[must_use]
    pub fn rotation_keys(&self) -> &[i64] {
        self.routes.as_ref().map_or(&self.rotations, Routes::keys)
    }

    /// The plan as JSON.
    ///
    /// # Errors
    /// [`Error::Format`] when it cannot be written, which no plan made here causes.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self).map_err(|e| Error::format(e.to_string()))
    }

    /// The plan without what was said of its choices and of its circuit, which ciphertexts take along.
    #[must_use]
    pub fn bare(&self) -> Self {
        let (explain, nodes, refreshes) = (Vec::new(), Vec::new(), Vec::new());
        Self { explain, nodes, refreshes, circuit_ms: None, traced: Traced::default(), ..self.clone() }
    }

    /// Reads a plan, checks its parameters, and holds everything else that it says against them; what older versions do
    /// not say is computed.
    ///
    /// # Errors
    /// [`Error::Format`] for text that is no plan or of a newer version, as [`SchemeParams::check`], and
    /// [`Error::PlanField`] for a field that the parameters do not bear out.
    pub fn from_json(text: &str) -> Result<Self> {
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| Error::format(format!("the plan is no JSON: {e}")))?;
        if value["format"] != FORMAT {
            return Err(Error::format(format!("this is no plan: its format is {}, not {FORMAT:?}", value["format"])));
        }
        let version = value["version"].as_u64().unwrap_or(0);
        if !(1..=u64::from(VERSION)).contains(&version) {
            return Err(Error::format(format!("the plan has version {version}; this library reads 1 to {VERSION}")));
        }
        let mut plan: Self =
            serde_json::from_value(value).map_err(|e| Error::format(format!("the plan breaks its schema: {e}")))?;
        if let Some(joint) = &plan.joint {
            joint.check()?;
        }
        let (params, plans) = plan.plans()?;
        plan.check_switches(&params, &plans)?;
        plan.rotation_part(&params, &plans)?;
        plan.check_derived(&params, &plans)?;
        Ok(plan)
    }
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
    bisect(low, high, fits).map(Some)
}

/// As [`smallest`], in few trials where it is near `guess`: in steps that double away from there.
fn smallest_near(guess: u32, low: u32, high: u32, mut fits: impl FnMut(u32) -> Result<bool>) -> Result<Option<u32>> {
    if low > high {
        return Ok(None);
    }
    let (mut low, mut at, mut step) = (low, guess.clamp(low, high), 1);
    while !fits(at)? {
        if at == high {
            return Ok(None);
        }
        (low, at, step) = (at + 1, at.saturating_add(step).min(high), 2 * step);
    }
    let (mut fitting, mut step) = (at, 1);
    while fitting > low {
        let below = fitting.saturating_sub(step).max(low);
        if !fits(below)? {
            low = below + 1;
            break;
        }
        (fitting, step) = (below, 2 * step);
    }
    bisect(low, fitting, fits).map(Some)
}

/// The smallest value in `low..=fitting` that `fits`.
fn bisect(mut low: u32, mut fitting: u32, mut fits: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    while low < fitting {
        let middle = low + (fitting - low) / 2;
        if fits(middle)? {
            fitting = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_fits_is_found_from_any_guess() {
        for least in 0..=21u32 {
            let expected = (least <= 20).then_some(least.max(3));
            assert_eq!(smallest(3, 20, |x| Ok(x >= least)).unwrap(), expected);
            for guess in 0..25 {
                let mut trials = 0;
                let found = smallest_near(guess, 3, 20, |x| {
                    trials += 1;
                    assert!((3..=20).contains(&x));
                    Ok(x >= least)
                });
                assert_eq!(found.unwrap(), expected, "from {guess}");
                assert!(trials <= 2 || guess.clamp(3, 20) != least.max(3), "{trials} trials from the right guess");
            }
        }
        assert_eq!(
            (smallest(5, 4, |_| Ok(true)).unwrap(), smallest_near(5, 5, 4, |_| Ok(true)).unwrap()),
            (None, None)
        );
    }
}
