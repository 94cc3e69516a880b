//! Parameters for bootstrapping, found from what it is to do.

mod exact;
mod forecast;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Security;

use crate::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Chain, Messages, NARROW, Sine, WIDEST};
use crate::ckks::{Params, ParamsLiteral};
use crate::cost::Profile;
use crate::error::{Error, Result};

pub use exact::{ExactBootstrapRequest, ExactForecast, ExactFound};
pub use forecast::{RefreshForecast, StageForecast};

/// The sparse secret's coefficients that are not 0.
const WEIGHT: usize = 32;

/// The widest level 0, in bits.
const BASE_BITS: u32 = 60;

/// log2 of the largest scale of the levels between two refreshes: wider ones than a prime have two.
const WIDEST_SCALE: u32 = 90;

/// Widths of level 0 that are tried: a narrower one, with narrower levels of SlotsToCoeffs, where the modulus is dear.
const BASES: [u32; 8] = [BASE_BITS, 52, 50, 49, 48, 47, 45, 43];

/// log2 of the scales of the levels inside: of one prime each, and where that is not precise enough of two.
const UP: [std::ops::RangeInclusive<u32>; 2] = [42..=60, 61..=76];

/// Widest primes of the levels inside, in bits.
const PRIMES: std::ops::RangeInclusive<u32> = 30..=WIDEST;

/// Digits of a key switch while scales are looked for.
const TYPICAL_DIGITS: usize = 6;

/// Digits of a key switch.
const DIGITS: std::ops::RangeInclusive<usize> = 2..=12;

/// Layers of a map of SlotsToCoeffs and CoeffsToSlots, at most: 63 diagonals, or 255 where levels are dear.
const LAYERS: [usize; 2] = [5, 7];

/// log2 of the least scale of SlotsToCoeffs' levels.
const LEAST_DOWN: u32 = 28;

/// Bits of the prime between SlotsToCoeffs and the levels above, at the least.
const NARROWEST: i32 = 24;

/// Levels between two refreshes, at most.
const MOST_LEVELS: usize = 64;

/// log2 of level 0's modulus over the message bound.
const RATIO: std::ops::RangeInclusive<u32> = 1..=30;

/// log2 of the ring degree.
const LOG_N: std::ops::RangeInclusive<u32> = 8..=18;

/// What bootstrapping is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootstrapRequest {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// log2 of the scale of the levels between two refreshes.
    pub log_scale: u32,
    /// Bits that the certificate of a refreshed message leaves: log2 of the message bound over what a slot is off by.
    pub precision: u32,
    /// log2 of level 0's modulus over the message bound ([`BootstrapLiteral::ratio_bits`]); none: as little as the sine's bend
    /// lets, 6.6 / 4^ratio. The certificate is careful with noise and exact with that: a bit more costs a bit at each level
    /// inside, and leaves two bits less of bend where noise is far below its bound.
    #[serde(default)]
    pub ratio_bits: Option<u32>,
    /// Levels between two refreshes; none: as many as security leaves with the widest level 0 that leaves any.
    #[serde(default)]
    pub levels: Option<usize>,
    /// What slots of messages may be: of real ones a refresh takes less time.
    #[serde(default)]
    pub messages: Messages,
    /// Slots after which messages repeat ([`BootstrapLiteral::slots`]); none: all slots.
    #[serde(default)]
    pub slots: Option<usize>,
    /// No slot of a message exceeds this.
    pub message_bound: f64,
    /// Baby steps of each map; none: as many as are fastest.
    #[serde(default)]
    pub baby_steps: Option<usize>,
    /// Digits of a key switch; none: the number that a profile says is fastest, without one the fewest that fit. Fewer make
    /// smaller keys, and wider special primes, which all levels pay for.
    #[serde(default)]
    pub digits: Option<usize>,
    /// Widest prime of the levels of EvalMod and CoeffsToSlots, 30 to 60 bits: with up to 49, levels that are wider share more
    /// primes, each of which a processor is done with sooner ([`Chain::widest`]); a graphics card is as fast with wide ones.
    /// None: 49, or what a profile says is faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widest: Option<u32>,
    /// Rounds of a refresh, each of which takes as long as one alone, for more precision: that of messages from one level above
    /// the lowest on, where scales have room for it.
    #[serde(default = "crate::ckks::bootstrap::one")]
    pub rounds: u32,
    /// Required security.
    pub security: Security,
}

