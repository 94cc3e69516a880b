//! The self-test of a device: a good one passes, one that lacks a barrier does not.

use std::sync::Arc;

use synchromesh_cuda::{AnyDevice, Cuda, DeviceChoice, Emulated, Order};
use synchromesh_ring::{BackendError, Cpu, Ring, transcript};
use synchromesh_testing::{laws, toy};

use crate::runs::say;

fn ring(log_n: u32) -> Arc<Ring> {
    let primes = [30, 47, 50, 59, 60].map(|bits| toy::ntt_primes(bits, log_n, 1)).concat();
    Arc::new(Ring::new(log_n, &primes).expect("a ring"))
}

fn tested(log_n: u32, device: Emulated) -> Result<(), BackendError> {
    Cuda::new(ring(log_n), device, None).expect("an emulated device").self_test()
}

#[test]
fn a_good_device_passes() {
    for (log_n, device) in [
        (10, Emulated::new(Order::Ascending)),
        (11, Emulated::new(Order::Shuffled(3)).with_fast_doubles()),
        (14, Emulated::new(Order::Descending).with_clusters()),
    ] {
        tested(log_n, device).expect("the bits of the CPU");
    }
}

#[test]
fn a_device_that_lacks_a_barrier_does_not() {
    let orders = [Order::Ascending, Order::Descending, Order::Shuffled(2)];
    for barrier in 1..=3 {
        let fails = |order| tested(10, Emulated::new(order).without_barrier(barrier)).err();
        let reasons: Vec<String> = orders.into_iter().filter_map(fails).map(|error| error.to_string()).collect();
        assert!(!reasons.is_empty(), "barrier {barrier}");
        say(&format!("without barrier {barrier}: {}", reasons[0]));
    }
}

#[test]
fn a_device_chosen_at_run_time_is_the_device() {
    let ring = ring(10);
    let cpu = Cpu::open(Arc::clone(&ring)).expect("a CPU");
    for choice in [DeviceChoice::Cpu, DeviceChoice::Emulated] {
        let device = AnyDevice::open(&ring, choice).expect("a device");
        laws::all(&device, 6);
        laws::same_bits(&cpu, &device, 7);
    }
    let all = (0..ring.moduli().len()).collect();
    assert_eq!(transcript::everything(&cpu, &all).expect("results").len(), 86);
}

#[test]
fn names_of_devices() {
    for (name, choice) in [
        ("cpu", DeviceChoice::Cpu),
        ("cuda", DeviceChoice::Cuda(None)),
        ("cuda:3", DeviceChoice::Cuda(Some(3))),
        ("emulated", DeviceChoice::Emulated),
    ] {
        assert_eq!(name.parse::<DeviceChoice>().expect("a device"), choice);
        assert_eq!(choice.to_string().parse::<DeviceChoice>().expect("a device"), choice);
    }
    for name in ["", "gpu", "cuda:", "cuda:-1", "cuda:1:2", "CPU", " cpu"] {
        assert!(matches!(name.parse::<DeviceChoice>(), Err(BackendError::Unavailable { .. })), "{name}");
    }
}
