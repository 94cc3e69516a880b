//! Arbitrary bytes as a public key: refused by a typed error, or written again to the very same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use synchromesh_fuzz::{check, public_key};
use synchromesh_rlwe::wire::ObjectType;

fuzz_target!(|input: &[u8]| check(ObjectType::PublicKey, public_key, input));
