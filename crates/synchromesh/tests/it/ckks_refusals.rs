//! CKKS: what is refused, with which error; manual mode; files' headers.

use std::sync::Arc;

use crate::ckks_fixture::{Fixture, close, fixture, literal, plus, times, values, zip};
use synchromesh::Error;
use synchromesh::ckks::{
    Ciphertext, Complex64, Context, Evaluator, Header, Mode, Params, ParamsLiteral, Plaintext, Rotations, Scale,
};
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::{Certificate, Error as RlweError, Randomness};

fn small(seed: u64) -> Fixture {
    fixture(literal(10, 40, &[55, 40, 40], &[50, 50]), seed)
}

fn manual(seed: u64) -> Fixture {
    fixture(ParamsLiteral { mode: Mode::Manual, ..literal(10, 40, &[55, 40, 40, 40], &[50, 50]) }, seed)
}

fn refused<T>(result: synchromesh::Result<T>) -> Error {
    let error = result.err().expect("must be refused");
    assert!(!error.kind().is_empty() && !error.remedy().is_empty(), "{error}");
    error
}

#[test]
fn inputs_outside_what_was_declared() {
    let f = small(1);
    let kinds = [
        (refused(f.context.encode(&[0.0, f64::NAN])), "not_finite"),
        (refused(f.context.encode(&[f64::INFINITY])), "not_finite"),
        (refused(f.context.encode(&[1.0 + 1e-9])), "above_declared_bound"),
        (refused(f.context.encode_complex(&[Complex64::new(0.8, 0.8)], 1.0)), "above_declared_bound"),
        (refused(f.context.encode(&vec![0.0; 513])), "too_many_values"),
        (refused(f.context.encode_bounded(&[0.0], f64::NAN)), "bound_out_of_range"),
        (refused(f.context.encode_bounded(&[0.0], -1.0)), "bound_out_of_range"),
    ];
    for (error, kind) in kinds {
        assert_eq!(error.kind(), kind);
    }
    assert!(f.context.encode(&vec![1.0; 512]).is_ok());
    assert_eq!(refused(f.context.encode(&[0.0, f64::NAN])).to_string(), "input 1 is not a finite number");
}

#[test]
fn keys_and_parameters_that_do_not_belong_together() {
    let (mut f, mut other) = (small(2), small(3));
    let strange = fixture(literal(10, 39, &[55, 39, 39, 39], &[50, 50]), 4);
    let x = values(8, 1.0, 5);
    let (cx, cy) = (f.encrypt(&x, 1.0), other.encrypt(&x, 1.0));
    let e = &f.evaluator;
    assert_eq!(refused(f.context.decrypt(&other.secret, &cx)).kind(), "keys_differ");
    assert_eq!(refused(e.add(&cx, &cy)).kind(), "keys_differ");
    assert_eq!(refused(e.mul(&cx, &cy)).kind(), "keys_differ");
    assert_eq!(refused(e.mul(&cy, &cy)).kind(), "keys_differ");
    assert_eq!(refused(e.rotate(&cy, 1)).kind(), "keys_differ");
    let pt = strange.context.encode(&[0.5]).unwrap();
    let (foreign, _) = strange.context.encrypt_with_secret(&strange.secret, &pt, 3, &mut f.randomness).unwrap();
    let half = f.context.encode(&[0.5]).unwrap();
    let results = [
        e.add(&foreign, &cx),
        e.mul(&cx, &foreign),
        e.square(&foreign),
        e.square_no_relin(&foreign),
        e.neg(&foreign),
        e.rotate(&foreign, 0),
        e.rotate(&foreign, 1),
        e.relinearize(&foreign),
        e.rescale(&foreign),
        e.mod_switch(&foreign),
        e.mod_switch_to(&foreign, 3),
        e.add_plain(&foreign, &half),
        e.mul_plain(&foreign, &half),
        e.mul_scalar(&foreign, 0.5),
        e.mul_scalar(&foreign, 2.0),
        e.add_scalar(&foreign, 0.5),
        e.mul_scalar(&foreign, Complex64::new(0.0, 1.0)),
    ];
    for (i, result) in results.into_iter().enumerate() {
        assert_eq!(refused(result).kind(), "params_differ", "case {i}");
    }
    assert_eq!(refused(f.context.decrypt(&strange.secret, &foreign)).kind(), "params_differ");
    assert_eq!(refused(f.context.encrypt(&strange.public, &half, &mut f.randomness)).kind(), "params_differ");
    let error = refused(e.rotate(&cx, 2));
    assert!(error.to_string().contains("[2]"), "{error}");
    assert_eq!(error.kind(), "missing_key");
    let bare = Evaluator::new(&f.context, None);
    assert_eq!(refused(bare.mul(&cx, &cx)), Error::NoKeys { operation: "multiplication" });
    assert_eq!(refused(bare.rotate_many(&cx, &[1])).kind(), "no_keys");
    assert!(bare.add(&cx, &cx).is_ok());
}

