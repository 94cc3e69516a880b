//! `cargo xtask workloads NAME [SIZE..]`: a workload's stages at the sizes of its harness, each stage its own process.
//!
//! The folders are those of the harness, the data are drawn and results checked as it does. Times are those of whole
//! processes, files included; of the stage that is compared with published figures the median of three, or of the queries.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::steps::Invocation;
use crate::{machine, python, workspace};

mod similarity;

/// A size by name: how many pairs, images or records, and published seconds of the encrypted computation: those of the
/// reference on 96 cores, and of the best.
struct Size {
    name: &'static str,
    count: usize,
    published: [Option<f64>; 2],
}

const fn size(name: &'static str, count: usize, published: [Option<f64>; 2]) -> Size {
    Size { name, count, published }
}

/// A workload by name: its sizes and how many of them fit most machines, its folders of `io` as rows of the table, what its
/// results are called, and how its data are drawn, run and checked.
struct Workload {
    name: &'static str,
    sizes: &'static [Size],
    fit: usize,
    folders: &'static [(&'static str, &'static str)],
    checked: &'static str,
    prepare: fn(&Path, &Path) -> Result<()>,
    measure: fn(&Run<'_>) -> Measured,
}

/// Seconds of the stages by name, as the harness reports them, and how many results are right. The compared stage is
/// [`COMPARED`].
type Measured = Result<(Vec<(&'static str, f64)>, String)>;

/// The stage that is compared with published figures.
const COMPARED: &str = "encrypted computation";

const FOLDERS: &[(&str, &str)] =
    &[("public keys", "public_keys"), ("upload", "ciphertexts_upload"), ("download", "ciphertexts_download")];

const SEARCH_FOLDERS: &[(&str, &str)] = &[("keys", "keys"), ("upload", "encrypted"), ("download", "results")];

const WORKLOADS: [Workload; 4] = [
    Workload {
        name: "zn-multiplication",
        sizes: &[
            size("single", 1, [Some(1.40), None]),
            size("small", 1000, [Some(1077.0), Some(0.030)]),
            size("medium", 100_000, [None, Some(0.099)]),
            size("large", 10_000_000, [None, Some(4.32)]),
        ],
        fit: 3,
        folders: FOLDERS,
        checked: "products right",
        prepare: build_zn,
        measure: zn,
    },
    Workload {
        name: "ml-inference",
        sizes: &[
            size("single", 1, [Some(7.6), Some(0.44)]),
            size("small", 100, [Some(648.0), None]),
            size("medium", 1000, [None, None]),
            size("large", 10_000, [None, None]),
        ],
        fit: 3,
        folders: FOLDERS,
        checked: "labels right",
        prepare: build_ml,
        measure: ml,
    },
    Workload {
        name: "fetch-by-similarity",
        sizes: &[
            size("toy", 1000, [None, None]),
            size("small", 50_000, [Some(76.1), Some(0.04)]),
            size("medium", 1_000_000, [Some(1246.0), Some(0.30)]),
        ],
        fit: 2,
        folders: SEARCH_FOLDERS,
        checked: "queries right",
        prepare: similarity::build,
        measure: similarity::fetch,
    },
    Workload {
        name: "count-by-similarity",
        sizes: &[
            size("toy", 1000, [None, None]),
            size("small", 50_000, [Some(50.4), None]),
            size("medium", 1_000_000, [Some(842.0), None]),
        ],
        fit: 2,
        folders: SEARCH_FOLDERS,
        checked: "queries right",
        prepare: similarity::build,
        measure: similarity::count,
    },
];

/// Runs of the compared stage.
const RUNS: usize = 3;

/// Runs a workload and prints the table.
///
/// # Errors
/// Names of workloads or sizes that there are not, a stage that fails, and wrong results.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let named = args.split_first().and_then(|(name, sizes)| {
        WORKLOADS.iter().find(|workload| workload.name == name).map(|workload| (workload, sizes))
    });
    let Some((workload, sizes)) = named else {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        bail!("which workload? There are {}", names.join(", "));
    };
    let of = |name: &String| {
        let size = workload.sizes.iter().find(|size| size.name == name);
        let names: Vec<_> = workload.sizes.iter().map(|size| size.name).collect();
        size.with_context(|| format!("there is no size {name} of {}: {}", workload.name, names.join(", ")))
    };
    let sizes: Vec<&Size> = match sizes {
        [] => workload.sizes.iter().take(workload.fit).collect(),
        names => names.iter().map(of).collect::<Result<_>>()?,
    };
    let root = workspace::root()?;
    let work = workspace::target(&root).join("workloads").join(workload.name);
    fs::create_dir_all(&work)?;
    (workload.prepare)(&root, &work)?;
    println!("{}, {} threads, {}, commit {}\n", machine::cpu(), threads(), machine::date(), machine::commit(&root));
    println!("| stage, seconds | {} |", sizes.iter().map(|size| size.name).collect::<Vec<_>>().join(" | "));
    println!("|---|{}", "---|".repeat(sizes.len()));
    let columns = sizes.iter().map(|size| column(&root, &work, workload, size)).collect::<Result<Vec<_>>>()?;
    for row in 0..columns[0].len() {
        let cells: Vec<&str> = columns.iter().map(|column| &*column[row].1).collect();
        println!("| {} | {} |", columns[0][row].0, cells.join(" | "));
    }
    Ok(ExitCode::SUCCESS)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One size of a workload.
struct Run<'a> {
    root: &'a Path,
    /// The folder that stands for the checkout of the harness.
    work: &'a Path,
    size: &'a Size,
    /// The size's number.
    number: String,
}

