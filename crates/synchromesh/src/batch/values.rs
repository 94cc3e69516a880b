//! Integers to residues mod t and back: the part that slot and coefficient encoding share.

use num_bigint::{BigInt, BigUint, Sign};
use zeroize::Zeroize;

use super::error::BatchError;
use super::poly::Residues;
use crate::plain_modulus::{Arithmetic, PlainModulus, U256, WideModulus, to_biguint};

/// Integers to be reduced mod t. A big integer shows its number of limbs through time, nothing else.
pub(super) enum Values<'a> {
    U64(&'a [u64]),
    I64(&'a [i64]),
    Big(&'a [BigInt]),
}

impl Values<'_> {
    fn len(&self) -> usize {
        match self {
            Self::U64(values) => values.len(),
            Self::I64(values) => values.len(),
            Self::Big(values) => values.len(),
        }
    }

    /// Value i mod t at index `place(i)` of `length` residues; zeros elsewhere.
    pub(super) fn scatter(
        &self,
        modulus: &PlainModulus,
        length: usize,
        place: impl Fn(usize) -> usize,
    ) -> Result<Residues, BatchError> {
        if self.len() > length {
            return Err(BatchError::TooManyValues { given: self.len(), capacity: length });
        }
        let mut residues = Residues::zero(modulus, length);
        match (modulus.arithmetic(), &mut residues) {
            (Arithmetic::Word(t), Residues::Word(words)) => match self {
                Self::U64(values) => put(words, &place, values, |&x| t.reduce(x)),
                Self::I64(values) => put(words, &place, values, |&x| t.reduce_signed(x)),
                Self::Big(values) => put(words, &place, values, |x| {
                    t.negate_if(t.reduce_limbs(x.magnitude().iter_u64_digits()), is_negative(x))
                }),
            },
            (Arithmetic::Wide(t), Residues::Wide(limbs)) => match self {
                Self::U64(values) => put(limbs, &place, values, |&x| t.reduce(&[x, 0, 0, 0])),
                Self::I64(values) => {
                    put(limbs, &place, values, |&x| t.negate_if(&t.reduce(&[x.unsigned_abs(), 0, 0, 0]), x < 0));
                }
                Self::Big(values) => {
                    put(limbs, &place, values, |x| t.negate_if(&reduce_magnitude(t, x.magnitude()), is_negative(x)));
                }
            },
            _ => return Err(BatchError::WrongStorage { bits: modulus.bits() }),
        }
        Ok(residues)
    }
}

fn put<T, R>(out: &mut [R], place: &impl Fn(usize) -> usize, values: &[T], reduce: impl Fn(&T) -> R) {
    for (i, value) in values.iter().enumerate() {
        out[place(i)] = reduce(value);
    }
}

fn is_negative(x: &BigInt) -> bool {
    x.sign() == Sign::Minus
}

/// |x| mod t; up to 256 bits the limbs are padded to four, so that shorter values take no less time.
fn reduce_magnitude(t: &WideModulus, magnitude: &BigUint) -> U256 {
    let mut padded = [0; 4];
    let mut digits = magnitude.iter_u64_digits();
    if digits.len() > 4 {
        let mut limbs: Vec<u64> = digits.collect();
        let residue = t.reduce_limbs(&limbs);
        limbs.zeroize();
        return residue;
    }
    padded.fill_with(|| digits.next().unwrap_or(0));
    let residue = t.reduce(&padded);
    padded.zeroize();
    residue
}

/// The residues in order of place, each in `[0, t)`, for t of at most 64 bits. Decoding is variable-time.
pub(super) fn to_u64(
    modulus: &PlainModulus,
    residues: &Residues,
    place: impl Fn(usize) -> usize,
) -> Result<Vec<u64>, BatchError> {
    if modulus.bits() > 64 {
        return Err(BatchError::DoesNotFit { bits: modulus.bits(), max: 64 });
    }
    Ok((0..residues.len()).map(|i| low_word(residues, place(i))).collect())
}

/// The residues in order of place, each in `[-(t-1)/2, t/2]`, for t of at most 64 bits.
pub(super) fn to_i64(
    modulus: &PlainModulus,
    residues: &Residues,
    place: impl Fn(usize) -> usize,
) -> Result<Vec<i64>, BatchError> {
    let t = modulus.as_u64().ok_or(BatchError::DoesNotFit { bits: modulus.bits(), max: 64 })?;
    let centred = |x: u64| if x > t / 2 { x.wrapping_sub(t) as i64 } else { x as i64 };
    Ok((0..residues.len()).map(|i| centred(low_word(residues, place(i)))).collect())
}

/// The residues in order of place, each in `[0, t)`.
pub(super) fn to_big_unsigned(residues: &Residues, place: impl Fn(usize) -> usize) -> Vec<BigUint> {
    (0..residues.len()).map(|i| to_biguint(&residues.at(place(i)).unwrap_or_default())).collect()
}

/// The residues in order of place, each in `[-(t-1)/2, t/2]`.
pub(super) fn to_big(modulus: &PlainModulus, residues: &Residues, place: impl Fn(usize) -> usize) -> Vec<BigInt> {
    let half = modulus.value() >> 1u32;
    let centred =
        |x: BigUint| if x > half { BigInt::from(x) - BigInt::from(modulus.value().clone()) } else { BigInt::from(x) };
    to_big_unsigned(residues, place).into_iter().map(centred).collect()
}

fn low_word(residues: &Residues, index: usize) -> u64 {
    residues.at(index).unwrap_or_default()[0]
}
