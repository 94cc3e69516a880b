//! Every key-switching method on the emulated device: the bits of the CPU, the message when decrypted, batches as one
//! launch, and what recordings refuse.

use std::sync::{Arc, Mutex};

use crate::runs::methods::{cases, has_the_bits_of_the_cpu, kernel_times, measured, merges};
use crate::runs::say;
use synchromesh_cuda::{Cuda, Emulated, Kernels, Order, Stages};
use synchromesh_ring::backend::{Backend, View, ViewMut};
use synchromesh_ring::{BackendError, Error, Ring};
use synchromesh_testing::toy;

const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::Shuffled(2)];

fn emulated(ring: &Arc<Ring>, order: Order) -> Cuda<Emulated> {
    Cuda::new(Arc::clone(ring), Emulated::new(order), None).expect("a device")
}

for_both! {
    every_method_has_the_bits_of_the_cpu,
    batches_are_one_launch_a_step_and_have_the_bits_of_the_cpu,
}

fn every_method_has_the_bits_of_the_cpu(kernels: Kernels) {
    let cases = cases();
    for (case, order) in cases.iter().zip(ORDERS.iter().cycle()) {
        has_the_bits_of_the_cpu(case, |ring| {
            Cuda::new(Arc::clone(ring), Emulated::new(*order).with_kernels(kernels), None).expect("a device")
        });
    }
    say(&format!("{} key-switching plans on the emulated device: the bits of the CPU", cases.len()));
}

fn batches_are_one_launch_a_step_and_have_the_bits_of_the_cpu(kernels: Kernels) {
    let cases = cases();
    let mut launches = [0; 2];
    for (i, case) in cases.iter().enumerate() {
        let stages = [Stages::Fused, Stages::Primitive][i % 2];
        let made = merges(case, |ring| {
            let device = Emulated::new(ORDERS[i % 3]).with_kernels(kernels);
            let device = if i % 4 < 2 { device } else { device.with_fast_doubles() };
            Cuda::new(Arc::clone(ring), device, None).expect("a device").with_stages(stages)
        });
        launches = [launches[0] + made[0], launches[1] + made[1]];
    }
    assert!(2 * launches[0] < launches[1], "{launches:?}");
    let [merged, alone] = launches;
    say(&format!("{} plans in batches of 3: {merged} launches instead of {alone}", cases.len()));
}

#[test]
fn kernels_of_a_switch_are_timed_one_by_one() {
    // Not the degree of the other runs.
    for case in measured(11, 8) {
        has_the_bits_of_the_cpu(&case, |ring| emulated(ring, Order::Descending));
        let times = kernel_times(&case, |ring| emulated(ring, Order::Ascending));
        assert!(times.len() > 2 && times.iter().all(|(_, time)| time.launches > 0 && time.seconds > 0.0), "{times:?}");
        assert!(times.is_sorted_by(|(_, a), (_, b)| a.seconds >= b.seconds), "{times:?}");
    }
}

fn ring() -> Arc<Ring> {
    Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring"))
}

/// Two buffers of one row, filled with a number.
fn buffers(device: &Cuda<Emulated>, word: u64) -> [<Cuda<Emulated> as Backend>::Buffer; 2] {
    [0, 1].map(|_| {
        let mut buffer = device.alloc(1).expect("memory");
        device.upload(&[word; 1024], &mut buffer, 0).expect("upload");
        buffer
    })
}

#[test]
fn a_replay_does_the_work_again() {
    let device = Arc::new(emulated(&ring(), Order::Ascending));
    let [sum, x] = buffers(&device, 5);
    let (sum, on) = (Arc::new(Mutex::new(sum)), Arc::clone(&device));
    let target = Arc::clone(&sum);
    let recording = device.record(1, move |_| {
        let mut target = target.lock().expect("a lock");
        on.add_assign(&[0], ViewMut::new(&mut *target, &[0]), View::new(&x, &[0])).map_err(Error::from)
    });
    let recording = recording.expect("a recording");
    let read = || {
        let mut words = vec![0; 1024];
        device.download(&sum.lock().expect("a lock"), 0, &mut words).expect("download");
        words[7]
    };
    // Once before it is written down, once after.
    assert_eq!(read(), 15);
    recording.replay().and_then(|()| recording.replay()).expect("replays");
    assert_eq!((read(), recording.launches()), (25, 1));
}

#[test]
fn transfers_and_unlike_work_are_refused_in_recordings_and_nothing_is_left_behind() {
    let device = Arc::new(emulated(&ring(), Order::Ascending));
    let used = device.memory_in_use();
    let reason = |outcome: Result<(), Error>| match outcome {
        Err(Error::Backend(BackendError::Unavailable { reason, .. })) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    };
    let on = Arc::clone(&device);
    let transfer =
        device.record(1, move |_| on.alloc(1).and_then(|mut x| on.upload(&[1; 8], &mut x, 0)).map_err(Error::from));
    assert!(reason(transfer.map(|_| ())).contains("while work is recorded"));
    let on = Arc::clone(&device);
    let unlike = device.record(2, move |i| {
        let [mut x, y] = [0, 1].map(|_| on.alloc(1).expect("memory"));
        let view = ViewMut::new(&mut x, &[0]);
        let done = if i == 0 { on.neg_assign(&[0], view) } else { on.add_assign(&[0], view, View::new(&y, &[0])) };
        done.map_err(Error::from)
    });
    assert!(reason(unlike.map(|_| ())).contains("operand 1"));
    assert_eq!(device.memory_in_use(), used);
    let [mut x, _] = buffers(&device, 3);
    device.neg_assign(&[0], ViewMut::new(&mut x, &[0])).expect("work after a refusal is done at once");
}

#[test]
fn temporary_memory_of_a_batch_stays_within_the_budget() {
    // The constants take 32 KiB and 80 bytes, an operand 8 KiB.
    let device = Cuda::new(ring(), Emulated::new(Order::Ascending), Some(100 << 10)).expect("a device");
    let device = Arc::new(device);
    let record = |count: usize| {
        let on = Arc::clone(&device);
        let made = device.record(count, move |_| {
            let mut x = on.alloc(1)?;
            on.neg_assign(&[0], ViewMut::new(&mut x, &[0]))?;
            Ok::<_, Error>(x)
        });
        made.map(|recording| recording.results().len())
    };
    assert!(matches!(record(6), Ok(6)));
    assert!(matches!(record(9), Err(Error::Backend(BackendError::Memory { needed: 8192, .. }))));
    assert!(matches!(record(6), Ok(6)), "memory is back");
}
