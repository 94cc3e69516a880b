//! The values of a secret, and of the errors of its public and switch keys, at the roots of X^N + 1, which decide how
//! errors that they multiply add up in products.
//!
//! For a random ternary s the values |s(zeta)|^2 behave like exponential variables of mean 2N/3. A key is drawn again
//! until its own largest value and first moments are near that, which about one in twenty fails: certificates then rest
//! on what is known of the key and not on what is likely. Errors of keys have more room, `UNEVEN`, which about one in
//! 2^30 lacks; they are drawn again too.

use std::ops::{Add, Mul, Sub};
use std::sync::OnceLock;

use synchromesh_ring::sampler::{ErrorDistribution, Purpose, Seed, SmallPoly};
use synchromesh_ring::secrecy;
use zeroize::{Zeroize, Zeroizing};

use crate::error::Error;

/// |s|^2 of a secret that is used is at most this times N, and |s(zeta)|^2 is measured in it.
pub const POWER: f64 = 0.72;

/// By how much the values of a key's error at the roots may be larger, against their mean, than those of a secret.
pub(crate) const UNEVEN: f64 = 1.65;

/// What values in single precision are taken to be off by: far more than twenty roundings of a butterfly.
const SINGLE: f64 = 1e-3;

/// After so many polynomials in a row that are not even the generator is at fault.
const MOST_ATTEMPTS: u64 = 64;

/// Bounds on the mean of (|s(zeta)|^2 / (POWER N))^j for j = 1..4; 1, 2, 6, 24 times 0.926^j for exponential values.
const MOMENTS: [f64; 4] = [1.0, 2.3, 8.0, 44.0];

/// The largest |s(zeta)|^2 over its mean 2N/3: the logarithm of the number of pairs of roots, and 3 more.
pub(crate) fn largest(log_n: u32) -> f64 {
    f64::from(log_n - 1) * std::f64::consts::LN_2 + 3.0
}

/// The largest |s(zeta)|^2 over POWER N.
fn peak(log_n: u32) -> f64 {
    largest(log_n) / (POWER * 1.5)
}

/// log2 of a bound on the mean of (|s(zeta)|^2 / (POWER N))^j.
pub(crate) fn log2_moment(log_n: u32, j: usize) -> f64 {
    match j {
        0 => 0.0,
        1..=4 => MOMENTS[j - 1].log2(),
        _ => MOMENTS[3].log2() + (j - 4) as f64 * peak(log_n).log2(),
    }
}

/// log2 of the largest |s(zeta)|^2 / (POWER N).
pub(crate) fn log2_peak(log_n: u32) -> f64 {
    peak(log_n).log2()
}

/// The first of the polynomials drawn that is even enough, nearly always the first one; none where the generator is at fault.
pub(crate) fn first_even(even: impl Fn(&[i64]) -> bool, draw: impl Fn(u64) -> SmallPoly) -> Option<SmallPoly> {
    (0..MOST_ATTEMPTS).map(draw).find(|small| even(small.as_slice()))
}

