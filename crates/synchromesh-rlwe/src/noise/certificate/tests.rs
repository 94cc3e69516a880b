//! What operations do to certificates, and what they must not claim.

use super::*;
use crate::noise::{Norm, require_room, rounding_average, rounding_sigma, source};

#[test]
fn an_unknown_error_stays_unknown_and_is_refused() {
    let unknown = Certificate::UNKNOWN;
    let derived = [
        unknown,
        unknown.plus(unknown),
        unknown.plus(Certificate::ZERO),
        Certificate::gaussian(3.2).plus(unknown),
        unknown.times(-1000.0),
        unknown.times(f64::NEG_INFINITY),
        unknown.times_poly(12, -5.0, f64::NEG_INFINITY),
    ];
    for noise in derived {
        assert!(noise.is_unknown());
        assert_eq!(noise, Certificate::UNKNOWN);
        let error = require_room(noise.bound(15, 128), 1e9, 3, 128).unwrap_err();
        assert_eq!(error, Error::UnknownNoise { room_bits: 1e9, level: 3 });
    }
    assert_eq!(require_room(f64::NAN, 10.0, 3, 128).unwrap_err().kind(), "unknown_noise");
    assert_eq!(require_room(11.0, 10.0, 3, 128).unwrap_err().kind(), "noise");
    for known in [Certificate::ZERO, Certificate::gaussian(3.2), Certificate::at_most(1.0)] {
        assert!(!known.is_unknown());
        require_room(known.bound(15, 128), 10.0, 3, 128).unwrap();
    }
}

fn rounding(n: usize, components: usize) -> Certificate {
    source::rounding(n, components, Norm::Coefficients).certificate
}

fn fresh(number: u64) -> Certificate {
    rounding(1 << 13, 2).with_origins(Origins::one(number))
}

#[test]
fn products_of_unrelated_errors_are_bounded_by_moments_and_others_by_norms() {
    let (x, y) = (fresh(1), fresh(2));
    let apart = x.product(y, 13, false);
    let together = x.product(x, 13, false);
    let unknown = x.product(y.with_origins(Origins::ANY), 13, false);
    assert_eq!(together.bound(13, 128), unknown.bound(13, 128));
    // sqrt(N) times a few deviations, against N times the squares.
    let typical = 2.0 * x.sigma + 13.0 / 2.0;
    assert!((1.0..6.0).contains(&(apart.bound(13, 40) - typical)), "{apart:?}");
    assert!(apart.bound(13, 40) < apart.bound(13, 128) && apart.bound(13, 128) + 2.0 < together.bound(13, 128));
    assert!(together.bound(13, 128) >= 2.0 * x.sigma + 13.0, "x times its conjugate attains this");
    // Origins nobody recorded are no reason to believe in independence.
    let none = rounding(1 << 13, 2);
    assert_eq!(none.product(none, 13, false).bound(13, 128), together.bound(13, 128));
}

#[test]
fn degrees_add_and_what_exceeds_the_highest_is_bounded_by_norms() {
    let mut product = fresh(0);
    let mut last = product.bound(13, 128);
    for number in 1..9 {
        product = product.product(fresh(number), 13, false);
        let bound = product.bound(13, 128);
        assert!(bound > last + 6.0, "{number}: {bound}");
        assert_eq!(product.remainder > f64::NEG_INFINITY, number >= DEGREES as u64, "{product:?}");
        last = bound;
    }
    let zero = Certificate::ZERO.product(fresh(1), 13, false);
    assert_eq!(zero.bound(13, 128), f64::NEG_INFINITY);
}

#[test]
fn sums_add_variances_only_of_different_encryptions() {
    let (x, y) = (fresh(1), fresh(2));
    assert!((x.sum(y).sigma - x.sigma - 0.5).abs() < 1e-9);
    for other in [x, y.with_origins(Origins::ANY), rounding(1 << 13, 2)] {
        assert!((x.sum(other).sigma - x.sigma - 1.0).abs() < 1e-9);
    }
}

