//! `cargo xtask gpu-check`: packs what a machine with a card's driver and nothing else needs to judge and measure it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::steps::Invocation;
use crate::workspace;

const FOLDER: &str = "target/gpu-check";

/// What the folder says of itself.
const README: &str = "\
Judges and measures the CUDA kernels of synchromesh on this machine's first NVIDIA card. Needs the card's driver, of CUDA
12.0 or later, and nothing else.

  ./gpu-check                      everything on the card; report.json and exit code 0, or 1 where something is wrong
  ./gpu-check --quick              small degrees
  ./gpu-check --only NAME          checks whose names hold this, and nothing measured
  ./gpu-check --minutes 20         ends what still runs after 20 minutes; the report has what was measured until then
  ./gpu-check --device emulated    the same on an emulator, on the CPU: for trying this out without a card

Without a card or a driver it prints an object with an error and ends with 2. Where compute-sanitizer is on the path, the
checks run under it as well.
";

/// Builds the checks and the command line in release mode, or with `--dev` as tests are built; packs them, unpacks them in
/// an empty folder and runs them there without a path: on a card if there is one, with `--emulated` on the emulator, with
/// `--stand-in` the checks on a driver that has no card, with `--pack-only` not at all.
///
/// # Errors
/// When something cannot be built, packed or run.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let known = ["--dev", "--emulated", "--stand-in", "--pack-only"];
    let usage = "usage: cargo xtask gpu-check [--dev] [--emulated|--stand-in|--pack-only]";
    ensure!(args.iter().all(|arg| known.contains(&arg.as_str())), "unknown arguments {args:?}; {usage}");
    let given = |flag: &str| args.iter().any(|arg| arg == flag);
    let profile = if given("--dev") { "dev" } else { "release" };
    let root = workspace::root()?;
    let folder = root.join(FOLDER);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let check = ["--package", "synchromesh-cuda", "--example", "gpu_check"];
    let built = build(&root, profile, &check, "gpu_check")?;
    std::fs::copy(&built.executable, folder.join("gpu-check"))?;
    let features = ["--package", "synchromesh-cli", "--bin", "synchromesh", "--features", "cuda,emulated"];
    std::fs::copy(build(&root, profile, &features, "synchromesh")?.executable, folder.join("synchromesh"))?;
    std::fs::write(folder.join("README.txt"), README)?;
    let pack = Invocation::new("tar", "-C target -czf target/gpu-check.tar.gz gpu-check");
    ensure!(pack.command(&root).status()?.success(), "`{pack}` failed");
    println!("packed: target/gpu-check.tar.gz; on the other machine: gpu-check/gpu-check");
    if given("--pack-only") {
        return Ok(ExitCode::SUCCESS);
    }
    match (given("--emulated"), given("--stand-in")) {
        (true, _) => unpacked(&root, "--device emulated --quick", None),
        (_, true) => {
            unpacked(&root, "--device cuda --checks-only", Some(built.stand_in.context("no stand-in was built")?))
        }
        _ => unpacked(&root, "--device cuda", None),
    }
}

/// Runs the packed check in a new folder with nothing on the path, and in the environment only where home is: the driver
/// keeps there what it compiles. `driver` is a folder with a library in the driver's place.
fn unpacked(root: &Path, arguments: &str, driver: Option<String>) -> Result<ExitCode> {
    let folder = root.join("target/gpu-check-unpacked");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    let unpack = Invocation::new("tar", "-xzf ../gpu-check.tar.gz");
    ensure!(unpack.command(&folder).status()?.success(), "`{unpack}` failed");
    let program = folder.join("gpu-check/gpu-check");
    let mut command = Invocation::new(program.display().to_string(), arguments).command(&folder);
    command.env_clear().envs(std::env::var_os("HOME").map(|home| ("HOME", home)));
    command.envs(driver.map(|folder| ("LD_LIBRARY_PATH", folder)));
    let status = command.status().context("the packed program does not start")?;
    // Two says that there is no card, which is no failure of what was packed.
    Ok(match status.code() {
        Some(0 | 2) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// What a build made.
struct Built {
    executable: PathBuf,
    /// The folder of the driver without a card.
    stand_in: Option<String>,
}

/// Builds a target in a profile.
fn build(root: &Path, profile: &str, target: &[&str], name: &str) -> Result<Built> {
    let target: Vec<String> = target.iter().map(|&word| word.to_owned()).collect();
    let run = Invocation::cargo(&format!("build --profile {profile} --message-format json")).args(&target);
    let output = run.command(root).stderr(std::process::Stdio::inherit()).output()?;
    ensure!(output.status.success(), "`{run}` failed");
    let lines = String::from_utf8(output.stdout).context("cargo printed no text")?;
    let (mut executable, mut stand_in) = (None, None);
    for message in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if message["target"]["name"] == name
            && let Some(path) = message["executable"].as_str()
        {
            executable = Some(path.into());
        }
        let variables = message["env"].as_array().into_iter().flatten();
        let folder =
            variables.filter(|pair| pair[0] == "SYNCHROMESH_STAND_IN_FOLDER").find_map(|pair| pair[1].as_str());
        stand_in = folder.map(str::to_owned).or(stand_in);
    }
    let Some(executable) = executable else { bail!("`{run}` made no executable") };
    Ok(Built { executable, stand_in })
}
