//! The map c -> (c(zeta^e))_e of C[Y]/(Y^n - i) over the n exponents e = 1 mod 4, zeta = exp(i pi / 2n), and its inverse.
//!
//! Y^m - rho splits into Y^(m/2) - sqrt(rho) and Y^(m/2) + sqrt(rho), down to linear factors; leaf b then holds
//! e = 1 + 4 brv(b). Only additions, subtractions and products of doubles, in one fixed order and never fused, so
//! results are equal bit for bit on every platform. To first order a stage adds a relative error of at most
//! (sqrt(5) + 2) u in the 2-norm, u = 2^-53: a product sqrt(5) u (Brent, Percival and Zimmermann, 2007), the twiddle u,
//! the sum u. A transform therefore stays within 5 u log2(n).

use super::roots::{Fixed, RootTable};

/// n complex numbers, real and imaginary parts apart.
pub(super) struct Parts<'a> {
    pub(super) re: &'a mut [f64],
    pub(super) im: &'a mut [f64],
}

/// The twiddles of one n: entry 2^d + b is exp(i pi (1 + 4 brv_d(b)) / 2^(d + 2)), the root that splits block b of
/// depth d; entry 0 is unused.
#[derive(Clone, Debug)]
pub(super) struct SpecialFft {
    re: Vec<f64>,
    im: Vec<f64>,
}

impl SpecialFft {
    /// The twiddles for n = 2^log_slots.
    pub(super) fn new(log_slots: u32) -> Self {
        let (re, im) = std::iter::once((0.0, 0.0)).chain(twiddles(log_slots).map(Fixed::to_f64)).unzip();
        Self { re, im }
    }

    /// Coefficients to values, in place.
    pub(super) fn forward(&self, values: &mut Parts<'_>) {
        let mut half = values.re.len() / 2;
        let mut blocks = 1;
        while half > 0 {
            let twiddles = self.re[blocks..].iter().zip(&self.im[blocks..]);
            let chunks = values.re.chunks_exact_mut(2 * half).zip(values.im.chunks_exact_mut(2 * half));
            for ((re, im), (&w_re, &w_im)) in chunks.zip(twiddles) {
                let (u_re, v_re) = re.split_at_mut(half);
                let (u_im, v_im) = im.split_at_mut(half);
                for (((ur, vr), ui), vi) in u_re.iter_mut().zip(v_re).zip(u_im).zip(v_im) {
                    let p_re = *vr * w_re - *vi * w_im;
                    let p_im = *vr * w_im + *vi * w_re;
                    (*ur, *vr) = (*ur + p_re, *ur - p_re);
                    (*ui, *vi) = (*ui + p_im, *ui - p_im);
                }
            }
            half /= 2;
            blocks *= 2;
        }
    }

    /// Values to n times the coefficients, in place.
    pub(super) fn inverse_times_n(&self, values: &mut Parts<'_>) {
        let mut half = 1;
        let mut blocks = values.re.len() / 2;
        while blocks > 0 {
            let twiddles = self.re[blocks..].iter().zip(&self.im[blocks..]);
            let chunks = values.re.chunks_exact_mut(2 * half).zip(values.im.chunks_exact_mut(2 * half));
            for ((re, im), (&w_re, &w_im)) in chunks.zip(twiddles) {
                let (u_re, v_re) = re.split_at_mut(half);
                let (u_im, v_im) = im.split_at_mut(half);
                for (((ur, vr), ui), vi) in u_re.iter_mut().zip(v_re).zip(u_im).zip(v_im) {
                    let (d_re, d_im) = (*ur - *vr, *ui - *vi);
                    (*ur, *ui) = (*ur + *vr, *ui + *vi);
                    (*vr, *vi) = (d_re * w_re + d_im * w_im, d_im * w_re - d_re * w_im);
                }
            }
            half *= 2;
            blocks /= 2;
        }
    }
}

/// The roots of [`SpecialFft`] from entry 1 on, for n = 2^log_slots.
pub(super) fn twiddles(log_slots: u32) -> impl Iterator<Item = Fixed> {
    let table = RootTable::new(log_slots + 1);
    let blocks = (0..log_slots).flat_map(|depth| (0..1usize << depth).map(move |block| (depth, block)));
    blocks.map(move |(depth, block)| table.root((1 + 4 * reverse_bits(block, depth)) << (log_slots - 1 - depth)))
}

/// The low `bits` bits of k in reverse.
pub(super) fn reverse_bits(k: usize, bits: u32) -> usize {
    if bits == 0 { 0 } else { k.reverse_bits() >> (usize::BITS - bits) }
}
