//! What goes to the memory of a device for keys, encodings and encryptions: small polynomials in the bytes that their bounds
//! take, and no residues.

use std::sync::Arc;

use synchromesh::exact::{self, Rotations, Scheme};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::{bfv, bgv, ckks};
use synchromesh_cuda::{Cuda, Emulated, Order};
use synchromesh_ring::Ring;

use crate::runs::say;

const LOG_N: u32 = 11;
const N: u64 = 1 << LOG_N;
/// Digits of keys.
const OMEGA: usize = 2;
/// A prime of 128 bits.
const WIDE: &str = "0xffffffffffffffffffffffffff820001";

type Emulator = Cuda<Emulated>;

fn open(ring: &Arc<Ring>) -> Emulator {
    Cuda::new(Arc::clone(ring), Emulated::new(Order::Ascending), None).expect("a device")
}

/// Bytes for what `run` does when it is done again.
fn bytes<T>(device: &Emulator, mut run: impl FnMut() -> T) -> u64 {
    // What is prepared on first use goes over once.
    drop(run());
    let before = device.uploaded_bytes();
    drop(run());
    device.uploaded_bytes() - before
}

/// That an operation takes so many bytes, of residues of so many primes that it would take.
fn takes(what: &str, found: u64, expected: u64, residues: u64) {
    say(&format!(
        "{what}: {found} bytes, {:.2} N; as residues {:.2} N",
        found as f64 / N as f64,
        (8 * residues) as f64
    ));
    assert_eq!(found, expected, "{what}");
}

fn exact_params<S: Scheme>(t: &str, q_bits: Vec<u32>) -> exact::Params<S> {
    exact::Params::new(exact::ParamsLiteral {
        log_n: LOG_N,
        t: t.to_owned(),
        q_bits,
        p_bits: vec![61, 61],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: OMEGA,
        security: Security::Insecure,
        primes: None,
    })
    .expect("parameters")
}

/// Keys and encryptions of an exact scheme, whose coefficients take `coefficient` bytes.
fn exact_uploads<S: Scheme>(t: &str, q_bits: Vec<u32>, coefficient: u64) {
    let limbs = q_bits.len() as u64;
    let params = exact_params::<S>(t, q_bits);
    let context = exact::Context::with_backend(params.clone(), open(params.rlwe().ring())).expect("a context");
    let device = context.rlwe().backend();
    let mut randomness = Randomness::insecure_from_number(3);
    let name = |what: &str| format!("{}, t = {t}, {limbs} primes: {what}", S::NAME);
    let pair = bytes(device, || context.generate_keys(&mut randomness).expect("keys"));
    // The secret, and the error of the public key.
    takes(&name("a secret and a public key"), pair, 2 * N, 2 * (limbs + 2));
    let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
    let rotations = Rotations::by([3]);
    let keys = bytes(device, || context.generate_evaluation_keys(&secret, &rotations, &mut randomness).expect("keys"));
    // An error for each digit of two keys.
    takes(&name("two evaluation keys"), keys, 2 * OMEGA as u64 * N, 2 * OMEGA as u64 * (limbs + 2));
    let encrypted = bytes(device, || {
        let plaintext = context.encode_coefficients(&[1i64, 2, 3][..]).expect("a plaintext");
        context.encrypt(&public, &plaintext, &mut randomness).expect("a ciphertext")
    });
    // u and two errors, modulo Q and modulo P apart, and the message.
    takes(&name("an encryption"), encrypted, (2 * 3 + coefficient) * N, 4 * (limbs + 2));
}

#[test]
fn exact_schemes_send_small_polynomials() {
    exact_uploads::<bfv::Bfv>("65537", vec![50, 45, 55, 40], 4);
    exact_uploads::<bgv::Bgv>("65537", vec![50, 45, 55, 40], 4);
    exact_uploads::<bfv::Bfv>("12289", vec![50, 45, 55], 2);
    exact_uploads::<bfv::Bfv>("1000000000475137", vec![60; 4], 8);
}

#[test]
fn coefficients_of_several_words_are_sent_in_parts() {
    // 128 bits are three parts of 60.
    exact_uploads::<bfv::Bfv>(WIDE, vec![60; 8], 3 * 8);
}

#[test]
fn ckks_sends_a_word_a_coefficient() {
    let params = ckks::Params::new(ckks::ParamsLiteral {
        log_n: LOG_N,
        log_scale: 40,
        q_bits: vec![55, 40, 40],
        p_bits: vec![50, 50],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: OMEGA,
        log_scales: vec![],
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
    })
    .expect("parameters");
    let context = ckks::Context::with_backend(params.clone(), open(params.rlwe().ring())).expect("a context");
    let device = context.rlwe().backend();
    let mut randomness = Randomness::insecure_from_number(4);
    let (_, public) = context.generate_keys(&mut randomness).expect("keys");
    let mut encrypt = || {
        let plaintext = context.encode_bounded(&[0.5, 0.25], 1.0).expect("a plaintext");
        context.encrypt(&public, &plaintext, &mut randomness).expect("a ciphertext")
    };
    takes("ckks: an encryption", bytes(device, &mut encrypt), (2 * 3 + 8) * N, 4 * 5);
    let (ct, evaluator) = (encrypt(), ckks::Evaluator::new(&context, None));
    takes("ckks: a sum with a number", bytes(device, || evaluator.add_scalar(&ct, 0.5).expect("a sum")), N, 3);
}
