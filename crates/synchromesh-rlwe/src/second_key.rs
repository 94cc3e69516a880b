//! A second secret key s' for the lower levels (ePrint 2023/1642, section 3.6): what it is for, and how it is derived.
//!
//! The leading levels need special primes P beside all of q. Below them some ciphertext primes are gone, and P' may be
//! that much larger at the same security: fewer digits. The paper takes a second secret key for that, since keys modulo
//! two different products give an attacker two kinds of samples of one secret. A ciphertext goes to s' by one more key
//! switch, after the modulus switch, with P'.
//!
//! s' is derived from s by a hash, so that one secret key file opens every ciphertext of its owner.

use synchromesh_ring::sampler::Seed;
use zeroize::Zeroize;

use crate::wire::KeyId;

/// The id of the second secret key that goes with `id`.
#[must_use]
pub fn second_id(id: KeyId) -> KeyId {
    let hash = blake3::Hasher::new_derive_key("synchromesh v1 second secret key id").update(&id.0).finalize();
    let mut out = [0; 16];
    out.copy_from_slice(&hash.as_bytes()[..16]);
    KeyId(out)
}

/// The seed of s': a hash of the coefficients of s.
pub(crate) fn second_seed(coefficients: &[i64]) -> Seed {
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh v1 second secret key");
    for chunk in coefficients.chunks(1024) {
        // -1, 0, 1 as one byte each, without a branch.
        let mut bytes: Vec<u8> = chunk.iter().map(|&x| x as u8).collect();
        hasher.update(&bytes);
        bytes.zeroize();
    }
    let mut hash = *hasher.finalize().as_bytes();
    hasher.zeroize();
    let seed = Seed::from_bytes(hash);
    hash.zeroize();
    seed
}
