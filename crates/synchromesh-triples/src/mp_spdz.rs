//! The preprocessing files that MP-SPDZ reads: `Params-Data`, `Player-MAC-Keys-p-P<i>`, `Matrix-<r>x<k>x<c>-P<i>`,
//! `Triples-p-P<i>`, `Squares-p-P<i>`, `Bits-p-P<i>`, `Inverses-p-P<i>`, and `Inputs-p-P<i>-<j>` for the inputs of party j.
//! Numbers that nobody knows have no file: MP-SPDZ adds up an input mask of each party.
//!
//! With a file for each thread (`--file-prep-per-thread`) names end with `-T<thread>`.
//!
//! A directory is `<n>-p-<bits>`, for n parties and a prime of so many bits. A file of triples is a header (a length in
//! eight bytes, the tag `SPDZ gfp`, the prime, big-endian, the Montgomery flag, the own share of the MAC key) and then the
//! shares: of each triple all of A, row by row, then B, then C, and of each element the share of its value and the share of its MAC.
//! Of tuples it is the same, number by number; the owner of input masks has after each share the number itself.
//! An element x is written as x R mod p with R = 2^(64 words), least significant word first.
//!
//! Beside the key and beside each file of triples goes a file `.seal` that MP-SPDZ does not look at: the digest of what was
//! written, and where the record of the MAC key is. What is read here is read with it, and not if others may know the key. MP-SPDZ
//! itself reads its files all the same: delete those that a failed run names.

use std::fs;
use std::path::{Path, PathBuf};

use num_bigint::BigUint;
use synchromesh::rlwe::file::{self, Access, Existing};
use synchromesh_parties::session::numbered;
use zeroize::Zeroizing;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::field::{Element, Field};
use crate::mac::MacKeyShare;
use crate::mac::seal::Seal;
use crate::matrix::Matrix;
use crate::share::{MatrixTriple, Shape, Shared};
use crate::tuples::{Kind, Tuples};

/// Name and type of domain, without a terminator.
const TAG: &[u8] = b"SPDZ gfp";

/// Largest file read, in bytes.
const LARGEST: u64 = 1 << 36;

/// One party's directory of preprocessing files.
#[derive(Clone, Debug)]
pub struct Preprocessing {
    directory: PathBuf,
    field: Field,
    party: usize,
    parties: usize,
    thread: Option<usize>,
}

impl Preprocessing {
    /// The directory `<root>/<parties>-p-<bits>` of this party; `root` is `Player-Data` where MP-SPDZ runs.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Parties`] unless there are 2 to 64 parties and this is one of them.
    pub fn new(root: &Path, field: &Field, party: usize, parties: usize) -> Result<Self> {
        numbered(party, parties)?;
        let directory = root.join(format!("{parties}-p-{}", field.bits()));
        Ok(Self { directory, field: field.clone(), party, parties, thread: None })
    }

    /// The one directory of this party below `root`, of whatever number of parties and prime.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Format`] unless there is one, and as [`Field::new`] and [`Self::new`].
    pub fn found(root: &Path, party: usize) -> Result<Self> {
        let mut found: Vec<(PathBuf, usize)> = Vec::new();
        for entry in fs::read_dir(root).map_err(|e| Error::format(root, e.to_string()))? {
            let path = entry.map_err(|e| Error::format(root, e.to_string()))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if let Some((parties, bits)) = name.split_once("-p-")
                && let (Ok(parties), Ok(_)) = (parties.parse(), bits.parse::<u32>())
            {
                found.push((path, parties));
            }
        }
        let [(directory, parties)] = &found[..] else {
            let reason = format!("{} directories of preprocessing mod p are there, and not one", found.len());
            return Err(Error::format(root, reason));
        };
        let path = directory.join("Params-Data");
        let text = String::from_utf8_lossy(&file::read(&path, 4096)?).into_owned();
        let prime = text.lines().next().unwrap_or_default();
        let own = Self::new(root, &prime.parse()?, party, *parties)?;
        match own.directory == *directory {
            true => Ok(own),
            false => Err(Error::format(&path, "its prime has another number of bits than its directory says")),
        }
    }

    /// The same party's directory below another root.
    pub(crate) fn at(&self, root: &Path) -> Result<Self> {
        Self::new(root, &self.field, self.party, self.parties)
    }

    /// The same directory with the files of one thread of a program.
    #[must_use]
    pub fn of_thread(&self, thread: usize) -> Self {
        Self { thread: Some(thread), ..self.clone() }
    }

