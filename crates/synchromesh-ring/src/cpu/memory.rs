//! Host memory for residues: whole cache lines, huge pages where they help, dropped buffers handed out again.
//!
//! What is smaller than a huge page comes from the ordinary allocator and is kept by size. What is larger is cut from few
//! large maps, at the lowest address where it fits, and joined with its neighbours when it is dropped: stages of a refresh,
//! whose buffers are of different sizes, compute in the same pages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{MmapOptions, MmapRaw};
use zeroize::Zeroize;

use crate::backend::BackendError;

/// Bytes of dropped buffers that a backend keeps for the next ones.
const RECYCLED_BYTES: usize = 2 << 30;

/// Size and alignment of a huge page; smaller buffers come from the ordinary allocator.
pub(super) const HUGE_PAGE: usize = 2 << 20;

/// Bytes of a map, at the least, where the system gives memory to a page when it is first written and takes it back from one;
/// elsewhere a map is as large as the buffer that it is made for.
const MAP_BYTES: Option<usize> = if cfg!(all(unix, not(miri))) { Some(1 << 30) } else { None };

/// A cache line of residues, so that rows are aligned.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u64; 8]);

/// An anonymous map that buffers are cut from; it begins at `offset` bytes, on a huge-page boundary.
struct Map {
    raw: MmapRaw,
    offset: usize,
    bytes: usize,
}

impl Map {
    /// Of this many bytes or a little more.
    fn new(bytes: usize) -> std::io::Result<Self> {
        let bytes = bytes.next_multiple_of(HUGE_PAGE);
        let mut options = MmapOptions::new();
        if MAP_BYTES.is_some() {
            options.no_reserve_swap();
        }
        let map = options.len(bytes + HUGE_PAGE).map_anon()?;
        let offset = map.as_ptr().align_offset(HUGE_PAGE).min(HUGE_PAGE);
        // Advice only: without huge pages the same memory is merely slower. Interpreters know none.
        #[cfg(all(target_os = "linux", not(miri)))]
        let _ = map.advise_range(memmap2::Advice::HugePage, offset, bytes);
        Ok(Self { raw: map.into(), offset, bytes })
    }

    fn at(&self, offset: usize) -> *mut u8 {
        self.raw.as_mut_ptr().wrapping_add(self.offset + offset)
    }

    /// Gives the memory of these pages back to the system; whether it did.
    ///
    /// # Safety
    /// Nobody has a reference to any byte of them.
    unsafe fn clear(&self, first: usize, pages: usize) -> bool {
        #[cfg(all(unix, not(miri)))]
        {
            let range = (self.offset + first * HUGE_PAGE, pages * HUGE_PAGE);
            // SAFETY: what was there is lost, and nobody has a reference to it.
            unsafe { self.raw.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, range.0, range.1) }.is_ok()
        }
        #[cfg(not(all(unix, not(miri))))]
        {
            let _ = (first, pages);
            false
        }
    }
}

/// Words at an aligned address.
enum Memory {
    /// From the ordinary allocator.
    Lines(Vec<Line>),
    /// A piece of a map, which nobody else has.
    Piece { map: Arc<Map>, offset: usize, bytes: usize },
}

impl Memory {
    fn lines(bytes: usize) -> Option<Self> {
        let (mut lines, count) = (Vec::new(), bytes / size_of::<Line>());
        lines.try_reserve_exact(count).ok()?;
        lines.resize(count, Line::default());
        Some(Self::Lines(lines))
    }

    const fn bytes(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.len() * size_of::<Line>(),
            Self::Piece { bytes, .. } => *bytes,
        }
    }

    fn words(&self) -> &[u64] {
        match self {
            Self::Lines(lines) => bytemuck::cast_slice(lines),
            // SAFETY: the piece lies in its map, which lives as long as it, and is in nobody else's hands; its address is a
            // multiple of 64, and its bytes, zeros at first, are words whatever they are.
            Self::Piece { map, offset, bytes } => unsafe {
                std::slice::from_raw_parts(map.at(*offset).cast(), bytes / size_of::<u64>())
            },
        }
    }

    fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Lines(lines) => bytemuck::cast_slice_mut(lines),
            // SAFETY: as in `words`.
            Self::Piece { map, offset, bytes } => unsafe {
                std::slice::from_raw_parts_mut(map.at(*offset).cast(), *bytes / size_of::<u64>())
            },
        }
    }
}