impl Run<'_> {
    fn data(&self) -> PathBuf {
        self.work.join("datasets").join(self.size.name)
    }

    fn io(&self) -> PathBuf {
        self.work.join("io").join(self.size.name)
    }

    /// Runs a stage, and says how many seconds it took.
    fn stage(&self, program: &Path, arguments: &[&str]) -> Result<f64> {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.work);
        let start = Instant::now();
        let status = command.status().with_context(|| format!("cannot start {}", program.display()))?;
        ensure!(status.success(), "{} failed", program.display());
        Ok(start.elapsed().as_secs_f64())
    }

    /// Runs the compared stage, and gives the median.
    fn compared(&self, program: &Path, arguments: &[&str]) -> Result<f64> {
        Ok(median((0..RUNS).map(|_| self.stage(program, arguments)).collect::<Result<_>>()?))
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Rows of the table for one size.
fn column(root: &Path, work: &Path, workload: &Workload, size: &Size) -> Result<Vec<(&'static str, String)>> {
    let number = workload.sizes.iter().position(|own| own.name == size.name).unwrap_or_default();
    let run = Run { root, work, size, number: number.to_string() };
    for folder in [run.data(), run.io()] {
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder)?;
    }
    let (times, right) = (workload.measure)(&run)?;
    let mut rows: Vec<(&'static str, String)> = Vec::new();
    let mut compared = f64::NAN;
    for (stage, time) in times {
        if stage == COMPARED {
            compared = time;
            rows.push(("**encrypted computation**", format!("**{time:.3}**")));
        } else {
            rows.push((stage, format!("{time:.3}")));
        }
    }
    for &(row, folder) in workload.folders {
        rows.push((row, format!("{:.3} MB", folder_bytes(&run.io().join(folder))? as f64 / 1e6)));
    }
    for (row, published) in ["of the reference, 96 cores", "of the best published"].into_iter().zip(size.published) {
        rows.push((row, published.map_or_else(|| "-".to_owned(), |p| ratio(compared / p))));
    }
    rows.push((workload.checked, right));
    fs::remove_dir_all(run.io())?;
    fs::remove_dir_all(run.data())?;
    Ok(rows)
}

/// A submission that is a program, the stage its first argument.
fn build(root: &Path, package: &str) -> Result<()> {
    let build = Invocation::cargo(&format!("build --quiet --release --package {package}"));
    ensure!(build.command(root).status()?.success(), "`{build}` failed");
    Ok(())
}

fn build_zn(root: &Path, _: &Path) -> Result<()> {
    build(root, "zn-multiplication")
}

fn zn(run: &Run<'_>) -> Measured {
    let program = workspace::target(run.root).join("release/zn-multiplication");
    let (name, count) = (run.size.name, run.size.count.to_string());
    let pairs = pairs(run.size.count);
    for (side, file) in ["lhs.txt", "rhs.txt"].iter().enumerate() {
        let lines: String = pairs.iter().map(|pair| format!("{}\n", pair[side])).collect();
        fs::write(run.data().join(file), lines)?;
    }
    let timed = |stage: &str, more: &[&str]| run.stage(&program, &[&[stage, name], more].concat());
    let times = vec![
        ("key generation", timed("client_key_generation", &[])?),
        ("preprocess input", timed("client_preprocess_input", &[])?),
        ("encode and encrypt", timed("client_encode_encrypt_input", &[])?),
        (COMPARED, run.compared(&program, &["server_encrypted_compute", name, &count])?),
        ("decrypt and decode", timed("client_decrypt_decode", &[&count])?),
        ("postprocess", timed("client_postprocess", &[&count])?),
    ];
    let found = fs::read_to_string(run.io().join("cleartext_output/out.txt"))?;
    let products: String = pairs.iter().map(|[a, b]| format!("{}\n", a.wrapping_mul(*b))).collect();
    ensure!(found == products, "zn-multiplication {name}: products differ");
    Ok((times, format!("{count} of {count}")))
}

/// The submission laid over an empty folder, and the Python package in release mode.
fn build_ml(root: &Path, work: &Path) -> Result<()> {
    let from = root.join("workloads/ml-inference");
    for folder in [".", "submission", "scripts"] {
        fs::create_dir_all(work.join(folder))?;
        for file in fs::read_dir(from.join(folder))? {
            let file = file?;
            if file.file_type()?.is_file() {
                fs::copy(file.path(), work.join(folder).join(file.file_name()))?;
            }
        }
    }
    python::release(root)
}

fn ml(run: &Run<'_>) -> Measured {
    let python = PathBuf::from(python::tool(run.root, "python"));
    run.stage(&python, &["draw.py", run.size.name, &run.size.count.to_string()])?;
    let stage = |name: &str| format!("submission/{name}.py");
    let timed = |name: &str| run.stage(&python, &[&stage(name), &run.number]);
    // The network is trained here, once for all sizes, and not timed.
    run.stage(&python, &[&stage("server_preprocess_model")])?;
    let times = vec![
        ("key generation", timed("client_key_generation")?),
        ("preprocess model", timed("server_preprocess_model")?),
        ("preprocess input", timed("client_preprocess_input")?),
        ("encode and encrypt", timed("client_encode_encrypt_input")?),
        (COMPARED, run.compared(&python, &[&stage("server_encrypted_compute"), &run.number])?),
        ("decrypt and decode", timed("client_decrypt_decode")?),
        ("postprocess", timed("client_postprocess")?),
    ];
    let found = fs::read_to_string(run.io().join("encrypted_model_predictions.txt"))?;
    let labels = fs::read_to_string(run.data().join("intermediate/test_labels.txt"))?;
    let (count, right) = (labels.lines().count(), found.lines().zip(labels.lines()).filter(|(a, b)| a == b).count());
    ensure!(found.lines().count() == count, "ml-inference {}: {count} labels wanted", run.size.name);
    ensure!(right * 10 >= count * 9, "ml-inference {}: {right} of {count} labels right", run.size.name);
    Ok((times, format!("{right} of {count}")))
}

fn ratio(ratio: f64) -> String {
    if ratio < 0.001 { format!("{ratio:.1e}") } else { format!("{ratio:.3}") }
}

/// Pairs that are uniform in \[0, 2^64), the same each time.
fn pairs(count: usize) -> Vec<[u64; 2]> {
    let mut words = Words::new();
    (0..count).map(|_| [words.next(), words.next()]).collect()
}

/// Words that are the same each time: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Words(u64);

impl Words {
    const fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn folder_bytes(folder: &Path) -> Result<u64> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}
