//! The embedding against its definition: sums over 126-bit fixed-point roots of unity.

use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::roots::{FRACTION_BITS, RootTable};
use super::*;

/// Unit roundoff of a double.
const U: f64 = f64::EPSILON / 2.0;

/// A fixed stream of numbers (splitmix64).
struct Stream(u64);

impl Stream {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Uniform in [-1, 1).
    fn real(&mut self) -> f64 {
        (self.word() as i64 >> 11) as f64 / (1u64 << 52) as f64
    }

    fn complex(&mut self, count: usize) -> Vec<Complex64> {
        (0..count).map(|_| Complex64::new(self.real() / 2.0, self.real() / 2.0)).collect()
    }
}

fn embedding(log_n: u32) -> Embedding {
    Embedding::new(log_n).expect("in range")
}

fn scale(log2: i32) -> Scale {
    Scale::power_of_two(log2).expect("in range")
}

fn divided(coefficients: &[i128], scale: Scale) -> Vec<f64> {
    coefficients.iter().map(|&c| c as f64 / scale.to_f64()).collect()
}

/// 3^i mod 2N.
fn galois(i: usize, n: usize) -> usize {
    (0..i).fold(1, |g, _| g * 3 % (2 * n))
}

/// p(zeta^exponent) for integer coefficients below 2^32, to a relative 2^-70: the definition.
fn evaluate(coefficients: &[i64], exponent: usize) -> Complex64 {
    let n = coefficients.len();
    let table = RootTable::new(n.trailing_zeros());
    const KEPT: u32 = 74;
    let (mut re, mut im) = (0i128, 0i128);
    for (j, &c) in coefficients.iter().enumerate() {
        let root = table.root(j * exponent % (2 * n));
        re += i128::from(c) * (root.re >> (FRACTION_BITS - KEPT));
        im += i128::from(c) * (root.im >> (FRACTION_BITS - KEPT));
    }
    let unit = f64::powi(2.0, -(KEPT as i32));
    Complex64::new(re as f64 * unit, im as f64 * unit)
}

fn distance(a: Complex64, b: Complex64) -> f64 {
    (a.re - b.re).hypot(a.im - b.im)
}

fn norm(values: &[Complex64]) -> f64 {
    values.iter().map(|v| v.re * v.re + v.im * v.im).sum::<f64>().sqrt()
}

/// Asserts that the given slots decode to the defined values within the stated 2-norm bound; the error is in units of
/// u times the root mean square of all slots.
fn check_decode(log_n: u32, slots: &[usize], stream: &mut Stream) -> f64 {
    let n = 1usize << log_n;
    let integers: Vec<i64> = (0..n).map(|_| stream.word() as i64 >> 32).collect();
    let reals: Vec<f64> = integers.iter().map(|&c| c as f64).collect();
    let decoded = embedding(log_n).decode(&reals).expect("finite");
    let rms = norm(&decoded) / ((n / 2) as f64).sqrt();
    let errors: Vec<f64> =
        slots.iter().map(|&i| distance(decoded[i], evaluate(&integers, galois(i, n))) / (rms * U)).collect();
    (errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64).sqrt()
}

#[test]
fn e01_small_degrees_decode_as_defined_within_the_bound() {
    let mut stream = Stream(1);
    for log_n in 4..=10 {
        let all: Vec<usize> = (0..1usize << (log_n - 1)).collect();
        let error = check_decode(log_n, &all, &mut stream);
        println!("N = 2^{log_n}: rms error {error:.2} u");
        assert!(error < 5.0 * f64::from(log_n - 1), "N = 2^{log_n}: {error} u");
    }
}

#[test]
fn e02_large_degrees_decode_as_defined_within_the_bound() {
    let mut stream = Stream(2);
    for log_n in [15, 17] {
        let slots: Vec<usize> = (0..24).map(|i| (i * 2_731 + i * i) % (1 << (log_n - 1))).collect();
        let error = check_decode(log_n, &slots, &mut stream);
        println!("N = 2^{log_n}: rms error {error:.2} u over {} slots", slots.len());
        // Single slots are not bound by the 2-norm; five times the rounding noise expected of log2(n) stages.
        assert!(error < 5.0 * f64::from(log_n - 1).sqrt(), "N = 2^{log_n}: {error} u");
    }
}

