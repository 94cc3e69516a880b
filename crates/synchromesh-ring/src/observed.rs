//! A backend around another that tells an observer, as data, of each primitive and each fused stage it is asked for.
//!
//! What is written down is the observer's: [`crate::counting`] counts, [`crate::ledger`] keeps a ledger. So is the choice,
//! stage by stage, between handing it on whole and taking it apart, after which the observer is told of its parts.

use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroize::Zeroize;

use crate::backend::{Around, Backend, BackendError, ConvertMode, RadixDigit, SignedWidth, Stage, View, ViewMut};
use crate::ring::{IndexSet, Ring};
use crate::rns::{ConvertSpec, Count};
use crate::sampler::{Purpose, Seed};

/// A JavaScript machine has no clock for us: operations there take no time that is known.
const HAS_CLOCK: bool = cfg!(not(all(target_family = "wasm", target_os = "unknown")));

/// A base conversion as far as its cost goes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConversionShape {
    /// The primes it reads.
    pub src: IndexSet,
    /// The primes it writes.
    pub dst: IndexSet,
    /// Whether the source is multiplied first.
    pub prescaled: bool,
    /// Whether overflows are counted.
    pub counted: bool,
}

/// Which primitive: the methods of [`Backend`] that compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the methods of the same names are documented")]
pub enum Primitive<'a> {
    Copy,
    ReduceSigned,
    Uniform,
    NttForward,
    NttInverse,
    AddAssign,
    SubAssign,
    NegAssign,
    MulInto,
    MulAcc,
    MulScalarAssign,
    MulScalarAcc,
    AutomorphismCoeff,
    AutomorphismNtt,
    Convert(&'a ConversionShape, ConvertMode),
    RadixDigit,
    InnerProduct { terms: usize, accumulate: bool },
}

/// A primitive that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call<'a> {
    /// Which one.
    pub primitive: Primitive<'a>,
    /// Limbs of each polynomial.
    pub limbs: usize,
    /// The prime of each limb; none where primes do not matter, or where the primitive says which.
    pub primes: Option<&'a [usize]>,
    /// Polynomials.
    pub batch: usize,
}

/// What becomes of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handling<T> {
    /// It is handed on as one, and this is noted.
    Whole(T),
    /// It is taken apart.
    Apart,
}

/// Who is told; see the module's text.
pub trait Observer: Send + Sync + 'static {
    /// What is written down of one call.
    type Note;
    /// Kept with a buffer until that is dropped.
    type Mark: Send + Sync;

    /// A buffer of so many bytes is there.
    fn allocated(&self, bytes: usize) -> Self::Mark;

    /// What to note of a primitive.
    fn primitive(&self, ring: &Ring, call: &Call<'_>) -> Self::Note;

    /// What to do with a stage.
    fn stage<B: Backend>(&self, ring: &Ring, primes: &[usize], stage: &Stage<'_, B>) -> Handling<Self::Note>;

    /// What was noted is done, and took so long.
    fn done(&self, note: Self::Note, time: Duration);
}

/// A backend and who is told of what it is asked for.
pub struct Observed<B, O> {
    inner: B,
    observer: O,
}

/// A buffer with its observer's mark.
pub struct Marked<T, M> {
    inner: T,
    _mark: M,
}

impl<T: Zeroize, M> Zeroize for Marked<T, M> {
    fn zeroize(&mut self) {
        self.inner.zeroize();
    }
}

/// A prepared conversion and its shape.
pub struct ShapedConversion<C> {
    inner: C,
    shape: ConversionShape,
}

type Done = Result<(), BackendError>;

impl<B: Backend, O: Observer + Default> Observed<B, O> {
    /// Observes `inner`.
    pub fn new(inner: B) -> Self {
        Self { inner, observer: O::default() }
    }
}

impl<B: Backend, O: Observer> Observed<B, O> {
    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }

    /// Runs `run` on the inner backend, a primitive modulo `primes` of so many polynomials.
    fn tell(&self, primitive: Primitive<'_>, primes: &[usize], batch: usize, run: impl FnOnce(&B) -> Done) -> Done {
        self.call(&Call { primitive, limbs: primes.len(), primes: Some(primes), batch }, run)
    }

    fn call(&self, call: &Call<'_>, run: impl FnOnce(&B) -> Done) -> Done {
        self.timed(self.observer.primitive(self.ring(), call), run)
    }

    fn timed(&self, note: O::Note, run: impl FnOnce(&B) -> Done) -> Done {
        let start = HAS_CLOCK.then(Instant::now);
        run(&self.inner)?;
        self.observer.done(note, start.map_or(Duration::ZERO, |start| start.elapsed()));
        Ok(())
    }
}

impl<B: Backend, O: Observer> Around<B> for Observed<B, O> {
    fn buffer(outer: &Self::Buffer) -> Result<&B::Buffer, BackendError> {
        Ok(&outer.inner)
    }

    fn buffer_mut(outer: &mut Self::Buffer) -> Result<&mut B::Buffer, BackendError> {
        Ok(&mut outer.inner)
    }

    fn prepared(outer: &Self::Conversion) -> Result<&B::Conversion, BackendError> {
        Ok(&outer.inner)
    }
}

impl<B: Backend, O: Observer> Backend for Observed<B, O> {
    const HOLDS_NUMBERS: bool = B::HOLDS_NUMBERS;

    type Buffer = Marked<B::Buffer, O::Mark>;
    type Conversion = ShapedConversion<B::Conversion>;

