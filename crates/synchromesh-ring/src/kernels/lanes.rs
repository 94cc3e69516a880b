//! Vectors of residues: what an instruction set must offer, and the one entry point per instruction set.
//!
//! A kernel is a struct that implements [`Kernel`]; its body is written once over [`Lanes`] and inlined whole into
//! the entry point compiled for the instruction set, so no call is left inside a loop.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "vectors of doubles are of those two")
)]
mod doubles;
#[cfg(target_arch = "x86_64")]
mod ifma;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod simd128;

pub(crate) use doubles::{Float, FloatKernel, Short, TERMS};
pub(crate) use scalar::Scalar1;

use crate::isa::{Isa, Multipliers};
use crate::modulus::{Modulus, Scalar};

/// The constants of one modulus, broadcast.
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "some are for lanes of 52 bits")
)]
#[derive(Clone, Copy)]
pub(crate) struct Consts<V> {
    /// q
    pub(crate) q: V,
    /// 2q
    pub(crate) q2: V,
    /// LAZY q, the bound of [`Lanes::mul_twiddle`]
    pub(crate) lazy: V,
    /// q, 2q, 4q, 8q, 16q (where the lanes have room)
    pub(crate) multiples: [V; 5],
    /// floor((2^b/q - 1) 2^WORD), for [`Lanes::short_factor`]
    pub(crate) fraction: V,
    /// 2 (52-bit lanes)
    pub(crate) two: V,
    /// 2^52 - 2q (52-bit lanes)
    pub(crate) neg_q2: V,
    /// 2^52 - q (52-bit lanes)
    pub(crate) neg_q: V,
    /// 2^52 - 1 (52-bit lanes)
    pub(crate) mask: V,
    /// Barrett quotient of a product: floor(2^(63+b)/q), or floor(2^(51+b)/q) in 52-bit lanes
    pub(crate) mu: V,
    /// floor(2^64/q), or floor(2^52/q)
    pub(crate) one: V,
    /// 2^64 mod q, or 2^52 mod q
    pub(crate) word: V,
    /// companion of `word`
    pub(crate) word_companion: V,
    /// q and 1/q as doubles (lanes of doubles)
    pub(crate) q_double: V,
    pub(crate) q_inverse: V,
    /// (q - 1)/2 as a double
    pub(crate) half: V,
    /// bit length of q
    pub(crate) bits: u32,
}

impl<V: Copy> Consts<V> {
    /// The same constants in other vectors.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    fn map<W>(&self, f: impl Fn(V) -> W) -> Consts<W> {
        Consts {
            q: f(self.q),
            q2: f(self.q2),
            lazy: f(self.lazy),
            multiples: self.multiples.map(&f),
            fraction: f(self.fraction),
            two: f(self.two),
            neg_q2: f(self.neg_q2),
            neg_q: f(self.neg_q),
            mask: f(self.mask),
            mu: f(self.mu),
            one: f(self.one),
            word: f(self.word),
            word_companion: f(self.word_companion),
            q_double: f(self.q_double),
            q_inverse: f(self.q_inverse),
            half: f(self.half),
            bits: self.bits,
        }
    }
}

/// One to eight 64-bit words at a time, and arithmetic modulo q on them.
///
/// # Safety
/// Every method may be called only where the CPU has the instruction set, in code inlined into a function compiled
/// for it; pointers must be valid for `WIDTH` words (`gather`: `WIDTH` indices into a valid range).
///
/// Bounds: where the lanes are 52 bits wide (q < 2^50) a factor must be below 2^52.
pub(crate) trait Lanes: Copy {
    /// Words in a vector: 1, 2, 4 or 8.
    const WIDTH: usize;
    /// log2 of the word in which companions are expressed.
    const WORD: u32 = 64;
    /// The transform works with residues below LAZY q and, between layers, 2 LAZY q.
    const LAZY: u64 = 2;
    /// Whether words may be larger where q is smaller: products need factors below 2^WORD, whatever q, and ignore
    /// what is above.
    const ROOM: bool = false;
    /// Whether the words of a transform, between [`Lanes::enter`] and its last layer, are doubles of either sign.
    const DOUBLES: bool = false;
    /// Whether 8 vectors and what is done with them fill the registers, so that nothing is to be done beside it.
    const ALONE: bool = false;
    /// Products that [`Lanes::acc_mul`] may add to an accumulator that starts at a residue.
    const ACC_TERMS: usize = 32;
    /// A vector.
    type V: Copy;
    /// 8 / WIDTH columns of 8 vectors: a block of 64 words in row order.
    type Block: Copy + AsMut<[[Self::V; 8]]>;

