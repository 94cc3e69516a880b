//! Arbitrary bytes as a ciphertext in either domain: refused by a typed error, or written again to the very same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use synchromesh_fuzz::{check, ciphertext};
use synchromesh_rlwe::ring::{Coeff, Ntt};
use synchromesh_rlwe::wire::ObjectType;

fuzz_target!(|input: &[u8]| {
    check(ObjectType::Ciphertext, ciphertext::<Ntt>, input);
    check(ObjectType::Ciphertext, ciphertext::<Coeff>, input);
});
