//! The CPU backend: RNS polynomials in host memory, one kernel call a limb, threads over limbs and tiles.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

mod fused;
mod memory;
mod tensor;

pub use self::memory::CpuBuffer;

use self::fused::After;
use self::memory::{HUGE_PAGE, Recycler};
use crate::backend::{
    Backend, BackendError, ConvertMode, Factors, Open, ProductSum, RadixDigit, SignedWidth, Stage, View, ViewMut,
};
use crate::isa::Isa;
use crate::kernels::convert::{ConvertMatrix, Mode};
use crate::kernels::{LimbKernels, Products, STREAM_WORDS, settle_streams, streams};
use crate::ntt::NttTable;
use crate::repeated;
use crate::ring::{IndexSet, Ring};
use crate::rns::ConvertSpec;
use crate::sampler::{Purpose, Seed, uniform_into};
use crate::slot_order::SlotPermutation;
use crate::threads::Threads;

/// Coefficients that one thread converts, or sums, at a time.
const CONVERT_CHUNK: usize = 4096;

/// Words of a limb that sums of products over the same columns go through together: sixteen terms of that length, and what
/// they make, fit a core's second cache.
const PIECE: usize = 1024;

/// Host execution with the instruction set chosen when it was opened.
pub struct Cpu {
    ring: Arc<Ring>,
    isa: Isa,
    tables: Vec<NttTable>,
    kernels: Vec<LimbKernels>,
    permutations: RwLock<HashMap<usize, Arc<SlotPermutation>>>,
    recycler: Arc<Recycler>,
    threads: Threads,
}

impl Cpu {
    /// Opens the CPU with the best instruction set it has, or the one that `SYNCHROMESH_ISA` names, on the threads of the
    /// process ([`Threads::of_process`]).
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when the variable names an instruction set this CPU lacks, [`BackendError::Threads`].
    pub fn open(ring: Arc<Ring>) -> Result<Self, BackendError> {
        let isa =
            Isa::detect().map_err(|e| BackendError::Unavailable { device: "cpu".to_owned(), reason: e.to_string() })?;
        Ok(Self::with_isa(ring, isa)?.with_threads(Threads::of_process()?))
    }

    /// Opens the CPU with a given instruction set, on one thread.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] when this CPU lacks it.
    pub fn with_isa(ring: Arc<Ring>, isa: Isa) -> Result<Self, BackendError> {
        if !Isa::available().contains(&isa) {
            let reason = format!("this CPU has no {}", isa.name());
            return Err(BackendError::Unavailable { device: "cpu".to_owned(), reason });
        }
        let mut tables = Vec::with_capacity(ring.moduli().len());
        let mut kernels = Vec::with_capacity(ring.moduli().len());
        for &modulus in ring.moduli() {
            tables.push(NttTable::new(modulus, ring.log_n(), isa).map_err(|e| BackendError::Unsupported {
                device: "cpu".to_owned(),
                modulus: modulus.value(),
                log_n: ring.log_n(),
                reason: e.to_string(),
            })?);
            kernels.push(LimbKernels::new(modulus, isa));
        }
        Ok(Self {
            ring,
            isa,
            tables,
            kernels,
            permutations: RwLock::default(),
            recycler: Arc::default(),
            threads: Threads::ONE,
        })
    }

    /// Computes on these threads; results do not depend on their number.
    #[must_use]
    pub fn with_threads(self, threads: Threads) -> Self {
        Self { threads, ..self }
    }

    /// The instruction set in use.
    #[must_use]
    pub const fn isa(&self) -> Isa {
        self.isa
    }

    /// The transform of prime `index`.
    #[must_use]
    pub fn table(&self, index: usize) -> &NttTable {
        &self.tables[index]
    }

    /// Memory for a transform to work in, of at least `words` words: never less than a huge page.
    fn scratch(&self, words: usize) -> Result<CpuBuffer, BackendError> {
        self.recycler.take((words * size_of::<u64>()).max(HUGE_PAGE))
    }

    /// Runs `run` on each item, of `words` words of residues, on any thread.
    fn try_for_each<T: Send>(
        &self,
        items: Vec<T>,
        words: usize,
        run: impl Fn(T) -> Result<(), BackendError> + Sync + Send,
    ) -> Result<(), BackendError> {
        self.threads.try_for_each(items, words, |item| {
            let done = run(item);
            settle_streams();
            done
        })
    }

