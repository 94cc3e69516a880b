//! Polynomials that parties send each other: limb by limb, each residue in as few whole bytes as its prime takes.

use std::ops::Range;

use synchromesh::rlwe::Context;
use synchromesh::rlwe::ring::cpu::CpuBuffer;
use synchromesh::rlwe::ring::{Backend, Cpu, Domain, IndexSet, Ntt, Poly, View, ViewMut};

use crate::error::{Error, Result};
use crate::session::{Session, Summands};
use crate::transport::Transport;

/// Bytes of a residue modulo q.
const fn residue_bytes(q: u64) -> usize {
    (64 - q.leading_zeros()).div_ceil(8) as usize
}

/// Words that are packed at a time.
const TILE: usize = 512;

/// Writes the low `width` bytes of each word.
fn pack(words: &[u64], width: usize, bytes: &mut [u8]) {
    match width {
        4 => pack_in::<4>(words, bytes),
        5 => pack_in::<5>(words, bytes),
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

/// [`pack`] for the widths that primes mostly have: eight bytes at a time where there is room, of which the next word takes back
/// what is too much.
fn pack_in<const WIDTH: usize>(words: &[u64], bytes: &mut [u8]) {
    for (i, word) in words.iter().enumerate() {
        let (to, word) = (&mut bytes[i * WIDTH..], word.to_le_bytes());
        match to.first_chunk_mut::<8>() {
            Some(to) => *to = word,
            None => to[..WIDTH].copy_from_slice(&word[..WIDTH]),
        }
    }
}

/// Reads words of `width` bytes and returns the largest of them.
fn unpack(bytes: &[u8], width: usize, words: &mut [u64]) -> u64 {
    match width {
        4 => unpack_from::<4>(bytes, words),
        5 => unpack_from::<5>(bytes, words),
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
    for (prime, limb) in poly.primes().iter().zip(poly.buffer().words().chunks_exact(n)) {
        let width = residue_bytes(ring.modulus(prime).value());
        bytes.reserve(n * width);
        // Zeros in the place of all of it would be written first otherwise.
        let mut packed = [0; 8 * TILE];
        for words in limb.chunks(TILE) {
            let packed = &mut packed[..words.len() * width];
            pack(words, width, packed);
            bytes.extend_from_slice(packed);
        }
    }
    Ok(())
}

/// The polynomial on `primes` that [`write_poly`] wrote so.
///
/// # Errors
/// [`Error::NotAPolynomial`] for another number of bytes, or a residue that is none.
pub fn read_poly<D: Domain>(context: &Context<Cpu>, primes: &IndexSet, bytes: &[u8]) -> Result<Poly<Cpu, D>> {
    let mut poly = Poly::new(context.backend(), primes)?;
    read_into(context, bytes, &mut poly)?;
    Ok(poly)
}

/// As [`read_poly`] on the primes of `poly`, in its place.
fn read_into<D: Domain>(context: &Context<Cpu>, bytes: &[u8], poly: &mut Poly<Cpu, D>) -> Result<()> {
    let n = context.params().n();
    let primes = poly.primes().clone();
    let mut limbs = poly.buffer_mut().words_mut().chunks_exact_mut(n);
    each_limb(context, &primes, bytes, |_, own, width| Ok(limbs.next().map_or(0, |limb| unpack(own, width, limb))))
}

/// Adds to a polynomial the one on its primes in these bytes, a limb at a time.
fn add_from<D: Domain>(
    context: &Context<Cpu>,
    bytes: &[u8],
    sum: &mut Poly<Cpu, D>,
    limb: &mut CpuBuffer,
) -> Result<()> {
    let (n, primes) = (context.params().n(), sum.primes().clone());
    let mut row = 0;
    each_limb(context, &primes, bytes, |prime, own, width| {
        let largest = unpack(own, width, &mut limb.words_mut()[..n]);
        // What is no residue is refused before it is added.
        if largest < context.params().ring().modulus(prime).value() {
            let (rows, first) = ([row], [0]);
            let (to, from) = (ViewMut::new(sum.buffer_mut(), &rows), View::new(limb, &first));
            context.backend().add_assign(&[prime], to, from).map_err(synchromesh::rlwe::ring::Error::from)?;
        }
        row += 1;
        Ok(largest)
    })
}

/// Has `read` take the bytes of each limb, with its prime and the width of its residues, and say which is the largest.
fn each_limb(
    context: &Context<Cpu>,
    primes: &IndexSet,
    mut bytes: &[u8],
    mut read: impl FnMut(usize, &[u8], usize) -> Result<u64>,
) -> Result<()> {
    let (n, ring) = (context.params().n(), context.params().ring());
    let (got, expected) = (bytes.len(), poly_bytes(context, primes));
    if got != expected {
        return Err(Error::NotAPolynomial { reason: format!("{got} bytes where it has {expected}") });
    }
    for prime in primes.iter() {
        let q = ring.modulus(prime).value();
        let width = residue_bytes(q);
        let (own, rest) = bytes.split_at(n * width);
        bytes = rest;
        let word = read(prime, own, width)?;
        if word >= q {
            return Err(Error::NotAPolynomial { reason: format!("{word} is no residue modulo {q}") });
        }
    }
    Ok(())
}

/// Bytes of a long message that are sent at a time, or one polynomial if that is longer: so many that a round takes longer for
/// them than for its way, and so few that neither side takes new memory for each.
const PIECE: usize = 4 << 20;

/// A message of polynomials of these lengths in the pieces in which it is sent: which polynomials are in each, and its bytes.
pub(crate) fn pieces(lengths: &[usize]) -> (Vec<Range<usize>>, Vec<usize>) {
    pieces_of(lengths, PIECE)
}

/// As [`pieces`], one at least for each of so many parties where there are as many polynomials.
pub(crate) fn pieces_among(lengths: &[usize], parties: usize) -> Vec<Range<usize>> {
    pieces_of(lengths, PIECE.min(lengths.iter().sum::<usize>().div_ceil(parties))).0
}

/// Pieces of at most so many bytes.
fn pieces_of(lengths: &[usize], most: usize) -> (Vec<Range<usize>>, Vec<usize>) {
    let (mut ranges, mut sizes) = (Vec::<Range<usize>>::new(), Vec::<usize>::new());
    for (i, &length) in lengths.iter().enumerate() {
        match (ranges.last_mut(), sizes.last_mut()) {
            (Some(range), Some(size)) if *size + length <= most => (range.end, *size) = (i + 1, *size + length),
            _ => {
                ranges.push(i..i + 1);
                sizes.push(length);
            }
        }
    }
    (ranges, sizes)
}

/// The bytes of each of these polynomials that a piece has one behind the other; what lacks is lacking of the last.
fn each_poly<'p, D: Domain>(
    context: &Context<Cpu>,
    polys: impl IntoIterator<Item = &'p mut Poly<Cpu, D>>,
    mut bytes: &[u8],
    mut read: impl FnMut(&[u8], &mut Poly<Cpu, D>) -> Result<()>,
) -> Result<()> {
    for poly in polys {
        let (own, rest) = bytes.split_at(poly_bytes(context, poly.primes()).min(bytes.len()));
        read(own, poly)?;
        bytes = rest;
    }
    Ok(())
}

/// Adds to these polynomials those in the bytes of a piece, which has as many.
pub(crate) fn add_piece<'p, D: Domain>(
    context: &Context<Cpu>,
    sums: impl IntoIterator<Item = &'p mut Poly<Cpu, D>>,
    bytes: &[u8],
) -> Result<()> {
    let mut limb = context.backend().alloc(1).map_err(synchromesh::rlwe::ring::Error::from)?;
    each_poly(context, sums, bytes, |own, sum| add_from(context, own, sum, &mut limb))
}

/// As [`add_piece`], and `keep` gets each that was added.
pub(crate) fn add_and_keep<'p, D: Domain>(
    context: &Context<Cpu>,
    sums: impl IntoIterator<Item = &'p mut Poly<Cpu, D>>,
    bytes: &[u8],
    keep: &mut Vec<Poly<Cpu, D>>,
) -> Result<()> {
    each_poly(context, sums, bytes, |own, sum| {
        let poly = read_poly(context, sum.primes(), own)?;
        sum.add_assign(context.backend(), &poly)?;
        keep.push(poly);
        Ok(())
    })
}

