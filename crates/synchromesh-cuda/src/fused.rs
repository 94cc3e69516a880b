//! Fused stages of a key switch, and the tensor product, as launches.

use synchromesh_ring::backend::{DigitLimb, GadgetDigits, SlotSum, Stage, TensorMode, View, ViewMut};
use synchromesh_ring::{Backend, BackendError};

use crate::arguments::{
    Addends, Chosen, DigitLimbs, Limbs, MAX_ADDENDS, MAX_DIGIT_LIMBS, MAX_LIMBS, Pass, inverse_mod_2_32,
};
use crate::cuda::{Cuda, Stages};
use crate::device::{Device, DeviceError};
use crate::launch::{LAST_LAYERS, Place, PlacedSum, TWO_PASSES_LAST, groups, shared_bytes_of_fours};
use crate::work::{Argument, Launch};

/// Most digits of a fused product: as many products as a sum of 128 bits holds.
pub(crate) const MAX_DIGITS: usize = 63;
/// Rows of an input that a digit can be; greater numbers say that it is in the digit matrix.
const MAX_INPUT_ROWS: usize = 0xfffe;
const IN_SLOTS: u16 = 0xfffe;
const IN_COEFFICIENTS: u16 = 0xffff;
/// log2 of the points of a block of threads, in the first pass and in the last.
const LOG_POINTS: [u32; 2] = [12, 9];
/// log2 of the slots of one thread, whose sums for both columns stay in registers: what the last round of a transform leaves to it.
const LOG_SLOTS: u32 = 2;

/// Most groups of target primes for an operand, but for what one launch names: what more of them save is little beside
/// their launches.
const MAX_GROUPS: usize = 4;

/// The two passes of a digit's transform.
pub(crate) fn passes(log_n: u32) -> [Pass; 2] {
    let last = if log_n < 12 { LAST_LAYERS } else { TWO_PASSES_LAST };
    let pass = |first, layers, points: u32| Pass { first, layers, log_sets: points.min(log_n) - layers, unused: 0 };
    [pass(0, log_n - last, LOG_POINTS[0]), pass(log_n - last, last, LOG_POINTS[1])]
}

/// Whether a gadget's digits can be named to the kernel.
fn fits(limbs: &[Vec<DigitLimb>]) -> bool {
    let named = |limb: &DigitLimb| !matches!(limb, DigitLimb::Input(row) if *row >= MAX_INPUT_ROWS);
    !limbs.is_empty() && limbs.len() <= MAX_DIGITS && limbs.iter().flatten().all(named)
}

impl<D: Device> Cuda<D> {
    /// Whether a gadget product of these digits is one launch. The digits stay as they are where they are slots already:
    /// others may want them.
    pub(crate) fn fuses(&self, gadget: &GadgetDigits<'_, Self>) -> bool {
        let pending = gadget.limbs.iter().flatten().any(|limb| *limb != DigitLimb::Slots);
        self.stages() == Stages::Fused && pending && fits(gadget.limbs)
    }

    /// [`Stage::TransformDigits`], all digits at once: one list of rows to transform, one to copy.
    pub(crate) fn transform_digits(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
    ) -> Result<(), BackendError> {
        let GadgetDigits { mut digits, limbs, input } = gadget;
        let (mut of, mut rows, mut sources, mut copies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (j, state) in limbs.iter().enumerate() {
            for (r, limb) in state.iter().enumerate() {
                match limb {
                    DigitLimb::Coefficients => {
                        of.push(primes[r]);
                        rows.push(digits.row(j, r));
                    }
                    DigitLimb::Input(row) => {
                        sources.push(*row);
                        copies.push(digits.row(j, r));
                    }
                    DigitLimb::Slots => {}
                }
            }
        }
        self.ntt_forward(&of, ViewMut::new(digits.reborrow().buffer, &rows))?;
        let Some(input) = input else { return Ok(()) };
        self.copy(View::new(input, &sources), ViewMut::new(digits.buffer, &copies))
    }

    /// [`Stage::SlotSums`], two sums in the launches of their transforms.
    pub(crate) fn slot_sums(
        &self,
        primes: &[usize],
        sums: Vec<SlotSum<'_, Self>>,
        g: usize,
    ) -> Result<(), BackendError> {
        let fits = |sum: &SlotSum<'_, Self>| {
            let one = sum.x.batch == 1 && sum.ys.iter().all(|y| y.batch == 1);
            one && sum.ys.len() <= MAX_ADDENDS && (sum.out.is_some() || g == 1)
        };
        // More addends than one launch takes go by primitives.
        if self.stages() == Stages::Primitive || !sums.iter().all(fits) {
            return Stage::SlotSums { sums, g }.apart(self, primes);
        }
        for sums in sums.chunks(2) {
            let placed = sums.iter().map(|SlotSum { x, ys, out }| PlacedSum {
                x: Place::of_mut(x),
                addends: ys.iter().map(Place::of).collect(),
                dst: out.as_ref().map_or_else(|| Place::of_mut(x), Place::of_mut),
            });
            let placed: Vec<PlacedSum<'_, D>> = placed.collect();
            self.transform_and_add(primes, &placed, inverse_mod_2_32(g as u32))?;
        }
        Ok(())
    }

