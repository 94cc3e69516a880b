//! The device of a driver, on a driver without a card (`emulator/driver.cpp`): the bits of the CPU, and what is said where
//! drivers, cards or their memory will not do.
#![cfg(all(feature = "driver", feature = "emulated", target_os = "linux"))]

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::runs::methods::{cases, has_the_bits_of_the_cpu, merges};
use crate::runs::say;
use synchromesh_cuda::{Cuda, Driver, Emulated, Stages, Transforms};
use synchromesh_ring::backend::{View, ViewMut};
use synchromesh_ring::{Backend, BackendError, Coeff, Cpu, Error, IndexSet, Poly, Ring};
use synchromesh_testing::laws;
use synchromesh_testing::toy::{self, sets};

/// Tells the stand-in what kind of driver it is.
const WORDS: &str = "SYNCHROMESH_STAND_IN";

/// Whether this process has the stand-in in the driver's place.
fn on_stand_in() -> bool {
    std::env::var_os(WORDS).is_some()
}

/// Runs a test of this file in a process of its own that has the stand-in in the driver's place; what it prints.
fn again(test: &str, words: &str) -> String {
    let folder = Emulated::stand_in_driver().expect("it is built on Linux");
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command
        .args([&format!("driver::{test}"), "--exact", "--nocapture"])
        .env("LD_LIBRARY_PATH", folder)
        .env(WORDS, words);
    let output = command.output().expect("a run");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{words}: {text}{errors}");
    text
}

fn ring() -> Arc<Ring> {
    Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring"))
}

/// The card without its self-test.
fn untested() -> Cuda<Driver> {
    Cuda::new(ring(), Driver::first().expect("the stand-in"), None).expect("32 KiB of constants fit")
}

fn polynomial(device: &Cuda<Driver>) -> Result<Poly<Cuda<Driver>, Coeff>, Error> {
    Poly::from_words(device, &IndexSet::from_iter([0]), &[1; 1024])
}

#[test]
fn a_driver_has_the_bits_of_the_cpu() {
    if !on_stand_in() {
        // Cards that multiply doubles fast, and others; cards without clusters, and with room for small ones.
        for words in ["ratio=2", "ratio=64", "capability0=80", "clusters=2"] {
            again("a_driver_has_the_bits_of_the_cpu", words);
        }
        return say("the driver's device on a driver without a card: the bits of the CPU, alone and in batches");
    }
    let card = Arc::new(Driver::first().expect("the stand-in"));
    let words = std::env::var(WORDS).unwrap_or_default();
    let clusters = [("=80", 1), ("clusters=2", 2)].iter().find(|(word, _)| words.contains(word)).map_or(8, |it| it.1);
    assert_eq!(synchromesh_cuda::Device::properties(&card).cluster_blocks, clusters);
    let open = |ring: &Arc<Ring>| {
        let device = Cuda::new(Arc::clone(ring), Arc::clone(&card), None).expect("a device");
        device.with_transforms(Transforms::Clusters { log_points: 7 })
    };
    for set in sets().iter().filter(|set| set.q.len() + set.p.len() > 1).take(2) {
        let ring = laws::ring(set);
        laws::all(&open(&ring), 1);
        for stages in [Stages::Fused, Stages::Primitive] {
            laws::same_bits(&Cpu::open(Arc::clone(&ring)).expect("a CPU"), &open(&ring).with_stages(stages), 2);
        }
    }
    for case in cases().iter().step_by(6) {
        has_the_bits_of_the_cpu(case, open);
        merges(case, open);
    }
}

