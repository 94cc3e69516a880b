//! Residues mod q in b = ceil(log2 q) bits each: residue j fills bits j*b .. (j+1)*b of a little-endian bit string.

use synchromesh_ring::secrecy;

use super::WireError;

/// Bits per residue mod `q`: ceil(log2 q).
///
/// # Errors
/// [`WireError::Modulus`] unless `2 <= q <= 2^63`.
pub const fn residue_bits(q: u64) -> Result<u32, WireError> {
    if q < 2 || q > 1 << 63 {
        return Err(WireError::Modulus { q });
    }
    Ok(64 - (q - 1).leading_zeros())
}

/// Bytes of a packed limb of `n` residues mod `q`; saturates.
///
/// # Errors
/// [`WireError::Modulus`] unless `2 <= q <= 2^63`.
pub fn limb_bytes(n: usize, q: u64) -> Result<usize, WireError> {
    let bytes = (n as u128 * u128::from(residue_bits(q)?)).div_ceil(8);
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Packs `values` into `out`, which is exactly `ceil(len * bits / 8)` bytes long. Returns whether all are below `q`;
/// if not, `out` is meaningless. bits: 1..=63.
pub(super) fn pack(values: &[u64], bits: u32, q: u64, out: &mut [u8]) -> bool {
    debug_assert_eq!(out.len(), (values.len() * bits as usize).div_ceil(8));
    let mut words = out.chunks_mut(8);
    let mut emit = |word: u64| {
        if let Some(bytes) = words.next() {
            bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        }
    };
    // The low `fill` bits of `acc` wait to be written; fill < 64.
    let (mut acc, mut fill, mut reduced) = (0u64, 0u32, true);
    for &value in values {
        reduced &= value < q;
        acc |= value << fill;
        fill += bits;
        if fill >= 64 {
            emit(acc);
            fill -= 64;
            // The bits of `value` that did not fit: its top `fill` bits, 0 <= fill < bits < 64.
            acc = value >> (bits - fill);
        }
    }
    if fill > 0 {
        emit(acc);
    }
    secrecy::reveal(reduced)
}

/// Unpacks `bytes`, exactly `ceil(len * bits / 8)` of them, into `values`. Returns whether every residue is below `q`
/// and the padding is zero. bits: 1..=63.
pub(super) fn unpack(bytes: &[u8], bits: u32, q: u64, values: &mut [u64]) -> bool {
    debug_assert_eq!(bytes.len(), (values.len() * bits as usize).div_ceil(8));
    let mask = (1u64 << bits) - 1;
    let mut words = bytes.chunks(8).map(|chunk| match chunk.try_into() {
        Ok(whole) => u64::from_le_bytes(whole),
        Err(_) => chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    });
    // The low `fill` bits of `acc` are read and not yet used; fill < 64, the bits above are zero.
    let (mut acc, mut fill, mut reduced) = (0u64, 0u32, true);
    for value in values.iter_mut() {
        let residue = if fill >= bits {
            let residue = acc & mask;
            acc >>= bits;
            fill -= bits;
            residue
        } else {
            let next = words.next().unwrap_or(0);
            let residue = (acc | next << fill) & mask;
            acc = next >> (bits - fill);
            fill += 64 - bits;
            residue
        };
        reduced &= residue < q;
        *value = residue;
    }
    // Of a secret key's coefficients nothing but the verdict is revealed.
    secrecy::reveal(reduced & (words.fold(acc, |rest, word| rest | word) == 0))
}
