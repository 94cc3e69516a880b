//! Products of 52 bits in doubles, for vectors that multiply those and not words: q < 2^50, factors below 2^52.
//!
//! A fused multiplication and addition rounds once, so that the low half of a product is what it leaves of the high one
//! [Emmart, Zheng, Weems, 2018]. Words outside are residues as everywhere; factors, their companions (w/q) and, from the
//! first layer of a transform to its last, its words are doubles that are integers of either sign.

use super::{Consts, Lanes};
use crate::modulus::{Modulus, Scalar};
use std::marker::PhantomData;

/// A computation written once over [`Float`]: a [`Kernel`](super::Kernel) for moduli and words that doubles multiply.
///
/// # Safety
/// As [`Kernel`](super::Kernel).
pub(crate) trait FloatKernel {
    /// Runs it.
    unsafe fn run<B: Float>(self);
}

/// Vectors of words that are doubles too, rounded to nearest.
pub(crate) trait Float: Lanes {
    /// a + b
    unsafe fn plus(a: Self::V, b: Self::V) -> Self::V;
    /// a - b
    unsafe fn minus(a: Self::V, b: Self::V) -> Self::V;
    /// a b
    unsafe fn times(a: Self::V, b: Self::V) -> Self::V;
    /// a b + c
    unsafe fn fused(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// c - a b
    unsafe fn minus_fused(a: Self::V, b: Self::V, c: Self::V) -> Self::V;
}

/// [`Float`] by intrinsics on the doubles that `$double` makes of words of type `$v`, and `$word` words of.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! float {
    ($lanes:ty, $v:ty, $double:ident, $word:ident; $($name:ident($($arg:ident),*) $intrinsic:ident($($operand:ident),*);)*) => {
        impl Float for $lanes {
            $(
                #[inline(always)]
                unsafe fn $name($($arg: $v),*) -> $v {
                    // SAFETY: reached from `run_doubles` only, which is compiled for the instruction set.
                    unsafe { $word($intrinsic($($double($operand)),*)) }
                }
            )*
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use float;

/// Lanes for sums of short words.
pub(crate) type Short<B> = Doubles<B, true>;

/// The words of `B`, multiplied as doubles. `SHORT` if q < 2^47 and a sum stays below 2^51 q, as one of products of residues
/// does: the low halves of as many as may be added then stay below 2^51, and nothing is to be carried.
#[derive(Clone, Copy)]
pub(crate) struct Doubles<B, const SHORT: bool>(PhantomData<B>);

/// 2^52, where doubles are integers and their last 52 bits are what they exceed it by;
const UNIT: u64 = 0x4330 << 48;
/// 3 2^51, the same for either sign;
const SIGNED: u64 = 0x4338 << 48;

/// 2^103, beside which doubles are multiples of 2^51;
const HIGH: u64 = 0x4660 << 48;
/// 2^100, beside which they are multiples of 2^48;
const HIGH_SHORT: u64 = 0x4630 << 48;
/// 2^104, beside which they are multiples of 2^52.
const HIGHER: u64 = 0x4670 << 48;

/// Products that one sum takes.
pub(crate) const TERMS: usize = 15;

/// What makes the low half of a sum of products positive, a multiple of 2^51.
const LIFT: u64 = 1 << 60;

impl<B: Float, const SHORT: bool> Doubles<B, SHORT> {
    /// log2 of what the high half of a product is a multiple of,
    const SPLIT: u32 = if SHORT { 48 } else { 51 };
    /// beside this one,
    const HIGH: u64 = if SHORT { HIGH_SHORT } else { HIGH };
    /// and that + 3 2^51.
    const BOTH: u64 = Self::HIGH + (3 << (51 - Self::SPLIT));

    /// The double of a word below 2^52.
    #[inline(always)]
    unsafe fn double(x: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::minus(B::or(x, B::splat(UNIT)), B::splat(UNIT)) }
    }

    /// The signed word of an integer, |x| <= 2^51.
    #[inline(always)]
    unsafe fn word(x: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::sub(B::plus(x, B::splat(SIGNED)), B::splat(SIGNED)) }
    }

    /// An integer nearest to a b, but for what a and b were rounded by; |a b| < 2^51.
    #[inline(always)]
    unsafe fn nearest(a: B::V, b: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::minus(B::fused(a, b, B::splat(SIGNED)), B::splat(SIGNED)) }
    }