#[cfg(test)]
thread_local! {
    /// How many errors of keys this thread has made.
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// The error numbered `index` of a key: of the stream `seed`, and drawn again from streams derived from it until it is as
/// even at the roots as certificates take it to be.
///
/// # Errors
/// [`Error::Uneven`] where the generator gives none.
pub fn even_error(
    error: ErrorDistribution,
    n: usize,
    seed: &Seed,
    purpose: Purpose,
    index: u32,
) -> Result<SmallPoly, Error> {
    let (log_n, variance) = (n.trailing_zeros(), error.variance());
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
    let draw = |attempt| match attempt {
        0 => error.sample(seed, purpose, index, n),
        _ => error.sample(&seed.derive("even error", attempt), purpose, index, n),
    };
    let error = first_even(|error| is_even_error(log_n, error, variance), draw);
    error.ok_or(Error::Uneven { what: "no error of a key of this generator is" })
}

/// Whether a secret of N = 2^`log_n` coefficients keeps the bounds; its only branches are on the verdict.
pub(crate) fn is_even(log_n: u32, secret: &[i64]) -> bool {
    keeps(log_n, &Roots::<f64>::new(log_n).powers(secret), POWER * secret.len() as f64)
}

/// Whether an error of this variance keeps the bounds with [`UNEVEN`] to spare. In single precision: there is one for each
/// row of each key.
pub(crate) fn is_even_error(log_n: u32, error: &[i64], variance: f64) -> bool {
    static ROOTS: [OnceLock<Roots<f32>>; 32] = [const { OnceLock::new() }; 32];
    let values = match ROOTS.get(log_n as usize) {
        Some(roots) => roots.get_or_init(|| Roots::new(log_n)).powers(error),
        None => Roots::new(log_n).powers(error),
    };
    let unit = UNEVEN * UNEVEN * 1.5 * POWER * variance * error.len() as f64;
    keeps(log_n, &values, unit * (1.0 - SINGLE))
}

/// Whether values |s(zeta)|^2 keep the bounds in this unit. In eight sums side by side, each of few enough terms for
/// [`SINGLE`].
fn keeps<T: Real>(log_n: u32, values: &[T], unit: f64) -> bool {
    const LANES: usize = 8;
    let zero = T::from(0);
    let scale = T::of(1.0 / unit);
    let (mut sums, mut largest) = ([[zero; LANES]; 4], [zero; LANES]);
    for chunk in values.chunks(LANES) {
        let mut x = [zero; LANES];
        x[..chunk.len()].copy_from_slice(chunk);
        let x = x.map(|value| value * scale);
        largest = std::array::from_fn(|i| largest[i].larger(x[i]));
        let mut power = x;
        for (j, sum) in sums.iter_mut().enumerate() {
            if j > 0 {
                power = std::array::from_fn(|i| power[i] * x[i]);
            }
            *sum = std::array::from_fn(|i| sum[i] + power[i]);
        }
    }
    let count = values.len() as f64;
    let total = |sum: &[T; LANES]| sum.iter().map(|&x| x.into()).sum::<f64>();
    let typical = sums.iter().zip(MOMENTS).fold(true, |all, (sum, bound)| all & (total(sum) <= bound * count));
    let low = largest.iter().fold(true, |all, &x| all & (x.into() <= peak(log_n)));
    // The verdict is public: a key that is not even is drawn again, or refused by name.
    secrecy::reveal(typical & low)
}

/// Single or double precision.
trait Real: Copy + Zeroize + From<i16> + Into<f64> + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// The nearest value.
    fn of(x: f64) -> Self;
    /// The larger of two, without a branch.
    fn larger(self, other: Self) -> Self;
}

impl Real for f32 {
    fn of(x: f64) -> Self {
        x as Self
    }
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}

impl Real for f64 {
    fn of(x: f64) -> Self {
        x
    }
    fn larger(self, other: Self) -> Self {
        self.max(other)
    }
}

/// cos and sin of angles, apart, so that a loop over them takes several at once.
struct Turns<T> {
    cos: Vec<T>,
    sin: Vec<T>,
}

impl<T: Real> Turns<T> {
    /// `count` multiples of an angle.
    fn new(count: usize, angle: f64) -> Self {
        let turn = |j: usize| (angle * j as f64).sin_cos();
        let (sin, cos) = (0..count).map(turn).map(|(sin, cos)| (T::of(sin), T::of(cos))).unzip();
        Self { cos, sin }
    }
}

/// What the transform to the roots of X^N + 1 with positive imaginary part multiplies by.
struct Roots<T> {
    /// X^N + 1 = (X^(N/2) - i)(X^(N/2) + i): modulo the first, s is N/2 complex coefficients, twisted and transformed.
    twist: Turns<T>,
    /// For each pass, the widest first.
    passes: Vec<Turns<T>>,
}

impl<T: Real> Roots<T> {
    fn new(log_n: u32) -> Self {
        use std::f64::consts::PI;
        let half = 1usize << (log_n - 1);
        let pass = |log: u32| Turns::new(1 << log, PI / f64::from(1u32 << log));
        Self { twist: Turns::new(half, PI / (2 * half) as f64), passes: (0..log_n - 1).rev().map(pass).collect() }
    }

