//! The types that kernels take by value or find in device memory: the twins of those in `kernels/`.

use bytemuck::{Pod, Zeroable};
use synchromesh_ring::modulus::Modulus;

use crate::work::Parameter;

/// Most limbs of one launch: arguments of a kernel fit 4096 bytes.
pub(crate) const MAX_LIMBS: usize = 128;
/// Most limbs of one launch of the uniform sampler.
pub(crate) const MAX_STREAMS: usize = 32;
/// Most tasks of one launch of base conversions.
pub(crate) const MAX_TASKS: usize = 72;
/// Most rows of all of them.
pub(crate) const MAX_TASK_ROWS: usize = 640;

/// A constant and floor(constant 2^64 / q).
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C, align(16))]
pub(crate) struct Pair {
    pub(crate) value: u64,
    pub(crate) quotient: u64,
}

impl Pair {
    /// `value` below q, as it is computed with.
    pub(crate) fn of(value: u64, modulus: &Modulus, in_doubles: bool) -> Self {
        if !in_doubles {
            return Self::new(value, modulus);
        }
        // Below 2^50 both are exact.
        let q = modulus.value() as f64;
        let centred = if value > modulus.value() / 2 { value as f64 - q } else { value as f64 };
        Self { value: centred.to_bits(), quotient: (centred / q).to_bits() }
    }

    /// `value` below q, with its quotient.
    pub(crate) fn new(value: u64, modulus: &Modulus) -> Self {
        debug_assert!(value < modulus.value());
        Self { value, quotient: ((u128::from(value) << 64) / u128::from(modulus.value())) as u64 }
    }
}

/// What is known of one prime.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Prime {
    pub(crate) q: u64,
    /// floor(2^128 / q).
    pub(crate) ratio_high: u64,
    pub(crate) ratio_low: u64,
    /// 2^63 mod q.
    pub(crate) sign: u64,
    /// N^-1 mod q.
    pub(crate) inverse_n: Pair,
    pub(crate) modulus: f64,
    pub(crate) inverse: f64,
    pub(crate) in_doubles: u64,
    pub(crate) half_bits: u32,
    pub(crate) unused: u32,
}

/// Bits of the widest primes that transforms are exact for in doubles.
const DOUBLE_BITS: u32 = 50;

impl Prime {
    /// On a device that may or may not multiply doubles fast.
    pub(crate) fn new(modulus: &Modulus, log_n: u32, fast_doubles: bool) -> Self {
        let in_doubles = fast_doubles && modulus.bits() <= DOUBLE_BITS;
        let q = modulus.value();
        // q is odd and above 1, so it does not divide 2^128.
        let ratio = u128::MAX / u128::from(q);
        let inverse_n = inverse_n(modulus, log_n);
        Self {
            q,
            ratio_high: (ratio >> 64) as u64,
            ratio_low: ratio as u64,
            sign: modulus.reduce(1 << 63),
            inverse_n: Pair::of(inverse_n, modulus, in_doubles),
            modulus: q as f64,
            inverse: 1.0 / q as f64,
            in_doubles: u64::from(in_doubles),
            half_bits: modulus.bits().div_ceil(2),
            unused: 0,
        }
    }
}

/// x^-1 mod 2^32 for odd x, by Newton iteration.
pub(crate) const fn inverse_mod_2_32(x: u32) -> u32 {
    let (mut inverse, mut i) = (x, 0);
    while i < 5 {
        inverse = inverse.wrapping_mul(2u32.wrapping_sub(x.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}

/// N^-1 mod q: q is 1 modulo N, so that N (q - 1) / N = -1.
pub(crate) fn inverse_n(modulus: &Modulus, log_n: u32) -> u64 {
    modulus.neg((modulus.value() - 1) >> log_n)
}

/// The constants of a ring, by address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct RingTables {
    pub(crate) primes: u64,
    pub(crate) forward: u64,
    pub(crate) inverse: u64,
    pub(crate) log_n: u32,
    pub(crate) unused: u32,
}

/// The prime of each limb.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Limbs {
    pub(crate) prime: [u16; MAX_LIMBS],
}

impl Limbs {
    /// At most [`MAX_LIMBS`] primes.
    pub(crate) fn new(primes: &[usize]) -> Self {
        let mut prime = [0; MAX_LIMBS];
        prime.iter_mut().zip(primes).for_each(|(to, &from)| *to = from as u16);
        Self { prime }
    }
}

/// Where limbs are.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Rows {
    pub(crate) words: u64,
    /// Distance of two batch elements, in rows.
    pub(crate) stride: u32,
    pub(crate) unused: u32,
    pub(crate) row: [u32; MAX_LIMBS],
}

/// A factor for each limb.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Scalars {
    pub(crate) factor: [Pair; MAX_LIMBS],
}

/// One pass of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Pass {
    /// Layers before it.
    pub(crate) first: u32,
    /// Layers it does.
    pub(crate) layers: u32,
    /// log2 of the sets of points that a block of threads takes.
    pub(crate) log_sets: u32,
    pub(crate) unused: u32,
}