#[test]
fn levels_run_out_and_bounds_outgrow_the_modulus() {
    let mut f = small(6);
    let x = values(f.context.params().slots(), 1.0, 7);
    let cx = f.encrypt(&x, 1.0);
    let e = &f.evaluator;
    let low = e.mod_switch_to(&cx, 0).unwrap();
    close(&f, &low, &x, "at level 0");
    let expected = Error::from(RlweError::Level { needed: 1, have: 0, top: 2 });
    assert_eq!(refused(e.mul(&low, &cx)), expected);
    assert_eq!(refused(e.square(&low)), expected);
    assert_eq!(refused(e.mul_scalar(&low, 0.5)), expected);
    assert_eq!(refused(e.mod_switch(&low)), expected);
    assert_eq!(refused(e.mod_switch_to(&low, 1)).kind(), "level");
    let pt = f.context.encode(&[1.0]).unwrap();
    assert_eq!(refused(f.context.encrypt_at(&f.public, &pt, 3, &mut f.randomness)).kind(), "level");
    assert_eq!(refused(e.mul_no_relin(&low, &low)).kind(), "noise");
    // 2^14 * 2^40 still fits below 2^55 / 2, twice that does not.
    let mut sum = e.mul_scalar(&low, f64::from(1 << 13)).unwrap();
    assert!(f.context.noise_budget(&sum) < 1.1);
    close(&f, &sum, &zip(&x, &x, |x, _| times(x, f64::from(1 << 13).into())), "nearly full");
    let error = refused(e.add(&sum, &sum));
    assert!(matches!(error, Error::Rlwe(RlweError::Noise { level: 0, .. })), "{error}");
    assert_eq!(refused(e.add_scalar(&sum, 1e30)).kind(), "noise");
    assert_eq!(refused(e.mul_scalar(&cx, f64::NAN)).kind(), "not_finite");
    assert_eq!(refused(e.add_scalar(&cx, f64::INFINITY)).kind(), "not_finite");
    assert_eq!(refused(e.mul_scalar(&cx, 1e300)).kind(), "noise");
    let large = f.context.encode_bounded(&[1.0], 1e5).unwrap();
    assert_eq!(refused(f.context.encrypt_at(&f.public, &large, 0, &mut f.randomness)).kind(), "noise");
    // Doubling by hand ends in the same refusal, before any wrong result.
    while let Ok(next) = e.add(&sum, &low) {
        sum = next;
    }
    assert!(f.context.noise_budget(&sum) < 0.01);
}

