//! Every key-switching method on the emulated device: the bits of the CPU, and the message when decrypted.

mod runs;

use std::sync::Arc;

use runs::{Run, params};
use synchromesh_cuda::{Cuda, Emulated, Order};
use synchromesh_ring::Cpu;
use synchromesh_ring::rns::Overflow;
use synchromesh_rlwe::{LevelPlans, Params, SwitchPlan};

fn agrees(params: &Params, plans: &LevelPlans, order: Order, what: &str) {
    let ring = params.ring();
    let cpu = Run::new(Cpu::open(Arc::clone(ring)).expect("a CPU"), params, plans);
    let device = Cuda::new(Arc::clone(ring), Emulated::new(order), None).expect("a device");
    let emulated = Run::new(device, params, plans);
    assert!(cpu.words == emulated.words, "{what}: the emulated device differs from the CPU");
}

#[test]
fn hybrid_key_switching_for_every_number_of_digits_and_overflow_rule() {
    for t in ["1", "65537"] {
        let params = params(&[50, 60, 45, 36, 61], &[61, 60, 59], &[], t);
        for (omega, order) in [(2, Order::Ascending), (3, Order::Descending), (5, Order::Shuffled(1))] {
            let plan = SwitchPlan::hybrid(&params, omega).expect("a plan");
            agrees(&params, &plan.clone().into(), order, &format!("hybrid, {omega} digits"));
            agrees(&params, &plan.unfolded().into(), order, &format!("hybrid unfolded, {omega} digits"));
        }
        for overflow in [Overflow::Fast, Overflow::Floor, Overflow::HpsFloor, Overflow::HpsRound, Overflow::Behz] {
            let down = if overflow == Overflow::Behz { Overflow::Behz } else { Overflow::Round };
            let plan = SwitchPlan::hybrid(&params, 3).expect("a plan").with_overflow(overflow, down);
            agrees(&params, &plan.into(), Order::Ascending, &format!("{overflow:?}"));
        }
    }
}

#[test]
fn ghs_radix_double_and_linear_key_switching() {
    let params = params(&[50, 48, 45], &[61, 61, 61], &[60; 4], "65537");
    let plans = [
        ("ghs", SwitchPlan::ghs(&params)),
        ("double", SwitchPlan::double(&params, 3, 2)),
        ("double of all", SwitchPlan::double(&params, 2, 3)),
        ("linear", SwitchPlan::linear(&params, 1)),
    ];
    for (what, plan) in plans {
        agrees(&params, &plan.expect("a plan").into(), Order::Shuffled(2), what);
    }
    let radix = runs::params(&[50, 45], &[], &[], "65537");
    agrees(&radix, &SwitchPlan::bv(&radix, 13).expect("a plan").into(), Order::Ascending, "bv");
}

#[test]
fn level_aware_key_switching_from_one_stored_key() {
    let params = params(&[50, 45, 55, 50, 48, 47], &[], &[], "1");
    let plans = LevelPlans::level_aware(&params).expect("plans");
    agrees(&params, &plans, Order::Descending, "level-aware");
}
