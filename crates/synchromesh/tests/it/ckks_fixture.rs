//! Keys for small insecure parameters, pseudo-random slots, complex arithmetic, and the judge of a result.

use std::sync::Arc;

use synchromesh::ckks::{Ciphertext, Complex64, Context, Evaluator, Header, Mode, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey, Security};

/// How far a certificate may exceed what is measured, in bits.
const ABSURD: f64 = 12.0;

pub(crate) type Slots = Vec<Complex64>;

pub(crate) struct Fixture {
    pub(crate) context: Arc<Context>,
    pub(crate) secret: SecretKey,
    pub(crate) public: PublicKey,
    pub(crate) evaluator: Evaluator,
    pub(crate) randomness: Randomness,
}

pub(crate) fn literal(log_n: u32, log_scale: u32, q: &[u32], p: &[u32]) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        log_scale,
        q_bits: q.to_vec(),
        p_bits: p.to_vec(),
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        log_scales: vec![],
        mode: Mode::Auto,
        security: Security::Insecure,
        primes: None,
    }
}

pub(crate) fn fixture(literal: ParamsLiteral, seed: u64) -> Fixture {
    let context = Context::new(Params::new(literal).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(seed);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    let rotations = Rotations::by([1, -1, 5]).and_conjugate();
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).unwrap();
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    Fixture { context, secret, public, evaluator, randomness }
}

impl Fixture {
    pub(crate) fn encrypt(&mut self, x: &[Complex64], bound: f64) -> Ciphertext {
        let pt = self.context.encode_complex(x, bound).unwrap();
        self.context.encrypt(&self.public, &pt, &mut self.randomness).unwrap()
    }
}

/// Points of the disc of radius `bound`, among them its edge and its centre.
pub(crate) fn values(count: usize, bound: f64, seed: u64) -> Slots {
    let mut state = seed;
    let mut uniform = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut point = |i: usize| {
        let (radius, turn) = (if i < 4 { (i % 2) as f64 } else { uniform() }, uniform());
        let (sin, cos) = (turn * std::f64::consts::TAU).sin_cos();
        Complex64::new(bound * radius * cos, bound * radius * sin)
    };
    (0..count).map(&mut point).collect()
}

pub(crate) fn zip(x: &Slots, y: &Slots, f: impl Fn(Complex64, Complex64) -> Complex64) -> Slots {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

pub(crate) fn plus(x: Complex64, y: Complex64) -> Complex64 {
    Complex64::new(x.re + y.re, x.im + y.im)
}

pub(crate) fn minus(x: Complex64, y: Complex64) -> Complex64 {
    Complex64::new(x.re - y.re, x.im - y.im)
}

pub(crate) fn times(x: Complex64, y: Complex64) -> Complex64 {
    Complex64::new(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)
}

pub(crate) fn conjugate(x: Complex64) -> Complex64 {
    Complex64::new(x.re, -x.im)
}

pub(crate) fn rotated(x: &Slots, k: i64) -> Slots {
    let n = x.len() as i64;
    (0..n).map(|i| x[(i + k).rem_euclid(n) as usize]).collect()
}

/// Decrypts and compares; the error must be within the certificate, the certificate within reason.
pub(crate) fn close(f: &Fixture, ct: &Ciphertext, expected: &[Complex64], what: &str) {
    let plain = f.context.decrypt(&f.secret, ct).unwrap();
    let slots = f.context.decode_complex(&plain).unwrap();
    assert_eq!(slots.len(), expected.len(), "{what}");
    let distance = |(x, y): (&Complex64, &Complex64)| (x.re - y.re).hypot(x.im - y.im);
    let error = slots.iter().zip(expected).map(distance).fold(0.0, f64::max);
    let bound = f.context.error_bound(ct);
    assert_eq!(plain.error_bound(), bound);
    assert!(error <= bound, "{what}: error 2^{:.2} above its certificate 2^{:.2}", error.log2(), bound.log2());
    let gap = bound.log2() - error.log2();
    let exact = error == 0.0;
    assert!(exact || gap < ABSURD, "{what}: certificate 2^{:.2}, error 2^{:.2}", bound.log2(), error.log2());
    let largest = expected.iter().map(|z| z.re.hypot(z.im)).fold(0.0, f64::max);
    assert!(largest <= ct.bound() * (1.0 + 1e-9), "{what}: message {largest} above its bound {}", ct.bound());
    assert!(f.context.noise_budget(ct) > 0.0);
}

/// Every level of a chain of products whose other operand comes from the top, with sums across levels in between and
/// a plaintext at the end.
pub(crate) fn chain(literal: ParamsLiteral, seed: u64) {
    let mut f = fixture(literal, seed);
    let n = f.context.params().slots();
    let (x, y) = (values(n, 1.0, seed + 1), values(n, 1.0, seed + 2));
    let (cx, mut ct) = (f.encrypt(&x, 1.0), f.encrypt(&y, 1.0));
    let half: Slots = vec![0.5.into(); n];
    let pt = f.context.encode_complex(&half, 0.5).unwrap();
    let mut expected = y;
    let top = f.context.params().top_level();
    for level in (0..top).rev() {
        let halve = level == 0 || level % 3 == 1;
        ct = if halve { f.evaluator.mul_plain(&ct, &pt) } else { f.evaluator.mul(&ct, &cx) }.unwrap();
        expected = zip(&expected, if halve { &half } else { &x }, times);
        assert_eq!((ct.level(), ct.scale()), (level, f.context.params().scale(level).unwrap()));
        close(&f, &ct, &expected, "a chain");
        let sum = f.evaluator.add(&cx, &ct).unwrap();
        assert_eq!(sum.level(), level);
        close(&f, &sum, &zip(&x, &expected, plus), "a sum across levels");
        // The products stay below 1 whatever is multiplied, the sum of all below 2.
        if halve {
            ct = sum;
            expected = zip(&x, &expected, plus);
        }
    }
    let (inner, header) = ct.into_parts();
    let ct = Ciphertext::from_parts(&f.context, inner, Header { bound: header.bound, ..header }).unwrap();
    close(&f, &ct, &expected, "put together again");
}
