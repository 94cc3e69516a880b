//! How much memory a reader takes: an allocator that counts for each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with the bytes that each thread holds and the most that it held.
pub struct Watching;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Counts bytes taken, or given back if negative. Sizes fit, as no layout is larger than `isize::MAX`.
fn count(bytes: isize) {
    let held = HELD.get().wrapping_add(bytes);
    HELD.set(held);
    MOST.set(MOST.get().max(held));
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's own obligations, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's own obligations, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's own obligations, passed on.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: the caller's own obligations, passed on.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

/// What a function returns, and how many bytes more than before this thread held at most while it ran.
pub fn watched<T>(function: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST.set(before);
    let result = function();
    (result, usize::try_from(MOST.get().wrapping_sub(before)).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_held_is_counted_though_it_is_given_back() {
        let ((), most) = watched(|| drop(vec![1u8; 100_000]));
        assert!((100_000..110_000).contains(&most), "{most}");
        assert_eq!(watched(|| ()).1, 0);
    }
}
