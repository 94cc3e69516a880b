//! Circuits of the three schemes on any backend: what they decrypt to is judged, the ciphertext is returned as bytes.

use std::sync::Arc;

use synchromesh::exact::{self, Rotations, Scheme};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::{bfv, bgv, ckks};
use synchromesh_ring::{Backend, Cpu, Ring};

/// The schemes by name.
pub(crate) const SCHEMES: [&str; 3] = ["bfv", "bgv", "ckks"];

/// That a device multiplies, adds, rotates and decrypts in a scheme with the bits of the CPU.
pub(crate) fn has_the_bits_of_the_cpu<B: Backend>(scheme: &str, open: impl FnOnce(&Arc<Ring>) -> B) {
    let (ours, theirs) = match scheme {
        "bfv" => exact::<bfv::Bfv, B>(open),
        "bgv" => exact::<bgv::Bgv, B>(open),
        _ => approximate(open),
    };
    assert!(ours == theirs, "{scheme}: the bytes of the CPU");
}

fn cpu(ring: &Arc<Ring>) -> Cpu {
    Cpu::open(Arc::clone(ring)).expect("a CPU")
}

fn exact<S: Scheme, B: Backend>(open: impl FnOnce(&Arc<Ring>) -> B) -> (Vec<u8>, Vec<u8>) {
    let params = exact_params::<S>();
    let ring = params.rlwe().ring();
    (exact_circuit(&params, open(ring)), exact_circuit(&params, cpu(ring)))
}

fn exact_params<S: Scheme>() -> exact::Params<S> {
    exact::Params::new(exact::ParamsLiteral {
        log_n: 11,
        t: "65537".to_owned(),
        q_bits: vec![50, 45, 55, 40],
        p_bits: vec![61, 61],
        level_limbs: vec![2, 4],
        schedule: Default::default(),
        omega: 2,
        security: Security::Insecure,
        primes: None,
    })
    .expect("parameters")
}

fn approximate<B: Backend>(open: impl FnOnce(&Arc<Ring>) -> B) -> (Vec<u8>, Vec<u8>) {
    let params = ckks::Params::new(ckks::ParamsLiteral {
        log_n: 11,
        log_scale: 40,
        q_bits: vec![55, 40, 40],
        p_bits: vec![50, 50],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        log_scales: vec![],
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
    })
    .expect("parameters");
    let ring = params.rlwe().ring();
    (ckks_circuit(&params, open(ring)), ckks_circuit(&params, cpu(ring)))
}

/// (x y + x) rotated by 3, decrypted and judged; the ciphertext as bytes.
fn exact_circuit<S: Scheme, B: Backend>(params: &exact::Params<S>, backend: B) -> Vec<u8> {
    let context = exact::Context::with_backend(params.clone(), backend).expect("a context");
    let mut randomness = Randomness::insecure_from_number(8);
    let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
    let rotations = Rotations::by([3]);
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).expect("keys");
    let evaluator = exact::Evaluator::new(&context, Some(Arc::new(keys)));
    let n = params.n() as i64;
    let (x, y): (Vec<i64>, Vec<i64>) = ((0..n).collect(), (0..n).map(|i| 7 - i % 100).collect());
    let mut encrypt = |values: &[i64]| {
        let plaintext = context.encode(values).expect("a plaintext");
        context.encrypt(&public, &plaintext, &mut randomness).expect("a ciphertext")
    };
    let (cx, cy) = (encrypt(&x), encrypt(&y));
    let product = evaluator.mul(&cx, &cy).expect("a product");
    let sum = evaluator.add(&product, &cx).expect("a sum");
    let rotated = evaluator.rotate_rows(&sum, 3).expect("a rotation");
    let decrypted = context.decode(&context.decrypt(&secret, &rotated).expect("a plaintext")).expect("values");
    let (row, t) = (n as usize / 2, 65537);
    for (i, &got) in decrypted.iter().enumerate() {
        let from = i / row * row + (i + 3) % row;
        assert_eq!((got - (x[from] * y[from] + x[from])).rem_euclid(t), 0, "{}: slot {i}", S::NAME);
    }
    rotated.to_bytes(&context, None).expect("bytes")
}

/// As [`exact_circuit`], in reals.
fn ckks_circuit<B: Backend>(params: &ckks::Params, backend: B) -> Vec<u8> {
    let context = ckks::Context::with_backend(params.clone(), backend).expect("a context");
    let mut randomness = Randomness::insecure_from_number(9);
    let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
    let rotations = Rotations::by([3]).and_conjugate();
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness).expect("keys");
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let slots = params.slots();
    let (x, y): (Vec<f64>, Vec<f64>) =
        (0..slots).map(|i| (i as f64 / slots as f64, 1.0 - (i % 17) as f64 / 9.0)).unzip();
    let mut encrypt = |values: &[f64]| {
        let plaintext = context.encode_bounded(values, 1.0).expect("a plaintext");
        context.encrypt(&public, &plaintext, &mut randomness).expect("a ciphertext")
    };
    let (cx, cy) = (encrypt(&x), encrypt(&y));
    let product = evaluator.mul(&cx, &cy).expect("a product");
    let sum = evaluator.add(&product, &cx).expect("a sum");
    let rotated = evaluator.rotate(&sum, 3).and_then(|ct| evaluator.conjugate(&ct)).expect("movements");
    let decrypted = context.decode(&context.decrypt(&secret, &rotated).expect("a plaintext")).expect("values");
    let bound = context.error_bound(&rotated);
    assert!(bound < 1e-3, "{bound}");
    for (i, got) in decrypted.iter().enumerate() {
        let from = (i + 3) % slots;
        assert!((got - (x[from] * y[from] + x[from])).abs() <= bound, "ckks: slot {i}");
    }
    rotated.to_bytes(&context, None).expect("bytes")
}

/// That a ciphertext of one device is refused by another of the same parameters, and by name.
pub(crate) fn refuses_ciphertexts_of_another_device<B: Backend>(open: impl Fn(&Arc<Ring>) -> B) {
    let params = exact_params::<bgv::Bgv>();
    let context = || exact::Context::with_backend(params.clone(), open(params.rlwe().ring())).expect("a context");
    let (here, there) = (context(), context());
    let mut randomness = Randomness::insecure_from_number(6);
    let (_, public) = there.generate_keys(&mut randomness).expect("keys");
    let plaintext = there.encode(&[1i64, 2, 3]).expect("a plaintext");
    let ct = there.encrypt(&public, &plaintext, &mut randomness).expect("a ciphertext");
    let error = exact::Evaluator::new(&here, None).add(&ct, &ct).err().expect("a ciphertext of another device");
    assert_eq!(error.kind(), "other_device", "{error}");
    assert!(!error.remedy().is_empty());
    exact::Evaluator::new(&there, None).add(&ct, &ct).expect("a sum where it is at home");
}
