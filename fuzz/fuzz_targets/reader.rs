//! The target that `SYNCHROMESH_TARGET` names, as found and with right checksums, under libFuzzer.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use synchromesh_harden::targets::{Target, named};

fn target() -> &'static Target {
    static TARGET: OnceLock<&'static Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("SYNCHROMESH_TARGET").unwrap_or_default();
        named(&name).unwrap_or_else(|error| panic!("SYNCHROMESH_TARGET: {error}"))
    })
}

fuzz_target!(|input: &[u8]| {
    let target = target();
    let _ = (target.read)(input);
    let mut sealed = input.to_vec();
    target.seal.apply(&mut sealed);
    if sealed != input {
        let _ = (target.read)(&sealed);
    }
});
