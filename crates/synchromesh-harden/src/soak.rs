//! Soak: mixed operations of all schemes over threads that share one context each, every result decrypted and compared
//! with the clear, and the memory of the process watched.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::rlwe::Randomness;
use synchromesh_testing::random::SplitMix;

use crate::report::Report;
use crate::schemes::{Ciphertext, Sample, Size, Subject, message, zip};

/// Refusals that are answers: no room or level left for another product.
const NO_ROOM: [&str; 4] = ["noise", "level", "scale_mismatch", "second_base"];

/// Ciphertexts that a thread keeps of each scheme.
const POOL: usize = 3;

/// Bytes that the process may grow by after it has warmed up, whatever is computed; the allocator's own caches.
const GROWTH: u64 = 24 << 20;

/// Part of all operations after which the process counts as warm: a quarter.
const WARM: u64 = 4;

/// Operations from which on growth is a finding: of fewer a quarter warms nothing up, least of all on a loaded machine.
const TELLING: u64 = 5000;

/// What is done and how it went, shared by all threads.
struct Shared {
    operations: u64,
    threads: usize,
    next: AtomicU64,
    refused: AtomicU64,
    wrong: Mutex<Vec<String>>,
    resident: Mutex<Vec<(u64, u64)>>,
}

/// A ciphertext with what it should decrypt to.
type Entry<S> = (Ciphertext<S>, Vec<i64>);

/// Runs `operations` in all on `threads` threads.
///
/// # Errors
/// When keys cannot be made; what went wrong later is counted.
pub fn run(operations: u64, threads: usize, seed: u64) -> Result<Report> {
    let size = Size::Working;
    let subjects =
        (Subject::<Bfv>::new(size, seed)?, Subject::<Bgv>::new(size, seed)?, Subject::<Ckks>::new(size, seed)?);
    let shared = Shared {
        operations,
        threads,
        next: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        wrong: Mutex::default(),
        resident: Mutex::default(),
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (shared, subjects) = (&shared, &subjects);
            scope.spawn(move || {
                let seed = seed.wrapping_mul(1000).wrapping_add(thread as u64);
                if let Err(error) = work(shared, subjects, seed) {
                    shared.note(format!("a thread stopped: {error:#}"));
                }
            });
        }
    });
    Ok(shared.report(seed))
}

fn work(shared: &Shared, subjects: &(Subject<Bfv>, Subject<Bgv>, Subject<Ckks>), seed: u64) -> Result<()> {
    let (bfv, bgv, ckks) = subjects;
    let mut random = SplitMix::new(seed);
    let mut randomness = Randomness::insecure_from_number(seed);
    let (mut a, mut b, mut c) =
        (pool(bfv, &mut randomness, seed)?, pool(bgv, &mut randomness, seed)?, pool(ckks, &mut randomness, seed)?);
    while let Some(number) = shared.begin() {
        match number % 3 {
            0 => step(shared, bfv, &mut a, &mut random, &mut randomness)?,
            1 => step(shared, bgv, &mut b, &mut random, &mut randomness)?,
            _ => step(shared, ckks, &mut c, &mut random, &mut randomness)?,
        }
    }
    Ok(())
}

fn pool<S: Sample>(subject: &Subject<S>, randomness: &mut Randomness, seed: u64) -> Result<Vec<Entry<S>>> {
    (0..POOL as u64).map(|i| fresh(subject, randomness, seed.wrapping_add(i))).collect()
}

fn fresh<S: Sample>(subject: &Subject<S>, randomness: &mut Randomness, seed: u64) -> Result<Entry<S>> {
    let values = message(subject.slots()?, seed);
    Ok((subject.encrypt(&values, randomness).context("a fresh encryption")?, values))
}