/// Which of the first 64 batch elements each limb is transformed of.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Chosen {
    pub(crate) elements: [u64; MAX_LIMBS],
}

impl Chosen {
    /// Each limb of all elements.
    pub(crate) const ALL: Self = Self { elements: [u64::MAX; MAX_LIMBS] };
}

/// Most polynomials that are added in one launch.
pub(crate) const MAX_ADDENDS: usize = 3;

/// What is added to a polynomial, and how it is turned.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Addends {
    pub(crate) rows: [Rows; MAX_ADDENDS],
    pub(crate) count: u32,
    /// g^-1 mod 2N for the result under X -> X^g.
    pub(crate) inverse: u32,
}

/// Bit of a row that is in the second of two buffers.
pub(crate) const IN_SECOND: u32 = 1 << 31;

/// Where limbs are that lie in two buffers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PairRows {
    pub(crate) words: [u64; 2],
    pub(crate) row: [u32; MAX_LIMBS],
}

/// What is added to the slots of the transforms of two polynomials, and where they go.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct SlotAddends {
    pub(crate) rows: [PairRows; MAX_ADDENDS],
    /// How many either polynomial has.
    pub(crate) count: [u32; 2],
    /// g^-1 mod 2N for the result under X -> X^g.
    pub(crate) inverse: u32,
    pub(crate) unused: u32,
}

/// Most limbs of all digits together in one launch of the fused gadget product.
pub(crate) const MAX_DIGIT_LIMBS: usize = 512;

/// Where the limbs of digits are.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct DigitLimbs {
    pub(crate) state: [u16; MAX_DIGIT_LIMBS],
}

/// Where signed integers of 2^log_bytes bytes lie, one behind the other.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Signed {
    pub(crate) words: u64,
    pub(crate) log_bytes: u32,
    pub(crate) unused: u32,
}

/// How to read a radix digit.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Cut {
    pub(crate) from: u64,
    pub(crate) half: u64,
    pub(crate) add: u64,
    pub(crate) mask: u64,
    pub(crate) offset: u64,
    pub(crate) shift: u32,
    pub(crate) unused: u32,
}

/// A source prime of a base conversion.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Source {
    pub(crate) p: u64,
    /// floor(2^(51 + bits) / p).
    pub(crate) factor: u64,
    pub(crate) prescale: Pair,
    /// 1 / p.
    pub(crate) inverse: f64,
    /// Bits of p.
    pub(crate) bits: u32,
    /// For counts in integers modulo 2^32.
    pub(crate) weight: u32,
}

/// A destination prime of a base conversion.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Target {
    /// 2^b, 2^a and 2^(a + b), where sums are reduced in doubles.
    pub(crate) factors: [Pair; 3],
    /// A residue, or the bits of it as a double.
    pub(crate) bias: u64,
    pub(crate) prime: u32,
    /// Whether sums are reduced in doubles.
    pub(crate) in_doubles: u32,
    pub(crate) modulus: f64,
    pub(crate) inverse: f64,
}

/// A base conversion, by address.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ConversionTables {
    pub(crate) sources: u64,
    pub(crate) targets: u64,
    pub(crate) matrix: u64,
    pub(crate) source_count: u32,
    pub(crate) target_count: u32,
    /// How overflows are counted: 0 not, 1 fixed point, 2 doubles, 3 modulo 2^32.
    pub(crate) count: u32,
    /// Whether to the nearest integer.
    pub(crate) half: u32,
    /// Half of the bits of the widest source, and of the widest target, rounded up: a and b.
    pub(crate) source_bits: u32,
    pub(crate) target_bits: u32,
    /// Whether the input carries the factors of the sources already.
    pub(crate) prescaled: u32,
    pub(crate) unused: u32,
}

/// Some targets of a conversion: what a block of threads converts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Task {
    pub(crate) conversion: u64,
    /// Where its rows begin in the list.
    pub(crate) sources: u16,
    pub(crate) targets: u16,
    /// Which targets.
    pub(crate) first: u16,
    pub(crate) last: u16,
}

/// The tasks of a launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Tasks {
    pub(crate) task: [Task; MAX_TASKS],
}

/// Their rows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TaskRows {
    pub(crate) row: [u32; MAX_TASK_ROWS],
}

/// The keys of random streams.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct StreamKeys {
    pub(crate) word: [[u32; 8]; MAX_STREAMS],
}

// SAFETY (all): the same fields in the same order as in the kernels, in C's layout; addresses in them are of memory that
// its owner keeps, or returns to the pool of the device, whose work is in order.
macro_rules! parameters {
    ($($name:ty),*) => {
        $(
            // SAFETY: as above.
            unsafe impl Parameter for $name {}
        )*
    };
}
parameters!(
    RingTables,
    Limbs,
    Rows,
    PairRows,
    Scalars,
    Pass,
    Chosen,
    Addends,
    SlotAddends,
    DigitLimbs,
    Signed,
    Cut,
    Tasks,
    TaskRows,
    StreamKeys
);
