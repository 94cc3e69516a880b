//! Polynomials that parties send each other: limb by limb, each residue in as few whole bytes as its prime takes.

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::{Cpu, Domain, IndexSet, Poly};

use crate::error::{Error, Result};

/// Bytes of a residue modulo q.
const fn residue_bytes(q: u64) -> usize {
    (64 - q.leading_zeros()).div_ceil(8) as usize
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
        limb.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()[..width]));
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
    let mut words = Vec::with_capacity(n * primes.len());
    for prime in primes.iter() {
        let q = ring.modulus(prime).value();
        let width = residue_bytes(q);
        let (limb, rest) = bytes.split_at(n * width);
        bytes = rest;
        for residue in limb.chunks_exact(width) {
            let word = residue.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            if word >= q {
                return Err(Error::NotAPolynomial { reason: format!("{word} is no residue modulo {q}") });
            }
            words.push(word);
        }
    }
    Ok(Poly::from_words(context.backend(), primes, &words)?)
}
