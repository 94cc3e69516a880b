//! A slot machine that encrypts: a session with its keys, the secret one included, as only a demonstration has them.

use super::{Health, SlotMachine};
use crate::error::Error;
use serde::Serialize;
use std::sync::Arc;
use synchromesh::plan::Plan;
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey};
use synchromesh::scheme::{Encryptor, Operation, Values};
use synchromesh::session::{AnySession, Erased};
use synchromesh_ring::backend::Open;

/// BLAKE3 of keys and ciphertexts as bytes, in hexadecimal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Digests {
    /// The secret key.
    pub secret_key: String,
    /// The public key.
    pub public_key: String,
    /// The evaluation keys.
    pub evaluation_keys: String,
    /// Every ciphertext that was encrypted, in order.
    pub encrypted: String,
    /// Every ciphertext that was decrypted, in order.
    pub computed: String,
}

/// Ciphertexts hashed as they come.
#[derive(Default)]
struct Hashers {
    encrypted: blake3::Hasher,
    computed: blake3::Hasher,
}

/// A session and its keys.
pub struct Machine<B: Open> {
    session: Arc<dyn AnySession<B>>,
    row: usize,
    secret: SecretKey<B>,
    public: PublicKey<B>,
    randomness: Randomness,
    digests: Option<(Digests, Hashers)>,
}

impl<B: Open> Machine<B> {
    /// Opens the plan and makes its keys; with a seed, keys that protect nothing and digests of everything.
    ///
    /// # Errors
    /// The plan's or the scheme's.
    pub fn new(plan: &Plan, seed: Option<u64>) -> Result<Self, Error> {
        let session = plan.open_any_on(B::open)?;
        let mut randomness = seed.map_or_else(Randomness::from_os, Randomness::insecure_from_number);
        let (secret, public) = session.generate_keys(&mut randomness)?;
        let keys = session.generate_keys_for(&secret, session.rotations(), &mut randomness)?;
        let digests = seed.map(|_| -> Result<_, Error> {
            let context = session.rlwe();
            let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
            let digests = Digests {
                secret_key: hash(&secret.to_bytes(context, None)?),
                public_key: hash(&public.to_bytes(context, None)?),
                evaluation_keys: hash(&keys.to_bytes(context, None)?),
                ..Digests::default()
            };
            Ok((digests, Hashers::default()))
        });
        let digests = digests.transpose()?;
        session.add_keys(&Arc::new(keys));
        Ok(Self { row: session.slots()?.row, session, secret, public, randomness, digests })
    }

    /// The digests, if the keys came from a seed.
    #[must_use]
    pub fn digests(&self) -> Option<Digests> {
        let (digests, hashers) = self.digests.as_ref()?;
        let hex = |hasher: &blake3::Hasher| hasher.finalize().to_hex().to_string();
        let (encrypted, computed) = (hex(&hashers.encrypted), hex(&hashers.computed));
        Some(Digests { encrypted, computed, ..digests.clone() })
    }
}

impl<B: Open> SlotMachine for Machine<B> {
    type Ciphertext = Erased;
    type Error = Error;

    fn slots(&self) -> usize {
        self.row
    }

    fn encrypt(&mut self, values: &Values) -> Result<Erased, Error> {
        let (by, top) = (Encryptor::Public(&self.public), self.session.top_level());
        let ciphertext = self.session.encrypt(&by, values, 1.0, top, &mut self.randomness)?;
        if let Some((_, hashers)) = &mut self.digests {
            hashers.encrypted.update(&self.session.write(&ciphertext)?);
        }
        Ok(ciphertext)
    }

    fn apply(&mut self, operation: &Operation<'_>, x: &[&Erased]) -> Result<Erased, Error> {
        Ok(self.session.apply(operation, x)?)
    }

    fn decrypt(&mut self, a: &Erased) -> Result<Values, Error> {
        if let Some((_, hashers)) = &mut self.digests {
            hashers.computed.update(&self.session.write(a)?);
        }
        Ok(self.session.decrypt(&self.secret, a)?)
    }

    fn health(&self, a: &Erased) -> Result<Health, Error> {
        Ok(self.session.state(a)?.into())
    }
}
