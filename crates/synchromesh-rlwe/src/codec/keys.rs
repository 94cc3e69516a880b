//! Keys as bytes: small coefficients of the secret, a seed and b for everything public.

use synchromesh_ring::sampler::{Seed, SmallPoly};
use synchromesh_ring::{Backend, Error as RingError};
use zeroize::Zeroizing;

use super::{SEED_BYTES, digest, open, poly_bytes, read_poly, require_named, require_seeded, write_poly, write_u16};
use crate::context::Context;
use crate::error::Error;
use crate::params::Params;
use crate::public_key::PublicKey;
use crate::secret_key::SecretKey;
use crate::switch_key::{EvaluationKeys, Source, SwitchKey};
use crate::switch_plan::DigitSizes;
use crate::wire::{EnvelopeKey, Header, KeyId, ObjectType, Reader, WireError, Writer, limb_bytes};

const SQUARE: u8 = 0;
const GALOIS: u8 = 1;
const OTHER_KEY: u8 = 2;

/// Largest absolute value of a secret coefficient.
const SECRET_BOUND: u64 = 1;

pub(super) fn secret_key_bytes(params: &Params) -> u64 {
    limb_bytes(params.n(), 2 * SECRET_BOUND + 1).unwrap_or(usize::MAX) as u64
}

pub(super) fn public_key_bytes(params: &Params) -> u64 {
    (SEED_BYTES as u64).saturating_add(poly_bytes(params, &params.keyed()) as u64)
}

/// Most keys a set may have: the N Galois elements, s^2, and as many other keys.
fn largest_key_count(params: &Params) -> usize {
    2 * params.n()
}

pub(super) fn largest_key_set_bytes(params: &Params) -> u64 {
    let l = params.q().len();
    let digit = 2u64.saturating_add(poly_bytes(params, &params.keyed()) as u64);
    let key = ((1 + 16 + 4 + SEED_BYTES) as u64).saturating_add(digit.saturating_mul(l as u64));
    key.saturating_mul(largest_key_count(params) as u64).saturating_add(4)
}

impl<B: Backend> SecretKey<B> {
    /// The secret key as a container, wiped when dropped. Write it with
    /// [`Access::Secret`](crate::file::Access::Secret).
    ///
    /// # Errors
    /// [`Error::Wire`] when the key's id is [`KeyId::NONE`].
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Zeroizing<Vec<u8>>, Error> {
        require_named(self.id())?;
        let params = context.params();
        let header = Header::new(ObjectType::SecretKey, digest(params), self.id());
        // The exact size, so that the buffer never moves and no copy is left behind.
        let mut writer = Writer::new(header, secret_key_bytes(params) as usize);
        writer.small(SECRET_BOUND, self.small().as_slice())?;
        Ok(Zeroizing::new(writer.finish(envelope)))
    }

    /// The secret key in a container. The bytes are the caller's to wipe.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not a secret key of these parameters, [`Error::Security`], or when the
    /// device fails.
    pub fn from_bytes(context: &Context<B>, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Self, Error> {
        let params = context.params();
        let mut reader = open(params, bytes, ObjectType::SecretKey, None, envelope)?;
        require_seeded(&reader, false)?;
        super::require_present(&reader, secret_key_bytes(params) as usize)?;
        let mut small = Zeroizing::new(vec![0; params.n()]);
        reader.small_into(SECRET_BOUND, &mut small)?;
        let id = reader.header().key;
        reader.finish()?;
        Self::from_small(context, id, SmallPoly::from_vec(std::mem::take(&mut *small)))
    }
}

impl<B: Backend> PublicKey<B> {
    /// The public key as a container: the seed of a, then b.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`] under other parameters, [`Error::Wire`] when it names no key, or when the device fails.
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>, Error> {
        require_named(self.id())?;
        let params = context.params();
        params.require_digest(self.params_digest())?;
        let header = Header::new(ObjectType::PublicKey, digest(params), self.id()).seeded();
        let mut writer = Writer::new(header, public_key_bytes(params) as usize);
        writer.raw(self.seed().as_bytes());
        write_poly(&mut writer, context, self.b())?;
        Ok(writer.finish(envelope))
    }

