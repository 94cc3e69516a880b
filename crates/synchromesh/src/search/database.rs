//! An encrypted data set in a directory: a file for each column of a block of records, and for each pair of numbers that
//! half of them carry.
//!
//! Files are written one after another and read when they are multiplied, so that neither the data set nor its encryption
//! need fit in memory. `database.json` says what there is; it is written last, so that a directory without it holds what
//! was begun and not ended. All is encrypted under the secret key: a file is one half of a ciphertext and a seed.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use synchromesh_rlwe::codec::Trust;
use synchromesh_rlwe::file::{self, Access, Existing, FileError};
use synchromesh_rlwe::ring::Backend;
use synchromesh_rlwe::wire::EnvelopeKey;
use synchromesh_rlwe::{Randomness, SecretKey};

use super::{CARRIED_LEVEL, Reply, Search};
use crate::bundle::{BundleError, MAX_FILE_BYTES};
use crate::ckks::{Ciphertext, Context, Evaluator};
use crate::error::{Error, Result as OwnResult};

/// The file that says what there is.
const HEAD: &str = "database.json";

/// Bytes of a file beyond its residues, at most.
const HEADER_BYTES: u64 = 4096;

type Result<T> = std::result::Result<T, BundleError>;

/// What a long work calls after each step, and ends if it fails.
pub type Step<'a> = &'a (dyn Fn() -> OwnResult<()> + Sync);

/// An encrypted data set in a directory.
#[derive(Debug, Clone)]
pub struct Database {
    directory: PathBuf,
    head: Head,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    search: Search,
    records: usize,
}

/// A file of a block.
#[derive(Debug, Clone, Copy)]
enum Part {
    Column(usize),
    Pair { half: usize, pair: usize },
}

impl Database {
    /// A data set of so many records, to be [`encrypted`](Self::encrypt) block by block and [`finished`](Self::finish).
    ///
    /// # Errors
    /// [`Error::Argument`] for no records or a search that cannot be, [`FileError::Exists`] where there is one already, and
    /// when the directory cannot be made.
    pub fn create(directory: &Path, search: Search, records: usize) -> Result<Self> {
        search.beyond()?;
        if records == 0 {
            return Err(Error::argument("a data set of no records").into());
        }
        file::create_private_directory(directory)?;
        file::permit(&directory.join(HEAD), Existing::Keep)?;
        Ok(Self { directory: directory.to_owned(), head: Head { search, records } })
    }