/// One random operation on random entries of the pool; its result takes the place of one of them.
fn step<S: Sample>(
    shared: &Shared,
    subject: &Subject<S>,
    pool: &mut [Entry<S>],
    random: &mut SplitMix,
    randomness: &mut Randomness,
) -> Result<()> {
    let mut pick = || random.below(POOL as u64) as usize;
    let (i, j, out) = (pick(), pick(), pick());
    let ((x, a), (y, b), e) = (&pool[i], &pool[j], subject.evaluator());
    let (name, result, expected) = match random.below(7) {
        0 => ("encrypt", Ok(fresh(subject, randomness, random.word())?), None),
        1 => ("add", e.add(x, y).map(|z| (z, vec![])), Some(zip(a, b, |a, b| a.wrapping_add(b)))),
        2 => ("sub", e.sub(x, y).map(|z| (z, vec![])), Some(zip(a, b, |a, b| a.wrapping_sub(b)))),
        3 | 4 => ("mul", e.mul(x, y).map(|z| (z, vec![])), Some(zip(a, b, |a, b| a.wrapping_mul(b)))),
        5 => ("rotate", e.rotate(x, 1).map(|z| (z, vec![])), Some(subject.rotated(a)?)),
        _ => {
            let again = subject.to_bytes(x).and_then(|bytes| subject.read(&bytes));
            ("file", again.map(|z| (z, vec![])), Some(a.clone()))
        }
    };
    match result {
        Ok((z, values)) => {
            let expected = expected.unwrap_or(values);
            match subject.holds(&z, &expected) {
                Ok(true) => {}
                Ok(false) => shared.note(format!("{} {name}: a wrong result", Subject::<S>::NAME)),
                Err(error) => shared.note(format!("{} {name}: {error}", Subject::<S>::NAME)),
            }
            // Entries stay small, so that the clear never overflows.
            let small = expected.iter().all(|v| v.unsigned_abs() < 1 << 20);
            pool[out] = if small { (z, expected) } else { fresh(subject, randomness, random.word())? };
        }
        Err(error) if NO_ROOM.contains(&error.kind()) => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            pool[out] = fresh(subject, randomness, random.word())?;
        }
        Err(error) => {
            shared.note(format!("{} {name}: {}: {error}", Subject::<S>::NAME, error.kind()));
            pool[out] = fresh(subject, randomness, random.word())?;
        }
    }
    Ok(())
}

impl Shared {
    /// The number of the next operation, if there is one; takes the size of the process now and then.
    fn begin(&self) -> Option<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.operations {
            return None;
        }
        if number.is_multiple_of((self.operations / 64).max(1))
            && let (Some(bytes), Ok(mut all)) = (resident(), self.resident.lock())
        {
            all.push((number, bytes));
        }
        Some(number)
    }

    fn note(&self, what: String) {
        if let Ok(mut wrong) = self.wrong.lock() {
            wrong.push(what);
        }
    }

    fn report(self, seed: u64) -> Report {
        let mut report = Report::new();
        let repeat = format!(
            "cargo run -p synchromesh-harden -- soak --operations {} --threads {} --seed {seed}",
            self.operations, self.threads
        );
        for wrong in self.wrong.into_inner().unwrap_or_default() {
            report.finding(&wrong, &repeat);
        }
        let mut sizes = self.resident.into_inner().unwrap_or_default();
        sizes.sort_unstable();
        let warm: Vec<(u64, u64)> = sizes.into_iter().filter(|(at, _)| *at >= self.operations / WARM).collect();
        if let (Some((_, first)), Some((_, last))) = (warm.first(), warm.last()) {
            let most = warm.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0);
            let growth = last.saturating_sub(*first);
            if growth > GROWTH && self.operations >= TELLING {
                report.finding(&format!("the process grew from {first} to {last} bytes"), &repeat);
            }
            report.count("largest_bytes", most);
            report.count("growth_bytes", growth);
            report.count("slope_bytes_per_operation", slope(&warm));
        }
        report.count("operations", self.operations);
        report.count("threads", self.threads as u64);
        report.count("refused_for_want_of_room", self.refused.into_inner());
        report
    }
}

/// Bytes in memory by the line through all sizes, for each operation more.
fn slope(sizes: &[(u64, u64)]) -> f64 {
    let count = sizes.len() as f64;
    let mean = |of: fn(&(u64, u64)) -> u64| sizes.iter().map(|s| of(s) as f64).sum::<f64>() / count;
    let (x, y) = (mean(|s| s.0), mean(|s| s.1));
    let (mut top, mut bottom) = (0.0, 0.0);
    for (at, bytes) in sizes {
        top += (*at as f64 - x) * (*bytes as f64 - y);
        bottom += (*at as f64 - x).powi(2);
    }
    if bottom == 0.0 { 0.0 } else { (top / bottom * 1000.0).round() / 1000.0 }
}

/// Bytes of this process in memory, where the system says.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_threads_share_a_context_and_compute_what_the_clear_says() {
        let report = run(400, 16, 3).expect("keys");
        assert_eq!(report.findings(), 0);
    }

    #[test]
    fn slopes_are_those_of_the_line() {
        assert_eq!(slope(&[(0, 10), (10, 30), (20, 50)]), 2.0);
        assert_eq!(slope(&[(5, 1)]), 0.0);
    }
}