    unsafe fn load(p: *const u64) -> Self::V;
    unsafe fn store(p: *mut u64, v: Self::V);
    /// As `store`, past the caches: for results larger than they are. p must be aligned to the vector.
    #[inline(always)]
    unsafe fn stream(p: *mut u64, v: Self::V) {
        // SAFETY: forwarded contract.
        unsafe { Self::store(p, v) }
    }
    unsafe fn splat(x: u64) -> Self::V;
    unsafe fn gather(base: *const u64, index: *const u32) -> Self::V;
    unsafe fn add(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn sub(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn and(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn or(a: Self::V, b: Self::V) -> Self::V;
    unsafe fn shl(a: Self::V, count: u32) -> Self::V;
    unsafe fn shr(a: Self::V, count: u32) -> Self::V;
    /// x - m if x >= m, else x. in: x < 2^63 (any x in 512-bit lanes), m <= 2^63.
    unsafe fn csub(x: Self::V, m: Self::V) -> Self::V;
    /// x + m if x < 0 as a signed word, else x. in: -m <= x < m, m <= 2^63.
    unsafe fn cadd(x: Self::V, m: Self::V) -> Self::V;
    /// x - m if x >= 0 as a signed word, else x. in: -m <= x < m, m <= 2^62.
    unsafe fn csub_negative(x: Self::V, m: Self::V) -> Self::V;
    /// a b mod 2^64
    unsafe fn mul_lo(a: Self::V, b: Self::V) -> Self::V;
    /// floor(a b / 2^64)
    unsafe fn mul_hi(a: Self::V, b: Self::V) -> Self::V;
    /// 1 where the unsigned sum = (something) + addend wrapped around, else 0.
    unsafe fn carry(sum: Self::V, addend: Self::V) -> Self::V;
    /// A block of zeros.
    unsafe fn zero_block() -> Self::Block;
    /// Transposes the 8 x 8 matrix of words.
    unsafe fn transpose(block: &mut Self::Block);

    /// What these lanes want of a constant w < q: itself,
    #[inline(always)]
    fn factor(w: &Scalar, _: &Modulus) -> u64 {
        w.value
    }

    /// and its companion.
    #[inline(always)]
    fn companion(w: &Scalar) -> u64 {
        w.shoup
    }

    /// What [`Lanes::short_factor`] makes both of.
    #[inline(always)]
    fn short_word(w: &Scalar, m: &Modulus) -> u64 {
        w.value << (Self::WORD - m.bits())
    }

    /// The constants of q, broadcast.
    #[inline(always)]
    unsafe fn consts(m: &Modulus) -> Consts<Self::V> {
        let (q, b) = (m.value(), m.bits());
        // 2^w mod q and its companion are remainders of the reciprocals 2^w / q and 2^2w / q.
        let one = m.reciprocal(Self::WORD);
        let word = (1u128 << Self::WORD) - one * u128::from(q);
        let word_companion = m.reciprocal(2 * Self::WORD) - (one << Self::WORD);
        // SAFETY: forwarded contract.
        unsafe {
            Consts {
                q: Self::splat(q),
                q2: Self::splat(2 * q),
                lazy: Self::splat(Self::LAZY * q),
                multiples: [0, 1, 2, 3, 4].map(|shift| Self::splat(q << if Self::ROOM { shift } else { 0 })),
                neg_q: Self::splat((1 << 52) - (q & ((1 << 52) - 1))),
                fraction: Self::splat((m.reciprocal(Self::WORD + b) - (1 << Self::WORD)) as u64),
                two: Self::splat(2),
                neg_q2: Self::splat((1u64 << 52).wrapping_sub(2 * q)),
                mask: Self::splat((1 << 52) - 1),
                mu: Self::splat(m.reciprocal(Self::WORD - 1 + b) as u64),
                one: Self::splat(one as u64),
                word: Self::splat(word as u64),
                word_companion: Self::splat(word_companion as u64),
                q_double: Self::splat((q as f64).to_bits()),
                q_inverse: Self::splat((1.0 / q as f64).to_bits()),
                half: Self::splat(((q / 2) as f64).to_bits()),
                bits: b,
            }
        }
    }

    /// x w mod q up to one q [Shoup]. in: w < q with its companion c; x any word (52-bit lanes: x < 2^52); out: < 2q.
    #[inline(always)]
    unsafe fn mul_lazy(x: Self::V, w: Self::V, c: Self::V, k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::sub(Self::mul_lo(x, w), Self::mul_lo(Self::mul_hi(x, c), k.q)) }
    }

    /// x w mod q up to some q. in: w < q with its companion c; x < 2 LAZY q; out: < LAZY q.
    #[inline(always)]
    unsafe fn mul_twiddle(x: Self::V, w: (Self::V, Self::V), k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::mul_lazy(x, w.0, w.1, k) }
    }

    /// [`Lanes::mul_twiddle`] less LAZY q: in [-LAZY q, 0) as a signed word.
    #[inline(always)]
    unsafe fn mul_twiddle_negative(x: Self::V, w: (Self::V, Self::V), k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::sub(Self::mul_twiddle(x, w, k), k.lazy) }
    }

