//! The operations of a backend as launches.

use std::sync::Arc;

use synchromesh_ring::backend::{Converted, RadixDigit, SignedWidth, Stage, View, ViewMut};
use synchromesh_ring::rns::ConvertSpec;
use synchromesh_ring::sampler::{Purpose, Seed, stream_key};
use synchromesh_ring::{Backend, BackendError, ConvertMode, IndexSet, Ring};
use zeroize::{Zeroize, Zeroizing};

use crate::arguments::{Cut, Limbs, MAX_LIMBS, MAX_STREAMS, Pair, Scalars, Signed, StreamKeys, inverse_mod_2_32};
use crate::convert::DeviceConversion;
use crate::cuda::{Cuda, Stages};
use crate::device::{Device, DeviceError};
use crate::launch::{Place, groups};
use crate::memory::DeviceBuffer;
use crate::work::Argument;

impl<D: Device> Cuda<D> {
    /// An element-wise kernel that takes places alone.
    ///
    /// # Safety
    /// The kernel takes as many places.
    unsafe fn map(
        &self,
        kernel: &'static std::ffi::CStr,
        primes: &[usize],
        places: &[Place<'_, D>],
    ) -> Result<(), BackendError> {
        // SAFETY: forwarded contract.
        unsafe { self.pointwise(kernel, primes, places, |_| None::<u32>)? };
        Ok(())
    }

    /// The residues `scalars` with their quotients, for a group of limbs.
    fn scalars(&self, primes: &[usize], scalars: &[u64], range: std::ops::Range<usize>) -> Scalars {
        let mut factor = [Pair::default(); MAX_LIMBS];
        for (to, (&prime, &scalar)) in factor.iter_mut().zip(primes[range.clone()].iter().zip(&scalars[range])) {
            let modulus = self.ring.modulus(prime);
            *to = Pair::new(modulus.reduce(scalar), &modulus);
        }
        Scalars { factor }
    }

    /// One row of a buffer of this device, by address.
    fn row_address(&self, place: &Place<'_, D>, row: usize) -> Result<u64, DeviceError> {
        self.rows(place, 1, 0..1)?;
        Ok(place.address() + ((row as u64) << (self.ring.log_n() + 3)))
    }
}

/// Signed integers one behind the other in words, each as the lowest bytes of it.
fn packed(values: &[i64], width: SignedWidth) -> Zeroizing<Vec<u64>> {
    let (bits, mask) = (8 * width.bytes(), u64::MAX >> (64 - 8 * width.bytes()));
    let word =
        |part: &[i64]| part.iter().rev().fold(0, |word: u64, &x| word.unbounded_shl(bits as u32) | (x as u64 & mask));
    Zeroizing::new(values.chunks(8 / width.bytes()).map(word).collect())
}

type Done = Result<(), BackendError>;

impl<D: Device> Backend for Cuda<D> {
    type Buffer = DeviceBuffer<D>;
    type Conversion = DeviceConversion<D>;

    fn ring(&self) -> &Arc<Ring> {
        &self.ring
    }

    fn name(&self) -> String {
        self.properties().name.clone()
    }

    fn alloc(&self, rows: usize) -> Result<DeviceBuffer<D>, BackendError> {
        Ok(self.pool().take(rows << self.ring.log_n())?)
    }

    fn upload(&self, words: &[u64], buffer: &mut DeviceBuffer<D>, row: usize) -> Done {
        Ok(buffer.write(row << self.ring.log_n(), words)?)
    }

    fn download(&self, buffer: &DeviceBuffer<D>, row: usize, words: &mut [u64]) -> Done {
        Ok(buffer.read(row << self.ring.log_n(), words)?)
    }

    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Done {
        // The primes do not matter.
        let primes = vec![0; src.rows.len()];
        // SAFETY: the kernel takes two places.
        unsafe { self.map(c"copy", &primes, &[Place::of_mut(&dst), Place::of(&src)]) }
    }

