//! The negacyclic transform: a plan object holds the twiddle factors and the kernel chosen for them.
#![doc = include_str!("../docs/ntt.md")]

mod butterfly;
pub mod naive;
mod network;
mod tables;

pub use crate::slot_order::{MAX_LOG_N, MIN_LOG_N, galois_permutation, slot_exponents};

use std::ops::Range;
use std::sync::OnceLock;

use crate::isa::{Isa, Multipliers};
use crate::kernels::lanes::{Kernel, dispatch, dispatch_forward};
use crate::kernels::{STREAM_WORDS, aligned, is_narrow, settle_streams};
use crate::modulus::{Modulus, Scalar};
use crate::prime::{PrimeError, root_of_unity};
use butterfly::{Forward, Inverse};
use tables::{Aligned, Build, Pass, passes};

/// Why a transform cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NttError {
    /// The ring degree is out of range.
    #[error("log2 N = {log_n} is outside {MIN_LOG_N} to {MAX_LOG_N}")]
    Degree {
        /// The log2 N asked for.
        log_n: u32,
    },
    /// The modulus is no prime that is 1 mod 2N.
    #[error(transparent)]
    Prime(#[from] PrimeError),
    /// The CPU lacks the instruction set.
    #[error(transparent)]
    Isa(#[from] crate::isa::IsaError),
}

/// The twiddle factors of one (q, N), made when they are first used, and the kernel chosen for them.
#[derive(Clone, Debug)]
pub struct NttTable {
    modulus: Modulus,
    log_n: u32,
    isa: Isa,
    multipliers: Multipliers,
    psi: u64,
    passes: Vec<Pass>,
    forward: OnceLock<Factors>,
    inverse: OnceLock<Factors>,
    inverse_n: Scalar,
}

/// The factors of one direction.
#[derive(Clone, Debug, Default)]
struct Factors {
    words: Aligned,
    /// Where those of the blocks of 64 begin.
    leaves: usize,
}

impl NttTable {
    /// The tables for one prime q = 1 mod 2N, N = 2^log_n, log_n in 10..=18, computed with the kernels of `isa`.
    ///
    /// [`Isa::Ifma`] serves q < 2^50 only; above that the table takes [`Isa::Avx512`].
    ///
    /// # Errors
    /// [`NttError`]: degree out of range, modulus not prime or not 1 mod 2N, instruction set absent.
    pub fn new(modulus: Modulus, log_n: u32, isa: Isa) -> Result<Self, NttError> {
        if !(MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
            return Err(NttError::Degree { log_n });
        }
        let isa = crate::kernels::effective_isa(&modulus, isa.require()?);
        let psi = root_of_unity(&modulus, log_n)?;
        let n = 1u64 << log_n;
        let inverse_n = modulus.scalar(modulus.neg((modulus.value() - 1) / n));
        let (forward, inverse) = (OnceLock::new(), OnceLock::new());
        let (multipliers, passes) = (Multipliers::detect(), passes(log_n));
        Ok(Self { modulus, log_n, isa, multipliers, psi, passes, forward, inverse, inverse_n })
    }

    /// The same table for another kind of core than this one: to measure and to test what such a one would run.
    #[must_use]
    pub fn with_multipliers(self, multipliers: Multipliers) -> Self {
        Self { multipliers, ..self }
    }

    fn forward_factors(&self) -> &Factors {
        self.forward.get_or_init(|| self.factors(self.psi, 1))
    }

    fn inverse_factors(&self) -> &Factors {
        let inverse_psi = || self.modulus.pow(self.psi, self.modulus.value() - 2);
        self.inverse.get_or_init(|| self.factors(inverse_psi(), self.inverse_n.value))
    }

    fn factors(&self, base: u64, scale: u64) -> Factors {
        let mut factors = Factors::default();
        self.dispatch(Build { modulus: &self.modulus, base, log_n: self.log_n, scale, factors: &mut factors });
        factors
    }

    /// The prime.
    #[must_use]
    pub fn modulus(&self) -> Modulus {
        self.modulus
    }

    /// log2 of the ring degree N.
    #[must_use]
    pub fn log_n(&self) -> u32 {
        self.log_n
    }

    /// The ring degree N.
    #[must_use]
    pub fn n(&self) -> usize {
        1 << self.log_n
    }

    /// The instruction set in use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// The primitive 2N-th root of unity, see [`root_of_unity`].
    #[must_use]
    pub fn psi(&self) -> u64 {
        self.psi
    }

    /// Coefficients in [0, q) to slots in [0, q), in the order of [`slot_exponents`].
    ///
    /// # Panics
    /// If x does not have N elements.
    pub fn forward(&self, x: &mut [u64]) {
        assert_eq!(x.len(), self.n(), "transform of the wrong length");
        debug_assert!(x.iter().all(|&c| c < self.modulus.value()), "input not below q");
        let x = x.as_mut_ptr();
        self.run_forward(x, x);
    }

    /// Slots in [0, q) to coefficients in [0, q): the inverse of [`NttTable::forward`], 1/N included.
    ///
    /// # Panics
    /// If x does not have N elements.
    pub fn inverse(&self, x: &mut [u64]) {
        assert_eq!(x.len(), self.n(), "transform of the wrong length");
        debug_assert!(x.iter().all(|&c| c < self.modulus.value()), "input not below q");
        let x = x.as_mut_ptr();
        self.run_inverse(x, x, x, false);
    }

    /// [`NttTable::forward`] from one slice to another.
    ///
    /// # Panics
    /// If a slice does not have N elements.
    pub fn forward_into(&self, src: &[u64], dst: &mut [u64]) {
        assert!(src.len() == self.n() && dst.len() == self.n(), "transform of the wrong length");
        debug_assert!(src.iter().all(|&c| c < self.modulus.value()), "input not below q");
        self.run_forward(src.as_ptr(), dst.as_mut_ptr());
    }

    /// [`NttTable::inverse`] from one slice to another.
    ///
    /// # Panics
    /// If a slice does not have N elements.
    pub fn inverse_into(&self, src: &[u64], dst: &mut [u64]) {
        assert!(src.len() == self.n() && dst.len() == self.n(), "transform of the wrong length");
        debug_assert!(src.iter().all(|&c| c < self.modulus.value()), "input not below q");
        let (src, dst) = (src.as_ptr(), dst.as_mut_ptr());
        self.run_inverse(src, dst, dst, false);
    }

    /// [`NttTable::inverse_into`] by way of `work`, which should stay in the caches; the result goes past them if it is
    /// large.
    ///
    /// # Panics
    /// If a slice does not have N elements.
    pub(crate) fn inverse_through(&self, src: &[u64], work: &mut [u64], dst: &mut [u64]) {
        let n = self.n();
        assert!(src.len() == n && work.len() == n && dst.len() == n, "transform of the wrong length");
        debug_assert!(src.iter().all(|&c| c < self.modulus.value()), "input not below q");
        self.run_inverse(src.as_ptr(), work.as_mut_ptr(), dst.as_mut_ptr(), self.streams_inverse(dst));
    }

    /// As [`NttTable::inverse_through`] from `work` itself, which is used up.
    pub(crate) fn inverse_from(&self, work: &mut [u64], dst: &mut [u64]) {
        assert!(work.len() == self.n() && dst.len() == self.n(), "transform of the wrong length");
        debug_assert!(work.iter().all(|&c| c < self.modulus.value()), "input not below q");
        let work = work.as_mut_ptr();
        self.run_inverse(work, work, dst.as_mut_ptr(), self.streams_inverse(dst));
    }

    /// Parts of equal length of a transform's slots, for [`NttTable::forward_part`]: at least 1024 slots each.
    pub(crate) fn parts(&self) -> usize {
        1 << self.log_groups().min(self.log_n - MIN_LOG_N)
    }

    /// The slots of a part.
    pub(crate) fn part(&self, part: usize) -> Range<usize> {
        let len = self.n() / self.parts();
        part * len..(part + 1) * len
    }

    /// Part `part` of [`NttTable::forward_into`], in place without `src`. Part after part: each needs what the one
    /// before it left in `dst`.
    ///
    /// # Panics
    /// If a slice does not have N elements, or there is no such part.
    pub(crate) fn forward_part(&self, src: Option<&[u64]>, dst: &mut [u64], part: usize) {
        assert!(dst.len() == self.n() && src.is_none_or(|src| src.len() == self.n()), "transform of the wrong length");
        assert!(part < self.parts(), "transform of no part");
        let per_part = (1 << self.log_groups()) / self.parts();
        let dst = dst.as_mut_ptr();
        let src = src.map_or(dst.cast_const(), <[u64]>::as_ptr);
        self.run_groups(src, dst, part * per_part..(part + 1) * per_part);
    }

    /// log2 of the blocks in which the last slots are computed, see [`Forward`].
    fn log_groups(&self) -> u32 {
        self.passes.last().map_or(0, |pass| pass.first)
    }

    /// src and dst: valid for N words, equal or disjoint.
    fn run_forward(&self, src: *const u64, dst: *mut u64) {
        self.run_groups(src, dst, 0..1 << self.log_groups());
    }

    /// src and dst: valid for N words, equal or disjoint.
    fn run_groups(&self, src: *const u64, dst: *mut u64, run: Range<usize>) {
        let (modulus, passes, factors) = (&self.modulus, &self.passes[..], self.forward_factors());
        let (words, leaves) = (factors.words.words(), factors.leaves);
        let kernel = Forward { modulus, passes, words, leaves, log_n: self.log_n, run, src, dst };
        dispatch_forward(self.isa, self.multipliers, is_narrow(modulus), kernel);
    }

    /// Whether coefficients are written past the caches: from the degree on where a polynomial's are too many for them.
    fn streams_inverse(&self, dst: &[u64]) -> bool {
        self.n() > STREAM_WORDS && aligned(dst.as_ptr())
    }

    fn dispatch(&self, kernel: impl Kernel) {
        dispatch(self.isa, is_narrow(&self.modulus), kernel);
    }

    /// All valid for N words; src equals work or is disjoint from it, and so is work from dst.
    fn run_inverse(&self, src: *const u64, work: *mut u64, dst: *mut u64, stream: bool) {
        let (modulus, passes, factors) = (&self.modulus, &self.passes[..], self.inverse_factors());
        let (words, leaves, last, log_n) = (factors.words.words(), factors.leaves, self.inverse_n, self.log_n);
        self.dispatch(Inverse { modulus, passes, words, leaves, log_n, last, src, work, dst, stream });
        if stream {
            settle_streams();
        }
    }
}

#[cfg(test)]
mod tests;