/// Parameters that were found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// The ring, its primes and keys.
    pub params: ParamsLiteral,
    /// What is done in them.
    pub bootstrap: BootstrapLiteral,
    /// What a refresh will be like.
    pub forecast: RefreshForecast,
}

impl BootstrapRequest {
    /// All slots of complex messages of at most 1, in one round at 128 bits of security, with everything else left open.
    #[must_use]
    pub const fn new(log_n: u32, log_scale: u32, precision: u32) -> Self {
        Self {
            log_n,
            log_scale,
            precision,
            ratio_bits: None,
            levels: None,
            messages: Messages::Complex,
            slots: None,
            message_bound: 1.0,
            baby_steps: None,
            digits: None,
            widest: None,
            rounds: 1,
            security: Security::Bits128,
        }
    }

    /// The smallest scales of the levels inside that keep the precision, then as many levels between refreshes as are asked
    /// for or fit, and the digits of a key switch that are asked for or as few as fit with them.
    ///
    /// # Errors
    /// [`Error::Request`] for a number out of its range, and where nothing serves, with what comes nearest;
    /// [`Profile::seconds`].
    pub fn find(&self, profile: Option<&Profile>) -> Result<Found> {
        self.check()?;
        let mut nearest: Option<RefreshForecast> = None;
        for (base, layers) in BASES.into_iter().flat_map(|base| LAYERS.map(|layers| (base, layers))) {
            let mut levels = self.levels.unwrap_or(1);
            while let Some(sizes) = self.sizes(base, layers, levels, &mut nearest)? {
                // The fewest digits, or those that a profile says are fastest: fewer digits take wider special primes.
                let mut best: Option<Found> = None;
                let mut most = 0;
                for (params, bootstrap) in self.fitted(&sizes, profile.is_some())? {
                    let forecast = bootstrap.forecast(profile)?;
                    most = most.max(forecast.usable_levels);
                    if !self.is_precise(&forecast) {
                        keep_nearest(&mut nearest, forecast);
                    } else if best.as_ref().is_none_or(|best| forecast.seconds < best.forecast.seconds) {
                        best = Some(Found { params, bootstrap: sizes.literal.clone(), forecast });
                    }
                }
                if let Some(found) = best {
                    return Ok(found);
                }
                // A longer chain has more noise: sizes for so many levels have room for it.
                if most <= levels {
                    break;
                }
                levels = most;
            }
        }
        let levels = self.levels.map_or_else(String::new, |levels| format!(" and {levels} levels between refreshes"));
        let found = nearest.map_or_else(
            || "no parameters serve".to_owned(),
            |near| format!("{:.1} bits and {} levels come nearest", near.precision_bits, near.usable_levels),
        );
        Err(Error::request(format!(
            "bootstrapping at N = 2^{} with {} bits of precision at a scale of 2^{}{levels}: {found}",
            self.log_n, self.precision, self.log_scale
        )))
    }

    /// Every number within its range.
    fn check(&self) -> Result<()> {
        let refused = |what: String| Err(Error::request(what));
        let widths = 1..=BASE_BITS;
        let (most, least) = (LOG_N.end(), LOG_N.start());
        if !LOG_N.contains(&self.log_n) {
            return refused(format!("bootstrapping at N = 2^{}: from 2^{least} to 2^{most}", self.log_n));
        }
        if !widths.contains(&self.precision) {
            return refused(format!("a precision of {} bits: from 1 to {BASE_BITS}", self.precision));
        }
        if !(1..=WIDEST_SCALE).contains(&self.log_scale) {
            return refused(format!("a scale of 2^{}: from 2^1 to 2^{WIDEST_SCALE}", self.log_scale));
        }
        if let Some(ratio) = self.ratio_bits.filter(|ratio| !RATIO.contains(ratio)) {
            let (least, most) = (RATIO.start(), RATIO.end());
            return refused(format!("a ratio of 2^{ratio} to the message bound: from 2^{least} to 2^{most}"));
        }
        if let Some(levels) = self.levels.filter(|levels| !(1..=MOST_LEVELS).contains(levels)) {
            return refused(format!("{levels} levels between two refreshes: from 1 to {MOST_LEVELS}"));
        }
        if !(self.message_bound.is_finite() && self.message_bound > 0.0) {
            return refused(format!("messages bounded by {}: a positive number bounds them", self.message_bound));
        }
        if let Some(steps) = self.baby_steps.filter(|steps| !steps.is_power_of_two()) {
            return refused(format!("{steps} baby steps: a power of two of them divides the steps of a map"));
        }
        if let Some(digits) = self.digits.filter(|digits| !DIGITS.contains(digits)) {
            let (least, most) = (DIGITS.start(), DIGITS.end());
            return refused(format!("{digits} digits of a key switch: from {least} to {most}"));
        }
        if let Some(widest) = self.widest.filter(|widest| !PRIMES.contains(widest)) {
            let (least, most) = (PRIMES.start(), PRIMES.end());
            return refused(format!("primes of at most {widest} bits: from {least} to {most}"));
        }
        let all = 1usize << (self.log_n - 1);
        if !(self.slots().is_power_of_two() && (2..=all).contains(&self.slots())) {
            return refused(format!(
                "messages that repeat after {} slots: a power of two from 2 to {all}",
                self.slots()
            ));
        }
        if self.security == Security::Insecure && self.levels.is_none() {
            return refused("without security there is no most number of levels: say how many there are to be".into());
        }
        Ok(())
    }

