//! Slot and coefficient encoding against their definitions, for t of 2 to 256 bits.

use num_bigint::{BigInt, BigUint};

use super::*;

/// A fixed stream of big integers (splitmix64).
struct Stream(u64);

impl Stream {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: &BigUint) -> BigUint {
        (0..5).fold(BigUint::ZERO, |acc, _| (acc << 64u32) + self.word()) % bound
    }

    fn values(&mut self, t: &PlainModulus, count: usize) -> Vec<BigUint> {
        (0..count).map(|_| self.below(t.value())).collect()
    }
}

fn modulus(text: &str) -> PlainModulus {
    text.parse().expect("modulus")
}

/// 65537, 2^30 - 2^18 + 1, a 61-bit, a 62-bit, a 64-bit, a 128-bit, a 255-bit and a 256-bit prime.
fn primes() -> Vec<PlainModulus> {
    let mut all = vec![modulus("65537"), modulus("1073479681"), modulus("0xffffffffffffffffffffffffff820001")];
    all.extend([61, 62, 64, 255, 256].map(|bits| PlainModulus::next_slot_prime(bits, 15).expect("prime")));
    all
}

fn signed(values: &[BigUint]) -> Vec<BigInt> {
    values.iter().cloned().map(BigInt::from).collect()
}

fn coefficients(poly: &PlainPoly) -> Vec<BigUint> {
    values::to_big_unsigned(poly.coeffs(), |i| i)
}

fn poly(t: &PlainModulus, coeffs: &[BigUint]) -> PlainPoly {
    let log_n = coeffs.len().trailing_zeros();
    CoefficientEncoder::new(t, log_n).expect("degree").encode_big(&signed(coeffs)).expect("fits")
}

/// a b in Z_t[X]/(X^N + 1), by the definition.
fn negacyclic_product(a: &[BigUint], b: &[BigUint], t: &BigUint) -> Vec<BigUint> {
    let n = a.len();
    let mut product = vec![BigUint::ZERO; n];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            let term = x * y % t;
            let term = if i + j < n { term } else { t - term };
            product[(i + j) % n] = (&product[(i + j) % n] + term) % t;
        }
    }
    product
}

/// f(X^g) in Z_t[X]/(X^N + 1), by the definition.
fn automorphism(f: &[BigUint], g: usize, t: &BigUint) -> Vec<BigUint> {
    let n = f.len();
    let mut image = vec![BigUint::ZERO; n];
    for (i, x) in f.iter().enumerate() {
        let exponent = i * g % (2 * n);
        image[exponent % n] = if exponent < n { x.clone() } else { (t - x) % t };
    }
    image
}

#[test]
fn t01_decode_inverts_encode() {
    let mut stream = Stream(1);
    for t in primes() {
        for log_n in [4, 5, 10] {
            let encoder = BatchEncoder::new(&t, log_n).expect("slots");
            let values = stream.values(&t, 1 << log_n);
            let encoded = encoder.encode_big(&signed(&values)).expect("fits");
            assert_eq!(encoder.decode_big_unsigned(&encoded).expect("decodes"), values, "t = {t}, N = 2^{log_n}");
        }
    }
}

#[test]
fn t02_slots_are_evaluations_at_powers_of_three() {
    let mut stream = Stream(2);
    for t in primes() {
        let n = 16usize;
        let encoder = BatchEncoder::new(&t, 4).expect("slots");
        // The polynomial X shows the evaluation points themselves.
        let points = encoder.decode_big_unsigned(&encoder_free_monomial(&t, n)).expect("decodes");
        let zeta = points[0].clone();
        assert_eq!(zeta.modpow(&BigUint::from(n), t.value()), t.value() - 1u8, "order 2N");
        let f = stream.values(&t, n);
        let slots = encoder.decode_big_unsigned(&poly(&t, &f)).expect("decodes");
        for i in 0..n / 2 {
            let exponent = 3usize.pow(i as u32) % (2 * n);
            for (slot, e) in [(i, exponent), (n / 2 + i, 2 * n - exponent)] {
                let x = zeta.modpow(&BigUint::from(e), t.value());
                assert_eq!(points[slot], x, "point of slot {slot}, t = {t}");
                let value = f.iter().rev().fold(BigUint::ZERO, |acc, c| (acc * &x + c) % t.value());
                assert_eq!(slots[slot], value, "slot {slot}, t = {t}");
            }
        }
    }
}

