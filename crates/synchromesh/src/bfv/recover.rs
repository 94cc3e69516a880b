//! The message of a phase x: round(t x / Q) mod t, by doubles, by doubles on digits, by integers, or by multi-limb
//! fixed point.
//!
//! With (t / q_i) \[(Q/q_i)^-1\]_{q_i} = omega_i + theta_i, the message is
//! sum_i x_i omega_i + round(sum_i x_i theta_i) modulo t (ePrint 2021/204, section 3.3). The ways differ in how exact
//! the second sum is. Each term's integer part is split off before summing, so that only the products round.

mod integers;

use std::sync::OnceLock;

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::One;
use synchromesh_rlwe::ring::rns::inverse_mod;
use synchromesh_rlwe::ring::{Backend, Coeff, Poly};
use zeroize::{Zeroize, Zeroizing};

use super::{Ciphertext, Context, Params};
use crate::batch::{PlainPoly, Residues};
use crate::error::{Error, Result};
use crate::exact::{FixedPoint, Recompose, Weights, fixed_point_margin, log2_biguint};
use crate::plain_modulus::{Arithmetic, WordModulus};

/// How t x / Q is rounded; all ways that are exact agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decryption {
    /// One double a prime: k primes below 2^b with k 2^b < 2^51, t < 2^62.
    Doubles,
    /// Two digits of half the width a prime: primes to 61 bits, t < 2^62.
    DigitDoubles,
    /// Integers, with a correction modulo a second prime (BEHZ): primes to 61 bits, t < 2^62. Chosen only on request.
    Integers,
    /// Fixed point with 128 fractional bits and four-limb integers: any t to 256 bits.
    MultiLimb,
}

impl Decryption {
    const AUTOMATIC: [Self; 3] = [Self::Doubles, Self::DigitDoubles, Self::MultiLimb];

    const fn name(self) -> &'static str {
        match self {
            Self::Doubles => "doubles",
            Self::DigitDoubles => "digit-decomposed doubles",
            Self::Integers => "integers",
            Self::MultiLimb => "multi-limb fixed point",
        }
    }

    /// How far off the fractional sum can be for k primes below 2^bits; `None` where this way does not apply.
    fn error(self, k: usize, bits: u32, word: bool) -> Option<f64> {
        let (primes, k) = (k, k as f64);
        // Relative to at most half of a digit's size: theta is off by 2^-53, or by three times that when the prime does
        // not fit a double, the product by 2^-53; what is left of each term sums with an error below 2^-50.
        let terms = |count: f64, log2: u32| count * (2f64.powi(log2 as i32) + 8.0);
        let unit = |relative: i32| 2f64.powi(relative - 1);
        match self {
            Self::Doubles => (word && k * 2f64.powi(bits as i32) < 2f64.powi(51)).then(|| terms(k, bits) * unit(-52)),
            Self::DigitDoubles => word.then(|| terms(2.0 * k, bits.div_ceil(2)) * unit(-51)),
            Self::Integers => word.then(|| integers::margin(primes)),
            Self::MultiLimb => Some(fixed_point_margin(primes)),
        }
    }
}

/// Constants of decryption at one level.
struct Level {
    doubles: OnceLock<Doubles>,
    digits: OnceLock<Doubles>,
    integers: OnceLock<integers::Correction>,
    exact: OnceLock<(FixedPoint, Vec<BigUint>)>,
}

/// Constants of all levels, made at first use.
pub(super) struct Levels(Vec<Level>);

impl Levels {
    pub(super) fn new(levels: usize) -> Self {
        let level = || Level {
            doubles: OnceLock::new(),
            digits: OnceLock::new(),
            integers: OnceLock::new(),
            exact: OnceLock::new(),
        };
        Self((0..levels).map(|_| level()).collect())
    }
}

/// omega and theta for one digit of one prime.
struct Term {
    limb: usize,
    shift: u32,
    mask: u64,
    omega: u64,
    companion: u64,
    theta: f64,
}