    /// a b - quotient q, an integer below 2^52. in: h, what a b is rounded to.
    #[inline(always)]
    unsafe fn remainder(a: B::V, b: B::V, h: B::V, quotient: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::minus(B::minus_fused(quotient, k.q_double, h), B::minus_fused(a, b, h)) }
    }

    /// x w up to multiples of q, in (-q, q). in: |x w| <= 2^51 (q - 1), as for |x| <= 2^52 and a factor, or two residues.
    #[inline(always)]
    unsafe fn product(x: B::V, w: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe {
            let h = B::times(x, w);
            Self::remainder(x, w, h, Self::nearest(h, k.q_inverse), k)
        }
    }

    /// The same with w/q.
    #[inline(always)]
    unsafe fn product_by(x: B::V, w: B::V, companion: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { Self::remainder(x, w, B::times(x, w), Self::nearest(x, companion), k) }
    }

    /// x mod q, centred but for rounding. in: |x / q| < 2^51.
    #[inline(always)]
    pub(crate) unsafe fn centred(x: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::minus_fused(Self::nearest(x, k.q_inverse), k.q_double, x) }
    }

    /// The word below q. in: -q < x < q.
    #[inline(always)]
    unsafe fn leave(x: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::cadd(Self::word(x), k.q) }
    }

    /// The word below q that x + (q - 1)/2 is a multiple of q away from. in: an integer, |x| < 2^52, so that what is nearest to
    /// x / q is found without fail.
    #[inline(always)]
    pub(crate) unsafe fn residue(x: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::sub(B::plus(Self::centred(x, k), B::plus(k.half, B::splat(UNIT))), B::splat(UNIT)) }
    }

    /// Adds a b, doubles, to low + 2^SPLIT high. The bits of a double beside HIGH or 3 2^51 are those of the latter plus what it
    /// stands for; these are taken away in the end.
    #[inline(always)]
    pub(crate) unsafe fn add_product((low, high): &mut (B::V, B::V), a: B::V, b: B::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let beside_high = B::fused(a, b, B::splat(Self::HIGH));
            let beside_low = B::fused(a, b, B::minus(B::splat(Self::BOTH), beside_high));
            (*low, *high) = (B::add(*low, beside_low), B::add(*high, beside_high));
        }
    }

    /// high 2^52 + low mod q, centred. in: both below 2^52.
    #[inline(always)]
    unsafe fn join(high: B::V, low: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe {
            let high = Self::product_by(Self::double(high), k.word, k.word_companion, k);
            Self::centred(B::plus(high, Self::double(low)), k)
        }
    }
}

impl<B: Float> Short<B> {
    /// x, to which as many products are to be added: what [`Self::amount`] takes then. in: an integer within 2^50.
    #[inline(always)]
    pub(crate) unsafe fn start(x: B::V, terms: usize) -> (B::V, B::V) {
        // SAFETY: forwarded contract.
        unsafe { Self::beside((Self::word(x), B::splat(0)), terms) }
    }

    /// A sum with what its bits lack, before or after as many products, for both halves to be doubles beside 3 2^51 and 2^100.
    #[inline(always)]
    unsafe fn beside((low, high): (B::V, B::V), terms: usize) -> (B::V, B::V) {
        let [for_low, for_high] =
            [SIGNED, Self::HIGH].map(|beside| beside.wrapping_mul(1u64.wrapping_sub(terms as u64)));
        // SAFETY: forwarded contract.
        unsafe { (B::add(low, B::splat(for_low)), B::add(high, B::splat(for_high))) }
    }

    /// What a sum amounts to up to multiples of q, within 2^52. in: below 2^51 q.
    #[inline(always)]
    pub(crate) unsafe fn amount((low, high): (B::V, B::V), k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe {
            let high = Self::centred(B::minus(high, B::splat(Self::HIGH)), k);
            B::plus(high, B::minus(low, B::splat(SIGNED)))
        }
    }
}

