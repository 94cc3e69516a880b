//! Residue number system constants: what a base conversion computes, derived once from big integers.
//!
//! A conversion takes x in RNS form over the source primes p_1..p_k with product S and gives, for each destination
//! prime q_i, `post_i * x mod q_i`, where x stands for the representative that the [`Overflow`] rule picks:
//!
//! ```text
//! y_j = [x_j * pre_j * (S/p_j)^-1]_{p_j}
//! out_i = post_i * (sum_j y_j * (S/p_j) - u * S) mod q_i
//! ```
//!
//! ePrint 2021/204, section 2.3 (fast base extension) with u = 0; HPS's floating-point and BEHZ's integer
//! corrections, and our fixed-point one, differ only in how u is found.

use num_bigint::BigUint;
use num_integer::Integer;
use num_traits::Zero;

use crate::error::Error;
pub use crate::kernels::convert::{ConvertSpec, Count};
use crate::modulus::Modulus;
use crate::ring::{IndexSet, Ring};

/// Which representative of a residue class a base conversion takes, and how it counts the overflows u.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Overflow {
    /// u = 0: the result is x + aS for some a in \[0, k), k source primes (fast, approximate).
    Fast,
    /// Fixed point, rounded down: x in \[0, S), off by one S only within k 2^-46 S of a boundary.
    Floor,
    /// Fixed point, rounded to nearest: x in \[-S/2, S/2), off by one S only within k 2^-46 S of +-S/2.
    Round,
    /// Doubles, rounded down (HPS, ePrint 2021/204 section 2.3): as `Floor` within k 2^-49 S.
    HpsFloor,
    /// Doubles, rounded to nearest (HPS).
    HpsRound,
    /// Integers modulo 2^32 (BEHZ's small Montgomery reduction): |x| <= S (1/2 + k 2^-32).
    Behz,
}

/// x^-1 mod m.
#[must_use]
pub fn inverse_mod(x: &BigUint, m: &BigUint) -> Option<BigUint> {
    (x % m).modinv(m)
}

impl ConvertSpec {
    /// The conversion from `src` to `dst` that multiplies by the public integer ratio pre (on the sources) and
    /// post (on the destinations), each given as a residue for each prime.
    ///
    /// # Errors
    /// [`Error::Length`] when a factor list does not fit its set.
    pub fn new(
        ring: &Ring,
        src: &IndexSet,
        dst: &IndexSet,
        pre: &[u64],
        post: &[u64],
        overflow: Overflow,
    ) -> Result<Self, Error> {
        for (set, list) in [(src, pre), (dst, post)] {
            if set.len() != list.len() {
                return Err(Error::Length { expected: set.len(), got: list.len() });
            }
        }
        // A factor 2^32 on the sources, taken out of the results, where the overflow is counted modulo 2^32.
        let shift = if overflow == Overflow::Behz { 1 << 32 } else { 1 };
        let sources: Vec<u64> = src.iter().map(|j| ring.modulus(j).value()).collect();
        let mut prescale = Vec::with_capacity(src.len());
        for ((own, j), &factor) in src.iter().enumerate().zip(pre) {
            let p = ring.modulus(j);
            let others = sources.iter().enumerate().filter(|&(other, _)| other != own);
            let cofactor = others.fold(1, |product, (_, &q)| p.mul(product, p.reduce(q)));
            let inverse = p.inv(cofactor).unwrap_or_default();
            prescale.push(p.mul(p.mul(inverse, p.reduce(factor)), p.reduce(shift)));
        }
        let mut matrix = Vec::with_capacity(dst.len());
        let mut correction = Vec::with_capacity(dst.len());
        let mut bias = Vec::with_capacity(dst.len());
        for (i, &factor) in dst.iter().zip(post) {
            let q = ring.modulus(i);
            let post = q.mul(q.inv(q.reduce(shift)).unwrap_or_default(), q.reduce(factor));
            let row = cofactors(&q, &sources, post);
            let s = row.first().zip(sources.first()).map_or(post, |(&cofactor, &p)| q.mul(cofactor, q.reduce(p)));
            matrix.push(row);
            if overflow == Overflow::Behz {
                correction.push(s);
                bias.push(q.neg(q.mul(s, q.reduce(1 << 31))));
            } else {
                correction.push(q.neg(s));
                bias.push(0);
            }
        }
        let count = match overflow {
            Overflow::Fast => Count::None,
            Overflow::Floor => Count::Fixed { half: false },
            Overflow::Round => Count::Fixed { half: true },
            Overflow::HpsFloor => Count::Double { half: false },
            Overflow::HpsRound => Count::Double { half: true },
            Overflow::Behz => Count::Montgomery32 {
                weights: src.iter().map(|j| inverse_mod_2_32(ring.modulus(j).value() as u32)).collect(),
            },
        };
        Ok(Self { prescale: Some(prescale), matrix, overflow: count, correction, bias })
    }