/// The constants of both ways with doubles: `digits` a prime.
struct Doubles(Vec<Term>);

/// t \[(Q/q_i)^-1 2^shift\]_{q_i} = omega q_i + numerator, for each prime.
fn numerators(params: &Params, level: usize, shift: u32) -> Result<Vec<(BigUint, BigUint, u64)>> {
    let (ring, primes) = (params.rlwe().ring(), params.rlwe().level(level)?);
    let q = ring.product(primes);
    let split = |i: usize| {
        let prime = ring.modulus(i).value();
        let own = BigUint::from(prime);
        let inverse = inverse_mod(&(&q / &own), &own).unwrap_or_default();
        let (omega, numerator) = (params.t().value() * ((inverse << shift) % &own)).div_rem(&own);
        (omega, numerator, prime)
    };
    Ok(primes.iter().map(split).collect())
}

fn word(x: &BigUint) -> u64 {
    x.iter_u64_digits().next().unwrap_or(0)
}

impl Doubles {
    fn new(params: &Params, t: &WordModulus, level: usize, digits: u32) -> Result<Self> {
        let width = widest(params, level)?.div_ceil(digits);
        let mut terms = Vec::new();
        for digit in 0..digits {
            let shift = digit * width;
            for (limb, (omega, numerator, prime)) in numerators(params, level, shift)?.into_iter().enumerate() {
                // theta in [-1/2, 1/2): the nearest integer joins omega.
                let up = u64::from(word(&numerator) > prime / 2);
                let omega = t.reduce(word(&((omega + up) % t.value())));
                let theta = (word(&numerator) as i64 - (up * prime) as i64) as f64 / prime as f64;
                let mask = if digits == 1 { u64::MAX } else { (1 << width) - 1 };
                terms.push(Term { limb, shift, mask, omega, companion: t.shoup(omega), theta });
            }
        }
        Ok(Self(terms))
    }

    fn run(&self, t: &WordModulus, words: &[u64], out: &mut [u64]) {
        const CHUNK: usize = 64;
        let n = out.len();
        let (mut fractions, mut integers) = ([0f64; CHUNK], [0i64; CHUNK]);
        for (c, out) in out.chunks_mut(CHUNK).enumerate() {
            fractions.zeroize();
            integers.zeroize();
            for term in &self.0 {
                let limb = &words[term.limb * n + c * CHUNK..];
                for (i, (out, &x)) in out.iter_mut().zip(limb).enumerate() {
                    let x = (x >> term.shift) & term.mask;
                    *out = t.add(*out, t.reduce_once(t.mul_shoup_lazy(x, term.omega, term.companion)));
                    let product = x as i64 as f64 * term.theta;
                    let (nearest, integer) = round(product);
                    integers[i] += integer;
                    fractions[i] += product - nearest;
                }
            }
            for (i, out) in out.iter_mut().enumerate() {
                let integer = integers[i] + round(fractions[i]).1;
                *out = t.add(*out, t.reduce_signed(integer));
            }
        }
        fractions.zeroize();
        integers.zeroize();
    }
}

/// The nearest integer to |x| < 2^51, as a double and as an integer, without a branch.
#[inline(always)]
fn round(x: f64) -> (f64, i64) {
    const MAGIC: f64 = 6_755_399_441_055_744.0; // 1.5 * 2^52: the units of its last place are integers.
    let shifted = x + MAGIC;
    (shifted - MAGIC, shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as i64)
}

/// Bits of the widest prime of a level.
fn widest(params: &Params, level: usize) -> Result<u32> {
    let (ring, primes) = (params.rlwe().ring(), params.rlwe().level(level)?);
    Ok(primes.iter().map(|i| ring.modulus(i).bits()).max().unwrap_or(0))
}

