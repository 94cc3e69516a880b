//! Ciphertexts of every scheme through bytes: the same ciphertext comes back, and a header that no writer makes is
//! refused.

use std::sync::Arc;

use synchromesh::exact::{self, Scheme};
use synchromesh::rlwe::codec::{Attached, Trust};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::{bfv, bgv, ckks};

const LOG_N: u32 = 11;

fn exact_params<S: Scheme>() -> exact::Params<S> {
    exact::Params::new(exact::ParamsLiteral {
        log_n: LOG_N,
        t: "12289".to_owned(),
        q_bits: vec![40, 40, 40],
        p_bits: vec![40, 40],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        security: Security::Insecure,
        primes: None,
    })
    .unwrap()
}

fn exact_round_trip<S: Scheme>() {
    let context = exact::Context::<S>::new(exact_params()).unwrap();
    let mut randomness = Randomness::insecure_from_number(11);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &exact::Rotations::none(), &mut randomness).unwrap();
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let x = context.encrypt(&public, &context.encode(&[3i64, -4, 5]).unwrap(), &mut randomness).unwrap();
    let square = evaluator.mul(&x, &x).unwrap();
    let lower = evaluator.mod_switch_to(&square, 0).unwrap();
    for ct in [&x, &square, &lower] {
        let bytes = ct.to_bytes(&context, None).unwrap();
        let read = exact::Ciphertext::<S>::from_bytes(&context, &bytes, Some(secret.id()), Trust::Certificate).unwrap();
        assert_eq!((read.header(), read.level()), (ct.header(), ct.level()));
        let growth = read.noise().certificate.sigma - ct.noise().certificate.sigma;
        assert!((0.0..0.01).contains(&growth), "certificates are rounded up: {growth}");
        assert_eq!(context.decrypt(&secret, &read).unwrap(), context.decrypt(&secret, ct).unwrap());
        assert_eq!(read.to_bytes(&context, None).unwrap(), bytes);
        let untrusted = exact::Ciphertext::<S>::from_bytes(&context, &bytes, None, Trust::Nothing).unwrap();
        assert_eq!(context.decrypt(&secret, &untrusted).unwrap_err().kind(), "unknown_noise");
    }
    for scheme_header in [&[1, 0][..], &[0x01, 0x30], &[0; 40]] {
        let bytes = x.inner().to_bytes(context.rlwe(), Attached { scheme_header, seed: None }, None).unwrap();
        let error = exact::Ciphertext::<S>::from_bytes(&context, &bytes, None, Trust::Certificate).err().unwrap();
        assert_eq!(error.kind(), "header", "{scheme_header:?}");
    }
}

#[test]
fn bfv_ciphertexts_come_back() {
    exact_round_trip::<bfv::Bfv>();
}

#[test]
fn bgv_ciphertexts_come_back() {
    exact_round_trip::<bgv::Bgv>();
}

#[test]
fn ckks_ciphertexts_come_back_with_scale_and_bound() {
    for mode in [ckks::Mode::Auto, ckks::Mode::Manual] {
        let params = ckks::Params::new(ckks::ParamsLiteral {
            log_n: LOG_N,
            log_scale: 40,
            q_bits: vec![50, 40, 40],
            p_bits: vec![50, 50],
            level_limbs: vec![],
            schedule: Default::default(),
            omega: 2,
            log_scales: vec![],
            mode,
            security: Security::Insecure,
            primes: None,
        });
        let context = ckks::Context::new(params.unwrap()).unwrap();
        let mut randomness = Randomness::insecure_from_number(12);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &ckks::Rotations::none(), &mut randomness).unwrap();
        let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
        let message = context.encode_bounded(&[1.5, -2.0], 3.0).unwrap();
        let x = context.encrypt(&public, &message, &mut randomness).unwrap();
        let tensor = evaluator.mul_no_relin(&x, &x).unwrap();
        let product = evaluator.mul(&x, &x).unwrap();
        let cube = evaluator.mul(&evaluator.rescale(&product).unwrap_or(product), &x);
        for ct in [x, tensor].into_iter().chain(cube) {
            let bytes = ct.to_bytes(&context, None).unwrap();
            let read = ckks::Ciphertext::from_bytes(&context, &bytes, Some(secret.id()), Trust::Certificate).unwrap();
            assert_eq!((read.header(), read.level()), (ct.header(), ct.level()));
            assert_eq!(read.to_bytes(&context, None).unwrap(), bytes);
            let header = ct.header().to_bytes(context.params(), ct.level()).unwrap();
            for cut in 0..header.len().min(9) {
                assert!(ckks::Header::from_bytes(context.params(), ct.level(), &header[..cut]).is_err(), "{cut}");
            }
        }
        let own = context.params().scale(2).unwrap().clone();
        let long = [&2.0f64.to_le_bytes()[..], &[2], &own.two().to_le_bytes()].concat();
        assert_eq!(ckks::Header::from_bytes(context.params(), 2, &long).unwrap_err().kind(), "header");
    }
}