fn encoder_free_monomial(t: &PlainModulus, n: usize) -> PlainPoly {
    let mut coeffs = vec![BigUint::ZERO; n];
    coeffs[1] = BigUint::from(1u8);
    poly(t, &coeffs)
}

#[test]
fn t03_products_of_polynomials_are_products_of_slots() {
    let mut stream = Stream(3);
    for t in primes() {
        let encoder = BatchEncoder::new(&t, 6).expect("slots");
        let (a, b) = (stream.values(&t, 64), stream.values(&t, 64));
        let encode = |x: &[BigUint]| coefficients(&encoder.encode_big(&signed(x)).expect("fits"));
        let product = negacyclic_product(&encode(&a), &encode(&b), t.value());
        let expected: Vec<BigUint> = a.iter().zip(&b).map(|(x, y)| x * y % t.value()).collect();
        assert_eq!(encoder.decode_big_unsigned(&poly(&t, &product)).expect("decodes"), expected, "t = {t}");
    }
}

#[test]
fn t04_automorphisms_rotate_rows_left_and_swap_them() {
    let mut stream = Stream(4);
    for t in primes() {
        let (log_n, n) = (5, 32usize);
        let encoder = BatchEncoder::new(&t, log_n).expect("slots");
        let values = stream.values(&t, n);
        let f = coefficients(&encoder.encode_big(&signed(&values)).expect("fits"));
        let (row0, row1) = values.split_at(n / 2);
        for k in [1usize, 2, 7, 15] {
            let g = (0..k).fold(1, |g, _| g * 3 % (2 * n));
            let image = poly(&t, &automorphism(&f, g, t.value()));
            let (mut left0, mut left1) = (row0.to_vec(), row1.to_vec());
            left0.rotate_left(k);
            left1.rotate_left(k);
            assert_eq!(encoder.decode_big_unsigned(&image).expect("decodes"), [left0, left1].concat(), "{t} by {k}");
        }
        let image = poly(&t, &automorphism(&f, 2 * n - 1, t.value()));
        assert_eq!(encoder.decode_big_unsigned(&image).expect("decodes"), [row1, row0].concat(), "{t} columns");
    }
}

#[test]
fn t05_integers_of_every_type_and_size_are_mapped_mod_t() {
    for t in primes().into_iter().chain(["2", "3", "4", "0x4000000000000000", "0xffffffffffffffffffff"].map(modulus)) {
        let encoder = CoefficientEncoder::new(&t, 4).expect("degree");
        let unsigned = [0, 1, 2, 65_536, 65_537, u64::MAX - 1, u64::MAX];
        let signed_words = [0, 1, -1, i64::MIN, i64::MAX, -65_537, 65_536];
        let expect = |x: BigInt| {
            let m = BigInt::from(t.value().clone());
            BigUint::try_from(((x % &m) + &m) % &m).expect("not negative")
        };
        let got = coefficients(&encoder.encode_u64(&unsigned).expect("fits"));
        assert_eq!(got[..7], unsigned.map(|x| expect(x.into())), "u64, t = {t}");
        let got = coefficients(&encoder.encode_i64(&signed_words).expect("fits"));
        assert_eq!(got[..7], signed_words.map(|x| expect(x.into())), "i64, t = {t}");
        let big: Vec<BigInt> = [0u32, 63, 64, 255, 256, 319, 320, 700]
            .into_iter()
            .flat_map(|shift| {
                let power: BigInt = BigInt::from(1) << shift;
                [&power - 1, -power]
            })
            .collect();
        let got = coefficients(&encoder.encode_big(&big).expect("fits"));
        assert_eq!(got, big.into_iter().map(expect).collect::<Vec<_>>(), "big, t = {t}");
    }
}

#[test]
fn t06_centred_decoding_covers_minus_half_to_half() {
    for (t, values) in [
        ("2", vec![0, 1]),
        ("4", vec![-1, 0, 1, 2]),
        ("97", vec![-48, 48, -1, 0]),
        ("0xffffffffffffffff", vec![i64::MAX, -i64::MAX, -1]),
    ] {
        let encoder = CoefficientEncoder::new(&modulus(t), 4).expect("degree");
        let encoded = encoder.encode_i64(&values).expect("fits");
        assert_eq!(encoder.decode_i64(&encoded).expect("64 bits")[..values.len()], values, "t = {t}");
        let big: Vec<BigInt> = values.iter().map(|&v| BigInt::from(v)).collect();
        assert_eq!(encoder.decode_big(&encoded).expect("decodes")[..values.len()], big, "t = {t}");
    }
    let t = modulus("65537");
    let encoder = BatchEncoder::new(&t, 4).expect("slots");
    let encoded = encoder.encode_i64(&[-1, 5, -32_768, 32_768]).expect("fits");
    assert_eq!(encoder.decode_i64(&encoded).expect("fits")[..5], [-1, 5, -32_768, 32_768, 0]);
    assert_eq!(encoder.decode_u64(&encoded).expect("fits")[..5], [65_536, 5, 32_769, 32_768, 0]);
}

