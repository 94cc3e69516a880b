//! Parameters as bytes: the literal in canonical JSON; reading runs every check again.

use super::{PARAMS_LIMIT, digest};
use crate::error::Error;
use crate::params::{Params, ParamsLiteral};
use crate::wire::{EnvelopeKey, Expected, Header, KeyId, ObjectType, Reader, WireError, Writer};

impl Params {
    /// These parameters as a container; with an envelope key, authenticated under it.
    ///
    /// # Errors
    /// [`Error::Wire`] when the literal takes more than 64 KiB.
    pub fn to_bytes(&self, envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>, Error> {
        let json = canonical(self.literal())?;
        if json.len() > PARAMS_LIMIT {
            let (declared, limit) = (json.len() as u64, PARAMS_LIMIT as u64);
            return Err(WireError::TooLarge { what: "parameter literal", declared, limit }.into());
        }
        let mut writer = Writer::new(Header::new(ObjectType::Params, digest(self), KeyId::NONE), json.len());
        writer.raw(&json);
        Ok(writer.finish(envelope))
    }

    /// The parameters in a container, checked as [`Params::new`] does: primes, rules and security.
    ///
    /// # Errors
    /// [`Error::Wire`] for bytes that are not such a container in its only form; otherwise as [`Params::new`].
    pub fn from_bytes(bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Self, Error> {
        let none = KeyId::NONE;
        let expected = Expected { key: Some(none), envelope, ..Expected::any(ObjectType::Params, PARAMS_LIMIT as u64) };
        let mut reader = Reader::open(bytes, &expected)?;
        super::require_seeded(&reader, false)?;
        let json = reader.raw(reader.remaining())?;
        let refuse = |what| reader.refuse(what, json.len());
        let literal: ParamsLiteral =
            serde_json::from_slice(json).map_err(|_| refuse("this is not a parameter literal in JSON"))?;
        if canonical(&literal)? != json {
            return Err(refuse("the JSON of the parameters is not in canonical form").into());
        }
        let params = Self::new(literal)?;
        let (expected, found) = (digest(&params), reader.header().params);
        if expected != found {
            return Err(WireError::WrongParams { expected, found }.into());
        }
        Ok(params)
    }
}

fn canonical(literal: &ParamsLiteral) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(literal).map_err(|e| Error::params(e.to_string()))
}
