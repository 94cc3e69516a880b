//! The laws and every key-switching method on a card, where there is one; what is said where there is none.
#![cfg(feature = "driver")]

mod runs;

use std::sync::Arc;

use runs::{Run, params};
use synchromesh_cuda::{Cuda, Driver};
use synchromesh_ring::{BackendError, Coeff, Cpu, IndexSet, Poly, Ring};
use synchromesh_rlwe::{LevelPlans, Params, SwitchPlan};
use synchromesh_testing::laws;
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy::{self, sets};

/// The first card, or none with the reason printed.
fn card(ring: &Arc<Ring>) -> Option<Cuda<Driver>> {
    match Driver::list() {
        Ok(_) => Some(Cuda::open(Arc::clone(ring), 0).expect("a card that is listed opens")),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

#[test]
fn without_a_card_opening_one_is_a_typed_error() {
    let Err(reason) = Driver::list() else { return };
    assert!(["no_driver", "old_driver", "no_device", "unsupported_device", "device_lost"].contains(&reason.kind()));
    assert!(!reason.remedy().is_empty());
    let ring = Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring"));
    let error = Cuda::<Driver>::open(ring, 0).err().expect("no card opens");
    assert!(matches!(error, BackendError::Unavailable { .. }), "{error}");
}

#[test]
fn a_card_obeys_the_laws_and_has_the_bits_of_the_cpu() {
    for set in sets() {
        let ring = laws::ring(&set);
        let Some(card) = card(&ring) else { return };
        if set.q.len() + set.p.len() > 1 {
            laws::all(&card, 1);
        }
        laws::same_bits(&Cpu::open(ring).expect("a CPU"), &card, 2);
    }
}

#[test]
fn a_card_transforms_every_degree() {
    for log_n in 10..=18 {
        let primes = toy::ntt_primes(if log_n % 2 == 0 { 61 } else { 50 }, log_n, 1);
        let ring = Arc::new(Ring::new(log_n, &primes).expect("a ring"));
        let Some(card) = card(&ring) else { return };
        let (cpu, set) = (Cpu::open(Arc::clone(&ring)).expect("a CPU"), IndexSet::from_iter([0]));
        let words = SplitMix::new(4).residues(ring.n(), primes[0]);
        let expected = Poly::<Cpu, Coeff>::from_words(&cpu, &set, &words).and_then(|x| x.into_ntt(&cpu));
        let expected = expected.and_then(|x| x.to_words(&cpu)).expect("slots");
        let slots = Poly::<_, Coeff>::from_words(&card, &set, &words).and_then(|x| x.into_ntt(&card)).expect("slots");
        assert!(slots.to_words(&card).expect("words") == expected, "N = 2^{log_n}");
        let back = slots.into_coeff(&card).and_then(|x| x.to_words(&card)).expect("coefficients");
        assert!(back == words, "inverse at N = 2^{log_n}");
    }
}

#[test]
fn a_card_switches_keys_by_every_method() {
    let hybrid = params(&[50, 60, 45, 36, 61], &[61, 60, 59], &[], "65537");
    let extended = params(&[50, 48, 45], &[61, 61, 61], &[60; 4], "65537");
    let lost = params(&[50, 45, 55, 50, 48, 47], &[], &[], "1");
    let plan = |plan: Result<SwitchPlan, _>| -> LevelPlans { plan.expect("a plan").into() };
    let cases: [(&Params, LevelPlans); 5] = [
        (&hybrid, plan(SwitchPlan::hybrid(&hybrid, 3))),
        (&extended, plan(SwitchPlan::ghs(&extended))),
        (&extended, plan(SwitchPlan::double(&extended, 3, 2))),
        (&extended, plan(SwitchPlan::linear(&extended, 1))),
        (&lost, LevelPlans::level_aware(&lost).expect("plans")),
    ];
    for (i, (params, plans)) in cases.iter().enumerate() {
        let Some(card) = card(params.ring()) else { return };
        let cpu = Cpu::open(Arc::clone(params.ring())).expect("a CPU");
        let (ours, theirs) = (Run::new(card, params, plans), Run::new(cpu, params, plans));
        assert!(ours.words == theirs.words, "method {i}");
    }
}
