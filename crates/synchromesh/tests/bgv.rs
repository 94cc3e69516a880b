//! BGV judged by decryption against vectors modulo t, and its certificates against the errors measured.

#[path = "exact/oracle.rs"]
mod oracle;
#[path = "exact/suite.rs"]
mod suite;

use num_bigint::BigInt;
use num_traits::Zero;
use oracle::{Ct, Fixture, Judged, centred, deep, fixture, largest};
use synchromesh::bgv::{Bgv, Ciphertext, Factor, Rotations};
use synchromesh::exact::Plaintext;

impl Judged for Bgv {
    fn measure(f: &Fixture<Self>, ct: &Ct<Self>, expected: &Plaintext) -> f64 {
        let t = f.t();
        let factor = BigInt::from(ct.header().value().clone());
        let message = f.coefficients(expected);
        let error = |(x, m): (BigInt, BigInt)| {
            let mut m = centred(&(m * &factor), &t);
            // For even t, +t/2 and -t/2 are the same message; the certificate covers the nearer one.
            if &m + &m == t && x < BigInt::zero() {
                m -= &t;
            }
            let difference = x - m;
            assert!((&difference % &t).is_zero(), "the phase is no multiple of t off the message");
            difference / &t
        };
        largest(f.phase(ct).into_iter().zip(message).map(error), &BigInt::from(1))
    }

    fn phase_of(f: &Fixture<Self>, m: &BigInt, e: &BigInt) -> BigInt {
        m + f.t() * e
    }

    fn plain_header(f: &Fixture<Self>) -> Factor {
        Factor::new(1u32.into(), f.context.params().t().value())
    }
}

/// Bits that a product of fresh ciphertexts at N = 2^10 takes, those of t apart.
const PRODUCT: u32 = 28;

#[test]
fn every_operator_decrypts_for_every_t() {
    suite::every_operator::<Bgv>(PRODUCT);
}

#[test]
fn twelve_squarings_decrypt_for_every_t() {
    for t in oracle::moduli() {
        assert_eq!(suite::squarings::<Bgv>(&t, PRODUCT, 12), 1, "{t}: one level a squaring, none before the first");
    }
}

#[test]
fn ciphertexts_of_any_levels_add() {
    for t in ["65537", "1073479681", oracle::T128] {
        suite::levels_mix::<Bgv>(t, PRODUCT);
    }
}

#[test]
fn phases_at_the_edge_of_the_room_decrypt() {
    suite::edge_of_the_room::<Bgv>();
}

#[test]
fn composite_moduli_hold_coefficients() {
    suite::composite_moduli::<Bgv>(PRODUCT);
}

#[test]
fn declared_norms_tighten_certificates() {
    suite::public_norms::<Bgv>(PRODUCT);
}

#[test]
fn what_could_decrypt_wrongly_is_refused() {
    suite::noise_is_refused::<Bgv>(PRODUCT);
}

#[test]
fn objects_that_do_not_fit_are_typed_errors() {
    suite::mismatches::<Bgv>(PRODUCT);
}

#[test]
fn bad_literals_are_typed_errors() {
    suite::bad_literals::<Bgv>();
}

#[test]
fn products_and_rotations_decrypt_at_128_bits() {
    suite::at_real_size::<Bgv>(&[53, 53, 53], &[53]);
}

#[test]
fn threads_share_an_evaluator() {
    suite::threads_share::<Bgv>(PRODUCT);
}

#[test]
fn levels_are_dropped_right_before_products_and_only_where_that_leaves_more_room() {
    let mut f: Fixture<Bgv> = fixture(deep(10, "65537", 45, 45, 3), &Rotations::none(), 30);
    let m = f.random();
    let x = f.encrypt(&m);
    let square = f.evaluator.square(&x).unwrap();
    assert_eq!(square.level(), 3, "fresh noise is at the rounding floor");
    let fourth = f.evaluator.square(&square).unwrap();
    assert_eq!(fourth.level(), 2);
    let square_down = f.evaluator.mod_switch(&square).unwrap();
    let fresh_below = f.encrypt_at(&m, 2);
    assert_eq!(square_down.header(), fresh_below.header(), "the factor of a level");
    // An operand with a factor of its own costs no noise to align: (1, c) or (c, 1) with the smaller error scaled.
    let sum = f.evaluator.add(&square, &x).unwrap();
    let budget = |ct: &Ct<Bgv>| f.context.noise_budget(ct).unwrap();
    assert!(budget(&square) - budget(&sum) < 2.0, "{} {}", budget(&square), budget(&sum));
}

#[test]
fn a_product_costs_no_transform_before_its_key_switch() {
    let mut f: Fixture<Bgv> = fixture(deep(10, "65537", 45, 45, 3), &Rotations::none(), 31);
    let m = f.random();
    let (x, y) = (f.encrypt(&m), f.encrypt(&m));
    let backend = f.context.backend();
    let (three, tensor) = backend.measure(|| f.evaluator.mul_no_relin(&x, &y).unwrap());
    let k = 4;
    assert_eq!((tensor.ntt, tensor.mul, tensor.convert_mac), (0, 4 * k, 0));
    f.evaluator.relinearize(&three).unwrap();
    let (_, switch) = backend.measure(|| f.evaluator.relinearize(&three).unwrap());
    let plan = f.context.params().plan();
    let (omega, special) = (plan.digits.len() as u64, plan.special.len() as u64);
    assert_eq!(switch.ntt, (omega + 2) * (k + special));
}

#[test]
fn a_correction_factor_that_cannot_be_right_is_refused() {
    let mut f: Fixture<Bgv> = fixture(deep(10, "1000000", 60, 50, 1), &Rotations::none(), 32);
    let m = f.random();
    let t = f.context.params().t().value().clone();
    for (value, valid) in [(3u32, true), (0, false), (10, false), (999_999, true)] {
        let inner = f.encrypt(&m).inner().duplicate(f.context.rlwe()).unwrap();
        let read = Ciphertext::from_parts(f.context.params(), inner, Factor::new(value.into(), &t));
        assert_eq!(read.as_ref().err().map(|e| e.kind()), (!valid).then_some("header"), "{value}");
    }
}