/// Sums of polynomials in pieces. What this party has of a piece is made when it is asked for, and kept only where it adds up.
struct Summed<'a, D: Domain, F> {
    context: &'a Context<Cpu>,
    /// The primes of the polynomials of each piece.
    primes: &'a [Vec<IndexSet>],
    make: F,
    sums: Vec<Option<Vec<Poly<Cpu, D>>>>,
    /// Nobody else has anything to add.
    alone: bool,
}

impl<D: Domain, F: FnMut(usize) -> Result<Vec<Poly<Cpu, D>>>> Summands for Summed<'_, D, F> {
    fn write(&mut self, piece: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let mut write =
            |polys: &[Poly<Cpu, D>]| polys.iter().try_for_each(|poly| write_poly(self.context, poly, bytes));
        if let Some(sum) = &self.sums[piece] {
            return write(sum);
        }
        let own = (self.make)(piece)?;
        write(&own)?;
        if self.alone {
            self.sums[piece] = Some(own);
        }
        Ok(())
    }

    fn add(&mut self, piece: usize, bytes: &[u8]) -> Result<()> {
        if self.sums[piece].is_none() {
            self.sums[piece] = Some((self.make)(piece)?);
        }
        add_piece(self.context, self.sums[piece].iter_mut().flatten(), bytes)
    }

    fn replace(&mut self, piece: usize, sum: &[u8]) -> Result<()> {
        let mut polys = Vec::with_capacity(self.primes[piece].len());
        for primes in &self.primes[piece] {
            polys.push(Poly::new(self.context.backend(), primes)?);
        }
        each_poly(self.context, &mut polys, sum, |own, poly| read_into(self.context, own, poly))?;
        self.sums[piece] = Some(polys);
        Ok(())
    }
}

/// The sums of all parties' polynomials in pieces, of which this one makes what it has of each once: polynomials on these primes.
/// One party adds up a piece for all ([`Session::add_up`]).
pub(crate) fn add_up<T: Transport, D: Domain>(
    session: &mut Session<T>,
    context: &Context<Cpu>,
    primes: &[Vec<IndexSet>],
    make: impl FnMut(usize) -> Result<Vec<Poly<Cpu, D>>>,
) -> Result<Vec<Vec<Poly<Cpu, D>>>> {
    let length = |primes: &Vec<IndexSet>| primes.iter().map(|primes| poly_bytes(context, primes)).sum();
    let lengths: Vec<usize> = primes.iter().map(length).collect();
    let sums = primes.iter().map(|_| None).collect();
    let mut summed = Summed { context, primes, make, sums, alone: session.parties() == 1 };
    session.add_up(&lengths, &mut summed)?;
    Ok(summed.sums.into_iter().flatten().collect())
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
