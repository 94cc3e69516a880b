//! Discrete Gaussians of width 2^k, many at a time: a cell of 2^max(k - 2, 0) numbers by a cumulative table that is scanned
//! whole, a uniform place in it, and a coin that keeps both with probability exp(-y), y what the place adds to the cell's
//! exponent.
//!
//! Attempt a for the numbers that are still missing reads words of its own streams, word i for the i-th of them. The first 52
//! bits of the coin are compared with exp(-y) in doubles; where both are so near that these may be wrong, and where a word is
//! equal to a threshold's, 64 bits more decide, in integers: once in 2^40 numbers. The time depends on that, and on what is thrown
//! away, which says nothing of what is kept.

use num_bigint::BigUint;
use zeroize::Zeroizing;

use super::gaussian::{FRACTION, exp_minus};
use super::stream::Stream;
use super::{Purpose, Seed};
use crate::isa::Isa;
use crate::secrecy;

/// Numbers that are judged at a time.
const BLOCK: usize = 256;

/// How near exp(-y) a coin is decided exactly: far more than what doubles are off by.
const MARGIN: f64 = 1.0 / (1u64 << 43) as f64;

/// Streams of an attempt.
const STREAMS: u32 = 4;

/// |x| = h 2^log2 + l: h with probability proportional to exp(-(h 2^log2)^2 / 2^exponent), l uniform.
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a> {
    /// log2 of the numbers in a cell, at most 46.
    pub log2: u32,
    /// 2 sigma^2 is 2 to this power.
    pub exponent: u32,
    /// 2^128 times the probability of the cells up to each, but for the last: two words, the higher one first; at most 62.
    pub thresholds: &'a [[u64; 2]],
}

/// Words of a block: cells, places and signs, coins.
type Words = [[u64; BLOCK]; 3];

/// What becomes of a number: kept, thrown away, or not known yet.
const THROWN: u64 = 1;
const UNKNOWN: u64 = 2;

/// Writes independent samples with probability proportional to exp(-x^2 / 2^exponent), to within 2^-115.
pub fn cells_into(seed: &Seed, purpose: Purpose, cells: &Cells<'_>, out: &mut [i64]) {
    let isa = Isa::detect().unwrap_or(Isa::Scalar);
    let mut missing: Vec<u32> = (0..out.len() as u32).collect();
    for attempt in 0.. {
        if missing.is_empty() {
            return;
        }
        let kept = self::attempt(seed, (purpose, attempt), (cells, isa), &mut missing, out);
        missing.truncate(kept);
    }
}

