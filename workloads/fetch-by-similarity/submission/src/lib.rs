//! Payloads of those encrypted records whose inner product with an encrypted query exceeds 0.8, or how many there are.
//!
//! The library's [`Search`] does it: records column by column, two to a slot, a query in one ciphertext. A payload of seven
//! numbers and a mark that is 1 travels as four ciphertexts for each half of a block, two numbers to a slot; what comes back
//! is the payload times 1 where a record is found, and times 0 elsewhere. All is encrypted under the secret key, so that one
//! half of each ciphertext is a seed.
//!
//! Records are read and computed on block by block: none of the stages holds the data set, or its encryption.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use synchromesh::ckks::{Ciphertext, Ckks, Context, Plaintext};
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{Randomness, SecretKey, Security};
use synchromesh::search::Search;
use synchromesh::session::Session;

/// Records are found above this inner product, surely so outside the gap.
pub const THRESHOLD: f64 = 0.8;

/// Distance from the threshold within which a record may be found or not.
pub const GAP: f64 = 0.01;

/// Numbers of a payload, each from 0 to 511.
pub const PAYLOAD: usize = 7;
const LEVELS: f64 = 512.0;

/// How far what is found may be from 1 that numbers below 512 are told apart.
const TOLERANCE: f64 = 1.0 / (4.0 * LEVELS);

/// Ciphertexts of payloads for each half of a block.
pub const PAIRS: usize = 4;

/// The level that payloads are encrypted at: one product is left.
pub const CARRIED: usize = 1;

/// Bound on a pair of numbers below 1.
pub const PAIR_BOUND: f64 = 1.5;

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
        let search = Search::new(dimension, THRESHOLD, GAP).within(TOLERANCE);
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
        self.search.check_records(&vectors).with_context(|| format!("of the records from {from}"))?;
        Ok(vectors)
    }

    /// Payloads of some of the records; refused unless they are numbers from 0 to 511.
    pub fn payloads(&self, from: usize, to: usize) -> Result<Vec<[i16; PAYLOAD]>> {
        let payloads = payloads(&self.part("payloads.bin", 2 * PAYLOAD, from, to)?)?;
        let wrong = payloads.iter().position(|payload| payload.iter().any(|number| !(0..512).contains(number)));
        match wrong {
            Some(i) => bail!("payloads are numbers from 0 to 511, and record {} has {:?}", from + i, payloads[i]),
            None => Ok(payloads),
        }
    }

    /// The query's coordinates; refused unless it is a unit vector.
    pub fn query(&self) -> Result<Vec<f64>> {
        let path = self.datasets.join("query.bin");
        let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let query: Vec<f64> = floats(&bytes)?.into_iter().map(f64::from).collect();
        self.search.check_query(&query)?;
        Ok(query)
    }

    /// The records in parts of so many, each by its number and its ends.
    pub fn parts(&self, size: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let records = self.records;
        (0..records.div_ceil(size)).map(move |i| (i, i * size, records.min((i + 1) * size)))
    }

    /// A file under io, whose folder is made if it is not there.
    pub fn io(&self, folder: &str, file: &str) -> Result<PathBuf> {
        let folder = self.io.join(folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder.join(file))
    }

    /// The smallest parameters of 128 bits of security at which the server's circuit runs.
    pub fn planned(&self) -> Result<Plan> {
        Ok(self.search.plan(!self.count_only, Security::Bits128)?)
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

/// Encrypts under the secret key, and writes one half and a seed.
pub fn encrypt_to(
    path: &Path,
    context: &Context,
    secret: &SecretKey,
    message: &Plaintext,
    level: usize,
    randomness: &mut Randomness,
) -> Result<()> {
    let (ciphertext, seed) = context.encrypt_with_secret(secret, message, level, randomness)?;
    fs::write(path, ciphertext.to_seeded_bytes(context, &seed, None)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The file of a column of a block, or of a pair of payloads of its halves.
#[must_use]
pub fn column_file(block: usize, column: usize) -> String {
    format!("column_{block}_{column}")
}

/// The file of a pair of payloads of half a block, there and back.
#[must_use]
pub fn pair_file(block: usize, half: usize, pair: usize) -> String {
    format!("payload_{block}_{half}_{pair}")
}

/// Little-endian numbers in single precision.
pub fn floats(bytes: &[u8]) -> Result<Vec<f32>> {
    let (numbers, []) = bytes.as_chunks::<4>() else { bail!("a file of vectors ends within a number") };
    Ok(numbers.iter().map(|&number| f32::from_le_bytes(number)).collect())
}

/// Payloads, one record after another.
pub fn payloads(bytes: &[u8]) -> Result<Vec<[i16; PAYLOAD]>> {
    let (numbers, []) = bytes.as_chunks::<{ 2 * PAYLOAD }>() else { bail!("a file of payloads ends within one") };
    let each =
        |record: &[u8; 2 * PAYLOAD]| std::array::from_fn(|i| i16::from_le_bytes([record[2 * i], record[2 * i + 1]]));
    Ok(numbers.iter().map(each).collect())
}

/// Two numbers of a payload as they are encrypted; the last pair's second is the mark.
#[must_use]
pub fn pair(payload: &[i16; PAYLOAD], pair: usize) -> [f64; 2] {
    [2 * pair, 2 * pair + 1].map(|i| payload.get(i).map_or(1.0, |&number| f64::from(number) / LEVELS))
}

/// A payload from its decrypted pairs, if its record was found.
///
/// Outside the gap the mark is 1 as nearly as numbers are told apart. Within it payload and mark are smaller alike, so that
/// the payload is right if its record counts as found.
#[must_use]
pub fn payload(pairs: [[f64; 2]; PAIRS]) -> Option<[i16; PAYLOAD]> {
    let [.., mark] = pairs[PAIRS - 1];
    let scale = if (mark - 1.0).abs() < TOLERANCE { LEVELS } else { LEVELS / mark };
    (mark > 0.5).then(|| std::array::from_fn(|i| (pairs[i / 2][i % 2] * scale).round() as i16))
}
