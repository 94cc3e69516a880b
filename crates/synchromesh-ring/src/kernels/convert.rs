//! Base conversion as a matrix product over limbs: dst_i = sum_j y_j M_ij + u c_i + b_i mod q_i, y_j = x_j s_j mod p_j.

mod doubles;
mod tile;

use super::lanes::{dispatch, dispatch_float};
use super::{LimbKernels, is_narrow};
use crate::isa::Isa;
use crate::modulus::{Modulus, Scalar};
use doubles::{DoubleRow, Enter};
use tile::{FixedCount, FixedTerm, MontgomeryCount, Row};

/// How the overflow count u of a base conversion is found, per coefficient; the same bits on every instruction set.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Count {
    /// u = 0.
    None,
    /// Fixed point with 50 fractional bits. With b_j the bit length of p_j, h_j the leading 51 bits of y_j
    /// (y_j scaled by 2^(51-b_j), rounded down), F_j = floor(2^(51+b_j)/p_j) and z_j = floor(h_j F_j / 2^52):
    /// u = floor((sum_j z_j + (half ? 2^49 : 0)) / 2^50), the floor (or nearest integer) of sum_j y_j/p_j unless
    /// that is within k 2^-48 of the boundary.
    Fixed {
        /// Round to nearest instead of down.
        half: bool,
    },
    /// Doubles: sum_j y_j (1/p_j) in index order, no fused operation, then floor(x) or floor(x + 0.5)
    /// [ePrint 2018/117].
    Double {
        /// Round to nearest instead of down.
        half: bool,
    },
    /// u = 2^31 + the centred value of -(sum_j y_j w_j) mod 2^32 [ePrint 2016/510, the m~ correction].
    Montgomery32 {
        /// w_j, mod 2^32, one per source.
        weights: Vec<u32>,
    },
}

/// The constants of a base conversion from k moduli p_j to m moduli q_i.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConvertSpec {
    /// s_j: y_j = x_j s_j mod p_j; without it y_j = x_j.
    pub prescale: Option<Vec<u64>>,
    /// M_ij mod q_i, indexed \[dst\]\[src\].
    pub matrix: Vec<Vec<u64>>,
    /// How u is found.
    pub overflow: Count,
    /// c_i mod q_i, one per destination.
    pub correction: Vec<u64>,
    /// b_i mod q_i, one per destination.
    pub bias: Vec<u64>,
}

/// What happens to the destination limbs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// dst = result.
    Replace,
    /// dst = result, past the caches where the rows are aligned: for results larger than the caches.
    Stream,
    /// dst += result.
    Add,
}

/// Why a conversion cannot be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// A table has the wrong size.
    #[error("base conversion from {sources} to {destinations} moduli: {table} has {have} entries, {need} expected")]
    Shape {
        /// Which table.
        table: &'static str,
        /// Its size.
        have: usize,
        /// The size expected.
        need: usize,
        /// Number of source moduli.
        sources: usize,
        /// Number of destination moduli.
        destinations: usize,
    },
    /// No source, or more than supported.
    #[error("base conversion from {sources} moduli; 1 to {MAX_SOURCES} are supported")]
    Sources {
        /// Number of source moduli.
        sources: usize,
    },
}

/// Most source moduli of one conversion.
pub const MAX_SOURCES: usize = SCRATCH / TILE_STEP - 1;

/// One base conversion, prepared.
#[derive(Clone, Debug)]
pub struct ConvertMatrix {
    src: Vec<Modulus>,
    dst: Vec<Modulus>,
    prescale: Option<Vec<Scalar>>,
    /// M_ij, for a narrow destination followed by 2^[`HALF`] M_ij for each source in halves.
    matrix: Vec<Vec<u64>>,
    /// Doubles that stand for a word, none where they do not serve,
    parts: usize,
    /// and those that stand for the factors and the correction of a destination that they serve, else none.
    doubles: Vec<Vec<u64>>,
    /// The wide sources, where narrow destinations take them in halves.
    halved: Vec<usize>,
    overflow: Count,
    /// For [`Count::Fixed`], else empty.
    fixed: Vec<FixedTerm>,
    correction: Vec<u64>,
    bias: Vec<u64>,
    /// Whether what narrow destinations are summed up from is below 2^50,
    narrow: bool,
    /// and the bits of that.
    bits: u32,
    isa: Isa,
}

