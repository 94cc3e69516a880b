//! Parameters of BGV by the static rule of ePrint 2021/204, section 4: from the depth and the numbers of additions and
//! key switches, primes that keep one level of noise throughout, without a search.
//!
//! With v the constant noise, v_ms that of a modulus switch, v_fresh and v_ks those of encryption and a key switch, and
//! v_mul(v) that of a product, a chain of depth L has the primes q_0, L primes q_i and a first one, q_{L+1}:
//! ```text
//! q_{L+1} (v - v_ms) > (n_add + 1) v_fresh + n_ks v_ks                     before the first product
//! q_i     (v - v_ms) > (n'_add + 1) v_mul(v) + (n'_ks + 1) v_ks            each product and what follows it
//! q_0                > 2 t v + t                                           decryption
//! ```
//! v = c v_ms with c = 1 + sqrt(1 + B v_ks / (A v_ms^2)), A = delta t (n'_add + 1), B = n'_ks + 1, which makes q_i
//! least (appendix C.1). The paper prints q_0 > 2 t v - t, which its own condition for decryption does not allow.
//!
//! For small t the levels are of 20 to 30 bits, and several of them go into one machine word (remark 5.1) by prime
//! switching: [`StaticRule::packing`].
//!
//! One rule, two models of noise: see [`NoiseModel`]. Whatever the model, [`StaticPlan::verdict`] is what the
//! certificates say of the circuit, run on no data with one level dropped before every product
//! ([`bgv::Management::STATIC`]).

use synchromesh_rlwe::noise::{DEFAULT_LOG2_FAILURE, DigitSize, Noise, Norm, gadget, rounding};
use synchromesh_rlwe::ring::rns::Overflow;
use synchromesh_rlwe::{EvaluationKeys, PrimeSwitching, Randomness, Schedule, Security, Source};

use std::sync::Arc;

use super::shape::{Shape, WIDTH, split};
use super::{dry, too_small};
use crate::bgv::{self, Management, noise as bgv_noise};
use crate::error::{Error, Result};
use crate::exact::{fixed_point_margin, log2_biguint};
use crate::plain_modulus::PlainModulus;

/// Widest prime of a level; wider levels have several.
const WIDEST: u32 = 61;
/// log2 of the largest digit over P: what [`Shape::special`] keeps below 2^-4, but for the primes' distance from powers
/// of two.
const LOG2_DIGIT: f64 = -3.9;

/// How noise is bounded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoiseModel {
    /// The paper's bounds with delta = expansion sqrt(N) for every product of polynomials, and 6 standard deviations.
    /// The paper takes 2, later implementations 4 for modulus switching. A heuristic for independent operands: the
    /// product of a ciphertext with its own conjugate exceeds it.
    Heuristic {
        /// delta over sqrt(N).
        expansion: f64,
    },
    /// The bounds of this library's certificates, which hold for all operands except with probability 2^-128.
    Certified,
}

/// A circuit as the static rule sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticRule {
    /// Plaintext modulus, decimal or `0x` hexadecimal.
    pub t: String,
    /// L: products after one another.
    pub depth: usize,
    /// n_add: additions of fresh ciphertexts before the first product.
    pub first_additions: usize,
    /// n_ks: rotations before the first product.
    pub first_switches: usize,
    /// n'_add: additions of products at each level.
    pub additions: usize,
    /// n'_ks: key switches at each level beside a product's own.
    pub switches: usize,
    /// Digits of a key switch; none: the cheapest that are secure.
    pub omega: Option<usize>,
    /// How noise is bounded.
    pub model: NoiseModel,
    /// Levels packed into words: mu primes for kappa levels, all levels then having the size of the largest. With
    /// (1, 2) a prime of 50 bits stands for two levels of 25 bits, a small one comes in when half of it should leave.
    pub packing: Option<PrimeSwitching>,
    /// Required security.
    pub security: Security,
}

/// The chain that the rule gives at one degree; sizes are log2 of what a prime must exceed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StaticChain {
    /// log2 N.
    pub log_n: u32,
    /// c.
    pub optimum: f64,
    /// log2 of the constant noise v.
    pub constant_noise: f64,
    /// q_0.
    pub base: f64,
    /// q_1 .. q_L.
    pub level: f64,
    /// q_{L+1}.
    pub first: f64,
    /// Digits of a key switch.
    pub omega: usize,
    /// Widths of the ciphertext primes, the one that stays longest first.
    pub q_bits: Vec<u32>,
    /// Primes present at level 0, 1, ..; empty for packed levels.
    pub level_limbs: Vec<usize>,
    /// The primes of packed levels.
    pub schedule: Schedule,
    /// Widths of the special primes.
    pub p_bits: Vec<u32>,
}