/// The way to round: the one asked for, or the first that the certificate leaves room for.
fn choose(params: &Params, ciphertext: &Ciphertext<impl Backend>, asked: Option<Decryption>) -> Result<Decryption> {
    let level = ciphertext.level();
    let (k, bits) = (params.rlwe().level(level)?.len(), widest(params, level)?);
    let word = matches!(params.t().arithmetic(), Arithmetic::Word(_));
    let log2_t = log2_biguint(params.t().value());
    let bound = ciphertext.noise().bound(params.log_n(), params.failure_limit().log2_failure());
    let noise = bound + log2_t - params.log2_modulus(level)?;
    let exact = |way: Decryption| way.error(k, bits, word).is_some_and(|error| noise.exp2() + error < 0.5);
    match asked {
        None => Ok(Decryption::AUTOMATIC.into_iter().find(|&way| exact(way)).unwrap_or(Decryption::MultiLimb)),
        Some(way) if exact(way) => Ok(way),
        Some(way) => {
            let needed = match way {
                Decryption::Doubles => format!("t < 2^62, k 2^b < 2^51 for {k} primes of up to {bits} bits"),
                Decryption::DigitDoubles | Decryption::Integers => "t < 2^62".to_owned(),
                Decryption::MultiLimb => "a certificate".to_owned(),
            };
            let needed =
                format!("{needed}, and noise below 1/2 less its rounding error; t |e| / Q may be {:.3}", noise.exp2());
            Err(Error::Decryption { method: way.name(), level, needed })
        }
    }
}

/// The value of a cell, made at first use.
fn made<T>(cell: &OnceLock<T>, make: impl FnOnce() -> Result<T>) -> Result<&T> {
    if let Some(value) = cell.get() {
        return Ok(value);
    }
    let value = make()?;
    Ok(cell.get_or_init(|| value))
}

/// round(t phase / Q) mod t.
pub(super) fn recover<B: Backend>(
    context: &Context<B>,
    ciphertext: &Ciphertext<B>,
    phase: &Poly<B, Coeff>,
    asked: Option<Decryption>,
) -> Result<PlainPoly> {
    let (params, level) = (context.params(), ciphertext.level());
    let tables = &context.tables().decryptions.0[level];
    let words = Zeroizing::new(phase.to_words(context.backend())?);
    let way = choose(params, ciphertext, asked)?;
    if let (Decryption::Doubles | Decryption::DigitDoubles, Arithmetic::Word(t)) = (way, params.t().arithmetic()) {
        let (cell, digits) = if way == Decryption::Doubles { (&tables.doubles, 1) } else { (&tables.digits, 2) };
        let doubles = made(cell, || Doubles::new(params, t, level, digits))?;
        let mut residues = Residues::zero(params.t(), params.n());
        if let Residues::Word(out) = &mut residues {
            doubles.run(t, &words, out);
        }
        return Ok(PlainPoly::new(params.t(), residues)?);
    }
    if let (Decryption::Integers, Arithmetic::Word(t)) = (way, params.t().arithmetic()) {
        let correction = made(&tables.integers, || integers::Correction::new(params, t, level))?;
        let mut residues = Residues::zero(params.t(), params.n());
        if let Residues::Word(out) = &mut residues {
            correction.run(t, &words, out);
        }
        return Ok(PlainPoly::new(params.t(), residues)?);
    }
    let (fixed, omega) = made(&tables.exact, || {
        let (ring, primes) = (params.rlwe().ring(), params.rlwe().level(level)?);
        let split = numerators(params, level, 0)?;
        let fractions: Vec<u64> = split.iter().map(|(_, numerator, _)| word(numerator)).collect();
        let omega = split.into_iter().map(|(omega, ..)| omega).chain([BigUint::one()]).collect();
        Ok((FixedPoint::new(ring, primes, None, &fractions), omega))
    })?;
    let weights = Weights::new(params.t(), omega.iter().cloned());
    Recompose { fixed, weights }.run(params.t(), &words, params.n())
}