    /// x mod q. in: x < LAZY q; out: < q.
    #[inline(always)]
    unsafe fn reduce_lazy(x: Self::V, k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::csub(x, k.q) }
    }

    /// As [`Lanes::mul_twiddle`]; the lanes may leave multiples of 2^WORD in the result.
    #[inline(always)]
    unsafe fn mul_open(x: Self::V, w: (Self::V, Self::V), k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::mul_twiddle(x, w, k) }
    }

    /// A residue as a word of a transform.
    #[inline(always)]
    unsafe fn enter(x: Self::V) -> Self::V {
        x
    }

    /// x + y of a transform.
    #[inline(always)]
    unsafe fn sum(x: Self::V, y: Self::V) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::add(x, y) }
    }

    /// x - y of a transform, plus `multiple` of q where words have no sign.
    #[inline(always)]
    unsafe fn difference(x: Self::V, y: Self::V, multiple: Self::V) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::sub(Self::add(x, multiple), y) }
    }

    /// w and nearly its companion c, from w 2^(WORD - b): w 2^WORD / q - 2 < c <= w 2^WORD / q, so that with
    /// [`Lanes::mul_open`] x w is below (1 + 2x / 2^WORD) q.
    #[inline(always)]
    unsafe fn short_factor(shifted: Self::V, k: &Consts<Self::V>) -> (Self::V, Self::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let companion = Self::add(shifted, Self::mul_hi(shifted, k.fraction));
            (Self::shr(shifted, Self::WORD - k.bits), companion)
        }
    }

    /// x up to multiples of q. in: x < 2 LAZY q (with room: x < 2^WORD up to multiples of 2^WORD); out: < LAZY q (with
    /// room: up to multiples of 2^WORD).
    #[inline(always)]
    unsafe fn bring_down(x: Self::V, k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::csub(x, k.lazy) }
    }

    /// (u + w y, u - w y) up to multiples of q: the forward butterfly. in: u < LAZY q, y < 2 LAZY q; out: < 2 LAZY q.
    ///
    /// With room: in: u < a, y < 2^WORD; out: < a + 2q; all up to multiples of 2^WORD.
    #[inline(always)]
    unsafe fn butterfly(u: Self::V, y: Self::V, w: (Self::V, Self::V), k: &Consts<Self::V>) -> (Self::V, Self::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let v = Self::mul_twiddle(y, w, k);
            (Self::add(u, v), Self::sub(Self::add(u, k.lazy), v))
        }
    }

    /// [`Lanes::butterfly`] of x brought down. in: x, y < 2 LAZY q, with room too.
    #[inline(always)]
    unsafe fn butterfly_down(x: Self::V, y: Self::V, w: (Self::V, Self::V), k: &Consts<Self::V>) -> (Self::V, Self::V) {
        // SAFETY: forwarded contract.
        unsafe { Self::butterfly(Self::bring_down(x, k), y, w, k) }
    }

    /// (u + w y, u - w y) mod q. in: as [`Lanes::butterfly`]; out: < q.
    #[inline(always)]
    unsafe fn butterfly_last(u: Self::V, y: Self::V, w: (Self::V, Self::V), k: &Consts<Self::V>) -> (Self::V, Self::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let (u, v) = (Self::reduce_lazy(u, k), Self::reduce_lazy(Self::mul_twiddle(y, w, k), k));
            (Self::csub(Self::add(u, v), k.q), Self::cadd(Self::sub(u, v), k.q))
        }
    }

    /// a b mod q [Barrett]. in: a, b < q; out: < q.
    #[inline(always)]
    unsafe fn mul(a: Self::V, b: Self::V, k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe {
            // The leading part floor(ab / 2^(b-1)) < 2^62; the quotient falls short by less than 2.25, so r < 3q.
            let (lo, hi) = (Self::mul_lo(a, b), Self::mul_hi(a, b));
            let lead = Self::or(Self::shl(hi, 65 - k.bits), Self::shr(lo, k.bits - 1));
            let r = Self::sub(lo, Self::mul_lo(Self::mul_hi(lead, k.mu), k.q));
            Self::csub(Self::csub(r, k.q2), k.q)
        }
    }

    /// (low, high) += a b. At most [`Lanes::ACC_TERMS`] times on an accumulator (x, 0) with x < q.
    #[inline(always)]
    unsafe fn acc_mul(acc: &mut (Self::V, Self::V), a: Self::V, b: Self::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let (lo, hi) = (Self::mul_lo(a, b), Self::mul_hi(a, b));
            let sum = Self::add(acc.0, lo);
            *acc = (sum, Self::add(Self::add(acc.1, hi), Self::carry(sum, lo)));
        }
    }

    /// b for [`Lanes::acc_mul_by`].
    #[inline(always)]
    unsafe fn acc_factor(b: Self::V) -> (Self::V, Self::V) {
        (b, b)
    }

    /// As [`Lanes::acc_mul`], by a factor for many.
    #[inline(always)]
    unsafe fn acc_mul_by(acc: &mut (Self::V, Self::V), a: Self::V, b: (Self::V, Self::V)) {
        // SAFETY: forwarded contract.
        unsafe { Self::acc_mul(acc, a, b.0) }
    }

    /// low + high 2^64 mod q, after `terms` of [`Lanes::acc_mul`]. out: < q.
    #[inline(always)]
    unsafe fn acc_reduce(acc: (Self::V, Self::V), terms: usize, k: &Consts<Self::V>) -> Self::V {
        let _ = terms;
        // SAFETY: forwarded contract.
        unsafe {
            let high = Self::mul_lazy(acc.1, k.word, k.word_companion, k);
            let low = Self::sub(acc.0, Self::mul_lo(Self::mul_hi(acc.0, k.one), k.q));
            Self::csub(Self::csub(Self::add(high, low), k.q2), k.q)
        }
    }

    /// x mod q for any words. out: < q.
    #[inline(always)]
    unsafe fn reduce(x: Self::V, k: &Consts<Self::V>) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::csub(Self::sub(x, Self::mul_lo(Self::mul_hi(x, k.one), k.q)), k.q) }
    }

    /// floor(h f / 2^52) added to sum. in: h, f < 2^52.
    #[inline(always)]
    unsafe fn acc_hi52(sum: Self::V, h: Self::V, f: Self::V) -> Self::V {
        // SAFETY: forwarded contract.
        unsafe { Self::add(sum, Self::mul_hi(Self::shl(h, 12), f)) }
    }
}

