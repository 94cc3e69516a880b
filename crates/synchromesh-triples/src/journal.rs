//! Triples at rest in a plain format, each given out once, even by a process that is killed.
//!
//! `triples-<r>x<k>x<c>-P<i>.bin` is one line of JSON, padded with spaces to a multiple of 64 bytes: `prime`, `shape`, `party`,
//! `parties`, `count`, `words`, `offset`. Then come the shares as in MP-SPDZ's files, but as plain residues: little-endian words.
//! With NumPy: `numpy.fromfile(path, "<u8", offset=offset).reshape(count, -1, 2, words)`.
//! Beside it, `.journal` has a line for each triple given out, written and synced before the triple is.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use synchromesh::rlwe::file::{self, Access, Existing};
use zeroize::Zeroizing;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::field::Field;
use crate::share::{MatrixTriple, Shape};

/// One party's triples of one shape on disk. Two processes cannot have one open at the same time.
#[derive(Debug)]
pub struct TripleStore {
    field: Field,
    shape: Shape,
    path: PathBuf,
    journal: File,
    taken: u64,
    count: u64,
    offset: u64,
}

impl TripleStore {
    /// Writes triples into `directory` (mode 0600).
    ///
    /// # Errors
    /// [`Error::File`] if a store of this shape and party is there already or cannot be written, [`Error::Shape`] for a triple of
    /// another shape.
    pub fn create(
        directory: &Path,
        field: &Field,
        (party, parties): (usize, usize),
        shape: Shape,
        triples: Vec<MatrixTriple>,
    ) -> Result<PathBuf> {
        let count = triples.len();
        let mut bytes = Zeroizing::new(header(field, (party, parties), shape, count));
        let codec = Codec::plain(field);
        bytes.reserve_exact(codec.triple_bytes(shape) * count);
        codec.write_triples(shape, &triples, &mut bytes)?;
        std::fs::create_dir_all(directory).map_err(|e| format_error(directory, e.to_string()))?;
        let path = directory.join(format!("triples-{shape}-P{party}.bin"));
        file::write(&path, &bytes, Access::Secret, Existing::Keep)?;
        Ok(path)
    }

    /// Opens a store, with what was taken from it before.
    ///
    /// # Errors
    /// [`Error::File`] if there is none, [`Error::Format`] if it is damaged, of another prime, shape or party, or in use.
    pub fn open(path: &Path, field: &Field, (party, parties): (usize, usize), shape: Shape) -> Result<Self> {
        let size = std::fs::metadata(path).map_err(|e| format_error(path, e.to_string()))?.len();
        let empty = header(field, (party, parties), shape, 0).len();
        let triple = Codec::plain(field).triple_bytes(shape) as u64;
        let count = size.saturating_sub(empty as u64) / triple;
        let expected = header(field, (party, parties), shape, count as usize);
        let mut found = vec![0; expected.len()];
        File::open(path).and_then(|mut f| f.read_exact(&mut found)).map_err(|e| format_error(path, e.to_string()))?;
        if found != expected || size != expected.len() as u64 + triple * count {
            let reason = format!("it is not {count} triples {shape} of party {party} of {parties} for this prime");
            return Err(format_error(path, reason));
        }
        let journal_path = path.with_extension("journal");
        let options = OpenOptions::new().create(true).append(true).read(true).to_owned();
        let mut journal = options.open(&journal_path).map_err(|e| format_error(&journal_path, e.to_string()))?;
        journal.try_lock().map_err(|_| format_error(&journal_path, "another process has it open".into()))?;
        let mut text = String::new();
        journal.read_to_string(&mut text).map_err(|e| format_error(&journal_path, e.to_string()))?;
        // A line that a crash cut short counts: its triple may have been used.
        let taken = text.lines().count() as u64;
        Ok(Self {
            field: field.clone(),
            shape,
            path: path.to_owned(),
            journal,
            taken,
            count,
            offset: expected.len() as u64,
        })
    }

    /// Triples that were never given out.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.count.saturating_sub(self.taken)
    }

    /// The next triple, or `None` when all were given out. It counts as used from here on, whatever happens.
    ///
    /// # Errors
    /// [`Error::Format`] if the journal cannot be written or the triple is damaged; the triple is lost then.
    pub fn take(&mut self) -> Result<Option<MatrixTriple>> {
        if self.left() == 0 {
            return Ok(None);
        }
        let index = self.taken;
        let line = format!("{index}\n");
        let synced = self.journal.write_all(line.as_bytes()).and_then(|()| self.journal.sync_data());
        synced.map_err(|e| format_error(&self.path.with_extension("journal"), e.to_string()))?;
        self.taken += 1;
        let codec = Codec::plain(&self.field);
        let mut bytes = Zeroizing::new(vec![0; codec.triple_bytes(self.shape)]);
        let start = self.offset + bytes.len() as u64 * index;
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(start))?;
            file.read_exact(&mut bytes)
        });
        read.map_err(|e| format_error(&self.path, e.to_string()))?;
        codec.read_triple(self.shape, &bytes).map(Some)
    }
}

fn header(field: &Field, (party, parties): (usize, usize), shape: Shape, count: usize) -> Vec<u8> {
    let text = |offset: usize| {
        format!(
            "{{\"format\": \"synchromesh triples 1\", \"prime\": \"{}\", \"shape\": \"{shape}\", \"party\": {party}, \
             \"parties\": {parties}, \"count\": {count:10}, \"words\": {}, \"offset\": {offset:4}}}",
            field.prime(),
            field.element_bytes() / 8,
        )
    };
    let offset = (text(0).len() + 1).next_multiple_of(64);
    let mut bytes = text(offset).into_bytes();
    bytes.resize(offset - 1, b' ');
    bytes.push(b'\n');
    bytes
}

fn format_error(path: &Path, reason: String) -> Error {
    Error::Format { path: path.to_owned(), reason }
}
