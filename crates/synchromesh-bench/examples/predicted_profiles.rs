//! Machine profiles of cards from counted instructions: `predicted_profiles [--check]` writes those that come with the library,
//! or compares with them. Run by `cargo xtask kernels`.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use synchromesh::cost::Profile;
use synchromesh_bench::tune::predicted::predict;
use synchromesh_cuda::model::CARDS;

/// Where they are, relative to the crate.
const FOLDER: &str = "../synchromesh/src/cost/predicted";
/// Small buffers lie where the host's memory has room, and share lines of the emulated cache as it comes: so much of a time may
/// be different, and so many nanoseconds a unit.
const SLACK: f64 = 0.15;
const LITTLE: f64 = 20.0;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        other => {
            eprintln!("unknown arguments {other:?}; usage: predicted_profiles [--check]");
            return Ok(ExitCode::from(2));
        }
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER);
    let mut outcome = ExitCode::SUCCESS;
    for card in CARDS {
        let path = folder.join(format!("{}.json", card.name.to_lowercase().replace(' ', "-")));
        let have = predict(&card, |_| {})?;
        println!("{}: {} operations at a degree on a class of primes", have.machine, have.entries.len());
        if check {
            let found = differences(&Profile::from_json(&std::fs::read_to_string(&path)?)?, &have);
            found.iter().for_each(|line| eprintln!("{}: {line}", path.display()));
            if !found.is_empty() {
                outcome = ExitCode::FAILURE;
            }
        } else {
            std::fs::create_dir_all(&folder)?;
            std::fs::write(&path, have.to_json()? + "\n")?;
        }
    }
    Ok(outcome)
}

/// Where a profile says something else than another, in words.
fn differences(had: &Profile, have: &Profile) -> Vec<String> {
    if had.entries.len() != have.entries.len() {
        return vec![format!("{} entries where there were {}", have.entries.len(), had.entries.len())];
    }
    let mut found = Vec::new();
    for (had, have) in had.entries.iter().zip(&have.entries) {
        let name = format!("{} at N = 2^{}, primes of {} bits", have.operation, have.log_n, have.prime_bits);
        if (&had.operation, had.log_n, had.prime_bits) != (&have.operation, have.log_n, have.prime_bits) {
            found.push(format!("{name}: another operation was here"));
            continue;
        }
        // What each unit takes is not told apart by samples that go together: their sum is.
        let sums = [had, have].map(|it| it.points.iter().map(|point| point.ns.iter().sum::<f64>()).collect::<Vec<_>>());
        let close = |a: &f64, b: &f64| (a - b).abs() <= (SLACK * a.max(*b)).max(LITTLE);
        if sums[0].len() != sums[1].len() || !sums[0].iter().zip(&sums[1]).all(|(a, b)| close(a, b)) {
            found.push(format!("{name}: {:?} ns where it was {:?}", sums[1], sums[0]));
        }
    }
    found
}
