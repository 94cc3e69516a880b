//! How long a card takes for what was counted of a launch: a model, of which one number was measured, on an H200.
//!
//! A launch takes the longest of what it asks for, each at the card's rate and at [`UTILISATION`] of it:
//! - instructions of warps, of which a multiprocessor issues four a clock; those of each kind of lanes by their number;
//! - passes of its first-level cache and shared memory, one a clock: over the banks, and for every 128 bytes of device
//!   memory;
//! - sectors, at the rate of the second-level cache; those that it has not, at the rate of memory ([`Card::memory`] is
//!   nine tenths of the maker's or a little less, as an assumption, and is not lowered again).
//!
//! What a multiprocessor does takes as long as the one with the most blocks needs, and longer where fewer warps than
//! [`ENOUGH_WARPS`] of those that it could hold are there to hide latency: in proportion. Each launch adds [`LAUNCH`].
//! Instructions are those of sm_90 for every card; other rates are the makers', but those of second-level caches, which are
//! assumed.

use crate::emulated::Counted;
use crate::work::Launch;

/// The part of its peak that a multiprocessor reaches; assumed.
pub const UTILISATION: f64 = 0.8;
/// Seconds that a launch of a recording adds; assumed.
pub const LAUNCH: f64 = 1.0e-6;
/// The part of a multiprocessor's warps that hide latency: with 0.22 to 0.24 of them there, an H200 issued instructions in 0.33
/// to 0.43 of its clocks, with half as many in 0.18 to 0.29 (docs/gpu.md), which is [`UTILISATION`] at about this.
pub const ENOUGH_WARPS: f64 = 0.55;
/// Warp instructions that a multiprocessor issues a clock.
const ISSUED: f64 = 4.0;
/// Registers of a multiprocessor.
const REGISTERS: u32 = 64 << 10;
/// Threads of a warp.
const WARP: u32 = 32;

/// Registers of a thread by kernel and architecture, by ptxas.
const REGISTERS_USED: &str = include_str!("../ptx/registers.csv");

/// What is known of a card.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Card {
    /// Its name.
    pub name: &'static str,
    /// Its architecture, as ptxas calls it.
    pub architecture: &'static str,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Clocks a second.
    pub clock: f64,
    /// Lanes of a multiprocessor: that multiply, for sums and logic of integers, for doubles.
    pub lanes: [f64; 3],
    /// Bytes a second from memory.
    pub memory: f64,
    /// Bytes a second from the second-level cache.
    pub cache: f64,
    /// Bytes of the second-level cache.
    pub cache_bytes: u64,
    /// Most threads of a multiprocessor.
    pub threads: u32,
    /// Most blocks of a multiprocessor.
    pub blocks: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared: u32,
    /// Whether transforms go by clusters, and in doubles where primes allow it.
    pub clusters: bool,
    /// Whether doubles are fast.
    pub fast_doubles: bool,
}

/// NVIDIA A100, 80 GB, SXM.
pub const A100: Card = Card {
    name: "A100",
    architecture: "sm_80",
    multiprocessors: 108,
    clock: 1.41e9,
    lanes: [64.0, 64.0, 32.0],
    memory: 1.75e12,
    cache: 4.5e12,
    cache_bytes: 40 << 20,
    threads: 2048,
    blocks: 32,
    shared: 164 << 10,
    clusters: false,
    fast_doubles: true,
};

/// NVIDIA H100, 80 GB, SXM.
pub const H100: Card = Card {
    name: "H100",
    architecture: "sm_90",
    multiprocessors: 132,
    clock: 1.98e9,
    lanes: [64.0, 64.0, 64.0],
    memory: 3.0e12,
    cache: 6.0e12,
    cache_bytes: 50 << 20,
    threads: 2048,
    blocks: 32,
    shared: 228 << 10,
    clusters: true,
    fast_doubles: true,
};

/// NVIDIA H200: an H100 with faster memory.
pub const H200: Card = Card { name: "H200", memory: 4.0e12, ..H100 };

