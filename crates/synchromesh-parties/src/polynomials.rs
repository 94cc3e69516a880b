//! Polynomials that parties send each other: limb by limb, each residue in as few whole bytes as its prime takes.

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::{Cpu, Domain, IndexSet, Ntt, Poly};

use crate::error::{Error, Result};

/// Bytes of a residue modulo q.
const fn residue_bytes(q: u64) -> usize {
    (64 - q.leading_zeros()).div_ceil(8) as usize
}

/// Writes the low `width` bytes of each word. All eight are written where there is room: the next word covers the rest.
fn pack(words: &[u64], width: usize, bytes: &mut [u8]) {
    for (i, word) in words.iter().enumerate() {
        let to = &mut bytes[i * width..];
        match to.first_chunk_mut::<8>() {
            Some(to) => *to = word.to_le_bytes(),
            None => to[..width].copy_from_slice(&word.to_le_bytes()[..width]),
        }
    }
}

/// Reads words of `width` bytes, eight at a time where these are there.
fn unpack(bytes: &[u8], words: &mut [u64]) {
    let width = bytes.len() / words.len();
    let mask = u64::MAX >> (64 - 8 * width);
    for (i, word) in words.iter_mut().enumerate() {
        let from = &bytes[i * width..];
        *word = match from.first_chunk::<8>() {
            Some(from) => u64::from_le_bytes(*from) & mask,
            None => from[..width].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
    }
}

/// Bytes of a polynomial on `primes`.
#[must_use]
pub fn poly_bytes(context: &Context<Cpu>, primes: &IndexSet) -> usize {
    let (n, ring) = (context.params().n(), context.params().ring());
    primes.iter().map(|prime| n * residue_bytes(ring.modulus(prime).value())).sum()
}

/// Appends a polynomial, its residues little-endian.
///
/// # Errors
/// When the device fails.
pub fn write_poly<D: Domain>(context: &Context<Cpu>, poly: &Poly<Cpu, D>, bytes: &mut Vec<u8>) -> Result<()> {
    let (n, ring) = (context.params().n(), context.params().ring());
    let words = poly.to_words(context.backend())?;
    for (prime, limb) in poly.primes().iter().zip(words.chunks_exact(n)) {
        let width = residue_bytes(ring.modulus(prime).value());
        let start = bytes.len();
        bytes.resize(start + n * width, 0);
        pack(limb, width, &mut bytes[start..]);
    }
    Ok(())
}

/// The polynomial on `primes` that [`write_poly`] wrote so.
///
/// # Errors
/// [`Error::NotAPolynomial`] for another number of bytes, or a residue that is none.
pub fn read_poly<D: Domain>(context: &Context<Cpu>, primes: &IndexSet, mut bytes: &[u8]) -> Result<Poly<Cpu, D>> {
    let (n, ring) = (context.params().n(), context.params().ring());
    let (got, expected) = (bytes.len(), poly_bytes(context, primes));
    if got != expected {
        return Err(Error::NotAPolynomial { reason: format!("{got} bytes where it has {expected}") });
    }
    let mut words = vec![0; n * primes.len()];
    for (prime, limb) in primes.iter().zip(words.chunks_exact_mut(n)) {
        let q = ring.modulus(prime).value();
        let (own, rest) = bytes.split_at(n * residue_bytes(q));
        bytes = rest;
        unpack(own, limb);
        if let Some(word) = limb.iter().find(|&&word| word >= q) {
            return Err(Error::NotAPolynomial { reason: format!("{word} is no residue modulo {q}") });
        }
    }
    Ok(Poly::from_words(context.backend(), primes, &words)?)
}

/// The sums of all parties' polynomials, of which each has as many; none of nobody.
///
/// # Errors
/// When the device fails.
pub(crate) fn sum(context: &Context<Cpu>, shares: &[Vec<Poly<Cpu, Ntt>>]) -> Result<Vec<Poly<Cpu, Ntt>>> {
    let Some((first, rest)) = shares.split_first() else { return Ok(Vec::new()) };
    let one = |(at, row): (usize, &Poly<Cpu, Ntt>)| {
        let mut sum = row.duplicate(context.backend())?;
        rest.iter().filter_map(|share| share.get(at)).try_for_each(|row| sum.add_assign(context.backend(), row))?;
        Ok(sum)
    };
    first.iter().enumerate().map(one).collect()
}
