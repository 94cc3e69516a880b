//! Ciphertexts as bytes: level, domain, certificate, the scheme's header, and the components.

use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Poly};

use super::{
    SCHEME_BYTES, SEED_BYTES, Trust, certificate, digest, open, poly_bytes, read_poly, require_named, write_poly,
    write_u16,
};
use crate::ciphertext::Ciphertext;
use crate::context::Context;
use crate::derived_key::second_id;
use crate::domain::SwitchDomain;
use crate::error::Error;
use crate::noise::Certificate;
use crate::params::Params;
use crate::secret_key::uniform;
use crate::wire::{EnvelopeKey, Header, KeyId, ObjectType, Reader, WireError, Writer, peek};

/// Bytes of the head, the scheme's header with its count included.
const HEAD_BYTES: usize = 2 + 1 + 1 + 8 + SCHEME_BYTES;

/// Largest payload of a ciphertext.
pub(super) fn largest_bytes(params: &Params) -> u64 {
    (HEAD_BYTES as u64).saturating_add((poly_bytes(params, params.q()) as u64).saturating_mul(3))
}

/// What goes into a ciphertext's container besides the ciphertext.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attached<'a> {
    /// Bytes of the scheme (scale, correction factor), at most 1024; opaque here.
    pub scheme_header: &'a [u8],
    /// The seed that c_1 was expanded from, of a ciphertext fresh from the secret key: halves the container.
    pub seed: Option<&'a Seed>,
}

/// A ciphertext read from a container, and what came with it.
pub struct Received<B: Backend, D: SwitchDomain> {
    /// The ciphertext. Its certificate is the claimed one if it may be believed, unknown otherwise.
    pub ciphertext: Ciphertext<B, D>,
    /// The seed of c_1, if it came as one.
    pub seed: Option<Seed>,
    /// What else the container says.
    pub head: CiphertextHead,
}

/// What a ciphertext's container says besides its polynomials.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CiphertextHead {
    /// The secret key it is under.
    pub key: KeyId,
    /// Its level.
    pub level: usize,
    /// Number of components, 2 or 3.
    pub components: usize,
    /// Whether it rests in slots (otherwise in coefficients).
    pub ntt: bool,
    /// Whether c_1 is given by its seed.
    pub seeded: bool,
    /// The certificate as the writer claims it.
    pub claimed: Certificate,
    /// The scheme's bytes.
    pub scheme_header: Vec<u8>,
}

impl CiphertextHead {
    /// Reads the head of a container that is whole, of these parameters, and of the size its head implies; the
    /// polynomials are not looked at.
    ///
    /// # Errors
    /// [`Error::Wire`], or [`Error::Level`] above the top level.
    pub fn from_bytes(params: &Params, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Self, Error> {
        Self::read(&mut open(params, bytes, ObjectType::Ciphertext, None, envelope)?, params)
    }

    fn read(reader: &mut Reader<'_>, params: &Params) -> Result<Self, Error> {
        let Header { key, seeded, .. } = *reader.header();
        let level = usize::from(reader.u16()?);
        let primes = params.level(level)?;
        let components = usize::from(reader.u8()?);
        if !(2..=if seeded { 2 } else { 3 }).contains(&components) {
            return Err(reader.refuse("a ciphertext has 2 or 3 components, 2 if it is seeded", 1).into());
        }
        let ntt = reader.bool()?;
        let claimed = certificate::read(reader)?;
        let scheme_header = reader.scheme_header()?.to_vec();
        let stored = components - usize::from(seeded);
        let body = poly_bytes(params, primes).saturating_mul(stored) + SEED_BYTES * usize::from(seeded);
        super::require_present(reader, body)?;
        let extra = (reader.remaining() - body) as u64;
        if extra > 0 {
            return Err(WireError::TrailingBytes { part: "payload", extra }.into());
        }
        Ok(Self { key, level, components, ntt, seeded, claimed, scheme_header })
    }
}

impl<B: Backend, D: SwitchDomain> Ciphertext<B, D> {
    /// The ciphertext as a container; with an envelope key, authenticated under it, so that holders of the key may
    /// believe the certificate.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`] under other parameters; [`Error::OnWord`] for a certificate that the holder of an envelope key
    /// has only been told; [`Error::Wire`] for a scheme header above 1024 bytes, or a seed that c_1 does not expand from; or
    /// when the device fails.
    pub fn to_bytes(
        &self,
        context: &Context<B>,
        attached: Attached<'_>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<Vec<u8>, Error> {
        require_named(self.key())?;
        let params = context.params();
        params.require_digest(self.params_digest())?;
        if envelope.is_some() {
            self.noise().certificate.require_proven("an authenticated file")?;
        }
        let mut header = Header::new(ObjectType::Ciphertext, digest(params), self.key());
        if let Some(seed) = attached.seed {
            self.require_expanded(context, seed)?;
            header = header.seeded();
        }
        let size = poly_bytes(params, params.level(self.level())?).saturating_mul(self.parts().len());
        let mut writer = Writer::new(header, size.saturating_add(HEAD_BYTES - SCHEME_BYTES + 4));
        write_u16(&mut writer, "level", self.level())?;
        writer.u8(self.parts().len() as u8);
        writer.bool(D::NTT);
        certificate::write(&mut writer, self.noise().certificate.claim(params.ring().log_n()));
        writer.scheme_header(attached.scheme_header)?;
        let stored = if attached.seed.is_some() { 1 } else { self.parts().len() };
        self.parts()[..stored].iter().try_for_each(|part| write_poly(&mut writer, context, part))?;
        if let Some(seed) = attached.seed {
            writer.raw(seed.as_bytes());
        }
        Ok(writer.finish(envelope))
    }