    /// |s(zeta)|^2 at those roots, in the order of the transform, for coefficients of 15 bits.
    fn powers(&self, small: &[i64]) -> Zeroizing<Vec<T>> {
        let half = small.len() / 2;
        let part = |range: &[i64]| Zeroizing::new(range.iter().map(|&x| T::from(x as i16)).collect::<Vec<T>>());
        let (mut re, mut im) = (part(&small[..half]), part(&small[half..]));
        for (((a, b), &cos), &sin) in re.iter_mut().zip(im.iter_mut()).zip(&self.twist.cos).zip(&self.twist.sin) {
            (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
        }
        for turns in &self.passes {
            let width = 2 * turns.cos.len();
            for (re, im) in re.chunks_exact_mut(width).zip(im.chunks_exact_mut(width)) {
                butterflies(re, im, turns);
            }
        }
        re.iter_mut().zip(im.iter()).for_each(|(a, &b)| *a = *a * *a + b * b);
        re
    }
}

/// (a, b) becomes (a + b, (a - b) w) for each pair half a block apart.
fn butterflies<T: Real>(re: &mut [T], im: &mut [T], turns: &Turns<T>) {
    let half = turns.cos.len();
    let ((a_re, b_re), (a_im, b_im)) = (re.split_at_mut(half), im.split_at_mut(half));
    let (b_re, b_im, a_im) = (&mut b_re[..half], &mut b_im[..half], &mut a_im[..half]);
    let (cos, sin) = (&turns.cos[..half], &turns.sin[..half]);
    for j in 0..half {
        let (x, y) = (a_re[j] - b_re[j], a_im[j] - b_im[j]);
        a_re[j] = a_re[j] + b_re[j];
        a_im[j] = a_im[j] + b_im[j];
        b_re[j] = x * cos[j] - y * sin[j];
        b_im[j] = x * sin[j] + y * cos[j];
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use synchromesh_ring::prime::ntt_primes_excluding;
    use synchromesh_ring::sampler::{ErrorDistribution, SecretDistribution};
    use synchromesh_ring::{Cpu, Threads};

    use super::*;
    use crate::{
        Context, Params, ParamsLiteral, PublicKey, Randomness, SecretKey, Security, Source, SwitchKey, SwitchPlan,
    };

    #[test]
    fn powers_are_the_squares_of_values_at_the_roots() {
        let secret = [1, -1, 0, 1, 1, 0, -1, 1];
        let n = secret.len();
        let mut direct: Vec<f64> = (0..n / 2)
            .map(|k| {
                let angle = std::f64::consts::PI * (4 * k + 1) as f64 / n as f64;
                let at = |f: fn(f64) -> f64| -> f64 {
                    secret.iter().enumerate().map(|(j, &x)| x as f64 * f(angle * j as f64)).sum()
                };
                at(f64::cos).powi(2) + at(f64::sin).powi(2)
            })
            .collect();
        let mut fast = Roots::<f64>::new(3).powers(&secret).to_vec();
        direct.sort_by(f64::total_cmp);
        fast.sort_by(f64::total_cmp);
        for (x, y) in direct.iter().zip(&fast) {
            assert!((x - y).abs() < 1e-9, "{direct:?} {fast:?}");
        }
    }

    #[test]
    fn nearly_all_random_secrets_are_even_and_a_single_frequency_is_not() {
        for (log_n, keys) in [(10, 200), (12, 100)] {
            let n = 1usize << log_n;
            let good = (0..keys)
                .filter(|&i| {
                    let seed = Seed::from_bytes([i as u8; 32]);
                    let secret = SecretDistribution::Ternary.sample(&seed, Purpose::SecretKey, 0, n);
                    is_even(log_n, secret.as_slice())
                })
                .count();
            assert!(good * 100 >= 90 * keys, "{good} of {keys}");
            let sign = |j: usize| if (std::f64::consts::PI * 5.0 * j as f64 / n as f64).cos() > 0.0 { 1 } else { -1 };
            let tone: Vec<i64> = (0..n).map(sign).collect();
            assert!(!is_even(log_n, &tone));
            assert!(!is_even(log_n, &vec![1; n]));
        }
    }

    #[test]
    fn errors_are_even_as_drawn_and_others_are_drawn_again() {
        for (log_n, keys) in [(10, 100u8), (13, 20)] {
            let n = 1usize << log_n;
            for error in [ErrorDistribution::Cbd21, ErrorDistribution::Gaussian319] {
                let draw = |i: u8| error.sample(&Seed::from_bytes([i; 32]), Purpose::SwitchKeyError, 0, n);
                for i in 0..keys {
                    assert!(is_even_error(log_n, draw(i).as_slice(), error.variance()), "{i}");
                    // Both precisions see the same values.
                    let (single, double) = (Roots::<f32>::new(log_n), Roots::<f64>::new(log_n));
                    let (single, double) = (single.powers(draw(i).as_slice()), double.powers(draw(i).as_slice()));
                    let largest = double.iter().copied().fold(0.0, f64::max);
                    let off =
                        single.iter().zip(double.iter()).map(|(&x, y)| (f64::from(x) - y).abs()).fold(0.0, f64::max);
                    assert!(off < SINGLE / 10.0 * largest, "{off} of {largest}");
                }
                // A tone of the same 2-norm is what the check is for: at one root it is sqrt(N) times as large.
                let tone = |j: usize| (1.5 * error.variance().sqrt() * (5.0 * j as f64).cos()).round() as i64;
                let tone: Vec<i64> = (0..n).map(tone).collect();
                assert!(!is_even_error(log_n, &tone, error.variance()));
                let even = |e: &[i64]| is_even_error(log_n, e, error.variance());
                let some = |attempt| if attempt < 3 { SmallPoly::from_vec(tone.clone()) } else { draw(attempt as u8) };
                assert_eq!(first_even(even, some).unwrap().as_slice(), draw(3).as_slice());
                // What never ends is given up.
                assert!(first_even(even, |_| SmallPoly::from_vec(tone.clone())).is_none());
            }
        }
    }

    /// Of four coefficients about one error in fifty is uneven.
    #[test]
    fn the_error_of_a_key_is_the_first_even_one_of_its_streams() {
        let (error, seed) = (ErrorDistribution::Cbd21, Seed::from_bytes([5; 32]));
        let even = |small: &SmallPoly| is_even_error(2, small.as_slice(), error.variance());
        let mut again = 0;
        for index in 0..2000 {
            let made = even_error(error, 4, &seed, Purpose::SwitchKeyError, index).unwrap();
            let drawn = error.sample(&seed, Purpose::SwitchKeyError, index, 4);
            assert!(even(&made), "{index}: {:?}", made.as_slice());
            assert_eq!(made.as_slice() == drawn.as_slice(), even(&drawn), "{index}");
            again += usize::from(!even(&drawn));
        }
        assert!((4..200).contains(&again), "{again}");
    }

    #[test]
    fn every_error_of_a_public_key_and_of_a_switch_key_is_looked_at() {
        let primes = ntt_primes_excluding(40, 10, 4, &[]).unwrap();
        let params = Params::new(ParamsLiteral {
            tag: "test".to_owned(),
            log_n: 10,
            q: primes[..3].to_vec(),
            p: primes[3..].to_vec(),
            aux: vec![],
            level_limbs: vec![],
            schedule: Default::default(),
            error_multiple: "1".to_owned(),
            error: Default::default(),
            security: Security::Insecure,
        });
        let params = params.unwrap();
        // All on this thread, which counts.
        let cpu = Cpu::open(Arc::clone(params.ring())).unwrap().with_threads(Threads::ONE);
        let context = Context::with_backend(params, cpu);
        let mut randomness = Randomness::insecure_from_number(5);
        let secret = SecretKey::generate(&context, &mut randomness).unwrap();
        let before = LOOKED_AT.get();
        PublicKey::generate(&context, &secret, &mut randomness).unwrap();
        assert_eq!(LOOKED_AT.get(), before + 1);
        let plan = SwitchPlan::hybrid(context.params(), 3).unwrap();
        let key = SwitchKey::generate(&context, &secret, Source::Square, None, &plan, &mut randomness).unwrap();
        assert_eq!((key.b().len(), LOOKED_AT.get()), (3, before + 4));
    }
}