    /// The public key in a container; of the secret key `key` if one is named.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such a key of these parameters, [`Error::Security`], or when the device
    /// fails.
    pub fn from_bytes(
        context: &Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Self, Error> {
        let params = context.params();
        let mut reader = open(params, bytes, ObjectType::PublicKey, key, envelope)?;
        require_seeded(&reader, true)?;
        let seed = Seed::from_bytes(reader.array()?);
        let b = read_poly(&mut reader, context, &params.keyed())?;
        let id = reader.header().key;
        reader.finish()?;
        Self::from_parts(context, id, seed, b)
    }
}

impl<B: Backend> EvaluationKeys<B> {
    /// All keys as a container, in the order of their sources.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`] under other parameters; [`Error::Wire`] when they name no key, or are too many;
    /// [`Error::Ring`] for a Galois element that is none; or when the device fails.
    pub fn to_bytes(&self, context: &Context<B>, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>, Error> {
        require_named(self.target())?;
        let params = context.params();
        let limit = largest_key_count(params);
        if self.iter().len() > limit {
            let declared = self.iter().len() as u64;
            return Err(WireError::TooLarge { what: "switch keys", declared, limit: limit as u64 }.into());
        }
        let header = Header::new(ObjectType::SwitchKeySet, digest(params), self.target()).seeded();
        let poly = poly_bytes(params, &params.keyed());
        let size = |key: &SwitchKey<B>| 64usize.saturating_add(key.b().len().saturating_mul(poly.saturating_add(2)));
        let mut writer = Writer::new(header, self.iter().map(|k| size(k)).fold(4, usize::saturating_add));
        writer.count("switch keys", self.iter().len())?;
        for key in self.iter() {
            write_switch_key(&mut writer, context, key)?;
        }
        Ok(writer.finish(envelope))
    }

    /// The switch keys in a container; of the secret key `key` if one is named.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such keys of these parameters, [`Error::Ring`] for a Galois element that
    /// is none, [`Error::Params`] for digits that do not add up, [`Error::Security`], or when the device fails.
    pub fn from_bytes(
        context: &Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Self, Error> {
        let params = context.params();
        let mut reader = open(params, bytes, ObjectType::SwitchKeySet, key, envelope)?;
        require_seeded(&reader, true)?;
        let mut keys = Self::new(reader.header().key);
        let mut last = None;
        for _ in 0..reader.count("switch keys", largest_key_count(params))? {
            let key = read_switch_key(&mut reader, context)?;
            if last.replace(key.source()).is_some_and(|last| last >= key.source()) {
                return Err(reader.refuse("switch keys are not in rising order of their sources", 0).into());
            }
            keys.insert(key)?;
        }
        reader.finish()?;
        Ok(keys)
    }
}

/// Fails unless g is odd and below 2N.
fn require_galois(params: &Params, element: usize) -> Result<(), Error> {
    let two_n = 2 * params.n();
    if element.is_multiple_of(2) || element >= two_n {
        return Err(RingError::GaloisElement { element, two_n }.into());
    }
    Ok(())
}

fn write_switch_key<B: Backend>(writer: &mut Writer, context: &Context<B>, key: &SwitchKey<B>) -> Result<(), Error> {
    let params = context.params();
    params.require_digest(key.params_digest())?;
    match key.source() {
        Source::Square => writer.u8(SQUARE),
        Source::Galois(g) => {
            require_galois(params, g)?;
            writer.u8(GALOIS);
            writer.count("Galois element", g)?;
        }
        Source::Key(id) => {
            require_named(id)?;
            writer.u8(OTHER_KEY);
            writer.raw(&id.0);
        }
    }
    writer.count("digits", key.sizes().0.len())?;
    key.sizes().0.iter().try_for_each(|&size| write_u16(writer, "primes of a digit", size))?;
    writer.raw(key.seed().as_bytes());
    key.b().iter().try_for_each(|b| write_poly(writer, context, b))
}

fn read_source(reader: &mut Reader<'_>, params: &Params) -> Result<Source, Error> {
    match reader.u8()? {
        SQUARE => Ok(Source::Square),
        GALOIS => {
            let g = reader.u32()? as usize;
            require_galois(params, g)?;
            Ok(Source::Galois(g))
        }
        OTHER_KEY => {
            let id = KeyId(reader.array()?);
            require_named(id)?;
            Ok(Source::Key(id))
        }
        _ => Err(reader.refuse("no switch key has this source", 1).into()),
    }
}

fn read_switch_key<B: Backend>(reader: &mut Reader<'_>, context: &Context<B>) -> Result<SwitchKey<B>, Error> {
    let params = context.params();
    let source = read_source(reader, params)?;
    let count = reader.count("digits", params.q().len())?;
    let sizes = (0..count).map(|_| Ok(usize::from(reader.u16()?))).collect::<Result<Vec<_>, WireError>>()?;
    let seed = Seed::from_bytes(reader.array()?);
    let keyed = params.keyed();
    let b = (0..count).map(|_| read_poly(reader, context, &keyed)).collect::<Result<Vec<_>, _>>()?;
    SwitchKey::from_parts(context, source, reader.header().key, DigitSizes(sizes), seed, b)
}
