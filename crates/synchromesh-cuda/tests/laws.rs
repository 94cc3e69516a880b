//! The laws of a backend on the emulated device, in several orders of threads, and bit for bit the CPU's results.

use std::sync::Arc;

use synchromesh_cuda::{Cuda, Emulated, Order, Stages};
use synchromesh_ring::{Coeff, Cpu, IndexSet, Poly, Ring};
use synchromesh_testing::laws;
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy::{self, ToySet, sets};

const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::Shuffled(7)];

fn emulated(ring: &Arc<Ring>, order: Order) -> Cuda<Emulated> {
    Cuda::new(Arc::clone(ring), Emulated::new(order), None).expect("an emulated device")
}

fn several_primes(set: &ToySet) -> bool {
    set.q.len() + set.p.len() > 1
}

#[test]
fn the_emulated_device_obeys_the_laws() {
    for (set, order) in sets().iter().filter(|set| several_primes(set)).zip(ORDERS.iter().cycle()) {
        laws::all(&emulated(&laws::ring(set), *order), 1);
    }
}

#[test]
fn every_order_of_threads_gives_the_bits_of_the_cpu() {
    for set in sets() {
        let ring = laws::ring(&set);
        let cpu = Cpu::open(Arc::clone(&ring)).expect("a CPU");
        for order in ORDERS {
            laws::same_bits(&cpu, &emulated(&ring, order), 2);
            laws::same_bits(&cpu, &emulated(&ring, order).with_stages(Stages::Primitive), 3);
        }
    }
}

/// One limb forward and back, against the CPU.
fn transforms_agree(log_n: u32, order: Order) {
    let primes = toy::ntt_primes(if log_n.is_multiple_of(2) { 61 } else { 50 }, log_n, 1);
    let ring = Arc::new(Ring::new(log_n, &primes).expect("a ring"));
    let (cpu, device) = (Cpu::open(Arc::clone(&ring)).expect("a CPU"), emulated(&ring, order));
    let set = IndexSet::from_iter([0]);
    let words = SplitMix::new(u64::from(log_n)).residues(ring.n(), primes[0]);
    let expected = Poly::<Cpu, Coeff>::from_words(&cpu, &set, &words).and_then(|x| x.into_ntt(&cpu)).expect("forward");
    let x = Poly::<_, Coeff>::from_words(&device, &set, &words).expect("upload");
    let slots = x.into_ntt(&device).expect("forward");
    assert!(slots.to_words(&device).expect("download") == expected.to_words(&cpu).expect("words"), "N = 2^{log_n}");
    let back = slots.into_coeff(&device).expect("inverse");
    assert!(back.to_words(&device).expect("download") == words, "inverse at N = 2^{log_n}");
}

#[test]
fn one_limb_of_every_degree_is_transformed_as_on_the_cpu() {
    for (log_n, order) in (12..=18).zip(ORDERS.iter().cycle()) {
        transforms_agree(log_n, *order);
    }
}
