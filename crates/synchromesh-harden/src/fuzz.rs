//! The driver: mutants of valid inputs for each reader, with a limit on memory and time, in processes that may die.
//!
//! Stable Rust has no coverage, so the driver goes by behaviour: a mutant that a reader answers in a way not seen before
//! joins the pool. A seed gives the same mutants again. The input at hand lies in a mapped file, so that what killed the
//! process is known; a reader that takes longer than [`HANG`] is killed by its own process.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use memmap2::MmapMut;

use crate::memory::watched;
use crate::mutation::Mutator;
use crate::targets::{Outcome, Target, inputs};

/// Longest time that reading one input may take.
pub const SLOW: Duration = Duration::from_secs(10);

/// Time without an end of a reading after which the process counts as hanging.
pub const HANG: Duration = Duration::from_secs(60);

/// Inputs that the pool has at most.
const POOL: usize = 400;

/// Findings after which a campaign ends: one defect is found again and again.
const ENOUGH: usize = 10;

/// Bytes of the file that holds the input at hand: its length, then itself.
const HELD: usize = 1 << 18;

/// When a campaign ends.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// After so many inputs.
    pub executions: u64,
    /// After this time.
    pub time: Duration,
}

/// What a campaign did.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Inputs that were read.
    pub executions: u64,
    /// Of them, those that were accepted.
    pub accepted: u64,
    /// Different answers.
    pub answers: u64,
    /// What must not be: what it was, and the input.
    pub findings: Vec<(String, Vec<u8>)>,
}

/// Reads one input under watch; what must not be, if it was.
#[must_use]
pub fn judge(target: &Target, input: &[u8]) -> (Option<Outcome>, Option<String>) {
    let start = Instant::now();
    let (result, bytes) = watched(|| catch_unwind(AssertUnwindSafe(|| (target.read)(input))));
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            return (None, Some(format!("a panic: {}", text.unwrap_or_default())));
        }
    };
    let most = 2 * input.len() + target.slack;
    let fault = if bytes > most {
        Some(format!("{bytes} bytes of memory for {} of input, {most} are allowed", input.len()))
    } else if start.elapsed() > SLOW {
        Some(format!("{:.1} s for one input", start.elapsed().as_secs_f64()))
    } else {
        None
    };
    (Some(outcome), fault)
}

/// Feeds a target its inputs and then their mutants.
///
/// # Errors
/// When there are no valid inputs, or `held` cannot be written.
pub fn campaign(target: &Target, seed: u64, limit: Limit, held: Option<&Path>) -> Result<Tally> {
    let given = inputs(target)?;
    let mut pool = given.clone();
    let mut held = held.map(Held::new).transpose()?;
    let mut mutator = Mutator::new(seed, target.seal);
    let mut tally = Tally::default();
    let mut answers = HashSet::new();
    let start = Instant::now();
    for at in 0.. {
        if at >= limit.executions || start.elapsed() >= limit.time || tally.findings.len() >= ENOUGH {
            break;
        }
        let input = match usize::try_from(at).ok().and_then(|at| given.get(at)) {
            Some(input) => input.clone(),
            None => mutator.next(&pool),
        };
        if let Some(held) = &mut held {
            held.hold(&input);
        }
        let (outcome, fault) = judge(target, &input);
        tally.executions += 1;
        tally.accepted += u64::from(outcome == Some(Outcome::Accepted));
        let answer = outcome.map_or_else(String::new, |outcome| shape(&outcome));
        let new = answers.insert(answer);
        if let Some(fault) = fault {
            println!("{}: {fault}", target.name);
            tally.findings.push((fault, input));
        } else if new && pool.len() < POOL {
            pool.push(input);
        }
    }
    tally.answers = answers.len() as u64;
    Ok(tally)
}

/// An answer without its numbers.
fn shape(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Accepted => "accepted".to_owned(),
        Outcome::Refused(text) => text.chars().filter(|c| !c.is_ascii_digit()).take(120).collect(),
    }
}

/// The input at hand in a file, and a clock that ends the process when a reading does not end.
struct Held {
    map: MmapMut,
    count: Arc<AtomicU64>,
}

