//! The inverse transform in 128-bit fixed point, for scales at which doubles are too coarse.
//!
//! The map is that of [`fft`](super::fft), divided by n: a stage takes (u, v) to ((u + v) / 2, (u - v) / 2 conj(w)), so
//! that moduli stay at most what they were, 1 here. A stage adds at most 2^-112, nearly all of it the error of w, so a
//! coefficient is within 2^-107 of the exact one at every supported N. Integers only: results are equal on every
//! platform, and no instruction depends on a value.

use zeroize::Zeroizing;

use super::fft::twiddles;
use super::roots::{FRACTION_BITS, Fixed, product};
use super::scale::{Scale, exponent_of, round_to_integer};

/// Fraction bits of values: three fewer than an `i128` has, for sums.
const VALUE_BITS: i32 = 124;

/// Fraction bits with which doubles come in; [`round_to_integer`] takes no more.
const INPUT_BITS: i32 = 119;

/// log2 of scale times bound from which doubles are too coarse: their error would count beside that of rounding.
const FROM: i32 = 53;

/// The same beside rounding that is measured.
const MEASURED_FROM: i32 = 44;

/// log2 of scale times bound up to which results are surely small enough.
const UP_TO: i32 = 118;

/// What is known of the rounding of coefficients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// That each is off by 1/2 at the most.
    Bounded,
    /// What it takes from each.
    Measured,
}

impl Rounding {
    const fn from(self) -> i32 {
        match self {
            Self::Bounded => FROM,
            Self::Measured => MEASURED_FROM,
        }
    }
}

/// Whether messages of this bound are encoded in fixed point at this scale.
pub(super) fn serves(scale: Scale, bound: f64, rounding: Rounding) -> bool {
    (rounding.from()..=UP_TO).contains(&(scale.exponent() + above(bound)))
}

/// As [`serves`], of a product of scale and bound that is known to a bit: where it says so, it is so.
pub(crate) fn surely_serves(log2_product: f64, rounding: Rounding) -> bool {
    (f64::from(rounding.from()) + 1.0..=f64::from(UP_TO) - 2.0).contains(&log2_product)
}

/// log2 of how far a coefficient in fixed point may be from the exact one before it is rounded, in units of the bound
/// times the scale: the transform, a power of two of up to twice the bound, and the scale.
pub(crate) const LOG2_ERROR: f64 = -105.0;

/// k with `bound` < 2^k <= 2 `bound`.
fn above(bound: f64) -> i32 {
    exponent_of(bound) + 1
}

/// The twiddles of one n, in the order of [`SpecialFft`](super::fft::SpecialFft).
#[derive(Clone, Debug)]
pub(super) struct FixedFft {
    roots: Vec<Fixed>,
}

impl FixedFft {
    /// The twiddles for n = 2^log_slots.
    pub(super) fn new(log_slots: u32) -> Self {
        Self { roots: std::iter::once(Fixed::ONE).chain(twiddles(log_slots)).collect() }
    }

    /// The integers nearest to `scale` times the coefficients of values whose parts are these, of modulus at most `bound`;
    /// `taken` is told what rounding takes from each.
    pub(super) fn encode(
        &self,
        re: &[f64],
        im: &[f64],
        scale: Scale,
        bound: f64,
        mut taken: impl FnMut(usize, f64),
    ) -> Zeroizing<Vec<i128>> {
        let log_bound = above(bound);
        let unit = power_of_two(INPUT_BITS - log_bound);
        let parts = re.iter().chain(im).map(|&x| round_to_integer(x * unit) << (VALUE_BITS - INPUT_BITS));
        let mut values = Zeroizing::new(Vec::with_capacity(2 * re.len()));
        values.extend(parts);
        let (re, im) = values.split_at_mut(re.len());
        self.inverse(re, im);
        // The mantissa counts as half of what it is.
        let (mantissa, shift) = (scale.half_mantissa(FRACTION_BITS), VALUE_BITS - 1 - log_bound - scale.exponent());
        let unit = power_of_two(-shift);
        for (i, x) in values.iter_mut().enumerate() {
            let exact = product(*x, mantissa);
            *x = (exact + (1 << (shift - 1))) >> shift;
            taken(i, (exact - (*x << shift)) as f64 * unit);
        }
        values
    }

    /// Values to coefficients, in place.
    fn inverse(&self, re: &mut [i128], im: &mut [i128]) {
        let (mut half, mut blocks) = (1, re.len() / 2);
        while blocks > 0 {
            let chunks = re.chunks_exact_mut(2 * half).zip(im.chunks_exact_mut(2 * half));
            for ((re, im), &w) in chunks.zip(&self.roots[blocks..]) {
                let (u_re, v_re) = re.split_at_mut(half);
                let (u_im, v_im) = im.split_at_mut(half);
                for (((ur, vr), ui), vi) in u_re.iter_mut().zip(v_re).zip(u_im).zip(v_im) {
                    let (d_re, d_im) = ((*ur - *vr) >> 1, (*ui - *vi) >> 1);
                    (*ur, *ui) = ((*ur + *vr) >> 1, (*ui + *vi) >> 1);
                    (*vr, *vi) = (product(d_re, w.re) + product(d_im, w.im), product(d_im, w.re) - product(d_re, w.im));
                }
            }
            half *= 2;
            blocks /= 2;
        }
    }
}

/// 2^k, |k| <= 1000.
fn power_of_two(k: i32) -> f64 {
    f64::from_bits((1023 + i64::from(k)).unsigned_abs() << 52)
}
