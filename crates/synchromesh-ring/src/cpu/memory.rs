//! Host memory for residues: whole cache lines, huge pages where they help, dropped buffers handed out again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapMut;
use zeroize::Zeroize;

use crate::backend::BackendError;

/// Bytes of dropped buffers that a backend keeps for the next ones.
const RECYCLED_BYTES: usize = 2 << 30;

/// Size and alignment of a huge page; smaller buffers come from the ordinary allocator.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// A cache line of residues, so that rows are aligned.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// Words at an aligned address.
enum Memory {
    /// From the ordinary allocator.
    Lines(Vec<Line>),
    /// An anonymous map of its own; the words start at `offset` bytes, on a huge-page boundary.
    Map { map: MmapMut, offset: usize, bytes: usize },
}

impl Memory {
    fn new(bytes: usize) -> Result<Self, BackendError> {
        if bytes < HUGE_PAGE {
            return Ok(Self::Lines(vec![Line::default(); bytes / size_of::<Line>()]));
        }
        let map = MmapMut::map_anon(bytes + HUGE_PAGE).map_err(|_| BackendError::Memory {
            device: "cpu".to_owned(),
            needed: bytes as u64,
            available: available_bytes(),
        })?;
        // Advice only: without huge pages the same memory is merely slower.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        let offset = map.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        Ok(Self::Map { map, offset, bytes })
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len() * size_of::<Line>(),
            Self::Map { bytes, .. } => *bytes,
        }
    }

    fn words(&self) -> &[u64] {
        match self {
            Self::Lines(lines) => bytemuck::cast_slice(lines),
            Self::Map { map, offset, bytes } => bytemuck::cast_slice(&map[*offset..offset + bytes]),
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Lines(lines) => bytemuck::cast_slice_mut(lines),
            Self::Map { map, offset, bytes } => bytemuck::cast_slice_mut(&mut map[*offset..*offset + *bytes]),
        }
    }
}

/// Memory the system says is free, in bytes; 0 where it does not say.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
}

/// Dropped memory by size in bytes, and how much there is.
#[derive(Default)]
struct Free {
    by_size: HashMap<usize, Vec<Memory>>,
    bytes: usize,
}

/// Keeps dropped buffers and hands them out again.
#[derive(Default)]
pub(super) struct Recycler(Mutex<Free>);

impl Recycler {
    /// A buffer of `bytes` bytes (a multiple of 64), contents unspecified.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<CpuBuffer, BackendError> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recycled = free.by_size.get_mut(&bytes).and_then(Vec::pop);
        if recycled.is_some() {
            free.bytes -= bytes;
        }
        drop(free);
        let memory = match recycled {
            Some(memory) => memory,
            None => Memory::new(bytes)?,
        };
        Ok(CpuBuffer { memory: Some(memory), recycler: Arc::clone(self) })
    }

    fn give(&self, memory: Memory) {
        let bytes = memory.bytes();
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > 0 && free.bytes + bytes <= RECYCLED_BYTES {
            free.bytes += bytes;
            free.by_size.entry(bytes).or_default().push(memory);
        }
    }
}

/// Host memory of whole rows; goes back to its backend's recycler when dropped.
pub struct CpuBuffer {
    memory: Option<Memory>,
    recycler: Arc<Recycler>,
}

impl CpuBuffer {
    /// All words, row after row.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.memory.as_ref().map_or(&[], Memory::words)
    }

    /// All words, row after row.
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.memory.as_mut().map_or(&mut [], Memory::words_mut)
    }
}

impl Zeroize for CpuBuffer {
    fn zeroize(&mut self) {
        self.words_mut().zeroize();
    }
}

impl Drop for CpuBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.recycler.give(memory);
        }
    }
}
