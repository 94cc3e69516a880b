//! A refresh of CKKS on the emulator, stage by stage: the bits of the CPU, and a message within its certificate.

use std::sync::Arc;

use crate::runs::say;
use synchromesh::ckks::bootstrap::{Bootstrap, BootstrapLiteral, Bootstrapper, Chain, Messages, Stage};
use synchromesh::ckks::{Complex64, Context, Params, Rotations};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh_cuda::{Cuda, Emulated, Order};
use synchromesh_ring::{Backend, Cpu, Ring};

const LOG_N: u32 = 10;

fn params(choices: &BootstrapLiteral) -> Params {
    let chain = Chain {
        log_n: LOG_N,
        log_scale: 40,
        usable: 1,
        base_bits: 60,
        log_scale_down: 45,
        log_scale_up: 58,
        widest: 49,
        omega: 4,
        weight: 32,
        security: Security::Insecure,
    };
    Params::new(chain.literal(choices).expect("a chain")).expect("parameters")
}

/// What each stage of a refresh makes, as words; the last is decrypted and judged.
fn stages<B: Backend>(params: &Params, choices: BootstrapLiteral, backend: B) -> Vec<(Stage, Vec<Vec<u64>>)> {
    let context = Context::with_backend(params.clone(), backend).expect("a context");
    let bootstrap = Bootstrap::new(params, choices).expect("a bootstrap");
    let mut randomness = Randomness::insecure_from_number(19);
    let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
    let keys = bootstrap.generate_keys(&context, &secret, &Rotations::default(), &mut randomness).expect("keys");
    let level = bootstrap.input_level();
    let bootstrapper = Bootstrapper::new(&context, bootstrap, Arc::new(keys)).expect("a bootstrapper");
    let x: Vec<Complex64> =
        (0..params.slots()).map(|i| Complex64::new(0.9 * (i as f64).cos(), 0.9 * (i as f64).sin())).collect();
    let plain = context.encode_complex(&x, 1.0).expect("a plaintext");
    let ct = context.encrypt_at(&public, &plain, level, &mut randomness).expect("a ciphertext");
    let mut made = Vec::new();
    let refreshed = bootstrapper.refresh_watched(&ct, |stage, ciphertexts| {
        let parts = ciphertexts.iter().flat_map(|ct| ct.inner().parts());
        let words = parts.map(|part| part.to_words(context.rlwe().backend()).expect("words")).collect();
        made.push((stage, words));
    });
    let refreshed = refreshed.expect("a refresh");
    let slots = context.decode_complex(&context.decrypt(&secret, &refreshed).expect("a plaintext")).expect("slots");
    let errors = slots.iter().zip(&x).map(|(found, x)| (found.re - x.re).hypot(found.im - x.im));
    let (error, bound) = (errors.fold(0.0, f64::max), context.error_bound(&refreshed));
    assert!(error <= bound && error < 2f64.powi(-18), "error {error:e}, certificate {bound:e}");
    made
}

#[test]
fn every_stage_of_a_refresh_has_the_bits_of_the_cpu() {
    let choices = BootstrapLiteral {
        slots_to_coeffs: 2,
        coeffs_to_slots: 2,
        baby_steps: None,
        degree: 30,
        doublings: 4,
        messages: Messages::Complex,
        slots: None,
        message_bound: 1.0,
        ratio_bits: 12,
        rounds: 1,
    };
    let params = params(&choices);
    let ring: &Arc<Ring> = params.rlwe().ring();
    let expected = stages(&params, choices.clone(), Cpu::open(Arc::clone(ring)).expect("a CPU"));
    assert!(expected.iter().map(|(stage, _)| *stage).eq(Stage::ALL));
    let plain = Emulated::new(Order::Ascending);
    for device in [plain.clone(), plain.with_fast_doubles().with_clusters()] {
        let found = stages(&params, choices.clone(), Cuda::new(Arc::clone(ring), device, None).expect("a device"));
        for ((stage, words), (_, expected)) in found.iter().zip(&expected) {
            assert!(words == expected, "{stage:?} differs");
        }
        assert_eq!(found.len(), expected.len());
    }
    say("a refresh in four stages has the bits of the CPU, in integers and in doubles with clusters");
}
