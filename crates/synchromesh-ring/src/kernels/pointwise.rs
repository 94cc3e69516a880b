//! Element-by-element operations on limbs, written once over lanes.

use super::lanes::{Consts, Kernel, Lanes, Scalar1};
use crate::modulus::{Modulus, Scalar};
use crate::repeated::standing_for;
use std::marker::PhantomData;

/// Constants of an operation: those of the modulus and a factor with its companion.
pub(super) struct Env<V> {
    k: Consts<V>,
    /// The factor as a word,
    value: V,
    /// as the lanes want it,
    c: V,
    companion: V,
}

/// out = op(a, b, out), on one vector.
///
/// # Safety
/// As [`Lanes`].
pub(super) trait Op {
    /// in: residues < q unless the operation says otherwise; out: < q.
    unsafe fn apply<L: Lanes>(a: L::V, b: L::V, out: L::V, e: &Env<L::V>) -> L::V;
}

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident |$a:ident, $b:ident, $o:ident, $e:ident, $l:ident| $body:expr;)*) => {
        $(
            $(#[$doc])*
            pub(super) struct $name;
            impl Op for $name {
                #[inline(always)]
                unsafe fn apply<$l: Lanes>($a: $l::V, $b: $l::V, $o: $l::V, $e: &Env<$l::V>) -> $l::V {
                    let _ = ($a, $b, $o);
                    // SAFETY: forwarded contract.
                    unsafe { $body }
                }
            }
        )*
    };
}

ops! {
    /// a + b
    Add |a, b, o, e, L| L::csub(L::add(a, b), e.k.q);
    /// a - b
    Sub |a, b, o, e, L| L::cadd(L::sub(a, b), e.k.q);
    /// -a
    Neg |a, b, o, e, L| L::cadd(L::sub(L::sub(a, a), a), e.k.q);
    /// a b
    Mul |a, b, o, e, L| L::mul(a, b, &e.k);
    /// out + a b
    MulAcc |a, b, o, e, L| L::csub(L::add(o, L::mul(a, b, &e.k)), e.k.q);
    /// a c
    MulScalar |a, b, o, e, L| L::csub(L::mul_lazy(a, e.c, e.companion, &e.k), e.k.q);
    /// out + a c
    MulScalarAcc |a, b, o, e, L| L::csub(L::csub(L::add(o, L::mul_lazy(a, e.c, e.companion, &e.k)), e.k.q2), e.k.q);
    /// (a - b) c
    SubMulScalar |a, b, o, e, L| L::csub(L::mul_lazy(L::sub(L::add(a, e.k.q), b), e.c, e.companion, &e.k), e.k.q);
    /// a mod q, for any word
    Reduce |a, b, o, e, L| L::reduce(a, &e.k);
    /// a mod q, for any signed word; c = 2^63 mod q
    FromSigned |a, b, o, e, L| {
        // a + 2^63 as an unsigned word.
        let shifted = L::reduce(L::add(a, L::splat(1 << 63)), &e.k);
        L::cadd(L::sub(shifted, e.value), e.k.q)
    };
}

/// An operation on n words; slices may coincide with `out` but not overlap it otherwise. Past the caches if `STREAM`, which
/// needs an aligned `out` that the operation does not read.
pub(super) struct Map<'a, O, const STREAM: bool> {
    pub(super) op: PhantomData<O>,
    pub(super) modulus: &'a Modulus,
    pub(super) scalar: Scalar,
    pub(super) a: *const u64,
    pub(super) b: *const u64,
    pub(super) out: *mut u64,
    pub(super) n: usize,
}

impl<O: Op, const STREAM: bool> Kernel for Map<'_, O, STREAM> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the three pointers are valid for n words.
        unsafe {
            let body = self.n - self.n % L::WIDTH;
            self.range::<L>(0, body);
            if body < self.n {
                self.range::<Scalar1>(body, self.n);
            }
        }
    }
}

impl<O: Op, const STREAM: bool> Map<'_, O, STREAM> {
    #[inline(always)]
    unsafe fn range<L: Lanes>(&self, from: usize, to: usize) {
        // SAFETY: from and to are at most n, and WIDTH divides their difference.
        unsafe {
            let (scalar, modulus) = (&self.scalar, self.modulus);
            let (c, companion) = (L::splat(L::factor(scalar, modulus)), L::splat(L::companion(scalar)));
            let e = Env { k: L::consts(modulus), value: L::splat(scalar.value), c, companion };
            for i in (from..to).step_by(L::WIDTH) {
                let (a, b) = (L::load(self.a.add(i)), L::load(self.b.add(i)));
                let result = O::apply::<L>(a, b, L::load(self.out.cast_const().add(i)), &e);
                let out = self.out.add(i);
                if STREAM { L::stream(out, result) } else { L::store(out, result) }
            }
        }
    }
}

