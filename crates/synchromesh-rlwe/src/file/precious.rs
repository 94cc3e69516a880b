//! What must not be lost by writing something else over it: keys, files of shares and the records of both, told by their first bytes.

use super::read::Opened;
use crate::wire::{MAGIC, ObjectType};
use std::path::Path;

/// First bytes of a file of some kind: `bytes` at `at`.
struct Mark {
    what: &'static str,
    parts: &'static [(usize, &'static [u8])],
}

/// Bytes that tell a kind.
const HEAD_BYTES: usize = 64;

/// Where a container of either format has its kind: after a mark of eight bytes and a version of two.
const KIND_AT: usize = 10;

/// First bytes of a file of sections; the crate above writes them.
const BUNDLE: &[u8] = b"\x89SMBDL\r\n";

const fn mark(what: &'static str, parts: &'static [(usize, &'static [u8])]) -> Mark {
    Mark { what, parts }
}

/// What is in no container: the kinds of the crates above, which test that their files are among them.
const MARKS: [Mark; 10] = [
    mark("a secret key", &[(0, BUNDLE), (KIND_AT, &[1, 0])]),
    mark("a public key", &[(0, BUNDLE), (KIND_AT, &[2, 0])]),
    mark("evaluation keys", &[(0, BUNDLE), (KIND_AT, &[3, 0])]),
    mark("an envelope key", &[(0, BUNDLE), (KIND_AT, &[5, 0])]),
    mark("a share of a joint key", &[(0, BUNDLE), (KIND_AT, &[6, 0])]),
    mark("shares of triples", &[(0, b"{\"format\": \"synchromesh triples")]),
    mark("shares of triples", &[(8, b"SPDZ gfp")]),
    mark("the record of a key or of shares", &[(0, b"synchromesh journal ")]),
    mark("a private key", &[(0, b"-----BEGIN PRIVATE KEY-----")]),
    mark("a private key", &[(0, b"-----BEGIN OPENSSH PRIVATE KEY-----")]),
];

/// What is lost with an object in a container; none for what can be made, or had, again.
const fn precious(object: ObjectType) -> Option<&'static str> {
    match object {
        ObjectType::SecretKey => Some("a secret key"),
        ObjectType::PublicKey => Some("a public key"),
        ObjectType::SwitchKeySet => Some("evaluation keys"),
        ObjectType::EnvelopeKey => Some("an envelope key"),
        ObjectType::PartyKey => Some("a party's key"),
        ObjectType::PartyIdentity => Some("a party's identity"),
        ObjectType::ShareSeal => Some("the seal of shares"),
        ObjectType::KeyShare => Some("a share of a joint key"),
        ObjectType::Params | ObjectType::Ciphertext | ObjectType::Plaintext | ObjectType::Plan => None,
    }
}

/// What key a file holds, or what else that a party cannot make again, by its first bytes; `None` for anything else.
#[must_use]
pub fn key_in(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(&MAGIC) {
        let id = head.get(KIND_AT..).and_then(|rest| rest.first_chunk()).map(|id| u16::from_le_bytes(*id));
        return id.and_then(ObjectType::from_id).and_then(precious);
    }
    let has = |&(at, bytes): &(usize, &[u8])| head.get(at..).is_some_and(|rest| rest.starts_with(bytes));
    MARKS.iter().find(|mark| mark.parts.iter().all(has)).map(|mark| mark.what)
}

/// What key the file at `path` holds. A file that cannot be read may hold one.
pub(super) fn key_at(path: &Path) -> Option<&'static str> {
    let mut head = [0; HEAD_BYTES];
    match Opened::open(path, u64::MAX).and_then(|file| file.read_at(0, &mut head)) {
        Ok(length) => key_in(&head[..length]),
        // A link that leads nowhere, or a file that has just gone.
        Err(super::FileError::NotFound { .. }) => None,
        Err(_) => Some("what cannot be read"),
    }
}