#[test]
fn variances_add_only_where_errors_are_independent_of_components() {
    let (x, y) = (fresh(1), fresh(2));
    let rounding = rounding(1 << 13, 2);
    let grows = |x: Certificate| x.plus_switching(rounding).sigma - x.sigma;
    assert!((grows(x) - 0.5).abs() < 1e-9 && (grows(x.times(1.0)) - 1.25f64.log2() / 2.0).abs() < 1e-9);
    assert!((grows(x.sum(y)) - 1.5f64.log2() / 2.0).abs() < 1e-9);
    // x and what may be x, in a sum, in a product, from a file: the rounding may be in the error already.
    for shared in [x.sum(x), x.sum(y).sum(x), x.plus(y).plus(x.plus(y)), x.sum(y.with_origins(Origins::ANY))] {
        let linear = log2_add(shared.sigma, rounding.sigma) - shared.sigma;
        assert!((grows(shared) - linear).abs() < 1e-9, "{shared:?}");
    }
    assert!(!Certificate::claimed(1.0, 2.0).detached && !x.product(x, 13, true).detached);
    let product = x.product(y, 13, false);
    assert!(product.detached && !product.sum(fresh(2)).detached && product.sum(fresh(3)).detached);
    // Two products with the same variance: half a bit more, a whole one where operands share an encryption.
    let cross = |x: Certificate, y: Certificate| {
        product.sum_crosswise(product, [&x, &y]).bound(13, 128) - product.bound(13, 128)
    };
    assert!((cross(x, y) - 0.5).abs() < 1e-9);
    for (x, y) in [(x, x), (x.sum(x), y), (x, y.with_origins(Origins::ANY))] {
        assert!((cross(x, y) - 1.0).abs() < 1e-9);
    }
    let others = fresh(3).product(fresh(4), 13, false);
    assert!((product.sum(others).bound(13, 128) - product.bound(13, 128) - 0.5).abs() < 1e-9);
    assert!((product.sum(product).bound(13, 128) - product.bound(13, 128) - 1.0).abs() < 1e-9);
    // Sums of products that share factors may be skewed: only one of two may be.
    let skewed = |i: u64| {
        let [x, y, z] = [i, i + 1, i + 2].map(fresh);
        x.product(y, 13, false).sum(y.product(z, 13, false)).sum(x.product(z, 13, false))
    };
    let growth = |x: Certificate, y: Certificate| x.sum(y).bound(13, 128) - x.bound(13, 128).max(y.bound(13, 128));
    assert!((growth(skewed(10), skewed(20)) - 1.0).abs() < 1e-9);
    assert!(growth(skewed(10), others) < 0.1);
}

#[test]
fn a_certificate_that_was_written_and_read_is_no_smaller() {
    let product = fresh(1).product(fresh(2), 13, false).plus(fresh(3));
    let (sigma, remainder) = product.claim(13);
    let read = Certificate::claimed(sigma, remainder);
    for log2_failure in [40, 64, 128] {
        assert!(read.bound(13, log2_failure) >= product.bound(13, log2_failure));
    }
    assert_eq!(read.claim(13), (sigma, remainder));
    let other = fresh(7);
    let dependent = read.product(other, 13, false);
    assert!(dependent.bound(13, 128) >= product.product(other, 13, false).bound(13, 128));
}

#[test]
fn an_error_times_messages_is_linear_in_it_until_the_end() {
    let x = fresh(1);
    let peak = spectrum::log2_peak(13) / 2.0;
    let bits = |x: Certificate, failure: u32| x.bound(13, failure) - tail(13, failure).log2();
    // |m|_2 sqrt(peak) sigma for a message of +-1 at any probability, 0.64 N for a second.
    let once = x.times_message(13, 0.0);
    let twice = once.times_message(13, 0.0);
    for failure in [40, 64, 128] {
        assert!((bits(once, failure) - (x.sigma + 6.5 + peak)).abs() < 1e-9);
        assert!((bits(twice, failure) - bits(once, failure) - 13.0 - 0.64f64.log2()).abs() < 1e-9);
    }
    // Variances of different encryptions add, parameters of the same.
    let other = fresh(2).times_message(13, 0.0);
    assert!((once.sum(other).bound(13, 128) - once.bound(13, 128) - 0.5).abs() < 1e-9);
    assert!((once.sum(once).bound(13, 128) - once.bound(13, 128) - 1.0).abs() < 1e-9);
    // In a file it is a bound.
    let (sigma, remainder) = once.claim(13);
    assert!(sigma == f64::NEG_INFINITY && (remainder - once.bound(13, LOG2_FAILURE_INSIDE)).abs() < 1e-9);
}

