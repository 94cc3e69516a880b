//! Host memory for residues: whole cache lines, huge pages where they help, dropped buffers handed out again.

use std::collections::BTreeMap;
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
        let refused =
            || BackendError::Memory { device: "cpu".to_owned(), needed: bytes as u64, available: available_bytes() };
        // WebAssembly has no maps.
        if bytes < HUGE_PAGE || cfg!(target_family = "wasm") {
            let (mut lines, count) = (Vec::new(), bytes / size_of::<Line>());
            lines.try_reserve_exact(count).map_err(|_| refused())?;
            lines.resize(count, Line::default());
            return Ok(Self::Lines(lines));
        }
        let map = MmapMut::map_anon(bytes + HUGE_PAGE).map_err(|_| refused())?;
        let offset = map.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        // Advice only: without huge pages the same memory is merely slower. Interpreters know none. What fills no whole one
        // at the end would take one all the same.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = map.advise_range(memmap2::Advice::HugePage, offset, bytes / HUGE_PAGE * HUGE_PAGE);
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

/// Dropped buffers of one size, and when one of this size was last asked for.
#[derive(Default)]
struct Shelf {
    buffers: Vec<Memory>,
    asked: u64,
}

/// What a buffer that is handed out again may have more than was asked for, as a part of that: levels that follow one another
/// need buffers of almost the same size.
const SLACK: usize = 4;

/// By how much memory in use and dropped memory together may exceed the most that ever was in use, as a part of that and in
/// bytes at the least and at the most: levels that follow one another would otherwise each leave buffers of their own sizes.
const BEYOND_USE: (usize, usize, usize) = (8, 4 << 20, 64 << 20);

/// Dropped memory by size in bytes, how much there is and may be, how much is in use and ever was, and how often any was
/// asked for.
struct Free {
    by_size: BTreeMap<usize, Shelf>,
    bytes: usize,
    most: usize,
    used: usize,
    most_used: usize,
    clock: u64,
}

impl Default for Free {
    fn default() -> Self {
        Self { by_size: BTreeMap::new(), bytes: 0, most: RECYCLED_BYTES, used: 0, most_used: 0, clock: 0 }
    }
}

impl Free {
    /// Memory of so many bytes is in use from now on.
    fn lend(&mut self, bytes: usize) {
        self.used += bytes;
        self.most_used = self.most_used.max(self.used);
    }

    /// What may be kept beside what is in use.
    fn room(&self) -> usize {
        let (part, least, most) = BEYOND_USE;
        (self.most_used + (self.most_used / part).clamp(least, most) - self.used).min(self.most)
    }

    fn take(&mut self, bytes: usize) -> Option<Memory> {
        self.clock += 1;
        self.by_size.entry(bytes).or_default().asked = self.clock;
        let near = self.by_size.range_mut(bytes..=bytes + bytes / SLACK);
        let shelf = near.map(|(_, shelf)| shelf).find(|shelf| !shelf.buffers.is_empty())?;
        shelf.asked = self.clock;
        let memory = shelf.buffers.pop()?;
        self.bytes -= memory.bytes();
        Some(memory)
    }

    /// Keeps `memory`, and returns what has to go for it: buffers of the sizes that were not asked for the longest.
    fn keep(&mut self, memory: Memory) -> Vec<Memory> {
        let (bytes, mut gone) = (memory.bytes(), Vec::new());
        self.used = self.used.saturating_sub(bytes);
        let most = self.room();
        if bytes == 0 || bytes > most {
            return vec![memory];
        }
        while self.bytes + bytes > most {
            let full = self.by_size.values_mut().filter(|shelf| !shelf.buffers.is_empty());
            let Some(old) = full.min_by_key(|shelf| shelf.asked).and_then(|shelf| shelf.buffers.pop()) else { break };
            self.bytes -= old.bytes();
            gone.push(old);
        }
        self.bytes += bytes;
        self.by_size.entry(bytes).or_default().buffers.push(memory);
        gone
    }
}

