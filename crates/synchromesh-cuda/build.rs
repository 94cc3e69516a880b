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
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .opt_level(2)
        .flag("-ffp-contract=off")
        .flag("-U_FORTIFY_SOURCE")
        .include("kernels")
        .include("emulator")
        .file("emulator/emulator.cpp")
        .file("emulator/kernels.cpp")
        // Kernels enter themselves into a table from static initialisers, which nothing else refers to.
        .link_lib_modifier("+whole-archive")
        .compile("synchromesh_emulator");
}
