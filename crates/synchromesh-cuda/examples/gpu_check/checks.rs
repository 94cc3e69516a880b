//! What a device must do: the laws, the bits of the CPU, every key-switching method, batches, the schemes, its budget.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use synchromesh_cuda::{Cuda, Device, Stages, Timed, Transforms};
use synchromesh_ring::{Backend, BackendError, Coeff, Cpu, IndexSet, Poly, Ring};
use synchromesh_testing::laws;
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy;

use crate::Request;
use crate::deadline::Watch;
use crate::runs::{methods, schemes};

/// The results so far.
struct Results {
    checks: Vec<Value>,
    well: bool,
    watch: Watch,
    /// A part of the names of those that are run.
    only: String,
}

impl Results {
    /// Runs a check if it was asked for; a panic in it is its failure.
    fn check(&mut self, name: String, check: impl FnOnce()) {
        if !name.contains(&self.only) {
            return;
        }
        self.watch.begin(&name);
        let start = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(check));
        let seconds = start.elapsed().as_secs_f64();
        self.watch.end();
        let message = outcome.err().map(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        });
        self.well &= message.is_none();
        eprintln!("{} {name}", if message.is_none() { "ok    " } else { "FAILED" });
        self.checks.push(json!({"name": name, "ok": message.is_none(), "seconds": seconds, "message": message}));
    }
}

/// Every check; their results, and whether all passed.
pub(crate) fn run<D: Device>(open: &dyn Fn(&Arc<Ring>) -> Cuda<D>, request: &Request) -> (Vec<Value>, bool) {
    let mut results = Results { checks: Vec::new(), well: true, watch: Watch::start(), only: request.only.clone() };
    for set in toy::sets() {
        let ring = laws::ring(&set);
        if set.q.len() + set.p.len() > 1 {
            results.check(format!("laws: {}", set.name), || {
                laws::all(&open(&ring), 1);
            });
        }
        for stages in [Stages::Fused, Stages::Primitive] {
            results.check(format!("bits of the CPU, {stages:?}: {}", set.name), || {
                laws::same_bits(&Cpu::open(Arc::clone(&ring)).expect("a CPU"), &open(&ring).with_stages(stages), 2);
            });
        }
    }
    let degrees = if request.quick || request.checks_only { 10..=13 } else { 10..=18 };
    for log_n in degrees {
        // Those of a device without clusters are the same.
        for choice in
            [Transforms::TwoPasses, Transforms::default(), Transforms::Clusters { log_points: log_n.min(16) - 3 }]
        {
            let open = |ring: &Arc<Ring>| open(ring).with_transforms(choice);
            results.check(format!("transforms at N = 2^{log_n}, {choice:?}"), || transforms(log_n, &open));
        }
    }
    for case in methods::cases() {
        results.check(format!("key switching: {}", case.name), || methods::has_the_bits_of_the_cpu(&case, open));
        results.check(format!("batch of 3: {}", case.name), || {
            methods::merges(&case, open);
        });
    }
    for scheme in schemes::SCHEMES {
        results.check(format!("scheme: {scheme}"), || schemes::has_the_bits_of_the_cpu(scheme, open));
    }
    if !request.checks_only || !request.only.is_empty() {
        let [log_n, primes] = request.shape();
        for case in methods::measured(log_n as u32, primes) {
            results.check(format!("at the shape that is measured: {}", case.name), || {
                methods::has_the_bits_of_the_cpu(&case, open);
            });
        }
    }
    results.check("a budget is kept".to_owned(), || budget(open));
    (results.checks, results.well)
}

/// One limb forward and back.
fn transforms<D: Device>(log_n: u32, open: &dyn Fn(&Arc<Ring>) -> Cuda<D>) {
    let primes = toy::ntt_primes(if log_n.is_multiple_of(2) { 61 } else { 50 }, log_n, 1);
    let ring = Arc::new(Ring::new(log_n, &primes).expect("a ring"));
    let (cpu, device) = (Cpu::open(Arc::clone(&ring)).expect("a CPU"), open(&ring));
    let set = IndexSet::from_iter([0]);
    let words = SplitMix::new(u64::from(log_n)).residues(ring.n(), primes[0]);
    let slots = |x: Result<Poly<Cpu, Coeff>, _>| x.and_then(|x| x.into_ntt(&cpu)).and_then(|x| x.to_words(&cpu));
    let expected = slots(Poly::from_words(&cpu, &set, &words)).expect("slots");
    let x = Poly::<_, Coeff>::from_words(&device, &set, &words).expect("upload").into_ntt(&device).expect("forward");
    assert!(x.to_words(&device).expect("download") == expected, "forward");
    let back = x.into_coeff(&device).and_then(|x| x.to_words(&device)).expect("inverse");
    assert!(back == words, "inverse");
}

/// That a buffer beyond the budget is refused with numbers.
fn budget<D: Device>(open: &dyn Fn(&Arc<Ring>) -> Cuda<D>) {
    let device = open(&Arc::new(Ring::new(10, &toy::ntt_primes(50, 10, 1)).expect("a ring")));
    let rows = usize::try_from(device.memory_budget() >> 13).expect("a number of rows") + 1;
    let refused = device.alloc(rows).err();
    assert!(matches!(refused, Some(BackendError::Memory { needed, available, .. }) if needed > available));
}

/// The kernels of one key switch by each measured method, and what each takes.
pub(crate) fn kernels<D: Device>(open: &dyn Fn(&Arc<Ring>) -> Cuda<D>, request: &Request) -> Value {
    let [log_n, primes] = request.shape();
    let kernel =
        |(name, time): (String, Timed)| json!({"kernel": name, "launches": time.launches, "us": time.seconds * 1e6});
    let method = |case: methods::Case| {
        let times = methods::kernel_times(&case, open);
        json!({"method": case.name, "kernels": times.into_iter().map(kernel).collect::<Vec<_>>()})
    };
    methods::measured(log_n as u32, primes).into_iter().map(method).collect()
}