/// One attempt for each number that is missing; those that still are stand first, so many.
fn attempt(
    seed: &Seed,
    (purpose, attempt): (Purpose, u32),
    (cells, isa): (&Cells<'_>, Isa),
    missing: &mut [u32],
    out: &mut [i64],
) -> usize {
    let mut streams: [Stream; 3] =
        std::array::from_fn(|kind| Stream::new(seed, purpose, attempt * STREAMS + kind as u32, 0));
    let mut words: Zeroizing<Words> = Zeroizing::new([[0; BLOCK]; 3]);
    let (mut values, mut verdicts) = (Zeroizing::new([0i64; BLOCK]), [0u64; BLOCK]);
    let mut kept = 0;
    for start in (0..missing.len()).step_by(BLOCK) {
        let count = (missing.len() - start).min(BLOCK);
        for (stream, words) in streams.iter_mut().zip(words.iter_mut()) {
            stream.fill_words(start as u64, &mut words[..count]);
        }
        judge(isa, cells, &words, (&mut values, &mut verdicts));
        // Of what is thrown away, and how often.
        secrecy::reveal_all(&verdicts);
        for i in 0..count {
            if verdicts[i] & UNKNOWN != 0 {
                let mut more = [0; 2];
                let mut stream = Stream::new(seed, purpose, attempt * STREAMS + 3, 0);
                stream.fill_words(2 * (start + i) as u64, &mut more);
                let (value, keep) = decided(cells, std::array::from_fn(|kind| words[kind][i]), more);
                (values[i], verdicts[i]) = (value, if keep { 0 } else { THROWN });
            }
            let position = missing[start + i];
            out[position as usize] = values[i];
            missing[kept] = position;
            kept += usize::from(verdicts[i] == THROWN);
        }
    }
    kept
}

/// |x| and the sign as a number; h and l below 2^52 together.
#[inline(always)]
const fn signed(magnitude: u64, negative: u64) -> i64 {
    let sign = negative.wrapping_neg() as i64;
    (magnitude as i64 ^ sign) - sign
}

/// A number below 2^52.
#[inline(always)]
fn double(x: u64) -> f64 {
    const TWO_52: f64 = (1u64 << 52) as f64;
    f64::from_bits(TWO_52.to_bits() | x) - TWO_52
}

/// 1/14, 1/13, .. 1.
const INVERSES: [f64; 14] = {
    let (mut inverses, mut k) = ([0.0; 14], 14);
    while k > 0 {
        inverses[14 - k] = 1.0 / k as f64;
        k -= 1;
    }
    inverses
};

/// exp(-y) for y from 0 to 4, off by less than 2^-47: the eighth power of a series of which 2^-55 is left.
#[inline(always)]
fn exponential(y: f64) -> f64 {
    let x = y * -0.125;
    let root = INVERSES.iter().fold(1.0, |sum, inverse| 1.0 + sum * x * inverse);
    let square = root * root;
    let fourth = square * square;
    fourth * fourth
}

/// All numbers of a block and what becomes of each. Takes the same steps whatever they are. The loops are such that a compiler
/// makes vectors of them.
#[inline(always)]
fn judge_in_lanes(cells: &Cells<'_>, words: &Words, (values, verdicts): (&mut [i64; BLOCK], &mut [u64; BLOCK])) {
    const LANES: usize = 16;
    let mut of_cells = Zeroizing::new([0u64; BLOCK]);
    let lanes = of_cells.as_chunks_mut::<LANES>().0.iter_mut().zip(verdicts.as_chunks_mut::<LANES>().0);
    for (words, (to, verdicts)) in words[0].as_chunks::<LANES>().0.iter().zip(lanes) {
        let (mut cell, mut tie) = ([0u64; LANES], [0u64; LANES]);
        for &[threshold, _] in cells.thresholds {
            for lane in 0..LANES {
                cell[lane] += u64::from(words[lane] >= threshold);
                tie[lane] |= u64::from(words[lane] == threshold);
            }
        }
        *to = cell;
        *verdicts = tie.map(|tie| tie * UNKNOWN);
    }
    let unit = 1.0 / (1u64 << cells.log2) as f64;
    // 2^(2 log2 - exponent), a power of two that a double has.
    let scale = f64::from_bits((1023 + u64::from(2 * cells.log2)).wrapping_sub(cells.exponent.into()) << 52);
    let [_, places, coins] = words;
    for i in 0..BLOCK {
        let (negative, low) = (places[i] & 1, (places[i] >> 1) & ((1 << cells.log2) - 1));
        let (coin, x) = (double(coins[i] >> 12) * (1.0 / (1u64 << 52) as f64), double(low) * unit);
        let likely = exponential(x * (2.0 * double(of_cells[i]) + x) * scale);
        let magnitude = (of_cells[i] << cells.log2) + low;
        let thrown = u64::from(coin >= likely + MARGIN) | (u64::from(magnitude == 0) & negative);
        let near = u64::from(coin > likely - MARGIN) & u64::from(coin < likely + MARGIN);
        values[i] = signed(magnitude, negative);
        verdicts[i] |= (thrown * THROWN) | (near * UNKNOWN);
    }
}

/// [`judge_in_lanes`] in vectors of 512 bits.
///
/// # Safety
/// The CPU must have AVX-512 F, DQ and VL.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl")]
fn judge_avx512(cells: &Cells<'_>, words: &Words, out: (&mut [i64; BLOCK], &mut [u64; BLOCK])) {
    judge_in_lanes(cells, words, out);
}

/// [`judge_in_lanes`] in vectors of 256 bits.
///
/// # Safety
/// The CPU must have AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn judge_avx2(cells: &Cells<'_>, words: &Words, out: (&mut [i64; BLOCK], &mut [u64; BLOCK])) {
    judge_in_lanes(cells, words, out);
}

fn judge(isa: Isa, cells: &Cells<'_>, words: &Words, out: (&mut [i64; BLOCK], &mut [u64; BLOCK])) {
    match isa {
        // SAFETY: `isa` is what `Isa::detect` or `Isa::available` says that this CPU has.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Ifma => unsafe { judge_avx512(cells, words, out) },
        // SAFETY: the same.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { judge_avx2(cells, words, out) },
        _ => judge_in_lanes(cells, words, out),
    }
}

