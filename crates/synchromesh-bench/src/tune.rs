//! Machine profiles: every operation of a backend measured by degree, class of primes and memory in use.
//!
//! Each operation runs in a few shapes (digits of a gadget product, sources and destinations of a conversion); its
//! time is then fitted as a sum of what it is linear in ([`Work`]), with no negative part. Operands are cycled through,
//! so that a working set of 256 KiB to 512 MiB is passed over again and again: small ones stay in a cache, and large
//! ones show what memory allows. Everything is measured in rounds minutes apart, of which the better counts, since what
//! else runs on a machine slows it down for seconds or minutes.

mod cases;
mod fit;
mod machine;
#[cfg(feature = "predicted")]
pub mod predicted;

use std::sync::Arc;
use std::time::{Duration, Instant};

use synchromesh::cost::{Entry, Point, Profile};
use synchromesh_ring::isa::Isa;
use synchromesh_ring::kernels::NARROW_BITS;
use synchromesh_ring::ledger::{Operation, Work};
use synchromesh_ring::prime::ntt_primes;
use synchromesh_ring::{Backend, BackendError, Cpu, Ring, Threads};

use self::cases::{Case, ROLES, cases};
use crate::Error;
use crate::device::Device;

pub use self::machine::streaming;
pub use self::machine::{date, name as machine_name};

/// Working sets, in bytes.
const WORKING_SETS: [usize; 7] = [256 << 10, 1 << 20, 4 << 20, 16 << 20, 48 << 20, 128 << 20, 512 << 20];
/// A working set is used at a degree if it holds this many rows.
const ROWS: std::ops::RangeInclusive<usize> = 8..=1 << 11;
/// Working sets up to which each call's operands have buffers of their own, as those of a key switch have: which pages a
/// buffer lies in depends on its size. In larger ones all calls' operands lie in one buffer for each role.
const OWN_BUFFERS: usize = 48 << 20;
/// A pass over more bytes is timed in eighths.
const LONG: usize = 96 << 20;
/// Primes of a ring that is measured.
const PRIMES: usize = 24;
/// The widths that stand for the two classes of primes.
const WIDTHS: [u32; 2] = [NARROW_BITS, 60];

/// How much is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Degrees, as log2.
    pub log_n: Vec<u32>,
    /// Least time spent on one shape in each round.
    pub least: Duration,
    /// Times that everything is measured, at least 1.
    pub rounds: usize,
    /// Working sets in bytes, rising.
    pub sets: &'static [usize],
    /// Largest working set in bytes; about four times as much memory is taken.
    pub most_bytes: usize,
}

impl Plan {
    /// Every degree from 2^10 to 2^17; minutes.
    #[must_use]
    pub fn full() -> Self {
        let (least, rounds, most_bytes) = (Duration::from_millis(8), 2, 512 << 20);
        Self { log_n: (10..=17).collect(), least, rounds, sets: &WORKING_SETS, most_bytes }
    }

    /// Every other degree from 2^10 to 2^16, under a minute.
    #[must_use]
    pub fn quick() -> Self {
        let (least, rounds, most_bytes) = (Duration::from_millis(2), 1, 128 << 20);
        Self { log_n: vec![10, 12, 14, 16], least, rounds, sets: &WORKING_SETS, most_bytes }
    }

    /// Number of times that progress is reported.
    #[must_use]
    pub fn steps(&self) -> usize {
        let round: usize = self.log_n.iter().map(|&log_n| WIDTHS.len() * self.working_sets(log_n).count()).sum();
        self.rounds.max(1) * round
    }

    /// The working sets measured at this degree.
    fn working_sets(&self, log_n: u32) -> impl Iterator<Item = usize> {
        let most = self.most_bytes;
        self.sets.iter().copied().filter(move |bytes| *bytes <= most && ROWS.contains(&(bytes >> (log_n + 3))))
    }
}

/// Measures a device of this machine, the CPU on the threads of the process; `progress` hears what comes next.
///
/// # Errors
/// [`Error`] for a device that cannot be had, when the CPU lacks the instruction set that the environment asks for, or
/// memory is short.
pub fn measure(plan: &Plan, device: Device, progress: impl FnMut(&str)) -> Result<Profile, Error> {
    match device {
        Device::Cpu => {
            let isa = Isa::detect().map_err(|e| Error::Request { reason: e.to_string() })?;
            let (name, isa_name) = (format!("cpu/{}", isa.name()), isa.name().to_owned());
            let threads = Threads::of_process().map_err(BackendError::from)?;
            let head = Profile::new(machine::name(), name, isa_name, date(), streaming()).on_threads(threads.count());
            let open = |ring| Ok(Cpu::with_isa(ring, isa)?.with_threads(threads.clone()));
            measure_backend(
                plan,
                head,
                open,
                &Clocked { wait: |_: &Cpu| -> Result<(), Error> { Ok(()) }, least: plan.least },
                progress,
            )
        }
        #[cfg(feature = "cuda")]
        Device::Cuda => {
            let card = synchromesh_cuda::Driver::list()?.swap_remove(0);
            measure_launches(plan, card, "cuda", synchromesh_cuda::Driver::first, progress)
        }
        #[cfg(feature = "emulated")]
        Device::Emulated => {
            let open = || Ok(synchromesh_cuda::Emulated::new(synchromesh_cuda::Order::default()));
            let emulated: Result<_, synchromesh_cuda::DeviceError> = open();
            let properties = synchromesh_cuda::Device::properties(&emulated?).clone();
            measure_launches(plan, properties, "emulated", open, progress)
        }
    }
}