/// A computation written once over lanes.
///
/// # Safety
/// `run` may be called only where the CPU has the instruction set of `L`; it must be `#[inline(always)]`.
pub(crate) trait Kernel {
    /// Runs it.
    unsafe fn run<L: Lanes>(self);
}

/// Runs a kernel on an instruction set, which must be one the CPU has; `narrow` if all moduli are below 2^50, so that
/// factors are below 2^52.
#[inline]
pub(crate) fn dispatch<K: Kernel>(isa: Isa, narrow: bool, kernel: K) {
    debug_assert!(isa.is_available());
    // SAFETY: tables and kernel sets are built only with an instruction set that `Isa` found on this CPU.
    unsafe {
        match (isa, narrow) {
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, false) => avx2::run(kernel),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx2, true) => avx2::run_doubles::<K, false>(kernel),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512 | Isa::Ifma, false) => avx512::run(kernel),
            #[cfg(target_arch = "x86_64")]
            (Isa::Avx512, true) => avx512::run_doubles::<K, false>(kernel),
            #[cfg(target_arch = "x86_64")]
            (Isa::Ifma, true) => ifma::run::<K, false>(kernel),
            #[cfg(target_arch = "aarch64")]
            (Isa::Neon, false) => neon::run(kernel),
            #[cfg(target_arch = "aarch64")]
            (Isa::Neon, true) => neon::run_doubles::<K, false>(kernel),
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            (Isa::Simd128, _) => simd128::run(kernel),
            _ => kernel.run::<Scalar1>(),
        }
    }
}