#[test]
fn t07_bad_input_is_a_typed_error() {
    let t = modulus("65537");
    let encoder = BatchEncoder::new(&t, 4).expect("slots");
    assert_eq!(
        encoder.encode_u64(&[1; 17]).expect_err("17 values"),
        BatchError::TooManyValues { given: 17, capacity: 16 }
    );
    for (t, prime) in [("65539", true), ("65536", false), ("0xffffffffffffffffffffffffffffffff", false)] {
        let error = BatchEncoder::new(&modulus(t), 4).expect_err("no slots");
        assert!(matches!(error, BatchError::NoSlots { prime: p, log_n: 4, .. } if p == prime), "{error}");
        assert!(error.remedy().contains("coefficient encoding"));
    }
    assert_eq!(BatchEncoder::new(&t, 16).expect_err("65537 has 2^15 slots").kind(), "no_slots");
    assert_eq!(BatchEncoder::new(&t, 3).expect_err("small").kind(), "log_n_out_of_range");
    assert_eq!(CoefficientEncoder::new(&t, 99).expect_err("large").kind(), "log_n_out_of_range");
    let other = CoefficientEncoder::new(&modulus("97"), 4).expect("degree").encode_u64(&[1]).expect("fits");
    assert_eq!(encoder.decode_u64(&other).expect_err("other t").kind(), "plain_modulus_mismatch");
    let longer = CoefficientEncoder::new(&t, 5).expect("degree").encode_u64(&[1]).expect("fits");
    assert_eq!(encoder.decode_u64(&longer), Err(BatchError::LengthMismatch { expected: 16, found: 32 }));
    let wide = BatchEncoder::new(&primes()[2], 4).expect("slots");
    let encoded = wide.encode_u64(&[1]).expect("fits");
    assert_eq!(wide.decode_i64(&encoded), Err(BatchError::DoesNotFit { bits: 128, max: 64 }));
}

#[test]
fn t08_polynomials_are_checked_and_do_not_print_their_contents() {
    let t = modulus("97");
    let wide = primes()[2].clone();
    let build = |t: &PlainModulus, residues| PlainPoly::new(t, residues).map(|_| ());
    assert_eq!(build(&t, Residues::Word(vec![96; 16])), Ok(()));
    assert_eq!(build(&t, Residues::Word(vec![97; 16])), Err(BatchError::ResidueOutOfRange { bits: 7 }));
    assert_eq!(build(&t, Residues::Word(vec![0; 15])), Err(BatchError::LengthNotDegree { length: 15 }));
    assert_eq!(build(&t, Residues::Wide(vec![[0; 4]; 16])), Err(BatchError::WrongStorage { bits: 7 }));
    let limbs = crate::plain_modulus::from_biguint(wide.value()).expect("256 bits");
    assert_eq!(build(&wide, Residues::Wide(vec![limbs; 16])), Err(BatchError::ResidueOutOfRange { bits: 128 }));
    let secret = CoefficientEncoder::new(&t, 4).expect("degree").encode_u64(&[77; 16]).expect("fits");
    assert!(!format!("{secret:?}").contains("77"));
}

#[test]
fn t09_real_degrees_round_trip() {
    let mut stream = Stream(9);
    for (t, log_n) in [("65537", 15), ("0xffffffffffffffffffffffffff820001", 15)] {
        let t = modulus(t);
        let encoder = BatchEncoder::new(&t, log_n).expect("slots");
        let values: Vec<u64> = (0..1 << log_n).map(|_| stream.word() % 65_537).collect();
        let encoded = encoder.encode_u64(&values).expect("fits");
        let expected: Vec<BigUint> = values.into_iter().map(BigUint::from).collect();
        assert_eq!(encoder.decode_big_unsigned(&encoded).expect("decodes"), expected);
    }
}