#[test]
fn e03_encoding_inverts_decoding_of_integer_polynomials() {
    let mut stream = Stream(3);
    for log_n in [4, 7, 12, 15, 17] {
        let n = 1usize << log_n;
        let integers: Vec<i128> = (0..n).map(|_| i128::from(stream.word() as i64 >> 34)).collect();
        let unit = scale(0);
        let slots = embedding(log_n).decode(&divided(&integers, unit)).expect("finite");
        let encoded = embedding(log_n).encode(&slots, unit, 1e12).expect("fits");
        assert_eq!(*encoded, integers, "N = 2^{log_n}");
    }
}

#[test]
fn e04_decoding_inverts_encoding_to_the_stated_precision() {
    let mut stream = Stream(4);
    for (log_n, log_scale) in [(4, 30), (10, 40), (15, 40), (15, 90), (17, 50)] {
        let n = 1usize << log_n;
        let tables = embedding(log_n);
        let values = stream.complex(n / 2);
        let encoded = tables.encode(&values, scale(log_scale), 1.0).expect("fits");
        let decoded = tables.decode(&divided(&encoded, scale(log_scale))).expect("finite");
        // Rounding adds N independent errors of variance 1/12; eight deviations of their sum.
        let rounding = 8.0 * (n as f64 / 12.0).sqrt() * f64::powi(2.0, -log_scale);
        let transforms = 20.0 * f64::from(log_n) * U;
        let worst = values.iter().zip(&decoded).map(|(a, b)| distance(*a, *b)).fold(0.0, f64::max);
        assert!(worst < rounding + transforms, "N = 2^{log_n}, scale 2^{log_scale}: {worst:e}");
    }
}

#[test]
fn e05_coefficients_are_within_the_stated_bound_of_the_definition() {
    let mut stream = Stream(5);
    let (log_n, n) = (6, 64usize);
    // Slots that are small integers over 2^20, so that the inverse sum is exact in fixed point.
    let parts: Vec<(i64, i64)> = (0..n / 2).map(|_| (stream.word() as i64 >> 44, stream.word() as i64 >> 44)).collect();
    let values: Vec<Complex64> =
        parts.iter().map(|&(re, im)| Complex64::new(re as f64 / 1_048_576.0, im as f64 / 1_048_576.0)).collect();
    let encoded = embedding(log_n).encode(&values, scale(50), 1.0).expect("fits");
    let table = RootTable::new(log_n);
    let bound = (5.0 * 5.0 + 2.0) * U * f64::powi(2.0, 50) + 0.5;
    for (j, &coefficient) in encoded.iter().enumerate() {
        // p_j = (2/N) sum_i Re(z_i conj(zeta^(3^i j))), here times 2^20 and in units of 2^-90.
        let sum: i128 = (0..n / 2)
            .map(|i| {
                let root = table.root(galois(i, n) * j % (2 * n));
                i128::from(parts[i].0) * (root.re >> 36) + i128::from(parts[i].1) * (root.im >> 36)
            })
            .sum();
        // 2^50 / (2^20 2^90 2^5) = 2^-65.
        let error = ((coefficient << 65) - sum) as f64 * f64::powi(2.0, -65);
        assert!(error.abs() < bound, "coefficient {j}: {error} against {bound}");
    }
}

#[test]
fn e06_automorphisms_rotate_left_and_conjugate() {
    let mut stream = Stream(6);
    let (log_n, n) = (7, 128usize);
    let tables = embedding(log_n);
    let values = stream.complex(n / 2);
    let encoded = tables.encode(&values, scale(40), 1.0).expect("fits");
    let image = |g: usize| {
        let mut image = vec![0i128; n];
        for (j, &c) in encoded.iter().enumerate() {
            let e = j * g % (2 * n);
            image[e % n] = if e < n { c } else { -c };
        }
        tables.decode(&divided(&image, scale(40))).expect("finite")
    };
    let close = |a: &[Complex64], b: &[Complex64]| a.iter().zip(b).all(|(x, y)| distance(*x, *y) < 1e-9);
    for k in [1, 2, 5, 63] {
        let mut expected = values.clone();
        expected.rotate_left(k);
        assert!(close(&image(galois(k, n)), &expected), "rotation by {k}");
    }
    let conjugate: Vec<Complex64> = values.iter().map(|v| Complex64::new(v.re, -v.im)).collect();
    assert!(close(&image(2 * n - 1), &conjugate));
    assert!(!close(&image(2 * n - 1), &values));
}

