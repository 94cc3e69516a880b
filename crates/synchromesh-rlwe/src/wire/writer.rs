//! Writing a container: primitives append to one buffer, [`Writer::finish`] closes it.

use super::pack::{limb_bytes, pack, residue_bits};
use super::{EnvelopeKey, HEADER_BYTES, Header, SCHEME_HEADER_LIMIT, TRAILER_BYTES, WireError, trailer};
use zeroize::Zeroize;

/// A container under construction.
///
/// The buffer is wiped when it is moved to grow and when the writer is dropped unfinished, so a secret object leaves
/// one copy: the bytes returned by [`Writer::finish`], for which the caller answers.
pub struct Writer {
    header: Header,
    bytes: Vec<u8>,
}

impl Writer {
    /// A container with room for `payload` bytes; more room is found when needed.
    #[must_use]
    pub fn new(header: Header, payload: usize) -> Self {
        let capacity = payload.saturating_add(HEADER_BYTES + TRAILER_BYTES);
        let mut bytes = Vec::with_capacity(capacity);
        bytes.resize(HEADER_BYTES, 0);
        Self { header, bytes }
    }

    /// Payload bytes so far.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// Appends one byte.
    pub fn u8(&mut self, value: u8) {
        self.raw(&[value]);
    }

    /// Appends a boolean as 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends two bytes.
    pub fn u16(&mut self, value: u16) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends four bytes.
    pub fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// Appends bytes whose number the reader knows.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.grow(bytes.len()).copy_from_slice(bytes);
    }

    /// Appends a count of things that follow.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] above 2^32 - 1.
    pub fn count(&mut self, what: &'static str, count: usize) -> Result<(), WireError> {
        let limit = u64::from(u32::MAX);
        let value = u32::try_from(count).map_err(|_| WireError::TooLarge { what, declared: count as u64, limit })?;
        self.u32(value);
        Ok(())
    }

    /// Appends a count and that many bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] above 2^32 - 1 bytes.
    pub fn bytes(&mut self, what: &'static str, bytes: &[u8]) -> Result<(), WireError> {
        self.count(what, bytes.len())?;
        self.raw(bytes);
        Ok(())
    }

    /// Appends a UTF-8 string as bytes.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] above 2^32 - 1 bytes.
    pub fn string(&mut self, what: &'static str, text: &str) -> Result<(), WireError> {
        self.bytes(what, text.as_bytes())
    }

    /// Appends the opaque bytes of a scheme.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] above [`SCHEME_HEADER_LIMIT`] bytes.
    pub fn scheme_header(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        let what = "scheme header";
        if bytes.len() > SCHEME_HEADER_LIMIT {
            let (declared, limit) = (bytes.len() as u64, SCHEME_HEADER_LIMIT as u64);
            return Err(WireError::TooLarge { what, declared, limit });
        }
        self.bytes(what, bytes)
    }

    /// Appends a packed limb of residues mod `q`.
    ///
    /// # Errors
    /// [`WireError::Modulus`] unless `2 <= q <= 2^63`; [`WireError::NonCanonical`] when a residue is not below `q`.
    pub fn limb(&mut self, q: u64, residues: &[u64]) -> Result<(), WireError> {
        let bits = residue_bits(q)?;
        let offset = self.payload_len() as u64;
        let out = self.grow(limb_bytes(residues.len(), q)?);
        if pack(residues, bits, q, out) {
            return Ok(());
        }
        self.bytes.truncate(HEADER_BYTES + offset as usize);
        Err(WireError::NonCanonical { what: "a residue is not below its modulus", offset })
    }

    /// Appends a small polynomial with coefficients in `-bound ..= bound`.
    ///
    /// # Errors
    /// [`WireError::Modulus`] unless `1 <= bound < 2^62`; [`WireError::NonCanonical`] when a coefficient is larger.
    pub fn small(&mut self, bound: u64, coefficients: &[i64]) -> Result<(), WireError> {
        let q = bound.checked_mul(2).and_then(|b| b.checked_add(1)).ok_or(WireError::Modulus { q: bound })?;
        let mut shifted: Vec<u64> = coefficients.iter().map(|c| (*c as u64).wrapping_add(bound)).collect();
        let result = self.limb(q, &shifted);
        shifted.zeroize();
        result
    }

    /// Closes the container: header, then payload, then digest; with an envelope key, an authentication code.
    #[must_use]
    pub fn finish(mut self, envelope: Option<&EnvelopeKey>) -> Vec<u8> {
        let header = self.header.encode(envelope.is_some(), self.payload_len() as u64);
        self.bytes[..HEADER_BYTES].copy_from_slice(&header);
        let digest = trailer(&self.bytes, envelope);
        self.raw(digest.as_bytes());
        std::mem::take(&mut self.bytes)
    }

    /// Appends `extra` zero bytes and lends them; moves the buffer by hand so that the old one is wiped.
    fn grow(&mut self, extra: usize) -> &mut [u8] {
        let start = self.bytes.len();
        if self.bytes.capacity() - start < extra {
            let mut larger = Vec::with_capacity((2 * start).max(start + extra) + TRAILER_BYTES);
            larger.extend_from_slice(&self.bytes);
            std::mem::replace(&mut self.bytes, larger).zeroize();
        }
        self.bytes.resize(start + extra, 0);
        &mut self.bytes[start..]
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.bytes.zeroize();
    }
}