/// Scratch on a cache line boundary.
#[repr(align(64))]
struct Scratch<const WORDS: usize>([u64; WORDS]);

/// Words of scratch on the stack: the tile of prescaled sources, what they are split into, and the overflow counts.
const SCRATCH: usize = 8192;
/// Words that a tile should not exceed, to stay in a first-level cache of 48 KiB with room for a destination.
const TILE_WORDS: usize = 4608;
/// Most coefficients of a tile; tiles are multiples of [`TILE_STEP`].
const TILE: usize = 256;
/// Coefficients that every kernel handles as a unit.
const TILE_STEP: usize = 64;
/// Bits of the lower half of a wide source, whose halves the multipliers for narrow moduli take: one source in ten that is wide
/// makes eleven narrow products of ten, where each would be a product of whole words.
const HALF: u32 = 31;
/// Bits of overflow counts and of halves, at the most.
const COUNT_BITS: u32 = 33;

impl ConvertMatrix {
    /// Prepares a conversion; constants are reduced to their moduli. An `isa` the CPU lacks is lowered.
    ///
    /// # Errors
    /// [`ConvertError`] if a table of the specification does not fit the moduli.
    pub fn new(src: &[Modulus], dst: &[Modulus], spec: ConvertSpec, isa: Isa) -> Result<Self, ConvertError> {
        let (sources, destinations) = (src.len(), dst.len());
        if sources == 0 || sources > MAX_SOURCES {
            return Err(ConvertError::Sources { sources });
        }
        let check = |table, have, need| {
            if have == need { Ok(()) } else { Err(ConvertError::Shape { table, have, need, sources, destinations }) }
        };
        check("prescale", spec.prescale.as_ref().map_or(sources, Vec::len), sources)?;
        check("matrix", spec.matrix.len(), destinations)?;
        for row in &spec.matrix {
            check("matrix row", row.len(), sources)?;
        }
        check("correction", spec.correction.len(), destinations)?;
        check("bias", spec.bias.len(), destinations)?;
        if let Count::Montgomery32 { weights } = &spec.overflow {
            check("weights", weights.len(), sources)?;
        }
        let reduce = |v: Vec<u64>| dst.iter().zip(v).map(|(q, x)| q.reduce(x)).collect();
        let isa = isa.lowered();
        let mut halved: Vec<usize> = (0..sources).filter(|&j| !is_narrow(&src[j])).collect();
        let fits = (sources + 2 * halved.len() + 1) * TILE_STEP <= SCRATCH;
        let narrow = halved.is_empty() || (isa.multiplies_narrow() && fits);
        if !narrow || !dst.iter().any(is_narrow) {
            halved.clear();
        }
        let parts = match doubles::parts(src, dst, isa) {
            parts if (parts + 1) * (sources + 1) * TILE_STEP <= SCRATCH => parts,
            _ => 0,
        };
        let correction: Vec<u64> = reduce(spec.correction);
        let factors = |(q, row): (&Modulus, Vec<u64>)| -> Vec<u64> {
            let mut row: Vec<u64> = row.into_iter().map(|x| q.reduce(x)).collect();
            if is_narrow(q) {
                row.extend(halved.iter().map(|&j| q.mul(row[j], q.reduce(1 << HALF))).collect::<Vec<_>>());
            }
            row
        };
        let matrix: Vec<Vec<u64>> = dst.iter().zip(spec.matrix).map(factors).collect();
        let in_doubles = |((q, row), correction): ((&Modulus, &Vec<u64>), &u64)| match parts > 0 && doubles::serves(q) {
            true => row.iter().chain([correction]).flat_map(|&m| doubles::factor(m, parts)).collect(),
            false => Vec::new(),
        };
        let doubles = dst.iter().zip(&matrix).zip(&correction).map(in_doubles).collect();
        Ok(Self {
            src: src.to_vec(),
            dst: dst.to_vec(),
            prescale: spec.prescale.map(|s| src.iter().zip(s).map(|(p, s)| p.scalar(s)).collect()),
            matrix,
            parts,
            doubles,
            halved,
            fixed: match spec.overflow {
                Count::Fixed { .. } => src.iter().map(fixed_term).collect(),
                _ => Vec::new(),
            },
            overflow: spec.overflow,
            correction,
            bias: reduce(spec.bias),
            narrow,
            bits: src.iter().filter(|p| is_narrow(p)).map(Modulus::bits).max().unwrap_or(0).max(COUNT_BITS),
            isa,
        })
    }

