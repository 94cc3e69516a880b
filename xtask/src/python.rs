//! The Python package: a virtual environment under `target/python`, the wheel, its tests, its demo, release wheels.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::steps::{Invocation, Step};
use crate::{machines, workspace};

/// The package.
const CRATE: &str = "crates/synchromesh-py";

/// What the tests need, pinned.
const REQUIREMENTS: &str = "crates/synchromesh-py/requirements-test.txt";

/// What a wheel for tests has besides.
const TEST_FEATURES: &[&str] = &["--features", "emulated"];

/// The virtual environment of the tests.
const VENV: &str = "venv";

/// The linker for old systems and other processors, from the Python registry.
const ZIG: &str = "ziglang==0.13.0";

/// Oldest system that release wheels run on.
const PLATFORM: &str = "manylinux_2_28";

/// The processor that a wheel is compiled for beside this one.
const CROSS: &str = "aarch64-unknown-linux-gnu";

/// Interpreters that are tried, in this order.
const INTERPRETERS: [&str; 6] = ["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10"];

/// Where everything of this file's is made.
fn folder(root: &Path) -> PathBuf {
    workspace::target(root).join("python")
}

/// A program of the tests' environment.
pub(crate) fn tool(root: &Path, name: &str) -> String {
    program(root, VENV, name)
}

/// A program of a virtual environment.
pub(crate) fn program(root: &Path, venv: &str, name: &str) -> String {
    folder(root).join(venv).join("bin").join(name).display().to_string()
}

/// A CPython of 3.11 or later, which the pinned requirements need, with venv and pip.
fn interpreter() -> Option<&'static str> {
    const CHECK: &str = "import sys, venv, ensurepip; assert sys.version_info >= (3, 11)";
    INTERPRETERS.into_iter().find(|python| quiet(Command::new(python).args(["-c", CHECK])))
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Runs a program; those beside it come first on PATH, since maturin looks there for a Python that has zig.
pub(crate) fn run(root: &Path, program: &str, args: &[&str]) -> Result<()> {
    let beside = Path::new(program).parent().filter(|folder| folder.is_absolute()).map(Path::to_path_buf);
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(beside.into_iter().chain(std::env::split_paths(&before)))
        .context("PATH cannot be extended")?;
    let status = Command::new(program)
        .args(args)
        .env("PATH", path)
        .current_dir(root)
        .env_remove("PYTHONPATH")
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "`{program} {}` failed", args.join(" "));
    Ok(())
}

/// The steps of `cargo xtask test`: skipped, and counted as that, where there is no Python or no package index.
pub(crate) fn test_steps(root: &Path) -> Vec<Step> {
    let names = ["python wheel", "python tests", "python stubs"];
    let skip = |why: &str| names.iter().map(|name| Step::skip(*name, why)).collect();
    if interpreter().is_none() {
        return skip("no CPython of 3.11 or later with venv");
    }
    if let Err(error) = environment(root) {
        eprintln!("{error:#}");
        return skip("its test requirements cannot be installed");
    }
    let (tests, stubs) = (tool(root, "pytest"), tool(root, "stubtest"));
    // The tests of the workspace, which run before, make it.
    let program = workspace::target(root).join("debug/synchromesh");
    let tests = Invocation::new(tests, &format!("{CRATE}/tests -p no:cacheprovider"));
    vec![
        Step::check(
            "python wheel",
            |root| wheel_of(root, TEST_FEATURES).and_then(|wheel| install(root, &wheel)),
            "cargo xtask test",
        ),
        Step::run("python tests", tests.env("SYNCHROMESH_CLI", &program.display().to_string())),
        Step::run("python stubs", Invocation::new(stubs, "synchromesh --ignore-missing-stub")),
    ]
}

/// Makes the tests' environment.
fn environment(root: &Path) -> Result<()> {
    make_environment(root, VENV, REQUIREMENTS)
}