impl Held {
    fn new(path: &Path) -> Result<Self> {
        let file = std::fs::OpenOptions::new().create(true).truncate(true).read(true).write(true).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        file.set_len(HELD as u64).context("no room for the input at hand")?;
        // SAFETY: the file belongs to this process alone until it ends; its parent reads it afterwards.
        let map = unsafe { MmapMut::map_mut(&file) }.context("cannot map the input at hand")?;
        let count = Arc::new(AtomicU64::new(0));
        let watched = Arc::clone(&count);
        std::thread::spawn(move || {
            let mut seen = (watched.load(Ordering::Relaxed), Instant::now());
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let now = watched.load(Ordering::Relaxed);
                if now != seen.0 {
                    seen = (now, Instant::now());
                } else if seen.1.elapsed() > HANG {
                    eprintln!("an input takes longer than {} s", HANG.as_secs());
                    std::process::exit(3);
                }
            }
        });
        Ok(Self { map, count })
    }

    fn hold(&mut self, input: &[u8]) {
        let length = input.len().min(HELD - 8);
        self.map[..8].copy_from_slice(&(length as u64).to_le_bytes());
        self.map[8..8 + length].copy_from_slice(&input[..length]);
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The input that was at hand in a process that died.
///
/// # Errors
/// When the file cannot be read.
pub fn held(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (length, rest) = bytes.split_first_chunk::<8>().context("no input was at hand")?;
    let length = usize::try_from(u64::from_le_bytes(*length)).context("a length")?;
    Ok(rest.get(..length).context("no input was at hand")?.to_vec())
}

/// Saves an input that broke a target; the command that repeats it.
///
/// # Errors
/// When it cannot be written.
pub fn save(folder: &Path, target: &str, input: &[u8]) -> Result<(PathBuf, String)> {
    let name = format!("{target}-{}.bin", &blake3::hash(input).to_hex()[..16]);
    let path = folder.join(name);
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    std::fs::write(&path, input).with_context(|| format!("cannot write {}", path.display()))?;
    let repeat = format!("cargo run -p synchromesh-harden -- replay {target} {}", path.display());
    Ok((path, repeat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::Seal;
    use crate::targets::all;

    /// The share of the fuzzing that runs with every test: every target, a few hundred mutants of a fixed seed.
    #[test]
    fn a_few_mutants_break_no_target() {
        let limit = Limit { executions: 200, time: Duration::from_millis(600) };
        for target in all() {
            let tally = campaign(target, 1, limit, None).expect(target.name);
            assert!(tally.findings.is_empty(), "{}: {}", target.name, tally.findings[0].0);
            // Readers of whole plans get to few mutants in that time.
            assert!(tally.answers > 1 || tally.executions < 20, "{}: {tally:?}", target.name);
            assert!(tally.accepted > 0, "{}: {tally:?}", target.name);
        }
    }

    fn broken(input: &[u8]) -> Outcome {
        assert!(!input.starts_with(b"ab"), "it begins with ab");
        if input.starts_with(b"ac") {
            drop(std::hint::black_box(vec![1u8; 1 << 20]));
        }
        Outcome::Refused(format!("{}", input.len() % 7))
    }

    fn seeds() -> Result<Vec<Vec<u8>>> {
        Ok(vec![b"aa and more".to_vec()])
    }

    #[test]
    fn panics_and_large_allocations_are_findings() {
        let target =
            Target { name: "broken", seeds, read: broken, seal: Seal::Nothing, checksummed: false, slack: 1 << 16 };
        assert_eq!(judge(&target, b"aa").1, None);
        assert!(judge(&target, b"ab").1.is_some_and(|fault| fault.contains("begins with ab")));
        assert!(judge(&target, b"ac").1.is_some_and(|fault| fault.contains("bytes of memory")));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("held");
        let limit = Limit { executions: 1_000_000, time: Duration::from_secs(20) };
        let tally = campaign(&target, 1, limit, Some(&path)).expect("a campaign");
        assert_eq!(tally.findings.len(), ENOUGH);
        assert_eq!(held(&path).expect("a file"), tally.findings[ENOUGH - 1].1);
    }
}