/// Memory the system says is free, in bytes; 0 where it does not say.
fn available_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) << 10
}

/// A map and what of it is free.
struct Region {
    map: Arc<Map>,
    /// Bytes of free pieces by where they begin; no two of them touch.
    free: BTreeMap<usize, usize>,
    /// Whether a page has memory.
    backed: Vec<bool>,
}

impl Region {
    fn new(map: Map) -> Self {
        let (free, backed) = (BTreeMap::from([(0, map.bytes)]), vec![false; map.bytes / HUGE_PAGE]);
        Self { map: Arc::new(map), free, backed }
    }

    /// A piece at the lowest address where it fits.
    fn cut(&mut self, bytes: usize) -> Option<Memory> {
        let (&offset, &there) = self.free.iter().find(|&(_, &there)| there >= bytes)?;
        self.free.remove(&offset);
        if there > bytes {
            self.free.insert(offset + bytes, there - bytes);
        }
        self.backed[offset / HUGE_PAGE..(offset + bytes).div_ceil(HUGE_PAGE)].fill(true);
        Some(Memory::Piece { map: Arc::clone(&self.map), offset, bytes })
    }

    fn join(&mut self, offset: usize, bytes: usize) {
        let (mut from, mut to) = (offset, offset + bytes);
        if let Some((&before, &length)) = self.free.range(..offset).next_back()
            && before + length == offset
        {
            from = before;
        }
        if let Some(length) = self.free.remove(&to) {
            to += length;
        }
        self.free.insert(from, to - from);
    }

    fn is_free(&self) -> bool {
        self.free.get(&0) == Some(&self.map.bytes)
    }

    /// Whole pages of each free piece, first and past the last, the highest piece first.
    fn free_pages(&self) -> impl Iterator<Item = (usize, usize)> {
        let pages = |(&offset, &bytes): (&usize, &usize)| (offset.div_ceil(HUGE_PAGE), (offset + bytes) / HUGE_PAGE);
        self.free.iter().rev().map(pages).filter(|(first, end)| first < end)
    }

    /// How many free pages have memory.
    fn warm(&self) -> usize {
        self.free_pages().map(|(first, end)| self.backed[first..end].iter().filter(|&&backed| backed).count()).sum()
    }

    /// Takes the memory from so many pages that are free, the last ones first; from how many it did.
    fn clear(&mut self, most: usize) -> usize {
        let warm: Vec<usize> = self
            .free_pages()
            .flat_map(|(first, end)| (first..end).rev())
            .filter(|&page| self.backed[page])
            .take(most)
            .collect();
        let mut cleared = 0;
        for run in warm.chunk_by(|&page, &below| page == below + 1) {
            let first = run[run.len() - 1];
            // SAFETY: they are whole pages of a free piece.
            if unsafe { self.map.clear(first, run.len()) } {
                self.backed[first..first + run.len()].fill(false);
                cleared += run.len();
            }
        }
        cleared
    }
}

/// Dropped buffers of one size, and when one of this size was last asked for.
#[derive(Default)]
struct Shelf {
    buffers: Vec<Memory>,
    asked: u64,
}

/// What a buffer of the ordinary allocator that is handed out again may have more than was asked for, as a part of that:
/// levels that follow one another need buffers of almost the same size.
const SLACK: usize = 4;

/// By how much memory in use and dropped memory together may exceed the most that ever was in use, as a part of that and in
/// bytes at the least and at the most: levels that follow one another would otherwise each leave buffers of their own sizes.
const BEYOND_USE: (usize, usize, usize) = (8, 4 << 20, 64 << 20);

