//! Triples at rest in a plain format, each given out once, even by a process that is killed.
//!
//! `triples-<r>x<k>x<c>-P<i>.bin` is one line of JSON, padded with spaces to a multiple of 64 bytes: `prime`, `shape`, `party`,
//! `parties`, `count`, `words`, `offset`. Then come 32 bytes of digest of that line and of what follows it up to the shares: a digest of
//! each triple, and zeros up to a multiple of 64 bytes. From `offset` on come the shares as in MP-SPDZ's files, but as plain
//! residues: little-endian words. With NumPy: `numpy.fromfile(path, "<u8", offset=offset).reshape(count, -1, 2, words)`.
//!
//! Beside it, `.bin.seal` says where the record of the MAC key is: triples of a key that others may know are not given out. `.journal`
//! has a line for each triple given out, written and synced before the triple is; a store without its journal is refused.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use synchromesh::rlwe::file::{self, Access, Existing, FileError, Journal, Lock};
use zeroize::Zeroizing;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::mac::MacKeyShare;
use crate::mac::home::{self, Home};
use crate::mac::seal::Seal;
use crate::share::{MatrixTriple, Shape};

/// What a file begins with in the format before digests, which did not say whether its MAC key is still secret.
const FORMER: &[u8] = b"{\"format\": \"synchromesh triples 1\"";

/// Bytes of a digest.
const DIGEST: usize = 32;

/// Most triples of a file.
const MOST: u64 = 1 << 32;

/// One party's triples of one shape on disk. Two processes cannot have one open at the same time.
#[derive(Debug)]
pub struct TripleStore {
    field: Field,
    shape: Shape,
    path: PathBuf,
    journal: Journal,
    homes: Vec<Home>,
    /// Digests of the triples.
    digests: Vec<[u8; DIGEST]>,
    taken: u64,
    offset: u64,
}

impl TripleStore {
    /// Where a store of a shape is.
    #[must_use]
    pub fn path(directory: &Path, shape: Shape, party: usize) -> PathBuf {
        directory.join(format!("triples-{shape}-P{party}.bin"))
    }

    /// Writes triples under this MAC key into `directory` (mode 0600).
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if a store of this shape and party is there already or cannot be written,
    /// [`Error::Shape`] for a triple of another shape, [`Error::MacKeyBurnt`] for a key that others may know.
    pub fn create(
        directory: &Path,
        field: &Field,
        (party, parties): (usize, usize),
        shape: Shape,
        key: &MacKeyShare,
        triples: Vec<MatrixTriple>,
    ) -> Result<PathBuf> {
        Self::create_of(directory, field, (party, parties), shape, (key, None), triples)
    }

    /// The same for triples of a session.
    pub(crate) fn create_of(
        directory: &Path,
        field: &Field,
        (party, parties): (usize, usize),
        shape: Shape,
        (key, session): (&MacKeyShare, Option<[u8; 32]>),
        triples: Vec<MatrixTriple>,
    ) -> Result<PathBuf> {
        key.usable()?;
        let mut bytes = Zeroizing::new(line(field, (party, parties), shape, triples.len()));
        let codec = Codec::plain(field);
        let mut shares = Zeroizing::new(Vec::with_capacity(codec.triple_bytes(shape) * triples.len()));
        codec.write_triples(shape, &triples, &mut shares)?;
        let table: Vec<u8> =
            shares.chunks(codec.triple_bytes(shape)).flat_map(|triple| *blake3::hash(triple).as_bytes()).collect();
        let digest = head_digest(&bytes, &table);
        bytes.extend_from_slice(&digest);
        bytes.extend_from_slice(&table);
        let offset = bytes.len().next_multiple_of(64);
        bytes.resize(offset, 0);
        bytes.reserve_exact(shares.len());
        bytes.extend_from_slice(&shares);
        file::create_private_directory(directory)?;
        let path = Self::path(directory, shape, party);
        if path.exists() {
            return Err(FileError::Exists { path }.into());
        }
        Seal::write(&path, digest, key, session)?;
        Journal::create(&path.with_extension("journal"), &title(&digest), Access::Secret, Existing::beside(&path))?;
        file::write(&path, &bytes, Access::Secret, Existing::Keep)?;
        Ok(path)
    }

