//! Parameters for bootstrapping, found from what it is to do.

mod exact;
mod forecast;

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Security;

use crate::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Chain, Messages, NARROW, Sine, Transforms, WIDEST};
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
const UP: [RangeInclusive<u32>; 2] = [42..=60, 61..=76];

/// Widest primes of the levels inside, in bits.
const PRIMES: RangeInclusive<u32> = 30..=WIDEST;

/// Digits of a key switch while scales are looked for; with as few no narrower level 0 is.
const TYPICAL_DIGITS: usize = 6;

/// Digits of a key switch.
const DIGITS: RangeInclusive<usize> = 2..=12;

/// By how many bits a chain of narrow primes may be shorter than one of wide primes, by what is rounded.
const SAVED_BITS: u64 = 30;

/// Layers of a map of SlotsToCoeffs and CoeffsToSlots, at most: 63 diagonals, or 255 where levels are dear.
const LAYERS: [usize; 2] = [5, 7];

/// log2 of the least scale of SlotsToCoeffs' levels.
const LEAST_DOWN: u32 = 28;

/// Bits of the prime between SlotsToCoeffs and the levels above, at the least.
const NARROWEST: i32 = 24;

/// Levels between two refreshes, at most.
const MOST_LEVELS: usize = 64;

/// log2 of level 0's modulus over the message bound.
const RATIO: RangeInclusive<u32> = 1..=30;

/// log2 of the ring degree.
const LOG_N: RangeInclusive<u32> = 8..=18;

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
    /// Levels between two refreshes; none: as many as take the least time each, so many bits of the modulus go to digits of a
    /// key switch as pay for themselves.
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
    /// smaller keys, and wider special primes, which all levels pay for; where many are needed, level 0 becomes narrower as far
    /// as that lets fewer do.
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
    /// Those of the search, for other numbers of baby steps.
    transforms: Arc<Transforms>,
}

impl Found {
    /// Digits of a key switch.
    fn digits(&self) -> usize {
        self.params.omega
    }

    /// The same parameters with so many baby steps of each map.
    pub(super) fn with_baby_steps(&self, baby_steps: Option<usize>, profile: Option<&Profile>) -> Result<Self> {
        let bootstrap = BootstrapLiteral { baby_steps, ..self.bootstrap.clone() };
        let made = Bootstrap::new(&Params::new(self.params.clone())?, bootstrap.clone())?;
        let forecast = made.sharing(&self.transforms).forecast(profile)?;
        Ok(Self { params: self.params.clone(), bootstrap, forecast, transforms: Arc::clone(&self.transforms) })
    }

    /// What a level between two refreshes takes of a refresh: seconds, without a profile products modulo primes.
    pub(super) fn cost(&self) -> f64 {
        let forecast = &self.forecast;
        forecast.seconds.unwrap_or(forecast.multiplications) / forecast.usable_levels.max(1) as f64
    }
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

    /// The smallest scales of the levels inside that keep the precision, with the levels between refreshes that are asked for
    /// and the digits of a key switch that are, or those of the least cost.
    ///
    /// # Errors
    /// [`Error::Request`] for a number out of its range, and where nothing serves, with what comes nearest;
    /// [`Profile::seconds`].
    pub fn find(&self, profile: Option<&Profile>) -> Result<Found> {
        self.find_all(profile).map(|mut all| all.swap_remove(0))
    }

