//! Work for a device as data: the arguments of a launch as they lie in memory, and lists of what is to be done.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;

use zeroize::Zeroize;

/// The shape of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Neighbouring blocks along x that read and write each other's shared memory; 1 where none does.
    pub cluster: u32,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block.
    pub shared: u32,
}

/// A type that a kernel takes by value.
///
/// # Safety
/// It has the size, alignment and layout of the kernel's parameter, and no pointer of it to device memory outlives that
/// memory while a launch is queued.
pub unsafe trait Parameter {}

// SAFETY: words are the same in both languages.
unsafe impl Parameter for u32 {}
// SAFETY: an address in device memory.
unsafe impl Parameter for u64 {}

/// One argument of a launch.
#[derive(Clone, Copy)]
pub struct Argument<'a> {
    pointer: *const u8,
    bytes: usize,
    alignment: usize,
    value: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// `value`, by value.
    pub const fn new<T: Parameter>(value: &'a T) -> Self {
        let pointer = std::ptr::from_ref(value).cast();
        Self { pointer, bytes: size_of::<T>(), alignment: align_of::<T>(), value: PhantomData }
    }
}

/// The arguments of a launch as they lie in memory: the first, then the rest at the largest alignment among the rest, and
/// so on; `Pack` of `kernels/device.h`. Cleared when dropped, as the keys of random streams are arguments.
#[derive(Clone)]
pub struct Arguments {
    words: Vec<u128>,
    bytes: usize,
    sizes: Vec<usize>,
}

impl Arguments {
    /// At least one argument.
    #[must_use]
    pub fn new(list: &[Argument<'_>]) -> Self {
        let (offsets, bytes) = layout(list);
        let mut words = vec![0u128; bytes.div_ceil(size_of::<u128>())];
        for (argument, offset) in list.iter().zip(offsets) {
            // SAFETY: `layout` has room for the argument at its offset, and the argument is as long as it says.
            unsafe {
                let to = words.as_mut_ptr().cast::<u8>().add(offset);
                to.copy_from_nonoverlapping(argument.pointer, argument.bytes);
            }
        }
        Self { words, bytes, sizes: list.iter().map(|argument| argument.bytes).collect() }
    }

    /// Where they are.
    #[must_use]
    pub const fn pointer(&self) -> *const c_void {
        self.words.as_ptr().cast()
    }

    /// Bytes of all of them.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of each.
    #[must_use]
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The same bytes as 64-bit words, of which there are two for each 16 bytes begun.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        bytemuck::cast_slice(&self.words)
    }
}

impl Drop for Arguments {
    fn drop(&mut self) {
        self.words.zeroize();
    }
}

/// The offset of each argument, and the size of all.
fn layout(list: &[Argument<'_>]) -> (Vec<usize>, usize) {
    let mut aligned = vec![1; list.len() + 1];
    for (i, argument) in list.iter().enumerate().rev() {
        aligned[i] = aligned[i + 1].max(argument.alignment);
    }
    let mut offsets = Vec::with_capacity(list.len());
    let mut end = 0;
    for (i, argument) in list.iter().enumerate() {
        let offset = usize::next_multiple_of(end, aligned[i]);
        offsets.push(offset);
        end = offset + argument.bytes;
    }
    // Sizes are multiples of alignments at every depth; from the inside out that comes to the outermost one.
    (offsets, end.next_multiple_of(aligned[0]))
}

/// One thing for a device to do.
#[derive(Clone)]
pub enum Work {
    /// Run a kernel.
    Launch {
        /// Its name.
        kernel: Cow<'static, CStr>,
        /// The shape.
        launch: Launch,
        /// What it takes.
        arguments: Arguments,
    },
    /// Set words to 0.
    Clear {
        /// Where they begin.
        address: u64,
        /// How many.
        words: usize,
    },
}

impl Work {
    /// Whether both are one step on different operands.
    pub(crate) fn merges_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Launch { kernel, launch, .. }, Self::Launch { kernel: of, launch: shape, .. }) => {
                (kernel, launch) == (of, shape)
            }
            (Self::Clear { words, .. }, Self::Clear { words: of, .. }) => words == of,
            _ => false,
        }
    }

    /// The same kernel on several lists of arguments in one launch: `lists` is where they lie in device memory, one every
    /// `Arguments::bytes` bytes.
    pub(crate) fn merged(kernel: &CStr, launch: Launch, lists: u64, count: u32) -> Self {
        let mut name = kernel.to_bytes().to_vec();
        name.extend_from_slice(b"_merged");
        let kernel = Cow::Owned(CString::new(name).unwrap_or_default());
        let [x, y, z] = launch.grid;
        let launch = Launch { grid: [x, count * z, y], ..launch };
        Self::Launch { kernel, launch, arguments: Arguments::new(&[Argument::new(&lists), Argument::new(&count)]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(16))]
    struct Wide(u64, u64);
    // SAFETY: for the layout alone; no kernel takes it.
    unsafe impl Parameter for Wide {}

    #[test]
    fn arguments_lie_as_nested_structures_do() {
        let (word, half, wide) = (7u64, 5u32, Wide(1, 2));
        let list = [Argument::new(&half), Argument::new(&word), Argument::new(&half)];
        assert_eq!(layout(&list), (vec![0, 8, 16], 24));
        // What is behind begins at 16 if anything there needs it.
        let list = [Argument::new(&half), Argument::new(&half), Argument::new(&wide), Argument::new(&half)];
        assert_eq!(layout(&list), (vec![0, 16, 32, 48], 64));
        let arguments = Arguments::new(&list);
        assert_eq!((arguments.bytes(), arguments.sizes()), (64, &[4, 4, 16, 4][..]));
        assert_eq!(arguments.words(), [5, 0, 5, 0, 1, 2, 5, 0]);
    }
}
