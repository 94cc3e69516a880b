#![doc = include_str!("../docs/objects.md")]

mod certificate;
mod ciphertext;
mod envelope;
mod keys;
mod params;

pub use ciphertext::{Attached, CiphertextHead, Received};
pub use keys::{given_half_bytes, switch_key_bytes};

use synchromesh_ring::{Backend, Domain, IndexSet, Poly};

use crate::context::Context;
use crate::error::Error;
use crate::noise::Certificate;
use crate::params::Params;
use crate::wire::{
    Authentic, EnvelopeKey, Expected, HEADER_BYTES, KeyId, ObjectType, ParamsDigest, Reader, SCHEME_HEADER_LIMIT,
    TRAILER_BYTES, WireError, Writer, limb_bytes,
};

/// Bytes of a seed.
const SEED_BYTES: usize = 32;

/// Largest JSON form of parameters, in bytes: room for some 3000 primes.
const PARAMS_LIMIT: usize = 1 << 16;

/// Hashes words, little-endian, in pieces that BLAKE3 takes side by side.
pub fn absorb_words(hasher: &mut blake3::Hasher, words: &[u64]) {
    let mut bytes = [0; 1 << 15];
    for chunk in words.chunks(bytes.len() / 8) {
        for (to, word) in bytes.chunks_exact_mut(8).zip(chunk) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        hasher.update(&bytes[..8 * chunk.len()]);
    }
}

/// Why the certificate of a ciphertext from a file may be believed.
///
/// Whoever can write the file can write any certificate: too small a one turns refused operations into wrong results,
/// and the decryption of wrong results can leak the secret key.
#[derive(Clone, Copy, Debug, Default)]
pub enum Trust<'a> {
    /// It may not: the noise becomes [`Certificate::UNKNOWN`], and operations that need it fail.
    #[default]
    Nothing,
    /// The container is authenticated under this key, which only honest parties hold.
    Envelope(&'a EnvelopeKey),
    /// The container is part of a whole that was found authentic under such a key.
    Enclosed(Authentic),
    /// The caller says so: `trust_certificate`. For one's own files, and makers trusted by other means. Whatever is
    /// computed from it remembers ([`Certificate::is_on_word`]), and is neither released nor authenticated.
    Certificate,
}

impl<'a> Trust<'a> {
    /// The key to authenticate under, if that is the reason.
    #[must_use]
    pub const fn envelope(self) -> Option<&'a EnvelopeKey> {
        match self {
            Self::Envelope(key) => Some(key),
            Self::Nothing | Self::Enclosed(_) | Self::Certificate => None,
        }
    }

    /// What is known of an error of which a file claims this.
    #[must_use]
    pub const fn judge(self, claimed: Certificate) -> Certificate {
        match self {
            Self::Nothing => Certificate::UNKNOWN,
            Self::Envelope(_) | Self::Enclosed(_) => claimed,
            Self::Certificate => claimed.on_word(),
        }
    }
}

/// Largest container of an object under `params`, in bytes: the limit for reading it from a file. Saturates.
///
/// Switch-key sets are allowed every Galois element and as many other keys; what is not read here has 0.
#[must_use]
pub fn largest_container(params: &Params, object: ObjectType) -> u64 {
    let payload = match object {
        ObjectType::Params => PARAMS_LIMIT as u64,
        ObjectType::SecretKey => keys::secret_key_bytes(params),
        ObjectType::PublicKey => keys::public_key_bytes(params),
        ObjectType::SwitchKeySet => keys::largest_key_set_bytes(params),
        ObjectType::Ciphertext => ciphertext::largest_bytes(params),
        ObjectType::EnvelopeKey => envelope::BYTES,
        ObjectType::Plaintext
        | ObjectType::Plan
        | ObjectType::PartyKey
        | ObjectType::PartyIdentity
        | ObjectType::ShareSeal
        | ObjectType::KeyShare => return 0,
    };
    payload.saturating_add((HEADER_BYTES + TRAILER_BYTES) as u64)
}

/// The digest as the header has it.
fn digest(params: &Params) -> ParamsDigest {
    ParamsDigest(*params.digest())
}

/// Opens a container of `params`, of at most the size they allow, under `key` if one is named, and never under none.
fn open<'a>(
    params: &Params,
    bytes: &'a [u8],
    object: ObjectType,
    key: Option<KeyId>,
    envelope: Option<&EnvelopeKey>,
) -> Result<Reader<'a>, Error> {
    let max_payload = largest_container(params, object);
    let reader = Reader::open(bytes, &Expected { object, params: Some(digest(params)), key, max_payload, envelope })?;
    require_named(reader.header().key)?;
    Ok(reader)
}

/// Fails for the id of no key, in objects that belong to one.
fn require_named(key: KeyId) -> Result<(), Error> {
    if key == KeyId::NONE {
        return Err(WireError::NonCanonical { what: "the object names no secret key", offset: 48 }.into());
    }
    Ok(())
}

/// Fails unless the header's seeded flag is what this object always has.
fn require_seeded(reader: &Reader<'_>, seeded: bool) -> Result<(), Error> {
    if reader.header().seeded == seeded {
        return Ok(());
    }
    let what = if seeded { "this object is always seeded" } else { "this object is never seeded" };
    Err(WireError::NonCanonical { what, offset: 12 }.into())
}

/// A number that takes two bytes.
fn write_u16(writer: &mut Writer, what: &'static str, value: usize) -> Result<(), WireError> {
    let limit = u64::from(u16::MAX);
    let narrow = u16::try_from(value).map_err(|_| WireError::TooLarge { what, declared: value as u64, limit })?;
    writer.u16(narrow);
    Ok(())
}

/// Bytes of a polynomial over `primes`; saturates.
fn poly_bytes(params: &Params, primes: &IndexSet) -> usize {
    // Every prime of a ring has 20 to 61 bits, so each limb has a size.
    let limb = |i| limb_bytes(params.n(), params.ring().modulus(i).value()).unwrap_or(usize::MAX);
    primes.iter().map(limb).fold(0, usize::saturating_add)
}

/// Appends the limbs of a public polynomial.
fn write_poly<B: Backend, D: Domain>(
    writer: &mut Writer,
    context: &Context<B>,
    poly: &Poly<B, D>,
) -> Result<(), Error> {
    let params = context.params();
    let words = poly.to_words(context.backend())?;
    for (prime, limb) in poly.primes().iter().zip(words.chunks_exact(params.n())) {
        writer.limb(params.ring().modulus(prime).value(), limb)?;
    }
    Ok(())
}

/// Reads a polynomial over `primes`; memory is taken once all its bytes are known to be there.
fn read_poly<B: Backend, D: Domain>(
    reader: &mut Reader<'_>,
    context: &Context<B>,
    primes: &IndexSet,
) -> Result<Poly<B, D>, Error> {
    let params = context.params();
    require_present(reader, poly_bytes(params, primes))?;
    let mut words = vec![0; primes.len() * params.n()];
    for (prime, limb) in primes.iter().zip(words.chunks_exact_mut(params.n())) {
        reader.limb_into(params.ring().modulus(prime).value(), limb)?;
    }
    Ok(Poly::from_words(context.backend(), primes, &words)?)
}

/// Fails unless `bytes` more bytes of payload are there.
fn require_present(reader: &Reader<'_>, bytes: usize) -> Result<(), WireError> {
    let have = reader.remaining();
    if have < bytes {
        return Err(WireError::Truncated { need: bytes as u64, have: have as u64 });
    }
    Ok(())
}

/// Bytes of the longest scheme header with its count.
const SCHEME_BYTES: usize = 4 + SCHEME_HEADER_LIMIT;