/// The number of these words, with 64 bits more for the cell and for the coin, and whether it is kept.
fn decided(cells: &Cells<'_>, [cell, place, coin]: [u64; 3], more: [u64; 2]) -> (i64, bool) {
    let number = [cell, more[0]];
    let h = cells.thresholds.iter().map(|&threshold| u128::from(number >= threshold)).sum::<u128>();
    let (negative, low) = (place & 1, u128::from(place >> 1) & ((1 << cells.log2) - 1));
    let y = low * ((h << (cells.log2 + 1)) + low);
    let likely = exp_minus(&y.into(), &(BigUint::from(1u32) << cells.exponent));
    let coin = (BigUint::from(coin) << 64u32) + more[1];
    let magnitude = ((h << cells.log2) + low) as u64;
    (signed(magnitude, negative), (coin << (FRACTION - 128)) < likely && !(magnitude == 0 && negative == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of sigma = 2^bits, 2 or more: cells of sigma / 4.
    fn thresholds() -> Vec<[u64; 2]> {
        let weights: Vec<BigUint> = (0u32..53).map(|h| exp_minus(&(h * h).into(), &32u32.into())).collect();
        let total: BigUint = weights.iter().sum();
        let mut below = BigUint::ZERO;
        let share = |weight: &BigUint| {
            below += weight;
            let share: u128 = ((&below << 128u32) / &total).try_into().unwrap_or(u128::MAX);
            [(share >> 64) as u64, share as u64]
        };
        weights[..52].iter().map(share).collect()
    }

    fn cells(bits: u32, thresholds: &[[u64; 2]]) -> Cells<'_> {
        Cells { log2: bits - 2, exponent: 2 * bits + 1, thresholds }
    }

    #[test]
    fn every_isa_and_the_exact_way_give_the_same_numbers() {
        let thresholds = thresholds();
        for bits in [2, 3, 20, 48] {
            let cells = cells(bits, &thresholds);
            let mut words: Words = [[0; BLOCK]; 3];
            for (kind, words) in words.iter_mut().enumerate() {
                Stream::new(&Seed::from_bytes([bits as u8; 32]), Purpose::Flooding, kind as u32, 0)
                    .fill_words(0, words);
            }
            // Ties, zeros, and coins as near exp(-y) as doubles tell.
            (words[0][0], words[0][1], words[1][2], words[0][2]) = (thresholds[0][0], thresholds[3][0], 1, 0);
            let (mut values, mut verdicts) = ([0; BLOCK], [0; BLOCK]);
            judge(Isa::Scalar, &cells, &words, (&mut values, &mut verdicts));
            assert_eq!([verdicts[0] & UNKNOWN, verdicts[1] & UNKNOWN], [UNKNOWN; 2]);
            assert_eq!((values[2], verdicts[2] & THROWN), (0, THROWN), "there is one zero");
            for isa in Isa::available() {
                let (mut own, mut others) = ([0; BLOCK], [0; BLOCK]);
                judge(isa, &cells, &words, (&mut own, &mut others));
                assert_eq!((own, others), (values, verdicts), "{}", isa.name());
            }
            for i in 3..BLOCK {
                let (value, keep) = decided(&cells, std::array::from_fn(|kind| words[kind][i]), [0; 2]);
                if verdicts[i] & UNKNOWN == 0 {
                    assert_eq!((values[i], verdicts[i] == 0), (value, keep), "{bits} bits, {i}");
                }
            }
        }
    }

    /// Coins on both sides of exp(-y) by steps of a quarter of the margin: what doubles decide is right, and so is what they do not.
    #[test]
    fn coins_are_decided_as_in_integers() {
        let thresholds = thresholds();
        let cells = cells(40, &thresholds);
        let step = ((MARGIN / 4.0) * 2f64.powi(64)) as u64;
        let mut undecided = 0;
        for (cell, place) in [(0, 5 << 30), (1 << 63, 7 << 35), (u64::MAX - (1 << 40), (1 << 39) - 2), (1 << 62, 3)] {
            let (h, low) = (thresholds.iter().filter(|t| cell >= t[0]).count() as u128, u128::from(place >> 1u32));
            let y = low * ((h << 39u32) + low);
            let likely: BigUint = exp_minus(&y.into(), &(BigUint::from(1u32) << 81u32)) >> (FRACTION - 128);
            let high = u64::try_from(&likely >> 64u32).unwrap_or(u64::MAX);
            let mut words: Words = [[cell; BLOCK], [place; BLOCK], [0; BLOCK]];
            for (i, coin) in words[2].iter_mut().enumerate() {
                *coin = high.saturating_add_signed((i as i64 - 128) * step as i64);
            }
            let (mut values, mut verdicts) = ([0; BLOCK], [0; BLOCK]);
            judge(Isa::best(), &cells, &words, (&mut values, &mut verdicts));
            for i in 0..BLOCK {
                let keep = decided(&cells, [cell, place, words[2][i]], [0; 2]).1;
                assert_eq!(keep, BigUint::from(words[2][i]) << 64u32 < likely, "{cell} {place} {i}");
                if verdicts[i] & UNKNOWN == 0 {
                    assert_eq!(keep, verdicts[i] == 0, "{cell} {place} {i}");
                }
                undecided += usize::from(verdicts[i] & UNKNOWN != 0);
            }
            // The last 64 bits decide where all others are those of exp(-y).
            let low = u64::try_from(likely & BigUint::from(u64::MAX)).unwrap_or(0);
            if high < u64::MAX {
                assert!(decided(&cells, [cell, place, high], [0, low.saturating_sub(1)]).1);
                assert!(!decided(&cells, [cell, place, high], [0, low.saturating_add(1)]).1);
            }
        }
        assert!((12..80).contains(&undecided), "{undecided}");
    }
}
