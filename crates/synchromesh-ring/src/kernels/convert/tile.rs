//! The inner loops of base conversion, on a tile of coefficients that stays in the first-level cache.

use super::Mode;
use crate::kernels::aligned;
use crate::kernels::lanes::{Consts, Kernel, Lanes};
use crate::modulus::Modulus;

/// One destination row: out (=, +=) bias + u c + sum_j y_j m_j mod q on `len` words, a multiple of 64.
pub(super) struct Row<'a> {
    pub(super) q: &'a Modulus,
    /// The sources y_j, of at least `len` words.
    pub(super) y: &'a [&'a [u64]],
    /// m_j < q, one per source.
    pub(super) m: &'a [u64],
    /// Overflow counts below 2^33, or null for none.
    pub(super) u: *const u64,
    pub(super) correction: u64,
    pub(super) bias: u64,
    pub(super) out: *mut u64,
    pub(super) len: usize,
    pub(super) mode: Mode,
}

/// Vectors of a row computed together, so that the latency of the accumulators is hidden.
const COLUMNS: usize = 8;

impl Kernel for Row<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: y, u and out are valid for `len` words, a multiple of 64 and so of every step taken here.
        unsafe {
            let k = L::consts(self.q);
            match self.mode {
                Mode::Stream if aligned(self.out) => self.rows::<L>(&k, |out, r| L::stream(out, r)),
                Mode::Replace | Mode::Stream => self.rows::<L>(&k, |out, r| L::store(out, r)),
                Mode::Add => self.rows::<L>(&k, |out, r| L::store(out, L::csub(L::add(L::load(out), r), k.q))),
            }
        }
    }
}

impl Row<'_> {
    #[inline(always)]
    unsafe fn rows<L: Lanes>(&self, k: &Consts<L::V>, finish: impl Fn(*mut u64, L::V)) {
        // SAFETY: forwarded contract.
        unsafe {
            if L::ALONE {
                self.columns::<L, { COLUMNS / 2 }>(k, finish);
            } else {
                self.columns::<L, COLUMNS>(k, finish);
            }
        }
    }

    /// C vectors at a time.
    #[inline(always)]
    unsafe fn columns<L: Lanes, const C: usize>(&self, k: &Consts<L::V>, finish: impl Fn(*mut u64, L::V)) {
        // SAFETY: forwarded contract.
        unsafe {
            for i in (0..self.len).step_by(C * L::WIDTH) {
                let mut acc = [(L::splat(self.bias), L::splat(0)); C];
                let (mut free, mut open) = (L::ACC_TERMS, 0);
                if !self.u.is_null() {
                    let correction = L::acc_factor(L::splat(self.correction));
                    for (c, acc) in acc.iter_mut().enumerate() {
                        L::acc_mul_by(acc, L::load(self.u.add(i + c * L::WIDTH)), correction);
                    }
                    (free, open) = (free - 1, 1);
                }
                let mut done = 0;
                loop {
                    let until = self.m.len().min(done + free);
                    for j in done..until {
                        let m = L::acc_factor(L::splat(*self.m.get_unchecked(j)));
                        let y = self.y.get_unchecked(j).as_ptr().add(i);
                        for (c, acc) in acc.iter_mut().enumerate() {
                            L::acc_mul_by(acc, L::load(y.add(c * L::WIDTH)), m);
                        }
                    }
                    open += until - done;
                    done = until;
                    if done == self.m.len() {
                        break;
                    }
                    for acc in &mut acc {
                        *acc = (L::acc_reduce(*acc, open, k), L::splat(0));
                    }
                    (free, open) = (L::ACC_TERMS, 0);
                }
                for (c, acc) in acc.into_iter().enumerate() {
                    finish(self.out.add(i + c * L::WIDTH), L::acc_reduce(acc, open, k));
                }
            }
        }
    }
}

/// One source of the fixed-point overflow count.
#[derive(Clone, Copy, Debug)]
pub(super) struct FixedTerm {
    /// Bit length of p.
    pub(super) bits: u32,
    /// floor(2^(51+bits)/p).
    pub(super) factor: u64,
}

/// u = floor((sum_j floor(h_j F_j / 2^52) + offset) / 2^50) on `len` words, a multiple of 64.
pub(super) struct FixedCount<'a> {
    pub(super) y: &'a [&'a [u64]],
    pub(super) terms: &'a [FixedTerm],
    /// 2^49 to round to nearest, else 0.
    pub(super) offset: u64,
    pub(super) u: *mut u64,
    pub(super) len: usize,
}

impl Kernel for FixedCount<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: y and u are valid for `len` words.
        unsafe {
            for i in (0..self.len).step_by(COLUMNS * L::WIDTH) {
                let mut sum = [L::splat(self.offset); COLUMNS];
                for (j, term) in self.terms.iter().enumerate() {
                    let factor = L::splat(term.factor);
                    let y = self.y.get_unchecked(j).as_ptr().add(i);
                    for (c, sum) in sum.iter_mut().enumerate() {
                        let y = L::load(y.add(c * L::WIDTH));
                        let h = if term.bits > 51 { L::shr(y, term.bits - 51) } else { L::shl(y, 51 - term.bits) };
                        *sum = L::acc_hi52(*sum, h, factor);
                    }
                }
                for (c, sum) in sum.into_iter().enumerate() {
                    L::store(self.u.add(i + c * L::WIDTH), L::shr(sum, 50));
                }
            }
        }
    }
}

/// u = (2^31 - sum_j y_j w_j) mod 2^32 on `len` words: 2^31 plus the centred value of -sum_j y_j w_j.
pub(super) struct MontgomeryCount<'a> {
    pub(super) y: &'a [&'a [u64]],
    pub(super) weights: &'a [u32],
    pub(super) u: *mut u64,
    pub(super) len: usize,
}

impl Kernel for MontgomeryCount<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: y and u are valid for `len` words.
        unsafe {
            for i in (0..self.len).step_by(L::WIDTH) {
                let mut sum = L::splat(0);
                for (j, &w) in self.weights.iter().enumerate() {
                    let y = L::load(self.y.get_unchecked(j).as_ptr().add(i));
                    sum = L::add(sum, L::mul_lo(y, L::splat(u64::from(w))));
                }
                let u = L::and(L::sub(L::splat(1 << 31), sum), L::splat(0xffff_ffff));
                L::store(self.u.add(i), u);
            }
        }
    }
}
