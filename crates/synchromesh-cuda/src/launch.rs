//! Launches: views as arguments, limbs in groups that fit one launch, and the shapes of grids.

use synchromesh_ring::backend::{View, ViewMut};

use crate::arguments::{Addends, Limbs, MAX_ADDENDS, MAX_LIMBS, Pass, RingTables, Rows};
use crate::backend::Cuda;
use crate::device::{Device, DeviceError};
use crate::memory::DeviceBuffer;
use crate::work::{Argument, Launch};

/// Threads of a block in kernels without shared memory.
const THREADS: usize = 256;
/// Words that one thread of them handles.
const WORDS_PER_THREAD: usize = 4;
/// Most threads of a block of a transform: eight points a thread take about 72 registers, so three such blocks fit.
const NTT_THREADS: u32 = 256;
/// log2 of the largest degree that one block of threads transforms; its points take 64 KiB of shared memory.
const ONE_BLOCK_LOG_N: u32 = 13;
/// log2 of the points of a block of threads where there are two passes: 32 KiB.
const BLOCK_LOG_POINTS: u32 = 12;

/// Some rows of a buffer, by limb and batch element.
pub(crate) struct Place<'a, D: Device> {
    buffer: &'a DeviceBuffer<D>,
    batch: usize,
    stride: usize,
    rows: &'a [usize],
}

impl<'a, D: Device> Place<'a, D> {
    pub(crate) const fn of(view: &View<'a, Cuda<D>>) -> Self {
        Self { buffer: view.buffer, batch: view.batch, stride: view.batch_stride, rows: view.rows }
    }

    pub(crate) const fn of_mut(view: &'a ViewMut<'_, Cuda<D>>) -> Self {
        Self { buffer: view.buffer, batch: view.batch, stride: view.batch_stride, rows: view.rows }
    }

    /// Rows of a buffer, one polynomial.
    pub(crate) const fn rows(buffer: &'a DeviceBuffer<D>, rows: &'a [usize]) -> Self {
        Self { buffer, batch: 1, stride: 0, rows }
    }

    /// Where the buffer begins.
    pub(crate) const fn address(&self) -> u64 {
        self.buffer.address()
    }

    /// Distance of two batch elements, in rows.
    pub(crate) const fn stride(&self) -> u32 {
        self.stride as u32
    }
}

/// What the limbs of a view are split into: the groups of one launch each.
pub(crate) fn groups(limbs: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..limbs).step_by(most).map(move |first| first..limbs.min(first + most))
}

impl<D: Device> Cuda<D> {
    /// Limbs `range` of a place as an argument, for `batch` elements; every row is one that the buffer has.
    pub(crate) fn rows(
        &self,
        place: &Place<'_, D>,
        batch: usize,
        range: std::ops::Range<usize>,
    ) -> Result<Rows, DeviceError> {
        let row = self.checked_rows(place, batch, range)?;
        Ok(Rows { words: place.buffer.address(), stride: place.stride as u32, unused: 0, row })
    }

    /// The rows of limbs `range`, at most `MOST` of them, for `batch` elements.
    pub(crate) fn checked_rows<const MOST: usize>(
        &self,
        place: &Place<'_, D>,
        batch: usize,
        range: std::ops::Range<usize>,
    ) -> Result<[u32; MOST], DeviceError> {
        if !place.buffer.is_of(self.pool()) {
            return Err(DeviceError::OtherDevice { device: self.pool().device().properties().name.clone() });
        }
        let have = place.buffer.words() >> self.tables().log_n;
        let mut rows = [0; MOST];
        for (to, &row) in rows.iter_mut().zip(&place.rows[range]) {
            let last = row + batch.saturating_sub(1) * place.stride;
            if last >= have || last > u32::MAX as usize {
                return Err(DeviceError::NoSuchRow { row: last, rows: have });
            }
            *to = row as u32;
        }
        Ok(rows)
    }