/// `$name` as the words of `B` have it.
macro_rules! forward_to_base {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        $(
            #[inline(always)]
            unsafe fn $name($($arg: $ty),*) -> $out {
                // SAFETY: the same contract.
                unsafe { B::$name($($arg),*) }
            }
        )*
    };
}

// SAFETY (all methods): forwarded contract.
impl<B: Float, const SHORT: bool> Lanes for Doubles<B, SHORT> {
    const WIDTH: usize = B::WIDTH;
    const WORD: u32 = 52;
    const ROOM: bool = true;
    const DOUBLES: bool = true;
    const ALONE: bool = B::WIDTH == 4;
    /// A residue and 15 products below q^2 < 2^100 stay below 2^104; so do 15 high halves below 2^48, and with a residue below
    /// 2^47 15 low ones of at most 2^47 below 2^51.
    const ACC_TERMS: usize = TERMS;
    type V = B::V;
    type Block = B::Block;

    forward_to_base! {
        load(p: *const u64) -> B::V;
        store(p: *mut u64, v: B::V) -> ();
        stream(p: *mut u64, v: B::V) -> ();
        splat(x: u64) -> B::V;
        gather(base: *const u64, index: *const u32) -> B::V;
        add(a: B::V, b: B::V) -> B::V;
        sub(a: B::V, b: B::V) -> B::V;
        and(a: B::V, b: B::V) -> B::V;
        or(a: B::V, b: B::V) -> B::V;
        shl(a: B::V, count: u32) -> B::V;
        shr(a: B::V, count: u32) -> B::V;
        csub(x: B::V, m: B::V) -> B::V;
        cadd(x: B::V, m: B::V) -> B::V;
        csub_negative(x: B::V, m: B::V) -> B::V;
        mul_lo(a: B::V, b: B::V) -> B::V;
        mul_hi(a: B::V, b: B::V) -> B::V;
        carry(sum: B::V, addend: B::V) -> B::V;
        zero_block() -> B::Block;
        transpose(block: &mut B::Block) -> ();
    }

    /// w centred.
    #[inline(always)]
    fn factor(w: &Scalar, m: &Modulus) -> u64 {
        let negative = w.shoup >> 63 == 1;
        (if negative { -((m.value() - w.value) as f64) } else { w.value as f64 }).to_bits()
    }
    /// w/q, w centred: `shoup` is floor(2^64 w/q), a signed word if w is to be negative.
    #[inline(always)]
    fn companion(w: &Scalar) -> u64 {
        (w.shoup as i64 as f64 / 2f64.powi(64)).to_bits()
    }
    #[inline(always)]
    fn short_word(w: &Scalar, m: &Modulus) -> u64 {
        Self::factor(w, m)
    }

    #[inline(always)]
    unsafe fn consts(m: &Modulus) -> Consts<B::V> {
        // 2^52 mod q, centred, and what it is of q.
        let word = (1 << 52) - m.reciprocal(52) as u64 * m.value();
        let word = if 2 * word > m.value() { -((m.value() - word) as f64) } else { word as f64 };
        let (word, companion) = (word.to_bits(), (word / m.value() as f64).to_bits());
        // SAFETY: forwarded contract.
        unsafe { Consts { word: B::splat(word), word_companion: B::splat(companion), ..B::consts(m) } }
    }

