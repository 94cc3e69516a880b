//! Who the parties are, in files: a party's own certificate with its key, and the list of all parties.
//!
//! The list has a line for each party, in the order of their numbers: `host:port`, a space, the fingerprint in
//! hexadecimal. Empty lines and lines that begin with `#` are skipped.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use synchromesh::rlwe::file::{self, Access, Existing};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::tls::{self, Fingerprint, Identity, Peer};

/// First bytes of an identity's file.
const MAGIC: &[u8; 23] = b"synchromesh identity 1\n";

/// Largest file read, in bytes.
const LARGEST: u64 = 1 << 16;

impl Identity {
    /// Writes the certificate and its key, mode 0600: a magic, the certificate's length in eight bytes, the certificate, the key.
    ///
    /// # Errors
    /// [`Error::File`] if the file is there already or cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let (certificate, key) = self.parts();
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAGIC.len() + 8 + certificate.len() + key.len()));
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(certificate.len() as u64).to_le_bytes());
        bytes.extend_from_slice(certificate);
        bytes.extend_from_slice(key);
        Ok(file::write(path, &bytes, Access::Secret, Existing::Keep)?)
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Format`] for another file; a key that does not fit the certificate shows when connecting.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = Zeroizing::new(file::read(path, LARGEST)?);
        let parts = bytes.strip_prefix(MAGIC).and_then(|rest| {
            let (length, rest) = rest.split_first_chunk::<8>()?;
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        });
        let wrong = || Error::Format { path: path.to_owned(), reason: "it is no party's identity".into() };
        let (certificate, key) =
            parts.filter(|(certificate, key)| !certificate.is_empty() && !key.is_empty()).ok_or_else(wrong)?;
        Ok(Self::from_parts(CertificateDer::from(certificate.to_vec()), Zeroizing::new(key.to_vec())))
    }
}

/// A fingerprint in hexadecimal.
#[must_use]
pub fn fingerprint_text(fingerprint: &Fingerprint) -> String {
    blake3::Hash::from(*fingerprint).to_hex().to_string()
}

/// Reads the list of parties.
///
/// # Errors
/// [`Error::File`], [`Error::Format`] with the line that is none of an address and a fingerprint, and as [`tls::check_list`].
pub fn read(path: &Path) -> Result<Vec<Peer>> {
    let text = file::read(path, LARGEST)?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let peer = |(at, line): (usize, &str)| {
        let mut words = line.split_whitespace();
        let (address, digits, more) = (words.next(), words.next(), words.next());
        let fingerprint = digits.and_then(|digits| blake3::Hash::from_hex(digits).ok());
        match (address.filter(|address| address.contains(':')), fingerprint, more) {
            (Some(address), Some(hash), None) => {
                Ok(Peer { address: address.to_owned(), fingerprint: *hash.as_bytes() })
            }
            _ => Err(Error::Format {
                path: path.to_owned(),
                reason: format!("line {at} is not an address host:port and a fingerprint of 64 hexadecimal digits"),
            }),
        }
    };
    let peers = lines.map(peer).collect::<Result<Vec<Peer>>>()?;
    tls::check_list(&peers)?;
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_and_lists_survive_their_files_and_others_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let (path, identity) = (root.path().join("identity"), Identity::new().unwrap());
        identity.write(&path).unwrap();
        assert_eq!(Identity::read(&path).unwrap().fingerprint(), identity.fingerprint());
        assert_eq!(identity.write(&path).unwrap_err().kind(), "file_exists");
        let bytes = std::fs::read(&path).unwrap();
        for damaged in [&bytes[..10], &bytes[..25], &bytes[..40], &[&MAGIC[..], &[0xff; 64]].concat()] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(Identity::read(&path).unwrap_err().kind(), "format");
        }
        let hosts = root.path().join("hosts");
        let digits = fingerprint_text(&identity.fingerprint());
        let other = fingerprint_text(&Identity::new().unwrap().fingerprint());
        std::fs::write(&hosts, format!("# two\n127.0.0.1:4000 {digits}\n\nhost:1 {other}\n")).unwrap();
        let peers = read(&hosts).unwrap();
        assert_eq!((peers.len(), &peers[1].address[..], peers[0].fingerprint), (2, "host:1", identity.fingerprint()));
        for wrong in ["host 00", "host:1", &format!("host:1 {digits} more"), &format!("host:1 {}", &digits[1..])] {
            std::fs::write(&hosts, wrong).unwrap();
            assert!(read(&hosts).unwrap_err().to_string().contains("line 1"));
        }
    }

    #[test]
    fn two_parties_of_a_list_are_never_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("hosts");
        let digits = [(); 3].map(|()| fingerprint_text(&Identity::new().unwrap().fingerprint()));
        let refused = |addresses: [&str; 3], who: [usize; 3]| {
            let lines: Vec<String> = (0..3).map(|i| format!("{} {}\n", addresses[i], digits[who[i]])).collect();
            std::fs::write(&path, lines.concat()).unwrap();
            read(&path).unwrap_err()
        };
        let same = |first, second, what| Error::SameParty { first, second, what };
        assert_eq!(refused(["a:1", "b:1", "c:1"], [0, 1, 0]), same(0, 2, "certificate"));
        assert_eq!(refused(["a:1", "b:1", "b:1"], [0, 1, 2]), same(1, 2, "address"));
        assert_eq!(refused(["Host:1", "host:1", "c:1"], [0, 1, 2]), same(0, 1, "address"));
        assert_eq!(refused(["[::1]:80", "b:1", "[0:0::1]:080"], [0, 1, 2]), same(0, 2, "address"));
        std::fs::write(&path, format!("a:1 {}\n", digits[0])).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), "parties");
    }
}