    /// Queues a kernel; nothing where the grid is empty.
    ///
    /// # Safety
    /// As [`Device::launch`].
    pub(crate) unsafe fn queue(
        &self,
        kernel: &'static std::ffi::CStr,
        launch: Launch,
        arguments: &[Argument<'_>],
    ) -> Result<(), DeviceError> {
        if launch.grid.contains(&0) {
            return Ok(());
        }
        // SAFETY: forwarded contract.
        unsafe { self.pool().launch(kernel, launch, arguments)? };
        if self.waits() { self.synchronize() } else { Ok(()) }
    }

    /// A launch that handles each of `words` words of each limb of each batch element.
    pub(crate) fn each_word(words: usize, limbs: usize, batch: usize) -> Launch {
        let threads = THREADS.min(words.div_ceil(WORDS_PER_THREAD));
        let blocks = words.div_ceil(threads * WORDS_PER_THREAD);
        Launch { grid: [blocks as u32, limbs as u32, batch as u32], threads: threads as u32, shared: 0 }
    }

    /// Runs an element-wise kernel on places of equal shape, the first of which it writes: its arguments are the ring,
    /// the primes, the places and what `more` gives for a group of limbs.
    ///
    /// # Safety
    /// The kernel takes these arguments and `more`.
    pub(crate) unsafe fn pointwise<T: crate::work::Parameter>(
        &self,
        kernel: &'static std::ffi::CStr,
        primes: &[usize],
        places: &[Place<'_, D>],
        more: impl Fn(std::ops::Range<usize>) -> Option<T>,
    ) -> Result<(), DeviceError> {
        let batch = places.first().map_or(0, |place| place.batch);
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let rows: Vec<Rows> =
                places.iter().map(|place| self.rows(place, batch, range.clone())).collect::<Result<_, _>>()?;
            let more = more(range.clone());
            let mut arguments = vec![Argument::new(self.tables()), Argument::new(&limbs)];
            arguments.extend(rows.iter().map(Argument::new));
            arguments.extend(more.iter().map(Argument::new));
            let launch = Self::each_word(1 << self.tables().log_n, range.len(), batch);
            // SAFETY: by contract the kernel takes these arguments; `rows` has checked that the rows exist, and the
            // kernel stays within them.
            unsafe { self.queue(kernel, launch, &arguments)? };
        }
        Ok(())
    }

    /// Transforms rows from `src` to `dst`, which may be the same.
    pub(crate) fn transform(
        &self,
        inverse: bool,
        primes: &[usize],
        [src, dst]: [&Place<'_, D>; 2],
    ) -> Result<(), DeviceError> {
        let passes = passes(self.tables().log_n);
        let count = passes.len();
        let forward = [c"ntt_forward_first", c"ntt_forward_last"];
        let backward = [c"ntt_inverse_first", c"ntt_inverse_last"];
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let (from, to) = (self.rows(src, dst.batch, range.clone())?, self.rows(dst, dst.batch, range.clone())?);
            for step in 0..count {
                let index = if inverse { count - 1 - step } else { step };
                let kernel = if inverse { backward } else { forward }[usize::from(index + 1 == count)];
                let rows = [if step == 0 { &from } else { &to }, &to];
                // SAFETY: the four kernels take the arguments of a pass alone; the rows exist.
                unsafe { self.pass(kernel, (&limbs, range.len(), dst.batch), rows, &passes[index], None)? };
            }
        }
        Ok(())
    }

    /// `dst` = (NTT(x) + the addends)(X^g) in slots with g = inverse^-1 mod 2N; `x` is used up.
    pub(crate) fn transform_and_add(
        &self,
        primes: &[usize],
        [x, dst]: [&Place<'_, D>; 2],
        addends: &[Place<'_, D>],
        inverse: u32,
    ) -> Result<(), DeviceError> {
        let passes = passes(self.tables().log_n);
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let (from, to) = (self.rows(x, x.batch, range.clone())?, self.rows(dst, x.batch, range.clone())?);
            let mut more = Addends { rows: [from; MAX_ADDENDS], count: addends.len() as u32, inverse };
            for (rows, addend) in more.rows.iter_mut().zip(addends) {
                *rows = self.rows(addend, x.batch, range.clone())?;
            }
            let shape = (&limbs, range.len(), x.batch);
            let (last, before) = passes.split_last().expect("invariant: a transform has a pass");
            for pass in before {
                // SAFETY: the kernel takes the arguments of a pass alone; the rows exist.
                unsafe { self.pass(c"ntt_forward_first", shape, [&from, &from], pass, None)? };
            }
            let more = Argument::new(&more);
            // SAFETY: the kernel takes the addends besides; the rows exist.
            unsafe { self.pass(c"ntt_forward_sum", shape, [&from, &to], last, Some(more))? };
        }
        Ok(())
    }

    /// Queues one pass of a transform.
    ///
    /// # Safety
    /// The kernel takes the arguments of a pass and `more`, and the rows are those of existing limbs.
    pub(crate) unsafe fn pass(
        &self,
        kernel: &'static std::ffi::CStr,
        (limbs, count, batch): (&Limbs, usize, usize),
        [src, dst]: [&Rows; 2],
        pass: &Pass,
        more: Option<Argument<'_>>,
    ) -> Result<(), DeviceError> {
        let points = pass.layers + pass.log_sets;
        let launch = Launch {
            grid: [1 << (self.tables().log_n - points), count as u32, batch as u32],
            threads: NTT_THREADS.min(1 << (points - 3)),
            shared: 8 << points,
        };
        let mut arguments = vec![Argument::new(self.tables()), Argument::new(limbs), Argument::new(src)];
        arguments.extend([Argument::new(dst), Argument::new(pass)].into_iter().chain(more));
        // SAFETY: by contract; the sets of points of all blocks cover a row.
        unsafe { self.queue(kernel, launch, &arguments) }
    }

    /// The constants of the ring, by address.
    pub(crate) fn tables(&self) -> &RingTables {
        self.ring_tables().addresses()
    }
}

/// The passes of a transform: one where a block of threads holds all points, else two of about equal size.
pub(crate) fn passes(log_n: u32) -> Vec<Pass> {
    if log_n <= ONE_BLOCK_LOG_N {
        return vec![Pass { first: 0, layers: log_n, log_sets: 0, unused: 0 }];
    }
    let first = log_n / 2;
    let pass = |first, layers| Pass { first, layers, log_sets: BLOCK_LOG_POINTS - layers, unused: 0 };
    vec![pass(0, first), pass(first, log_n - first)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_cover_all_layers_and_keep_blocks_of_64_slots_whole() {
        for log_n in synchromesh_ring::ntt::MIN_LOG_N..=synchromesh_ring::ntt::MAX_LOG_N {
            let passes = passes(log_n);
            assert_eq!(passes.iter().map(|pass| pass.layers).sum::<u32>(), log_n);
            assert!(passes.iter().all(|pass| pass.layers >= 4 && pass.layers + pass.log_sets <= log_n));
            assert!(passes.last().is_some_and(|last| last.layers >= 6 && last.first + last.layers == log_n));
        }
    }
}
