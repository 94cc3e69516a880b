//! BGV judged by decryption against vectors modulo t, and its certificates against the errors measured.

use crate::oracle::{self, Ct, Fixture, deep, fixture};
use crate::suite;
use crate::switching;
use synchromesh::bgv::{Bgv, Ciphertext, Factor, Rotations};

/// Bits that a product of fresh ciphertexts at N = 2^10 takes, those of t apart.
const PRODUCT: u32 = 28;

#[test]
fn every_operator_decrypts_for_every_t() {
    suite::every_operator::<Bgv>(PRODUCT);
}

#[test]
fn twelve_squarings_decrypt_for_every_t() {
    for t in oracle::moduli() {
        assert!(
            suite::squarings::<Bgv>(&t, PRODUCT, 12) >= 1,
            "{t}: a level a squaring at most, none before the first"
        );
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
fn one_stored_key_serves_all_levels() {
    suite::one_stored_key_serves_all_levels::<Bgv>(PRODUCT);
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

#[test]
fn chains_of_mostly_large_primes_decrypt() {
    let widest = &oracle::moduli()[4];
    suite::squarings_in::<Bgv>(switching::switched("2", (1, 2), 50, 30, 4), 4);
    suite::squarings_in::<Bgv>(switching::switched("257", (2, 3), 58, 38, 4), 4);
    suite::squarings_in::<Bgv>(switching::switched("65537", (4, 5), 66, 46, 7), 7);
    suite::levels_mix_in::<Bgv>(switching::switched("65537", (4, 5), 66, 46, 5));
    switching::every_level::<Bgv>(switching::switched("65537", (4, 5), 66, 46, 6));
    suite::levels_mix_in::<Bgv>(switching::switched_wide(widest, 320, 310));
    switching::every_level::<Bgv>(switching::switched_wide(oracle::T128, 190, 180));
}

#[test]
fn a_second_secret_key_below_the_leading_levels_decrypts() {
    for leading in [1, 2] {
        suite::squarings_in::<Bgv>(switching::second("65537", leading, 8), 8);
        suite::levels_mix_in::<Bgv>(switching::second("65537", leading, 4));
        switching::every_level::<Bgv>(switching::second("65537", leading, 4));
        let mut both = switching::switched("65537", (4, 5), 66, 46, 6);
        both.schedule = both.schedule.with_second_key(leading);
        switching::every_level::<Bgv>(both);
    }
}