/// Dropped memory, small buffers by size in bytes and maps; how much of the former there is and of both may be, how much is
/// in use and ever was, and how often any was asked for.
struct Free {
    by_size: BTreeMap<usize, Shelf>,
    regions: Vec<Region>,
    bytes: usize,
    most: usize,
    used: usize,
    most_used: usize,
    clock: u64,
}

impl Default for Free {
    fn default() -> Self {
        Self {
            by_size: BTreeMap::new(),
            regions: Vec::new(),
            bytes: 0,
            most: RECYCLED_BYTES,
            used: 0,
            most_used: 0,
            clock: 0,
        }
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

    /// A small buffer that was dropped.
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

    /// A piece of a map, of a new one if it fits in no other.
    fn cut(&mut self, bytes: usize) -> Option<Memory> {
        if let Some(piece) = self.regions.iter_mut().find_map(|region| region.cut(bytes)) {
            return Some(piece);
        }
        let map = Map::new(MAP_BYTES.map_or(bytes, |least| bytes.max(least))).or_else(|_| Map::new(bytes)).ok()?;
        self.regions.push(Region::new(map));
        self.regions.last_mut()?.cut(bytes)
    }

    /// Bytes of free pages of maps that have memory.
    fn warm(&self) -> usize {
        self.regions.iter().map(Region::warm).sum::<usize>() * HUGE_PAGE
    }

    /// Takes the memory from pages of maps that are free, so many bytes or a little more; how many.
    fn clear(&mut self, bytes: usize) -> usize {
        let (most, mut cleared) = (bytes.div_ceil(HUGE_PAGE), 0);
        for region in self.regions.iter_mut().rev() {
            cleared += region.clear(most - cleared);
        }
        // Where pages cannot go alone, whole maps do.
        self.regions.retain(|region| {
            let warm = region.warm();
            let goes = region.is_free() && (warm == 0 || (MAP_BYTES.is_none() && cleared < most));
            cleared += if goes { warm } else { 0 };
            !goes
        });
        cleared * HUGE_PAGE
    }

    /// Keeps `memory`, and returns what has to go for it: small buffers of the sizes that were not asked for the longest, and
    /// of maps what is highest; first of these two whichever there is more of.
    fn keep(&mut self, memory: Memory) -> Vec<Memory> {
        let (bytes, mut gone) = (memory.bytes(), Vec::new());
        self.used = self.used.saturating_sub(bytes);
        match memory {
            Memory::Piece { map, offset, bytes } => {
                let own = self.regions.iter_mut().find(|region| Arc::ptr_eq(&region.map, &map));
                own.into_iter().for_each(|region| region.join(offset, bytes));
            }
            Memory::Lines(_) if bytes == 0 || bytes > self.room() => return vec![memory],
            Memory::Lines(_) => {
                self.bytes += bytes;
                self.by_size.entry(bytes).or_default().buffers.push(memory);
            }
        }
        let (most, mut warm) = (self.room(), self.warm());
        while self.bytes + warm > most {
            let excess = self.bytes + warm - most;
            if warm > self.bytes {
                let cleared = self.clear(excess.min(warm));
                warm = if cleared == 0 { 0 } else { warm.saturating_sub(cleared) };
                continue;
            }
            let full = self.by_size.values_mut().filter(|shelf| !shelf.buffers.is_empty());
            let Some(old) = full.min_by_key(|shelf| shelf.asked).and_then(|shelf| shelf.buffers.pop()) else { break };
            self.bytes -= old.bytes();
            gone.push(old);
        }
        gone
    }
}

/// Keeps dropped buffers and hands them out again.
#[derive(Default)]
pub(super) struct Recycler(Mutex<Free>);

impl Recycler {
    /// A buffer of `bytes` bytes (a multiple of 64), contents unspecified.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Result<CpuBuffer, BackendError> {
        // WebAssembly has no maps.
        let small = bytes < HUGE_PAGE || cfg!(target_family = "wasm");
        let recycled = {
            let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let found = if small { free.take(bytes) } else { free.cut(bytes) };
            free.lend(found.as_ref().map_or(bytes, Memory::bytes));
            found
        };
        let memory = recycled.or_else(|| if small { Memory::lines(bytes) } else { None }).ok_or_else(|| {
            self.returned(bytes);
            BackendError::Memory { device: "cpu".to_owned(), needed: bytes as u64, available: available_bytes() }
        })?;
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
        let memory = |bytes: usize| Memory::lines(bytes).unwrap();
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
        let kept = || {
            let free = recycler.0.lock().unwrap();
            free.bytes + free.warm()
        };
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