/// Parameters by the rule.
#[derive(Debug)]
#[non_exhaustive]
pub struct StaticPlan {
    /// The chain.
    pub chain: StaticChain,
    /// The parameters; contexts for them are made with [`bgv::Management::STATIC`].
    pub params: bgv::Params,
    /// Bits of noise that the certificates leave at the end, or the first operation they refuse.
    pub verdict: Result<f64>,
}

/// Noises of one model at one degree; log2 of bounds where they are no [`Noise`].
struct Noises {
    model: NoiseModel,
    log_n: u32,
    log2_t: f64,
    switch: Noise,
    fresh: Noise,
    key_switch: Noise,
}

impl Noises {
    fn new(model: NoiseModel, log_n: u32, log2_t: f64, limbs: usize, omega: usize) -> Self {
        let n = 1usize << log_n;
        let digit = limbs.div_ceil(omega);
        // Centred binomial of 21 + 21 coins.
        let sigma = 10.5f64.sqrt();
        let (switch, fresh, key_switch) = match model {
            NoiseModel::Heuristic { expansion } => {
                let delta = expansion * (n as f64).sqrt();
                let (error, switch) = (6.0 * sigma, (1.0 + delta) / 2.0);
                let digits = limbs as f64 * delta * error / 2.0 * LOG2_DIGIT.exp2();
                (switch, error * (2.0 * delta + 1.0), digits + digit as f64 * switch).into_noises()
            }
            NoiseModel::Certified => {
                let digits = vec![DigitSize { log2: LOG2_DIGIT, primes: digit, errors: 1 }; omega];
                let rounding = rounding(n, 2, Norm::Coefficients);
                let switch = rounding.plus(bgv_noise::message_switch());
                (switch, rounding, gadget(n, sigma, &digits, 0.0, Overflow::Round).plus(rounding))
            }
        };
        Self { model, log_n, log2_t, switch, fresh, key_switch }
    }

    fn bound(&self, noise: Noise) -> f64 {
        noise.bound(self.log_n, DEFAULT_LOG2_FAILURE).exp2()
    }

    /// The expansion of products of errors.
    fn delta(&self) -> f64 {
        let n = f64::from(self.log_n).exp2();
        match self.model {
            NoiseModel::Heuristic { expansion } => expansion * n.sqrt(),
            NoiseModel::Certified => n,
        }
    }

    /// v_mul of two ciphertexts at c v_ms.
    fn product(&self, c: f64) -> f64 {
        let switch = self.bound(self.switch);
        match self.model {
            NoiseModel::Heuristic { .. } => {
                let v = c * switch;
                self.delta() * self.log2_t.exp2() / 2.0 * (2.0 * v * v + 2.0 * v + 1.0)
            }
            NoiseModel::Certified => {
                let v = self.switch.plus(Noise::bounded((c - 1.0) * switch));
                self.bound(bgv_noise::product(self.log_n, self.log2_t, v, v))
            }
        }
    }
}

trait IntoNoises {
    fn into_noises(self) -> (Noise, Noise, Noise);
}

impl IntoNoises for (f64, f64, f64) {
    fn into_noises(self) -> (Noise, Noise, Noise) {
        (Noise::bounded(self.0), Noise::bounded(self.1), Noise::bounded(self.2))
    }
}

/// The narrowest width with enough primes.
fn least(log_n: u32) -> u32 {
    (log_n + 8).max(20)
}

impl StaticRule {
    /// `depth` products modulo t with nothing between them, certified, at 128 bits.
    #[must_use]
    pub fn new(t: impl Into<String>, depth: usize) -> Self {
        Self {
            t: t.into(),
            depth,
            first_additions: 0,
            first_switches: 0,
            additions: 0,
            switches: 0,
            omega: None,
            model: NoiseModel::Certified,
            packing: None,
            security: Security::Bits128,
        }
    }

    fn plain_modulus(&self) -> Result<PlainModulus> {
        let most = 1 << 20;
        let counts = [self.first_additions, self.first_switches, self.additions, self.switches];
        if self.depth > 100 || counts.iter().any(|&n| n > most) {
            return Err(Error::request(format!(
                "depth {} with {counts:?} additions and key switches: at most 100, and 2^20 of each",
                self.depth
            )));
        }
        match self.model {
            NoiseModel::Heuristic { expansion } if !(expansion > 0.0 && expansion < 1e6) => {
                Err(Error::request(format!("an expansion of {expansion} sqrt(N): it must be positive, below 10^6")))
            }
            _ => Ok(self.t.parse()?),
        }
    }

