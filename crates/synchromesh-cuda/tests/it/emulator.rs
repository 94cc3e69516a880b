//! What the emulator finds: kernels with planted faults, barriers left out of the transforms, launches that no card takes.

use std::sync::Arc;

use crate::runs::say;
use synchromesh_cuda::{Argument, Arguments, Cuda, Device, DeviceError, Emulated, Kernels, Launch, Order, Transforms};
use synchromesh_ring::backend::{Backend, View, ViewMut};
use synchromesh_ring::{BackendError, Cpu, Ring};
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy;

const THREADS: usize = 64;

/// Runs a kernel of emulator/faults.cu on 0, 1, 2, ..; its output.
fn run(device: &Emulated, kernel: &'static std::ffi::CStr, launch: Launch) -> Result<Vec<u64>, DeviceError> {
    let input: Vec<u64> = (0..THREADS as u64).collect();
    let mut output = vec![0; THREADS];
    let [from, to] = [0, 1].map(|_| device.allocate(8 * THREADS).expect("memory"));
    // SAFETY: both buffers have THREADS words, which the kernels stay within.
    let done = unsafe {
        device.write(&input, from)?;
        let done = device.launch(kernel, launch, &Arguments::new(&[Argument::new(&to), Argument::new(&from)]));
        device.read(to, &mut output)?;
        device.free(from, 8 * THREADS);
        device.free(to, 8 * THREADS);
        done
    };
    done.map(|()| output)
}

fn shape() -> Launch {
    Launch { grid: [1, 1, 1], cluster: 1, threads: THREADS as u32, shared: 8 * THREADS as u32 }
}

fn reason(outcome: Result<Vec<u64>, DeviceError>) -> String {
    match outcome {
        Err(DeviceError::Launch { reason, .. }) => reason,
        other => panic!("expected a launch error, got {other:?}"),
    }
}

/// Kernels of emulator/faults.cu.
const FAULTS: [&str; 7] = [
    "faultless",
    "divergent_barrier",
    "shared_overrun",
    "uninitialised_shared",
    "undeclared_barrier",
    "handed_on",
    "divergent_cluster",
];