#[test]
fn e07_products_of_polynomials_are_products_of_slots() {
    let mut stream = Stream(7);
    let n = 64usize;
    let tables = embedding(6);
    let (a, b) = (stream.complex(n / 2), stream.complex(n / 2));
    let encode = |v: &[Complex64]| tables.encode(v, scale(40), 1.0).expect("fits");
    let (p, q) = (encode(&a), encode(&b));
    let mut product = vec![0i128; n];
    for i in 0..n {
        for j in 0..n {
            let term = p[i] * q[j];
            product[(i + j) % n] += if i + j < n { term } else { -term };
        }
    }
    let slots = tables.decode(&divided(&product, scale(80))).expect("finite");
    for (i, slot) in slots.iter().enumerate() {
        let (x, y) = (a[i], b[i]);
        let expected = Complex64::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
        assert!(distance(*slot, expected) < 1e-9, "slot {i}");
    }
}

#[test]
fn e08_missing_values_are_zeros_and_reals_are_complex_numbers() {
    let tables = embedding(8);
    let reals = [1.0, -0.5, 0.25];
    let padded: Vec<Complex64> = (0..128).map(|i| reals.get(i).copied().unwrap_or(0.0).into()).collect();
    let encoded = tables.encode_real(&reals, scale(35), 1.0).expect("fits");
    assert_eq!(encoded, tables.encode(&padded, scale(35), 1.0).expect("fits"));
    let coefficients = divided(&encoded, scale(35));
    let decoded = tables.decode_real(&coefficients).expect("finite");
    assert!(decoded.iter().zip(&padded).all(|(x, y)| (x - y.re).abs() < 1e-8));
    assert!(tables.encode_real(&[], scale(35), 1.0).expect("fits").iter().all(|&c| c == 0));
}

#[test]
fn e09_bad_input_is_a_typed_error() {
    let tables = embedding(4);
    let kind = |result: Result<Zeroizing<Vec<i128>>, EmbeddingError>| result.expect_err("refused").kind();
    let encode = |values: &[f64], bound| tables.encode_real(values, scale(40), bound);
    assert_eq!(encode(&[0.0; 9], 1.0), Err(EmbeddingError::TooManyValues { given: 9, slots: 8 }));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(encode(&[0.0, bad], 1.0), Err(EmbeddingError::NotFinite { index: 1 }));
        let value = [Complex64::new(0.0, bad)];
        assert_eq!(tables.encode(&value, scale(40), 1.0), Err(EmbeddingError::NotFinite { index: 0 }));
        assert_eq!(kind(encode(&[0.0], bad)), "bound_out_of_range");
        let mut coefficients = [0.0; 16];
        coefficients[5] = bad;
        assert_eq!(tables.decode(&coefficients), Err(EmbeddingError::NotFinite { index: 5 }));
    }
    assert_eq!(encode(&[0.0, 1.0, -1.001], 1.0), Err(EmbeddingError::AboveBound { index: 2, bound: 1.0 }));
    assert_eq!(kind(encode(&[1e300], 1.0)), "above_declared_bound");
    assert_eq!(kind(tables.encode(&[Complex64::new(0.8, 0.7)], scale(40), 1.0)), "above_declared_bound");
    assert!(tables.encode(&[Complex64::new(0.6, 0.8)], scale(40), 1.0).is_ok());
    for bound in [0.0, -1.0, 1e-300, 1e300] {
        assert_eq!(kind(encode(&[0.0], bound)), "bound_out_of_range");
    }
    let error = tables.encode_real(&[1.0; 8], scale(120), 1.0).expect_err("too large");
    assert_eq!(error, EmbeddingError::CoefficientTooLarge { index: 0, log2_limit: 120, log2_scale: 120 });
    assert!(tables.encode_real(&[1.0; 8], Scale::new(1.9, 119).expect("scale"), 1.0).is_ok());
    assert_eq!(kind(tables.encode_real(&[1e60], scale(400), 1e60)), "coefficient_too_large");
    assert_eq!(tables.decode(&[0.0; 8]), Err(EmbeddingError::LengthMismatch { expected: 16, found: 8 }));
    for log_n in [0, 3, 19, u32::MAX] {
        assert_eq!(Embedding::new(log_n).expect_err("refused").kind(), "log_n_out_of_range");
    }
}