    /// The chain at degree 2^log_n, security aside.
    ///
    /// # Errors
    /// [`Error::PlainModulus`] for t, [`Error::Request`] for a depth above 100, more than 2^20 of anything, or an
    /// expansion that is no size.
    pub fn chain(&self, log_n: u32) -> Result<StaticChain> {
        let t = self.plain_modulus()?;
        let least = least(log_n);
        let mut limbs = self.depth + 2;
        let mut omega = self.omega.unwrap_or(limbs.min(3)).clamp(1, limbs);
        let mut chain = self.sizes(&t, log_n, limbs, omega);
        // Key switching noise depends on the number of primes, which depends on it: two rounds settle it.
        for _ in 0..3 {
            let shape = self.shape(&chain, least)?;
            limbs = shape.q_bits.len();
            omega = match self.omega {
                Some(omega) => omega.clamp(1, limbs),
                None => shape.digits(log_n, self.security, None, None)?.first().map_or(limbs.min(3), |best| best.0),
            };
            let sizes = self.sizes(&t, log_n, limbs, omega);
            let p_bits = shape.special(omega);
            let Shape { q_bits, level_limbs, schedule, .. } = shape;
            chain = StaticChain { q_bits, level_limbs, schedule, p_bits, ..sizes };
        }
        Ok(chain)
    }

    /// Widths for the sizes of a chain.
    fn shape(&self, chain: &StaticChain, least: u32) -> Result<Shape> {
        // A prime of w bits exceeds 2^(w - 0.01), where there are enough; a quotient of several, 2^(w - 0.05).
        let bits = |size: f64, slack: f64| ((size + slack).floor() as u32 + 1).max(least);
        let mut shape =
            Shape { q_bits: Vec::new(), level_limbs: Vec::new(), schedule: Schedule::default(), width: WIDTH };
        if let Some(packing) = self.packing {
            let level = bits(chain.level.max(chain.first), 0.05);
            let packed = packing.chain(bits(chain.base, 0.05), level, self.depth + 1, WIDEST)?;
            return Ok(Shape { q_bits: packed.q_bits, schedule: packed.schedule, ..shape });
        }
        let levels = std::iter::once(chain.base)
            .chain(std::iter::repeat_n(chain.level, self.depth))
            .chain(std::iter::once(chain.first));
        for size in levels {
            shape.q_bits.extend(split(bits(size, 0.01), WIDEST));
            shape.level_limbs.push(shape.q_bits.len());
        }
        Ok(shape)
    }

    /// The rule's inequalities.
    fn sizes(&self, t: &PlainModulus, log_n: u32, limbs: usize, omega: usize) -> StaticChain {
        let log2_t = log2_biguint(t.value());
        let noises = Noises::new(self.model, log_n, log2_t, limbs, omega);
        let [switch, fresh, key_switch] =
            [noises.switch, noises.fresh, noises.key_switch].map(|noise| noises.bound(noise));
        let [n_add, n_ks] = [self.first_additions, self.first_switches].map(|n| n as f64);
        let [more_add, more_ks] = [self.additions, self.switches].map(|n| n as f64);
        let quadratic = noises.delta() * log2_t.exp2() * (more_add + 1.0);
        let optimum = 1.0 + (1.0 + (more_ks + 1.0) * key_switch / (quadratic * switch * switch)).sqrt();
        let gap = (optimum - 1.0) * switch;
        let product = (more_add + 1.0) * noises.product(optimum) + more_add + (more_ks + 1.0) * key_switch;
        let before = (n_add + 1.0) * fresh + n_add + n_ks * key_switch;
        let constant = optimum * switch;
        let room = 0.5 - fixed_point_margin(limbs);
        StaticChain {
            log_n,
            optimum,
            constant_noise: constant.log2(),
            base: ((constant + 0.5) / room).log2() + log2_t,
            level: (product / gap).log2(),
            first: (before / gap).log2(),
            omega,
            q_bits: Vec::new(),
            level_limbs: Vec::new(),
            schedule: Schedule::default(),
            p_bits: Vec::new(),
        }
    }