#[test]
fn the_parts_of_a_bound_share_its_probability() {
    let (x, product) = (fresh(3), fresh(1).product(fresh(2), 13, false));
    let both = x.plus(product);
    let of = |x: Certificate| x.bound(13, 129).exp2();
    assert!((both.bound(13, 128).exp2() / (of(x) + of(product)) - 1.0).abs() < 1e-9);
    assert!((x.bound(13, 128) - x.sigma - tail(13, 128).log2()).abs() < 1e-9);
}

/// The integral of f from 0 to `to`.
fn integral(to: f64, f: impl Fn(f64) -> f64) -> f64 {
    const STEPS: u32 = 400;
    let step = to / f64::from(STEPS);
    (0..STEPS).map(|i| f((f64::from(i) + 0.5) * step) * step).sum()
}

/// The mean of f(|s(zeta)|^2 / (POWER N)) over keys that are drawn, at one root.
fn over_keys(log_n: u32, f: impl Fn(f64) -> f64) -> f64 {
    let (rate, peak) = (1.5 * spectrum::POWER, spectrum::log2_peak(log_n).exp2());
    integral(peak, |w| rate * (-rate * w).exp() * f(w)) / (1.0 - (-rate * peak).exp())
}

#[test]
fn a_root_tail_is_a_quarter_of_a_bit_above_what_roundings_attain() {
    for log_n in [12, 15] {
        for log2_failure in [40, 64, 128] {
            // Some of N/2 values tau s(zeta) exceed x.
            let failure = |x: f64| f64::from(log_n - 1).exp2() * over_keys(log_n, |w| (-x * x / w).exp());
            let (x, limit) = (root_tail(log_n, log2_failure), (-f64::from(log2_failure)).exp2());
            assert!(failure(x) < limit, "2^{log_n}, 2^-{log2_failure}: {}", failure(x).log2());
            let least = x * (-0.25f64).exp2();
            assert!(failure(least) > limit, "2^{log_n}, 2^-{log2_failure}: {}", failure(least).log2());
            // The average case says what they attain: its secrets have the mean 2/3, and 1 + 2N/3 for 2N/3.
            let average = rounding_average(1 << log_n, 2).log2_largest_at_roots(log_n, log2_failure);
            let attained = average - rounding_sigma(1 << log_n).log2();
            assert!((failure(attained.exp2()).log2() + f64::from(log2_failure)).abs() < 0.2, "{}", attained.exp2() / x);
        }
    }
}

#[test]
fn products_of_errors_times_a_message_are_near_what_a_tone_attains() {
    for log_n in [12, 15] {
        let [x, y] = [1, 2].map(|i| rounding(1 << log_n, 2).with_origins(Origins::one(i)));
        let product = x.product(y, log_n, false).times_message(log_n, 0.0);
        for log2_failure in [40, 64, 128] {
            // A tone of +-1 takes |e e'(zeta)|, N 2^2sigma |s|^2 sqrt(X Y) with X and Y exponential, times 4 / pi.
            let unit = f64::from(log_n) + 2.0 * x.sigma + (4.0 / std::f64::consts::PI).log2();
            let exceeds = |a: f64| integral(160.0, |x| (-x - a / x).exp());
            let failure = |bits: f64| over_keys(log_n, |w| exceeds((2.0 * (bits - unit)).exp2() / (w * w)));
            let (bits, limit) = (product.bound(log_n, log2_failure), (-f64::from(log2_failure)).exp2());
            assert!(failure(bits) < limit, "2^{log_n}, 2^-{log2_failure}: {}", failure(bits).log2());
            let least = failure(bits - 1.5);
            assert!(least > limit, "2^{log_n}, 2^-{log2_failure}: {}", least.log2());
        }
    }
}

