//! Reading a container: [`Reader::open`] checks all of it, the primitives then walk through the payload.

use super::pack::{limb_bytes, residue_bits, unpack};
use super::{
    EnvelopeKey, HEADER_BYTES, Header, KeyId, ObjectType, ParamsDigest, SCHEME_HEADER_LIMIT, TRAILER_BYTES, WireError,
    peek, trailer,
};
use std::fmt;

use synchromesh_ring::secrecy;

/// What the caller is ready to read.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The type of object.
    pub object: ObjectType,
    /// The parameters it must belong to; `None` accepts any.
    pub params: Option<ParamsDigest>,
    /// The secret key it must belong to; `None` accepts any.
    pub key: Option<KeyId>,
    /// Largest payload in bytes, from the parameters.
    pub max_payload: u64,
    /// With a key the container must be authenticated under it; without one it must not be keyed.
    pub envelope: Option<&'a EnvelopeKey>,
}

impl Expected<'_> {
    /// An object of this type, of any parameters and key, not authenticated, of at most `max_payload` bytes.
    #[must_use]
    pub const fn any(object: ObjectType, max_payload: u64) -> Self {
        Self { object, params: None, key: None, max_payload, envelope: None }
    }
}

/// A checked container, read from the front of its payload to the end.
///
/// Its `Debug` form shows the header and the position, never the payload.
pub struct Reader<'a> {
    header: Header,
    payload: &'a [u8],
    at: usize,
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Reader");
        shown.field("header", &self.header).field("at", &self.at).field("len", &self.payload.len()).finish()
    }
}

impl<'a> Reader<'a> {
    /// Checks the whole container, trailer included, and stands at the start of its payload.
    ///
    /// # Errors
    /// [`WireError`], in the order given in the [module](super)'s text. Nothing is allocated.
    pub fn open(bytes: &'a [u8], expected: &Expected<'_>) -> Result<Self, WireError> {
        let found = peek(bytes)?;
        let header = found.header;
        if header.object != expected.object {
            return Err(WireError::WrongType { expected: expected.object, found: header.object });
        }
        if let Some(params) = expected.params.filter(|params| *params != header.params) {
            return Err(WireError::WrongParams { expected: params, found: header.params });
        }
        if let Some(key) = expected.key.filter(|key| *key != header.key) {
            return Err(WireError::WrongKey { expected: key, found: header.key });
        }
        if found.payload > expected.max_payload {
            let (declared, limit) = (found.payload, expected.max_payload);
            return Err(WireError::TooLarge { what: "payload", declared, limit });
        }
        let have = bytes.len() as u64;
        let need = found.payload.saturating_add((HEADER_BYTES + TRAILER_BYTES) as u64);
        if have < need {
            return Err(WireError::Truncated { need, have });
        }
        if have > need {
            return Err(WireError::TrailingBytes { part: "container", extra: have - need });
        }
        if found.keyed != expected.envelope.is_some() {
            return Err(WireError::EnvelopeMismatch { keyed: found.keyed });
        }
        let (body, stored) = bytes.split_at(bytes.len() - TRAILER_BYTES);
        // The comparison of `blake3::Hash` takes constant time.
        if secrecy::reveal(trailer(body, expected.envelope) != *stored) {
            return Err(if found.keyed { WireError::NotAuthentic } else { WireError::BodyCorrupt });
        }
        Ok(Self { header, payload: &body[HEADER_BYTES..], at: 0 })
    }