#[test]
fn manual_mode_keeps_scales_until_asked() {
    let mut f = manual(8);
    let n = f.context.params().slots();
    let (x, y) = (values(n, 1.0, 9), values(n, 1.0, 10));
    let (cx, cy) = (f.encrypt(&x, 1.0), f.encrypt(&y, 1.0));
    let e = &f.evaluator;
    let xy = zip(&x, &y, times);
    let product = e.mul(&cx, &cy).unwrap();
    assert_eq!((product.level(), product.scale()), (3, &Scale::power_of_two(80)));
    close(&f, &product, &xy, "not rescaled");
    let error = refused(e.add(&product, &cx));
    assert_eq!(error, Error::ScaleMismatch { left: 80.0, right: 40.0 });
    let rescaled = e.rescale(&product).unwrap();
    assert_eq!(rescaled.level(), 2);
    assert_ne!(rescaled.scale(), &Scale::power_of_two(40));
    close(&f, &rescaled, &xy, "rescaled");
    // Nearly the same scale is not the same scale.
    assert!((rescaled.log2_scale() - 40.0).abs() < 1e-3);
    assert_eq!(refused(e.add(&rescaled, &cx)).kind(), "scale_mismatch");
    close(&f, &e.add(&cx, &e.mod_switch(&cy).unwrap()).unwrap(), &zip(&x, &y, plus), "levels apart, scales equal");
    let same = e.rescale(&e.square(&cx).unwrap()).unwrap();
    close(&f, &e.add(&rescaled, &same).unwrap(), &zip(&xy, &zip(&x, &x, times), plus), "rescaled alike");
    let pt = f.context.encode_complex(&y, 1.0).unwrap();
    let triple = e.mul_plain(&product, &pt).unwrap();
    assert_eq!(triple.scale(), &Scale::power_of_two(120));
    close(&f, &triple, &zip(&xy, &y, times), "a third factor");
    close(&f, &e.add_plain(&product, &pt).unwrap(), &zip(&xy, &y, plus), "add_plain at 2^80");
    close(&f, &e.add_scalar(&product, 0.25).unwrap(), &zip(&xy, &x, |z, _| plus(z, 0.25.into())), "add_scalar");
    close(&f, &e.mul_scalar(&cx, 0.3).unwrap(), &zip(&x, &x, |x, _| times(x, 0.3.into())), "mul_scalar");
    let three = e.rescale(&e.mul_no_relin(&cx, &cy).unwrap()).unwrap();
    close(&f, &three, &xy, "three components, rescaled");
    assert_eq!(refused(e.add_plain(&e.mul_plain(&triple, &pt).unwrap(), &pt)).kind(), "coefficient_too_large");
    let low = e.mod_switch_to(&cx, 0).unwrap();
    assert_eq!(low.scale(), cx.scale());
    close(&f, &low, &x, "limbs dropped");
    assert_eq!(refused(e.rescale(&low)).kind(), "level");
    assert_eq!(refused(e.mul(&low, &low)).kind(), "noise");
}

#[test]
fn headers_are_checked_when_a_ciphertext_is_put_together() {
    let mut f = small(11);
    let x = values(8, 1.0, 12);
    let cx = f.encrypt(&x, 1.0);
    let good = cx.header().clone();
    let text = serde_json::to_string(&good).unwrap();
    assert_eq!(serde_json::from_str::<Header>(&text).unwrap(), good);
    let with = |header: Header| {
        let inner = cx.duplicate(&f.context).unwrap().into_parts().0;
        Ciphertext::from_parts(&f.context, inner, header)
    };
    assert!(with(good.clone()).is_ok());
    let other_level = f.context.params().scale(1).unwrap().clone();
    let prime = Scale::product([97]).unwrap();
    for scale in [other_level, prime, Scale::power_of_two(41)] {
        let error = refused(with(Header { scale, ..good.clone() }));
        assert!(matches!(error, Error::Header { field: "scale", .. }), "{error}");
    }
    for bound in [f64::NAN, -1.0, f64::INFINITY] {
        let error = refused(with(Header { bound, ..good.clone() }));
        assert!(matches!(error, Error::Header { field: "message bound", .. }), "{error}");
    }
    assert_eq!(refused(with(Header { bound: 1e80, ..good.clone() })).kind(), "noise");
    let (inner, header) = cx.into_parts();
    let broken = inner.assume_noise(Certificate::gaussian(f64::NAN).into());
    assert_eq!(refused(Ciphertext::from_parts(&f.context, broken, header)).kind(), "header");
}

#[test]
fn the_same_seed_gives_the_same_ciphertext_and_one_evaluator_serves_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Evaluator>();
    shared::<Ciphertext>();
    shared::<Plaintext>();
    shared::<Context>();
    let words = |seed: u8| {
        let mut randomness = Randomness::insecure_from_seed(Seed::from_bytes([seed; 32]));
        let context = Context::new(Params::new(literal(10, 40, &[55, 40], &[50])).unwrap()).unwrap();
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness).unwrap();
        let pt = context.encode(&[0.25, -0.75]).unwrap();
        let ct = context.encrypt(&public, &pt, &mut randomness).unwrap();
        let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
        let results: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let square = || {
                let square = evaluator.square(&ct).unwrap();
                square.inner().parts()[0].to_words(context.rlwe().backend()).unwrap()
            };
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(square)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(results.iter().all(|r| *r == results[0]));
        results[0].clone()
    };
    assert_eq!(words(1), words(1));
    assert_ne!(words(1), words(2));
}
