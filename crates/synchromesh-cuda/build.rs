//! With the feature `emulated`: compiles the kernels as C++ over the emulator. No CUDA is needed to build anything.

fn main() {
    for folder in ["kernels", "emulator"] {
        println!("cargo:rerun-if-changed={folder}");
    }
    #[cfg(feature = "emulated")]
    emulator();
}

#[cfg(feature = "emulated")]
fn emulator() {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .flag("-ffp-contract=off")
        .flag("-U_FORTIFY_SOURCE")
        .include("kernels")
        .include("emulator");
    let compiler = build.get_compiler();
    if let Some(folder) = static_library(&compiler) {
        // Programs with the emulator run where there is no C++ library.
        println!("cargo:rustc-link-search=native={}", folder.display());
        println!("cargo:rustc-link-lib=static:-bundle=stdc++");
        build.cpp_link_stdlib(None);
    }
    build
        .file("emulator/emulator.cpp")
        .file("emulator/kernels.cpp")
        // Kernels enter themselves into a table from static initialisers, which nothing else refers to.
        .link_lib_modifier("+whole-archive")
        .compile("synchromesh_emulator");
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