/// Makes a virtual environment unless it is there as the requirements say.
pub(crate) fn make_environment(root: &Path, venv: &str, requirements: &str) -> Result<()> {
    let wanted = std::fs::read_to_string(root.join(requirements)).context("cannot read the requirements")?;
    let stamp = folder(root).join(venv).join("requirements.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    let base = interpreter().context("no CPython of 3.11 or later with venv")?;
    let place = folder(root).join(venv).display().to_string();
    run(root, base, &["-m", "venv", "--clear", &place])?;
    run(root, &program(root, venv, "python"), &["-m", "pip", "install", "--quiet", "-r", requirements])?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

/// Builds a wheel, in the development profile unless `extra` says otherwise; its path.
fn wheel_of(root: &Path, extra: &[&str]) -> Result<PathBuf> {
    let out = folder(root).join("wheels");
    if out.exists() {
        std::fs::remove_dir_all(&out).with_context(|| format!("cannot empty {}", out.display()))?;
    }
    let (manifest, shown) = (format!("{CRATE}/Cargo.toml"), out.display().to_string());
    let mut args = vec!["build", "--manifest-path", &manifest, "--out", &shown];
    args.extend(extra);
    // A wheel for other machines takes minutes, in which the compiler says where it is.
    if !extra.contains(&"--zig") {
        args.push("--quiet");
    }
    run(root, &tool(root, "maturin"), &args)?;
    let wheels = std::fs::read_dir(&out).with_context(|| format!("no wheel in {shown}"))?;
    let wheel = wheels.flatten().map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "whl"));
    wheel.with_context(|| format!("no wheel in {shown}"))
}

/// Installs a wheel over any other, without looking for what it requires.
fn install(root: &Path, wheel: &Path) -> Result<String> {
    let wheel = wheel.display().to_string();
    let python = tool(root, "python");
    run(root, &python, &["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps", &wheel])?;
    Ok(format!("installed {wheel}"))
}

/// Puts the package in release mode into the tests' environment.
pub(crate) fn release(root: &Path) -> Result<()> {
    environment(root)?;
    eprintln!("{}", install(root, &wheel_of(root, &["--release"])?)?);
    Ok(())
}

/// `cargo xtask demo --python`: a virtual environment, the wheel, the quickstart on real data, a plot.
///
/// # Errors
/// When there is no Python, or a step fails.
pub(crate) fn demo(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask demo --python");
    let root = workspace::root()?;
    release(&root)?;
    run(&root, &tool(&root, "python"), &[&format!("{CRATE}/examples/quickstart.py"), "out"])?;
    Ok(ExitCode::SUCCESS)
}

/// `cargo xtask wheel`: a release wheel for old x86-64 systems, tested in a clean environment; one for aarch64, compiled.
///
/// # Errors
/// When a step fails.
pub(crate) fn wheel(args: &[String]) -> Result<ExitCode> {
    ensure!(args.is_empty(), "unknown arguments {args:?}; usage: cargo xtask wheel");
    let root = workspace::root()?;
    say(&format!("1 of 5: an environment with what the tests need, and {ZIG} to link for old systems"));
    environment(&root)?;
    run(&root, &tool(&root, "python"), &["-m", "pip", "install", "--quiet", ZIG])?;
    say(&format!("2 of 5: a release build for x86-64 and {PLATFORM}, some minutes"));
    let own = wheel_of(&root, &["--release", "--zig", "--compatibility", PLATFORM])?;
    let kept = keep(&root, &own)?;
    say(&format!("3 of 5: {} in an environment that has nothing else", kept.display()));
    say("4 of 5: its tests");
    clean_test(&root, &kept)?;
    println!("{} passes its tests", kept.display());
    if !machines::has_standard_library(CROSS) {
        println!("skipped: {CROSS} (its standard library is not here: `rustup target add {CROSS}`)");
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("5 of 5: a release build for {CROSS}"));
    let cross = wheel_of(&root, &["--release", "--zig", "--compatibility", PLATFORM, "--target", CROSS])?;
    println!("{} compiles", keep(&root, &cross)?.display());
    Ok(ExitCode::SUCCESS)
}

/// What comes next, on standard error.
fn say(step: &str) {
    eprintln!("wheel: {step}");
}

/// Moves a wheel to `out`.
fn keep(root: &Path, wheel: &Path) -> Result<PathBuf> {
    let out = root.join("out");
    std::fs::create_dir_all(&out)?;
    let kept = out.join(wheel.file_name().context("a wheel has a name")?);
    std::fs::copy(wheel, &kept).with_context(|| format!("cannot copy {}", wheel.display()))?;
    Ok(kept)
}

/// Runs the tests against a wheel in an environment that has nothing else.
fn clean_test(root: &Path, wheel: &Path) -> Result<()> {
    let base = interpreter().context("no CPython of 3.11 or later")?;
    let venv = folder(root).join("clean");
    run(root, base, &["-m", "venv", "--clear", &venv.display().to_string()])?;
    let python = venv.join("bin/python").display().to_string();
    run(root, &python, &["-m", "pip", "install", "--quiet", &wheel.display().to_string(), "pytest"])?;
    run(root, &python, &["-m", "pytest", "-p", "no:cacheprovider", &format!("{CRATE}/tests")])
}