    /// What names of files of shares end with.
    fn suffix(&self) -> String {
        self.thread.map(|thread| format!("-T{thread}")).unwrap_or_default()
    }

    /// Where the files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where triples of a shape are: `Triples-p-P<i>` for single products, else `Matrix-<r>x<k>x<c>-P<i>`.
    #[must_use]
    pub fn triples_path(&self, shape: Shape) -> PathBuf {
        let (party, suffix) = (self.party, self.suffix());
        self.directory.join(match (shape.a(), shape.c()) {
            ((1, 1), (1, 1)) => format!("Triples-p-P{party}{suffix}"),
            _ => format!("Matrix-{shape}-P{party}{suffix}"),
        })
    }

    /// Where tuples of a kind are, those for the inputs of one party if they mask inputs.
    #[must_use]
    pub fn tuples_path(&self, kind: Kind, owner: Option<usize>) -> PathBuf {
        let (word, party) = (kind.word(), self.party);
        let of = owner.map(|owner| format!("-{owner}")).unwrap_or_default();
        let (first, rest) = (word[..1].to_uppercase(), &word[1..]);
        self.directory.join(format!("{first}{rest}-p-P{party}{of}{}", self.suffix()))
    }

    /// All files of a kind: one, or one for each party's inputs.
    #[must_use]
    pub fn tuples_paths(&self, kind: Kind) -> Vec<PathBuf> {
        match kind {
            Kind::Inputs => (0..self.parties).map(|owner| self.tuples_path(kind, Some(owner))).collect(),
            _ => vec![self.tuples_path(kind, None)],
        }
    }

    /// Whether files under this key can be written here: the directory has no prime and no key, or the same ones.
    /// Nothing is written.
    ///
    /// # Errors
    /// [`Error::OtherPrime`], [`Error::OtherMacKey`] for other ones, as [`read_key`](Self::read_key).
    pub fn check_key(&self, key: &MacKeyShare) -> Result<()> {
        self.check_prime()?;
        let path = self.key_path();
        if !path.exists() {
            return Ok(());
        }
        // Another share is another key, whether or not it has a record.
        if self.parse_key()?.0 != key.secret() || self.read_key()?.name()? != key.name()? {
            return Err(Error::OtherMacKey { path });
        }
        Ok(())
    }

    /// The MAC key in this directory, if there is one.
    ///
    /// # Errors
    /// [`Error::OtherPrime`] if the directory is of another prime, and as [`read_key`](Self::read_key).
    pub fn own_key(&self) -> Result<Option<MacKeyShare>> {
        self.check_prime()?;
        match self.key_path().exists() {
            true => self.read_key().map(Some),
            false => Ok(None),
        }
    }

    /// The MAC key in this directory, which must have one; a record is begun for it if it has none, as in
    /// [`adopt_key`](Self::adopt_key).
    ///
    /// # Errors
    /// As [`read_key`](Self::read_key).
    pub fn known_key(&self) -> Result<MacKeyShare> {
        match Seal::path(&self.key_path()).exists() {
            true => self.read_key(),
            false => self.adopt_key(&[]),
        }
    }

    /// Whether a name is that of a file of this party's shares, of any thread.
    pub(crate) fn is_share_file(&self, name: &str) -> bool {
        let name =
            name.rsplit_once("-T").filter(|(_, thread)| thread.parse::<usize>().is_ok()).map_or(name, |(rest, _)| rest);
        let own = format!("-P{}", self.party);
        let mut kinds = Kind::ALL.iter().flat_map(|kind| self.tuples_paths(*kind));
        let is_tuples = kinds.any(|path| path.file_name().is_some_and(|known| known == name));
        let sides = name.strip_prefix("Matrix-").and_then(|rest| rest.strip_suffix(&own));
        is_tuples || sides.is_some_and(|sides| sides.parse::<Shape>().is_ok())
    }

