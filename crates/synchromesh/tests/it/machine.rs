//! A made-up machine whose times can be counted.
#![allow(unreachable_pub, reason = "shared by the files of test programs")]

use synchromesh::cost::{Entry, Point, Profile, Streaming};
use synchromesh::rlwe::ring::ledger::Operation;

/// A profile in which each transform takes a microsecond and all else nothing.
pub fn transforms_only() -> Profile {
    let streaming = Streaming { read_gb_per_s: 1.0, write_gb_per_s: 1.0, copy_gb_per_s: 1.0 };
    let mut profile = Profile::new("test".into(), "test".into(), "test".into(), "2026-01-01".into(), streaming);
    for operation in Operation::ALL {
        // Of each limb and of each row: a gadget product in coefficients brings both its parts back.
        let [limb, row] = match operation {
            Operation::NttForward
            | Operation::NttInverse
            | Operation::NttInverseInto
            | Operation::GadgetProduct
            | Operation::GadgetSums
            | Operation::SlotSums => [0.0, 1000.0],
            Operation::GadgetProductCoeff => [2000.0, 1000.0],
            _ => [0.0; 2],
        };
        for prime_bits in [50, 60] {
            let ns = [limb, row, 0.0, 0.0];
            let points = vec![Point { working_set_bytes: 1, ns }];
            profile.entries.push(Entry { operation: operation.name().into(), log_n: 11, prime_bits, points });
        }
    }
    profile
}
