//! CKKS judged by decryption against complex arithmetic in doubles: every measured error is within its certificate, and
//! no certificate is absurdly far from what is measured.

use crate::ckks_fixture::{chain, close, conjugate, fixture, literal, minus, plus, rotated, times, values, zip};
use std::sync::Arc;

use synchromesh::ckks::{Ciphertext, Complex64, Context, Evaluator, Mode, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::{Counting, Cpu};
use synchromesh::rlwe::{Randomness, Security};

#[test]
fn encryption_and_decryption_at_every_level_and_by_either_key() {
    let mut f = fixture(literal(10, 40, &[55, 40, 40, 40], &[50, 50]), 1);
    for bound in [1e-3, 1.0, 100.0] {
        let x = values(f.context.params().slots(), bound, 3);
        let pt = f.context.encode_complex(&x, bound).unwrap();
        for level in 0..=3 {
            let ct = f.context.encrypt_at(&f.public, &pt, level, &mut f.randomness).unwrap();
            assert_eq!((ct.level(), ct.components(), ct.bound()), (level, 2, bound));
            close(&f, &ct, &x, "public key");
            let (ct, seed) = f.context.encrypt_with_secret(&f.secret, &pt, level, &mut f.randomness).unwrap();
            let (whole, half) =
                (ct.to_bytes(&f.context, None).unwrap(), ct.to_seeded_bytes(&f.context, &seed, None).unwrap());
            assert!(half.len() * 2 < whole.len() + 1000);
            let ct = Ciphertext::from_bytes(&f.context, &half, None, Trust::Certificate).unwrap();
            close(&f, &ct, &x, "secret key");
        }
    }
    // Fewer values than slots, real ones: the rest are zeros.
    let pt = f.context.encode(&[0.5, -1.0, 0.25]).unwrap();
    let ct = f.context.encrypt(&f.public, &pt, &mut f.randomness).unwrap();
    let back = f.context.decode(&f.context.decrypt(&f.secret, &ct).unwrap()).unwrap();
    let error = f.context.error_bound(&ct);
    assert!(back[..3].iter().zip([0.5, -1.0, 0.25]).all(|(x, y)| (x - y).abs() <= error));
    assert!(back[3..].iter().all(|x| x.abs() <= error));
}

#[test]
fn sums_products_and_movements_of_slots() {
    let mut f = fixture(literal(12, 40, &[55, 40, 40, 40], &[50, 50]), 2);
    let n = f.context.params().slots();
    let (x, y) = (values(n, 1.0, 5), values(n, 1.0, 6));
    let (cx, cy) = (f.encrypt(&x, 1.0), f.encrypt(&y, 1.0));
    let e = &f.evaluator;
    close(&f, &e.add(&cx, &cy).unwrap(), &zip(&x, &y, plus), "add");
    close(&f, &e.sub(&cx, &cy).unwrap(), &zip(&x, &y, minus), "sub");
    close(&f, &e.neg(&cx).unwrap(), &zip(&x, &x, |x, _| minus(Complex64::default(), x)), "neg");
    let product = e.mul(&cx, &cy).unwrap();
    assert_eq!((product.level(), product.components()), (2, 2));
    assert_eq!(product.scale(), f.context.params().scale(2).unwrap());
    close(&f, &product, &zip(&x, &y, times), "mul");
    let square = e.square(&cx).unwrap();
    close(&f, &square, &zip(&x, &x, times), "square");
    close(&f, &e.conjugate(&cx).unwrap(), &zip(&x, &x, |x, _| conjugate(x)), "conjugate");
    for k in [1, -1, 5, 0, n as i64 + 1] {
        close(&f, &e.rotate(&cx, k).unwrap(), &rotated(&x, k), "rotate");
        close(&f, &e.rotate(&square, k).unwrap(), &rotated(&zip(&x, &x, times), k), "rotate below the top");
    }
    let many = e.rotate_many(&cx, &[5, 0, -1, 1]).unwrap();
    for (ct, k) in many.iter().zip([5, 0, -1, 1]) {
        close(&f, ct, &rotated(&x, k), "hoisted");
    }
    let norm = e.mul(&cx, &e.conjugate(&cx).unwrap()).unwrap();
    close(&f, &norm, &zip(&x, &x, |x, _| times(x, conjugate(x))), "x times its conjugate");
}

#[test]
fn three_components_are_added_rescaled_and_decrypted() {
    let mut f = fixture(literal(11, 40, &[55, 40, 40], &[50, 50]), 3);
    let n = f.context.params().slots();
    let (x, y) = (values(n, 1.0, 7), values(n, 1.0, 8));
    let (cx, cy) = (f.encrypt(&x, 1.0), f.encrypt(&y, 1.0));
    let e = &f.evaluator;
    let (xy, xx) = (e.mul_no_relin(&cx, &cy).unwrap(), e.square_no_relin(&cx).unwrap());
    assert_eq!((xy.components(), xy.level()), (3, 2));
    close(&f, &xy, &zip(&x, &y, times), "three components");
    let expected = zip(&zip(&x, &y, times), &zip(&x, &x, times), plus);
    let sum = e.add(&xy, &xx).unwrap();
    let lazy = e.relinearize(&sum).unwrap();
    assert_eq!((lazy.components(), lazy.level()), (2, 1));
    close(&f, &lazy, &expected, "a lazy sum");
    let rescaled = e.rescale(&sum).unwrap();
    assert_eq!((rescaled.components(), rescaled.level()), (3, 1));
    close(&f, &rescaled, &expected, "three components, rescaled");
    close(&f, &e.relinearize(&rescaled).unwrap(), &expected, "relinearised afterwards");
    // A sum with a fresh ciphertext rescales and lowers what it must.
    let mixed = e.add(&sum, &cy).unwrap();
    assert_eq!((mixed.components(), mixed.level()), (3, 1));
    close(&f, &mixed, &zip(&expected, &y, plus), "mixed");
    close(&f, &e.sub(&cy, &sum).unwrap(), &zip(&y, &expected, minus), "mixed difference");
    assert_eq!(e.rotate(&sum, 1).err().unwrap().kind(), "components");
    assert_eq!(e.mul(&sum, &cx).err().unwrap().kind(), "components");
    assert_eq!(e.relinearize(&cx).err().unwrap().kind(), "components");
    assert_eq!(e.rescale(&cx).err().unwrap().kind(), "scale_mismatch");
}

#[test]
fn plaintexts_and_constants() {
    let mut f = fixture(literal(12, 40, &[55, 40, 40], &[50, 50]), 4);
    let n = f.context.params().slots();
    let (x, y) = (values(n, 1.0, 9), values(n, 2.0, 10));
    let cx = f.encrypt(&x, 1.0);
    let pt = f.context.encode_complex(&y, 2.0).unwrap();
    let e = &f.evaluator;
    for ct in [e.mod_switch(&cx).unwrap(), cx] {
        close(&f, &e.add_plain(&ct, &pt).unwrap(), &zip(&x, &y, plus), "add_plain");
        close(&f, &e.sub_plain(&ct, &pt).unwrap(), &zip(&x, &y, minus), "sub_plain");
        let product = e.mul_plain(&ct, &pt).unwrap();
        assert_eq!(product.scale(), f.context.params().scale(ct.level() - 1).unwrap());
        close(&f, &product, &zip(&x, &y, times), "mul_plain");
        for c in [0.3, -1e-4, 1e3 / 7.0, std::f64::consts::PI * 1e-9] {
            let result = e.mul_scalar(&ct, c).unwrap();
            assert_eq!(result.level(), ct.level() - 1);
            close(&f, &result, &zip(&x, &x, |x, _| times(x, c.into())), "mul_scalar");
            close(&f, &e.add_scalar(&ct, c).unwrap(), &zip(&x, &x, |x, _| plus(x, c.into())), "add_scalar");
        }
        for c in [3.0, -1.0, 0.0, 1000.0] {
            let result = e.mul_scalar(&ct, c).unwrap();
            assert_eq!((result.level(), result.scale()), (ct.level(), ct.scale()), "an integer uses no level");
            close(&f, &result, &zip(&x, &x, |x, _| times(x, c.into())), "mul_scalar by an integer");
        }
        let c = Complex64::new(0.5, -1.25);
        close(&f, &e.mul_scalar(&ct, c).unwrap(), &zip(&x, &x, |x, _| times(x, c)), "mul_scalar, complex");
        close(&f, &e.add_scalar(&ct, c).unwrap(), &zip(&x, &x, |x, _| plus(x, c)), "add_scalar, complex");
    }
    // A decrypted message serves as a plaintext again, and a plaintext serves in both ways.
    let cy = f.context.encrypt(&f.public, &pt, &mut f.randomness).unwrap();
    let back = f.context.decrypt(&f.secret, &cy).unwrap();
    assert!(back.error_bound() > 0.0 && back.bound() >= 2.0);
    let reused = f.evaluator.mul_plain(&cy, &back).unwrap();
    let decoded = f.context.decode_complex(&back).unwrap();
    close(&f, &reused, &zip(&y, &decoded, times), "a decrypted plaintext");
}

#[test]
fn a_chain_of_depth_twelve() {
    let mut q = vec![40; 13];
    q[0] = 55;
    chain(ParamsLiteral { omega: 3, ..literal(12, 40, &q, &[51, 51, 51, 51]) }, 20);
}

#[test]
fn several_primes_a_level_and_unequal_widths() {
    let several = literal(11, 60, &[40, 35, 30, 30, 25, 35, 31, 29], &[50, 50, 50]);
    chain(ParamsLiteral { level_limbs: vec![2, 4, 6, 8], omega: 3, ..several }, 30);
    // A scale beyond what one word holds.
    let wide = literal(10, 90, &[60, 60, 45, 45, 45, 45], &[50, 50, 50]);
    chain(ParamsLiteral { level_limbs: vec![2, 4, 6], omega: 2, ..wide }, 40);
    chain(ParamsLiteral { omega: 4, ..literal(10, 28, &[45, 28, 28, 28], &[40]) }, 50);
    // Without special primes a ciphertext can be encrypted, added and multiplied by plaintexts.
    let mut f = fixture(ParamsLiteral { omega: 1, ..literal(10, 40, &[55, 40], &[]) }, 60);
    let x = values(f.context.params().slots(), 1.0, 61);
    let cx = f.encrypt(&x, 1.0);
    close(&f, &f.evaluator.mul_scalar(&cx, 0.5).unwrap(), &zip(&x, &x, |x, _| times(x, 0.5.into())), "no P");
}

#[test]
fn one_stored_key_serves_all_levels() {
    let borrowing = |log_n, q: &[u32], levels: usize| ParamsLiteral {
        omega: q.len(),
        level_limbs: (1..=levels).collect(),
        ..literal(log_n, 40, q, &[])
    };
    chain(borrowing(11, &[52, 40, 40, 40, 40, 40, 56, 41], 6), 90);
    let secure = borrowing(14, &[50, 40, 40, 40, 40, 40, 40, 50, 51], 7);
    let mut f = fixture(ParamsLiteral { security: Security::Bits128, ..secure }, 91);
    let plans = f.context.params().plans();
    assert!(plans.distinct().len() > 1 && f.context.params().rlwe().security_bits() >= 128.0);
    let n = f.context.params().slots();
    let x = values(n, 1.0, 92);
    let (mut ct, mut expected) = (f.encrypt(&x, 1.0), x);
    for level in (0..f.context.params().top_level()).rev() {
        ct = f.evaluator.rotate(&f.evaluator.square(&ct).unwrap(), 5).unwrap();
        expected = rotated(&zip(&expected, &expected, times), 5);
        assert_eq!(ct.level(), level);
        close(&f, &ct, &expected, "square and rotate");
    }
    close(&f, &f.evaluator.conjugate(&ct).unwrap(), &zip(&expected, &expected, |z, _| conjugate(z)), "conjugate");
}

#[test]
fn a_secure_set_at_its_real_degree() {
    let mut q = vec![45; 13];
    q[0] = 55;
    let real = ParamsLiteral { omega: 3, security: Security::Bits128, ..literal(15, 45, &q, &[48; 5]) };
    let mut f = fixture(real, 70);
    assert!(f.context.params().rlwe().security_bits() >= 128.0);
    let n = f.context.params().slots();
    let (x, y) = (values(n, 1.0, 71), values(n, 1.0, 72));
    let (cx, cy) = (f.encrypt(&x, 1.0), f.encrypt(&y, 1.0));
    let e = &f.evaluator;
    let product = e.mul(&cx, &cy).unwrap();
    close(&f, &product, &zip(&x, &y, times), "mul");
    close(&f, &e.rotate(&product, 5).unwrap(), &rotated(&zip(&x, &y, times), 5), "rotate");
    let low = e.mul(&e.mod_switch_to(&product, 1).unwrap(), &cx).unwrap();
    assert_eq!(low.level(), 0);
    close(&f, &low, &zip(&zip(&x, &y, times), &x, times), "at the lowest level");
    assert!(f.context.precision_bits(&low) > 10.0);
}

/// Transforms of one limb that each operation takes at the top of six levels with two special primes, two digits.
#[test]
fn operations_take_the_transforms_they_should_and_no_more() {
    let (l, k, omega) = (7, 2, 2);
    for mode in [Mode::Auto, Mode::Manual] {
        let params = Params::new(ParamsLiteral { mode, ..literal(10, 40, &[55, 40, 40, 40, 40, 40, 40], &[50, 50]) });
        let params = params.unwrap();
        let cpu = Cpu::open(Arc::clone(params.rlwe().ring())).unwrap();
        let context = Context::with_backend(params, Counting::new(cpu)).unwrap();
        let mut randomness = Randomness::insecure_from_number(80);
        let (secret, public) = context.generate_keys(&mut randomness).unwrap();
        let keys = context.generate_evaluation_keys(&secret, &Rotations::by([1]), &mut randomness).unwrap();
        let e = Evaluator::new(&context, Some(Arc::new(keys)));
        let pt = context.encode(&[0.5]).unwrap();
        let x = context.encrypt(&public, &pt, &mut randomness).unwrap();
        let count = |run: &mut dyn FnMut()| {
            let before = context.rlwe().backend().counts();
            run();
            (context.rlwe().backend().counts() - before).ntt
        };
        // c_2 to coefficients, each digit to the other primes, P (and the dropped prime) out, what it leaves back.
        let switch = |dropped: u64| l + (omega * (l + k) - l) + 2 * (k + dropped) + 2 * (l - dropped);
        let rescale = 2 * (1 + (l - 1));
        let auto = u64::from(mode == Mode::Auto);
        assert_eq!(count(&mut || drop(e.mul(&x, &x).unwrap())), switch(auto));
        assert_eq!(count(&mut || drop(e.square(&x).unwrap())), switch(auto));
        assert_eq!(count(&mut || drop(e.rotate(&x, 1).unwrap())), switch(0));
        assert_eq!(count(&mut || drop(e.mul_plain(&x, &pt).unwrap())), l + auto * rescale);
        assert_eq!(count(&mut || drop(e.mul_plain(&x, &pt).unwrap())), auto * rescale, "encoded once");
        assert_eq!(count(&mut || drop(e.mul_scalar(&x, 0.1).unwrap())), auto * rescale);
        assert_eq!(count(&mut || drop(e.add_scalar(&x, 0.1).unwrap())), 0);
        assert_eq!(count(&mut || drop(e.mod_switch_to(&x, 1).unwrap())), auto * 2 * (1 + 2));
        // u on QP; then P out and what it leaves back, for both components.
        let encryption = (l + k) + 2 * (k + l);
        assert_eq!(count(&mut || drop(context.encrypt(&public, &pt, &mut randomness).unwrap())), encryption);
        assert_eq!(count(&mut || drop(context.decrypt(&secret, &x).unwrap())), 1, "one prime holds the phase");
        let product = e.mul(&x, &x).unwrap();
        let decryption = if mode == Mode::Auto { 1 } else { 2 };
        assert_eq!(count(&mut || drop(context.decrypt(&secret, &product).unwrap())), decryption);
    }
}
