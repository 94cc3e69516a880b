//! What bootstrapping is to do, and the parameters that are found for it.

mod exact;
mod forecast;
mod search;

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::Security;

use crate::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Messages, Transforms, WIDEST};
use crate::ckks::{Params, ParamsLiteral};
use crate::cost::Profile;
use crate::error::{Error, Result};

use self::search::Search;
pub use exact::{ExactBootstrapRequest, ExactForecast, ExactFound};
pub use forecast::{RefreshForecast, StageForecast};

/// The widest level 0, in bits.
const BASE_BITS: u32 = 60;

/// log2 of the largest scale of the levels between two refreshes: wider ones than a prime have two.
const WIDEST_SCALE: u32 = 90;

/// Widest primes of the levels inside, in bits.
const PRIMES: RangeInclusive<u32> = 30..=WIDEST;

/// Digits of a key switch.
const DIGITS: RangeInclusive<usize> = 2..=12;

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
    /// primes, each of which a processor is done with sooner
    /// ([`Chain::widest`](crate::ckks::bootstrap::Chain::widest)); a graphics card is as fast with wide ones. None: 49, or what
    /// a profile says is faster.
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
        Search::new(self, profile).run()
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
}