/// Keeps dropped buffers and hands them out again.
#[derive(Default)]
pub(super) struct Recycler(Mutex<Free>);

impl Recycler {
    /// A buffer of `bytes` bytes (a multiple of 64), contents unspecified.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<CpuBuffer, BackendError> {
        let recycled = {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let recycled = free.take(bytes);
            free.lend(recycled.as_ref().map_or(bytes, Memory::bytes));
            recycled
        };
        let memory = match recycled {
            Some(memory) => memory,
            None => Memory::new(bytes).inspect_err(|_| self.returned(bytes))?,
        };
        Ok(CpuBuffer { memory: Some(memory), count: bytes / size_of::<u64>(), recycler: Arc::clone(self) })
    }

    /// So many bytes are in use no more, and were never had.
    fn returned(&self, bytes: usize) {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        free.used = free.used.saturating_sub(bytes);
    }

    fn give(&self, memory: Memory) {
        let gone = self.0.lock().unwrap_or_else(PoisonError::into_inner).keep(memory);
        // The lock is free again when the system takes these back.
        drop(gone);
    }
}

/// Host memory of whole rows; goes back to its backend's recycler when dropped.
pub struct CpuBuffer {
    memory: Option<Memory>,
    /// Words of it; the memory may have more.
    count: usize,
    recycler: Arc<Recycler>,
}

impl CpuBuffer {
    /// All words, row after row.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.memory.as_ref().map_or(&[], |memory| &memory.words()[..self.count])
    }

    /// All words, row after row.
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.memory.as_mut().map_or(&mut [], |memory| &mut memory.words_mut()[..self.count])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_words_asked_for_whatever_memory_it_gets() {
        let recycler = Arc::new(Recycler::default());
        drop(recycler.take(5120).unwrap());
        let buffer = recycler.take(4096).unwrap();
        assert_eq!(buffer.words().len(), 512);
        assert_eq!(buffer.memory.as_ref().map(Memory::bytes), Some(5120));
        drop(buffer);
        assert_eq!(recycler.take(5120).unwrap().words().len(), 640, "nothing of it is lost");
    }

    #[test]
    fn sizes_that_nobody_asks_for_make_way() {
        let mut free = Free { most: 1000, most_used: 1 << 20, ..Free::default() };
        let memory = |bytes: usize| Memory::new(bytes).unwrap();
        for _ in 0..2 {
            assert!(free.take(448).is_none());
        }
        assert!(free.keep(memory(448)).is_empty() && free.keep(memory(448)).is_empty());
        assert!(free.take(128).is_none());
        let gone = free.keep(memory(128));
        assert_eq!(gone.iter().map(Memory::bytes).collect::<Vec<_>>(), [448]);
        assert_eq!(free.bytes, 448 + 128);
        assert!(free.take(320).is_none(), "too large by more than a quarter");
        let larger = free.take(384).unwrap();
        assert_eq!(larger.bytes(), 448);
        assert!(free.keep(larger).is_empty());
        assert!(free.take(128).is_some_and(|memory| memory.bytes() == 128));
        assert_eq!(free.keep(memory(1024)).len(), 1, "larger than all that may be kept");
    }

    #[test]
    fn little_more_is_kept_than_ever_was_in_use() {
        let (mebi, recycler) = (1 << 20, Arc::new(Recycler::default()));
        let kept = || recycler.0.lock().unwrap().bytes;
        // Buffers of many sizes, one after another as levels have them, beside one that stays.
        let stays = recycler.take(64 * mebi).unwrap();
        for size in 1..16 {
            drop(recycler.take(size * mebi).unwrap());
            assert!(kept() <= 64 * mebi / 8 + 16 * mebi, "{} kept after {size}", kept());
        }
        // What one level asks for again and again stays.
        for _ in 0..3 {
            let before = kept();
            drop([15, 1].map(|size| recycler.take(size * mebi).unwrap()));
            assert!(kept() >= before.min(16 * mebi));
        }
        drop(stays);
        assert!(kept() >= 64 * mebi, "all may be kept once nothing else is in use");
    }
}
