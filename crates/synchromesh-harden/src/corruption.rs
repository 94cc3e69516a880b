//! Damage: every truncation, every bit of the head, and random bits of the rest of each kind of file that has a checksum.
//! All of it must be refused by an error, within twice the memory of the file.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Result;
use serde_json::Map;
use synchromesh_testing::random::SplitMix;

use crate::fuzz::{judge, save};
use crate::report::Report;
use crate::targets::{Outcome, Target, all};

/// Bytes that count as the head of a file.
const HEAD: usize = 256;

/// Damages the valid inputs of every target with checksums; `bits` random ones each.
///
/// # Errors
/// When there are no valid inputs.
pub fn run(bits: u64, seed: u64, folder: &std::path::Path) -> Result<Report> {
    let mut report = Report::new();
    let (mut total, mut by_type) = (0_u64, Map::new());
    for target in all().filter(|target| target.checksummed) {
        let mut count = 0_u64;
        for input in (target.seeds)()? {
            let (tried, accepted) = tried(target, damages(&input, bits, seed));
            count += tried;
            for (fault, damaged) in accepted {
                let (_, repeat) = save(folder, target.name, &damaged)?;
                report.finding(&format!("{}: {fault}", target.name), &repeat);
            }
        }
        println!("{}: {count} damaged files", target.name);
        total += count;
        by_type.insert(target.name.to_owned(), count.into());
    }
    report.count("damaged_files", total);
    report.count("rejected", total.saturating_sub(report.findings()));
    report.count("damaged_by_type", by_type);
    Ok(report)
}

/// How many files a target was given, on every core, and those that it did not refuse as it must.
fn tried(target: &Target, files: impl Iterator<Item = Vec<u8>> + Send) -> (u64, Vec<(String, Vec<u8>)>) {
    let queue = Mutex::new(files);
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let (mut count, mut faults) = (0, Vec::new());
        while let Some(damaged) = next() {
            count += 1;
            faults.extend(fault(target, &damaged).map(|fault| (fault, damaged)));
        }
        (count, faults)
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let (mut count, mut faults) = (0, Vec::new());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        for part in threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))) {
            count += part.0;
            faults.extend(part.1);
        }
    });
    (count, faults)
}

fn fault(target: &Target, damaged: &[u8]) -> Option<String> {
    match judge(target, damaged) {
        (_, Some(fault)) => Some(fault),
        (Some(Outcome::Accepted), None) => Some("a damaged file was accepted".to_owned()),
        _ => None,
    }
}

/// Every truncation, every flipped bit of the head, and `bits` flipped bits anywhere.
fn damages(input: &[u8], bits: u64, seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let flipped = move |bit: usize| {
        let mut damaged = input.to_vec();
        damaged[bit / 8] ^= 1 << (bit % 8);
        damaged
    };
    let mut random = SplitMix::new(seed);
    let anywhere = (0..bits).map(move |_| random.below(8 * input.len() as u64) as usize);
    let head = 0..8 * input.len().min(HEAD);
    (0..input.len()).map(move |length| input[..length].to_vec()).chain(head.chain(anywhere).map(flipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share that runs with every test.
    #[test]
    fn damage_is_refused() {
        for target in all().filter(|target| target.checksummed) {
            for input in (target.seeds)().expect(target.name) {
                let few = damages(&input, 200, 1).step_by(1 + (input.len() + 8 * HEAD) / 1000);
                let (count, faults) = tried(target, few);
                assert!(count > 50 && faults.is_empty(), "{}: {count} tried, {:?}", target.name, faults.first());
            }
        }
    }

    #[test]
    fn damages_are_all_truncations_and_bits() {
        let input = [0u8; 300];
        let all: Vec<Vec<u8>> = damages(&input, 7, 1).collect();
        assert_eq!(all.len(), 300 + 8 * HEAD + 7);
        assert!(all.iter().all(|damaged| damaged[..] != input));
    }
}