    /// The ciphertext in a container; under the secret key `key` if one is named, or under the second one that belongs to
    /// it.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such a ciphertext of these parameters or rest in the other domain,
    /// [`Error::Level`] above the top level, or when the device fails.
    pub fn from_bytes(
        context: &Context<B>,
        bytes: &[u8],
        key: Option<KeyId>,
        trust: Trust<'_>,
    ) -> Result<Received<B, D>, Error> {
        let params = context.params();
        let key = key.map(|key| of_owner(params, bytes, key));
        let mut reader = open(params, bytes, ObjectType::Ciphertext, key, trust.envelope())?;
        let head = CiphertextHead::read(&mut reader, params)?;
        if head.ntt != D::NTT {
            return Err(WireError::WrongDomain { expected_ntt: D::NTT, found_ntt: head.ntt }.into());
        }
        let primes = params.level(head.level)?;
        let stored = head.components - usize::from(head.seeded);
        let mut parts: Vec<Poly<B, D>> =
            (0..stored).map(|_| read_poly(&mut reader, context, primes)).collect::<Result<_, _>>()?;
        let seed = if head.seeded { Some(Seed::from_bytes(reader.array()?)) } else { None };
        if let Some(seed) = &seed {
            parts.push(expand(context, head.level, seed)?);
        }
        reader.finish()?;
        let ciphertext = Self::new(params, parts, head.level, head.key, trust.judge(head.claimed).into())?;
        Ok(Received { ciphertext, seed, head })
    }

    /// Fails unless there are two components and c_1 is what `seed` expands to.
    fn require_expanded(&self, context: &Context<B>, seed: &Seed) -> Result<(), Error> {
        self.require_components(2)?;
        let expanded: Poly<B, D> = expand(context, self.level(), seed)?;
        if expanded.to_words(context.backend())? == self.parts()[1].to_words(context.backend())? {
            return Ok(());
        }
        Err(WireError::NonCanonical { what: "c_1 does not expand from the seed given", offset: 0 }.into())
    }
}

/// Of the two names that objects under the secret key `key` may carry, the one that the container should.
fn of_owner(params: &Params, bytes: &[u8], key: KeyId) -> KeyId {
    let second = params.second().map(|_| second_id(key));
    let found = peek(bytes).ok().map(|found| found.header.key);
    second.filter(|second| found == Some(*second)).unwrap_or(key)
}

/// The polynomial that stands for `seed` as c_1.
fn expand<B: Backend, D: SwitchDomain>(context: &Context<B>, level: usize, seed: &Seed) -> Result<Poly<B, D>, Error> {
    let primes = context.params().level(level)?;
    D::from_ntt(context.backend(), uniform(context, primes, seed, Purpose::CiphertextUniform, 0)?)
}