/// out0 (+)= sum_j d_j k0_j, out1 (+)= sum_j d_j k1_j on n words.
pub(super) struct InnerProduct2<'a> {
    pub(super) modulus: &'a Modulus,
    pub(super) digits: &'a [&'a [u64]],
    pub(super) keys: [&'a [&'a [u64]]; 2],
    /// Where in the digits and keys to begin.
    pub(super) first: usize,
    pub(super) out: [*mut u64; 2],
    pub(super) n: usize,
    pub(super) accumulate: bool,
    /// Past the caches; the outputs are aligned and not read.
    pub(super) stream: bool,
    /// Eight words of a digit stand for a block of 64, see [`crate::repeated`].
    pub(super) repeated: bool,
}

impl Kernel for InnerProduct2<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: the outputs have n words, all other limbs `first` + n.
        unsafe {
            let wide = self.n - self.n % (2 * L::WIDTH);
            match (self.stream, self.repeated) {
                (true, true) => self.range::<L, 2, true, true>(0, wide),
                (true, false) => self.range::<L, 2, true, false>(0, wide),
                (false, true) => self.range::<L, 2, false, true>(0, wide),
                (false, false) => self.range::<L, 2, false, false>(0, wide),
            }
            match self.repeated {
                _ if wide == self.n => {}
                true => self.range::<Scalar1, 1, false, true>(wide, self.n),
                false => self.range::<Scalar1, 1, false, false>(wide, self.n),
            }
        }
    }
}

impl InnerProduct2<'_> {
    /// C vectors at a time; sums are reduced every `ACC_TERMS` products and at the end.
    #[inline(always)]
    unsafe fn range<L: Lanes, const C: usize, const STREAM: bool, const REPEATED: bool>(&self, from: usize, to: usize) {
        // SAFETY: from and to are at most n, and C WIDTH, which is at most 8, divides them.
        unsafe {
            let k = L::consts(self.modulus);
            let zero = L::splat(0);
            let terms = self.digits.len();
            for i in (from..to).step_by(C * L::WIDTH) {
                let mut acc = [[(zero, zero); 2]; C];
                if self.accumulate {
                    for c in 0..C {
                        for part in 0..2 {
                            acc[c][part].0 = L::load(self.out[part].cast_const().add(i + c * L::WIDTH));
                        }
                    }
                }
                let (mut done, mut open) = (0, 0);
                while done < terms {
                    let until = terms.min(done + L::ACC_TERMS);
                    for j in done..until {
                        let (d, k0, k1) = (
                            self.digits.get_unchecked(j),
                            self.keys[0].get_unchecked(j),
                            self.keys[1].get_unchecked(j),
                        );
                        for c in 0..C {
                            let at = self.first + i + c * L::WIDTH;
                            let digit = L::load(d.as_ptr().add(if REPEATED { standing_for(at) } else { at }));
                            L::acc_mul(&mut acc[c][0], digit, L::load(k0.as_ptr().add(at)));
                            L::acc_mul(&mut acc[c][1], digit, L::load(k1.as_ptr().add(at)));
                        }
                    }
                    (done, open) = (until, until - done);
                    if done < terms {
                        for sum in acc.as_flattened_mut() {
                            *sum = (L::acc_reduce(*sum, open, &k), zero);
                        }
                    }
                }
                for c in 0..C {
                    for part in 0..2 {
                        let (out, sum) = (self.out[part].add(i + c * L::WIDTH), L::acc_reduce(acc[c][part], open, &k));
                        if STREAM { L::stream(out, sum) } else { L::store(out, sum) }
                    }
                }
            }
        }
    }
}

/// out\[i\] = src\[perm\[i\]\] for i < n; every index is below the length of src.
pub(super) struct Permute {
    pub(super) src: *const u64,
    pub(super) perm: *const u32,
    pub(super) out: *mut u64,
    pub(super) n: usize,
}

impl Kernel for Permute {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: perm and out have n elements, and each index is within src.
        unsafe {
            let body = self.n - self.n % L::WIDTH;
            for i in (0..body).step_by(L::WIDTH) {
                L::store(self.out.add(i), L::gather(self.src, self.perm.add(i)));
            }
            for i in body..self.n {
                Scalar1::store(self.out.add(i), Scalar1::gather(self.src, self.perm.add(i)));
            }
        }
    }
}

/// Blocks of 64 words, each to block `to` of out: out\[i\] = src\[from\[i\]\] there.
pub(super) struct PermuteBlocks<'a> {
    pub(super) src: *const u64,
    pub(super) from: *const u32,
    /// One for each block.
    pub(super) to: &'a [u32],
    pub(super) out: *mut u64,
    /// Past the caches; out is aligned.
    pub(super) stream: bool,
}

impl Kernel for PermuteBlocks<'_> {
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: src, from and out have N elements; `from` and `to` are permutations of them and of their blocks.
        unsafe {
            for &to in self.to {
                for i in (64 * to as usize..64 * (to as usize + 1)).step_by(L::WIDTH) {
                    let slots = L::gather(self.src, self.from.add(i));
                    let out = self.out.add(i);
                    if self.stream { L::stream(out, slots) } else { L::store(out, slots) }
                }
            }
        }
    }
}
