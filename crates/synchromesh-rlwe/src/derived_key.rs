//! Secret keys derived from the one that a user has, by a hash: what they are for, and their names and seeds.
//!
//! **The second key** s' is for the lower levels (ePrint 2023/1642, section 3.6). The leading levels need special primes P
//! beside all of q. Below them some ciphertext primes are gone, and P' may be that much larger at the same security: fewer
//! digits. The paper takes a second secret key for that, since keys modulo two different products give an attacker two
//! kinds of samples of one secret. A ciphertext goes to s' by one more key switch, after the modulus switch, with P'.
//!
//! **The sparse key** is for the moment in which a modulus is raised (ePrint 2022/024): a ciphertext of level 0 goes under
//! it by one key switch, and comes back by another at the highest level.
//!
//! Both are derived from s, so that one secret key file opens every ciphertext of its owner.

use synchromesh_ring::sampler::Seed;
use zeroize::Zeroize;

use crate::wire::KeyId;

/// Which key is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Derived {
    /// That of the lower levels.
    Second,
    /// That of raised ciphertexts.
    Sparse,
}

impl Derived {
    const fn name(self) -> &'static str {
        match self {
            Self::Second => "synchromesh v1 second secret key id",
            Self::Sparse => "synchromesh v1 sparse secret key id",
        }
    }

    const fn secret(self) -> &'static str {
        match self {
            Self::Second => "synchromesh v1 second secret key",
            Self::Sparse => "synchromesh v1 sparse secret key",
        }
    }

    /// The id of the derived key that goes with `id`.
    pub(crate) fn id(self, id: KeyId) -> KeyId {
        let hash = blake3::Hasher::new_derive_key(self.name()).update(&id.0).finalize();
        let mut out = [0; 16];
        out.copy_from_slice(&hash.as_bytes()[..16]);
        KeyId(out)
    }

    /// The seed of the derived key: a hash of the coefficients of s.
    pub(crate) fn seed(self, coefficients: &[i64]) -> Seed {
        let mut hasher = blake3::Hasher::new_derive_key(self.secret());
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
}

/// The id of the second secret key that goes with `id`.
#[must_use]
pub fn second_id(id: KeyId) -> KeyId {
    Derived::Second.id(id)
}

/// The id of the sparse secret key that goes with `id`.
#[must_use]
pub fn sparse_id(id: KeyId) -> KeyId {
    Derived::Sparse.id(id)
}