    /// Slots of a message, those after which it repeats.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots.unwrap_or(1 << self.log_n.saturating_sub(1))
    }

    fn is_precise(&self, forecast: &RefreshForecast) -> bool {
        forecast.precision_bits >= f64::from(self.precision)
    }

    /// The smallest scales that keep the precision with maps of so many layers and so many levels between two refreshes: first
    /// of EvalMod and CoeffsToSlots, whose levels are more, then of SlotsToCoeffs. Precision grows with both.
    fn sizes(
        &self,
        base: u32,
        layers: usize,
        levels: usize,
        nearest: &mut Option<RefreshForecast>,
    ) -> Result<Option<Sizes>> {
        let Some(sizes) = self.largest(base, layers)? else { return Ok(None) };
        let mut keeps = |down: u32, up: u32| -> Result<bool> {
            let tried = sizes.with(down, up);
            let usable = levels + sizes.own_levels();
            // Whether security has room for them is asked of those that are found.
            let chain = Chain { usable, omega: TYPICAL_DIGITS, security: Security::Insecure, ..tried.chain };
            let Some((_, bootstrap)) = tried.params(&chain)? else { return Ok(false) };
            let Some(forecast) = room(bootstrap.forecast(None))? else { return Ok(false) };
            let precise = self.is_precise(&forecast);
            keep_nearest(nearest, forecast);
            Ok(precise)
        };
        let highest = sizes.chain.log_scale_down;
        // A narrower level 0 is for where the modulus is dear.
        let mut up = least(UP[0].clone(), |up| keeps(highest, up))?;
        if up.is_none() && base == BASE_BITS {
            up = least(UP[1].clone(), |up| keeps(highest, up))?;
        }
        let Some(up) = up else { return Ok(None) };
        let down = least(LEAST_DOWN.min(highest)..=highest, |down| keeps(down, up))?;
        Ok(down.map(|down| sizes.with(down, up)))
    }

    /// The choices with a level 0 of so many bits and maps of so many layers, at the largest scales.
    fn largest(&self, base: u32, layers: usize) -> Result<Option<Sizes>> {
        let all = self.slots().trailing_zeros();
        let maps = (all as usize).div_ceil(layers).max(1);
        // The sine bends by 6.6 / 4^ratio in both parts: an eighth of what is allowed.
        let each = self.precision.div_ceil(self.rounds.max(1)) + u32::from(self.rounds > 1);
        let ratio_bits = self.ratio_bits.unwrap_or_else(|| (each + 7).div_ceil(2));
        let most = (1.0 + WEIGHT as f64) / 2.0;
        let size = f64::from(ratio_bits + 1).exp2() / std::f64::consts::TAU;
        let error = f64::from(each + 4).exp2().recip();
        let Some((degree, doublings, eval_mod)) = Sine::cheapest(most, size, error)? else { return Ok(None) };
        let literal = BootstrapLiteral {
            slots_to_coeffs: maps,
            coeffs_to_slots: maps,
            baby_steps: self.baby_steps,
            degree,
            doublings,
            messages: self.messages,
            slots: self.slots,
            message_bound: self.message_bound,
            ratio_bits,
            rounds: self.rounds,
        };
        let bound = self.message_bound.log2().ceil().clamp(-60.0, 60.0) as i32;
        let above = ratio_bits as i32 + bound;
        // The prime between SlotsToCoeffs and the levels above has twice the bits of these less its own.
        let follows = 2 * self.log_scale as i32 - NARROWEST;
        let log_scale_down = (base as i32 - above).min(follows).clamp(1, base as i32) as u32;
        let chain = Chain {
            log_n: self.log_n,
            log_scale: self.log_scale,
            usable: 0,
            base_bits: base,
            log_scale_down,
            log_scale_up: *UP[0].end(),
            widest: self.widest.unwrap_or(NARROW),
            omega: 1,
            weight: WEIGHT,
            security: self.security,
        };
        Ok(Some(Sizes { chain, literal, eval_mod }))
    }

    /// The parameters of these sizes with the levels asked for, or as many as there can be: with the digits asked for, the
    /// fewest, or every number of them that fits, with narrow and with wide primes.
    fn fitted(&self, sizes: &Sizes, every: bool) -> Result<Vec<(ParamsLiteral, Bootstrap)>> {
        let mut fitted = Vec::new();
        let limit = self.security.max_log_qp(self.log_n);
        let levels = self.levels.map_or(1..=MOST_LEVELS, |levels| levels..=levels);
        let digits = match self.digits {
            Some(digits) => digits..=digits,
            None if self.security == Security::Insecure => 4..=4,
            None => DIGITS,
        };
        let both = every && self.widest.is_none();
        let widths = if both { &[NARROW, WIDEST][..] } else { std::slice::from_ref(&sizes.chain.widest) };
        for usable in levels.rev() {
            for (omega, &widest) in digits.clone().flat_map(|omega| widths.iter().map(move |width| (omega, width))) {
                let chain = Chain { usable: usable + sizes.own_levels(), omega, widest, ..sizes.chain };
                let Ok(literal) = chain.literal_with(&sizes.literal, sizes.eval_mod) else { continue };
                if literal.q_bits.iter().chain(&literal.p_bits).sum::<u32>() > limit {
                    continue;
                }
                fitted.extend(sizes.params(&chain)?);
                if !every && !fitted.is_empty() {
                    return Ok(fitted);
                }
            }
            if !fitted.is_empty() {
                break;
            }
        }
        Ok(fitted)
    }
}