    /// Opens a store, with what was taken from it before.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if there is none or it is in use, [`synchromesh_parties::Error::Format`] if
    /// it is damaged, of another prime, shape or party; [`Error::Unbound`] without its journal, its seal or the MAC
    /// key's record, [`Error::MacKeyBurnt`] and [`Error::Unmatched`] for triples that are void.
    pub fn open(path: &Path, field: &Field, (party, parties): (usize, usize), shape: Shape) -> Result<Self> {
        let wrong = |reason: String| Error::format(path, reason);
        let mut file = file::open(path)?;
        let size = file.metadata().map_err(|e| wrong(e.to_string()))?.len();
        let triple = Codec::plain(field).triple_bytes(shape) as u64;
        // Numbers have a fixed width, so that the line's length does not depend on them.
        let mut found = vec![0; line(field, (party, parties), shape, 0).len()];
        read_at(&mut file, 0, &mut found).map_err(|e| wrong(e.to_string()))?;
        if found.starts_with(FORMER) {
            return Err(wrong(
                "it is of the former format 1, which did not say whether its MAC key is still secret".into(),
            ));
        }
        let said = serde_json::from_slice::<serde_json::Value>(&found).ok().and_then(|line| line["count"].as_u64());
        let count =
            said.filter(|count| *count <= MOST).ok_or_else(|| wrong("it begins with no line of ours".into()))?;
        let expected = line(field, (party, parties), shape, count as usize);
        let offset = offset(expected.len(), count as usize) as u64;
        if found != expected || size != offset + triple * count {
            return Err(wrong(format!(
                "it is not {count} triples {shape} of party {party} of {parties} for this prime"
            )));
        }
        let mut head = vec![0; offset as usize - expected.len()];
        read_at(&mut file, expected.len() as u64, &mut head).map_err(|e| wrong(e.to_string()))?;
        let (digest, rest) = head.split_at(DIGEST);
        let (table, padding) = rest.split_at(DIGEST * count as usize);
        if head_digest(&expected, table)[..] != *digest || padding.iter().any(|&byte| byte != 0) {
            return Err(wrong("its digests are damaged".into()));
        }
        let digest: [u8; DIGEST] = head_digest(&expected, table);
        let (seal, homes) = Seal::open(path)?;
        if seal.digest != digest {
            return Err(wrong("its seal is another file's".into()));
        }
        let journal_path = path.with_extension("journal");
        let (journal, records) = match Journal::open(&journal_path, &title(&digest), Lock::Now) {
            Err(FileError::NotFound { .. }) => {
                return Err(Error::Unbound { file: path.to_owned(), record: journal_path });
            }
            other => other?,
        };
        // A line that a crash cut short counts: its triple may have been used.
        let taken = records.len() as u64;
        let digests = table.chunks_exact(DIGEST).map(|digest| std::array::from_fn(|i| digest[i])).collect();
        Ok(Self { field: field.clone(), shape, path: path.to_owned(), journal, homes, digests, taken, offset })
    }

    /// Triples that were never given out.
    #[must_use]
    pub fn left(&self) -> u64 {
        (self.digests.len() as u64).saturating_sub(self.taken)
    }