    /// All files of this party's shares that are there, by name.
    pub(crate) fn present(&self) -> Result<Vec<PathBuf>> {
        let fail = |e: std::io::Error| Error::format(&self.directory, e.to_string());
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(fail)?,
        };
        let mut all = Vec::new();
        for entry in entries {
            let path = entry.map_err(fail)?.path();
            if path.file_name().is_some_and(|name| self.is_share_file(&name.to_string_lossy())) {
                all.push(path);
            }
        }
        all.sort();
        Ok(all)
    }

    /// The mark that what is here was given to a program.
    pub(crate) fn used_mark(&self) -> PathBuf {
        self.directory.join(format!("used-P{}", self.party))
    }

    /// Whether nothing here was given to a program, or nothing of it is left.
    ///
    /// # Errors
    /// [`Error::Used`].
    pub(crate) fn require_unused(&self) -> Result<()> {
        let path = self.used_mark();
        if path.exists() && !self.present()?.is_empty() { Err(Error::Used { path }) } else { Ok(()) }
    }

    /// Takes the mark away before new files are written, where nothing of the old ones is left.
    pub(crate) fn begin_anew(&self) -> Result<()> {
        self.require_unused()?;
        let path = self.used_mark();
        if path.exists() { Ok(file::remove(&path)?) } else { Ok(()) }
    }

    /// Those that are there, each of which is what was written under the key that is there.
    ///
    /// # Errors
    /// As [`read_triples`](Self::read_triples), for the first that is not.
    pub(crate) fn share_files(&self) -> Result<Vec<PathBuf>> {
        let (key, files) = (self.read_key()?, self.present()?);
        files.iter().try_for_each(|file| self.read_whole(&key, file).map(drop))?;
        Ok(files)
    }

    /// Writes the prime and the key for MP-SPDZ, unless they are there, and no record: the key has one elsewhere.
    pub(crate) fn place_key(&self, key: &MacKeyShare) -> Result<()> {
        file::create_private_directory(&self.directory)?;
        self.check_prime()?;
        let path = self.key_path();
        if path.exists() {
            return match self.parse_key()?.0 == key.secret() {
                true => Ok(()),
                false => Err(Error::OtherMacKey { path }),
            };
        }
        key.homes()?.iter().try_for_each(|home| home.wrote(&path))?;
        self.write_once("Params-Data", self.params().as_bytes(), Access::Public)?;
        self.write_once(&self.key_name(), self.key_text(key).as_bytes(), Access::Secret)
    }

    fn key_text(&self, key: &MacKeyShare) -> Zeroizing<String> {
        Zeroizing::new(format!("{}\n{}\n", self.parties, key.secret().to_biguint()))
    }

    fn check_prime(&self) -> Result<()> {
        let path = self.directory.join("Params-Data");
        match file::read(&path, 4096) {
            Err(file::FileError::NotFound { .. }) => Ok(()),
            Ok(found) if found == self.params().as_bytes() => Ok(()),
            Ok(found) => {
                let text = String::from_utf8_lossy(&found);
                let found = text.lines().next().unwrap_or_default().chars().take(80).collect();
                Err(Error::OtherPrime { path, found, wanted: self.field.prime().to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    fn params(&self) -> String {
        format!("{}\n1\n", self.field.prime())
    }

    /// Writes the prime and this party's share of the MAC key (mode 0600).
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if a file cannot be written; [`Error::OtherPrime`] and [`Error::OtherMacKey`]
    /// if the directory holds another prime or key.
    pub fn write_key(&self, key: &MacKeyShare) -> Result<()> {
        file::create_private_directory(&self.directory)?;
        self.check_prime()?;
        self.write_once("Params-Data", self.params().as_bytes(), Access::Public)?;
        let (text, path) = (self.key_text(key), self.key_path());
        if !path.exists() {
            Seal::write(&path, *blake3::hash(text.as_bytes()).as_bytes(), key, None)?;
        }
        self.write_once(&self.key_name(), text.as_bytes(), Access::Secret)?;
        if Seal::open(&path)?.0.name == key.name()? {
            return Ok(());
        }
        Err(Error::OtherMacKey { path })
    }

    /// Begins a record for a MAC key that was written by others, such as MP-SPDZ, or by a former version: whoever calls
    /// this says that no check under this key has failed in any run, for nobody else knows. Its triples are adopted
    /// with it.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if the key has a seal already, and as [`read_key`](Self::read_key).
    pub fn adopt_key(&self, shapes: &[Shape]) -> Result<MacKeyShare> {
        let path = self.key_path();
        if Seal::path(&path).exists() {
            return Err(file::FileError::Exists { path: Seal::path(&path) }.into());
        }
        let (share, digest) = self.parse_key()?;
        let key = MacKeyShare::new(share);
        Seal::write(&path, digest, &key, None)?;
        for &shape in shapes {
            let path = self.triples_path(shape);
            let digest = *blake3::hash(&Zeroizing::new(file::read(&path, LARGEST)?)).as_bytes();
            Seal::write(&path, digest, &key, None)?;
        }
        Ok(key)
    }

    fn key_name(&self) -> String {
        format!("Player-MAC-Keys-p-P{}", self.party)
    }

    /// Where this party's share of the MAC key is.
    #[must_use]
    pub fn key_path(&self) -> PathBuf {
        self.directory.join(self.key_name())
    }

    /// Writes triples of one shape; they are consumed, and an existing file stays, so that no triple is given out twice.
    /// MP-SPDZ itself begins every run at the start of the file: remove a file once a program has run on it.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if the file exists or cannot be written, [`Error::Shape`] for a triple of
    /// another shape.
    pub fn write_triples(&self, key: &MacKeyShare, shape: Shape, triples: Vec<MatrixTriple>) -> Result<PathBuf> {
        self.write_triples_of((key, None), shape, triples)
    }

    /// The same for triples of a session.
    pub(crate) fn write_triples_of(
        &self,
        (key, session): (&MacKeyShare, Option<[u8; 32]>),
        shape: Shape,
        triples: Vec<MatrixTriple>,
    ) -> Result<PathBuf> {
        let codec = Codec::montgomery(&self.field);
        let mut bytes = Zeroizing::new(Vec::with_capacity(codec.triple_bytes(shape) * triples.len()));
        codec.write_triples(shape, &triples, &mut bytes)?;
        self.write_shares((key, session), self.triples_path(shape), &bytes)
    }

    /// Writes tuples; they are consumed, and an existing file stays.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if the file exists or cannot be written, [`Error::MacKeyBurnt`] for a key that
    /// others may know.
    pub fn write_tuples(&self, key: &MacKeyShare, tuples: Tuples) -> Result<PathBuf> {
        self.write_tuples_of((key, None), tuples)
    }

    /// The same for tuples of a session.
    pub(crate) fn write_tuples_of(&self, key: (&MacKeyShare, Option<[u8; 32]>), tuples: Tuples) -> Result<PathBuf> {
        let codec = Codec::montgomery(&self.field);
        let numbers = 2 * tuples.kind().width() + usize::from(tuples.clear().is_some());
        let mut bytes = Zeroizing::new(Vec::with_capacity(numbers * tuples.count() * self.field.element_bytes()));
        for index in 0..tuples.count() {
            for part in tuples.parts() {
                codec.write(part.value().entries()[index], &mut bytes);
                codec.write(part.mac().entries()[index], &mut bytes);
            }
            if let Some(clear) = tuples.clear() {
                codec.write(clear.entries()[index], &mut bytes);
            }
        }
        let path = self.tuples_path(tuples.kind(), tuples.owner());
        drop(tuples);
        self.write_shares(key, path, &bytes)
    }

    /// Writes a file of shares, with its header before them and its seal beside it.
    fn write_shares(
        &self,
        (key, session): (&MacKeyShare, Option<[u8; 32]>),
        path: PathBuf,
        shares: &[u8],
    ) -> Result<PathBuf> {
        key.usable()?;
        let header = self.header(key);
        let mut bytes = Zeroizing::new(Vec::with_capacity(header.len() + shares.len()));
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(shares);
        file::create_private_directory(&self.directory)?;
        if path.exists() {
            return Err(file::FileError::Exists { path }.into());
        }
        Seal::write(&path, *blake3::hash(&bytes).as_bytes(), key, session)?;
        file::write(&path, &bytes, Access::Secret, Existing::Keep)?;
        Ok(path)
    }

    /// This party's share of the MAC key.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if there is no such file, [`synchromesh_parties::Error::Format`] if it is
    /// not one of this prime and number of parties, or not what was written; [`Error::Unbound`] without its seal or
    /// record; [`Error::MacKeyBurnt`] if others may know it.
    pub fn read_key(&self) -> Result<MacKeyShare> {
        let (share, digest) = self.parse_key()?;
        let (seal, homes) = Seal::open(&self.key_path())?;
        if seal.digest != digest {
            return Err(Error::format(&self.key_path(), "it is not what was written: its seal has another digest"));
        }
        Ok(MacKeyShare::of(share, seal.name, homes))
    }

    /// The share in the file, and the file's digest.
    fn parse_key(&self) -> Result<(Element, [u8; 32])> {
        self.check_prime()?;
        let path = self.key_path();
        let bytes = Zeroizing::new(file::read(&path, 4096)?);
        let text = std::str::from_utf8(&bytes).map_err(|_| Error::format(&path, "it is not text"))?;
        let mut words = text.split_whitespace();
        let parties = words.next().and_then(|word| word.parse::<usize>().ok());
        let share = words.next().and_then(|word| BigUint::parse_bytes(word.as_bytes(), 10));
        match (parties, share, words.next()) {
            (Some(parties), Some(share), None) if parties == self.parties => {
                Ok((self.field.element(&share)?, *blake3::hash(&bytes).as_bytes()))
            }
            _ => Err(Error::format(&path, format!("it is not a number {} and a share modulo p", self.parties))),
        }
    }

    /// All triples of a shape.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if there is no such file, [`synchromesh_parties::Error::Format`] if header,
    /// length or elements are not as written; [`Error::Unbound`] without its seal or the MAC key's record;
    /// [`Error::MacKeyBurnt`] and [`Error::Unmatched`] for triples that are void.
    pub fn read_triples(&self, key: &MacKeyShare, shape: Shape) -> Result<Vec<MatrixTriple>> {
        let codec = Codec::montgomery(&self.field);
        let triple = codec.triple_bytes(shape);
        let body = self.read_shares(key, &self.triples_path(shape), triple)?;
        body.chunks_exact(triple).map(|bytes| codec.read_triple(shape, bytes)).collect()
    }

    /// All tuples of a kind, those for the inputs of one party if they mask inputs.
    ///
    /// # Errors
    /// As [`read_triples`](Self::read_triples), and [`Error::Shape`] for a file without tuples.
    pub fn read_tuples(&self, key: &MacKeyShare, kind: Kind, owner: Option<usize>) -> Result<Tuples> {
        let (codec, width) = (Codec::montgomery(&self.field), self.field.element_bytes());
        let clear = owner == Some(self.party);
        let tuple = (2 * kind.width() + usize::from(clear)) * width;
        let body = self.read_shares(key, &self.tuples_path(kind, owner), tuple)?;
        let row = |place: usize| {
            let elements = body.chunks_exact(tuple).map(|tuple| codec.read(&tuple[place * width..][..width]));
            let elements = elements.collect::<Result<Vec<Element>>>()?;
            Matrix::new(1, elements.len(), elements)
        };
        let mut parts = Vec::with_capacity(kind.width());
        for place in 0..kind.width() {
            parts.push(Shared::new(row(2 * place)?, row(2 * place + 1)?)?);
        }
        match (owner, parts.pop()) {
            (Some(owner), Some(masks)) => {
                Tuples::inputs(owner, masks, clear.then(|| row(2 * kind.width())).transpose()?)
            }
            (_, last) => Tuples::new(kind, parts.into_iter().chain(last).collect()),
        }
    }

    /// The shares in a file, each of so many bytes.
    fn read_shares(&self, key: &MacKeyShare, path: &Path, each: usize) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = self.read_whole(key, path)?;
        let body = &bytes[self.header(key).len()..];
        if body.len() % each != 0 {
            let reason = format!("{} bytes of shares are not whole triples or tuples of {each}", body.len());
            return Err(Error::format(path, reason));
        }
        Ok(Zeroizing::new(body.to_vec()))
    }

    /// A file of shares with its header, which is that of this prime and key, as it was written.
    pub(crate) fn read_whole(&self, key: &MacKeyShare, path: &Path) -> Result<Zeroizing<Vec<u8>>> {
        let bytes = Zeroizing::new(file::read(path, LARGEST)?);
        if !bytes.starts_with(&self.header(key)) {
            return Err(Error::format(path, "its header has another prime or MAC key"));
        }
        if Seal::open(path)?.0.digest != *blake3::hash(&bytes).as_bytes() {
            return Err(Error::format(path, "it is not what was written: its seal has another digest"));
        }
        Ok(bytes)
    }

    /// What a file of shares begins with.
    fn header(&self, key: &MacKeyShare) -> Zeroizing<Vec<u8>> {
        let prime = self.field.prime().to_bytes_be();
        let length = TAG.len() + 1 + 4 + prime.len() + 4 + self.field.element_bytes();
        let mut bytes = Zeroizing::new(Vec::with_capacity(8 + length));
        bytes.extend_from_slice(&(length as u64).to_le_bytes());
        bytes.extend_from_slice(TAG);
        bytes.push(0);
        bytes.extend_from_slice(&(prime.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&prime);
        bytes.extend_from_slice(&1u32.to_le_bytes());
        Codec::montgomery(&self.field).write(key.secret(), &mut bytes);
        bytes
    }

    /// Writes a file, or accepts the one that is there if it is the same.
    fn write_once(&self, name: &str, bytes: &[u8], access: Access) -> Result<()> {
        let path = self.directory.join(name);
        match file::write(&path, bytes, access, Existing::Keep) {
            Err(file::FileError::Exists { .. }) => {
                let same = *Zeroizing::new(file::read(&path, 4096)?) == bytes;
                if same { Ok(()) } else { Err(Error::OtherMacKey { path }) }
            }
            other => Ok(other?),
        }
    }
}
