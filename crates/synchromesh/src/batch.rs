//! Values mod t as plaintext polynomials: N slots for prime t = 1 mod 2N, N coefficients for any t.
//!
//! Slots form a 2 x N/2 matrix, given row after row. With zeta of order 2N mod t, slot i of row 0 is the value at
//! zeta^(3^i) and slot i of row 1 the value at zeta^(-3^i), so that X -> X^3 rotates both rows left by one and
//! X -> X^(2N-1) swaps them. Sums and products of polynomials are those of their slots.

mod error;
mod ntt;
mod poly;
mod values;

#[cfg(test)]
mod tests;

use num_bigint::{BigInt, BigUint};

pub use error::BatchError;
pub use poly::{PlainPoly, Residues};

use crate::plain_modulus::PlainModulus;
use ntt::{SlotTransform, reverse_bits};
use values::Values;

/// Smallest supported log2 N; real parameters start at 10.
pub const MIN_LOG_N: u32 = 4;

/// Largest supported log2 N.
pub const MAX_LOG_N: u32 = 18;

fn check_log_n(log_n: u32) -> Result<(), BatchError> {
    if (MIN_LOG_N..=MAX_LOG_N).contains(&log_n) {
        Ok(())
    } else {
        Err(BatchError::LogNOutOfRange { log_n, min: MIN_LOG_N, max: MAX_LOG_N })
    }
}

/// The transform index of every slot: the k with 2 brv(k) + 1 = 3^i in row 0 and -3^i in row 1, mod 2N.
fn slot_indices(log_n: u32) -> Vec<u32> {
    let n = 1usize << log_n;
    let index = |exponent: usize| reverse_bits(exponent / 2, log_n) as u32;
    let mut indices = vec![0; n];
    let mut power = 1;
    for i in 0..n / 2 {
        indices[i] = index(power);
        indices[n / 2 + i] = index(2 * n - power);
        power = power * 3 % (2 * n);
    }
    indices
}

/// Slot encoding for one (t, N), t a prime that is 1 mod 2N.
///
/// Encoding takes at most N values, maps them mod t and fills up with zeros. It runs in time that depends on the
/// number of values (and limbs, for big integers) alone; decoding to integers is variable-time.
#[derive(Clone, Debug)]
pub struct BatchEncoder {
    modulus: PlainModulus,
    log_n: u32,
    transform: SlotTransform,
    indices: Vec<u32>,
}

impl BatchEncoder {
    /// The encoder for t and N = 2^log_n.
    ///
    /// # Errors
    /// [`LogNOutOfRange`](BatchError::LogNOutOfRange); [`NoSlots`](BatchError::NoSlots) unless t is a prime 1 mod 2N.
    pub fn new(modulus: &PlainModulus, log_n: u32) -> Result<Self, BatchError> {
        check_log_n(log_n)?;
        let transform = SlotTransform::new(modulus, log_n).ok_or_else(|| BatchError::NoSlots {
            t: modulus.to_string(),
            log_n,
            prime: modulus.is_prime(),
        })?;
        Ok(Self { modulus: modulus.clone(), log_n, transform, indices: slot_indices(log_n) })
    }

    /// The number of slots, N, in two rows of N/2.
    pub fn slot_count(&self) -> usize {
        1 << self.log_n
    }

    /// The plaintext modulus t.
    pub fn modulus(&self) -> &PlainModulus {
        &self.modulus
    }

    fn encode(&self, values: &Values<'_>) -> Result<PlainPoly, BatchError> {
        let mut residues = values.scatter(&self.modulus, self.slot_count(), |i| self.indices[i] as usize)?;
        self.transform.inverse(&mut residues);
        Ok(PlainPoly::from_reduced(&self.modulus, residues))
    }

    fn evaluate(&self, poly: &PlainPoly) -> Result<Residues, BatchError> {
        check_poly(&self.modulus, self.slot_count(), poly)?;
        let mut residues = poly.coeffs().clone();
        self.transform.forward(&mut residues);
        Ok(residues)
    }

