//! The three schemes on the emulated device: what they decrypt to, and the ciphertexts of the CPU bit for bit.

use std::sync::Arc;

use synchromesh::exact::{self, Rotations, Scheme};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::{bfv, bgv, ckks};
use synchromesh_cuda::{Cuda, Emulated, Order};
use synchromesh_ring::{Backend, Cpu, Ring};

/// A device of each kind, for a ring.
fn cpu(ring: &Arc<Ring>) -> Cpu {
    Cpu::open(Arc::clone(ring)).expect("a CPU")
}

fn emulated(ring: &Arc<Ring>) -> Cuda<Emulated> {
    Cuda::new(Arc::clone(ring), Emulated::new(Order::Shuffled(9)), None).expect("a device")
}

/// (x y + x) rotated by 3, decrypted and judged; the ciphertext as bytes.
fn exact_circuit<S: Scheme, B: Backend>(params: &exact::Params<S>, backend: B) -> Vec<u8> {
    let context = exact::Context::with_backend(params.clone(), backend).expect("a context");
    let mut randomness = Randomness::insecure_from_number(8);
    let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
    let rotations = Rotations { rows: vec![3], columns: false };
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
    rotated.to_bytes(&context).expect("bytes")
}

fn exact_agrees<S: Scheme>(log_n: u32, q_bits: &[u32], p_bits: &[u32], level_limbs: &[usize]) {
    let params = exact::Params::<S>::new(exact::ParamsLiteral {
        log_n,
        t: "65537".to_owned(),
        q_bits: q_bits.to_vec(),
        p_bits: p_bits.to_vec(),
        level_limbs: level_limbs.to_vec(),
        schedule: Default::default(),
        omega: 2,
        security: Security::Insecure,
        primes: None,
    })
    .expect("parameters");
    let ring = params.rlwe().ring();
    let ours = exact_circuit(&params, emulated(ring));
    assert!(ours == exact_circuit(&params, cpu(ring)), "{}: the bytes of the CPU", S::NAME);
}

#[test]
fn bfv_multiplies_adds_rotates_and_decrypts() {
    exact_agrees::<bfv::Bfv>(11, &[50, 45, 55, 40], &[61, 61], &[2, 4]);
}

#[test]
fn bgv_multiplies_adds_rotates_and_decrypts() {
    exact_agrees::<bgv::Bgv>(11, &[50, 45, 55, 40], &[61, 61], &[2, 4]);
}

/// As [`exact_circuit`], in reals.
fn ckks_circuit<B: Backend>(params: &ckks::Params, backend: B) -> Vec<u8> {
    let context = ckks::Context::with_backend(params.clone(), backend).expect("a context");
    let mut randomness = Randomness::insecure_from_number(9);
    let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
    let rotations = ckks::Rotations { by: vec![3], conjugate: true };
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
    rotated.to_bytes(&context).expect("bytes")
}

#[test]
fn ckks_multiplies_adds_rotates_and_decrypts() {
    let params = ckks::Params::new(ckks::ParamsLiteral {
        log_n: 11,
        log_scale: 40,
        q_bits: vec![55, 40, 40],
        p_bits: vec![50, 50],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
    })
    .expect("parameters");
    let ring = params.rlwe().ring();
    assert!(ckks_circuit(&params, emulated(ring)) == ckks_circuit(&params, cpu(ring)), "the bytes of the CPU");
}
