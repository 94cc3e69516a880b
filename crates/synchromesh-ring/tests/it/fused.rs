//! The fused stages of a key switch against the primitives they stand for, on every instruction set.

use std::sync::Arc;

use synchromesh_ring::isa::Isa;
use synchromesh_ring::{Counting, Cpu, Ring};
use synchromesh_testing::{laws, toy};

/// Primes on both sides of every border between kernels.
const WIDTHS: [u32; 6] = [30, 47, 48, 49, 50, 60];

#[test]
fn fused_stages_return_the_bits_of_their_primitives() {
    // From 2^15 on results go past the caches.
    for log_n in [10, 11, 13, 15] {
        let ring = Arc::new(Ring::new(log_n, &toy::distinct_primes(&WIDTHS, log_n)).unwrap());
        let apart = Counting::new(Cpu::with_isa(Arc::clone(&ring), Isa::Scalar).unwrap());
        for isa in Isa::available() {
            laws::same_stages(&apart, &Cpu::with_isa(Arc::clone(&ring), isa).unwrap());
        }
    }
}