    /// The polynomial whose slots are these values mod t.
    ///
    /// # Errors
    /// [`TooManyValues`](BatchError::TooManyValues) above N.
    pub fn encode_u64(&self, values: &[u64]) -> Result<PlainPoly, BatchError> {
        self.encode(&Values::U64(values))
    }

    /// The polynomial whose slots are these signed values mod t; errors as [`encode_u64`](Self::encode_u64).
    pub fn encode_i64(&self, values: &[i64]) -> Result<PlainPoly, BatchError> {
        self.encode(&Values::I64(values))
    }

    /// The polynomial whose slots are these signed integers mod t; errors as [`encode_u64`](Self::encode_u64).
    pub fn encode_big(&self, values: &[BigInt]) -> Result<PlainPoly, BatchError> {
        self.encode(&Values::Big(values))
    }

    /// All N slots in `[0, t)`.
    ///
    /// # Errors
    /// [`ModulusMismatch`](BatchError::ModulusMismatch), [`LengthMismatch`](BatchError::LengthMismatch) for a
    /// polynomial of another ring, [`DoesNotFit`](BatchError::DoesNotFit) for t above 64 bits.
    pub fn decode_u64(&self, poly: &PlainPoly) -> Result<Vec<u64>, BatchError> {
        values::to_u64(&self.modulus, &self.evaluate(poly)?, |i| self.indices[i] as usize)
    }

    /// All N slots, centred: in `[-(t-1)/2, t/2]`; errors as [`decode_u64`](Self::decode_u64).
    pub fn decode_i64(&self, poly: &PlainPoly) -> Result<Vec<i64>, BatchError> {
        values::to_i64(&self.modulus, &self.evaluate(poly)?, |i| self.indices[i] as usize)
    }

    /// All N slots, centred, for any t.
    ///
    /// # Errors
    /// [`ModulusMismatch`](BatchError::ModulusMismatch), [`LengthMismatch`](BatchError::LengthMismatch) for a
    /// polynomial of another ring.
    pub fn decode_big(&self, poly: &PlainPoly) -> Result<Vec<BigInt>, BatchError> {
        Ok(values::to_big(&self.modulus, &self.evaluate(poly)?, |i| self.indices[i] as usize))
    }

    /// All N slots in `[0, t)`, for any t; errors as [`decode_big`](Self::decode_big).
    pub fn decode_big_unsigned(&self, poly: &PlainPoly) -> Result<Vec<BigUint>, BatchError> {
        Ok(values::to_big_unsigned(&self.evaluate(poly)?, |i| self.indices[i] as usize))
    }

    /// The polynomial with these N slots, in time that depends on N alone.
    ///
    /// # Errors
    /// [`LengthMismatch`](BatchError::LengthMismatch) unless there are N, and as [`PlainPoly::new`].
    pub fn encode_residues(&self, slots: &Residues) -> Result<PlainPoly, BatchError> {
        let expected = self.slot_count();
        if slots.len() != expected {
            return Err(BatchError::LengthMismatch { expected, found: slots.len() });
        }
        let mut residues = Residues::zero(&self.modulus, expected);
        residues.permute(slots, |i| (self.indices[i] as usize, i));
        self.transform.inverse(&mut residues);
        PlainPoly::new(&self.modulus, residues)
    }

    /// All N slots, in time that depends on N alone; errors as [`decode_big`](Self::decode_big).
    pub fn decode_residues(&self, poly: &PlainPoly) -> Result<Residues, BatchError> {
        let values = self.evaluate(poly)?;
        let mut slots = Residues::zero(&self.modulus, self.slot_count());
        slots.permute(&values, |i| (i, self.indices[i] as usize));
        Ok(slots)
    }
}

/// Coefficient encoding for one (t, N), any t: value i becomes the coefficient of X^i.
///
/// Sums of polynomials are those of their values; products are negacyclic convolutions. Timing as [`BatchEncoder`].
#[derive(Clone, Debug)]
pub struct CoefficientEncoder {
    modulus: PlainModulus,
    log_n: u32,
}

