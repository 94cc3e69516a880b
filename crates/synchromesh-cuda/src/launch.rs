//! Launches: views as arguments, limbs in groups that fit one launch, and the shapes of grids.

use synchromesh_ring::Backend;
use synchromesh_ring::backend::{View, ViewMut};

use crate::arguments::{
    Chosen, IN_SECOND, Limbs, MAX_ADDENDS, MAX_LIMBS, PairRows, Pass, RingTables, Rows, SlotAddends,
};
use crate::cuda::{Cuda, ONE_BLOCK_LOG_N, Transforms};
use crate::device::{Device, DeviceError, MAX_CLUSTER};
use crate::memory::DeviceBuffer;
use crate::work::{Argument, Launch};

/// Threads of a block in kernels without shared memory.
const THREADS: usize = 256;
/// Words that one thread of them handles.
const WORDS_PER_THREAD: usize = 4;
/// Most threads of a block of a transform: eight points a thread take about 72 registers, so three such blocks fit.
pub(crate) const NTT_THREADS: u32 = 256;
/// log2 of the points of a block of threads where there are two passes: 32 KiB.
const BLOCK_LOG_POINTS: u32 = 12;
/// Layers of a last pass, at least: it keeps blocks of 64 slots whole.
pub(crate) const LAST_LAYERS: u32 = 6;

/// Some rows of a buffer, by limb and batch element.
pub(crate) struct Place<'a, D: Device> {
    buffer: &'a DeviceBuffer<D>,
    batch: usize,
    stride: usize,
    rows: &'a [usize],
}

impl<'a, D: Device> Place<'a, D> {
    pub(crate) const fn of<B: Backend<Buffer = DeviceBuffer<D>>>(view: &View<'a, B>) -> Self {
        Self { buffer: view.buffer, batch: view.batch, stride: view.batch_stride, rows: view.rows }
    }

    pub(crate) const fn of_mut<B: Backend<Buffer = DeviceBuffer<D>>>(view: &'a ViewMut<'_, B>) -> Self {
        Self { buffer: view.buffer, batch: view.batch, stride: view.batch_stride, rows: view.rows }
    }

    /// Rows of a buffer, one polynomial.
    pub(crate) const fn rows(buffer: &'a DeviceBuffer<D>, rows: &'a [usize]) -> Self {
        Self { buffer, batch: 1, stride: 0, rows }
    }

    /// Other rows of the same buffer.
    pub(crate) const fn with(self, rows: &'a [usize]) -> Self {
        Self { rows, ..self }
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

impl<D: Device> Clone for Place<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: Device> Copy for Place<'_, D> {}

/// One polynomial whose transform is added to others in slots.
pub(crate) struct PlacedSum<'a, D: Device> {
    pub(crate) x: Place<'a, D>,
    pub(crate) addends: Vec<Place<'a, D>>,
    pub(crate) dst: Place<'a, D>,
}

/// Layers of the last of two passes, for which the kernels are compiled.
pub(crate) const TWO_PASSES_LAST: u32 = 8;

/// Words that are left out behind every 16 in shared memory; more where rounds are of two layers. Twins of those in
/// kernels/rounds.h.
const PADDING: u32 = 1;
const PADDING_OF_FOURS: u32 = 5;

/// Bytes of shared memory for 2^log_points points.
pub(crate) const fn shared_bytes(log_points: u32) -> u32 {
    let words = 1 << log_points;
    8 * (words + PADDING * (words / 16))
}

/// The same where rounds are of two layers.
pub(crate) const fn shared_bytes_of_fours(log_points: u32) -> u32 {
    let words = 1 << log_points;
    8 * (words + PADDING_OF_FOURS * (words / 16))
}

/// What the limbs of a view are split into: the groups of one launch each.
pub(crate) fn groups(limbs: usize, most: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..limbs).step_by(most).map(move |first| first..limbs.min(first + most))
}