/// NVIDIA GeForce RTX 4090.
pub const RTX_4090: Card = Card {
    name: "RTX 4090",
    architecture: "sm_89",
    multiprocessors: 128,
    clock: 2.52e9,
    lanes: [64.0, 64.0, 2.0],
    memory: 0.92e12,
    cache: 5.0e12,
    cache_bytes: 72 << 20,
    threads: 1536,
    blocks: 24,
    shared: 100 << 10,
    clusters: false,
    fast_doubles: false,
};

/// The cards that predictions are made for.
pub const CARDS: [Card; 4] = [A100, H100, H200, RTX_4090];

/// What a launch takes, and what takes longest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Prediction {
    /// Seconds, with what the launch itself adds.
    pub seconds: f64,
    /// What the others wait for.
    pub bound: &'static str,
    /// Warps that a multiprocessor holds over those it could.
    pub occupancy: f64,
}

/// Registers of a thread of a kernel; none where the architecture does not load it.
#[must_use]
pub fn registers(kernel: &str, architecture: &str) -> Option<u32> {
    let mut lines = REGISTERS_USED.lines();
    let column = lines.next()?.split(',').position(|name| name == architecture)?;
    let row = lines.find(|line| line.split(',').next() == Some(kernel))?;
    row.split(',').nth(column)?.parse().ok()
}

impl Card {
    /// Blocks of a launch that a multiprocessor holds at a time; 0 for a kernel that is not known.
    #[must_use]
    pub fn resident(&self, kernel: &str, launch: Launch) -> u32 {
        let Some(registers) = registers(kernel, self.architecture) else { return 0 };
        // Registers are had by warps, 256 at a time; shared memory has a kilobyte besides for each block.
        let warps = launch.threads.div_ceil(WARP);
        let by_registers = REGISTERS / (registers * WARP).next_multiple_of(256) / warps.max(1);
        let by_shared = self.shared / (launch.shared + 1024);
        by_registers.min(by_shared).min(self.threads / (warps * WARP).max(1)).min(self.blocks)
    }

    /// Warps that a multiprocessor holds over those it could.
    #[must_use]
    pub fn occupancy(&self, kernel: &str, launch: Launch) -> f64 {
        self.share(self.resident(kernel, launch), launch)
    }

    /// Warps of so many blocks over those that a multiprocessor could hold.
    fn share(&self, blocks: u32, launch: Launch) -> f64 {
        f64::from(blocks * launch.threads.div_ceil(WARP)) / f64::from(self.threads / WARP)
    }

    /// The time of a launch.
    #[must_use]
    pub fn predict(&self, counted: &Counted) -> Prediction {
        let Counted { kernel, launch, counts } = counted;
        let occupancy = self.occupancy(kernel, *launch);
        let [x, y, z] = launch.grid.map(f64::from);
        let (blocks, all) = (x * y * z, f64::from(self.multiprocessors));
        let most = (blocks / all).ceil();
        // As many warps as fit, or as there are blocks for.
        let there = self.share(self.resident(kernel, *launch).min(most as u32), *launch);
        // The multiprocessor with the most blocks, and latency that nothing hides.
        let slower = most * all / blocks / (there / ENOUGH_WARPS).min(1.0);
        let clocks = all * self.clock * UTILISATION / slower;
        let lanes = |count: u64, lanes: f64| count as f64 * f64::from(WARP) / lanes / clocks;
        let passes = counts.shared_passes as f64 + counts.global_sectors as f64 / 4.0;
        let times = [
            ("issue", counts.assembled as f64 / ISSUED / clocks),
            ("multiply", lanes(counts.assembled_multiply, self.lanes[0])),
            ("integer", lanes(counts.assembled_integer, self.lanes[1])),
            ("double", lanes(counts.assembled_double, self.lanes[2])),
            ("shared", passes / clocks),
            ("cache", 32.0 * counts.global_sectors as f64 / self.cache / UTILISATION),
            ("memory", 32.0 * counts.missed_sectors as f64 / self.memory),
        ];
        let longest = |a: (&'static str, f64), b: (&'static str, f64)| if b.1 > a.1 { b } else { a };
        let (bound, seconds) = times.into_iter().fold(("launch", 0.0), longest);
        Prediction { seconds: seconds + LAUNCH, bound, occupancy }
    }
}