#[test]
fn every_kernel_has_two_entry_points_and_is_in_the_ptx() {
    let names: Vec<&str> =
        Emulated::kernels(Kernels::Sources).iter().map(|name| name.to_str().expect("a name")).collect();
    let kernels: Vec<&str> = names.iter().copied().filter(|name| !name.ends_with("_merged")).collect();
    assert_eq!(names.len(), 2 * kernels.len());
    let ours: Vec<&&str> = kernels.iter().filter(|name| !FAULTS.contains(name)).collect();
    assert_eq!((kernels.len(), ours.len()), (34, 27));
    let expected = names.iter().copied().filter(|name| !FAULTS.contains(&name.trim_end_matches("_merged")));
    let ptx = Emulated::kernels(Kernels::Ptx);
    let ptx = ptx.iter().map(|name| name.to_str().expect("a name")).filter(|name| !name.starts_with("instructions_"));
    assert_eq!(ptx.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    say(&format!("{} kernels, each alone and merged, and {} with planted faults", ours.len(), FAULTS.len()));
}

#[test]
fn faults_of_kernels_are_found() {
    let device = Emulated::new(Order::Ascending);
    let sums: Vec<u64> = (0..THREADS as u64).map(|i| i + (i + 1) % THREADS as u64).collect();
    assert_eq!(run(&device, c"faultless", shape()), Ok(sums));
    assert!(reason(run(&device, c"divergent_barrier", shape())).contains("barrier"));
    assert!(reason(run(&device, c"shared_overrun", shape())).contains("outside its shared memory"));
    assert!(reason(run(&device, c"undeclared_barrier", shape())).contains("declared"));
    let poison = run(&device, c"uninitialised_shared", shape()).expect("a run");
    assert!(poison.iter().all(|&word| word >> 61 != 0), "poison is no residue");
}

#[test]
fn a_missing_barrier_shows_in_one_of_the_orders() {
    let outputs: Vec<_> = [Order::Ascending, Order::Descending, Order::Shuffled(1)]
        .map(|order| run(&Emulated::new(order).without_barrier(1), c"faultless", shape()).expect("a run"))
        .into();
    assert!(outputs.iter().any(|output| output != &outputs[0]));
    say("a barrier left out of a kernel: found, the orders of threads disagree");
    let good = run(&Emulated::new(Order::Descending), c"faultless", shape());
    assert_eq!(good, run(&Emulated::new(Order::Ascending), c"faultless", shape()));
}

#[test]
fn blocks_of_a_cluster_hand_words_on_and_what_they_must_not_do_is_found() {
    let launch = |blocks, cluster| Launch { grid: [blocks, 1, 1], cluster, threads: 64 / blocks, shared: 512 / blocks };
    let orders = [Order::Ascending, Order::Descending, Order::Shuffled(3)];
    for (blocks, order) in [2, 4, 8].into_iter().flat_map(|blocks| orders.map(|order| (blocks, order))) {
        let device = Emulated::new(order);
        let expected: Vec<u64> = (0..64).map(|i| i % (64 / blocks) + i / (64 / blocks)).collect();
        let run = |device: &Emulated| run(device, c"handed_on", launch(blocks as u32, blocks as u32));
        assert_eq!(run(&device), Ok(expected));
        // Before the first barrier another block may not have begun, behind the second it has what it waits for.
        assert!(reason(run(&device.clone().without_barrier(1))).contains("had not begun"), "{order:?}");
        assert!(reason(run(&device.without_barrier(2))).contains("ended"), "{order:?}");
    }
    let device = Emulated::new(Order::Ascending);
    assert!(reason(run(&device, c"divergent_cluster", launch(2, 2))).contains("barrier"));
    assert!(reason(run(&device, c"handed_on", launch(2, 1))).contains("does not have"));
    assert!(reason(run(&device, c"handed_on", launch(4, 3))).contains("divide the grid"));
    assert!(reason(run(&device, c"handed_on", launch(16, 16))).contains("more than 8 blocks"));
}

#[test]
fn launches_that_no_card_takes_are_refused() {
    let device = Emulated::new(Order::Ascending);
    let mut wide = shape();
    wide.threads = 1025;
    assert!(reason(run(&device, c"faultless", wide)).contains("grid or block"));
    let mut flat = shape();
    flat.grid = [1, 65536, 1];
    assert!(reason(run(&device, c"faultless", flat)).contains("grid or block"));
    let mut greedy = shape();
    greedy.shared = 228 << 10;
    assert!(reason(run(&device, c"faultless", greedy)).contains("shared memory"));
    assert!(reason(run(&device, c"nameless", shape())).contains("no such kernel"));
    // SAFETY: the emulator refuses both before anything runs.
    let (few, narrow) = unsafe {
        (
            device.launch(c"faultless", shape(), &Arguments::new(&[Argument::new(&0u64)])),
            device.launch(c"faultless", shape(), &Arguments::new(&[Argument::new(&0u64), Argument::new(&0u32)])),
        )
    };
    assert!(matches!(few, Err(DeviceError::Launch { reason, .. }) if reason.contains("number of arguments")));
    assert!(matches!(narrow, Err(DeviceError::Launch { reason, .. }) if reason.contains("wrong size")));
}

/// Forward and inverse of one limb in clusters of blocks of so many points; none where the emulator found the fault.
fn transforms(ring: &Arc<Ring>, device: Emulated, log_points: u32, words: &[u64]) -> [Option<Vec<u64>>; 2] {
    let device = Cuda::new(Arc::clone(ring), device, None).expect("an emulated device");
    let device = device.with_transforms(Transforms::Clusters { log_points });
    [false, true].map(|inverse| {
        let mut buffer = device.alloc(1).expect("memory");
        device.upload(words, &mut buffer, 0).expect("upload");
        let view = ViewMut::new(&mut buffer, &[0]);
        let done = if inverse { device.ntt_inverse(&[0], view) } else { device.ntt_forward(&[0], view) };
        let mut result = vec![0; ring.n()];
        device.download(&buffer, 0, &mut result).expect("download");
        done.ok().map(|()| result)
    })
}

for_both! {
    every_barrier_of_the_transforms_is_needed_and_its_lack_is_found,
}

fn every_barrier_of_the_transforms_is_needed_and_its_lack_is_found(kernels: Kernels) {
    // One pass of ten layers: rounds of 2, 2, 3 and 3 layers. Two passes: of 3 and 3, of 2, 3 and 3. Clusters of 8 and 2
    // blocks that do seven and nine layers alone, in three rounds: two barriers of the cluster besides.
    let cases = [(10, 13, [3, 3]), (14, 12, [2, 2]), (10, 7, [4, 4]), (10, 9, [4, 4])];
    for (log_n, log_points, [forward, inverse]) in cases {
        let primes = toy::ntt_primes(50, log_n, 1);
        let ring = Arc::new(Ring::new(log_n, &primes).expect("a ring"));
        let words = SplitMix::new(3).residues(ring.n(), primes[0]);
        // At N = 2^14 without clusters, for two passes.
        let emulated = |order| {
            let device = Emulated::new(order).with_kernels(kernels);
            if log_n < 14 { device.with_clusters() } else { device }
        };
        let good = transforms(&ring, emulated(Order::Ascending), log_points, &words);
        assert!(good.iter().all(Option::is_some));
        assert_eq!(good, transforms(&ring, emulated(Order::Shuffled(5)), log_points, &words));
        for barrier in 1..=forward.max(inverse) {
            let orders = [Order::Ascending, Order::Descending, Order::Shuffled(2)];
            let found = orders.map(|order| {
                let bad = transforms(&ring, emulated(order).without_barrier(barrier), log_points, &words);
                [bad[0] != good[0], bad[1] != good[1]]
            });
            assert!(barrier > forward || found.iter().any(|found| found[0]), "forward, 2^{log_n}, {barrier}");
            assert!(barrier > inverse || found.iter().any(|found| found[1]), "inverse, 2^{log_n}, {barrier}");
        }
        let count = forward.max(inverse);
        say(&format!(
            "N = 2^{log_n}, 2^{log_points} points a block: each of {count} barriers of the transforms left out in turn, \
             every time found"
        ));
        let past = emulated(Order::Descending).without_barrier(count + 1);
        assert_eq!(good, transforms(&ring, past, log_points, &words), "there are no more barriers");
    }
}

#[test]
fn memory_is_refused_before_it_runs_out_and_comes_back() {
    let ring = Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring"));
    let open = |budget| Cuda::new(Arc::clone(&ring), Emulated::new(Order::Ascending), Some(budget));
    assert!(matches!(open(1000), Err(BackendError::Memory { needed, .. }) if needed > 0));
    let device = open(100 << 10).expect("32 KiB of constants fit");
    assert_eq!((device.memory_budget(), device.memory_in_use()), (100 << 10, (32 << 10) + 80));
    let held = device.alloc(8).expect("64 KiB");
    let refusal = device.alloc(1).err();
    assert!(matches!(refusal, Some(BackendError::Memory { needed: 8192, available, .. }) if available < 8192));
    drop(held);
    // Memory of another size: what was kept for reuse is given back first.
    let held = device.alloc(7).expect("56 KiB");
    drop((device.alloc(1).expect("8 KiB"), held));
}

#[test]
fn operands_of_another_device_and_rows_out_of_range_are_refused() {
    let ring = Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring"));
    let open = || Cuda::new(Arc::clone(&ring), Emulated::new(Order::Ascending), None).expect("a device");
    let (ours, other) = (open(), open());
    let (mut x, y) = (ours.alloc(1).expect("memory"), other.alloc(1).expect("memory"));
    let outcome = ours.add_assign(&[0], ViewMut::new(&mut x, &[0]), View::new(&y, &[0]));
    assert!(matches!(outcome, Err(BackendError::OtherDevice { .. })));
    let outcome = ours.neg_assign(&[0], ViewMut::new(&mut x, &[1]));
    assert!(matches!(outcome, Err(BackendError::Unavailable { reason, .. }) if reason.contains("row 1")));
    assert!(ours.upload(&[0; 2048], &mut x, 0).is_err());
    assert!(Cpu::open(ring).is_ok());
}
