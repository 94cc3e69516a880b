//! Every reader of bytes from others as a target: what it is fed, what must hold, what checksums its format has.
//!
//! The law: bytes are refused by an error with a kind, a text and a remedy, or accepted; what has one encoding is then
//! written again to the very same bytes. A broken law is a panic.

#[cfg(feature = "cli")]
mod command;
pub(crate) mod folders;
pub(crate) mod parties;
mod text;
mod wire;

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::mutation::Seal;

/// What a reader did with an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave an object.
    Accepted,
    /// It gave this error.
    Refused(String),
}

/// A reader.
pub struct Target {
    /// Its name for commands.
    pub name: &'static str,
    /// Valid inputs to begin with, made anew.
    pub seeds: fn() -> Result<Vec<Vec<u8>>>,
    /// Reads an input.
    pub read: fn(&[u8]) -> Outcome,
    /// The format's checksums.
    pub seal: Seal,
    /// Whether any change at all to a valid input must be refused.
    pub checksummed: bool,
    /// Bytes that reading may take beside twice the input.
    pub slack: usize,
}

/// Bytes that reading takes whatever is read: error texts, buffers, small tables.
const SMALL: usize = 1 << 20;

/// Sets of primes and choices for every level that parameters declare; what they declare is checked before. Tables in which
/// functions that expressions name are approximated.
const TABLES: usize = 64 << 20;

/// All targets.
pub const TARGETS: &[&[Target]] = &[
    wire::TARGETS,
    text::TARGETS,
    parties::TARGETS,
    #[cfg(feature = "cli")]
    command::TARGETS,
];

/// All targets in one row.
pub fn all() -> impl Iterator<Item = &'static Target> {
    TARGETS.iter().flat_map(|group| group.iter())
}

/// The target of that name.
///
/// # Errors
/// When there is none, with the names that there are.
pub fn named(name: &str) -> Result<&'static Target> {
    let names = || all().map(|target| target.name).collect::<Vec<_>>().join(", ");
    all().find(|target| target.name == name).with_context(|| format!("no target {name}; there are {}", names()))
}

/// The inputs that a target begins with: those made anew, and files that broke it once.
///
/// # Errors
/// When they cannot be made or read.
pub fn inputs(target: &Target) -> Result<Vec<Vec<u8>>> {
    let mut all = (target.seeds)().with_context(|| format!("no valid inputs for {}", target.name))?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
    if let Ok(files) = std::fs::read_dir(&folder) {
        let mut paths: Vec<_> = files.filter_map(|file| Some(file.ok()?.path())).collect();
        paths.sort();
        for path in paths {
            all.push(std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?);
        }
    }
    Ok(all)
}

/// The outcome of a result whose error has `kind()` and `remedy()`; an error without either is a panic.
macro_rules! outcome {
    ($result:expr) => {
        match $result {
            Ok(_) => $crate::targets::Outcome::Accepted,
            Err(error) => {
                let text = error.to_string();
                assert!(
                    !error.kind().is_empty() && !error.remedy().is_empty() && !text.is_empty(),
                    "an error says nothing"
                );
                $crate::targets::Outcome::Refused(format!("{}: {text}", error.kind()))
            }
        }
    };
}
use outcome;

#[cfg(test)]
mod tests {
    use super::*;
    use synchromesh_rlwe::wire::{ObjectType, peek};

    #[test]
    fn every_target_accepts_its_own_inputs() {
        for target in all() {
            for (at, input) in (target.seeds)().expect(target.name).iter().enumerate() {
                assert_eq!((target.read)(input), Outcome::Accepted, "{} input {at}", target.name);
            }
        }
    }

    #[test]
    fn every_type_of_object_is_read() {
        let seeds = all().flat_map(|target| (target.seeds)().expect(target.name));
        let read: Vec<ObjectType> = seeds.filter_map(|seed| Some(peek(&seed).ok()?.header.object)).collect();
        for object in ObjectType::ALL {
            // Nothing writes these two; their numbers are taken.
            let unwritten = matches!(object, ObjectType::Plaintext | ObjectType::Plan);
            assert!(unwritten != read.contains(&object), "no target reads a {}", object.name());
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<&str> = all().map(|target| target.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(named("nobody").is_err());
    }
}
