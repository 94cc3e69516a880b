//! Arbitrary bytes as switch keys: refused by a typed error, or written again to the very same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use synchromesh_fuzz::{check, switch_keys};
use synchromesh_rlwe::wire::ObjectType;

fuzz_target!(|input: &[u8]| check(ObjectType::SwitchKeySet, switch_keys, input));
