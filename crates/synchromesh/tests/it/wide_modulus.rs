//! Plaintext moduli of 128 and 255 bits at real, 128-bit secure degrees: the planned circuit decrypts exactly.

use std::sync::Arc;

use num_bigint::BigInt;
use synchromesh::exact::{Context, Evaluator, Params, Rotations, Scheme};
use synchromesh::plain_modulus::PlainModulus;
use synchromesh::plan::{Description, SchemeName, SchemeParams};
use synchromesh::rlwe::Randomness;

/// A 128-bit prime that is 1 mod 2^17.
const WIDE: &str = "0xffffffffffffffffffffffffff820001";
/// The prime 2^255 - 19: coefficients only, since it is not 1 mod 2N.
const NO_SLOTS: &str = "57896044618658097711785492504343953926634992332820282019728792003956564819949";

fn powers<S: Scheme>(params: Params<S>, depth: usize, slots: bool) {
    let t = BigInt::from(params.t().value().clone());
    let context = Context::<S>::new(params).unwrap();
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness).unwrap();
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let values: Vec<BigInt> =
        if slots { (0..64u32).map(|i| (&t / 3 + i) * BigInt::from(i)).collect() } else { vec![&t / 5 + 7] };
    let plain = if slots { context.encode(&values[..]) } else { context.encode_coefficients(&values[..]) }.unwrap();
    let mut x = context.encrypt(&public, &plain, &mut randomness).unwrap();
    let mut expected = values;
    for _ in 0..depth {
        x = evaluator.mul(&x, &x).unwrap();
        expected.iter_mut().for_each(|v| *v = &*v * &*v % &t);
    }
    let out = context.decrypt(&secret, &x).unwrap();
    let out = if slots { context.decode_big(&out) } else { context.decode_coefficients_big(&out) }.unwrap();
    for (expected, out) in expected.iter().zip(out) {
        assert_eq!(((out - expected) % &t), BigInt::ZERO);
    }
}

#[test]
fn planned_circuits_over_wide_moduli_decrypt_at_real_degrees() {
    let widest = PlainModulus::next_slot_prime(255, 15).unwrap().to_string();
    for (t, depth) in [(WIDE, 2), (widest.as_str(), 1), (NO_SLOTS, 1)] {
        for scheme in [SchemeName::Bgv, SchemeName::Bfv] {
            let mut description = Description::new(scheme, depth);
            description.t = Some(t.to_owned());
            let plan = description.plan().unwrap();
            assert!(plan.security_bits >= 128.0 && plan.log_n >= 13, "{plan:?}");
            match plan.params {
                SchemeParams::Bgv(literal) => {
                    powers(synchromesh::bgv::Params::new(literal).unwrap(), depth, plan.slots > 0);
                }
                SchemeParams::Bfv(literal) => {
                    powers(synchromesh::bfv::Params::new(literal).unwrap(), depth, plan.slots > 0);
                }
                SchemeParams::Ckks(_) => unreachable!("not asked for"),
            }
        }
    }
}