    /// Parameters at degree 2^log_n with what the certificates say of them.
    ///
    /// # Errors
    /// As [`Self::chain`]; [`Error::Primes`] when a width has too few primes; [`Error::Rlwe`] for security.
    pub fn plan_at(&self, log_n: u32) -> Result<StaticPlan> {
        let mut chain = self.chain(log_n)?;
        let params = loop {
            let params = bgv::Params::new(self.literal(&chain))?;
            let Some(level) = self.too_narrow(&chain, &params)? else { break params };
            if self.packing.is_some() {
                // The rule's sizes grow until all quotients of levels exceed them.
                (chain.level, chain.base) = (chain.level + 0.5, chain.base + 0.5);
                let Shape { q_bits, level_limbs, schedule, .. } = self.shape(&chain, least(log_n))?;
                chain = StaticChain { q_bits, level_limbs, schedule, ..chain };
                continue;
            }
            // Primes of this width run out near its upper end: one bit more.
            let from = level.checked_sub(1).map_or(0, |below| chain.level_limbs[below]);
            chain.q_bits[from] += 1;
            if chain.q_bits[from] > WIDEST {
                return Err(Error::request(format!("level {level} has too few primes of {WIDEST} bits")));
            }
        };
        let verdict = self.certify(&params);
        Ok(StaticPlan { chain, params, verdict })
    }

    /// The smallest secure degree from 2^11 on, and its parameters.
    ///
    /// # Errors
    /// [`Error::Request`] when no degree up to 2^17 is secure, or as [`Self::plan_at`].
    pub fn plan(&self) -> Result<StaticPlan> {
        let mut needed = 0;
        for log_n in 11..=17 {
            let chain = self.chain(log_n)?;
            needed = chain.q_bits.iter().chain(&chain.p_bits).sum();
            if needed > self.security.max_log_qp(log_n) {
                continue;
            }
            match self.plan_at(log_n) {
                Err(e) if too_small(&e) => {}
                other => return other,
            }
        }
        Err(Error::request(format!(
            "the static rule needs log QP = {needed} at N = 2^17, which allows {}",
            self.security.max_log_qp(17)
        )))
    }

    fn literal(&self, chain: &StaticChain) -> bgv::ParamsLiteral {
        bgv::ParamsLiteral {
            log_n: chain.log_n,
            t: self.t.clone(),
            q_bits: chain.q_bits.clone(),
            p_bits: chain.p_bits.clone(),
            level_limbs: chain.level_limbs.clone(),
            schedule: chain.schedule.clone(),
            omega: chain.omega,
            security: self.security,
            primes: None,
        }
    }

    /// A level whose primes do not exceed what the rule asks for.
    fn too_narrow(&self, chain: &StaticChain, params: &bgv::Params) -> Result<Option<usize>> {
        let mut below = 0.0;
        for level in 0..=params.top_level() {
            let size = match level {
                0 => chain.base,
                _ if level == params.top_level() => chain.first,
                _ => chain.level,
            };
            let modulus = params.log2_modulus(level)?;
            if modulus - below <= size {
                return Ok(Some(level));
            }
            below = modulus;
        }
        Ok(None)
    }

    /// Runs the circuit that the rule is for without data; bits of noise left at the end.
    ///
    /// # Errors
    /// [`synchromesh_rlwe::Error::Noise`] for the first operation that could decrypt wrongly.
    pub fn certify(&self, params: &bgv::Params) -> Result<f64> {
        let context = bgv::Context::managed_on(params.clone(), dry(params.rlwe()), Management::STATIC)?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let sources = [Source::Square, Source::Galois(3)];
        let keys = EvaluationKeys::generate(context.rlwe(), &secret, sources, params.plan(), &mut randomness)?;
        let evaluator = bgv::Evaluator::new(&context, Some(Arc::new(keys)));
        let message = context.encode_coefficients(&[1i64][..])?;
        let fresh = context.encrypt(&public, &message, &mut randomness)?;
        let mut x = fresh.duplicate(&context)?;
        for _ in 0..self.first_additions {
            x = evaluator.add(&x, &fresh)?;
        }
        for _ in 0..self.first_switches {
            x = evaluator.automorphism(&x, 3)?;
        }
        for _ in 0..self.depth {
            let product = evaluator.mul_no_relin(&x, &x)?;
            let mut sum = product.duplicate(&context)?;
            for _ in 0..self.additions {
                sum = evaluator.add(&sum, &product)?;
            }
            x = evaluator.relinearize(&sum)?;
            for _ in 0..self.switches {
                x = evaluator.automorphism(&x, 3)?;
            }
        }
        context.noise_budget(&evaluator.mod_switch_to(&x, 0)?)
    }
}