    /// What serves with the widest level 0 that does, or a narrower one where that has many digits; the least cost first, at
    /// least one.
    pub(super) fn find_all(&self, profile: Option<&Profile>) -> Result<Vec<Found>> {
        self.check()?;
        let mut search = Search::new(self, profile.is_some());
        let mut serving: Vec<Found> = Vec::new();
        for (base, layers) in BASES.into_iter().flat_map(|base| LAYERS.map(|layers| (base, layers))) {
            let Some(sizes) = search.sizes_for_most(base, layers)? else { continue };
            for sizes in sizes.and_wider() {
                for (params, bootstrap) in search.fitted(&sizes)? {
                    let Some(forecast) = room(bootstrap.forecast(profile))? else { continue };
                    if self.is_precise(&forecast) {
                        let (bootstrap, transforms) = (sizes.literal.clone(), Arc::clone(&search.transforms));
                        serving.push(Found { params, bootstrap, forecast, transforms });
                    } else {
                        search.keep_nearest(forecast);
                    }
                }
                if !serving.is_empty() {
                    break;
                }
            }
            let Some(fewest) = serving.iter().map(Found::digits).min() else { continue };
            // Another level 0 is worth its search where fewer digits do with it.
            if self.digits.is_some() || self.levels.is_none() || fewest <= TYPICAL_DIGITS {
                break;
            }
            search.digits = *search.digits.start()..=fewest - 1;
        }
        serving.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        if serving.is_empty() { Err(self.nothing_serves(search.nearest)) } else { Ok(serving) }
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

    fn nothing_serves(&self, nearest: Option<RefreshForecast>) -> Error {
        let levels = self.levels.map_or_else(String::new, |levels| format!(" and {levels} levels between refreshes"));
        let found = nearest.map_or_else(
            || "no parameters serve".to_owned(),
            |near| format!("{:.1} bits and {} levels come nearest", near.precision_bits, near.usable_levels),
        );
        Error::request(format!(
            "bootstrapping at N = 2^{} with {} bits of precision at a scale of 2^{}{levels}: {found}",
            self.log_n, self.precision, self.log_scale
        ))
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

    /// The digits of a key switch that there may be.
    fn digits(&self) -> RangeInclusive<usize> {
        match self.digits {
            Some(digits) => digits..=digits,
            None if self.security == Security::Insecure => 4..=4,
            None => DIGITS,
        }
    }

    /// Whether a chain is secure but for bits that primes of other widths may save.
    fn may_be_secure(&self, sizes: &Sizes, chain: &Chain) -> bool {
        sizes.log_qp(&Chain { widest: WIDEST, ..*chain }).is_some_and(|bits| bits <= self.limit() + SAVED_BITS)
    }

    fn is_secure(&self, sizes: &Sizes, chain: &Chain) -> bool {
        // Finding which narrow primes levels share takes longer than wide ones do.
        self.may_be_secure(sizes, chain) && sizes.log_qp(chain).is_some_and(|bits| bits <= self.limit())
    }

    fn limit(&self) -> u64 {
        self.security.max_log_qp(self.log_n).into()
    }
}

/// A search for what serves a request.
struct Search<'a> {
    request: &'a BootstrapRequest,
    /// The digits of a key switch that are tried.
    digits: RangeInclusive<usize>,
    /// Whether every number of digits and both widths of primes are asked for, for a profile to choose among.
    every: bool,
    /// What all parameters share that are tried.
    transforms: Arc<Transforms>,
    /// What has come nearest of all that does not serve.
    nearest: Option<RefreshForecast>,
}

impl<'a> Search<'a> {
    fn new(request: &'a BootstrapRequest, every: bool) -> Self {
        Self { request, digits: request.digits(), every, transforms: Arc::default(), nearest: None }
    }

    /// [`Self::sizes`] for the levels that are asked for, or as many as there can be: a longer chain has more noise.
    fn sizes_for_most(&mut self, base: u32, layers: usize) -> Result<Option<Sizes>> {
        let mut levels = self.request.levels.unwrap_or(1);
        loop {
            let Some(sizes) = self.sizes(base, layers, levels)? else { return Ok(None) };
            let fitted = self.fitted(&sizes)?;
            let most = fitted.iter().map(|(_, bootstrap)| bootstrap.usable_levels()).max();
            match most.filter(|&most| most > levels) {
                Some(most) => levels = most,
                None => return Ok(Some(sizes)),
            }
        }
    }

    /// The smallest scales that keep the precision with maps of so many layers and so many levels between two refreshes: first
    /// of EvalMod and CoeffsToSlots, whose levels are more, then of SlotsToCoeffs. Precision grows with both.
    fn sizes(&mut self, base: u32, layers: usize, levels: usize) -> Result<Option<Sizes>> {
        let Some(sizes) = self.request.largest(base, layers)? else { return Ok(None) };
        let highest = sizes.chain.log_scale_down;
        let narrowest = LEAST_DOWN.min(highest);
        // A narrower level 0 is for where the modulus is dear.
        let all = if base == BASE_BITS { &UP[..] } else { &UP[..1] };
        for ups in all {
            // What is too wide for security need not be run.
            let Some(widest) = ups.clone().rev().find(|&up| self.fits(&sizes.with(narrowest, up), levels)) else {
                break;
            };
            if !self.keeps(&sizes.with(highest, widest), levels)? {
                continue;
            }
            let up = least(*ups.start()..=widest, |up| self.keeps(&sizes.with(highest, up), levels))?;
            let Some(widest) = (narrowest..=highest).rev().find(|&down| self.fits(&sizes.with(down, up), levels))
            else {
                break;
            };
            if widest < highest && !self.keeps(&sizes.with(widest, up), levels)? {
                break;
            }
            let down = least(narrowest..=widest, |down| self.keeps(&sizes.with(down, up), levels))?;
            return Ok(Some(sizes.with(down, up)));
        }
        Ok(None)
    }

