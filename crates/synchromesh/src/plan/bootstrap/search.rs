//! The search for parameters of bootstrapping: the widest level 0, the smallest scales and the fewest digits that serve.

use std::ops::RangeInclusive;
use std::sync::Arc;

use synchromesh_rlwe::Security;

use super::{BASE_BITS, BootstrapRequest, DIGITS, Found, MOST_LEVELS, RefreshForecast};
use crate::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Chain, NARROW, Sine, Transforms, WIDEST};
use crate::ckks::{Params, ParamsLiteral};
use crate::cost::Profile;
use crate::error::{Error, Result};

/// The sparse secret's coefficients that are not 0.
pub(super) const WEIGHT: usize = 32;

/// Widths of level 0 that are tried: a narrower one, with narrower levels of SlotsToCoeffs, where the modulus is dear.
const BASES: [u32; 8] = [BASE_BITS, 52, 50, 49, 48, 47, 45, 43];

/// log2 of the scales of the levels inside: of one prime each, and where that is not precise enough of two.
const UP: [RangeInclusive<u32>; 2] = [42..=60, 61..=76];

/// Digits of a key switch while scales are looked for; with as few no narrower level 0 is.
const TYPICAL_DIGITS: usize = 6;

/// By how many bits a chain of narrow primes may be shorter than one of wide primes, by what is rounded.
const SAVED_BITS: u64 = 30;

/// Layers of a map of SlotsToCoeffs and CoeffsToSlots, at most: 63 diagonals, or 255 where levels are dear.
pub(super) const LAYERS: [usize; 2] = [5, 7];

/// log2 of the least scale of SlotsToCoeffs' levels.
const LEAST_DOWN: u32 = 28;

/// Bits of the prime between SlotsToCoeffs and the levels above, at the least.
const NARROWEST: i32 = 24;

/// A search for what serves a request.
pub(super) struct Search<'a> {
    request: &'a BootstrapRequest,
    profile: Option<&'a Profile>,
    /// The digits of a key switch that are tried.
    digits: RangeInclusive<usize>,
    /// What all parameters share that are tried.
    transforms: Arc<Transforms>,
    /// What has come nearest of all that does not serve.
    nearest: Option<RefreshForecast>,
}

impl<'a> Search<'a> {
    pub(super) fn new(request: &'a BootstrapRequest, profile: Option<&'a Profile>) -> Self {
        let digits = match request.digits {
            Some(digits) => digits..=digits,
            None if request.security == Security::Insecure => 4..=4,
            None => DIGITS,
        };
        Self { request, profile, digits, transforms: Arc::default(), nearest: None }
    }

    /// What serves with the widest level 0 that does, or a narrower one where that has many digits; the least cost first, at
    /// least one.
    pub(super) fn run(mut self) -> Result<Vec<Found>> {
        let mut serving: Vec<Found> = Vec::new();
        for (base, layers) in BASES.into_iter().flat_map(|base| LAYERS.map(|layers| (base, layers))) {
            let Some(sizes) = self.sizes_for_most(base, layers)? else { continue };
            for sizes in sizes.and_wider() {
                for (params, bootstrap) in self.fitted(&sizes)? {
                    let Some(forecast) = room(bootstrap.forecast(self.profile))? else { continue };
                    if self.is_precise(&forecast) {
                        let (bootstrap, transforms) = (sizes.literal.clone(), Arc::clone(&self.transforms));
                        serving.push(Found { params, bootstrap, forecast, transforms });
                    } else {
                        self.keep_nearest(forecast);
                    }
                }
                if !serving.is_empty() {
                    break;
                }
            }
            let Some(fewest) = serving.iter().map(Found::digits).min() else { continue };
            // Another level 0 is worth its search where fewer digits do with it.
            if self.request.digits.is_some() || self.request.levels.is_none() || fewest <= TYPICAL_DIGITS {
                break;
            }
            self.digits = *self.digits.start()..=fewest - 1;
        }
        serving.sort_by(|a, b| a.cost().total_cmp(&b.cost()));
        if serving.is_empty() { Err(self.nothing_serves()) } else { Ok(serving) }
    }

