//! `cargo xtask workloads NAME [SIZE..]`: a workload's stages at the sizes of its harness, each stage its own process.
//!
//! The folders are those of the harness, the data are drawn and results checked as it does. Times are those of whole
//! processes, files included; of the stage that is compared with published figures the median of three.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::steps::Invocation;
use crate::{machine, workspace};

/// A size by name: how many pairs, and published seconds of the encrypted computation: reference on 96 cores, best.
type Size = (&'static str, usize, [Option<f64>; 2]);

const ZN: &str = "zn-multiplication";
const ZN_SIZES: [Size; 4] = [
    ("single", 1, [Some(1.40), None]),
    ("small", 1000, [Some(1077.0), Some(0.030)]),
    ("medium", 100_000, [None, Some(0.099)]),
    ("large", 10_000_000, [None, Some(4.32)]),
];

/// Runs of the compared stage.
const RUNS: usize = 3;

/// Runs a workload and prints the table.
///
/// # Errors
/// Names of workloads or sizes that there are not, a stage that fails, and wrong results.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let Some((ZN, sizes)) = args.split_first().map(|(name, sizes)| (name.as_str(), sizes)) else {
        bail!("which workload? There is {ZN}, of the sizes single, small, medium and large");
    };
    let of = |name: &String| {
        let size = ZN_SIZES.iter().find(|(known, ..)| known == name);
        size.with_context(|| format!("there is no size {name}: single, small, medium, large"))
    };
    let sizes: Vec<&Size> = match sizes {
        [] => ZN_SIZES.iter().take(3).collect(),
        names => names.iter().map(of).collect::<Result<_>>()?,
    };
    let root = workspace::root()?;
    let build = Invocation::cargo("build --quiet --release --package").args(&[ZN.to_owned()]);
    ensure!(build.command(&root).status()?.success(), "`{build}` failed");
    println!("{}, {} threads, {}, commit {}\n", machine::cpu(), threads(), machine::date(), machine::commit(&root));
    println!("| stage, seconds | {} |", sizes.iter().map(|size| size.0).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(sizes.len()));
    let columns = sizes.iter().map(|size| zn(&root, size)).collect::<Result<Vec<_>>>()?;
    for row in 0..columns[0].len() {
        let cells: Vec<&str> = columns.iter().map(|column| &*column[row].1).collect();
        println!("| {} | {} |", columns[0][row].0, cells.join(" | "));
    }
    Ok(ExitCode::SUCCESS)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One size: rows of the table.
fn zn(root: &Path, (name, count, published): &Size) -> Result<Vec<(&'static str, String)>> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let (work, programs) = (target.join("workloads").join(ZN), target.join("release"));
    let (data, io) = (work.join("datasets").join(name), work.join("io").join(name));
    for folder in [&data, &io] {
        fs::remove_dir_all(folder).ok();
        fs::create_dir_all(folder)?;
    }
    let pairs = pairs(*count);
    for (side, file) in ["lhs.txt", "rhs.txt"].iter().enumerate() {
        let lines: String = pairs.iter().map(|pair| format!("{}\n", pair[side])).collect();
        fs::write(data.join(file), lines)?;
    }
    let stage = |program: &str, count: Option<usize>| -> Result<f64> {
        let mut command = Command::new(programs.join(program));
        command.arg(name).args(count.map(|count| count.to_string())).current_dir(&work);
        let start = Instant::now();
        ensure!(command.status().with_context(|| format!("cannot start {program}"))?.success(), "{program} failed");
        Ok(start.elapsed().as_secs_f64())
    };
    let bytes =
        |folder: &str| Ok::<_, anyhow::Error>(format!("{:.3} MB", folder_bytes(&io.join(folder))? as f64 / 1e6));
    let mut rows = vec![
        ("key generation", seconds(stage("client_key_generation", None)?)),
        ("preprocess input", seconds(stage("client_preprocess_input", None)?)),
        ("encode and encrypt", seconds(stage("client_encode_encrypt_input", None)?)),
    ];
    let mut times = (0..RUNS).map(|_| stage("server_encrypted_compute", Some(*count))).collect::<Result<Vec<_>>>()?;
    times.sort_by(f64::total_cmp);
    let median = times[RUNS / 2];
    rows.extend([
        ("**encrypted computation**", format!("**{}**", seconds(median))),
        ("decrypt and decode", seconds(stage("client_decrypt_decode", Some(*count))?)),
        ("postprocess", seconds(stage("client_postprocess", Some(*count))?)),
        ("public keys", bytes("public_keys")?),
        ("upload", bytes("ciphertexts_upload")?),
        ("download", bytes("ciphertexts_download")?),
    ]);
    for (row, published) in ["of the reference, 96 cores", "of the best published"].into_iter().zip(published) {
        rows.push((row, published.map_or_else(|| "-".to_owned(), |p| ratio(median / p))));
    }
    let found = fs::read_to_string(io.join("cleartext_output/out.txt"))?;
    let products: String = pairs.iter().map(|[a, b]| format!("{}\n", a.wrapping_mul(*b))).collect();
    ensure!(found == products, "{ZN} {name}: products differ");
    rows.push(("products right", format!("{count} of {count}")));
    fs::remove_dir_all(&io)?;
    fs::remove_dir_all(&data)?;
    Ok(rows)
}

fn ratio(ratio: f64) -> String {
    if ratio < 0.001 { format!("{ratio:.1e}") } else { format!("{ratio:.3}") }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.3}")
}

/// Pairs that are uniform in \[0, 2^64), the same each time.
fn pairs(count: usize) -> Vec<[u64; 2]> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..count).map(|_| [word(), word()]).collect()
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}
