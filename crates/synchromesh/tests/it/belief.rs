//! Why a certificate is believed: proven, authenticated, or on the user's word, which whatever is computed remembers; and
//! forged containers, which nobody believes.

use std::sync::Arc;

use synchromesh::circuits::{
    Coefficient, Combination, LinearTransform, MatrixArithmetic, Number, Polynomial, SlotSum, inner_product,
};
use synchromesh::exact::{self, Scheme};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::EnvelopeKey;
use synchromesh::rlwe::{Noise, Randomness};
use synchromesh::{bfv, bgv, ckks};

use crate::ckks_fixture::{fixture, literal, values};

/// Every operation on one ciphertext that is on word, and on two of which one is.
fn every_operation<A: MatrixArithmetic>(
    e: &A,
    own: &A::Ciphertext,
    told: &A::Ciphertext,
    noise: fn(&A::Ciphertext) -> Noise,
) {
    let one = Coefficient::All(A::Scalar::integer(3));
    let combined = |products: Vec<[&A::Ciphertext; 2]>, weight: &A::Ciphertext| {
        e.combine(&Combination { products, weights: vec![(weight, &one)], constant: Some(&one) }).unwrap()
    };
    let shape = e.slots().unwrap();
    let mut map = LinearTransform::zero(shape);
    for (step, swap) in [(0, false), (1, false), (0, true)] {
        map.add_diagonal(step, swap, vec![A::Scalar::integer(1); shape.count()]).unwrap();
    }
    let map = map.prepare(e, e.level(told)).unwrap();
    let polynomial = Polynomial::power((1..4).map(|i| Coefficient::All(A::Scalar::integer(i)))).unwrap();
    let made = |x: &A::Ciphertext, y: &A::Ciphertext| {
        vec![
            ("copy", e.duplicate(x).unwrap()),
            ("sum", e.add(x, y).unwrap()),
            ("product", e.mul(x, y).unwrap()),
            ("square", e.square(x).unwrap()),
            ("inner product", inner_product(e, &[y, x], &[y, y]).unwrap()),
            ("combination", combined(vec![[y, y], [x, y]], y)),
            ("weight", combined(vec![[y, y]], x)),
            ("rotation", e.rotate(x, 1).unwrap()),
            ("swap", e.swap(x).unwrap()),
            ("level", e.at_level(x, 0).unwrap()),
            ("slots", SlotSum::new(2).run(e, x).unwrap()),
            ("map", map.apply(e, x).unwrap()),
            ("polynomial", polynomial.evaluate(e, x).unwrap()),
            ("hoisted", e.rotated(&e.hoist(x, true).unwrap(), 1).unwrap()),
            ("choice", {
                let [a, b] = [x, y].map(|x| e.hoist(x, true).unwrap());
                let (pair, level) = (e.pair(&a, &b).unwrap(), e.level(x));
                let mask = e.mask(&[A::Scalar::integer(1), A::Scalar::integer(0)], level).unwrap();
                e.chosen([&a, &b], &pair, &mask, 1, level - 1).unwrap()
            }),
            ("tensors", e.settle_product(&e.sum_of_tensors(&[[y, y], [x, y]]).unwrap()).unwrap()),
        ]
    };
    assert!(noise(told).certificate.is_on_word() && !noise(own).certificate.is_on_word());
    for (what, result) in made(told, own) {
        assert!(noise(&result).certificate.is_on_word(), "{what} forgets");
    }
    for (what, result) in made(own, own) {
        assert!(!noise(&result).certificate.is_on_word(), "{what} of what is proven");
    }
    // From the other side.
    for (what, result) in [("sum", e.add(own, told)), ("product", e.mul(own, told))] {
        assert!(noise(&result.unwrap()).certificate.is_on_word(), "{what} forgets");
    }
}

/// The container with a certificate of 2^-50, its digest made anew.
fn forged(mut bytes: Vec<u8>) -> Vec<u8> {
    for at in [80, 84] {
        bytes[at..at + 4].copy_from_slice(&(-50i32 << 10).to_le_bytes());
    }
    let end = bytes.len() - 32;
    let digest = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(digest.as_bytes());
    bytes
}

fn exact_scheme<S: Scheme>()
where
    exact::Evaluator<S>: MatrixArithmetic<Ciphertext = exact::Ciphertext<S>>,
{
    let literal = exact::ParamsLiteral {
        log_n: 11,
        t: "12289".to_owned(),
        q_bits: vec![50; 5],
        p_bits: vec![50; 2],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 3,
        security: synchromesh::rlwe::Security::Insecure,
        primes: None,
    };
    let context = exact::Context::<S>::new(exact::Params::new(literal).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(11);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = exact::Rotations { swap: true, ..exact::Rotations::by([1]) };
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let mut encrypt = || context.encrypt(&public, &context.encode(&[3i64]).unwrap(), &mut randomness).unwrap();
    let (x, y) = (encrypt(), encrypt());
    let read = |bytes: &[u8], trust: Trust<'_>| exact::Ciphertext::<S>::from_bytes(&context, bytes, None, trust);
    let told = read(&x.to_bytes(&context, None).unwrap(), Trust::Certificate).unwrap();
    every_operation(&evaluator, &y, &told, exact::Ciphertext::noise);
    let key = EnvelopeKey::random().unwrap();
    let sealed = x.to_bytes(&context, Some(&key)).unwrap();
    assert!(!read(&sealed, Trust::Envelope(&key)).unwrap().noise().certificate.is_on_word());
    assert_eq!(read(&forged(sealed), Trust::Envelope(&key)).err().unwrap().kind(), "not_authentic");
    let plain = forged(x.to_bytes(&context, None).unwrap());
    assert_eq!(read(&plain, Trust::Envelope(&key)).err().unwrap().kind(), "envelope_mismatch");
    let doubted = read(&plain, Trust::Nothing).unwrap();
    assert_eq!(context.decrypt(&secret, &doubted).unwrap_err().kind(), "unknown_noise");
}

#[test]
fn bfv_remembers_and_believes_no_forgery() {
    exact_scheme::<bfv::Bfv>();
}

#[test]
fn bgv_remembers_and_believes_no_forgery() {
    exact_scheme::<bgv::Bgv>();
}

#[test]
fn ckks_remembers_and_believes_no_forgery() {
    let mut f = fixture(literal(11, 40, &[50, 40, 40, 40, 40], &[50, 50]), 7);
    let x = values(f.context.params().slots(), 1.0, 5);
    let (x, y) = (f.encrypt(&x, 1.0), f.encrypt(&x, 1.0));
    let read = |bytes: &[u8], trust: Trust<'_>| ckks::Ciphertext::from_bytes(&f.context, bytes, None, trust);
    let told = read(&x.to_bytes(&f.context, None).unwrap(), Trust::Certificate).unwrap();
    every_operation(&f.evaluator, &y, &told, |x| x.inner().noise());
    let key = EnvelopeKey::random().unwrap();
    let sealed = x.to_bytes(&f.context, Some(&key)).unwrap();
    assert!(!read(&sealed, Trust::Envelope(&key)).unwrap().inner().noise().certificate.is_on_word());
    assert_eq!(read(&forged(sealed), Trust::Envelope(&key)).err().unwrap().kind(), "not_authentic");
    let plain = forged(x.to_bytes(&f.context, None).unwrap());
    assert_eq!(read(&plain, Trust::Nothing).err().unwrap().kind(), "unknown_noise");
}
