//! Numbers in the coefficients of one CKKS message to a ciphertext each; products with powers of X.

use crate::ckks_fixture::{close, fixture, literal, times, values};
use std::sync::Arc;

use synchromesh::ckks::{Complex64, Evaluator, Rotations};

/// The degree in these tests.
const N: usize = 1024;

/// The slots of c_0 + c_1 X + .., from the definition: X is the 2N-th root of unity to the power of 3^k in slot k.
fn slots(n: usize, coefficients: &[f64]) -> Vec<Complex64> {
    let mut power = 1;
    let mut made = Vec::new();
    for _ in 0..n / 2 {
        let term = |(j, &c): (usize, &f64)| {
            let turn = std::f64::consts::PI * ((power * j) % (2 * n)) as f64 / n as f64;
            Complex64::new(c * turn.cos(), c * turn.sin())
        };
        let sum = |x: Complex64, y: Complex64| Complex64::new(x.re + y.re, x.im + y.im);
        made.push(coefficients.iter().enumerate().map(term).fold(Complex64::new(0.0, 0.0), sum));
        power = power * 3 % (2 * n);
    }
    made
}

#[test]
fn coefficients_are_those_of_the_polynomial() {
    let mut f = fixture(literal(10, 40, &[50, 40, 40], &[50]), 3);
    let coefficients: Vec<f64> = values(100, 0.01, 5).iter().map(|z| z.re).collect();
    let plaintext = f.context.encode_coefficients(&coefficients, 1.0).unwrap();
    let x = f.context.encrypt(&f.public, &plaintext, &mut f.randomness).unwrap();
    close(&f, &x, &slots(N, &coefficients), "coefficients");
    assert_eq!(f.context.encode_coefficients(&[2.0], 1.0).err().map(|e| e.kind()), Some("above_declared_bound"));
    assert!(f.context.encode_coefficients(&vec![0.0; N + 1], 1.0).is_err());
}

#[test]
fn powers_of_x_are_exact() {
    let mut f = fixture(literal(10, 40, &[50, 40, 40], &[50]), 4);
    let z = values(N / 2, 1.0, 6);
    let x = f.encrypt(&z, 1.0);
    for k in [0, 1, 511, 512, 1023, 1024, 1025, 2047, -1, -512, 5 * 2048 + 3] {
        let made = f.evaluator.mul_monomial(&x, k).unwrap();
        assert_eq!((made.level(), made.inner().noise()), (x.level(), x.inner().noise()));
        let mut unit = vec![0.0; N];
        let place = k.rem_euclid(2 * N as i64) as usize;
        unit[place % N] = if place < N { 1.0 } else { -1.0 };
        let expected = z.iter().zip(slots(N, &unit)).map(|(&x, y)| times(x, y)).collect::<Vec<_>>();
        close(&f, &made, &expected, &format!("X^{k}"));
    }
}

#[test]
fn each_number_comes_in_a_ciphertext_of_its_own() {
    for (count, log_n) in [(1, 10), (2, 10), (3, 10), (11, 11), (128, 10)] {
        let mut f = fixture(literal(log_n, 40, &[55, 40, 40], &[55]), 7);
        let rotations = f.context.expansion_rotations(count);
        assert_eq!(rotations.len(), count.next_power_of_two().trailing_zeros() as usize);
        let keys = Rotations::by(rotations.iter().copied());
        let keys = f.context.generate_evaluation_keys(&f.secret, &keys, &mut f.randomness).unwrap();
        let evaluator = Evaluator::new(&f.context, Some(Arc::new(keys)));
        let numbers: Vec<f64> = values(count, 1.0 / 128.0, 8).iter().map(|z| z.re).collect();
        let plaintext = f.context.encode_coefficients(&numbers, 1.0).unwrap();
        let x = f.context.encrypt(&f.public, &plaintext, &mut f.randomness).unwrap();
        let made = evaluator.expand(&x, count).unwrap();
        assert_eq!(made.len(), count);
        let gain = count.next_power_of_two() as f64;
        for (j, (x, c)) in made.iter().zip(&numbers).enumerate() {
            close(&f, x, &vec![Complex64::new(gain * c, 0.0); f.context.params().slots()], &format!("{j} of {count}"));
        }
    }
}

#[test]
fn expansions_are_refused_with_what_they_lack() {
    let mut f = fixture(literal(10, 40, &[50, 40, 40], &[50]), 9);
    let x = f.encrypt(&[], 1.0);
    for count in [0, 129] {
        assert_eq!(f.evaluator.expand(&x, count).err().map(|e| e.kind()), Some("argument"));
    }
    assert_eq!(f.context.expansion_rotations(usize::MAX), f.context.expansion_rotations(N / 8));
    assert_eq!(f.evaluator.expand(&x, 4).err().map(|e| e.kind()), Some("missing_key"));
    assert_eq!(Evaluator::new(&f.context, None).expand(&x, 4).err().map(|e| e.kind()), Some("no_keys"));
    let other = fixture(literal(10, 40, &[50, 40], &[50]), 10);
    assert_eq!(other.evaluator.mul_monomial(&x, 1).err().map(|e| e.kind()), Some("params_differ"));
}