    /// [`Stage::SumInto`] of as many polynomials as one launch takes.
    pub(crate) fn sum_into(
        &self,
        primes: &[usize],
        (xs, scalars): (&[View<'_, Self>], Option<&[u64]>),
        g: usize,
        mut out: ViewMut<'_, Self>,
    ) -> Result<(), BackendError> {
        let addends: Vec<Place<'_, D>> = xs.iter().map(Place::of).collect();
        let to = Place::of_mut(&out);
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let rows = self.rows(&to, 1, range.clone())?;
            let inverse = inverse_mod_2_32(g as u32);
            let mut more = Addends { rows: [rows; MAX_ADDENDS], count: addends.len() as u32, inverse };
            for (rows, addend) in more.rows.iter_mut().zip(&addends) {
                *rows = self.rows(addend, 1, range.clone())?;
            }
            let arguments =
                [Argument::new(self.tables()), Argument::new(&limbs), Argument::new(&rows), Argument::new(&more)];
            let launch = Self::each_word(1 << self.tables().log_n, range.len(), 1);
            // SAFETY: these are the kernel's arguments, and the rows exist.
            unsafe { self.queue(c"sum_into", launch, &arguments)? };
        }
        scalars.map_or(Ok(()), |scalars| self.mul_scalar_assign(primes, out.reborrow(), scalars))
    }

    /// Whether a sum of these is one launch.
    pub(crate) fn sums(&self, xs: &[View<'_, Self>], out: &ViewMut<'_, Self>) -> bool {
        let one = out.batch == 1 && xs.iter().all(|x| x.batch == 1);
        self.stages() == Stages::Fused && one && !xs.is_empty() && xs.len() <= MAX_ADDENDS
    }

    /// [`Stage::GadgetProduct`] for digits that [`fits`].
    pub(crate) fn fused_gadget_product(
        &self,
        primes: &[usize],
        gadget: GadgetDigits<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Result<(), BackendError> {
        let [first, last] = passes(self.tables().log_n);
        let GadgetDigits { digits, limbs, input } = gadget;
        let terms = limbs.len();
        // Where too few fit the cache for that to pay, as many as one launch names.
        let most = Some(self.limbs_in_cache(terms))
            .filter(|most| primes.len().div_ceil(*most) <= MAX_GROUPS * self.pool().operands());
        let most = most.unwrap_or(MAX_LIMBS).min(MAX_DIGIT_LIMBS / terms).min(MAX_LIMBS);
        let input_address = self.input_address(input, limbs)?;
        let (all, keys) = (Place::of_mut(&digits), keys.each_ref().map(Place::of));
        let (out, points) = (Place::of_mut(&out), last.layers + last.log_sets);
        for range in groups(primes.len(), most) {
            let group = Limbs::new(&primes[range.clone()]);
            let states = states(limbs, range.clone());
            let place = |place, batch| self.rows(place, batch, range.clone());
            let rows = [place(&out, 2)?, place(&all, terms)?, place(&keys[0], terms)?, place(&keys[1], terms)?];
            let mut chosen = Chosen { elements: [0; MAX_LIMBS] };
            for (to, r) in chosen.elements.iter_mut().zip(range.clone()) {
                let pending = limbs.iter().enumerate().filter(|(_, digit)| digit[r] == DigitLimb::Coefficients);
                *to = pending.fold(0, |elements, (j, _)| elements | 1 << j);
            }
            if chosen.elements != [0; MAX_LIMBS] {
                let both = [Argument::new(&rows[1]), Argument::new(&rows[1])];
                // SAFETY: the rows of all digits exist.
                unsafe { self.first_pass((&group, range.len(), terms), both, &first, &chosen)? };
            }
            let (terms, accumulate) = (terms as u32, u32::from(accumulate));
            let mut arguments = vec![Argument::new(self.tables()), Argument::new(&group)];
            arguments.extend(rows.iter().map(Argument::new));
            arguments.extend([Argument::new(&states), Argument::new(&input_address), Argument::new(&last)]);
            arguments.extend([Argument::new(&terms), Argument::new(&accumulate)]);
            let launch = Launch {
                grid: [1 << (self.tables().log_n - points), range.len() as u32, 1],
                cluster: 1,
                threads: 1 << (points - LOG_SLOTS),
                shared: shared_bytes_of_fours(points),
            };
            // SAFETY: these are the kernel's arguments; the rows of all digits and keys exist, and so do those of the
            // input; the blocks cover a row, four slots a thread.
            unsafe { self.queue(c"gadget_product", launch, &arguments)? };
        }
        Ok(())
    }

    /// How many limbs of so many digits a half of the second-level cache holds, of all operands that are merged, at least
    /// one: the digits of a group of target primes are still there when the product reads what the first pass wrote.
    fn limbs_in_cache(&self, digits: usize) -> usize {
        let bytes = ((self.pool().operands() * digits) << self.tables().log_n) * size_of::<u64>();
        usize::try_from(self.properties().cache_bytes / 2).map_or(usize::MAX, |half| half / bytes).max(1)
    }

    /// Where the input begins, all rows that the digits name being there; 0 without one.
    fn input_address(
        &self,
        input: Option<&<Self as Backend>::Buffer>,
        limbs: &[Vec<DigitLimb>],
    ) -> Result<u64, DeviceError> {
        let named = limbs.iter().flatten().filter_map(|limb| match limb {
            DigitLimb::Input(row) => Some(*row),
            _ => None,
        });
        let (Some(greatest), Some(input)) = (named.max(), input) else { return Ok(0) };
        self.rows(&Place::rows(input, &[greatest]), 1, 0..1)?;
        Ok(input.address())
    }

    /// [`Stage::Tensor`].
    pub(crate) fn fused_tensor(
        &self,
        primes: &[usize],
        operands: [View<'_, Self>; 4],
        out: [ViewMut<'_, Self>; 3],
        mode: TensorMode,
    ) -> Result<(), BackendError> {
        let limbs = primes.len();
        let slots = self.alloc(4 * limbs)?;
        let rows: Vec<usize> = (0..4 * limbs).collect();
        for (operand, rows) in operands.iter().zip(rows.chunks(limbs.max(1))) {
            self.transform(false, primes, [&Place::of(operand), &Place::rows(&slots, rows)])?;
        }
        let slots: View<'_, Self> = View { buffer: &slots, batch: 4, batch_stride: limbs, rows: &rows[..limbs] };
        let operands = Place::of(&slots);
        let out = out.each_ref().map(Place::of_mut);
        let accumulate = u32::from(mode.accumulate);
        for range in groups(limbs, MAX_LIMBS) {
            let group = Limbs::new(&primes[range.clone()]);
            let place = |place, batch| self.rows(place, batch, range.clone());
            let rows = [place(&operands, 4)?, place(&out[0], 1)?, place(&out[1], 1)?, place(&out[2], 1)?];
            let mut arguments = vec![Argument::new(self.tables()), Argument::new(&group)];
            arguments.extend(rows.iter().map(Argument::new));
            arguments.push(Argument::new(&accumulate));
            let launch = Self::each_word(1 << self.tables().log_n, range.len(), 1);
            // SAFETY: these are the kernel's arguments, and the rows exist.
            unsafe { self.queue(c"tensor_product", launch, &arguments)? };
        }
        let finished = out.iter().zip(mode.finish).filter(|(_, finish)| *finish);
        Ok(finished.map(|(out, _)| out).try_for_each(|out| self.transform(true, primes, [out, out]))?)
    }
}

/// Where the limbs `range` of all digits are.
fn states(limbs: &[Vec<DigitLimb>], range: std::ops::Range<usize>) -> DigitLimbs {
    let mut state = [IN_SLOTS; MAX_DIGIT_LIMBS];
    let named = limbs.iter().flat_map(|digit| &digit[range.clone()]);
    for (to, limb) in state.iter_mut().zip(named) {
        *to = match limb {
            DigitLimb::Coefficients => IN_COEFFICIENTS,
            DigitLimb::Slots => IN_SLOTS,
            DigitLimb::Input(row) => *row as u16,
        };
    }
    DigitLimbs { state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_passes_cover_all_layers_of_every_degree() {
        for log_n in synchromesh_ring::ntt::MIN_LOG_N..=synchromesh_ring::ntt::MAX_LOG_N {
            let [first, last] = passes(log_n);
            assert!(first.layers >= 4 && last.layers >= LAST_LAYERS && last.first == first.layers);
            assert_eq!(first.layers + last.layers, log_n);
            assert!(first.layers + first.log_sets <= log_n && last.layers + last.log_sets <= log_n);
        }
    }
}