    /// The source moduli.
    #[must_use]
    pub fn src(&self) -> &[Modulus] {
        &self.src
    }

    /// The destination moduli.
    #[must_use]
    pub fn dst(&self) -> &[Modulus] {
        &self.dst
    }

    /// The instruction set asked for; each destination takes the best one its widths allow.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Converts limbs of residues: dst_i (= or +=) sum_j y_j M_ij + u c_i + b_i mod q_i.
    ///
    /// # Panics
    /// If the numbers of limbs do not match the moduli, or their lengths differ.
    pub fn apply(&self, src: &[&[u64]], dst: &mut [&mut [u64]], mode: Mode) {
        assert!(src.len() == self.src.len() && dst.len() == self.dst.len(), "wrong number of limbs");
        let n = src[0].len();
        assert!(src.iter().all(|x| x.len() == n) && dst.iter().all(|x| x.len() == n), "limbs of unequal length");
        let Scratch(scratch) = &mut Scratch([0; SCRATCH]);
        let tiles = src.len() + 2 * self.halved.len() + 1;
        let doubles = self.parts * (src.len() + 1);
        let stride = (TILE_WORDS / tiles.max(doubles) / TILE_STEP * TILE_STEP).clamp(TILE_STEP, TILE);
        for start in (0..n).step_by(stride) {
            let len = stride.min(n - start);
            let (y, scratch) = scratch.split_at_mut(stride * src.len());
            let (halves, scratch) = scratch.split_at_mut(2 * stride * self.halved.len());
            let (u, doubles) = scratch.split_at_mut(stride);
            // What needs no factors is read where it is.
            let rows: Vec<&[u64]> = if self.prescale.is_none() && len == stride {
                src.iter().map(|x| &x[start..start + len]).collect()
            } else {
                self.load_tile(src, start, len, stride, y);
                y.chunks_exact(stride).collect()
            };
            let counted = self.count(&rows, u);
            let doubles = self.in_doubles(&rows, counted.then_some(&*u), doubles, stride);
            let u = if counted { u.as_ptr() } else { std::ptr::null() };
            let narrow = self.in_halves(&rows, halves, stride);
            let rows = [&rows[..], narrow.as_deref().unwrap_or(&rows)];
            if len.is_multiple_of(TILE_STEP) {
                for (i, out) in dst.iter_mut().enumerate() {
                    self.row(i, rows, &doubles, u, &mut out[start..start + len], mode);
                }
            } else {
                let padded = len.next_multiple_of(TILE_STEP);
                for (i, out) in dst.iter_mut().enumerate() {
                    let mut copy = [0u64; TILE];
                    copy[..len].copy_from_slice(&out[start..start + len]);
                    self.row(i, rows, &doubles, u, &mut copy[..padded], mode);
                    out[start..start + len].copy_from_slice(&copy[..len]);
                }
            }
        }
    }

    /// y_j at j stride, for the coefficients from `start`; zeros after the last.
    fn load_tile(&self, src: &[&[u64]], start: usize, len: usize, stride: usize, y: &mut [u64]) {
        for (j, (x, p)) in src.iter().zip(&self.src).enumerate() {
            let (x, y) = (&x[start..start + len], &mut y[j * stride..][..stride]);
            debug_assert!(x.iter().all(|&x| x < p.value()), "residues not below p");
            match &self.prescale {
                Some(s) => LimbKernels::new_unchecked(*p, self.isa).mul_scalar_into(x, &s[j], &mut y[..len]),
                None => y[..len].copy_from_slice(x),
            }
            y[len..].fill(0);
        }
    }