    fn ring(&self) -> &Arc<Ring> {
        self.inner.ring()
    }

    fn keeps_repeated(&self) -> bool {
        self.inner.keeps_repeated()
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn alloc(&self, rows: usize) -> Result<Self::Buffer, BackendError> {
        let inner = self.inner.alloc(rows)?;
        Ok(Marked { inner, _mark: self.observer.allocated(rows * self.ring().n() * size_of::<u64>()) })
    }

    fn upload(&self, words: &[u64], buffer: &mut Self::Buffer, row: usize) -> Done {
        self.inner.upload(words, &mut buffer.inner, row)
    }

    fn download(&self, buffer: &Self::Buffer, row: usize, words: &mut [u64]) -> Done {
        self.inner.download(&buffer.inner, row, words)
    }

    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Done {
        let call = Call { primitive: Primitive::Copy, limbs: src.rows.len(), primes: None, batch: src.batch };
        self.call(&call, |b| b.copy(src.inside()?, dst.inside()?))
    }

    fn reduce_signed(&self, primes: &[usize], values: &[i64], width: SignedWidth, dst: ViewMut<'_, Self>) -> Done {
        self.tell(Primitive::ReduceSigned, primes, dst.batch, |b| b.reduce_signed(primes, values, width, dst.inside()?))
    }

    fn uniform(&self, primes: &[usize], seed: &Seed, purpose: Purpose, digit: u32, dst: ViewMut<'_, Self>) -> Done {
        self.tell(Primitive::Uniform, primes, dst.batch, |b| b.uniform(primes, seed, purpose, digit, dst.inside()?))
    }

    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        self.tell(Primitive::NttForward, primes, x.batch, |b| b.ntt_forward(primes, x.inside()?))
    }

    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        self.tell(Primitive::NttInverse, primes, x.batch, |b| b.ntt_inverse(primes, x.inside()?))
    }

    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        self.tell(Primitive::AddAssign, primes, x.batch, |b| b.add_assign(primes, x.inside()?, y.inside()?))
    }

    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        self.tell(Primitive::SubAssign, primes, x.batch, |b| b.sub_assign(primes, x.inside()?, y.inside()?))
    }

    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        self.tell(Primitive::NegAssign, primes, x.batch, |b| b.neg_assign(primes, x.inside()?))
    }

    fn mul_into(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let batch = out.batch;
        self.tell(Primitive::MulInto, primes, batch, |inner| {
            inner.mul_into(primes, a.inside()?, b.inside()?, out.inside()?)
        })
    }

    fn mul_acc(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let batch = out.batch;
        self.tell(Primitive::MulAcc, primes, batch, |inner| {
            inner.mul_acc(primes, a.inside()?, b.inside()?, out.inside()?)
        })
    }

    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Done {
        let batch = x.batch;
        self.tell(Primitive::MulScalarAssign, primes, batch, |b| b.mul_scalar_assign(primes, x.inside()?, scalars))
    }

    fn mul_scalar_acc(&self, primes: &[usize], x: View<'_, Self>, scalars: &[u64], out: ViewMut<'_, Self>) -> Done {
        let run = |b: &B| b.mul_scalar_acc(primes, x.inside()?, scalars, out.inside()?);
        self.tell(Primitive::MulScalarAcc, primes, x.batch, run)
    }

    fn automorphism_coeff(&self, primes: &[usize], g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let run = |b: &B| b.automorphism_coeff(primes, g, x.inside()?, out.inside()?);
        self.tell(Primitive::AutomorphismCoeff, primes, x.batch, run)
    }

    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        let call = Call { primitive: Primitive::AutomorphismNtt, limbs: x.rows.len(), primes: None, batch: x.batch };
        self.call(&call, |b| b.automorphism_ntt(g, x.inside()?, out.inside()?))
    }

    fn conversion(&self, src: &IndexSet, dst: &IndexSet, spec: &ConvertSpec) -> Result<Self::Conversion, BackendError> {
        let (prescaled, counted) = (spec.prescale.is_some(), spec.overflow != Count::None);
        let shape = ConversionShape { src: src.clone(), dst: dst.clone(), prescaled, counted };
        Ok(ShapedConversion { inner: self.inner.conversion(src, dst, spec)?, shape })
    }

    fn convert(
        &self,
        conversion: &Self::Conversion,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
        mode: ConvertMode,
    ) -> Done {
        let primitive = Primitive::Convert(&conversion.shape, mode);
        let call = Call { primitive, limbs: dst.rows.len(), primes: None, batch: src.batch };
        self.call(&call, |b| b.convert(&conversion.inner, src.inside()?, dst.inside()?, mode))
    }

    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Done {
        let run = |b: &B| b.radix_digit(primes, from, digit, src.inside()?, dst.inside()?);
        self.tell(Primitive::RadixDigit, primes, src.batch, run)
    }

    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        [k0, k1]: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Done {
        let run =
            |b: &B| b.inner_product(primes, digits.inside()?, [k0.inside()?, k1.inside()?], out.inside()?, accumulate);
        self.tell(Primitive::InnerProduct { terms: digits.batch, accumulate }, primes, 1, run)
    }

    fn stage(&self, primes: &[usize], stage: Stage<'_, Self>) -> Done {
        match self.observer.stage(self.ring(), primes, &stage) {
            Handling::Whole(note) => self.timed(note, |b| b.stage(primes, stage.inside()?)),
            Handling::Apart => stage.apart(self, primes),
        }
    }
}