    /// The same conversion for sources that carry public factors already (x_j stands for x_j / own_j) and results
    /// that shall carry some (out_i times given_i): constants of a neighbouring step, at no cost.
    ///
    /// # Errors
    /// [`Error::Length`] when a factor list does not fit its set, [`Error::NotInvertible`] for a factor of a source
    /// that is 0.
    pub fn with_factors(
        mut self,
        ring: &Ring,
        (src, own): (&IndexSet, &[u64]),
        (dst, given): (&IndexSet, &[u64]),
    ) -> Result<Self, Error> {
        for (set, list) in [(src, own), (dst, given)] {
            if set.len() != list.len() {
                return Err(Error::Length { expected: set.len(), got: list.len() });
            }
        }
        if own.iter().any(|&factor| factor != 1) {
            let prescale = self.prescale.get_or_insert_with(|| vec![1; src.len()]);
            for ((j, &factor), scale) in src.iter().zip(own).zip(prescale) {
                let p = ring.modulus(j);
                let inverse = p.inv(factor).ok_or(Error::NotInvertible { modulus: p.value() })?;
                *scale = p.mul(*scale, inverse);
            }
        }
        for (i, (q, &factor)) in dst.iter().map(|i| ring.modulus(i)).zip(given).enumerate() {
            let constants = self.matrix[i].iter_mut().chain([&mut self.correction[i], &mut self.bias[i]]);
            constants.for_each(|x| *x = q.mul(*x, factor));
        }
        Ok(self)
    }

    /// Takes the source factors out, to be multiplied into the data beforehand (a key, once).
    #[must_use]
    pub fn fold(mut self) -> (Vec<u64>, Self) {
        let factors = self.prescale.take().unwrap_or_default();
        (factors, self)
    }
}

/// `factor` times the product of all sources but one, modulo q, for each one: products of those before and those after.
fn cofactors(q: &Modulus, sources: &[u64], factor: u64) -> Vec<u64> {
    let mut row = Vec::with_capacity(sources.len());
    let mut before = factor;
    for &p in sources {
        row.push(before);
        before = q.mul(before, q.reduce(p));
    }
    let mut after = 1;
    for (cofactor, &p) in row.iter_mut().zip(sources).rev() {
        *cofactor = q.mul(*cofactor, after);
        after = q.mul(after, q.reduce(p));
    }
    row
}

/// p^-1 mod 2^32 for odd p, by Newton iteration.
const fn inverse_mod_2_32(p: u32) -> u32 {
    let mut x = p;
    let mut i = 0;
    while i < 5 {
        x = x.wrapping_mul(2u32.wrapping_sub(p.wrapping_mul(x)));
        i += 1;
    }
    x
}

/// The residues of a big integer's inverse modulo each prime of `set`.
///
/// # Errors
/// [`Error::NotInvertible`] when it shares a factor with one of them.
pub fn inverse_residues(ring: &Ring, set: &IndexSet, x: &BigUint) -> Result<Vec<u64>, Error> {
    let residues = ring.residues(set, x);
    let inverse = |(i, residue): (usize, u64)| {
        let q = ring.modulus(i);
        q.inv(residue).ok_or(Error::NotInvertible { modulus: q.value() })
    };
    set.iter().zip(residues).map(inverse).collect()
}

/// Composes residues over `set` into the representative in \[0, product); public data only (variable time).
///
/// # Errors
/// [`Error::Length`] when the number of residues is not that of the primes.
pub fn compose_vartime(ring: &Ring, set: &IndexSet, residues: &[u64]) -> Result<BigUint, Error> {
    if set.len() != residues.len() {
        return Err(Error::Length { expected: set.len(), got: residues.len() });
    }
    let product = ring.product(set);
    let mut sum = BigUint::zero();
    for (i, &r) in set.iter().zip(residues) {
        let q = BigUint::from(ring.modulus(i).value());
        let cofactor = &product / &q;
        let inverse = inverse_mod(&cofactor, &q).unwrap_or_default();
        sum += cofactor * (inverse * r % &q);
    }
    Ok(sum.mod_floor(&product))
}
