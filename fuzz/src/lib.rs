//! What the targets share: small parameters, and one law for every object.
//!
//! The law: bytes are refused by a typed error, or they are the one encoding of the object they hold.

use std::sync::{Arc, OnceLock};

use synchromesh_rlwe::codec::{Attached, CiphertextHead, Received, Trust};
use synchromesh_rlwe::wire::{Header, KeyId, ObjectType, ParamsDigest, WireError, Writer};
use synchromesh_rlwe::{
    Ciphertext, Context, Error, EvaluationKeys, Params, ParamsLiteral, PublicKey, SecretKey, Security, SwitchDomain,
};

/// Reads an object and writes it again.
pub type Again = fn(&Context, &[u8]) -> Result<Vec<u8>, Error>;

/// A context at N = 2^10, the same for every input.
pub fn context() -> &'static Context {
    static CONTEXT: OnceLock<Arc<Context>> = OnceLock::new();
    CONTEXT.get_or_init(|| {
        let literal = ParamsLiteral {
            tag: "fuzz".to_owned(),
            log_n: 10,
            q: vec![1_125_899_906_826_241, 1_099_511_592_961],
            p: vec![1_125_899_906_820_097],
            aux: vec![],
            level_limbs: vec![],
            schedule: Default::default(),
            error_multiple: "1".to_owned(),
            error: Default::default(),
            security: Security::Insecure,
        };
        Context::new(Params::new(literal).expect("valid parameters")).expect("a CPU")
    })
}

/// Holds the input against the law as it is, and as the payload of a sealed container with a header that fits; the
/// first byte then picks the flags. A payload that is too short only is filled up with zeros and judged again, so that
/// inputs of a few bytes reach whole objects.
pub fn check(object: ObjectType, again: Again, input: &[u8]) {
    judge(again, input);
    let Some((flags, payload)) = input.split_first() else { return };
    let params = object == ObjectType::Params;
    let digest = if params { literal_digest(payload) } else { *context().params().digest() };
    let key = if params { KeyId::NONE } else { KeyId([7; 16]) };
    let header = Header { seeded: flags & 1 == 1, ..Header::new(object, ParamsDigest(digest), key) };
    let mut payload = payload.to_vec();
    for _ in 0..64 {
        let mut writer = Writer::new(header, payload.len());
        writer.raw(&payload);
        let Some(Error::Wire(WireError::Truncated { need, have })) = judge(again, &writer.finish(None)) else { return };
        let missing = usize::try_from(need - have).expect("a length the payload may have");
        if payload.len() + missing > 1 << 20 {
            return;
        }
        payload.resize(payload.len() + missing, 0);
    }
}

fn judge(again: Again, bytes: &[u8]) -> Option<Error> {
    match again(context(), bytes) {
        Ok(written) => {
            assert_eq!(written, bytes, "two encodings of one object");
            None
        }
        Err(error) => {
            assert!(!error.kind().is_empty() && !error.remedy().is_empty() && !error.to_string().is_empty());
            Some(error)
        }
    }
}

/// The digest that parameters with this JSON would have; so that the header is not what stops them.
fn literal_digest(json: &[u8]) -> [u8; 32] {
    let literal = serde_json::from_slice::<ParamsLiteral>(json).ok();
    literal.and_then(|l| Params::new(l).ok()).map_or([0; 32], |p| *p.digest())
}

/// Parameters.
pub fn params(_: &Context, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Params::from_bytes(bytes, None)?.to_bytes(None)
}

/// A secret key.
pub fn secret_key(context: &Context, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    Ok(SecretKey::from_bytes(context, bytes, None)?.to_bytes(context, None)?.to_vec())
}

/// A public key.
pub fn public_key(context: &Context, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    PublicKey::from_bytes(context, bytes, None, None)?.to_bytes(context, None)
}

/// A set of switch keys.
pub fn switch_keys(context: &Context, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    EvaluationKeys::from_bytes(context, bytes, None, None)?.to_bytes(context, None)
}

/// A ciphertext resting in the domain `D`.
pub fn ciphertext<D: SwitchDomain>(context: &Context, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let Received { ciphertext, seed, head }: Received<_, D> =
        Ciphertext::from_bytes(context, bytes, None, Trust::Certificate)?;
    assert_eq!(head, CiphertextHead::from_bytes(context.params(), bytes, None)?);
    let attached = Attached { scheme_header: &head.scheme_header, seed: seed.as_ref() };
    ciphertext.to_bytes(context, attached, None)
}
