//! The laws of a backend on the emulated device, in several orders of threads, and bit for bit the CPU's results: of the
//! kernels' sources and of their PTX.

use std::sync::Arc;

use crate::runs::say;
use synchromesh_cuda::{Cuda, Emulated, Kernels, Order, Stages, Transforms};
use synchromesh_ring::{Coeff, Cpu, IndexSet, Poly, Ring};
use synchromesh_testing::laws;
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy::{self, ToySet, sets};

const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::Shuffled(7)];

/// A device that runs some kernels in some order of threads.
type How = (Kernels, Order);

fn device((kernels, order): How) -> Emulated {
    Emulated::new(order).with_kernels(kernels)
}

fn emulated(ring: &Arc<Ring>, how: How) -> Cuda<Emulated> {
    Cuda::new(Arc::clone(ring), device(how), None).expect("an emulated device")
}

/// The same with transforms in doubles where primes allow it.
fn in_doubles(ring: &Arc<Ring>, how: How) -> Cuda<Emulated> {
    Cuda::new(Arc::clone(ring), device(how).with_fast_doubles(), None).expect("an emulated device")
}

/// The same in clusters of blocks, of N = 2^10 eight, with transforms in doubles where primes allow it, and a cache that
/// holds few limbs.
fn in_clusters(ring: &Arc<Ring>, how: How, log_points: u32) -> Cuda<Emulated> {
    let device = device(how).with_fast_doubles().with_clusters().with_cache(64 << 10);
    let device = Cuda::new(Arc::clone(ring), device, None).expect("an emulated device");
    device.with_transforms(Transforms::Clusters { log_points })
}

for_both! {
    the_emulated_device_obeys_the_laws,
    every_order_of_threads_gives_the_bits_of_the_cpu,
    one_limb_of_every_degree_is_transformed_as_on_the_cpu,
    clusters_of_two_to_eight_blocks_transform_as_the_cpu_does,
    transforms_in_doubles_are_exact_at_the_edges,
}

fn several_primes(set: &ToySet) -> bool {
    set.q.len() + set.p.len() > 1
}

fn the_emulated_device_obeys_the_laws(kernels: Kernels) {
    let (mut kept, mut count) = (0, 0);
    for (set, order) in sets().iter().filter(|set| several_primes(set)).zip(ORDERS.iter().cycle()) {
        kept = laws::all(&emulated(&laws::ring(set), (kernels, *order)), 1);
        count += 1;
    }
    say(&format!("{kept} laws on {count} sets of primes"));
}

fn every_order_of_threads_gives_the_bits_of_the_cpu(kernels: Kernels) {
    let mut compared = 0;
    for set in sets() {
        let ring = laws::ring(&set);
        let cpu = Cpu::open(Arc::clone(&ring)).expect("a CPU");
        for order in ORDERS {
            compared += laws::same_bits(&cpu, &emulated(&ring, (kernels, order)), 2);
            compared += laws::same_bits(&cpu, &in_doubles(&ring, (kernels, order)), 4);
            compared += laws::same_bits(&cpu, &in_clusters(&ring, (kernels, order), 7), 5);
            compared += laws::same_bits(&cpu, &emulated(&ring, (kernels, order)).with_stages(Stages::Primitive), 3);
        }
    }
    say(&format!("{compared} results have the bits of the CPU, in {} orders of threads: {ORDERS:?}", ORDERS.len()));
}

/// One limb forward and back, against the CPU.
fn transforms_agree(log_n: u32, bits: u32, words: &[u64], device: impl FnOnce(&Arc<Ring>) -> Cuda<Emulated>) {
    let ring = Arc::new(Ring::new(log_n, &toy::ntt_primes(bits, log_n, 1)).expect("a ring"));
    let (cpu, device) = (Cpu::open(Arc::clone(&ring)).expect("a CPU"), device(&ring));
    let set = IndexSet::from_iter([0]);
    let expected = Poly::<Cpu, Coeff>::from_words(&cpu, &set, words).and_then(|x| x.into_ntt(&cpu)).expect("forward");
    let x = Poly::<_, Coeff>::from_words(&device, &set, words).expect("upload");
    let slots = x.into_ntt(&device).expect("forward");
    assert!(slots.to_words(&device).expect("download") == expected.to_words(&cpu).expect("words"), "N = 2^{log_n}");
    let back = slots.into_coeff(&device).expect("inverse");
    assert!(back.to_words(&device).expect("download") == words, "inverse at N = 2^{log_n}");
}

fn one_limb_of_every_degree_is_transformed_as_on_the_cpu(kernels: Kernels) {
    for (log_n, order) in (12..=18).zip(ORDERS.iter().cycle()) {
        let bits = if log_n % 2 == 0 { 61 } else { 50 };
        let words = SplitMix::new(u64::from(log_n)).residues(1 << log_n, toy::ntt_primes(bits, log_n, 1)[0]);
        transforms_agree(log_n, bits, &words, |ring| emulated(ring, (kernels, *order)));
        if bits == 50 || log_n <= 16 {
            let words: Vec<u64> = words.iter().map(|word| word % (1 << 49)).collect();
            transforms_agree(log_n, 50, &words, |ring| in_doubles(ring, (kernels, *order)));
        }
    }
}

fn clusters_of_two_to_eight_blocks_transform_as_the_cpu_does(kernels: Kernels) {
    let mut orders = ORDERS.iter().cycle();
    for (log_n, log_points) in [(13, 12), (14, 13), (14, 11), (15, 13), (16, 13)] {
        for bits in [61, 50] {
            let order = *orders.next().expect("a cycle");
            let words = SplitMix::new(u64::from(log_n)).residues(1 << log_n, toy::ntt_primes(bits, log_n, 1)[0]);
            transforms_agree(log_n, bits, &words, |ring| in_clusters(ring, (kernels, order), log_points));
        }
    }
}

fn transforms_in_doubles_are_exact_at_the_edges(kernels: Kernels) {
    // The widest prime there is for doubles, and the narrowest; residues that make every sum and difference as large as it
    // gets.
    for (log_n, bits) in [(10, 50), (10, 20), (14, 50), (14, 30), (11, 49)] {
        let q = toy::ntt_primes(bits, log_n, 1)[0];
        let n = 1usize << log_n;
        let edges = [0, 1, q - 1, q / 2, q / 2 + 1];
        let patterns: [Vec<u64>; 4] = [
            vec![q - 1; n],
            vec![q / 2; n],
            (0..n).map(|i| if i % 2 == 0 { q - 1 } else { 0 }).collect(),
            (0..n).map(|i| edges[i * 7 % 5]).collect(),
        ];
        for words in patterns {
            transforms_agree(log_n, bits, &words, |ring| in_doubles(ring, (kernels, Order::Descending)));
            transforms_agree(log_n, bits, &words, |ring| in_clusters(ring, (kernels, Order::Ascending), log_n - 3));
        }
    }
}
