//! `cargo xtask machines`: the library on machines that this one is not: emulated, in Node, or compiled and not run.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Result, bail};

use crate::checks::ISA;
use crate::steps::{Invocation, Step, run_all};
use crate::workspace;

/// A program, and Debian's packages that have it and what it needs.
struct Tool {
    program: &'static str,
    packages: &'static str,
}

const NODE: Tool = Tool { program: "node", packages: "nodejs" };

/// A kind of machine whose programs run here.
struct Machine {
    /// The word of the command line.
    part: &'static str,
    target: &'static str,
    tools: &'static [Tool],
    /// Variables of cargo; `{root}` is the workspace.
    variables: &'static [(&'static str, &'static str)],
    /// Its instruction sets, the best first.
    isas: &'static [&'static str],
    /// What is run on each: the cargo command, and what the programs are given. The ring's tests, which are quick and
    /// choose instruction sets themselves, come first.
    runs: &'static [(&'static str, &'static str)],
}

/// All tests of the ring, of the laws of a backend and of rlwe; and the known answers, which hold the bits of every scheme.
const AARCH64: Machine = Machine {
    part: "aarch64",
    target: "aarch64-unknown-linux-gnu",
    tools: &[
        Tool { program: "qemu-aarch64", packages: "qemu-user" },
        Tool { program: "aarch64-linux-gnu-gcc", packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross" },
    ],
    variables: &[
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
        ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -L /usr/aarch64-linux-gnu"),
    ],
    isas: &["neon", "scalar"],
    runs: &[
        ("test -p synchromesh-ring --lib --tests", ""),
        ("test --no-fail-fast -p synchromesh-testing -p synchromesh-rlwe --lib --tests", ""),
        ("run -p synchromesh-harden --no-default-features", "known"),
    ],
};

/// One build: the kernels without vectors are in it too. There are no threads to be had, and what panics ends the program,
/// so that tests of either are left out.
const WASM: Machine = Machine {
    part: "wasm",
    target: "wasm32-wasip1",
    tools: &[NODE],
    variables: &[
        ("CARGO_TARGET_WASM32_WASIP1_RUNNER", "node --no-warnings {root}/xtask/machines/wasi.mjs"),
        ("CARGO_TARGET_WASM32_WASIP1_RUSTFLAGS", "-C target-feature=+simd128"),
    ],
    isas: &["simd128", "scalar"],
    runs: &[("test -p synchromesh-ring --lib --tests", "--skip threads::")],
};

const MACHINES: [&Machine; 2] = [&AARCH64, &WASM];

/// Where the crates are compiled and not run: the target, what is compiled, and what its C code takes.
const CHECKED: [(&str, &str, &[Tool]); 3] = [
    (
        "x86_64-pc-windows-gnu",
        "-p synchromesh-ring -p synchromesh-rlwe -p synchromesh -p synchromesh-parties -p synchromesh-triples -p synchromesh-cli",
        &[Tool { program: "x86_64-w64-mingw32-gcc", packages: "gcc-mingw-w64-x86-64" }],
    ),
    // There is no compiler of C for it here: BLAKE3 in Rust, and nothing with TLS.
    ("aarch64-apple-darwin", "-p synchromesh-ring -p synchromesh-rlwe -p synchromesh --features blake3/pure", &[]),
    ("wasm32-unknown-unknown", "-p synchromesh-ring -p synchromesh-rlwe -p synchromesh", &[]),
];

/// The npm package, and where its parts are made.
const JS: &str = "crates/synchromesh-js";
const JS_TARGET: &str = "wasm32-unknown-unknown";

/// Runs the parts named, or all.
///
/// # Errors
/// On an unknown part.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let known: Vec<&str> = MACHINES.iter().map(|machine| machine.part).chain(["js", "check"]).collect();
    if let Some(other) = args.iter().find(|arg| !known.contains(&arg.as_str())) {
        bail!("unknown part {other:?}; usage: cargo xtask machines [{}]", known.join("|"));
    }
    let root = workspace::root()?;
    let wanted = |part: &str| args.is_empty() || args.iter().any(|arg| arg == part);
    let mut steps: Vec<Step> = Vec::new();
    MACHINES.iter().filter(|machine| wanted(machine.part)).for_each(|machine| steps.extend(machine.steps(&root)));
    if wanted("js") {
        steps.extend(npm_package(&root));
    }
    if wanted("check") {
        steps.extend(CHECKED.map(|(target, packages, tools)| check(target, packages, tools)));
    }
    Ok(run_all(&root, &steps).tally.exit_code())
}

/// The ring's tests on other machines, for `cargo xtask test`: skipped, and counted as that, where tools are missing.
pub(crate) fn ring_steps(root: &Path) -> Vec<Step> {
    let step = |machine: &&Machine| {
        let lacking = lacking(machine.target, machine.tools);
        machine.step(root, machine.isas[0], machine.runs[0], lacking.as_deref())
    };
    MACHINES.iter().map(step).collect()
}