    fn for_each<T: Send>(&self, items: Vec<T>, words: usize, run: impl Fn(T) + Sync + Send) {
        let infallible = |item| {
            run(item);
            Ok(())
        };
        self.try_for_each(items, words, infallible).expect("invariant: the work cannot fail");
    }

    fn row<'a>(&self, view: &View<'a, Self>, element: usize, limb: usize) -> &'a [u64] {
        let n = self.ring.n();
        let row = view.row(element, limb);
        &view.buffer.words()[row * n..(row + 1) * n]
    }

    /// Limb `limb` of the first `count` batch elements.
    fn column<'a>(&self, view: &View<'a, Self>, count: usize, limb: usize) -> Vec<&'a [u64]> {
        (0..count).map(|j| self.row(view, j, limb)).collect()
    }

    /// Every row of a view as its own slice, batch element after batch element.
    fn rows_mut<'a>(&self, view: ViewMut<'a, Self>) -> Vec<&'a mut [u64]> {
        let wanted: Vec<usize> =
            (0..view.batch).flat_map(|b| view.rows.iter().map(move |r| b * view.batch_stride + r)).collect();
        let mut slots: Vec<Option<&mut [u64]>> =
            view.buffer.words_mut().chunks_exact_mut(self.ring.n()).map(Some).collect();
        wanted.iter().map(|&row| slots[row].take().expect("invariant: rows of a view are distinct")).collect()
    }

    /// Runs `kernel` on each (limb, output row, input row) of a one-operand method.
    fn unary(
        &self,
        primes: &[usize],
        out: ViewMut<'_, Self>,
        x: &View<'_, Self>,
        kernel: impl Fn(usize, &mut [u64], &[u64]) + Sync + Send,
    ) {
        let limbs = primes.len();
        debug_assert_eq!((out.rows.len(), x.rows.len(), out.batch), (limbs, limbs, x.batch));
        let batch = out.batch;
        let items = by_limb(self.rows_mut(out), limbs, batch);
        self.for_each(items, self.ring.n() * batch, |(r, rows)| {
            rows.into_iter().enumerate().for_each(|(e, row)| kernel(r, row, self.row(x, e, r)));
        });
    }

    /// Runs `kernel` on each (limb, output row, input rows) of a two-operand method.
    fn binary(
        &self,
        primes: &[usize],
        out: ViewMut<'_, Self>,
        [a, b]: [&View<'_, Self>; 2],
        kernel: impl Fn(usize, &mut [u64], &[u64], &[u64]) + Sync + Send,
    ) {
        let (limbs, batch) = (primes.len(), out.batch);
        debug_assert_eq!((out.rows.len(), a.rows.len(), b.rows.len()), (limbs, limbs, limbs));
        let items = by_limb(self.rows_mut(out), limbs, batch);
        self.for_each(items, self.ring.n() * batch, |(r, rows)| {
            let each = |(e, row)| kernel(r, row, self.row(a, e, r), self.row(b, e, r));
            rows.into_iter().enumerate().for_each(each);
        });
    }

    /// Runs `kernel` on each (limb, row) of an in-place method.
    fn in_place(&self, primes: &[usize], x: ViewMut<'_, Self>, kernel: impl Fn(usize, &mut [u64]) + Sync + Send) {
        let limbs = primes.len();
        debug_assert_eq!(x.rows.len(), limbs);
        let batch = x.batch;
        let items = by_limb(self.rows_mut(x), limbs, batch);
        self.for_each(items, self.ring.n() * batch, |(r, rows)| rows.into_iter().for_each(|row| kernel(r, row)));
    }

    /// [`Stage::SumInto`], some KiB of a row at a time; permuted from a row that stays in the caches.
    fn sum_rows(
        &self,
        primes: &[usize],
        xs: &[View<'_, Self>],
        scalars: Option<&[u64]>,
        g: usize,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        debug_assert_eq!(out.batch, 1);
        let n = self.ring.n();
        let items: Vec<_> = self.rows_mut(out).into_iter().enumerate().collect();
        let one_pass = xs.len() == 2 && scalars.is_none() && g == 1;
        self.try_for_each(items, n * xs.len(), |(r, out)| {
            let stream = one_pass && streams(out.as_ptr(), n);
            let kernels = &self.kernels[primes[r]];
            let scalar = scalars.map(|c| self.ring.modulus(primes[r]).scalar(c[r]));
            let mut scratch = if g == 1 { None } else { Some(self.scratch(n)?) };
            let row = scratch.as_mut().map_or(&mut *out, |scratch| &mut scratch.words_mut()[..n]);
            for (c, piece) in row.chunks_mut(CONVERT_CHUNK).enumerate() {
                let at = c * CONVERT_CHUNK..c * CONVERT_CHUNK + piece.len();
                let mut xs = xs.iter().map(|x| &self.row(x, 0, r)[at.clone()]);
                match (xs.next(), xs.next()) {
                    (Some(x), Some(y)) if stream => kernels.stream_sum(x, y, piece),
                    (Some(x), Some(y)) => kernels.add_into(x, y, piece),
                    (first, _) => first.into_iter().for_each(|x| piece.copy_from_slice(x)),
                }
                xs.for_each(|x| kernels.add_assign(piece, x));
                if let Some(scalar) = &scalar {
                    kernels.mul_scalar_assign(piece, scalar);
                }
            }
            if let Some(scratch) = &scratch {
                kernels.automorphism_into(&scratch.words()[..n], g as u32, out);
            }
            Ok(())
        })
    }

    /// [`Stage::NttInverseInto`].
    fn inverse_rows(&self, primes: &[usize], src: &View<'_, Self>, dst: ViewMut<'_, Self>) -> Result<(), BackendError> {
        let (limbs, batch) = (primes.len(), dst.batch);
        self.try_for_each(by_limb(self.rows_mut(dst), limbs, batch), self.ring.n() * batch, |(r, rows)| {
            let mut scratch = self.scratch(self.ring.n())?;
            let work = &mut scratch.words_mut()[..self.ring.n()];
            for (e, row) in rows.into_iter().enumerate() {
                self.tables[primes[r]].inverse_through(self.row(src, e, r), work, row);
            }
            Ok(())
        })
    }

    /// [`Stage::ProductSums`], in pieces of which the columns stay in the caches for all sums.
    fn product_sums(&self, primes: &[usize], sums: Vec<ProductSum<'_, Self>>) {
        let (n, limbs) = (self.ring.n(), primes.len());
        let piece = if sums.len() == 1 { n } else { n.min(PIECE) };
        let mut work = 0;
        let mut items: Vec<Vec<_>> = (0..limbs).map(|_| Vec::with_capacity(sums.len())).collect();
        for ProductSum { factors, columns, out, accumulate } in sums {
            let terms = columns[0].batch;
            work += n * terms;
            let mut out0 = self.rows_mut(out);
            let out1 = out0.split_off(limbs);
            for (r, (item, out)) in items.iter_mut().zip(out0.into_iter().zip(out1)).enumerate() {
                let (factors, repeated) = match &factors {
                    Factors::Whole(view) => (self.column(view, terms, r), false),
                    Factors::Repeated(packed) => {
                        let packed: Vec<&[u64]> = packed.words().chunks_exact(repeated::words(n)).collect();
                        ((0..terms).map(|j| packed[j * limbs + r]).collect(), true)
                    }
                };
                let columns = [&columns[0], &columns[1]].map(|view| self.column(view, terms, r));
                item.push((Products { factors, columns, repeated }, out, accumulate));
            }
        }
        let items: Vec<_> = items.into_iter().enumerate().collect();
        self.for_each(items, work, |(r, mut sums)| {
            for first in (0..n).step_by(piece) {
                for (products, (out0, out1), accumulate) in &mut sums {
                    let range = first..first + piece;
                    let out = [&mut out0[range.clone()], &mut out1[range]];
                    self.kernels[primes[r]].products(products, first, out, *accumulate);
                }
            }
        });
    }

    fn permutation(&self, g: usize) -> Arc<SlotPermutation> {
        if let Some(p) = self.permutations.read().unwrap_or_else(PoisonError::into_inner).get(&g) {
            return Arc::clone(p);
        }
        let made = Arc::new(SlotPermutation::new(self.ring.log_n(), g as u32));
        let mut cache = self.permutations.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(cache.entry(g).or_insert(made))
    }
}

/// Rows in the order of the batch, grouped by limb: what one prime's tables serve stays together.
fn by_limb<T>(rows: Vec<T>, limbs: usize, batch: usize) -> Vec<(usize, Vec<T>)> {
    let mut groups: Vec<(usize, Vec<T>)> = (0..limbs).map(|r| (r, Vec::with_capacity(batch))).collect();
    rows.into_iter().enumerate().for_each(|(i, row)| groups[i % limbs].1.push(row));
    groups
}

impl Open for Cpu {
    fn open(ring: &Arc<Ring>) -> Result<Self, BackendError> {
        Self::open(Arc::clone(ring))
    }
}

impl Backend for Cpu {
    type Buffer = CpuBuffer;
    type Conversion = ConvertMatrix;

    fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    fn keeps_repeated(&self) -> bool {
        true
    }

    fn threads(&self) -> Threads {
        self.threads.clone()
    }

    fn name(&self) -> String {
        format!("cpu/{}", self.isa.name())
    }

    fn alloc(&self, rows: usize) -> Result<CpuBuffer, BackendError> {
        self.recycler.take(rows * self.ring.n() * size_of::<u64>())
    }

    fn upload(&self, words: &[u64], buffer: &mut CpuBuffer, row: usize) -> Result<(), BackendError> {
        let start = row * self.ring.n();
        buffer.words_mut()[start..start + words.len()].copy_from_slice(words);
        Ok(())
    }

    fn download(&self, buffer: &CpuBuffer, row: usize, words: &mut [u64]) -> Result<(), BackendError> {
        let start = row * self.ring.n();
        words.copy_from_slice(&buffer.words()[start..start + words.len()]);
        Ok(())
    }

    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Result<(), BackendError> {
        let limbs: Vec<usize> = (0..src.rows.len()).collect();
        self.unary(&limbs, dst, &src, |_, out, x| out.copy_from_slice(x));
        Ok(())
    }

    fn reduce_signed(
        &self,
        primes: &[usize],
        values: &[i64],
        _: SignedWidth,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.in_place(primes, dst, |r, out| self.kernels[primes[r]].from_signed_into(values, out));
        Ok(())
    }

    fn uniform(
        &self,
        primes: &[usize],
        seed: &Seed,
        purpose: Purpose,
        digit: u32,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.in_place(primes, dst, |r, out| {
            uniform_into(seed, purpose, digit, self.ring.modulus(primes[r]).value(), out)
                .expect("invariant: a row has N <= 2^18 words and a modulus below 2^61");
        });
        Ok(())
    }

    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.in_place(primes, x, |r, row| self.tables[primes[r]].forward(row));
        Ok(())
    }

    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.in_place(primes, x, |r, row| self.tables[primes[r]].inverse(row));
        Ok(())
    }

    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<(), BackendError> {
        self.unary(primes, x, &y, |r, out, y| self.kernels[primes[r]].add_assign(out, y));
        Ok(())
    }

    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Result<(), BackendError> {
        self.unary(primes, x, &y, |r, out, y| self.kernels[primes[r]].sub_assign(out, y));
        Ok(())
    }

    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Result<(), BackendError> {
        self.in_place(primes, x, |r, row| self.kernels[primes[r]].neg_assign(row));
        Ok(())
    }

    fn mul_into(
        &self,
        primes: &[usize],
        a: View<'_, Self>,
        b: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.binary(primes, out, [&a, &b], |r, out, a, b| self.kernels[primes[r]].mul_into(a, b, out));
        Ok(())
    }

    fn mul_acc(
        &self,
        primes: &[usize],
        a: View<'_, Self>,
        b: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.binary(primes, out, [&a, &b], |r, out, a, b| self.kernels[primes[r]].mul_acc(a, b, out));
        Ok(())
    }

    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Result<(), BackendError> {
        self.in_place(primes, x, |r, row| {
            let kernels = &self.kernels[primes[r]];
            kernels.mul_scalar_assign(row, &self.ring.modulus(primes[r]).scalar(scalars[r]));
        });
        Ok(())
    }

    fn mul_scalar_acc(
        &self,
        primes: &[usize],
        x: View<'_, Self>,
        scalars: &[u64],
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.unary(primes, out, &x, |r, out, x| {
            self.kernels[primes[r]].mul_scalar_acc(x, &self.ring.modulus(primes[r]).scalar(scalars[r]), out);
        });
        Ok(())
    }

    fn automorphism_coeff(
        &self,
        primes: &[usize],
        g: usize,
        x: View<'_, Self>,
        out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        self.unary(primes, out, &x, |r, out, x| self.kernels[primes[r]].automorphism_into(x, g as u32, out));
        Ok(())
    }

    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Result<(), BackendError> {
        let permutation = self.permutation(g);
        let limbs: Vec<usize> = (0..x.rows.len()).collect();
        let Some(kernels) = self.kernels.first() else { return Ok(()) };
        let blocks = permutation.block_to().len();
        self.unary(&limbs, out, &x, |_, out, x| kernels.permute_blocks(x, &permutation, 0..blocks, out));
        Ok(())
    }

    fn conversion(&self, src: &IndexSet, dst: &IndexSet, spec: &ConvertSpec) -> Result<ConvertMatrix, BackendError> {
        let moduli = |set: &IndexSet| set.iter().map(|i| self.ring.modulus(i)).collect::<Vec<_>>();
        ConvertMatrix::new(&moduli(src), &moduli(dst), spec.clone(), self.isa)
            .map_err(|e| BackendError::Unavailable { device: "cpu".to_owned(), reason: e.to_string() })
    }

    fn convert(
        &self,
        conversion: &ConvertMatrix,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Result<(), BackendError> {
        let mode = match mode {
            ConvertMode::Replace if self.ring.n() >= STREAM_WORDS => Mode::Stream,
            ConvertMode::Replace => Mode::Replace,
            ConvertMode::Add => Mode::Add,
        };
        let limbs = dst.rows.len();
        let batch = dst.batch;
        let mut rows = self.rows_mut(dst).into_iter();
        let mut items = Vec::new();
        for element in 0..batch {
            let mut pieces: Vec<Vec<&mut [u64]>> = Vec::new();
            for row in rows.by_ref().take(limbs) {
                for (c, piece) in row.chunks_mut(CONVERT_CHUNK).enumerate() {
                    if pieces.len() == c {
                        pieces.push(Vec::with_capacity(limbs));
                    }
                    pieces[c].push(piece);
                }
            }
            items.extend(pieces.into_iter().enumerate().map(|(c, piece)| (element, c * CONVERT_CHUNK, piece)));
        }
        self.for_each(items, CONVERT_CHUNK * limbs, |(element, start, mut piece)| {
            let len = piece.first().map_or(0, |p| p.len());
            let src: Vec<&[u64]> =
                (0..src.rows.len()).map(|j| &self.row(&src, element, j)[start..start + len]).collect();
            conversion.apply(&src, &mut piece, mode);
        });
        Ok(())
    }

    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        let (x, from) = (self.row(&src, 0, 0), self.ring.modulus(from));
        self.in_place(primes, dst, |r, out| self.kernels[primes[r]].radix_digit_into(x, from, digit, out));
        Ok(())
    }

    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Result<(), BackendError> {
        let mut out0 = self.rows_mut(out);
        let out1 = out0.split_off(primes.len());
        let items: Vec<_> = out0.into_iter().zip(out1).enumerate().collect();
        self.for_each(items, self.ring.n() * digits.batch, |(r, (out0, out1))| {
            let [d, k0, k1] = [&digits, &keys[0], &keys[1]].map(|view| self.column(view, digits.batch, r));
            self.kernels[primes[r]].inner_product2(&d, &k0, &k1, out0, out1, accumulate);
        });
        Ok(())
    }

    #[deny(clippy::wildcard_enum_match_arm, reason = "a new stage is to be decided on")]
    fn stage(&self, primes: &[usize], stage: Stage<'_, Self>) -> Result<(), BackendError> {
        match stage {
            Stage::GadgetProduct { gadget, keys, out, accumulate } => {
                let after = if accumulate { After::Accumulate } else { After::Store };
                self.products(primes, &gadget, keys, out, after)
            }
            Stage::GadgetProductCoeff { gadget, keys, out } => {
                self.products(primes, &gadget, keys, out, After::Inverse)
            }
            Stage::GadgetProductOnto { gadget, keys, x } => self.products_onto(primes, (&gadget, keys), x),
            Stage::GadgetSums { gadget, keys, sums, g } => self.sums(primes, Some((&gadget, keys)), sums, g),
            Stage::SlotSums { sums, g } => self.sums(primes, None, sums, g),
            Stage::SumInto { xs, scalars, g, out } => self.sum_rows(primes, &xs, scalars, g, out),
            Stage::RotatedProduct { gadget, keys, addend, g, out } => {
                self.rotated_products(primes, (&gadget, keys), &addend, g, out)
            }
            Stage::ProductSums { sums } => {
                self.product_sums(primes, sums);
                Ok(())
            }
            Stage::NttInverseInto { src, dst } => self.inverse_rows(primes, &src, dst),
            Stage::Tensor { a, b, out, mode } => self.tensor_rows(primes, a, b, out, mode),
            Stage::TransformDigits(_) | Stage::Conversions { .. } => stage.apart(self, primes),
        }
    }
}
