//! What is uniform in keys that parties make together: seeds of everything, from one coin.

use synchromesh::rlwe::KeyId;
use synchromesh::rlwe::ring::sampler::Seed;

/// The public seeds of a key, from a coin that all parties tossed.
pub struct Seeds {
    /// What the key is called.
    pub id: KeyId,
    /// Of the public key's second half.
    pub public: Seed,
    /// Of the second halves of each switch key.
    pub keys: Vec<Seed>,
}

impl Seeds {
    /// For a public key and so many switch keys.
    #[must_use]
    pub fn new(coin: [u8; 32], keys: usize) -> Self {
        let root = Seed::from_bytes(coin);
        let mut id = [0; 16];
        id.copy_from_slice(&root.derive("key id", 0).as_bytes()[..16]);
        let keys = (0..keys).map(|i| root.derive("switch key uniform", i as u64).published()).collect();
        Self { id: KeyId(id), public: root.derive("public key uniform", 0).published(), keys }
    }
}
