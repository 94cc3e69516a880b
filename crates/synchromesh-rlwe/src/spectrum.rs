//! The values of a secret at the roots of X^N + 1, which decide how errors that it multiplies add up in products.
//!
//! For a random ternary s the values |s(zeta)|^2 behave like exponential variables of mean 2N/3. A key is drawn again
//! until its own largest value and first moments are near that, which about one in twenty fails: certificates then rest
//! on what is known of the key and not on what is likely.

use synchromesh_ring::secrecy;
use zeroize::Zeroizing;

/// |s|^2 of a secret that is used is at most this times N, and |s(zeta)|^2 is measured in it.
pub const POWER: f64 = 0.72;

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

/// Whether a secret of N = 2^`log_n` coefficients keeps the bounds; its only branches are on the verdict.
pub(crate) fn is_even(log_n: u32, secret: &[i64]) -> bool {
    let values = powers(secret);
    let scale = 1.0 / (POWER * secret.len() as f64);
    let mut sums = [0.0; 4];
    let mut largest = 0.0f64;
    for value in values.iter() {
        let x = value * scale;
        largest = largest.max(x);
        let mut power = 1.0;
        for sum in &mut sums {
            power *= x;
            *sum += power;
        }
    }
    let count = values.len() as f64;
    let typical = sums.iter().zip(MOMENTS).fold(true, |all, (sum, bound)| all & (*sum <= bound * count));
    // The verdict is public: a key that is not even is drawn again, or refused by name.
    secrecy::reveal(typical & (largest <= peak(log_n)))
}

/// |s(zeta)|^2 at the roots of X^N + 1 with positive imaginary part, in the order of the transform.
fn powers(secret: &[i64]) -> Zeroizing<Vec<f64>> {
    // X^N + 1 = (X^(N/2) - i)(X^(N/2) + i): modulo the first, s is N/2 complex coefficients, twisted and transformed.
    let half = secret.len() / 2;
    let angle = std::f64::consts::PI / secret.len() as f64;
    let twisted = |j: usize| {
        let (sin, cos) = (angle * j as f64).sin_cos();
        let (re, im) = (secret[j] as f64, secret[half + j] as f64);
        (re * cos - im * sin, re * sin + im * cos)
    };
    let mut x: Zeroizing<Vec<(f64, f64)>> = Zeroizing::new((0..half).map(twisted).collect());
    let mut width = half;
    while width > 1 {
        let quarter = width / 2;
        let roots: Vec<(f64, f64)> = (0..quarter)
            .map(|j| (2.0 * std::f64::consts::PI * j as f64 / width as f64).sin_cos())
            .map(|(sin, cos)| (cos, sin))
            .collect();
        for block in x.chunks_exact_mut(width) {
            let (low, high) = block.split_at_mut(quarter);
            for ((a, b), (cos, sin)) in low.iter_mut().zip(high).zip(&roots) {
                let (re, im) = (a.0 - b.0, a.1 - b.1);
                *a = (a.0 + b.0, a.1 + b.1);
                *b = (re * cos - im * sin, re * sin + im * cos);
            }
        }
        width = quarter;
    }
    Zeroizing::new(x.iter().map(|(re, im)| re * re + im * im).collect())
}

#[cfg(test)]
mod tests {
    use synchromesh_ring::sampler::{Purpose, SecretDistribution, Seed};

    use super::*;

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
        let mut fast = powers(&secret).to_vec();
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
}
