//! (a_0 b_0, a_0 b_1 + a_1 b_0, a_1 b_1), element by element, in one pass.

use super::LimbKernels;
use super::lanes::{Kernel, Lanes, Scalar1};
use crate::modulus::Modulus;

/// On n words. With `accumulate` added to the outputs; without, a_0 and a_1 may be the first and the third output.
struct Tensor<'a> {
    modulus: &'a Modulus,
    a: [*const u64; 2],
    b: [*const u64; 2],
    out: [*mut u64; 3],
    n: usize,
    accumulate: bool,
}

impl Kernel for Tensor<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: all pointers are valid for n words.
        unsafe {
            let body = self.n - self.n % L::WIDTH;
            self.range::<L>(0, body);
            if body < self.n {
                self.range::<Scalar1>(body, self.n);
            }
        }
    }
}

impl Tensor<'_> {
    #[inline(always)]
    unsafe fn range<L: Lanes>(&self, from: usize, to: usize) {
        // SAFETY: from and to are at most n, and WIDTH divides their difference. Everything is loaded before the first
        // output is stored, so that outputs may be inputs.
        unsafe {
            let (k, zero) = (L::consts(self.modulus), L::splat(0));
            for i in (from..to).step_by(L::WIDTH) {
                let [a0, a1] = self.a.map(|p| L::load(p.add(i)));
                let [b0, b1] = self.b.map(|p| L::load(p.add(i)));
                let mut sums = [(zero, zero); 3];
                if self.accumulate {
                    sums = self.out.map(|p| (L::load(p.cast_const().add(i)), zero));
                }
                L::acc_mul(&mut sums[0], a0, b0);
                L::acc_mul(&mut sums[1], a0, b1);
                L::acc_mul(&mut sums[1], a1, b0);
                L::acc_mul(&mut sums[2], a1, b1);
                for ((out, sum), terms) in self.out.into_iter().zip(sums).zip([1, 2, 1]) {
                    L::store(out.add(i), L::acc_reduce(sum, terms, &k));
                }
            }
        }
    }
}

impl LimbKernels {
    /// The tensor product of a and b: added to `out` where `a` is given, in its place where a_0 and a_1 are in the first
    /// and the third output.
    pub(crate) fn tensor(&self, a: Option<[&[u64]; 2]>, b: [&[u64]; 2], out: [&mut [u64]; 3]) {
        let n = out[0].len();
        let operands = || a.iter().flatten().chain(&b);
        assert!(out.iter().all(|x| x.len() == n) && operands().all(|x| x.len() == n), "limbs of unequal length");
        operands().for_each(|x| self.check(&[x]));
        let out = out.map(<[u64]>::as_mut_ptr);
        let (accumulate, b) = (a.is_some(), b.map(<[u64]>::as_ptr));
        let a = a.map_or([out[0].cast_const(), out[2].cast_const()], |a| a.map(<[u64]>::as_ptr));
        self.dispatch_sums(Tensor { modulus: &self.modulus, a, b, out, n, accumulate });
    }
}