    #[inline(always)]
    unsafe fn mul_lazy(x: B::V, w: B::V, c: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::add(Self::word(Self::product_by(Self::double(x), w, c, k)), k.q) }
    }
    #[inline(always)]
    unsafe fn mul_twiddle(x: B::V, w: (B::V, B::V), k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { Self::product(x, w.0, k) }
    }
    #[inline(always)]
    unsafe fn reduce_lazy(x: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { Self::leave(x, k) }
    }
    #[inline(always)]
    unsafe fn short_factor(word: B::V, _: &Consts<B::V>) -> (B::V, B::V) {
        (word, word)
    }
    #[inline(always)]
    unsafe fn bring_down(x: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { Self::centred(x, k) }
    }
    #[inline(always)]
    unsafe fn enter(x: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { Self::double(x) }
    }
    #[inline(always)]
    unsafe fn sum(x: B::V, y: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::plus(x, y) }
    }
    #[inline(always)]
    unsafe fn difference(x: B::V, y: B::V, _: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::minus(x, y) }
    }
    #[inline(always)]
    unsafe fn butterfly(u: B::V, y: B::V, w: (B::V, B::V), k: &Consts<B::V>) -> (B::V, B::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let v = Self::product(y, w.0, k);
            (B::plus(u, v), B::minus(u, v))
        }
    }
    #[inline(always)]
    unsafe fn butterfly_last(u: B::V, y: B::V, w: (B::V, B::V), k: &Consts<B::V>) -> (B::V, B::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let (sum, difference) = Self::butterfly(B::minus(u, k.half), y, w, k);
            (Self::residue(sum, k), Self::residue(difference, k))
        }
    }

    #[inline(always)]
    unsafe fn mul(a: B::V, b: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { Self::leave(Self::product(Self::double(a), Self::double(b), k), k) }
    }

    #[inline(always)]
    unsafe fn acc_mul(acc: &mut (B::V, B::V), a: B::V, b: B::V) {
        // SAFETY: forwarded contract.
        unsafe { Self::add_product(acc, Self::double(a), Self::double(b)) }
    }
    /// b, and HIGH - 2^52 b, which takes away what a + 2^52 is too large by.
    #[inline(always)]
    unsafe fn acc_factor(b: B::V) -> (B::V, B::V) {
        // SAFETY: forwarded contract.
        unsafe {
            let b = Self::double(b);
            (b, B::minus_fused(B::splat(UNIT), b, B::splat(Self::HIGH)))
        }
    }
    #[inline(always)]
    unsafe fn acc_mul_by(acc: &mut (B::V, B::V), a: B::V, (b, beside): (B::V, B::V)) {
        // SAFETY: forwarded contract.
        unsafe {
            let a = B::or(a, B::splat(UNIT));
            let high = B::fused(a, b, beside);
            let beside = B::plus(beside, B::splat(SIGNED));
            let low = B::fused(a, b, B::minus(beside, high));
            *acc = (B::add(acc.0, low), B::add(acc.1, high));
        }
    }
    #[inline(always)]
    unsafe fn acc_reduce(acc: (B::V, B::V), terms: usize, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe {
            if SHORT {
                let amount = Short::<B>::amount(Short::<B>::beside(acc, terms), k);
                return Self::residue(B::minus(amount, k.half), k);
            }
            let terms = terms as u64;
            let low = B::add(acc.0, B::splat(LIFT.wrapping_sub(terms.wrapping_mul(SIGNED))));
            let unlift = (LIFT >> 51).wrapping_add(terms.wrapping_mul(Self::HIGH)).wrapping_neg();
            let high = B::add(B::add(acc.1, B::splat(unlift)), B::shr(low, 51));
            // The last bit of the high half joins the low one.
            let low = B::and(B::or(B::and(low, B::splat((1 << 51) - 1)), B::shl(high, 51)), k.mask);
            Self::leave(Self::join(B::shr(high, 1), low, k), k)
        }
    }
    #[inline(always)]
    unsafe fn reduce(x: B::V, k: &Consts<B::V>) -> B::V {
        // SAFETY: forwarded contract.
        unsafe { B::reduce(x, k) }
    }
    #[inline(always)]
    unsafe fn acc_hi52(sum: B::V, h: B::V, f: B::V) -> B::V {
        // SAFETY: forwarded contract.
        unsafe {
            let (h, f) = (Self::double(h), Self::double(f));
            let high = B::fused(h, f, B::splat(HIGHER));
            // One less where it was rounded up.
            let low = B::fused(h, f, B::minus(B::splat(HIGHER), high));
            B::sub(B::add(sum, B::sub(high, B::splat(HIGHER))), B::shr(low, 63))
        }
    }
}
