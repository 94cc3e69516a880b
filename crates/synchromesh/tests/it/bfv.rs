//! BFV judged by decryption against vectors modulo t, and its certificates against the errors measured.

use crate::oracle::{self, Ct, Fixture, fixture, literal};
use crate::suite;
use crate::switching;
use synchromesh::bfv::{Bfv, Decryption, Rotations};

/// Bits that a product of fresh ciphertexts at N = 2^10 takes, those of t apart.
const PRODUCT: u32 = 28;

#[test]
fn every_operator_decrypts_for_every_t() {
    suite::every_operator::<Bfv>(PRODUCT);
}

#[test]
fn twelve_squarings_decrypt_for_every_t() {
    for t in oracle::moduli() {
        assert_eq!(suite::squarings::<Bfv>(&t, PRODUCT, 12), 12, "{t}: products drop no level");
    }
}

#[test]
fn ciphertexts_of_any_levels_add() {
    for t in ["65537", "1073479681", oracle::T128] {
        suite::levels_mix::<Bfv>(t, PRODUCT);
    }
}

#[test]
fn phases_at_the_edge_of_the_room_decrypt() {
    suite::edge_of_the_room::<Bfv>();
}

#[test]
fn composite_moduli_hold_coefficients() {
    suite::composite_moduli::<Bfv>(PRODUCT);
}

#[test]
fn declared_norms_tighten_certificates() {
    suite::public_norms::<Bfv>(PRODUCT);
}

#[test]
fn what_could_decrypt_wrongly_is_refused() {
    suite::noise_is_refused::<Bfv>(PRODUCT);
}

#[test]
fn objects_that_do_not_fit_are_typed_errors() {
    suite::mismatches::<Bfv>(PRODUCT);
}

#[test]
fn one_stored_key_serves_all_levels() {
    suite::one_stored_key_serves_all_levels::<Bfv>(PRODUCT);
}

#[test]
fn bad_literals_are_typed_errors() {
    suite::bad_literals::<Bfv>();
}

#[test]
fn products_and_rotations_decrypt_at_128_bits() {
    suite::at_real_size::<Bfv>(&[53, 53, 53], &[53]);
}

#[test]
fn threads_share_an_evaluator() {
    suite::threads_share::<Bfv>(PRODUCT);
}

/// Decrypts by every way that is exact and returns them.
fn ways(f: &Fixture<Bfv>, ct: &Ct<Bfv>) -> Vec<Decryption> {
    let expected = f.context.decrypt(&f.secret, ct).unwrap();
    let mut exact = Vec::new();
    for way in [Decryption::Doubles, Decryption::DigitDoubles, Decryption::Integers, Decryption::MultiLimb] {
        match f.context.decrypt_by(way, &f.secret, ct) {
            Ok(plaintext) => {
                assert!(plaintext == expected, "{way:?} disagrees");
                exact.push(way);
            }
            Err(error) => assert_eq!(error.kind(), "decryption_method", "{error}"),
        }
    }
    exact
}

#[test]
fn all_ways_of_decryption_that_are_exact_agree() {
    use Decryption::{DigitDoubles, Doubles, Integers, MultiLimb};
    let cases: [(&str, Vec<u32>, Vec<Decryption>); 7] = [
        ("65537", vec![40, 45, 48], vec![Doubles, DigitDoubles, Integers, MultiLimb]),
        ("2", vec![30; 9], vec![Doubles, DigitDoubles, Integers, MultiLimb]),
        ("65537", vec![50, 50, 50], vec![DigitDoubles, Integers, MultiLimb]),
        ("1073479681", vec![61, 60, 61, 30], vec![DigitDoubles, Integers, MultiLimb]),
        ("1000000", vec![61; 12], vec![DigitDoubles, Integers, MultiLimb]),
        ("2305843009213693951", vec![61; 4], vec![DigitDoubles, Integers, MultiLimb]),
        (oracle::T128, vec![45; 8], vec![MultiLimb]),
    ];
    for (t, q_bits, expected) in cases {
        let digit: u32 = q_bits.iter().sum();
        let p_bits = vec![61; digit.div_ceil(60) as usize];
        let mut f: Fixture<Bfv> = fixture(literal(10, t, &q_bits, &p_bits, &[], 1), &Rotations::none(), 40);
        let m = f.random();
        let ct = f.encrypt(&m);
        f.judge(&ct, &m);
        assert_eq!(ways(&f, &ct), expected, "{t} {q_bits:?}");
        let product = f.evaluator.square(&ct).unwrap();
        f.judge(&product, &f.mul(&m, &m));
        assert!(!ways(&f, &product).is_empty());
    }
}

#[test]
fn ways_of_decryption_hold_up_to_the_last_bit_of_noise() {
    // Multiplying by scalars fills the room bit by bit, and every way must agree where it says it is exact.
    let mut f: Fixture<Bfv> = fixture(literal(10, "65537", &[46, 47], &[61, 61], &[], 1), &Rotations::none(), 41);
    let mut m = f.random();
    let mut ct = f.encrypt(&m);
    let mut doubled = 0;
    let mut last = Vec::new();
    while let Ok(next) = f.evaluator.mul_scalar(&ct, 2) {
        ct = next;
        m = f.scale(&m, &2.into());
        last = ways(&f, &ct);
        f.judge(&ct, &m);
        doubled += 1;
    }
    assert!(doubled > 40 && last.contains(&Decryption::MultiLimb), "{doubled} {last:?}");
    assert!(f.context.noise_budget(&ct).unwrap() < 1.0);
}

#[test]
fn chains_of_mostly_large_primes_decrypt() {
    let widest = &oracle::moduli()[4];
    suite::squarings_in::<Bfv>(switching::switched("2", (1, 2), 50, 30, 4), 4);
    suite::squarings_in::<Bfv>(switching::switched("257", (2, 3), 58, 38, 4), 4);
    suite::squarings_in::<Bfv>(switching::switched("65537", (4, 5), 66, 46, 7), 7);
    suite::levels_mix_in::<Bfv>(switching::switched("65537", (4, 5), 66, 46, 5));
    switching::every_level::<Bfv>(switching::switched("65537", (4, 5), 66, 46, 6));
    suite::levels_mix_in::<Bfv>(switching::switched_wide(widest, 320, 310));
    switching::every_level::<Bfv>(switching::switched_wide(oracle::T128, 190, 180));
}

#[test]
fn a_second_secret_key_below_the_leading_levels_decrypts() {
    for leading in [1, 2] {
        suite::squarings_in::<Bfv>(switching::second("65537", leading, 8), 8);
        suite::levels_mix_in::<Bfv>(switching::second("65537", leading, 4));
        switching::every_level::<Bfv>(switching::second("65537", leading, 4));
        let mut both = switching::switched("65537", (4, 5), 66, 46, 6);
        both.schedule = both.schedule.with_second_key(leading);
        switching::every_level::<Bfv>(both);
    }
}