#[test]
fn products_of_errors_times_polynomials_keep_their_tail_to_the_end() {
    let product = fresh(1).product(fresh(2), 13, false);
    let once = product.times_message(13, 0.0);
    let bits = |x: Certificate, failure: u32| x.bound(13, failure) - tails::tails(13, failure).weighted[1];
    for failure in [40, 64, 128] {
        assert!((bits(once, failure) - product.products[0] - 6.5).abs() < 1e-9);
        let twice = once.times_message(13, 1.0);
        assert!((bits(twice, failure) - bits(once, failure) - 14.0 - 0.64f64.log2()).abs() < 1e-9);
    }
    // Bounds by norms add even for different encryptions.
    let other = fresh(3).product(fresh(4), 13, false).times_message(13, 0.0);
    assert!((once.sum(other).bound(13, 128) - once.bound(13, 128) - 1.0).abs() < 1e-9);
    // A monomial moves a product, and leaves it one.
    let moved = product.times_poly(13, 0.0, 0.0);
    assert!((moved.bound(13, 128) - product.bound(13, 128)).abs() < 1e-9);
    let further = |x: Certificate| x.product(fresh(5), 13, false).bound(13, 128);
    assert!((further(moved) - further(product)).abs() < 1e-9);
    // In a file it is a bound.
    let (sigma, remainder) = once.claim(13);
    assert!(sigma == f64::NEG_INFINITY && (remainder - once.bound(13, LOG2_FAILURE_INSIDE)).abs() < 1e-9);
}

#[test]
fn products_with_errors_times_polynomials_keep_their_degree() {
    let once = |i: u64| fresh(i).times_message(13, 0.0);
    let (x, y, message) = (fresh(1), fresh(2), 6.5);
    let of = |noise: Certificate, degree: usize, failure: u32| {
        noise.bound(13, failure) - tails::tails(13, failure).weighted[degree]
    };
    for failure in [40, 128] {
        // (m e) e' is m (e e'), with sqrt(N) for the product; another e'' another sqrt(N) and a degree.
        let two = once(1).product(y, 13, false);
        assert!((of(two, 1, failure) - (x.sigma + y.sigma + 6.5 + message)).abs() < 1e-9);
        let three = two.product(fresh(3), 13, false);
        assert!((of(three, 2, failure) - of(two, 1, failure) - x.sigma - 6.5).abs() < 1e-9);
        // (m e)(m' e') has at most sqrt(N) |m| |m'|.
        let both = once(1).product(once(2), 13, false);
        assert!((of(both, 1, failure) - of(two, 1, failure) - message - 6.5).abs() < 1e-9);
    }
    // As sharp as a message that came last, and less than by norms.
    let last = x.product(y, 13, false).times_message(13, 0.0);
    assert!((once(1).product(y, 13, false).bound(13, 40) - last.bound(13, 40)).abs() < 1e-9);
    let bounded = Certificate::at_most(once(1).bound(13, LOG2_FAILURE_INSIDE)).with_origins(*x.origins());
    for (sharp, by_norms) in [(once(1), bounded), (once(1).sum(once(3)), bounded)] {
        assert!(sharp.product(y, 13, false).bound(13, 40) < by_norms.product(y, 13, false).bound(13, 40) - 1.0);
    }
    // Of what may have something in common nothing is known but norms.
    for other in [fresh(1), y.with_origins(Origins::ANY)] {
        let (own, norms) = (once(1).product(other, 13, false), bounded.product(other, 13, false));
        assert!((own.bound(13, 40) - norms.bound(13, 40)).abs() < 0.5 && own.weighted == Certificate::ZERO.weighted);
    }
}

#[test]
fn the_worse_of_two_errors_has_the_origins_of_both_and_stands_for_several() {
    let [x, y] = [1, 2].map(|i| Certificate::gaussian((i as f64).log2()).with_origins(Origins::one(i)));
    let worse = x.worse(y);
    assert!(worse.sigma == 1.0 && !worse.detached);
    // A sum with either is of errors that may be the same: parameters add.
    for own in [x, y] {
        assert!((worse.sum(own).sigma - log2_add(worse.sigma, own.sigma)).abs() < 1e-9);
    }
}