    fn reduce_signed(&self, primes: &[usize], values: &[i64], width: SignedWidth, dst: ViewMut<'_, Self>) -> Done {
        let words = packed(values, width);
        let mut input = self.pool().take(words.len())?;
        input.write(0, &words)?;
        let signed = Signed { words: input.address(), log_bytes: width.bytes().trailing_zeros(), unused: 0 };
        // SAFETY: the kernel takes one place and where N integers are.
        let done = unsafe { self.pointwise(c"from_signed", primes, &[Place::of_mut(&dst)], |_| Some(signed)) };
        // The values may be a secret key.
        input.zeroize();
        Ok(done?)
    }

    fn uniform(&self, primes: &[usize], seed: &Seed, purpose: Purpose, digit: u32, dst: ViewMut<'_, Self>) -> Done {
        let place = Place::of_mut(&dst);
        for range in groups(primes.len(), MAX_STREAMS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let rows = self.rows(&place, dst.batch, range.clone())?;
            let mut keys = Zeroizing::new([[0; 8]; MAX_STREAMS]);
            for (key, &prime) in keys.iter_mut().zip(&primes[range.clone()]) {
                *key = *stream_key(seed, purpose, digit, self.ring.modulus(prime).value());
            }
            let mut keys = StreamKeys { word: *keys };
            let arguments =
                [Argument::new(self.tables()), Argument::new(&limbs), Argument::new(&rows), Argument::new(&keys)];
            // Eight coefficients at a time.
            let launch = Self::each_word(self.ring.n() / 8, range.len(), dst.batch);
            // SAFETY: these are the kernel's arguments, and the rows exist.
            let done = unsafe { self.queue(c"uniform", launch, &arguments) };
            keys.word.zeroize();
            done?;
        }
        Ok(())
    }

    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        let place = Place::of_mut(&x);
        Ok(self.transform(false, primes, [&place, &place])?)
    }

    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        let place = Place::of_mut(&x);
        Ok(self.transform(true, primes, [&place, &place])?)
    }

    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        // SAFETY: the kernel takes two places.
        unsafe { self.map(c"add_assign", primes, &[Place::of_mut(&x), Place::of(&y)]) }
    }

    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        // SAFETY: the kernel takes two places.
        unsafe { self.map(c"sub_assign", primes, &[Place::of_mut(&x), Place::of(&y)]) }
    }

    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        // SAFETY: the kernel takes one place.
        unsafe { self.map(c"neg_assign", primes, &[Place::of_mut(&x)]) }
    }

    fn mul_into(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        // SAFETY: the kernel takes three places.
        unsafe { self.map(c"mul_into", primes, &[Place::of_mut(&out), Place::of(&a), Place::of(&b)]) }
    }

    fn mul_acc(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        // SAFETY: the kernel takes three places.
        unsafe { self.map(c"mul_acc", primes, &[Place::of_mut(&out), Place::of(&a), Place::of(&b)]) }
    }

    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Done {
        let more = |range| Some(self.scalars(primes, scalars, range));
        // SAFETY: the kernel takes one place and the scalars.
        let done = unsafe { self.pointwise(c"mul_scalar_assign", primes, &[Place::of_mut(&x)], more) };
        Ok(done?)
    }

    fn mul_scalar_acc(&self, primes: &[usize], x: View<'_, Self>, scalars: &[u64], out: ViewMut<'_, Self>) -> Done {
        let more = |range| Some(self.scalars(primes, scalars, range));
        let places = [Place::of_mut(&out), Place::of(&x)];
        // SAFETY: the kernel takes two places and the scalars.
        let done = unsafe { self.pointwise(c"mul_scalar_acc", primes, &places, more) };
        Ok(done?)
    }

    fn automorphism_coeff(&self, primes: &[usize], g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let inverse = inverse_mod_2_32(g as u32);
        let places = [Place::of_mut(&out), Place::of(&x)];
        // SAFETY: the kernel takes two places and a word, and reads within a limb whatever the word.
        let done = unsafe { self.pointwise(c"automorphism_coeff", primes, &places, |_| Some(inverse)) };
        Ok(done?)
    }

    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let primes = vec![0; x.rows.len()];
        let places = [Place::of_mut(&out), Place::of(&x)];
        // SAFETY: the kernel takes two places and a word, and reads within a limb whatever the word.
        let done = unsafe { self.pointwise(c"automorphism_ntt", &primes, &places, |_| Some(g as u32)) };
        Ok(done?)
    }

    fn conversion(
        &self,
        src: &IndexSet,
        dst: &IndexSet,
        spec: &ConvertSpec,
    ) -> Result<DeviceConversion<D>, BackendError> {
        DeviceConversion::new(self.pool(), &self.ring, src, dst, spec)
    }

    fn convert(
        &self,
        conversion: &DeviceConversion<D>,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Done {
        let one = Converted { conversion, from: src.rows, to: dst.rows };
        Ok(self.run_conversions(&[one], src, &dst, mode)?)
    }

    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Done {
        let cut = digit.cut(&self.ring.modulus(from));
        let cut = Cut {
            from: cut.p,
            half: cut.half,
            add: cut.add,
            mask: cut.mask,
            offset: cut.offset,
            shift: cut.shift,
            unused: 0,
        };
        let x = self.row_address(&Place::of(&src), src.row(0, 0))?;
        let place = Place::of_mut(&dst);
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let rows = self.rows(&place, dst.batch, range.clone())?;
            let arguments = [Argument::new(self.tables()), Argument::new(&limbs), Argument::new(&rows)];
            let more = [Argument::new(&x), Argument::new(&cut)];
            let launch = Self::each_word(self.ring.n(), range.len(), dst.batch);
            // SAFETY: these are the kernel's arguments, and the rows exist.
            unsafe { self.queue(c"radix_digit", launch, &[&arguments[..], &more[..]].concat())? };
        }
        Ok(())
    }

    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        keys: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Done {
        let (terms, accumulate) = (digits.batch as u32, u32::from(accumulate));
        let [out, digits] = [(Place::of_mut(&out), 2), (Place::of(&digits), digits.batch)];
        let keys = keys.each_ref().map(|key| (Place::of(key), terms as usize));
        for range in groups(primes.len(), MAX_LIMBS) {
            let limbs = Limbs::new(&primes[range.clone()]);
            let place = |(place, batch): &(Place<'_, D>, usize)| self.rows(place, *batch, range.clone());
            let rows = [place(&out)?, place(&digits)?, place(&keys[0])?, place(&keys[1])?];
            let mut arguments = vec![Argument::new(self.tables()), Argument::new(&limbs)];
            arguments.extend(rows.iter().map(Argument::new));
            arguments.extend([Argument::new(&terms), Argument::new(&accumulate)]);
            let launch = Self::each_word(self.ring.n(), range.len(), 1);
            // SAFETY: these are the kernel's arguments, and the rows of all batch elements exist.
            unsafe { self.queue(c"inner_product", launch, &arguments)? };
        }
        Ok(())
    }

    #[deny(clippy::wildcard_enum_match_arm, reason = "a new stage is to be decided on")]
    fn stage(&self, primes: &[usize], stage: Stage<'_, Self>) -> Done {
        match stage {
            Stage::TransformDigits(gadget) => self.transform_digits(primes, gadget),
            Stage::GadgetProduct { gadget, keys, out, accumulate } if self.fuses(&gadget) => {
                self.fused_gadget_product(primes, gadget, keys, out, accumulate)
            }
            Stage::SlotSums { sums, g } => self.slot_sums(primes, sums, g),
            Stage::SumInto { xs, scalars, g, out } if self.sums(&xs, &out) => {
                self.sum_into(primes, (&xs, scalars), g, out)
            }
            Stage::Conversions { each, src, dst, mode } if self.stages() == Stages::Fused => {
                Ok(self.run_conversions(&each, src, &dst, mode)?)
            }
            Stage::NttInverseInto { src, dst } => {
                Ok(self.transform(true, primes, [&Place::of(&src), &Place::of_mut(&dst)])?)
            }
            Stage::Tensor { a: [a0, a1], b: [b0, b1], out, mode } if !mode.slots => {
                self.fused_tensor(primes, [a0, a1, b0, b1], out, mode)
            }
            Stage::GadgetProduct { .. }
            | Stage::GadgetProductCoeff { .. }
            | Stage::GadgetProductOnto { .. }
            | Stage::GadgetSums { .. }
            | Stage::SumInto { .. }
            | Stage::RotatedProduct { .. }
            | Stage::Conversions { .. }
            | Stage::ProductSums { .. }
            | Stage::Tensor { .. } => stage.apart(self, primes),
        }
    }
}