    /// The next triple, or `None` when all were given out. It counts as used from here on, whatever happens.
    ///
    /// # Errors
    /// [`Error::MacKeyBurnt`] and [`Error::Unbound`], and none was given out; [`synchromesh_parties::Error::File`] if
    /// the journal cannot be written and [`synchromesh_parties::Error::Format`] if the triple is damaged: it is lost
    /// then.
    pub fn take(&mut self) -> Result<Option<MatrixTriple>> {
        let index = self.taken;
        let Some(digest) = usize::try_from(index).ok().and_then(|index| self.digests.get(index)) else {
            return Ok(None);
        };
        home::usable(&self.homes)?;
        // Counted before it is written: a part of the line may be on disk.
        self.taken += 1;
        self.journal.append(&[index.to_string()])?;
        let codec = Codec::plain(&self.field);
        let mut bytes = Zeroizing::new(vec![0; codec.triple_bytes(self.shape)]);
        let start = self.offset + bytes.len() as u64 * index;
        let read = File::open(&self.path).and_then(|mut file| read_at(&mut file, start, &mut bytes));
        read.map_err(|e| Error::format(&self.path, e.to_string()))?;
        if *blake3::hash(&bytes).as_bytes() != *digest {
            return Err(Error::format(&self.path, format!("triple {index} is damaged")));
        }
        codec.read_triple(self.shape, &bytes).map(Some)
    }
}

fn read_at(file: &mut File, start: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(bytes)
}

fn title(digest: &[u8; DIGEST]) -> String {
    format!("triples given out of {}", blake3::Hash::from(*digest))
}

fn head_digest(line: &[u8], table: &[u8]) -> [u8; DIGEST] {
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 triples, file");
    hasher.update(line).update(table);
    *hasher.finalize().as_bytes()
}

/// Where the shares begin, after a line of this length.
fn offset(line: usize, count: usize) -> usize {
    (line + DIGEST * (1 + count)).next_multiple_of(64)
}

/// The line of JSON.
fn line(field: &Field, (party, parties): (usize, usize), shape: Shape, count: usize) -> Vec<u8> {
    let text = |offset: usize| {
        format!(
            "{{\"format\": \"synchromesh triples 2\", \"prime\": \"{}\", \"shape\": \"{shape}\", \"party\": {party}, \
             \"parties\": {parties}, \"count\": {count:10}, \"words\": {}, \"offset\": {offset:12}}}",
            field.prime(),
            field.element_bytes() / 8,
        )
    };
    let length = (text(0).len() + 1).next_multiple_of(64);
    let mut bytes = text(offset(length, count)).into_bytes();
    bytes.resize(length - 1, b' ');
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dealer::TrustedDealer;
    use crate::field::DEFAULT_PRIME;

    /// Whatever is left of a line of the journal, its triple is not given out, once and for all.
    #[test]
    fn a_line_that_was_cut_costs_a_triple_and_gives_none_out_twice() {
        let (field, shape): (Field, Shape) = (DEFAULT_PRIME.parse().unwrap(), "2x2x2".parse().unwrap());
        let dealer = TrustedDealer::new(&field, 2).unwrap();
        let triples = (0..6).map(|_| dealer.triple(shape).unwrap().remove(0)).collect();
        let root = tempfile::tempdir().unwrap();
        let path = TripleStore::create(root.path(), &field, (0, 2), shape, &dealer.keys()[0], triples).unwrap();
        let open = || TripleStore::open(&path, &field, (0, 2), shape).unwrap();
        let journal = path.with_extension("journal");
        let mut store = open();
        let mut given = vec![store.take().unwrap().unwrap(), store.take().unwrap().unwrap()];
        let whole = std::fs::read(&journal).unwrap();
        given.push(store.take().unwrap().unwrap());
        drop(store);
        let longer = std::fs::read(&journal).unwrap();
        for length in whole.len() + 1..longer.len() {
            std::fs::write(&journal, &longer[..length]).unwrap();
            assert_eq!(open().left(), 3, "{length}");
            given.push(open().take().unwrap().unwrap());
            // A line that was counted without being ended would have the next one written onto it.
            assert_eq!(open().left(), 2, "{length}");
            let next = open().take().unwrap().unwrap();
            assert!(given.iter().all(|triple| triple.parts != next.parts), "{length}");
            given.truncate(3);
        }
    }
}
