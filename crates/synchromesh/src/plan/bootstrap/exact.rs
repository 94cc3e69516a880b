//! Parameters for bootstrapping of BFV and BGV, found from the plaintext modulus and the products between two refreshes.
//!
//! Everything is tried without data: what a pass gains, what products take, and at the end one refresh of a ciphertext with
//! as much noise as is ever refreshed, and the products after it, whose certificates decide.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::{EvaluationKeys, Noise, PublicKey, Randomness, Security};

use super::search::{LAYERS, WEIGHT, room};
use super::{BASE_BITS, DIGITS};
use crate::ckks;
use crate::ckks::bootstrap::{Chain, NARROW, Sine};
use crate::cost::{self, DryLedger, Profile};
use crate::error::{Error, Result};
use crate::exact::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper};
use crate::exact::{Ciphertext, Context, Evaluator, Params, ParamsLiteral, Rotations, Scheme, log2_biguint};
use crate::plain_modulus::PlainModulus;

/// log2 of what a modulus is of the error that a pass takes, of a sine and of a straightened one: it bends less with more, and
/// noise counts more.
const RATIOS: [(bool, std::ops::RangeInclusive<u32>); 2] = [(false, 9..=12), (true, 5..=8)];

/// log2 of the scale of the levels for the user and of SlotsToCoeffs: as wide as level 0 has room for.
const SCALE: u32 = BASE_BITS - 2;

/// log2 of the scale of the levels of EvalMod and CoeffsToSlots, so that one prime is between these and those below.
const SCALE_INSIDE: u32 = BASE_BITS - 1;

/// What a product takes beyond log2 t and log2 N, for the number of levels that is tried first.
const PRODUCT: f64 = 5.0;

/// Numbers of levels that are tried.
const TRIES: usize = 4;

/// Products in a row, at most.
const MOST_PRODUCTS: u32 = 64;

/// log2 of the ring degree.
const LOG_N: std::ops::RangeInclusive<u32> = 10..=17;

/// What bootstrapping of BFV or BGV is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactBootstrapRequest {
    /// log2 of the ring degree.
    pub log_n: u32,
    /// The plaintext modulus, decimal or after `0x` hexadecimal, from 2 to 256 bits.
    pub t: String,
    /// Products in a row between two refreshes, at the least.
    pub products: u32,
    /// Baby steps of each map; none: as many as are fastest.
    #[serde(default)]
    pub baby_steps: Option<usize>,
    /// Required security.
    pub security: Security,
}

/// What a refresh will be like.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExactForecast {
    /// Passes of a refresh of a ciphertext with as much noise as there may be.
    pub passes: usize,
    /// Bits that a pass adds to the noise budget.
    pub bits_per_pass: f64,
    /// The noise budget after that refresh, in bits.
    pub budget_bits: f64,
    /// The noise budget that is left after the products, in bits.
    pub left_bits: f64,
    /// The noise budget with which a ciphertext can be refreshed, in bits.
    pub least_bits: f64,
    /// log2 of the modulus of ciphertexts.
    pub log_q: f64,
    /// log2 of the largest modulus of a key.
    pub log_qp: u32,
    /// The least security of all keys, in bits.
    pub security_bits: f64,
    /// Switch keys of refreshes, those of the sparse secret included.
    pub keys: usize,
    /// Bytes of their file.
    pub key_bytes: u64,
    /// Bytes of them as they are computed with.
    pub prepared_bytes: u64,
    /// Bytes of the public vectors.
    pub vector_bytes: u64,
    /// The most bytes of buffers that there are at once, keys and vectors included.
    pub peak_bytes: u64,
    /// Predicted seconds of that refresh; none without a machine profile.
    pub seconds: Option<f64>,
}

/// Parameters that were found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExactFound {
    /// The ring of CKKS that refreshes run in.
    pub ring: ckks::ParamsLiteral,
    /// The parameters of BFV or BGV.
    pub params: ParamsLiteral,
    /// What is done.
    pub bootstrap: BootstrapLiteral,
    /// What a refresh will be like.
    pub forecast: ExactForecast,
}

impl ExactBootstrapRequest {
    /// The sine and the ratio with the fewest passes times limbs, of these the one whose passes gain most, with the fewest
    /// levels that hold the noise budget and as few digits of a key switch as security allows.
    ///
    /// # Errors
    /// [`Error::Request`] for a number out of its range, and where nothing serves; [`Error::PlainModulus`];
    /// [`Profile::seconds`].
    pub fn find<S: Scheme>(&self, profile: Option<&Profile>) -> Result<ExactFound> {
        let t = self.check()?;
        let mut best: Option<ExactFound> = None;
        for (arcsine, ratio_bits) in
            RATIOS.into_iter().flat_map(|(arcsine, all)| all.map(move |ratio| (arcsine, ratio)))
        {
            let Some(found) = self.with_ratio::<S>(&t, arcsine, ratio_bits, profile)? else { continue };
            let limbs = |found: &ExactFound| found.ring.q_bits.len() + found.ring.p_bits.len();
            let key = |found: &ExactFound| (found.forecast.passes * limbs(found), -found.forecast.bits_per_pass);
            if best.as_ref().is_none_or(|best| key(&found) < key(best)) {
                best = Some(found);
            }
        }
        best.ok_or_else(|| {
            Error::request(format!(
                "bootstrapping of {} at N = 2^{} with {} products between refreshes modulo t = {}: no parameters of {} bits \
                 serve",
                S::NAME,
                self.log_n,
                self.products,
                self.t,
                self.security.max_log_qp(self.log_n)
            ))
        })
    }