    /// The parameters of these sizes with the levels asked for, or as many as there can be: with the digits asked for, the
    /// fewest, or every number of them that fits, with narrow and with wide primes. Where levels are open, every number of
    /// digits that makes them more is one more choice.
    fn fitted(&self, sizes: &Sizes) -> Result<Vec<(ParamsLiteral, Bootstrap)>> {
        let (request, every) = (self.request, self.every);
        let mut fitted: Vec<(ParamsLiteral, Bootstrap)> = Vec::new();
        let levels = request.levels.map_or(1..=MOST_LEVELS, |levels| levels..=levels);
        let both = every && request.widest.is_none();
        let widths = if both { &[NARROW, WIDEST][..] } else { std::slice::from_ref(&sizes.chain.widest) };
        for (omega, &widest) in self.digits.clone().flat_map(|omega| widths.iter().map(move |width| (omega, width))) {
            let chain = |usable| Chain { usable: usable + sizes.own_levels(), omega, widest, ..sizes.chain };
            let fitting = levels.clone().rev().map(chain).filter(|chain| request.is_secure(sizes, chain));
            let mut made = None;
            for chain in fitting {
                made = self.made(sizes, &chain)?;
                if made.is_some() {
                    break;
                }
            }
            let most = fitted.iter().map(|(_, bootstrap)| bootstrap.usable_levels()).max();
            let more = |made: &(_, Bootstrap)| most.is_none_or(|most| made.1.usable_levels() > most);
            fitted.extend(made.filter(|made| every || more(made)));
            if !every && request.levels.is_some() && !fitted.is_empty() {
                break;
            }
        }
        Ok(fitted)
    }

    /// Whether the precision is kept at these sizes, with so many levels between two refreshes.
    fn keeps(&mut self, sizes: &Sizes, levels: usize) -> Result<bool> {
        let usable = levels + sizes.own_levels();
        let omega = self.request.digits.unwrap_or(TYPICAL_DIGITS);
        // Whether security has room for them is asked of those that are found.
        let chain = Chain { usable, omega, security: Security::Insecure, ..sizes.chain };
        let Some((_, bootstrap)) = self.made(sizes, &chain)? else { return Ok(false) };
        let Some(forecast) = room(bootstrap.forecast(None))? else { return Ok(false) };
        let precise = self.request.is_precise(&forecast);
        self.keep_nearest(forecast);
        Ok(precise)
    }

    /// Whether so many levels may be secure at these sizes with any of the digits.
    fn fits(&self, sizes: &Sizes, levels: usize) -> bool {
        let usable = levels + sizes.own_levels();
        let mut digits = self.digits.clone();
        digits.any(|omega| self.request.may_be_secure(sizes, &Chain { usable, omega, ..sizes.chain }))
    }

    /// What a chain makes of these sizes; none where security, a scale that drifts or a lack of primes speaks against it.
    fn made(&self, sizes: &Sizes, chain: &Chain) -> Result<Option<(ParamsLiteral, Bootstrap)>> {
        let Ok(literal) = chain.literal_with(&sizes.literal, sizes.eval_mod) else { return Ok(None) };
        let Ok(params) = Params::new(literal.clone()) else { return Ok(None) };
        let bootstrap = Bootstrap::new(&params, sizes.literal.clone()).ok();
        Ok(bootstrap.map(|bootstrap| (literal, bootstrap.sharing(&self.transforms))))
    }

    fn keep_nearest(&mut self, forecast: RefreshForecast) {
        if self.nearest.as_ref().is_none_or(|near| forecast.precision_bits > near.precision_bits) {
            self.nearest = Some(forecast);
        }
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

    /// These, and scales a bit or two larger: which primes levels share depends on their number and on digits, and takes some
    /// chains below the precision that others keep at the same scales.
    fn and_wider(self) -> impl Iterator<Item = Self> {
        (0..=2).map(move |bits| self.with(self.chain.log_scale_down + bits, self.chain.log_scale_up + bits))
    }

    /// Levels between two refreshes that they take themselves.
    fn own_levels(&self) -> usize {
        self.literal.levels_after(1 << self.chain.log_n.saturating_sub(1))
    }

    /// Bits of all primes of a chain; none where scales do not follow one another.
    fn log_qp(&self, chain: &Chain) -> Option<u64> {
        let literal = chain.literal_with(&self.literal, self.eval_mod).ok()?;
        Some(literal.q_bits.iter().chain(&literal.p_bits).map(|&bits| u64::from(bits)).sum())
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

/// The smallest number for which something holds that holds for all larger ones, the largest among them.
fn least(numbers: RangeInclusive<u32>, mut holds: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    let (mut low, mut high) = (*numbers.start(), *numbers.end());
    while low < high {
        let middle = low.midpoint(high);
        if holds(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok(high)
}
