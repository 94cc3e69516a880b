//! A slot machine that encrypts: a scheme with its keys, the secret one included, as only a demonstration has them.

use super::{Health, SlotMachine};
use crate::error::Error;
use crate::number::Number;
use crate::scheme::Scheme;
use num_traits::ToPrimitive;
use serde::Serialize;
use std::marker::PhantomData;
use std::sync::Arc;
use synchromesh::plan::Plan;
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey};

/// What a slot holds: integers or reals.
pub trait Slot: Copy {
    /// As the scheme takes it.
    fn to_number(self) -> Number;
    /// As the scheme gives it.
    fn from_number(number: &Number) -> Option<Self>;
}

impl Slot for f64 {
    fn to_number(self) -> Number {
        Number::Real(self)
    }
    fn from_number(number: &Number) -> Option<Self> {
        number.to_f64()
    }
}

impl Slot for i64 {
    fn to_number(self) -> Number {
        Number::from(self)
    }
    fn from_number(number: &Number) -> Option<Self> {
        number.to_integer()?.to_i64()
    }
}

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

/// A scheme, its keys, and vectors of S.
pub struct Machine<A: Scheme, S> {
    scheme: A,
    secret: SecretKey<A::Backend>,
    public: PublicKey<A::Backend>,
    randomness: Randomness,
    digests: Option<(Digests, Hashers)>,
    slot: PhantomData<S>,
}

impl<A: Scheme, S: Slot> Machine<A, S> {
    /// Opens the plan and makes its keys; with a seed, keys that protect nothing and digests of everything.
    ///
    /// # Errors
    /// The plan's or the scheme's.
    pub fn new(plan: &Plan, seed: Option<u64>) -> Result<Self, Error> {
        let scheme = A::open(plan)?;
        let mut randomness = seed.map_or_else(Randomness::from_os, Randomness::insecure_from_number);
        let (secret, public) = scheme.generate_keys(&mut randomness)?;
        let keys = scheme.generate_evaluation_keys(&secret, &plan.rotations, plan.swap, &mut randomness)?;
        let digests = seed.map(|_| -> Result<_, Error> {
            let context = scheme.rlwe();
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
        let scheme = scheme.with_keys(Arc::new(keys), None);
        Ok(Self { scheme, secret, public, randomness, digests, slot: PhantomData })
    }

    /// The digests, if the keys came from a seed.
    #[must_use]
    pub fn digests(&self) -> Option<Digests> {
        let (digests, hashers) = self.digests.as_ref()?;
        let hex = |hasher: &blake3::Hasher| hasher.finalize().to_hex().to_string();
        let (encrypted, computed) = (hex(&hashers.encrypted), hex(&hashers.computed));
        Some(Digests { encrypted, computed, ..digests.clone() })
    }

    fn numbers(values: &[S]) -> Vec<Number> {
        values.iter().map(|value| value.to_number()).collect()
    }
}

impl<A: Scheme, S: Slot> SlotMachine for Machine<A, S> {
    type Slot = S;
    type Ciphertext = A::Ciphertext;
    type Error = Error;

    fn slots(&self) -> usize {
        self.scheme.row()
    }

    fn encrypt(&mut self, values: &[S]) -> Result<A::Ciphertext, Error> {
        let ciphertext = self.scheme.encrypt(&self.public, &Self::numbers(values), 1.0, &mut self.randomness)?;
        if let Some((_, hashers)) = &mut self.digests {
            hashers.encrypted.update(&self.scheme.write(&ciphertext)?);
        }
        Ok(ciphertext)
    }

    fn add(&mut self, a: &A::Ciphertext, b: &A::Ciphertext) -> Result<A::Ciphertext, Error> {
        self.scheme.add(a, b)
    }

    fn sub(&mut self, a: &A::Ciphertext, b: &A::Ciphertext) -> Result<A::Ciphertext, Error> {
        self.scheme.sub(a, b)
    }

    fn mul(&mut self, a: &A::Ciphertext, b: &A::Ciphertext) -> Result<A::Ciphertext, Error> {
        if std::ptr::eq(a, b) { self.scheme.square(a) } else { self.scheme.mul(a, b) }
    }

    fn add_plain(&mut self, a: &A::Ciphertext, p: &[S]) -> Result<A::Ciphertext, Error> {
        self.scheme.add_plain(a, &Self::numbers(p))
    }

    fn mul_plain(&mut self, a: &A::Ciphertext, p: &[S]) -> Result<A::Ciphertext, Error> {
        self.scheme.mul_plain(a, &Self::numbers(p))
    }

    fn mul_scalar(&mut self, a: &A::Ciphertext, c: S) -> Result<A::Ciphertext, Error> {
        self.scheme.mul_const(a, &c.to_number())
    }

    fn rotate(&mut self, a: &A::Ciphertext, k: usize) -> Result<A::Ciphertext, Error> {
        self.scheme.rotate(a, k as i64)
    }

    fn promise(&self, a: A::Ciphertext, bound: f64) -> Result<A::Ciphertext, Error> {
        self.scheme.promise(a, bound)
    }

    fn decrypt(&mut self, a: &A::Ciphertext) -> Result<Vec<S>, Error> {
        if let Some((_, hashers)) = &mut self.digests {
            hashers.computed.update(&self.scheme.write(a)?);
        }
        let slots = self.scheme.decrypt(&self.secret, a)?;
        let value =
            |number: &Number| S::from_number(number).ok_or_else(|| Error::NotReal { value: number.to_string() });
        slots.iter().take(self.scheme.row()).map(value).collect()
    }

    fn health(&self, a: &A::Ciphertext) -> Health {
        self.scheme.health(a)
    }
}