    /// Every number within its range.
    fn check(&self) -> Result<PlainModulus> {
        if !LOG_N.contains(&self.log_n) {
            let (least, most) = (LOG_N.start(), LOG_N.end());
            return Err(Error::request(format!("bootstrapping at N = 2^{}: from 2^{least} to 2^{most}", self.log_n)));
        }
        if !(1..=MOST_PRODUCTS).contains(&self.products) {
            return Err(Error::request(format!(
                "{} products between two refreshes: from 1 to {MOST_PRODUCTS}",
                self.products
            )));
        }
        if let Some(steps) = self.baby_steps.filter(|steps| !steps.is_power_of_two()) {
            return Err(Error::request(format!(
                "{steps} baby steps: a power of two of them divides the steps of a map"
            )));
        }
        Ok(self.t.parse()?)
    }

    fn with_ratio<S: Scheme>(
        &self,
        t: &PlainModulus,
        arcsine: bool,
        ratio_bits: u32,
        profile: Option<&Profile>,
    ) -> Result<Option<ExactFound>> {
        let most = (1.0 + WEIGHT as f64) / 2.0;
        let size = f64::from(ratio_bits).exp2() / std::f64::consts::TAU;
        // A small part of what the sine bends by.
        let error = f64::from(if arcsine { 4 * ratio_bits - 4 } else { 2 * ratio_bits }).exp2().recip();
        let Some((degree, doublings, _)) = Sine::cheapest(most, size, error)? else { return Ok(None) };
        let maps = (self.log_n as usize - 1).div_ceil(LAYERS[0]);
        let literal = BootstrapLiteral {
            slots_to_coeffs: maps,
            coeffs_to_slots: maps,
            baby_steps: self.baby_steps,
            degree,
            doublings,
            arcsine,
            ratio_bits,
            budget_bits: 0,
        };
        let log2_t = log2_biguint(t.value());
        let product = log2_t + f64::from(self.log_n) + PRODUCT;
        let bits = f64::from(ratio_bits) + log2_t + f64::from(self.products) * product;
        let first = ((bits - f64::from(BASE_BITS)) / f64::from(SCALE)).ceil().max(1.0) as usize;
        for usable in first..first + TRIES {
            let Some((ring, params)) = self.fitted::<S>(&literal, usable)? else { return Ok(None) };
            if let Some(found) = self.rehearsed::<S>(&ring, &params, literal.clone(), profile)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// The parameters with so many levels for the user, and the fewest digits that fit.
    fn fitted<S: Scheme>(
        &self,
        literal: &BootstrapLiteral,
        usable: usize,
    ) -> Result<Option<(ckks::Params, Params<S>)>> {
        let limit = self.security.max_log_qp(self.log_n);
        let digits = if self.security == Security::Insecure { 4..=4 } else { DIGITS };
        for omega in digits {
            let chain = Chain {
                log_n: self.log_n,
                log_scale: SCALE,
                usable,
                base_bits: BASE_BITS,
                log_scale_down: SCALE,
                log_scale_up: SCALE_INSIDE,
                widest: NARROW,
                omega,
                weight: WEIGHT,
                security: self.security,
            };
            let ring = literal.ring(&chain)?;
            if ring.q_bits.iter().chain(&ring.p_bits).sum::<u32>() > limit {
                continue;
            }
            let Ok(ring) = ckks::Params::new(ring) else { continue };
            let params = Params::<S>::new(literal.literal::<S>(&ring, &self.t)?)?;
            return Ok(Some((ring, params)));
        }
        Ok(None)
    }

    /// The fewest passes after which the products have room, if there is room for them.
    fn rehearsed<S: Scheme>(
        &self,
        ring: &ckks::Params,
        params: &Params<S>,
        literal: BootstrapLiteral,
        profile: Option<&Profile>,
    ) -> Result<Option<ExactFound>> {
        let rehearsal = Rehearsal::<S>::new(ring, params, literal.clone())?;
        let least = rehearsal.bootstrapper.bootstrap().least_budget()?;
        let worn = rehearsal.with_budget(least)?;
        let (mut budgets, mut reached) = (vec![least], least);
        let mut last = worn.duplicate(&rehearsal.context)?;
        loop {
            // One pass after the other; the last one that gains little is the last there is.
            let wanted = (reached.floor() as u32).saturating_add(1);
            let Some(next) = room(rehearsal.bootstrapper.refresh_to(&last, wanted, |_| ()))? else { return Ok(None) };
            last = next;
            let budget = rehearsal.context.noise_budget(&last)?;
            if budget < reached + 2.0 {
                return Ok(None);
            }
            reached = budget;
            budgets.push(budget);
            let Some(left) = rehearsal.after(&last, self.products)? else { continue };
            if left >= least {
                // Half a bit below what is reached, so that no pass more is made.
                let bootstrap = BootstrapLiteral { budget_bits: (reached - 0.5).floor() as u32, ..literal };
                let forecast = rehearsal.forecast(&worn, &budgets, left, bootstrap.budget_bits, profile)?;
                let (ring, params) = (ring.literal().clone(), params.literal().clone());
                return Ok(Some(ExactFound { ring, params, bootstrap, forecast }));
            }
        }
    }
}

/// All that refreshes and products take, without data.
struct Rehearsal<S: Scheme> {
    context: Arc<Context<S, DryLedger>>,
    inside: Arc<ckks::Context<DryLedger>>,
    public: PublicKey<DryLedger>,
    evaluator: Evaluator<S, DryLedger>,
    keys: Arc<EvaluationKeys<DryLedger>>,
    bootstrapper: Bootstrapper<S, DryLedger>,
}

impl<S: Scheme> Rehearsal<S> {
    fn new(ring: &ckks::Params, params: &Params<S>, literal: BootstrapLiteral) -> Result<Self> {
        let context = Context::with_backend(params.clone(), cost::recorder(params.rlwe()))?;
        let inside = ckks::Context::with_backend(ring.clone(), cost::recorder(ring.rlwe()))?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let own = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
        let evaluator = Evaluator::new(&context, Some(Arc::new(own)));
        let bootstrap = Bootstrap::new(params, ring, literal)?;
        let keys = Arc::new(bootstrap.generate_keys(&inside, &secret, &mut randomness)?);
        let bootstrapper = Bootstrapper::new(&context, &inside, bootstrap, Arc::clone(&keys))?;
        Ok(Self { context, inside, public, evaluator, keys, bootstrapper })
    }

    /// A ciphertext of the top level with this noise budget.
    fn with_budget(&self, bits: f64) -> Result<Ciphertext<S, DryLedger>> {
        let (context, params) = (&self.context, self.context.params());
        let mut randomness = Randomness::insecure_from_number(1);
        let zero = context.encode_coefficients(&[0i64])?;
        let fresh = context.encrypt(&self.public, &zero, &mut randomness)?;
        let noise = Noise::at_most(S::room(params, params.top_level())? - bits);
        Ok(fresh.with_more_noise(noise))
    }

    /// The noise budget after so many products in a row, if there is room for them.
    fn after(&self, x: &Ciphertext<S, DryLedger>, products: u32) -> Result<Option<f64>> {
        let mut x = x.duplicate(&self.context)?;
        for _ in 0..products {
            let Some(next) = room(self.evaluator.square(&x))? else { return Ok(None) };
            x = next;
        }
        Ok(Some(self.context.noise_budget(&x)?))
    }

    fn forecast(
        &self,
        worn: &Ciphertext<S, DryLedger>,
        budgets: &[f64],
        left_bits: f64,
        budget_bits: u32,
        profile: Option<&Profile>,
    ) -> Result<ExactForecast> {
        let (own, ring) = (self.context.params(), self.inside.params());
        let devices = [(self.context.backend(), own.rlwe()), (self.inside.rlwe().backend(), ring.rlwe())];
        // Keys are prepared by now; what is written down from here on is the refresh.
        devices.iter().for_each(|(device, _)| drop(device.take()));
        self.bootstrapper.refresh_to(worn, budget_bits, |_| ())?;
        let (mut peak_bytes, mut seconds) = (0, profile.map(|_| 0.0));
        for (device, params) in devices {
            let (entries, peak) = device.take();
            peak_bytes += peak as u64;
            let tables = cost::table_bytes(params, &params.keyed().union(params.aux()));
            if let (Some(profile), Some(sum)) = (profile, seconds.as_mut()) {
                *sum += profile.seconds(&entries, own.log_n(), peak + tables)?;
            }
        }
        let keys = &self.keys;
        let (first, last) = (budgets.first().copied().unwrap_or(0.0), budgets.last().copied().unwrap_or(0.0));
        let passes = budgets.len().saturating_sub(1);
        Ok(ExactForecast {
            passes,
            bits_per_pass: (last - first) / passes.max(1) as f64,
            budget_bits: last,
            left_bits,
            least_bits: first,
            log_q: own.log2_modulus(own.top_level())?,
            log_qp: ring.rlwe().log_qp(),
            security_bits: ring.rlwe().security_bits().min(own.rlwe().security_bits()),
            keys: keys.iter().len() + keys.sparse().map_or(0, |sparse| sparse.iter().len()),
            key_bytes: keys.wire_bytes(ring.rlwe()),
            prepared_bytes: keys.prepared_bytes(),
            vector_bytes: self.bootstrapper.bytes() as u64,
            peak_bytes,
            seconds,
        })
    }
}