impl<D: Device> Cuda<D> {
    /// The launches of a transform, in the order of a forward one.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let properties = self.properties();
        steps(self.ring.log_n(), self.transforms(), properties.cluster_blocks, properties.shared_bytes)
    }

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
        self.timed(kernel, || unsafe { self.pool().launch(kernel, launch, arguments) })?;
        if self.waits() { self.synchronize() } else { Ok(()) }
    }

    /// A launch that handles each of `words` words of each limb of each batch element.
    pub(crate) fn each_word(words: usize, limbs: usize, batch: usize) -> Launch {
        let threads = THREADS.min(words.div_ceil(WORDS_PER_THREAD));
        let blocks = words.div_ceil(threads * WORDS_PER_THREAD);
        Launch { grid: [blocks as u32, limbs as u32, batch as u32], cluster: 1, threads: threads as u32, shared: 0 }
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
        let steps = self.steps();
        let count = steps.len();
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let (from, to) = (self.rows(src, dst.batch, range.clone())?, self.rows(dst, dst.batch, range.clone())?);
            for step in 0..count {
                let index = if inverse { count - 1 - step } else { step };
                let Step { pass, cluster } = &steps[index];
                let kernel = match (inverse, *cluster > 1, index + 1 == count) {
                    (false, true, _) => c"ntt_forward_cluster",
                    (true, true, _) => c"ntt_inverse_cluster",
                    (false, false, true) => c"ntt_forward_last",
                    (true, false, true) => c"ntt_inverse_last",
                    (false, false, false) => c"ntt_forward_first",
                    (true, false, false) => c"ntt_inverse_first",
                };
                let rows = [Argument::new(if step == 0 { &from } else { &to }), Argument::new(&to)];
                let shape = (&limbs, range.len(), dst.batch);
                // SAFETY: these kernels take the arguments of a pass alone, but for the first, which is told apart; the rows
                // exist.
                unsafe {
                    if kernel == c"ntt_forward_first" {
                        self.first_pass(shape, rows, pass, &Chosen::ALL)?;
                    } else {
                        self.pass(kernel, shape, rows, (pass, *cluster), None)?;
                    }
                };
            }
        }
        Ok(())
    }

    /// For each of one or two sums dst = (NTT(x) + the addends)(X^g) in slots with g = inverse^-1 mod 2N; each x, one
    /// polynomial, is used up. Limbs of one prime are neighbours, as they have the factors in common.
    pub(crate) fn transform_and_add(
        &self,
        primes: &[usize],
        sums: &[PlacedSum<'_, D>],
        inverse: u32,
    ) -> Result<(), DeviceError> {
        let steps = self.steps();
        let (last, before) = steps.split_last().expect("invariant: a transform has a pass");
        for range in groups(primes.len(), MAX_LIMBS / 2) {
            let limbs = Limbs::new(&primes[range.clone()]);
            for (step, sum) in before.iter().flat_map(|step| sums.iter().map(move |sum| (step, sum))) {
                let x = self.rows(&sum.x, 1, range.clone())?;
                let rows = [Argument::new(&x), Argument::new(&x)];
                // SAFETY: the kernel takes the arguments of a pass alone; the rows exist.
                unsafe { self.first_pass((&limbs, range.len(), 1), rows, &step.pass, &Chosen::ALL)? };
            }
            let pairs = |places: Vec<Option<Place<'_, D>>>| self.pair_rows(&places, &range);
            let from = pairs(sums.iter().map(|sum| Some(sum.x)).collect())?;
            let to = pairs(sums.iter().map(|sum| Some(sum.dst)).collect())?;
            let mut more = SlotAddends { rows: [to; MAX_ADDENDS], count: [0; 2], inverse, unused: 0 };
            for (a, rows) in more.rows.iter_mut().enumerate() {
                *rows = pairs(sums.iter().map(|sum| sum.addends.get(a).copied()).collect())?;
            }
            for (count, sum) in more.count.iter_mut().zip(sums) {
                *count = sum.addends.len() as u32;
            }
            let of: Vec<usize> =
                primes[range.clone()].iter().flat_map(|&prime| sums.iter().map(move |_| prime)).collect();
            let kernel = if last.cluster > 1 { c"ntt_forward_sum_cluster" } else { c"ntt_forward_sum" };
            let (limbs, rows) = (Limbs::new(&of), [Argument::new(&from), Argument::new(&to)]);
            let more = Argument::new(&more);
            // SAFETY: the kernels take pairs of rows and the addends besides; the rows exist.
            unsafe { self.pass(kernel, (&limbs, of.len(), 1), rows, (&last.pass, last.cluster), Some(more))? };
        }
        Ok(())
    }

    /// The rows of a range of limbs of one or two polynomials, prime by prime; what is not there has none.
    fn pair_rows(
        &self,
        places: &[Option<Place<'_, D>>],
        range: &std::ops::Range<usize>,
    ) -> Result<PairRows, DeviceError> {
        let mut pair = PairRows { words: [0; 2], row: [0; MAX_LIMBS] };
        for (part, place) in places.iter().enumerate() {
            let Some(place) = place else { continue };
            let rows = self.rows(place, 1, range.clone())?;
            pair.words[part] = rows.words;
            let mark = if part == 0 { 0 } else { IN_SECOND };
            for (limb, &row) in rows.row[..range.len()].iter().enumerate() {
                if row & IN_SECOND != 0 {
                    return Err(DeviceError::NoSuchRow { row: row as usize, rows: IN_SECOND as usize });
                }
                pair.row[limb * places.len() + part] = row | mark;
            }
        }
        Ok(pair)
    }

    /// Queues the first pass of a forward transform, of the chosen elements.
    ///
    /// # Safety
    /// The rows are those of existing limbs.
    pub(crate) unsafe fn first_pass(
        &self,
        shape: (&Limbs, usize, usize),
        rows: [Argument<'_>; 2],
        pass: &Pass,
        chosen: &Chosen,
    ) -> Result<(), DeviceError> {
        // SAFETY: the kernel takes the chosen elements besides; else the forwarded contract.
        unsafe { self.pass(c"ntt_forward_first", shape, rows, (pass, 1), Some(Argument::new(chosen))) }
    }

    /// Queues one pass of a transform, in clusters of so many blocks.
    ///
    /// # Safety
    /// The kernel takes the arguments of a pass and `more`, and the rows are those of existing limbs.
    pub(crate) unsafe fn pass(
        &self,
        kernel: &'static std::ffi::CStr,
        (limbs, count, batch): (&Limbs, usize, usize),
        rows: [Argument<'_>; 2],
        (pass, cluster): (&Pass, u32),
        more: Option<Argument<'_>>,
    ) -> Result<(), DeviceError> {
        let points = pass.layers + pass.log_sets;
        let launch = Launch {
            grid: [1 << (self.tables().log_n - points), count as u32, batch as u32],
            cluster,
            threads: NTT_THREADS.min(1 << (points - 3)),
            shared: shared_bytes(points),
        };
        let mut arguments = vec![Argument::new(self.tables()), Argument::new(limbs)];
        arguments.extend(rows.into_iter().chain([Argument::new(pass)]).chain(more));
        // SAFETY: by contract; the sets of points of all blocks cover a row.
        unsafe { self.queue(kernel, launch, &arguments) }
    }

    /// The constants of the ring, by address.
    pub(crate) fn tables(&self) -> &RingTables {
        self.ring_tables().addresses()
    }
}

/// One launch of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) pass: Pass,
    /// Blocks of a cluster; 1 where blocks go alone.
    pub(crate) cluster: u32,
}

/// The launches of a transform on a device with clusters of so many blocks and so many bytes of shared memory for a block, in
/// the order of a forward one: one where a block of threads holds all points or a cluster does, else two passes. Where a
/// multiprocessor has no room for two blocks of 2^13 points, one block alone would leave most of it idle.
pub(crate) fn steps(log_n: u32, transforms: Transforms, cluster_blocks: u32, shared: u32) -> Vec<Step> {
    let step = |first, layers, log_sets, cluster| Step { pass: Pass { first, layers, log_sets, unused: 0 }, cluster };
    if let Transforms::Clusters { log_points } = transforms
        && (LAST_LAYERS..=ONE_BLOCK_LOG_N.min(log_n - 1)).contains(&log_points)
        && let blocks = 1 << (log_n - log_points)
        && blocks <= cluster_blocks.min(MAX_CLUSTER)
    {
        return vec![step(log_n - log_points, log_points, 0, blocks)];
    }
    let one_block = if shared < 2 * shared_bytes(ONE_BLOCK_LOG_N) { BLOCK_LOG_POINTS } else { ONE_BLOCK_LOG_N };
    if log_n <= one_block {
        return vec![step(0, log_n, 0, 1)];
    }
    let first = log_n - TWO_PASSES_LAST;
    let pass = |first, layers| step(first, layers, BLOCK_LOG_POINTS - layers, 1);
    vec![pass(0, first), pass(first, log_n - first)]
}

#[cfg(test)]
mod tests {
    use synchromesh_ring::ntt::{MAX_LOG_N, MIN_LOG_N};

    use super::*;

    const SHARED: u32 = 160 << 10;

    #[test]
    fn launches_cover_all_layers_and_keep_blocks_of_64_slots_whole() {
        let choices = [Transforms::TwoPasses, Transforms::default(), Transforms::Clusters { log_points: 7 }];
        for (log_n, transforms) in (MIN_LOG_N..=MAX_LOG_N).flat_map(|log_n| choices.map(|choice| (log_n, choice))) {
            for device in [1, 2, MAX_CLUSTER] {
                let steps = steps(log_n, transforms, device, SHARED);
                let passes: Vec<Pass> = steps.iter().map(|step| step.pass).collect();
                let last = passes.last().expect("a pass");
                assert!(passes.iter().all(|pass| pass.layers >= 4 && pass.layers + pass.log_sets <= log_n));
                assert!(last.layers >= LAST_LAYERS && last.first + last.layers == log_n);
                let cluster = steps[0].cluster;
                assert!(cluster <= device && (cluster == 1 || cluster == 1 << last.first));
                let layers: u32 = passes.iter().map(|pass| pass.layers).sum();
                assert_eq!(layers + cluster.ilog2(), log_n);
            }
        }
    }

    #[test]
    fn a_cluster_takes_what_a_block_does_not_hold_where_the_device_has_clusters() {
        let count = |log_n, device| {
            let steps = steps(log_n, Transforms::default(), device, SHARED);
            (steps.len(), steps[0].cluster)
        };
        let launches = [13, 14, 15, 16, 17].map(|log_n| count(log_n, MAX_CLUSTER));
        assert_eq!(launches, [(1, 1), (1, 2), (1, 4), (1, 8), (2, 1)]);
        assert_eq!([14, 16].map(|log_n| count(log_n, 1)), [(2, 1), (2, 1)]);
        assert_eq!(count(16, 4), (2, 1));
        let log_n = 14;
        let two_passes = steps(log_n, Transforms::TwoPasses, MAX_CLUSTER, SHARED);
        assert_eq!(two_passes, steps(log_n, Transforms::default(), 1, SHARED));
        // Of 99 KiB a second block of 2^13 points would take too much.
        let count = |log_n| steps(log_n, Transforms::TwoPasses, 1, 99 << 10).len();
        assert_eq!([12, 13].map(count), [1, 2]);
    }
}