/// One choice of sizes; levels for the user and digits are left open.
struct Sizes {
    chain: Chain,
    literal: BootstrapLiteral,
    /// Levels of EvalMod.
    eval_mod: usize,
}

impl Sizes {
    fn with(&self, log_scale_down: u32, log_scale_up: u32) -> Self {
        Self { chain: Chain { log_scale_down, log_scale_up, ..self.chain }, literal: self.literal.clone(), ..*self }
    }

    /// Levels between two refreshes that they take themselves.
    fn own_levels(&self) -> usize {
        self.literal.levels_after(1 << self.chain.log_n.saturating_sub(1))
    }

    /// What a chain makes of it; none where security, a scale that drifts or a lack of primes speaks against it.
    fn params(&self, chain: &Chain) -> Result<Option<(ParamsLiteral, Bootstrap)>> {
        let Ok(literal) = chain.literal_with(&self.literal, self.eval_mod) else { return Ok(None) };
        let Ok(params) = Params::new(literal.clone()) else { return Ok(None) };
        Ok(Bootstrap::new(&params, self.literal.clone()).ok().map(|bootstrap| (literal, bootstrap)))
    }
}

/// What was made, or none where there is too little room for the error at some stage.
fn room<T>(made: Result<T>) -> Result<Option<T>> {
    match made {
        Ok(made) => Ok(Some(made)),
        Err(Error::Rlwe(synchromesh_rlwe::Error::Noise { .. }) | Error::RefreshStalls { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn keep_nearest(nearest: &mut Option<RefreshForecast>, forecast: RefreshForecast) {
    if nearest.as_ref().is_none_or(|near| forecast.precision_bits > near.precision_bits) {
        *nearest = Some(forecast);
    }
}

/// The smallest number for which something holds that holds for all larger ones.
fn least(numbers: std::ops::RangeInclusive<u32>, mut holds: impl FnMut(u32) -> Result<bool>) -> Result<Option<u32>> {
    let (mut low, mut high) = (*numbers.start(), *numbers.end());
    if !holds(high)? {
        return Ok(None);
    }
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok(Some(high))
}
