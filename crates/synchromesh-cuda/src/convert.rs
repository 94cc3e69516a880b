//! Base conversions on a device: their constants, and the launch.

use std::sync::Arc;

use synchromesh_ring::backend::ConvertMode;
use synchromesh_ring::rns::{ConvertSpec, Count};
use synchromesh_ring::{BackendError, IndexSet, Ring};

use crate::arguments::{ConversionTables, MAX_LIMBS, MAX_SOURCES, Pair, Source, SourceRows, Target};
use crate::cuda::Cuda;
use crate::device::{Device, DeviceError};
use crate::launch::{Place, groups};
use crate::memory::{DeviceBuffer, Pool};
use crate::work::{Argument, Launch};

/// Most threads of a block of a conversion.
const THREADS: usize = 128;
/// Bytes of shared memory that a block of a conversion should not exceed, so that several fit a multiprocessor.
const SHARED: usize = 32 << 10;
/// Destinations of one block, where there are many: the sources are read and prescaled once for all of them. A multiple of
/// [`TILE_TARGETS`].
const GROUP: u32 = 16;
/// Destinations, and coefficients, that a thread computes together.
const TILE_TARGETS: usize = 4;
const TILE_COEFFICIENTS: usize = 2;

/// A base conversion prepared for a device.
pub struct DeviceConversion<D: Device> {
    _sources: DeviceBuffer<D>,
    _targets: DeviceBuffer<D>,
    _matrix: DeviceBuffer<D>,
    tables: ConversionTables,
    /// Whether the input carries the factors of the sources already.
    prescaled: bool,
}

impl<D: Device> DeviceConversion<D> {
    pub(crate) fn new(
        pool: &Arc<Pool<D>>,
        ring: &Ring,
        src: &IndexSet,
        dst: &IndexSet,
        spec: &ConvertSpec,
    ) -> Result<Self, BackendError> {
        check(src.len(), dst.len(), spec)?;
        let sources: Vec<Source> = src.iter().enumerate().map(|(j, i)| source(ring, j, i, spec)).collect();
        let target = |(r, i): (usize, usize)| {
            let q = ring.modulus(i);
            Target { bias: q.reduce(spec.bias[r]), prime: i as u32, unused: 0 }
        };
        let targets: Vec<Target> = dst.iter().enumerate().map(target).collect();
        let widest = src.iter().chain(dst.iter()).map(|i| ring.modulus(i).bits()).max().unwrap_or(2);
        // A count of overflows is below 2^33.
        let half_bits = widest.div_ceil(2).max(17);
        let matrix = tiles(ring, dst, spec, half_bits);
        let upload = |words: &[u64]| -> Result<DeviceBuffer<D>, DeviceError> {
            let mut buffer = pool.take(words.len())?;
            buffer.write(0, words)?;
            Ok(buffer)
        };
        let (source_count, target_count) = (sources.len() as u32, targets.len() as u32);
        let sources = upload(bytemuck::cast_slice(&sources))?;
        let targets = upload(bytemuck::cast_slice(&targets))?;
        let matrix = upload(&matrix)?;
        let (count, half) = match &spec.overflow {
            Count::Fixed { half } => (1, *half),
            Count::Double { half } => (2, *half),
            Count::Montgomery32 { .. } => (3, false),
            _ => (0, false),
        };
        let tables = ConversionTables {
            sources: sources.address(),
            targets: targets.address(),
            matrix: matrix.address(),
            source_count,
            target_count,
            count,
            half: u32::from(half),
            half_bits,
            unused: 0,
        };
        let prescaled = spec.prescale.is_none();
        Ok(Self { _sources: sources, _targets: targets, _matrix: matrix, tables, prescaled })
    }
}

/// The matrix, and the corrections as its last column, in tiles of [`TILE_TARGETS`] rows, column after column, each word in
/// two parts of `bits` bits.
fn tiles(ring: &Ring, dst: &IndexSet, spec: &ConvertSpec, bits: u32) -> Vec<u64> {
    let rows: Vec<_> = dst.iter().zip(spec.matrix.iter().zip(&spec.correction)).collect();
    let sources = spec.matrix.first().map_or(0, Vec::len);
    let mut words = Vec::with_capacity(rows.len().next_multiple_of(TILE_TARGETS) * (sources + 1));
    for tile in rows.chunks(TILE_TARGETS) {
        for j in 0..=sources {
            let word = |row: &[u64], correction: u64| if j < sources { row[j] } else { correction };
            let column = tile.iter().map(|(i, (row, last))| ring.modulus(*i).reduce(word(row, **last)));
            let parts = column.map(|x| (x >> bits) << 32 | x & ((1 << bits) - 1));
            words.extend(parts.chain(std::iter::repeat(0)).take(TILE_TARGETS));
        }
    }
    words
}

