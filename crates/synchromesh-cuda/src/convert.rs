//! Base conversions on a device: their constants, and launches of several at once.

use std::sync::Arc;

use synchromesh_ring::backend::{ConvertMode, Converted, View, ViewMut};
use synchromesh_ring::rns::{ConvertSpec, Count};
use synchromesh_ring::{BackendError, IndexSet, Ring};

use crate::arguments::{
    ConversionTables, MAX_TASK_ROWS, MAX_TASKS, Pair, Prime, Source, Target, Task, TaskRows, Tasks,
};
use crate::cuda::Cuda;
use crate::device::{Device, DeviceError};
use crate::launch::Place;
use crate::memory::{DeviceBuffer, Pool};
use crate::work::{Argument, Launch};

/// Most threads of a block of a conversion.
const THREADS: usize = 128;
/// Bytes of shared memory that a block of a conversion should not exceed, so that several fit a multiprocessor.
const SHARED: usize = 32 << 10;
/// Destinations of one block: the sources are read and prescaled once for all of them. The larger where blocks are so many
/// that every multiprocessor has several nevertheless. Multiples of [`TILE_TARGETS`].
const GROUPS: [usize; 2] = [16, 32];
const MANY_BLOCKS: usize = 1024;
/// Most sources, which leaves room for the rows of a group.
const MAX_SOURCES: usize = 128;
/// Destinations, and coefficients, that a thread computes together.
const TILE_TARGETS: usize = 4;
const TILE_COEFFICIENTS: usize = 2;
/// Most sources and targets of conversions in registers, and coefficients of a thread of theirs.
const FEW: usize = 2;
const FEW_COEFFICIENTS: usize = 4;
/// Bits of words that are integers in doubles.
const SHORT_BITS: u32 = 52;

/// A base conversion prepared for a device.
pub struct DeviceConversion<D: Device> {
    /// Its tables, with their addresses first.
    memory: DeviceBuffer<D>,
    sources: usize,
    targets: usize,
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
        let widest = |set: &IndexSet| set.iter().map(|i| ring.modulus(i).bits()).max().unwrap_or(2);
        // A count of overflows is below 2^33.
        let bits = [widest(src).div_ceil(2).max(17), widest(dst).div_ceil(2)];
        let columns = src.len() as u32 + 1;
        let short_sums = bits[0] + bits[1] + u32::BITS - (columns - 1).leading_zeros() <= SHORT_BITS;
        let sources: Vec<Source> = src.iter().enumerate().map(|(j, i)| source(ring, j, i, spec)).collect();
        let fast = pool.device().properties().fast_doubles;
        let target = |(r, i)| target(ring, i, spec.bias[r], (bits, short_sums && fast));
        let targets: Vec<Target> = dst.iter().enumerate().map(target).collect();
        let matrix = tiles(ring, dst, spec, bits[1]);
        let (count, half) = match &spec.overflow {
            Count::Fixed { half } => (1, *half),
            Count::Double { half } => (2, *half),
            Count::Montgomery32 { .. } => (3, false),
            _ => (0, false),
        };
        let mut tables = ConversionTables {
            sources: 0,
            targets: 0,
            matrix: 0,
            source_count: src.len() as u32,
            target_count: dst.len() as u32,
            count,
            half: u32::from(half),
            source_bits: bits[0],
            target_bits: bits[1],
            prescaled: u32::from(spec.prescale.is_none()),
            unused: 0,
        };
        let head = size_of::<ConversionTables>() / size_of::<u64>();
        let parts: [&[u64]; 3] = [bytemuck::cast_slice(&sources), bytemuck::cast_slice(&targets), &matrix];
        // Each part begins where 16 bytes do.
        let at = parts.iter().scan(head, |end, part| {
            let begin = end.next_multiple_of(2);
            *end = begin + part.len();
            Some(begin)
        });
        let at: Vec<usize> = at.collect();
        let mut words = vec![0; at[2] + matrix.len()];
        let mut memory = pool.take(words.len())?;
        let address = |i: usize| memory.address() + (at[i] * size_of::<u64>()) as u64;
        (tables.sources, tables.targets, tables.matrix) = (address(0), address(1), address(2));
        words[..head].copy_from_slice(bytemuck::cast_slice(&[tables]));
        parts.iter().zip(&at).for_each(|(part, &at)| words[at..at + part.len()].copy_from_slice(part));
        memory.write(0, &words)?;
        Ok(Self { memory, sources: src.len(), targets: dst.len() })
    }
}