    /// What narrow destinations are summed up from, where that is not `y`: the lower halves of wide sources in their places and
    /// the upper ones behind.
    fn in_halves<'a>(&self, y: &[&'a [u64]], halves: &'a mut [u64], stride: usize) -> Option<Vec<&'a [u64]>> {
        if self.halved.is_empty() {
            return None;
        }
        for (both, &j) in halves.chunks_exact_mut(2 * stride).zip(&self.halved) {
            let (low, high) = both.split_at_mut(stride);
            low.iter_mut().zip(y[j]).for_each(|(low, y)| *low = y & ((1 << HALF) - 1));
            high.iter_mut().zip(y[j]).for_each(|(high, y)| *high = y >> HALF);
        }
        let halves: &[u64] = halves;
        let mut rows = y.to_vec();
        for (both, &j) in halves.chunks_exact(2 * stride).zip(&self.halved) {
            let (low, high) = both.split_at(stride);
            rows[j] = low;
            rows.push(high);
        }
        Some(rows)
    }

    /// What stands for the sources and the counts in doubles, if doubles serve.
    fn in_doubles<'a>(&self, y: &[&[u64]], u: Option<&[u64]>, out: &'a mut [u64], stride: usize) -> Vec<&'a [u64]> {
        if self.parts == 0 {
            return Vec::new();
        }
        let rows = y.iter().copied().chain(u.map(|u| &u[..stride]));
        for (y, all) in rows.clone().zip(out.chunks_exact_mut(self.parts * stride)) {
            if self.parts == 1 {
                dispatch_float(self.isa, Enter { y, out: [all] });
            } else {
                let (low, rest) = all.split_at_mut(stride);
                let (high, sum) = rest.split_at_mut(stride);
                dispatch_float(self.isa, Enter { y, out: [low, high, sum] });
            }
        }
        out.chunks_exact(stride).take(self.parts * rows.count()).collect()
    }

    /// The overflow counts of a tile; whether there are any.
    fn count(&self, y: &[&[u64]], u: &mut [u64]) -> bool {
        let len = y[0].len();
        assert!(y.len() == self.src.len() && y.iter().all(|y| y.len() == len) && u.len() >= len);
        let out = u.as_mut_ptr();
        match &self.overflow {
            Count::None => return false,
            Count::Fixed { half } => {
                let offset = if *half { 1 << 49 } else { 0 };
                dispatch(self.isa, true, FixedCount { y, terms: &self.fixed, offset, u: out, len });
            }
            Count::Montgomery32 { weights } => {
                dispatch(self.isa, false, MontgomeryCount { y, weights, u: out, len });
            }
            Count::Double { half } => {
                let mut sum = [0f64; TILE];
                for (p, y) in self.src.iter().zip(y) {
                    let inverse = 1.0 / p.value() as f64;
                    sum.iter_mut().zip(y.iter()).for_each(|(sum, &y)| *sum += y as f64 * inverse);
                }
                let offset = if *half { 0.5 } else { 0.0 };
                u.iter_mut().zip(sum).take(len).for_each(|(u, sum)| *u = (sum + offset).floor() as u64);
            }
        }
        true
    }

    /// One destination limb on one tile, on the best instruction set its width and those of the sources allow: from the sources
    /// as they are, or as narrow destinations take them.
    fn row(
        &self,
        i: usize,
        [whole, halved]: [&[&[u64]]; 2],
        doubles: &[&[u64]],
        u: *const u64,
        out: &mut [u64],
        mode: Mode,
    ) {
        let q = &self.dst[i];
        let narrow = self.narrow && is_narrow(q);
        let y = if narrow { halved } else { whole };
        assert!(y.len() == self.matrix[i].len() && out.len().is_multiple_of(TILE_STEP));
        assert!(y.iter().all(|y| y.len() >= out.len()), "tile shorter than its destination");
        debug_assert!(
            matches!(mode, Mode::Replace | Mode::Stream) || out.iter().all(|&x| x < q.value()),
            "residues not below q"
        );
        let factors = &self.doubles[i][..];
        if !factors.is_empty() {
            assert!(doubles.iter().all(|y| y.len() >= out.len()), "tile shorter than its destination");
            let (y, terms) = (doubles, doubles::terms(self.bits));
            let (bias, len, out) = (self.bias[i], out.len(), out.as_mut_ptr());
            return match self.parts {
                1 => dispatch_float(self.isa, DoubleRow::<1> { q, y, factors, terms, bias, out, len, mode }),
                _ => dispatch_float(self.isa, DoubleRow::<3> { q, y, factors, terms, bias, out, len, mode }),
            };
        }
        let (m, correction, bias) = (&self.matrix[i][..], self.correction[i], self.bias[i]);
        let (len, out) = (out.len(), out.as_mut_ptr());
        let row = Row { q, y, m, u, correction, bias, out, len, mode };
        dispatch(self.isa, narrow, row);
    }
}

/// The fixed-point reciprocal of p, below 2^52.
fn fixed_term(p: &Modulus) -> FixedTerm {
    let bits = p.bits();
    FixedTerm { bits, factor: ((1u128 << (51 + bits)) / u128::from(p.value())) as u64 }
}

#[cfg(test)]
mod tests;