/// As [`dispatch`], for forward transforms: on 52-bit lanes with the butterfly for such a core.
#[inline]
pub(crate) fn dispatch_forward<K: Kernel>(isa: Isa, multipliers: Multipliers, narrow: bool, kernel: K) {
    #[cfg(target_arch = "x86_64")]
    if isa == Isa::Ifma && narrow && multipliers == Multipliers::Half {
        // SAFETY: as in `dispatch`.
        return unsafe { ifma::run::<K, true>(kernel) };
    }
    let _ = multipliers;
    dispatch(isa, narrow, kernel);
}

/// As [`dispatch`], for sums of products of residues of a modulus of so many bits.
#[inline]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(unused_unsafe, unused_variables, reason = "vectors of doubles are of those two")
)]
pub(crate) fn dispatch_sums<K: Kernel>(isa: Isa, narrow: bool, bits: u32, kernel: K) {
    // SAFETY: as in `dispatch`.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 if bits <= SHORT_BITS => avx2::run_doubles::<K, true>(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 if bits <= SHORT_BITS => avx512::run_doubles::<K, true>(kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon if bits <= SHORT_BITS => neon::run_doubles::<K, true>(kernel),
            _ => dispatch(isa, narrow, kernel),
        }
    }
}

/// Bits of a modulus that [`Short`] serves.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
const SHORT_BITS: u32 = 47;

/// Runs a kernel for doubles, on an instruction set that multiplies them and that the CPU has.
#[inline]
#[cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(unused_unsafe, unused_variables, reason = "vectors of doubles are of those two")
)]
pub(crate) fn dispatch_float<K: FloatKernel>(isa: Isa, kernel: K) {
    debug_assert!(isa.multiplies_doubles() && isa.is_available());
    // SAFETY: as in `dispatch`.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::run_float(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512::run_float(kernel),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon => neon::run_float(kernel),
            _ => {}
        }
    }
}
