//! Payloads of those encrypted records whose inner product with an encrypted query exceeds 0.8, or how many there are.
//!
//! The library's [`Search`] does it, on its [`Database`] of files: records column by column, two to a slot, a query in one
//! ciphertext. A payload of seven numbers and a mark that is 1 travels as four ciphertexts for each half of a block, two
//! numbers to a slot; what comes back is the payload times 1 where a record is found, and times 0 elsewhere.
//!
//! Records are read and computed on block by block: none of the stages holds the data set, or its encryption.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use synchromesh::ckks::{Ciphertext, Ckks, Context};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{SecretKey, Security};
use synchromesh::search::{Database, LEVELS, Search};
use synchromesh::session::Session;

/// Records are found above this inner product, surely so outside the gap.
pub const THRESHOLD: f64 = 0.8;

/// Distance from the threshold within which a record may be found or not.
pub const GAP: f64 = 0.01;

/// Numbers of a payload, each from 0 to 511.
pub const PAYLOAD: usize = 7;

/// How far what is found may be from 1 that numbers below 512 are told apart.
const TOLERANCE: f64 = 1.0 / (4.0 * LEVELS as f64);

/// Names of the sizes, their records and coordinates: the harness's, and one that tests run.
const SIZES: [(&str, usize, usize); 5] = [
    ("toy", 1000, 128),
    ("small", 50_000, 128),
    ("medium", 1_000_000, 256),
    ("large", 20_000_000, 512),
    ("tiny", 60, 5),
];

/// One run of a stage: its size, what is asked for, and its folders under the root of the harness's checkout.
pub struct Stage {
    /// How many records there are.
    pub records: usize,
    /// Whether they are counted, and not fetched.
    pub count_only: bool,
    /// What is searched, and how.
    pub search: Search,
    datasets: PathBuf,
    io: PathBuf,
}

impl Stage {
    /// That of the arguments: STAGE SIZE [--seed S] [--count_only].
    pub fn from_args() -> Result<Self> {
        let arguments: Vec<String> = std::env::args().skip(2).collect();
        let wrong = "the stage is followed by the size's number: 0 toy, 1 small, 2 medium, 3 large";
        let number: usize = arguments.first().and_then(|size| size.parse().ok()).context(wrong)?;
        let &(name, records, dimension) = SIZES.get(number).context(wrong)?;
        let count_only = arguments.iter().any(|argument| argument == "--count_only");
        let marks = Search::new(dimension, THRESHOLD, GAP).within(TOLERANCE);
        let search = if count_only { marks } else { marks.carrying(PAYLOAD) };
        let (datasets, io) = (Path::new("datasets").join(name), Path::new("io").join(name));
        Ok(Self { records, count_only, search, datasets, io })
    }

    /// Bytes `from` to `to` of a file of the data set, of which a record has so many; refused if it has not all records.
    fn part(&self, file: &str, width: usize, from: usize, to: usize) -> Result<Vec<u8>> {
        let path = self.datasets.join(file);
        let read = || -> Result<Vec<u8>> {
            let mut opened = File::open(&path)?;
            let (length, expected) = (opened.metadata()?.len(), (self.records * width) as u64);
            ensure!(length == expected, "it has {length} bytes, where {} records take {expected}", self.records);
            opened.seek(SeekFrom::Start((from * width) as u64))?;
            let mut bytes = vec![0; (to - from) * width];
            opened.read_exact(&mut bytes)?;
            Ok(bytes)
        };
        read().with_context(|| format!("cannot read {}", path.display()))
    }

    /// Coordinates of some of the records, one record after another; refused unless they are unit vectors.
    pub fn vectors(&self, from: usize, to: usize) -> Result<Vec<f32>> {
        let vectors = floats(&self.part("db.bin", 4 * self.search.dimension, from, to)?)?;
        self.search.check_records(from, &vectors)?;
        Ok(vectors)
    }

    /// Payloads of some of the records, if they are wanted; refused unless they are numbers from 0 to 511.
    pub fn payloads(&self, from: usize, to: usize) -> Result<Vec<u16>> {
        if self.count_only {
            return Ok(Vec::new());
        }
        let bytes = self.part("payloads.bin", 2 * PAYLOAD, from, to)?;
        let number = |(i, &bytes): (usize, &[u8; 2])| {
            let (number, record) = (i16::from_le_bytes(bytes), from + i / PAYLOAD);
            let own = u16::try_from(number).ok().filter(|&number| number < LEVELS);
            own.with_context(|| format!("payloads are numbers from 0 to 511, and record {record} has {number}"))
        };
        bytes.as_chunks().0.iter().enumerate().map(number).collect()
    }

    /// The query's coordinates; refused unless it is a unit vector.
    pub fn query(&self) -> Result<Vec<f64>> {
        let path = self.datasets.join("query.bin");
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let query: Vec<f64> = floats(&bytes)?.into_iter().map(f64::from).collect();
        self.search.check_query(&query)?;
        Ok(query)
    }

    /// The folder of the encrypted records.
    pub fn database(&self) -> PathBuf {
        self.io.join("encrypted")
    }

    /// The encrypted records, as the server has them.
    pub fn open(&self) -> Result<Database> {
        let database = Database::open(&self.database())?;
        let (found, wanted) = ((database.records(), *database.search()), (self.records, self.search));
        ensure!(found == wanted, "the encrypted records are {found:?}, not {wanted:?}: encrypt the data set again");
        Ok(database)
    }

    /// A file under io, whose folder is made if it is not there.
    pub fn io(&self, folder: &str, file: &str) -> Result<PathBuf> {
        let folder = self.io.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder.join(file))
    }

    /// The smallest parameters of 128 bits of security at which the server's circuit runs.
    pub fn planned(&self) -> Result<Plan> {
        Ok(self.search.plan(Security::Bits128)?)
    }

    /// The session of the plan that the key generation chose.
    pub fn session(&self) -> Result<Session<Ckks>> {
        let text = fs::read_to_string(self.io("keys", "plan.json")?).context("run client_key_generation first")?;
        Ok(Plan::from_json(&text)?.open::<Ckks>()?)
    }

    /// The client's key.
    pub fn secret(&self, session: &Session<Ckks>) -> Result<SecretKey> {
        Ok(SecretKey::from_bytes(session.rlwe(), &fs::read(self.io("keys", "secret.key")?)?, None)?)
    }

    /// A ciphertext in a file. The client is the one to be harmed by false certificates, and it wrote the server's itself.
    pub fn read(&self, context: &Context, folder: &str, file: &str) -> Result<Ciphertext> {
        let bytes = fs::read(self.io(folder, file)?)?;
        Ok(Ciphertext::from_bytes(context, &bytes, None, Trust::Certificate)?)
    }
}

/// The file of a reply for a block.
#[must_use]
pub fn reply_file(block: usize, reply: usize) -> String {
    format!("reply_{block}_{reply}")
}

/// Little-endian numbers in single precision.
pub fn floats(bytes: &[u8]) -> Result<Vec<f32>> {
    let (numbers, []) = bytes.as_chunks::<4>() else { bail!("a file of vectors ends within a number") };
    Ok(numbers.iter().map(|&number| f32::from_le_bytes(number)).collect())
}