    /// The choices with a level 0 of so many bits and maps of so many layers, at the largest scales.
    fn largest(&self, base: u32, layers: usize) -> Result<Option<Sizes>> {
        let request = self.request;
        let all = request.slots().trailing_zeros();
        let maps = (all as usize).div_ceil(layers).max(1);
        // The sine bends by 6.6 / 4^ratio in both parts: an eighth of what is allowed.
        let each = request.precision.div_ceil(request.rounds.max(1)) + u32::from(request.rounds > 1);
        let ratio_bits = request.ratio_bits.unwrap_or_else(|| (each + 7).div_ceil(2));
        let most = (1.0 + WEIGHT as f64) / 2.0;
        let size = f64::from(ratio_bits + 1).exp2() / std::f64::consts::TAU;
        let error = f64::from(each + 4).exp2().recip();
        let Some((degree, doublings, eval_mod)) = Sine::cheapest(most, size, error)? else { return Ok(None) };
        let literal = BootstrapLiteral {
            slots_to_coeffs: maps,
            coeffs_to_slots: maps,
            baby_steps: request.baby_steps,
            degree,
            doublings,
            messages: request.messages,
            slots: request.slots,
            message_bound: request.message_bound,
            ratio_bits,
            rounds: request.rounds,
        };
        let bound = request.message_bound.log2().ceil().clamp(-60.0, 60.0) as i32;
        let above = ratio_bits as i32 + bound;
        // The prime between SlotsToCoeffs and the levels above has twice the bits of these less its own.
        let follows = 2 * request.log_scale as i32 - NARROWEST;
        let log_scale_down = (base as i32 - above).min(follows).clamp(1, base as i32) as u32;
        let chain = Chain {
            log_n: request.log_n,
            log_scale: request.log_scale,
            usable: 0,
            base_bits: base,
            log_scale_down,
            log_scale_up: *UP[0].end(),
            widest: request.widest.unwrap_or(NARROW),
            omega: 1,
            weight: WEIGHT,
            security: request.security,
        };
        Ok(Some(Sizes { chain, literal, eval_mod }))
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
        let Some(sizes) = self.largest(base, layers)? else { return Ok(None) };
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
        // A profile chooses among every number of digits and both widths of primes.
        let (request, every) = (self.request, self.profile.is_some());
        let mut fitted: Vec<(ParamsLiteral, Bootstrap)> = Vec::new();
        let levels = request.levels.map_or(1..=MOST_LEVELS, |levels| levels..=levels);
        let both = every && request.widest.is_none();
        let widths = if both { &[NARROW, WIDEST][..] } else { std::slice::from_ref(&sizes.chain.widest) };
        for (omega, &widest) in self.digits.clone().flat_map(|omega| widths.iter().map(move |width| (omega, width))) {
            let chain = |usable| Chain { usable: usable + sizes.own_levels(), omega, widest, ..sizes.chain };
            let fitting = levels.clone().rev().map(chain).filter(|chain| self.is_secure(sizes, chain));
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
        let precise = self.is_precise(&forecast);
        self.keep_nearest(forecast);
        Ok(precise)
    }

    /// Whether so many levels may be secure at these sizes with any of the digits.
    fn fits(&self, sizes: &Sizes, levels: usize) -> bool {
        let usable = levels + sizes.own_levels();
        let mut digits = self.digits.clone();
        digits.any(|omega| self.may_be_secure(sizes, &Chain { usable, omega, ..sizes.chain }))
    }

    /// What a chain makes of these sizes; none where security, a scale that drifts or a lack of primes speaks against it.
    fn made(&self, sizes: &Sizes, chain: &Chain) -> Result<Option<(ParamsLiteral, Bootstrap)>> {
        let Ok(literal) = chain.literal_with(&sizes.literal, sizes.eval_mod) else { return Ok(None) };
        let Ok(params) = Params::new(literal.clone()) else { return Ok(None) };
        let bootstrap = Bootstrap::new(&params, sizes.literal.clone()).ok();
        Ok(bootstrap.map(|bootstrap| (literal, bootstrap.sharing(&self.transforms))))
    }

    fn is_precise(&self, forecast: &RefreshForecast) -> bool {
        forecast.precision_bits >= f64::from(self.request.precision)
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
        self.request.security.max_log_qp(self.request.log_n).into()
    }

    fn nothing_serves(self) -> Error {
        let (request, limit) = (self.request, self.limit());
        let counted = |levels| format!("{levels} level{}", if levels == 1 { "" } else { "s" });
        let levels =
            request.levels.map_or_else(String::new, |levels| format!(" and {} between refreshes", counted(levels)));
        let found = self.nearest.map_or_else(
            || "no parameters serve".to_owned(),
            |near| {
                let qp = near.log_qp;
                let wide = || format!(", and take {qp} bits of QP, of which security allows {limit}");
                let but = (u64::from(qp) > limit).then(wide).unwrap_or_default();
                format!("{:.1} bits and {} come nearest{but}", near.precision_bits, counted(near.usable_levels))
            },
        );
        Error::request(format!(
            "bootstrapping at N = 2^{} with {} bits of precision at a scale of 2^{}{levels}: {found}",
            request.log_n, request.precision, request.log_scale
        ))
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
pub(super) fn room<T>(made: Result<T>) -> Result<Option<T>> {
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
