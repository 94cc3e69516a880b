//! A key switch in steady state takes no memory for polynomials from the system: all of it is recycled.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::common::{fixture, literal, message};
use synchromesh_ring::Ntt;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{EvaluationKeys, Source, SwitchPlan};

/// Counts the bytes that each thread takes, and remembers its largest allocation.
struct Watching;

thread_local! {
    static TOTAL: Cell<usize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        TOTAL.set(TOTAL.get() + layout.size());
        LARGEST.set(LARGEST.get().max(layout.size()));
        // SAFETY: the caller's own obligations, passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's own obligations, passed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

#[test]
fn a_key_switch_in_steady_state_allocates_no_polynomial() {
    let mut f = fixture(literal(13, &[50; 8], &[50; 4], "1"), 1);
    let plan = SwitchPlan::hybrid(f.context.params(), 2).unwrap();
    let keys = EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(3)], &plan, &mut f.randomness).unwrap();
    let switching = KeySwitching::new(keys.into(), plan);
    let (_, poly) = message(&f.context, 7, 1);
    let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, 7, &mut f.randomness).unwrap();
    for _ in 0..2 {
        switching.automorphism(&f.context, &ct, 3).unwrap();
    }
    TOTAL.set(0);
    LARGEST.set(0);
    switching.automorphism(&f.context, &ct, 3).unwrap();
    let (total, largest) = (TOTAL.get(), LARGEST.get());
    let limb = 8 << 13;
    assert!(largest < limb / 8 && total < 2 * limb, "{total} bytes in all, {largest} at once; a limb has {limb}");
}