fn source(ring: &Ring, j: usize, index: usize, spec: &ConvertSpec) -> Source {
    let modulus = ring.modulus(index);
    let (p, bits) = (modulus.value(), modulus.bits());
    let prescale = spec.prescale.as_ref().map_or(1, |factors| modulus.reduce(factors[j]));
    let weight = if let Count::Montgomery32 { weights } = &spec.overflow { weights[j] } else { 0 };
    Source {
        p,
        factor: ((1u128 << (51 + bits)) / u128::from(p)) as u64,
        prescale: Pair::new(prescale, &modulus),
        inverse: 1.0 / p as f64,
        bits,
        weight,
    }
}

/// That the tables of a specification fit the numbers of primes.
fn check(sources: usize, destinations: usize, spec: &ConvertSpec) -> Result<(), BackendError> {
    let refuse = |reason: String| Err(BackendError::Unavailable { device: "cuda".to_owned(), reason });
    if sources == 0 || sources > MAX_SOURCES {
        return refuse(format!("base conversion from {sources} moduli; 1 to {MAX_SOURCES} are supported"));
    }
    let weights = if let Count::Montgomery32 { weights } = &spec.overflow { weights.len() } else { sources };
    let rows = spec.matrix.iter().all(|row| row.len() == sources) && spec.matrix.len() == destinations;
    let lists = [
        (spec.prescale.as_ref().map_or(sources, Vec::len), sources),
        (weights, sources),
        (spec.correction.len(), destinations),
        (spec.bias.len(), destinations),
    ];
    if rows && lists.iter().all(|(have, need)| have == need) {
        return Ok(());
    }
    refuse(format!("base conversion from {sources} to {destinations} moduli: a table has another size"))
}

impl<D: Device> Cuda<D> {
    /// Runs a conversion on each batch element of `dst`.
    pub(crate) fn run_conversion(
        &self,
        conversion: &DeviceConversion<D>,
        (src, dst): (&Place<'_, D>, &Place<'_, D>),
        (batch, limbs): (usize, usize),
        mode: ConvertMode,
    ) -> Result<(), DeviceError> {
        let tables = &conversion.tables;
        let sources = tables.source_count as usize;
        let row = self.checked_rows(src, batch, 0..sources)?;
        let src = SourceRows { words: src.address(), stride: src.stride(), unused: 0, row };
        let column = TILE_COEFFICIENTS * (sources + 1) * size_of::<u64>();
        let mut threads = THREADS;
        while threads > 32 && threads * column > SHARED {
            threads /= 2;
        }
        let shared = (threads * column) as u32;
        let blocks = (1u32 << self.tables().log_n) / (threads * TILE_COEFFICIENTS) as u32;
        let (accumulate, prescaled) = (u32::from(mode == ConvertMode::Add), u32::from(conversion.prescaled));
        for range in groups(limbs.min(tables.target_count as usize), MAX_LIMBS) {
            let rows = self.rows(dst, batch, range.clone())?;
            let (first, last) = (range.start as u32, range.end as u32);
            let grid = [blocks, (last - first).div_ceil(GROUP), batch as u32];
            let arguments = [
                Argument::new(self.tables()),
                Argument::new(tables),
                Argument::new(&src),
                Argument::new(&rows),
                Argument::new(&first),
                Argument::new(&last),
                Argument::new(&GROUP),
                Argument::new(&accumulate),
                Argument::new(&prescaled),
            ];
            // SAFETY: these are the kernel's arguments; the rows exist, and the threads of all blocks are the
            // coefficients of a row.
            unsafe {
                self.queue(c"convert", Launch { grid, cluster: 1, threads: threads as u32, shared }, &arguments)?;
            };
        }
        Ok(())
    }
}
