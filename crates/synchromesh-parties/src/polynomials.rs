//! Polynomials that parties send each other: limb by limb, each residue in as few whole bytes as its prime takes.

use std::ops::Range;

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::{Cpu, Domain, IndexSet, Ntt, Poly};

use crate::error::{Error, Result};

/// Bytes of a residue modulo q.
const fn residue_bytes(q: u64) -> usize {
    (64 - q.leading_zeros()).div_ceil(8) as usize
}

/// Writes the low `width` bytes of each word.
fn pack(words: &[u64], width: usize, bytes: &mut [u8]) {
    match width {
        6 => pack_in::<6>(words, bytes),
        7 => pack_in::<7>(words, bytes),
        8 => pack_in::<8>(words, bytes),
        _ => {
            for (to, word) in bytes.chunks_exact_mut(width).zip(words) {
                to.copy_from_slice(&word.to_le_bytes()[..width]);
            }
        }
    }
}

/// [`pack`] for the widths that primes mostly have.
fn pack_in<const WIDTH: usize>(words: &[u64], bytes: &mut [u8]) {
    for (to, word) in bytes.as_chunks_mut::<WIDTH>().0.iter_mut().zip(words) {
        let word = word.to_le_bytes();
        *to = std::array::from_fn(|i| word[i]);
    }
}

/// Reads words of `width` bytes and returns the largest of them.
fn unpack(bytes: &[u8], width: usize, words: &mut [u64]) -> u64 {
    match width {
        6 => unpack_from::<6>(bytes, words),
        7 => unpack_from::<7>(bytes, words),
        8 => unpack_from::<8>(bytes, words),
        _ => {
            for (to, from) in words.iter_mut().zip(bytes.chunks_exact(width)) {
                *to = from.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            }
            words.iter().copied().max().unwrap_or(0)
        }
    }
}

/// [`unpack`] for the widths that primes mostly have: eight bytes at a time where these are there.
fn unpack_from<const WIDTH: usize>(bytes: &[u8], words: &mut [u64]) -> u64 {
    let (mask, mut largest) = (u64::MAX >> (64 - 8 * WIDTH), 0);
    for (i, to) in words.iter_mut().enumerate() {
        let from = &bytes[i * WIDTH..];
        *to = match from.first_chunk::<8>() {
            Some(from) => u64::from_le_bytes(*from) & mask,
            None => from[..WIDTH].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
        };
        largest = largest.max(*to);
    }
    largest
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
        let width = residue_bytes(q);
        let (own, rest) = bytes.split_at(n * width);
        bytes = rest;
        let word = unpack(own, width, limb);
        if word >= q {
            return Err(Error::NotAPolynomial { reason: format!("{word} is no residue modulo {q}") });
        }
    }
    Ok(Poly::from_words(context.backend(), primes, &words)?)
}

/// Bytes of a long message that are sent at a time, or one polynomial if that is longer: so many that a round takes longer for
/// them than for its way, and so few that neither side takes new memory for each.
const PIECE: usize = 4 << 20;

/// A message of polynomials of these lengths in the pieces in which it is sent: which polynomials are in each, and its bytes.
pub(crate) fn pieces(lengths: &[usize]) -> (Vec<Range<usize>>, Vec<usize>) {
    let (mut ranges, mut sizes) = (Vec::<Range<usize>>::new(), Vec::<usize>::new());
    for (i, &length) in lengths.iter().enumerate() {
        match (ranges.last_mut(), sizes.last_mut()) {
            (Some(range), Some(size)) if *size + length <= PIECE => (range.end, *size) = (i + 1, *size + length),
            _ => {
                ranges.push(i..i + 1);
                sizes.push(length);
            }
        }
    }
    (ranges, sizes)
}

/// Adds to these polynomials those in the bytes of a piece, which has as many; `keep` gets each of them.
pub(crate) fn add_piece<'p, D: Domain>(
    context: &Context<Cpu>,
    sums: impl IntoIterator<Item = &'p mut Poly<Cpu, D>>,
    mut bytes: &[u8],
    mut keep: impl FnMut(Poly<Cpu, D>),
) -> Result<()> {
    for sum in sums {
        let (own, rest) = bytes.split_at(poly_bytes(context, sum.primes()).min(bytes.len()));
        let poly = read_poly(context, sum.primes(), own)?;
        sum.add_assign(context.backend(), &poly)?;
        keep(poly);
        bytes = rest;
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_every_width_are_read_as_they_were_written() {
        for width in 1..=8 {
            let mask = u64::MAX >> (64 - 8 * width);
            for n in [1usize, 2, 7, 8, 9, 64] {
                let words: Vec<u64> = (1..=n as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
                let (mut bytes, mut read) = (vec![0xff; n * width], vec![0; n]);
                pack(&words, width, &mut bytes);
                let largest = unpack(&bytes, width, &mut read);
                assert_eq!((&read, Some(&largest)), (&words, words.iter().max()), "{n} of {width} bytes");
                // Little-endian, one behind the other.
                assert_eq!(&bytes[(n - 1) * width..], &words[n - 1].to_le_bytes()[..width]);
            }
        }
    }

    #[test]
    fn pieces_are_whole_polynomials_and_all_of_them() {
        for lengths in [&[][..], &[5], &[PIECE + 1, 1, PIECE, 2, 3], &[PIECE / 2, PIECE / 2, 1]] {
            let (ranges, sizes) = pieces(lengths);
            let together: Vec<usize> = ranges.iter().cloned().flatten().collect();
            assert_eq!(together, (0..lengths.len()).collect::<Vec<_>>());
            for (range, &size) in ranges.iter().zip(&sizes) {
                assert_eq!(size, lengths[range.clone()].iter().sum::<usize>());
                assert!(size <= PIECE || range.len() == 1, "{lengths:?}: {range:?}");
            }
        }
        assert_eq!(pieces(&[PIECE / 2, PIECE / 2, 1]).1, [PIECE, 1]);
    }
}
