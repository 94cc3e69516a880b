//! With the feature `emulated`: compiles the kernels as C++ over the emulator; with `translated`, those that the PTX is
//! translated to as well. No CUDA is needed to build anything.

#[cfg(feature = "translated")]
#[path = "build/cpp.rs"]
mod cpp;
#[cfg(feature = "translated")]
#[path = "build/faults.rs"]
mod faults;
#[cfg(feature = "translated")]
#[path = "build/instructions.rs"]
#[allow(dead_code, reason = "what instructions compute is for tests")]
mod instructions;
#[cfg(feature = "translated")]
#[path = "build/ptx.rs"]
mod ptx;

/// The files of PTX.
const UNITS: [&str; 6] = ["kernels", "ntt_forward", "ntt_forward_sum", "ntt_inverse", "key_switch", "cluster"];

fn main() {
    // Not the records of counts, which the programs made here write.
    for path in ["build", "kernels", "emulator", "ptx/assembled.csv"] {
        println!("cargo:rerun-if-changed={path}");
    }
    for unit in UNITS {
        println!("cargo:rerun-if-changed=ptx/{unit}.ptx");
    }
    #[cfg(feature = "translated")]
    translated();
    #[cfg(feature = "emulated")]
    emulator();
}

/// A compiler of C++ that keeps to IEEE and knows the emulator.
#[cfg(feature = "emulated")]
fn compiler(optimisation: u32) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(optimisation)
        .debug(optimisation > 1)
        .flag("-ffp-contract=off")
        .flag("-U_FORTIFY_SOURCE")
        .include("kernels")
        .include("emulator")
        // Kernels enter themselves into a table from static initialisers, which nothing else refers to.
        .link_lib_modifier("+whole-archive");
    build
}

/// The PTX that cards are given, with faults, and single instructions, as a library over the emulator's.
#[cfg(feature = "translated")]
fn translated() {
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where output goes"));
    let mut build = compiler(1);
    let read = |name: &str| {
        let text = std::fs::read_to_string(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        ptx::read(&text).unwrap_or_else(|refused| panic!("{name}: {refused}"))
    };
    let text =
        std::fs::read_to_string("ptx/assembled.csv").unwrap_or_else(|error| panic!("ptx/assembled.csv: {error}"));
    let assembled = cpp::assembled(&text).expect("ptx/assembled.csv is not what `cargo xtask kernels` writes");
    // What is planted is not assembled.
    let none = cpp::Assembled::new();
    let mut add = |name: String, unit: &ptx::Unit, set: usize, more: &str| {
        let text = cpp::translate(unit, set, if set == 1 { &assembled } else { &none })
            .unwrap_or_else(|refused| panic!("{name}: {refused}"));
        let path = out.join(format!("{name}.cpp"));
        std::fs::write(&path, text + more).expect("the C++ is written");
        build.file(path);
    };
    let units = UNITS.map(|unit| read(&format!("ptx/{unit}.ptx")));
    units.iter().enumerate().for_each(|(i, unit)| add(format!("unit_{i}"), unit, 1, ""));
    let cases: Vec<String> = instructions::CASES.iter().enumerate().map(|(i, it)| instructions::entry(i, it)).collect();
    let text = format!(".extern .shared .align 16 .b8 dev_shared[];\n{}", cases.concat());
    add("instructions".to_owned(), &ptx::read(&text).unwrap_or_else(|refused| panic!("{refused}")), 1, "");
    for (i, fault) in faults::FAULTS.iter().enumerate() {
        let planted = units.iter().find_map(|unit| {
            let entry = unit.entries.iter().find(|entry| entry.name == fault.entry)?;
            Some(ptx::Unit { shared: unit.shared.clone(), entries: vec![fault.plant(entry)?] })
        });
        let planted = planted.unwrap_or_else(|| panic!("{}: there is no such instruction", fault.name()));
        let plant = format!("static const bool planted = emulator::plant({}, \"{}\");\n", 2 + i, fault.name());
        add(format!("fault_{i}"), &planted, 2 + i, &plant);
    }
    // The emulator's library, behind this one, says which library of C++ it is.
    build.warnings(false).cpp_link_stdlib(None).compile("synchromesh_translated");
}

#[cfg(feature = "emulated")]
fn emulator() {
    let mut build = compiler(2);
    let compiler = build.get_compiler();
    if let Some(folder) = static_library(&compiler) {
        // Programs with the emulator run where there is no C++ library.
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=stdc++");
        build.cpp_link_stdlib(None);
    }
    build.file("emulator/emulator.cpp").file("emulator/kernels.cpp").compile("synchromesh_emulator");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        driver(&compiler);
    }
}

/// Where GNU's C++ library is as an archive, if that is the one in use.
#[cfg(feature = "emulated")]
fn static_library(compiler: &cc::Tool) -> Option<std::path::PathBuf> {
    let output = compiler.to_command().arg("-print-file-name=libstdc++.a").output().ok()?;
    let path = std::path::PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    // A compiler that does not know it prints the bare name.
    (compiler.is_like_gnu() && path.is_absolute()).then(|| path.parent().map(std::path::Path::to_path_buf))?
}

/// A library that takes the driver's place, for tests of the code that calls the driver.
#[cfg(feature = "emulated")]
fn driver(compiler: &cc::Tool) {
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo says where output goes"));
    let folder = out.join("stand-in");
    std::fs::create_dir_all(&folder).expect("a folder for the driver that is none");
    let mut command = compiler.to_command();
    command.args([
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "emulator/driver.cpp",
        "-Wl,-Bsymbolic",
        "-Wl,--whole-archive",
    ]);
    command.arg(out.join("libsynchromesh_emulator.a"));
    command.args(["-Wl,--no-whole-archive", "-Wl,--exclude-libs,ALL", "-o"]).arg(folder.join("libcuda.so"));
    assert!(command.status().is_ok_and(|status| status.success()), "emulator/driver.cpp does not compile");
    println!("cargo:rustc-env=SYNCHROMESH_STAND_IN_FOLDER={}", folder.display());
}
