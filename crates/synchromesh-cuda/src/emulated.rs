//! The emulated device: host memory, and the kernels compiled as C++.

use std::alloc::{Layout, alloc, dealloc};
use std::ffi::{CStr, c_char, c_int, c_void};

use crate::device::{Argument, Device, DeviceError, Launch, Properties};

unsafe extern "C" {
    fn synchromesh_emulate(
        name: *const c_char,
        grid: *const u32,
        block: *const u32,
        shared: usize,
        arguments: *const *const c_void,
        sizes: *const usize,
        count: usize,
        order: u32,
        skipped: usize,
    ) -> c_int;
    fn synchromesh_emulated_kernels() -> usize;
}

/// In which order the blocks of a launch run, and the threads of a block between two barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// By index.
    #[default]
    Ascending,
    /// By falling index.
    Descending,
    /// Drawn anew between any two barriers, from this seed.
    Shuffled(u16),
}

impl Order {
    const fn number(self) -> u32 {
        match self {
            Self::Ascending => 0,
            Self::Descending => 1,
            Self::Shuffled(seed) => 2 + seed as u32,
        }
    }
}

/// An emulated device. Memory is the host's; work is done when it is queued.
#[derive(Debug, Clone)]
pub struct Emulated {
    properties: Properties,
    order: Order,
    skipped: usize,
}

impl Emulated {
    /// A device whose threads run in the given order.
    #[must_use]
    pub fn new(order: Order) -> Self {
        let model = "an emulator of CUDA's execution model".to_owned();
        let properties =
            Properties { name: "emulated".to_owned(), model, memory_bytes: 4 << 30, shared_bytes: 160 << 10 };
        Self { properties, order, skipped: 0 }
    }

    /// Plants a fault: at barrier `barrier` of a kernel, counted from 1, threads do not wait for each other.
    #[must_use]
    pub const fn without_barrier(mut self, barrier: usize) -> Self {
        self.skipped = barrier;
        self
    }

    /// How many kernels there are, those with planted faults among them.
    #[must_use]
    pub fn kernels() -> usize {
        // SAFETY: reads a table that is complete before main.
        unsafe { synchromesh_emulated_kernels() }
    }
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes.max(1), 256).ok()
}

/// The emulator's number of a fault as words.
const fn fault(number: c_int) -> &'static str {
    match number {
        1 => "there is no such kernel",
        2 => "the wrong number of arguments",
        3 => "an argument of the wrong size, or more than 4096 bytes of them",
        4 => "an empty or too large grid or block",
        5 => "too much shared memory, or half a word",
        6 => "some threads ended while others waited at a barrier",
        7 => "it wrote outside its shared memory",
        8 => "it has a barrier and is declared to have none",
        _ => "an unknown fault",
    }
}

impl Device for Emulated {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        // SAFETY: the layout is not empty.
        let memory = layout(bytes).map(|layout| unsafe { alloc(layout) }).filter(|memory| !memory.is_null());
        let Some(memory) = memory else {
            let device = self.properties.name.clone();
            return Err(DeviceError::MemoryBudget { device, needed: bytes as u64, in_use: 0, budget: 0 });
        };
        // What a kernel reads before it was written shall not look like residues.
        // SAFETY: the memory was just made, of `bytes` bytes.
        unsafe { memory.write_bytes(0xdb, bytes) };
        Ok(memory.expose_provenance() as u64)
    }

    unsafe fn free(&self, address: u64, bytes: usize) {
        if let Some(layout) = layout(bytes) {
            // SAFETY: by contract this is what `allocate` gave for the same number of bytes.
            unsafe { dealloc(std::ptr::with_exposed_provenance_mut(address as usize), layout) };
        }
    }

    unsafe fn write(&self, words: &[u64], address: u64) -> Result<(), DeviceError> {
        let to: *mut u64 = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: by contract there are as many words.
        unsafe { to.copy_from_nonoverlapping(words.as_ptr(), words.len()) };
        Ok(())
    }

    unsafe fn read(&self, address: u64, words: &mut [u64]) -> Result<(), DeviceError> {
        let from: *const u64 = std::ptr::with_exposed_provenance(address as usize);
        // SAFETY: by contract there are as many words.
        unsafe { words.as_mut_ptr().copy_from_nonoverlapping(from, words.len()) };
        Ok(())
    }

    unsafe fn clear(&self, address: u64, words: usize) -> Result<(), DeviceError> {
        let to: *mut u64 = std::ptr::with_exposed_provenance_mut(address as usize);
        for i in 0..words {
            // SAFETY: by contract there are as many words. Volatile, as what is cleared may be secret and is not read.
            unsafe { to.add(i).write_volatile(0) };
        }
        Ok(())
    }

    unsafe fn launch(
        &self,
        kernel: &'static CStr,
        launch: Launch,
        arguments: &[Argument<'_>],
    ) -> Result<(), DeviceError> {
        let (grid, block) = (launch.grid, [launch.threads, 1, 1]);
        let pointers: Vec<*const c_void> = arguments.iter().map(Argument::pointer).collect();
        let sizes: Vec<usize> = arguments.iter().map(Argument::bytes).collect();
        // SAFETY: the lists are as long as they say; by contract the arguments are the kernel's.
        let number = unsafe {
            synchromesh_emulate(
                kernel.as_ptr(),
                grid.as_ptr(),
                block.as_ptr(),
                launch.shared as usize,
                pointers.as_ptr(),
                sizes.as_ptr(),
                arguments.len(),
                self.order.number(),
                self.skipped,
            )
        };
        if number == 0 {
            return Ok(());
        }
        Err(DeviceError::Launch {
            device: self.properties.name.clone(),
            kernel: kernel.to_string_lossy().into_owned(),
            reason: fault(number).to_owned(),
        })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}