#[test]
fn e10_encoded_bits_are_frozen() {
    // A digest of integers: another summation order, fused multiplication or another libm would change it.
    let mut stream = Stream(10);
    let values = stream.complex(1 << 12);
    for (log_scale, expected) in [(45, "98b5bc2d7e08cadc"), (100, "c9ff1f6b5ebb5e59")] {
        let encoded = embedding(13).encode(&values, Scale::new(1.1, log_scale).expect("scale"), 1.0).expect("fits");
        let decoded = embedding(13).decode(&divided(&encoded, scale(log_scale))).expect("finite");
        let mut hasher = blake3::Hasher::new();
        for coefficient in encoded.iter() {
            hasher.update(&coefficient.to_le_bytes());
        }
        for slot in &decoded {
            hasher.update(&slot.re.to_le_bytes()).update(&slot.im.to_le_bytes());
        }
        assert_eq!(&hasher.finalize().to_hex()[..16], expected, "scale 2^{log_scale}");
    }
}

#[test]
fn e11_fixed_point_serves_where_doubles_are_too_coarse() {
    let mut stream = Stream(11);
    let (log_n, n) = (6, 64usize);
    let values = stream.complex(n / 2);
    let table = RootTable::new(log_n);
    // Scales that are no doubles, and bounds on both sides of a power of two.
    for (numerator, denominator, bound) in [(1u128 << 60, 3u32, 1.0), (u128::MAX / 5, 1 << 29, 0.75), (1 << 90, 7, 1.5)]
    {
        let scale = Scale::from_ratio(&numerator.into(), &denominator.into()).expect("in range");
        assert!(fixed::serves(scale, bound, Rounding::Bounded));
        let encoded = embedding(log_n).encode(&values, scale, bound).expect("fits");
        let log2 = numerator.ilog2() as f64 - f64::from(denominator.ilog2());
        let allowed = 0.5 + f64::exp2(log2 + 2.0 + fixed::LOG2_ERROR) + f64::exp2(log2 - 100.0);
        for (j, &coefficient) in encoded.iter().enumerate() {
            // p_j = (2/N) sum_i Re(z_i conj(zeta^(3^i j))) with z_i in units of 2^-60, roots in units of 2^-126.
            let sum: BigInt = (0..n / 2)
                .map(|i| {
                    let root = table.root(galois(i, n) * j % (2 * n));
                    let unit = |x: f64| BigInt::from((x * f64::exp2(60.0)) as i128);
                    unit(values[i].re) * root.re + unit(values[i].im) * root.im
                })
                .sum();
            // 2^186 2^5 denominator times the difference from the exact multiple.
            let left: BigInt = ((BigInt::from(coefficient) * denominator) << 191) - sum * numerator;
            let error = left.to_f64().expect("small") * f64::exp2(-191.0) / f64::from(denominator);
            assert!(error.abs() < allowed, "coefficient {j}: {error} against {allowed} at {scale:?}");
        }
    }
    // The two ways agree where both serve, and each says so to the certificate.
    let values = Stream(12).complex(1 << 11);
    let tables = embedding(12);
    let [coarse, fine] = [1.0, 2.0].map(|bound| tables.encode(&values, scale(51), bound).expect("fits"));
    assert!(!fixed::serves(scale(51), 1.0, Rounding::Bounded) && fixed::serves(scale(51), 2.0, Rounding::Bounded));
    let most = coarse.iter().zip(fine.iter()).map(|(a, b)| (a - b).abs()).max();
    assert!(most.is_some_and(|most| (1..100).contains(&most)), "{most:?}");
    for log_scale in 0..=110 {
        for bound in [0.01f64, 0.5, 1.0, 1.99, 1000.0] {
            let surely = fixed::surely_serves(f64::from(log_scale) + bound.log2(), Rounding::Bounded);
            assert!(!surely || fixed::serves(scale(log_scale), bound, Rounding::Bounded), "2^{log_scale}, {bound}");
        }
    }
}