impl CoefficientEncoder {
    /// The encoder for t and N = 2^log_n.
    ///
    /// # Errors
    /// [`LogNOutOfRange`](BatchError::LogNOutOfRange).
    pub fn new(modulus: &PlainModulus, log_n: u32) -> Result<Self, BatchError> {
        check_log_n(log_n)?;
        Ok(Self { modulus: modulus.clone(), log_n })
    }

    /// The number of coefficients, N.
    pub fn degree(&self) -> usize {
        1 << self.log_n
    }

    /// The plaintext modulus t.
    pub fn modulus(&self) -> &PlainModulus {
        &self.modulus
    }

    fn encode(&self, values: &Values<'_>) -> Result<PlainPoly, BatchError> {
        let residues = values.scatter(&self.modulus, self.degree(), |i| i)?;
        Ok(PlainPoly::from_reduced(&self.modulus, residues))
    }

    fn checked<'a>(&self, poly: &'a PlainPoly) -> Result<&'a Residues, BatchError> {
        check_poly(&self.modulus, self.degree(), poly)?;
        Ok(poly.coeffs())
    }

    /// The polynomial with these coefficients mod t.
    ///
    /// # Errors
    /// [`TooManyValues`](BatchError::TooManyValues) above N.
    pub fn encode_u64(&self, values: &[u64]) -> Result<PlainPoly, BatchError> {
        self.encode(&Values::U64(values))
    }

    /// The polynomial with these signed coefficients mod t; errors as [`encode_u64`](Self::encode_u64).
    pub fn encode_i64(&self, values: &[i64]) -> Result<PlainPoly, BatchError> {
        self.encode(&Values::I64(values))
    }

    /// The polynomial with these signed coefficients mod t; errors as [`encode_u64`](Self::encode_u64).
    pub fn encode_big(&self, values: &[BigInt]) -> Result<PlainPoly, BatchError> {
        self.encode(&Values::Big(values))
    }

    /// All N coefficients in `[0, t)`.
    ///
    /// # Errors
    /// [`ModulusMismatch`](BatchError::ModulusMismatch), [`LengthMismatch`](BatchError::LengthMismatch) for a
    /// polynomial of another ring, [`DoesNotFit`](BatchError::DoesNotFit) for t above 64 bits.
    pub fn decode_u64(&self, poly: &PlainPoly) -> Result<Vec<u64>, BatchError> {
        values::to_u64(&self.modulus, self.checked(poly)?, |i| i)
    }

    /// All N coefficients, centred: in `[-(t-1)/2, t/2]`; errors as [`decode_u64`](Self::decode_u64).
    pub fn decode_i64(&self, poly: &PlainPoly) -> Result<Vec<i64>, BatchError> {
        values::to_i64(&self.modulus, self.checked(poly)?, |i| i)
    }

    /// All N coefficients, centred, for any t.
    ///
    /// # Errors
    /// [`ModulusMismatch`](BatchError::ModulusMismatch), [`LengthMismatch`](BatchError::LengthMismatch) for a
    /// polynomial of another ring.
    pub fn decode_big(&self, poly: &PlainPoly) -> Result<Vec<BigInt>, BatchError> {
        Ok(values::to_big(&self.modulus, self.checked(poly)?, |i| i))
    }

    /// All N coefficients in `[0, t)`, for any t; errors as [`decode_big`](Self::decode_big).
    pub fn decode_big_unsigned(&self, poly: &PlainPoly) -> Result<Vec<BigUint>, BatchError> {
        Ok(values::to_big_unsigned(self.checked(poly)?, |i| i))
    }
}

fn check_poly(modulus: &PlainModulus, degree: usize, poly: &PlainPoly) -> Result<(), BatchError> {
    if poly.modulus() != modulus {
        return Err(BatchError::ModulusMismatch { expected: modulus.to_string(), found: poly.modulus().to_string() });
    }
    if poly.coeffs().len() != degree {
        return Err(BatchError::LengthMismatch { expected: degree, found: poly.coeffs().len() });
    }
    Ok(())
}