#[test]
fn recordings_take_no_work_of_other_threads() {
    const SUMS: u64 = 100_000;
    if !on_stand_in() {
        again("recordings_take_no_work_of_other_threads", "ratio=2");
        return say(&format!("{SUMS} sums of a thread beside one that records: none lost"));
    }
    let device = Arc::new(Cuda::<Driver>::open(ring(), 0).expect("a device"));
    let filled = |word| {
        let mut buffer = device.alloc(1).expect("memory");
        device.upload(&[word; 1024], &mut buffer, 0).expect("upload");
        buffer
    };
    let (mut sum, one) = (filled(0), filled(1));
    let done = AtomicBool::new(false);
    let recordings = std::thread::scope(|scope| {
        let recorder = scope.spawn(|| {
            let mut count = 0;
            while !done.load(Ordering::Relaxed) {
                let (on, x) = (Arc::clone(&device), Mutex::new(filled(3)));
                let work = move |_| {
                    let mut x = x.lock().expect("a lock");
                    on.neg_assign(&[0], ViewMut::new(&mut *x, &[0])).map_err(Error::from)
                };
                let recording = device.record(1, work).expect("a recording");
                recording.replay().expect("a replay");
                count += 1;
            }
            count
        });
        for _ in 0..SUMS {
            device.add_assign(&[0], ViewMut::new(&mut sum, &[0]), View::new(&one, &[0])).expect("a sum");
        }
        done.store(true, Ordering::Relaxed);
        recorder.join().expect("recordings")
    });
    let mut words = [0; 1024];
    device.download(&sum, 0, &mut words).expect("download");
    assert!(recordings > 1 && words == [SUMS; 1024], "{} of {SUMS} sums beside {recordings} recordings", words[0]);
}

#[test]
fn drivers_and_cards_that_will_not_do_are_named() {
    if on_stand_in() {
        return match Driver::first() {
            Ok(card) => say(&format!("opened {}", synchromesh_cuda::Device::properties(&card).name)),
            Err(error) => say(&format!("{}: {error}; {}", error.kind(), error.remedy())),
        };
    }
    for (words, said) in [
        ("version=11080", "old_driver: the driver supports CUDA 11.8; the kernels need 12.0; install a newer driver"),
        ("devices=0", "no_device: there is no CUDA device 0; the driver has 0; choose a device that there is"),
        (
            "capability0=75",
            "unsupported_device: stand-in 0 has compute capability 7.5; the kernels need 8.0; use a card",
        ),
        (
            "ptx=0",
            "kernels_refused: cuda:0 does not load the kernels: CUDA_ERROR_INVALID_PTX: line 1: a word that it does not",
        ),
        ("devices=2 capability0=75", "opened cuda:1"),
        ("devices=2", "opened cuda:0"),
    ] {
        let text = again("drivers_and_cards_that_will_not_do_are_named", words);
        assert!(text.contains(said), "{words}: {text}");
    }
}

#[test]
fn a_card_that_fails_is_lost_from_then_on() {
    if !on_stand_in() {
        again("a_card_that_fails_is_lost_from_then_on", "launches=3");
        return;
    }
    let device = untested();
    let twice = |x: Poly<_, Coeff>| x.into_ntt(&device)?.into_coeff(&device);
    let words = polynomial(&device).and_then(twice).and_then(|x| x.to_words(&device)).expect("two launches");
    assert_eq!(words, [1; 1024]);
    // Launches are queued; who waits for them hears of it.
    let outcome = polynomial(&device).and_then(twice).and_then(|x| x.to_words(&device));
    assert!(matches!(outcome, Err(Error::Backend(BackendError::Lost { .. }))), "{outcome:?}");
    assert!(matches!(polynomial(&device), Err(Error::Backend(BackendError::Lost { .. }))));
    assert!(matches!(
        Cuda::<Driver>::open(ring(), 0),
        Err(BackendError::Unavailable { .. } | BackendError::Lost { .. })
    ));
    let error = Driver::first().err().expect("a lost card does not open");
    assert_eq!(error.kind(), "device_lost");
    // Opening it again in this process does not help.
    assert!(error.remedy().starts_with("start the program again"), "{}", error.remedy());
}

#[test]
fn memory_that_others_hold_is_a_typed_error() {
    if !on_stand_in() {
        // The card says that it has 4 GiB, and other programs have left 100 KiB: the budget allows what the card refuses.
        again("memory_that_others_hold_is_a_typed_error", "memory=102400");
        return;
    }
    // Its self-test takes more, and says so.
    assert!(matches!(Cuda::<Driver>::open(ring(), 0), Err(BackendError::Memory { available: 0, .. })));
    let device = untested();
    let mut held = Vec::new();
    let refused = loop {
        match device.alloc(1) {
            Ok(buffer) => held.push(buffer),
            Err(error) => break error,
        }
    };
    assert_eq!(held.len(), 8);
    assert!(matches!(refused, BackendError::Memory { needed: 8192, available: 0, .. }), "{refused}");
    drop(held);
    // Memory of another size: what was kept for reuse is given back first.
    device.alloc(7).expect("56 KiB");
}