    /// What the header says.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Payload bytes not yet read.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.payload.len() - self.at
    }

    /// Reads `len` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer are left.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        if len > self.remaining() {
            let need = (self.at as u64).saturating_add(len as u64);
            return Err(WireError::Truncated { need, have: self.payload.len() as u64 });
        }
        let bytes = &self.payload[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    /// Reads `K` bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer are left.
    pub fn array<const K: usize>(&mut self) -> Result<[u8; K], WireError> {
        let mut out = [0; K];
        out.copy_from_slice(self.raw(K)?);
        Ok(out)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`WireError::Truncated`] at the end.
    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array().map(u8::from_le_bytes)
    }

    /// Reads a boolean.
    ///
    /// # Errors
    /// [`WireError::NonCanonical`] unless the byte is 0 or 1; [`WireError::Truncated`] at the end.
    pub fn bool(&mut self) -> Result<bool, WireError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(self.refuse("a boolean is neither 0 nor 1", 1)),
        }
    }

    /// Reads two bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer are left.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Reads four bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer are left.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads eight bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when fewer are left.
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a count of things that follow, at most `limit`, safe to allocate for.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] above `limit`; [`WireError::Truncated`] at the end.
    pub fn count(&mut self, what: &'static str, limit: usize) -> Result<usize, WireError> {
        let declared = self.u32()?;
        match usize::try_from(declared) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(WireError::TooLarge { what, declared: declared.into(), limit: limit as u64 }),
        }
    }

    /// Reads a counted byte string of at most `limit` bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] above `limit`; [`WireError::Truncated`] when fewer bytes are left than declared.
    pub fn bytes(&mut self, what: &'static str, limit: usize) -> Result<&'a [u8], WireError> {
        let len = self.count(what, limit)?;
        self.raw(len)
    }

    /// Reads a counted UTF-8 string of at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Reader::bytes`]; [`WireError::NonCanonical`] when the bytes are not UTF-8.
    pub fn string(&mut self, what: &'static str, limit: usize) -> Result<&'a str, WireError> {
        let bytes = self.bytes(what, limit)?;
        std::str::from_utf8(bytes).map_err(|_| self.refuse("text is not UTF-8", bytes.len()))
    }

    /// Reads the opaque bytes of a scheme.
    ///
    /// # Errors
    /// As [`Reader::bytes`] with the limit [`SCHEME_HEADER_LIMIT`].
    pub fn scheme_header(&mut self) -> Result<&'a [u8], WireError> {
        self.bytes("scheme header", SCHEME_HEADER_LIMIT)
    }

    /// Reads a packed limb of `out.len()` residues mod `q`, each checked.
    ///
    /// # Errors
    /// [`WireError::Truncated`] when the limb is not there whole; [`WireError::NonCanonical`] when a residue is not
    /// below `q` or the padding is not zero, and then `out` is meaningless; [`WireError::Modulus`] unless
    /// `2 <= q <= 2^63`.
    pub fn limb_into(&mut self, q: u64, out: &mut [u64]) -> Result<(), WireError> {
        let bits = residue_bits(q)?;
        let bytes = self.raw(limb_bytes(out.len(), q)?)?;
        if unpack(bytes, bits, q, out) {
            return Ok(());
        }
        Err(self.refuse("a residue is not below its modulus, or padding is not zero", bytes.len()))
    }

    /// Reads a packed limb of `n` residues mod `q` into a new vector, allocated once the bytes are known to be there.
    ///
    /// # Errors
    /// As [`Reader::limb_into`].
    pub fn limb(&mut self, q: u64, n: usize) -> Result<Vec<u64>, WireError> {
        let len = limb_bytes(n, q)?;
        if len > self.remaining() {
            let need = (self.at as u64).saturating_add(len as u64);
            return Err(WireError::Truncated { need, have: self.payload.len() as u64 });
        }
        let mut out = vec![0; n];
        self.limb_into(q, &mut out)?;
        Ok(out)
    }

    /// Reads a small polynomial with coefficients in `-bound ..= bound`.
    ///
    /// # Errors
    /// As [`Reader::limb_into`] with q = 2 `bound` + 1.
    pub fn small_into(&mut self, bound: u64, out: &mut [i64]) -> Result<(), WireError> {
        let q = bound.checked_mul(2).and_then(|b| b.checked_add(1)).ok_or(WireError::Modulus { q: bound })?;
        self.limb_into(q, bytemuck::cast_slice_mut(out))?;
        out.iter_mut().for_each(|c| *c -= bound as i64);
        Ok(())
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// [`WireError::TrailingBytes`] when payload is left.
    pub fn finish(self) -> Result<(), WireError> {
        match self.remaining() {
            0 => Ok(()),
            extra => Err(WireError::TrailingBytes { part: "payload", extra: extra as u64 }),
        }
    }

    /// An error about the `len` bytes just read; for objects whose own rules a value breaks.
    #[must_use]
    pub fn refuse(&self, what: &'static str, len: usize) -> WireError {
        WireError::NonCanonical { what, offset: self.at.saturating_sub(len) as u64 }
    }
}