    /// The data set in a directory.
    ///
    /// # Errors
    /// [`FileError::NotFound`] where there is none, or none that was finished; [`BundleError::Unreadable`].
    pub fn open(directory: &Path) -> Result<Self> {
        let bytes = file::read(&directory.join(HEAD), 1 << 16)?;
        let bad = |reason: String| BundleError::Unreadable { name: HEAD, reason };
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| bad(error.to_string()))?;
        head.search.beyond().map_err(|error| bad(error.to_string()))?;
        if head.records == 0 || head.records.checked_mul(head.search.dimension).is_none() {
            return Err(bad(format!("{} records", head.records)));
        }
        Ok(Self { directory: directory.to_owned(), head })
    }

    /// What it is for.
    #[must_use]
    pub const fn search(&self) -> &Search {
        &self.head.search
    }

    /// How many records it has.
    #[must_use]
    pub const fn records(&self) -> usize {
        self.head.records
    }

    /// How many blocks they are.
    #[must_use]
    pub fn blocks<B: Backend>(&self, context: &Context<B>) -> usize {
        self.head.records.div_ceil(Search::block(context))
    }

    /// The records of a block.
    #[must_use]
    pub fn of_block<B: Backend>(&self, context: &Context<B>, block: usize) -> Range<usize> {
        let size = Search::block(context);
        let end = |block: usize| block.saturating_mul(size).min(self.head.records);
        end(block)..end(block + 1)
    }

    /// Ciphertexts that come back for a block, each of one number or two to a slot.
    #[must_use]
    pub fn replies<B: Backend>(&self, context: &Context<B>, block: usize) -> usize {
        match self.head.search.reply {
            Reply::Scores | Reply::Marks => 1,
            Reply::Carried(numbers) => {
                self.of_block(context, block).len().div_ceil(context.params().slots()) * Search::pairs(numbers)
            }
        }
    }

    /// The files of a block.
    fn parts<B: Backend>(&self, context: &Context<B>, block: usize) -> Vec<Part> {
        let columns = (0..self.head.search.dimension).map(Part::Column);
        let Reply::Carried(numbers) = self.head.search.reply else { return columns.collect() };
        let pairs = Search::pairs(numbers);
        columns
            .chain((0..self.replies(context, block)).map(|i| Part::Pair { half: i / pairs, pair: i % pairs }))
            .collect()
    }

    fn path(&self, block: usize, part: Part) -> PathBuf {
        self.directory.join(match part {
            Part::Column(column) => format!("column_{block}_{column}"),
            Part::Pair { half, pair } => format!("carried_{block}_{half}_{pair}"),
        })
    }

    /// How many files a block has.
    #[must_use]
    pub fn files<B: Backend>(&self, context: &Context<B>, block: usize) -> usize {
        self.parts(context, block).len()
    }

    /// Bytes of all files, at most.
    ///
    /// # Errors
    /// None for a context of the search's plan.
    pub fn bytes<B: Backend>(&self, context: &Context<B>) -> Result<u64> {
        let (rlwe, top) = (context.rlwe().params(), context.params().top_level());
        let width = |level: usize| -> Result<u64> {
            let primes = rlwe.level(level).map_err(Error::from)?;
            let bits = |i: usize| u64::from(64 - rlwe.ring().moduli()[i].value().leading_zeros());
            Ok(HEADER_BYTES + (rlwe.n() as u64 * primes.iter().map(bits).sum::<u64>()).div_ceil(8))
        };
        let (column, pair) = (width(top)?, width(CARRIED_LEVEL.min(top))?);
        let columns = self.head.search.dimension as u64;
        let of = |block: usize| columns * column + (self.files(context, block) as u64 - columns) * pair;
        Ok((0..self.blocks(context)).map(of).sum())
    }

    /// Encrypts the records of a block, and the numbers below [`LEVELS`](super::LEVELS) that they carry, record after record,
    /// into files; authenticated under an envelope key where there is one. `step` is called after each file.
    ///
    /// # Errors
    /// As [`Search::check_records`] and [`Search::encode_carried`], [`Error::Argument`] for other records than the block has,
    /// `step`'s, and the files'.
    pub fn encrypt<B: Backend>(
        &self,
        context: &Context<B>,
        (secret, envelope): (&SecretKey<B>, Option<&EnvelopeKey>),
        block: usize,
        (records, carried): (&[f32], &[u16]),
        step: Step<'_>,
    ) -> Result<()> {
        let search = &self.head.search;
        let own = self.of_block(context, block);
        let numbers = if let Reply::Carried(numbers) = search.reply { numbers } else { 0 };
        if records.len() != own.len() * search.dimension || carried.len() != own.len() * numbers || own.is_empty() {
            let (count, more) = (records.len(), carried.len());
            return Err(Error::argument(format!(
                "{count} coordinates and {more} numbers carried for the {} records of block {block}",
                own.len()
            ))
            .into());
        }
        search.check_records(own.start, records)?;
        let write = |part: Part| -> Result<()> {
            let (message, level) = match part {
                Part::Column(column) => (search.encode_column(context, records, column)?, context.params().top_level()),
                Part::Pair { half, pair } => {
                    let width = context.params().slots() * numbers;
                    let own = &carried[half * width..carried.len().min((half + 1) * width)];
                    (Search::encode_carried(context, own, numbers, pair)?, CARRIED_LEVEL)
                }
            };
            let (made, seed) = context.encrypt_with_secret(secret, &message, level, &mut Randomness::from_os())?;
            let bytes = made.to_seeded_bytes(context, &seed, envelope)?;
            // What an earlier run left that got no further is written over.
            file::write(&self.path(block, part), &bytes, Access::Public, Existing::Replace)?;
            Ok(step()?)
        };
        context.rlwe().backend().threads().try_map(self.parts(context, block), write)?;
        Ok(())
    }

    /// Says that all blocks are there.
    ///
    /// # Errors
    /// As [`Self::require_whole`], and the file's.
    pub fn finish<B: Backend>(&self, context: &Context<B>) -> Result<()> {
        self.require_whole(context)?;
        let bad = |error: serde_json::Error| BundleError::Unreadable { name: HEAD, reason: error.to_string() };
        let bytes = serde_json::to_vec_pretty(&self.head).map_err(bad)?;
        Ok(file::write(&self.directory.join(HEAD), &bytes, Access::Public, Existing::Keep)?)
    }

    /// Refuses a data set that lacks a file, or has one cut short, before a query is answered for minutes.
    ///
    /// # Errors
    /// [`FileError`] with the path.
    pub fn require_whole<B: Backend>(&self, context: &Context<B>) -> Result<()> {
        let length = |path: &Path| match std::fs::metadata(path) {
            Ok(found) if found.is_file() => Ok(found.len()),
            _ => Err(FileError::NotFound { path: path.to_owned() }),
        };
        let mut expected = [None; 2];
        for block in 0..self.blocks(context) {
            for part in self.parts(context, block) {
                let path = self.path(block, part);
                let (kind, found) = (usize::from(matches!(part, Part::Pair { .. })), length(&path)?);
                if *expected[kind].get_or_insert(found) != found {
                    let what = "another size than the files beside it".to_owned();
                    return Err(FileError::Damaged { path, what }.into());
                }
            }
        }
        Ok(())
    }

    /// What a query, [`expanded`](Search::expanded), finds in a block: [`replies`](Self::replies) ciphertexts, of which `trust`
    /// says whether the files' certificates are believed. `step` is called after each file, and once when records are
    /// compared.
    ///
    /// # Errors
    /// `step`'s, the files', and as [`Search::found`].
    pub fn find<B: Backend>(
        &self,
        evaluator: &Evaluator<B>,
        query: &[Ciphertext<B>],
        block: usize,
        trust: Trust<'_>,
        step: Step<'_>,
    ) -> Result<Vec<Ciphertext<B>>> {
        let (search, context) = (&self.head.search, evaluator.context());
        let read = |part: Part| -> Result<Ciphertext<B>> {
            let bytes = file::read(&self.path(block, part), MAX_FILE_BYTES)?;
            let read = Ciphertext::from_bytes(context, &bytes, None, trust)?;
            step()?;
            Ok(read)
        };
        let column = |column: usize| read(Part::Column(column));
        let numbers = match search.reply {
            Reply::Scores => return Ok(vec![Search::scored(evaluator, query, column)?]),
            Reply::Marks => None,
            Reply::Carried(numbers) => Some(numbers),
        };
        let halves = search.found(evaluator, query, column)?;
        step()?;
        let Some(numbers) = numbers else { return Ok(vec![Search::joined(evaluator, &halves)?]) };
        let pairs = Search::pairs(numbers);
        let one = |i: usize| -> Result<Ciphertext<B>> {
            let carried = read(Part::Pair { half: i / pairs, pair: i % pairs })?;
            Ok(evaluator.mul(&halves[i / pairs], &carried)?)
        };
        context.rlwe().backend().threads().try_map((0..self.replies(context, block)).collect(), one)
    }
}
