//! Who the parties are, in files: a party's own certificate with its key, and the list of all parties.
//!
//! The list has a line for each party, in the order of their numbers: `host:port`, a space, the fingerprint in
//! hexadecimal. Empty lines and lines that begin with `#` are skipped. A list that was [written](write()) here says so in its first line
//! and ends with a checksum; one that a person wrote needs neither.

use std::path::Path;

use rustls::pki_types::CertificateDer;
use synchromesh::rlwe::KeyId;
use synchromesh::rlwe::file::{self, Access, Existing};
use synchromesh::rlwe::wire::{Expected, Header, ObjectType, ParamsDigest, Reader, WireError, Writer};
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::tls::{self, Fingerprint, Identity, Peer};

/// First bytes of an identity's file in the format before containers, which had no checksum.
const FORMER: &[u8] = b"synchromesh identity 1\n";

/// First line of a list that was written here.
const HEAD: &str = "# synchromesh hosts 1";

/// What its last line begins with.
const SUM: &str = "# checksum ";

/// Largest file read, in bytes.
const LARGEST: u64 = 1 << 16;

impl Identity {
    /// Writes the certificate and its key, mode 0600: a container of the two, each with its length.
    ///
    /// # Errors
    /// [`Error::File`] if the file is there already or cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let (certificate, key) = self.parts();
        let header = Header::new(ObjectType::PartyIdentity, ParamsDigest([0; 32]), KeyId::NONE);
        let mut writer = Writer::new(header, 8 + certificate.len() + key.len());
        let write = |writer: &mut Writer| {
            writer.bytes("certificate", certificate)?;
            writer.bytes("key", key)
        };
        write(&mut writer).map_err(synchromesh::rlwe::Error::from)?;
        let bytes = Zeroizing::new(writer.finish(None));
        Ok(file::write(path, &bytes, Access::Secret, Existing::Keep)?)
    }

    /// Reads what [`Self::write`] wrote.
    ///
    /// # Errors
    /// [`Error::File`], or [`Error::Format`] for another or a damaged file; a key that does not fit the certificate shows when
    /// connecting.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = Zeroizing::new(file::read(path, 2 * LARGEST)?);
        let wrong = |reason: String| Error::Format { path: path.to_owned(), reason };
        if bytes.starts_with(FORMER) {
            let reason =
                "it is of the former format 1, without a checksum: make a new identity and tell its fingerprint";
            return Err(wrong(reason.into()));
        }
        let read = || {
            let mut reader = Reader::open(&bytes, &Expected::any(ObjectType::PartyIdentity, LARGEST))?;
            let certificate = reader.bytes("certificate", LARGEST as usize)?.to_vec();
            let key = Zeroizing::new(reader.bytes("key", LARGEST as usize)?.to_vec());
            reader.finish()?;
            Ok(Self::from_parts(CertificateDer::from(certificate), key))
        };
        read().map_err(|error: WireError| wrong(format!("it is no party's identity: {error}")))
    }
}

/// A fingerprint in hexadecimal.
#[must_use]
pub fn fingerprint_text(fingerprint: &Fingerprint) -> String {
    blake3::Hash::from(*fingerprint).to_hex().to_string()
}

/// Writes the list of parties, with a checksum.
///
/// # Errors
/// [`Error::File`] if the file is there already or cannot be written.
pub fn write(path: &Path, peers: &[Peer]) -> Result<()> {
    let lines = peers.iter().map(|peer| format!("{} {}\n", peer.address, fingerprint_text(&peer.fingerprint)));
    let text = format!("{HEAD}\n{}", lines.collect::<String>());
    let text = format!("{text}{SUM}{}\n", blake3::hash(text.as_bytes()));
    Ok(file::write(path, text.as_bytes(), Access::Public, Existing::Keep)?)
}

/// Whether the checksum holds, of a list that has one or should have.
fn is_whole(text: &str) -> bool {
    let last = text.rfind(SUM).map(|at| text.split_at(at));
    match last {
        Some((rest, sum)) => sum == format!("{SUM}{}\n", blake3::hash(rest.as_bytes())),
        None => !text.starts_with(HEAD),
    }
}

/// Reads the list of parties.
///
/// # Errors
/// [`Error::File`], [`Error::Format`] with the line that is none of an address and a fingerprint, or for a list that is not what
/// was written, and as [`tls::check_list`].
pub fn read(path: &Path) -> Result<Vec<Peer>> {
    let text = file::read(path, LARGEST)?;
    let text = String::from_utf8_lossy(&text);
    if !is_whole(&text) {
        return Err(Error::Format {
            path: path.to_owned(),
            reason: "it is not what was written: its checksum differs".into(),
        });
    }
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
        let former = [FORMER, &[0xff; 64]].concat();
        for damaged in [&bytes[..10], &bytes[..25], &bytes[..40], &former] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(Identity::read(&path).unwrap_err().kind(), "format");
        }
        assert!(Identity::read(&path).unwrap_err().to_string().contains("former format"));
        every_flip(&path, &bytes, |path| Identity::read(path).unwrap_err());
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

    /// Every flipped bit of a file is refused as what it is.
    fn every_flip(path: &Path, bytes: &[u8], read: impl Fn(&Path) -> Error) {
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(path, damaged).unwrap();
            assert_eq!(read(path).kind(), "format", "bit {bit}");
        }
    }

    #[test]
    fn a_list_that_was_written_is_read_whole_or_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("hosts");
        let peer = |port| Peer { address: format!("127.0.0.1:{port}"), fingerprint: [port as u8; 32] };
        write(&path, &[peer(4000), peer(4001)]).unwrap();
        assert_eq!(write(&path, &[peer(4000)]).unwrap_err().kind(), "file_exists");
        let read_back = read(&path).unwrap();
        assert_eq!((read_back.len(), read_back[1].address.as_str()), (2, "127.0.0.1:4001"));
        let bytes = std::fs::read(&path).unwrap();
        every_flip(&path, &bytes, |path| read(path).unwrap_err());
        let last = bytes.len() - 80;
        for damaged in [&bytes[..last], &bytes[..bytes.len() - 1], &[&bytes[..], b"127.0.0.1:5 "].concat()] {
            std::fs::write(&path, damaged).unwrap();
            assert_eq!(read(&path).unwrap_err().kind(), "format");
        }
    }
}