impl Machine {
    /// Its runs on each instruction set; skipped, with the packages to install, where something is missing.
    fn steps(&self, root: &Path) -> Vec<Step> {
        let lacking = lacking(self.target, self.tools);
        let each = |isa| self.runs.iter().map(move |run| (isa, *run));
        let runs = self.isas.iter().flat_map(|isa| each(*isa));
        runs.map(|(isa, run)| self.step(root, isa, run, lacking.as_deref())).collect()
    }

    fn step(&self, root: &Path, isa: &str, run: (&str, &str), lacking: Option<&str>) -> Step {
        let name = format!("{}, isa {isa}: {} {}", self.part, run.0, run.1).trim_end().to_owned();
        match lacking {
            Some(why) => Step::skip(name, why),
            None => Step::run(name, self.invocation(root, isa, run)),
        }
    }

    fn invocation(&self, root: &Path, isa: &str, (command, given): (&str, &str)) -> Invocation {
        let all = format!("{command} --quiet --target {} --target-dir target/{}", self.target, self.part);
        let given = format!("-- {given}");
        let command = Invocation::cargo(&all).args(&given.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let root = root.display().to_string();
        let set =
            |command: Invocation, (name, value): &(&str, &str)| command.env(name, &value.replace("{root}", &root));
        self.variables.iter().fold(command, set).env(ISA, isa)
    }
}

/// The npm package: compiled, made, and tested in Node with the command line, its page in a browser if there is one.
fn npm_package(root: &Path) -> Vec<Step> {
    let cargo = |args: &str| Invocation::cargo(args);
    let build = format!("build --quiet --profile npm --target {JS_TARGET} --target-dir target/js -p synchromesh-js");
    let program = format!("target/js/{JS_TARGET}/npm/synchromesh_js.wasm");
    let bindgen = format!("run --quiet --manifest-path {JS}/bindgen/Cargo.toml --target-dir target/bindgen --locked");
    let cli = workspace::target(root).join("debug/synchromesh").display().to_string();
    let tests = format!("--test {JS}/test/session.test.js {JS}/test/page.test.js");
    let runs = [
        ("the crate", cargo(&build).env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", "-C target-feature=+simd128")),
        ("JavaScript", cargo(&format!("{bindgen} -- {program} {JS}/dist"))),
        ("the command line", cargo("build --quiet -p synchromesh-cli")),
        ("what tests need", Invocation::new("npm", &format!("--prefix {JS} ci --no-audit --no-fund"))),
        ("tests", Invocation::new("node", &tests).env("SYNCHROMESH_CLI", &cli)),
    ];
    let lacking = lacking(JS_TARGET, &[NODE, Tool { program: "npm", packages: "npm" }]);
    let step = |(what, run)| match &lacking {
        Some(why) => Step::skip(format!("npm package: {what}"), why),
        None => Step::run(format!("npm package: {what}"), run),
    };
    runs.into_iter().map(step).collect()
}

/// A step that compiles packages for a target and runs nothing.
fn check(target: &str, packages: &str, tools: &[Tool]) -> Step {
    let name = format!("compiled for {target}");
    match lacking(target, tools) {
        Some(why) => Step::skip(name, why),
        None => Step::run(
            name,
            Invocation::cargo(&format!("check --quiet {packages} --target {target} --target-dir target/check")),
        ),
    }
}

/// What is missing for a target, and how to get it. The standard library is fetched where that is possible.
fn lacking(target: &str, tools: &[Tool]) -> Option<String> {
    let absent = |tool: &&Tool| !starts(Command::new(tool.program).arg("--version"));
    let packages: Vec<&str> = tools.iter().filter(absent).map(|tool| tool.packages).collect();
    if !packages.is_empty() {
        return Some(format!("apt-get install {}", packages.join(" ")));
    }
    let there = has_standard_library(target) || starts(Command::new("rustup").args(["target", "add", target]));
    (!there).then(|| format!("its standard library is not here: `rustup target add {target}`"))
}

/// Whether the compiler has the standard library of a target.
pub(crate) fn has_standard_library(target: &str) -> bool {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let sysroot = sysroot.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    Path::new(&sysroot).join("lib/rustlib").join(target).join("lib").is_dir()
}

/// Whether a command can be started and succeeds.
fn starts(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let tools = [Tool { program: "no-such-program", packages: "its-package" }];
        assert_eq!(lacking("x86_64-unknown-linux-gnu", &tools).unwrap(), "apt-get install its-package");
    }

    #[test]
    fn every_run_is_on_its_target_and_instruction_set() {
        for machine in MACHINES {
            for isa in machine.isas {
                let line = machine.invocation(Path::new("/root"), isa, machine.runs[0]).to_string();
                assert!(line.contains(machine.target) && line.contains(&format!("{ISA}={isa}")), "{line}");
                assert!(!line.contains("{root}"), "{line}");
            }
        }
    }
}