/// The constants of a destination; `in_doubles` says whether its sums, of parts of so many bits, are reduced in doubles where
/// it is narrow enough.
fn target(ring: &Ring, index: usize, bias: u64, ([a, b], in_doubles): ([u32; 2], bool)) -> Target {
    let q = ring.modulus(index);
    let prime = Prime::new(&q, ring.log_n(), in_doubles);
    let in_doubles = prime.in_doubles != 0;
    let of = |x: u64| Pair::of(q.reduce(x), &q, in_doubles);
    let factors = [b, a, a + b].map(|bits| of(1 << bits));
    let (bias, in_doubles) = (of(bias).value, u32::from(in_doubles));
    Target { factors, bias, prime: index as u32, in_doubles, modulus: prime.modulus, inverse: prime.inverse }
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
    /// Runs conversions from rows of one buffer to rows of another, for each batch element of `dst`: as many tasks in one
    /// launch as fit it.
    pub(crate) fn run_conversions(
        &self,
        each: &[Converted<'_, Self>],
        src: View<'_, Self>,
        dst: &ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Result<(), DeviceError> {
        let from = Place::of(&src);
        let to = Place::of_mut(dst);
        let most = each.iter().map(|one| one.conversion.sources).max().unwrap_or(1);
        let few = most <= FEW && each.iter().all(|one| one.conversion.targets <= FEW);
        let (kernel, coefficients) =
            if few { (c"convert_few", FEW_COEFFICIENTS) } else { (c"convert", TILE_COEFFICIENTS) };
        // Blocks are as large as the conversion with the most sources allows.
        let column = if few { 0 } else { TILE_COEFFICIENTS * (most + 1) * size_of::<u64>() };
        let mut threads = THREADS;
        while threads > 32 && threads * column > SHARED {
            threads /= 2;
        }
        let blocks = self.ring.n() / (threads * coefficients);
        let many = blocks * each.len() * dst.batch >= MANY_BLOCKS;
        let mut list = List::new(GROUPS[usize::from(many)]);
        let run = |list: &mut List| {
            let (tasks, rows) = (Tasks { task: list.task }, TaskRows { row: list.row });
            let grid = [blocks as u32, list.tasks as u32, dst.batch as u32];
            let (from, from_stride, to, to_stride) = (from.address(), from.stride(), to.address(), to.stride());
            let accumulate = u32::from(mode == ConvertMode::Add);
            let arguments = [
                Argument::new(self.tables()),
                Argument::new(&tasks),
                Argument::new(&rows),
                Argument::new(&from),
                Argument::new(&to),
                Argument::new(&from_stride),
                Argument::new(&to_stride),
                Argument::new(&accumulate),
            ];
            let launch = Launch { grid, cluster: 1, threads: threads as u32, shared: (threads * column) as u32 };
            list.clear();
            // SAFETY: these are the kernel's arguments; the rows exist, and the threads of all blocks are the coefficients
            // of a row.
            unsafe { self.queue(kernel, launch, &arguments) }
        };
        for one in each {
            let (conversion, count) = (one.conversion, one.conversion.sources);
            let (from, to) = (from.with(&one.from[..count]), to.with(one.to));
            let from: [u32; MAX_SOURCES] = self.checked_rows(&from, dst.batch, 0..count)?;
            let mut first = 0;
            let mut sources = None;
            let targets = one.to.len().min(conversion.targets);
            while first < targets {
                let last = targets.min(first + list.group);
                let rows: [u32; GROUPS[1]] = self.checked_rows(&to, dst.batch, first..last)?;
                let rows = &rows[..last - first];
                let new = if sources.is_none() { &from[..count] } else { &[] };
                if !list.holds(new.len() + rows.len()) {
                    run(&mut list)?;
                    sources = None;
                    continue;
                }
                let at = *sources.get_or_insert_with(|| list.push(new));
                let task = Task {
                    conversion: conversion.memory.address(),
                    sources: at,
                    targets: list.push(rows),
                    first: first as u16,
                    last: last as u16,
                };
                list.task[list.tasks] = task;
                list.tasks += 1;
                first = last;
            }
        }
        if list.tasks > 0 { run(&mut list) } else { Ok(()) }
    }
}

/// The tasks of a launch in the making.
struct List {
    task: [Task; MAX_TASKS],
    tasks: usize,
    row: [u32; MAX_TASK_ROWS],
    rows: usize,
    /// Destinations of a task, at most.
    group: usize,
}

impl List {
    fn new(group: usize) -> Self {
        Self { task: [Task::default(); MAX_TASKS], tasks: 0, row: [0; MAX_TASK_ROWS], rows: 0, group }
    }

    /// Whether there is room for one more task with so many rows.
    const fn holds(&self, rows: usize) -> bool {
        self.tasks < MAX_TASKS && self.rows + rows <= MAX_TASK_ROWS
    }

    /// Appends rows; where they begin.
    fn push(&mut self, rows: &[u32]) -> u16 {
        let at = self.rows;
        self.rows += rows.len();
        self.row[at..self.rows].copy_from_slice(rows);
        at as u16
    }

    fn clear(&mut self) {
        *self = Self::new(self.group);
    }
}
