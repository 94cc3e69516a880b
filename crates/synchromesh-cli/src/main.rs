//! The `synchromesh` command, and what becomes of it where there is no memory.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator. Memory that cannot be had ends the command with a typed error, where it would be aborted.
struct Reporting;

#[global_allocator]
static ALLOCATOR: Reporting = Reporting;

/// `memory`, unless there is none.
fn had(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() { synchromesh_cli::output::out_of_memory(bytes) } else { memory }
}

// SAFETY: every call goes to the system's allocator as it came, and what it gives is given on.
unsafe impl GlobalAlloc for Reporting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        had(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        had(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's.
        had(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn main() -> std::process::ExitCode {
    synchromesh_cli::commands::run(std::env::args_os())
}
