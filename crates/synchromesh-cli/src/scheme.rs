//! The three schemes behind one trait: keys, columns of numbers in slots, arithmetic on them, bytes, and what their
//! certificates say.

mod approximate;
mod exact;

pub use approximate::Approximate;
pub use exact::Exact;
pub use synchromesh_bench::device::Open;

use crate::demo::Health;
use crate::error::Error;
use crate::number::Number;
use std::sync::Arc;
use synchromesh::ckks::Release;
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::wire::KeyId;
use synchromesh::rlwe::{self, EvaluationKeys, PublicKey, Randomness, SecretKey};
use synchromesh::rotations::Routes;

/// The noise of a released ciphertext, and what it leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flooding {
    /// Bits of the declared bound that are right in every slot.
    pub precision: f64,
    /// log2 of the width on each coefficient.
    pub sigma_bits: u32,
}

/// A secret key and its public key.
pub type KeyPair<B> = (SecretKey<B>, PublicKey<B>);

/// Columns of at most `slots()` numbers, encrypted, with the operations that need no secret key.
///
pub trait Scheme: Sized {
    /// The device that computes.
    type Backend: Open;
    /// An encrypted column.
    type Ciphertext;

    /// The scheme with the parameters of a plan on the device, without evaluation keys.
    ///
    /// # Errors
    /// Parameters that fail their checks, or are another scheme's; a device that cannot be had.
    fn open(plan: &Plan) -> Result<Self, Error>;

    /// The scheme with keys to multiply and rotate with, rotations composed by `routes` where there are some.
    #[must_use]
    fn with_keys(self, keys: Arc<EvaluationKeys<Self::Backend>>, routes: Option<&Routes>) -> Self;

    /// The context of the layer below, where keys live.
    fn rlwe(&self) -> &Arc<rlwe::Context<Self::Backend>>;

    /// Numbers in a ciphertext.
    fn slots(&self) -> usize;

    /// Numbers that [`Self::rotate`] turns as one ring: all slots, or a row of them.
    fn row(&self) -> usize;

    /// A new secret key and its public key.
    ///
    /// # Errors
    /// Without randomness.
    fn generate_keys(&self, randomness: &mut Randomness) -> Result<KeyPair<Self::Backend>, Error>;

    /// Keys for multiplication, rotations to the left by each of `rotations`, and with `swap` for [`Self::conjugate`].
    ///
    /// # Errors
    /// Without randomness; rotations where there are no slots.
    fn generate_evaluation_keys(
        &self,
        secret: &SecretKey<Self::Backend>,
        rotations: &[i64],
        swap: bool,
        randomness: &mut Randomness,
    ) -> Result<EvaluationKeys<Self::Backend>, Error>;

    /// Encrypts up to `slots()` numbers, none larger than `bound`; the other slots are zero. In an exact scheme the
    /// bound is t/2 and none other is looked at.
    ///
    /// # Errors
    /// A number the scheme cannot hold, or too many.
    fn encrypt(
        &self,
        key: &PublicKey<Self::Backend>,
        values: &[Number],
        bound: f64,
        randomness: &mut Randomness,
    ) -> Result<Self::Ciphertext, Error>;

    /// All slots: integers in an exact scheme, real parts in the other.
    ///
    /// # Errors
    /// Another key, or a certificate that leaves no room.
    fn decrypt(&self, key: &SecretKey<Self::Backend>, ciphertext: &Self::Ciphertext) -> Result<Vec<Number>, Error>;

    /// All slots for others to see: with noise that hides what the error says about the key.
    ///
    /// # Errors
    /// As [`Self::decrypt`]; a request that leaves less precision than it asks for, or that an exact scheme cannot answer.
    fn publish(
        &self,
        key: &SecretKey<Self::Backend>,
        ciphertext: &Self::Ciphertext,
        release: &Release,
    ) -> Result<(Vec<Number>, Flooding), Error>;

    /// The ciphertext as a container.
    ///
    /// # Errors
    /// The device's.
    fn write(&self, ciphertext: &Self::Ciphertext) -> Result<Vec<u8>, Error>;

    /// The ciphertext in a container, under the secret key `key`, its certificate believed as far as `trust` gives a reason.
    ///
    /// # Errors
    /// Bytes that are no ciphertext of these parameters and this key.
    fn read(&self, bytes: &[u8], key: Option<KeyId>, trust: Trust<'_>) -> Result<Self::Ciphertext, Error>;

    /// Whether its certificate is believed on the user's word.
    fn is_on_word(&self, ciphertext: &Self::Ciphertext) -> bool;

    /// Where a ciphertext stands.
    fn health(&self, ciphertext: &Self::Ciphertext) -> Health;

    /// Bits by which the certified error could grow before the ciphertext does not decrypt.
    fn budget(&self, ciphertext: &Self::Ciphertext) -> f64;

    /// How far a decrypted slot may be off; 0 in an exact scheme.
    fn error_bound(&self, ciphertext: &Self::Ciphertext) -> f64;

    /// a + b
    ///
    /// # Errors
    /// The scheme's, here and below: levels, noise, keys that are not there.
    fn add(&self, a: &Self::Ciphertext, b: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    /// a - b
    ///
    /// # Errors
    /// The scheme's.
    fn sub(&self, a: &Self::Ciphertext, b: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    /// -a
    ///
    /// # Errors
    /// The scheme's.
    fn neg(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    /// a b
    ///
    /// # Errors
    /// The scheme's.
    fn mul(&self, a: &Self::Ciphertext, b: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    /// a^2
    ///
    /// # Errors
    /// The scheme's.
    fn square(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    /// a + c in every slot
    ///
    /// # Errors
    /// The scheme's; a constant it cannot hold.
    fn add_const(&self, a: &Self::Ciphertext, c: &Number) -> Result<Self::Ciphertext, Error>;
    /// a c
    ///
    /// # Errors
    /// The scheme's; a constant it cannot hold.
    fn mul_const(&self, a: &Self::Ciphertext, c: &Number) -> Result<Self::Ciphertext, Error>;
    /// a + p, with public numbers p
    ///
    /// # Errors
    /// The scheme's; a number it cannot hold.
    fn add_plain(&self, a: &Self::Ciphertext, p: &[Number]) -> Result<Self::Ciphertext, Error>;
    /// a p, with public numbers p
    ///
    /// # Errors
    /// The scheme's; a number it cannot hold.
    fn mul_plain(&self, a: &Self::Ciphertext, p: &[Number]) -> Result<Self::Ciphertext, Error>;
    /// Slot i + k of its row in slot i
    ///
    /// # Errors
    /// The scheme's; a key that is not there.
    fn rotate(&self, a: &Self::Ciphertext, k: i64) -> Result<Self::Ciphertext, Error>;
    /// The complex conjugate; in an exact scheme the two rows swapped
    ///
    /// # Errors
    /// The scheme's; a key that is not there.
    fn conjugate(&self, a: &Self::Ciphertext) -> Result<Self::Ciphertext, Error>;
    /// The same ciphertext with the public promise that no slot of it exceeds `bound`; exact schemes need none.
    ///
    /// # Errors
    /// A bound that is no positive number.
    fn promise(&self, a: Self::Ciphertext, bound: f64) -> Result<Self::Ciphertext, Error>;
}