    /// Begins and ends of free pieces of all maps, and of those that are used.
    fn invariants(recycler: &Recycler, used: &[CpuBuffer]) {
        let free = recycler.0.lock().unwrap();
        for region in &free.regions {
            let own = used.iter().filter_map(|buffer| match buffer.memory.as_ref()? {
                Memory::Piece { map, offset, bytes } if Arc::ptr_eq(map, &region.map) => Some((*offset, *bytes, true)),
                _ => None,
            });
            let mut all: Vec<_> =
                region.free.iter().map(|(&offset, &bytes)| (offset, bytes, false)).chain(own).collect();
            all.sort_unstable();
            let mut end = 0;
            for pair in all.windows(2) {
                assert!(pair[0].2 || pair[1].2, "free pieces that touch are one");
            }
            for (offset, bytes, lent) in all {
                assert_eq!(offset, end, "no byte is lost or in two pieces");
                end += bytes;
                let pages = &region.backed[offset / HUGE_PAGE..end.div_ceil(HUGE_PAGE)];
                assert!(!lent || pages.iter().all(|&backed| backed));
            }
            assert_eq!(end, region.map.bytes);
        }
    }

    #[test]
    fn large_buffers_are_cut_from_maps_and_joined() {
        let (mebi, recycler) = (1 << 20, Arc::new(Recycler::default()));
        let mut numbers = 1u64;
        let mut below = |bound: usize| {
            numbers = numbers.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (numbers >> 33) as usize % bound
        };
        let mut used: Vec<CpuBuffer> = Vec::new();
        for round in 0..200 {
            if used.len() > 12 || (!used.is_empty() && below(2) == 0) {
                let mut gone = used.swap_remove(below(used.len()));
                let words = gone.words();
                assert!(words.iter().step_by(4099).all(|&word| word == words[0]), "nobody else wrote there");
                gone.words_mut().fill(u64::MAX);
            } else {
                let mut buffer = recycler.take(2 * mebi + 64 * below(mebi / 16)).unwrap();
                buffer.words_mut().fill(round);
                used.push(buffer);
            }
            invariants(&recycler, &used);
        }
        used.clear();
        invariants(&recycler, &used);
        let regions = recycler.0.lock().unwrap().regions.len();
        assert!(MAP_BYTES.is_none() || regions == 1, "{regions} maps");
    }

    #[test]
    fn what_is_cleared_comes_back_as_zeros_and_what_is_used_stays() {
        let (mebi, recycler) = (1 << 20, Arc::new(Recycler::default()));
        let mut all: Vec<CpuBuffer> = (0..4).map(|_| recycler.take(3 * mebi).unwrap()).collect();
        all.iter_mut().zip(1..).for_each(|(buffer, value)| buffer.words_mut().fill(value));
        let last = all.pop();
        drop((all.remove(1), last));
        let cleared = recycler.0.lock().unwrap().clear(64 * mebi);
        // Of 3 MiB each, from 3 and from 9: the only whole pages are those from 4 and from 10.
        assert_eq!(cleared, if MAP_BYTES.is_none() { 0 } else { 4 * mebi });
        invariants(&recycler, &all);
        assert!(all[0].words().iter().all(|&word| word == 1) && all[1].words().iter().all(|&word| word == 3));
        if MAP_BYTES.is_some() {
            let again = recycler.take(3 * mebi).unwrap();
            assert_eq!((again.words()[0], again.words()[mebi / 8]), (2, 0));
        }
    }
}