/// Measures a device of launches, named `isa` where a CPU's instruction set would be.
#[cfg(any(feature = "cuda", feature = "emulated"))]
fn measure_launches<D: synchromesh_cuda::Device>(
    plan: &Plan,
    properties: synchromesh_cuda::Properties,
    isa: &str,
    open: impl Fn() -> Result<D, synchromesh_cuda::DeviceError>,
    progress: impl FnMut(&str),
) -> Result<Profile, Error> {
    use synchromesh_cuda::Cuda;
    let open = |ring: Arc<Ring>| -> Result<Cuda<D>, Error> { Ok(Cuda::new(ring, open()?, None)?) };
    let wait = |backend: &Cuda<D>| -> Result<(), Error> { Ok(backend.synchronize()?) };
    let streaming = machine::copies(&open(Arc::new(Ring::new(14, &ntt_primes(50, 14, 1)?)?))?, wait, plan.most_bytes)?;
    let head = Profile::new(properties.model, properties.name, isa.to_owned(), date(), streaming);
    measure_backend(plan, head, open, &Clocked { wait, least: plan.least }, progress)
}

/// How long calls take.
trait Clock<B> {
    /// Seconds of one of the calls that `pass` makes, which takes how many it is to make. There are operands for `sets` of them,
    /// each of `bytes`, which come round in turn.
    ///
    /// # Errors
    /// What a call returns, or when the device fails.
    fn seconds(
        &self,
        backend: &B,
        sets: (usize, usize),
        pass: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<f64, Error>;
}

/// The clock on the wall; `wait` ends when the work that was asked for is done.
struct Clocked<W> {
    wait: W,
    least: Duration,
}

impl<B, W: Fn(&B) -> Result<(), Error>> Clock<B> for Clocked<W> {
    fn seconds(
        &self,
        backend: &B,
        (sets, bytes): (usize, usize),
        pass: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<f64, Error> {
        let mut timed = |calls: usize| -> Result<f64, Error> {
            let start = Instant::now();
            pass(calls)?;
            (self.wait)(backend)?;
            Ok(start.elapsed().as_secs_f64() / calls as f64)
        };
        // All others lie between two uses of one set however much is timed at once.
        let part = if sets * bytes > LONG { sets.div_ceil(8) } else { sets };
        let calls = part * (2e-4 / (timed(part)? * part as f64)).ceil().max(1.0) as usize;
        let begin = Instant::now();
        let mut times = Vec::new();
        while times.len() < 3 || (begin.elapsed() < self.least && times.len() < 101) {
            times.push(timed(calls)?);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    }
}

/// Adds every operation of a backend to a profile.
fn measure_backend<B: Backend>(
    plan: &Plan,
    mut profile: Profile,
    open: impl Fn(Arc<Ring>) -> Result<B, Error>,
    clock: &impl Clock<B>,
    mut progress: impl FnMut(&str),
) -> Result<Profile, Error> {
    let mut sets: Vec<(u32, u32, Vec<Samples>)> = Vec::new();
    for _ in 0..plan.rounds.max(1) {
        let mut place = 0;
        for (log_n, bits) in plan.log_n.iter().flat_map(|&log_n| WIDTHS.map(|bits| (log_n, bits))) {
            let backend = open(Arc::new(Ring::new(log_n, &ntt_primes(bits, log_n, PRIMES)?)?))?;
            for bytes in plan.working_sets(log_n) {
                progress(&format!("N = 2^{log_n}, {bits}-bit primes, {} KiB", bytes >> 10));
                let samples = measure_set(&backend, clock, bytes)?;
                match sets.get_mut(place) {
                    None => sets.push((log_n, bits, samples)),
                    Some((.., best)) => keep_better(best, samples),
                }
                place += 1;
            }
        }
    }
    for (log_n, bits, samples) in sets {
        for (operation, times, used) in samples {
            let working_set_bytes = (used.iter().sum::<usize>() / used.len()) as u64;
            let ns = fit::nonnegative(&times).map(|s| 1e9 * s);
            add(&mut profile.entries, operation, (log_n, bits), Point { working_set_bytes, ns });
        }
    }
    Ok(profile)
}

/// Keeps the lesser time of each case of two rounds.
fn keep_better(best: &mut [Samples], again: Vec<Samples>) {
    for ((_, best, _), (_, again, _)) in best.iter_mut().zip(again) {
        best.iter_mut().zip(again).for_each(|(best, again)| best.1 = best.1.min(again.1));
    }
}

/// Adds a point, unless its working set is no larger than the one before.
fn add(entries: &mut Vec<Entry>, operation: Operation, (log_n, prime_bits): (u32, u32), point: Point) {
    let name = operation.name();
    match entries.iter_mut().find(|e| e.operation == name && (e.log_n, e.prime_bits) == (log_n, prime_bits)) {
        None => entries.push(Entry { operation: name.to_owned(), log_n, prime_bits, points: vec![point] }),
        Some(e) if e.points.last().is_none_or(|p| p.working_set_bytes < point.working_set_bytes) => {
            e.points.push(point);
        }
        Some(_) => {}
    }
}

/// An operation, how long how much of it took, and the bytes that each case went through.
type Samples = (Operation, Vec<(Work, f64)>, Vec<usize>);

/// Every operation with about `bytes` of operands.
fn measure_set<B: Backend>(backend: &B, clock: &impl Clock<B>, bytes: usize) -> Result<Vec<Samples>, Error> {
    let mut samples: Vec<Samples> = Vec::new();
    let n = backend.ring().n();
    let cases = cases(backend, bytes)?;
    let mut shared = Vec::new();
    if bytes > OWN_BUFFERS {
        let most = |role: usize| cases.iter().map(|case| case.rows[role] * case.sets(n, bytes)).max().unwrap_or(0);
        shared.push((0..ROLES).map(|role| cases::filled(backend, most(role))).collect::<Result<_, Error>>()?);
    }
    for case in &cases {
        let count = case.sets(n, bytes);
        let (seconds, used) = if shared.is_empty() {
            // Of few sizes, so that one case's buffers serve another.
            let size = |rows: usize| if rows == 0 { 0 } else { rows.next_power_of_two() };
            let own = |_| case.rows.iter().map(|&rows| cases::filled(backend, size(rows))).collect();
            let mut own = (0..count).map(own).collect::<Result<Vec<_>, Error>>()?;
            time((backend, clock), case, &mut own, bytes)?
        } else {
            time((backend, clock), case, &mut shared, bytes)?
        };
        match samples.iter_mut().find(|s| s.0 == case.operation) {
            None => samples.push((case.operation, vec![(case.work, seconds)], vec![used])),
            Some((_, times, sets)) => {
                times.push((case.work, seconds));
                sets.push(used);
            }
        }
    }
    Ok(samples)
}

/// Seconds of one call of `case`, and the bytes that were cycled through. Each set of operands has its buffers, or all lie in
/// the same.
fn time<B: Backend>(
    (backend, clock): (&B, &impl Clock<B>),
    case: &Case<B>,
    operands: &mut [Vec<B::Buffer>],
    bytes: usize,
) -> Result<(f64, usize), Error> {
    let n = backend.ring().n();
    let sets = case.sets(n, bytes);
    let mut next = 0;
    let mut pass = |calls: usize| -> Result<(), Error> {
        for _ in 0..calls {
            let (buffers, set) = if operands.len() == 1 { (0, next) } else { (next, 0) };
            (case.run)(backend, &mut operands[buffers], set)?;
            next = (next + 1) % sets;
        }
        Ok(())
    };
    let seconds = clock.seconds(backend, (sets, case.bytes(n)), &mut pass)?;
    Ok((seconds, sets * case.bytes(n) + case.tables(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_prices_every_operation() {
        let plan = Plan { log_n: vec![10], least: Duration::ZERO, most_bytes: 2 << 20, ..Plan::full() };
        let mut steps = 0;
        let profile = measure(&plan, Device::Cpu, |_| steps += 1).unwrap();
        assert_eq!(steps, plan.steps());
        for operation in Operation::ALL {
            for narrow in [false, true] {
                let work = Work { primes: 2, rows: 3, terms: 4, extra: 1 };
                let tally = synchromesh_ring::ledger::Tally { work, seconds: 0.0 };
                let entries = [((operation, narrow), tally)].into();
                for working_set in [0, 1 << 20, 1 << 40] {
                    let seconds = profile.seconds(&entries, 11, working_set).unwrap();
                    assert!(seconds > 0.0 && seconds < 1.0, "{operation:?} {narrow} {seconds}");
                }
            }
        }
        let text = profile.to_json().unwrap();
        assert_eq!(Profile::from_json(&text).unwrap().entries.len(), profile.entries.len());
    }
}
