//! Files that must read for ever: for each version of the formats a folder of keys and ciphertexts with what they decrypt
//! to, and of every other kind of file. A version is written once and never changed; only tests read its secret keys.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::rlwe::Randomness;

use crate::report::Report;
use crate::schemes::{Files, Sample, Size, Subject, message, zip};
use crate::targets::folders::{files_in, fresh, put};
use crate::targets::parties::FOLDERS;
use crate::targets::{Outcome, named};

/// Kinds of files besides those of schemes, by the names of their targets.
const KINDS: [&str; 10] = [
    "params",
    "switch_keys",
    "ciphertext",
    "envelope_key",
    "bundle",
    "plan_json",
    "profile_json",
    "hosts",
    "hosts_by_hand",
    "identity",
];

/// Targets that have no files of their own in a version, as a test wants every other to have.
#[cfg(test)]
const WITHOUT: [&str; 26] = [
    // In the folders of schemes.
    "container",
    "secret_key",
    "public_key",
    "bfv_ciphertext",
    "bgv_ciphertext",
    "ckks_ciphertext",
    // In the folders of parties.
    "triple_store",
    "triple_seal",
    "triple_journal",
    "mp_spdz_key",
    "mp_spdz_key_seal",
    "mp_spdz_triples",
    "mp_spdz_triples_seal",
    // Of one run among parties, and read by that.
    "generation_plan",
    "party_key",
    "key_share",
    "proven_key_share",
    "decryption_journal",
    "mac_record",
    // No files of the library.
    "payload",
    "frames",
    "shared",
    "shape",
    "prime",
    "table",
    "expression",
];

/// What writes the files that a test misses.
const WRITE: &str = "`cargo run -p synchromesh-harden -- corpus --write VERSION` writes one";

/// The folder of all versions.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Writes the files of the formats as they are, as this version: all of them, which read, or none.
///
/// # Errors
/// When that version is there already, or cannot be written.
pub fn write(version: u32) -> Result<Report> {
    write_version(&folder(), version)
}

fn write_version(corpus: &Path, version: u32) -> Result<Report> {
    let root = corpus.join(format!("v{version}"));
    ensure!(!root.exists(), "{} is there: files of a version are never changed", root.display());
    fs::create_dir_all(corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    let begun = tempfile::tempdir_in(corpus).context("no folder for what is begun")?;
    let files = begun.path().join("files");
    write_to(&files)?;
    let mut report = Report::new();
    report.count("files", check_version(&files)?);
    fs::rename(&files, &root).with_context(|| format!("cannot write {}", root.display()))?;
    Ok(report)
}

fn write_to(root: &Path) -> Result<()> {
    write_scheme::<Bfv>(root)?;
    write_scheme::<Bgv>(root)?;
    write_scheme::<Ckks>(root)?;
    for kind in KINDS {
        for (at, bytes) in (named(kind)?.seeds)()?.iter().enumerate() {
            put(&root.join(kind).join(format!("{at}.bin")), bytes)?;
        }
    }
    for folder in FOLDERS {
        for (path, bytes) in folder.files() {
            put(&root.join(folder.name).join(path), bytes)?;
        }
    }
    Ok(())
}

fn write_scheme<S: Sample>(root: &Path) -> Result<()> {
    let folder = root.join(Subject::<S>::NAME);
    let subject = Subject::<S>::new(Size::Small, 1)?;
    let Files { literal, secret, public, evaluation } = subject.to_files()?;
    put(&folder.join("literal.json"), &literal)?;
    put(&folder.join("secret.key"), &secret)?;
    put(&folder.join("public.key"), &public)?;
    put(&folder.join("eval.keys"), &evaluation)?;
    let mut randomness = Randomness::insecure_from_number(2);
    let slots = subject.slots()?;
    let [a, b] = [3, 4].map(|seed| message(slots, seed));
    let (x, y) = (subject.encrypt(&a, &mut randomness)?, subject.encrypt(&b, &mut randomness)?);
    put(&folder.join("fresh.ct"), &subject.to_bytes(&x)?)?;
    put(&folder.join("sum.ct"), &subject.to_bytes(&subject.evaluator().add(&x, &y)?)?)?;
    let expected = json!({"fresh": a, "sum": zip(&a, &b, |a, b| a + b), "rotated": subject.rotated(&a)?});
    put(&folder.join("expected.json"), expected.to_string().as_bytes())
}

/// Reads the files of every version that there is.
///
/// # Errors
/// When a file does not read or means something else.
pub fn check() -> Result<Report> {
    let mut report = Report::new();
    let (mut versions, mut files) = (0_u64, 0);
    let mut unseen = KINDS.to_vec();
    for entry in fs::read_dir(folder()).with_context(|| format!("there is no corpus; {WRITE}"))? {
        let path = entry?.path();
        if path.is_dir() {
            versions += 1;
            files += check_version(&path).with_context(|| format!("in {}", path.display()))?;
            unseen.retain(|kind| !path.join(kind).exists());
        }
    }
    ensure!(versions > 0, "the corpus has no version; {WRITE}");
    ensure!(unseen.is_empty(), "no version has files of {}; {WRITE}", unseen.join(", "));
    report.count("versions", versions);
    report.count("files", files);
    Ok(report)
}

/// Reads the files of one version; how many there are.
fn check_version(root: &Path) -> Result<u64> {
    let mut files = check_scheme::<Bfv>(root)?;
    files += check_scheme::<Bgv>(root)?;
    files += check_scheme::<Ckks>(root)?;
    for kind in KINDS {
        let target = named(kind)?;
        // A version from before a kind of file was made has none of it.
        for entry in fs::read_dir(root.join(kind)).into_iter().flatten() {
            let path = entry?.path();
            let outcome = (target.read)(&fs::read(&path)?);
            ensure!(outcome == Outcome::Accepted, "{} does not read: {outcome:?}", path.display());
            files += 1;
        }
    }
    for folder in FOLDERS {
        let path = root.join(folder.name);
        if path.exists() {
            // Reading uses triples up, which is written down.
            let (copy, all) = (fresh()?, files_in(&path)?);
            all.iter().try_for_each(|(path, bytes)| put(&copy.path().join(path), bytes))?;
            let outcome = (folder.read)(copy.path());
            ensure!(outcome == Outcome::Accepted, "{} does not read: {outcome:?}", path.display());
            files += all.len() as u64;
        }
    }
    Ok(files)
}

fn check_scheme<S: Sample>(root: &Path) -> Result<u64> {
    let folder = root.join(Subject::<S>::NAME);
    let get = |name: &str| fs::read(folder.join(name)).with_context(|| format!("{} {name}", Subject::<S>::NAME));
    let subject = Subject::<S>::from_files(&Files {
        literal: get("literal.json")?,
        secret: get("secret.key")?,
        public: get("public.key")?,
        evaluation: get("eval.keys")?,
    })?;
    let expected: Value = serde_json::from_slice(&get("expected.json")?).context("what is expected")?;
    let values = |name: &str| serde_json::from_value::<Vec<i64>>(expected[name].clone()).context("what is expected");
    let fresh = subject.read(&get("fresh.ct")?)?;
    subject.require(&fresh, &values("fresh")?)?;
    subject.require(&subject.read(&get("sum.ct")?)?, &values("sum")?)?;
    // The keys compute still.
    subject.require(&subject.evaluator().rotate(&fresh, 1)?, &values("rotated")?)?;
    let again = message(subject.slots()?, 9);
    subject.require(&subject.encrypt(&again, &mut Randomness::insecure_from_number(5))?, &again)?;
    Ok(7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::all;

    #[test]
    fn files_of_every_version_read() {
        let report = check().expect("every file");
        assert_eq!(report.findings(), 0);
    }

    #[test]
    fn every_target_has_files_or_says_why_not() {
        for target in all() {
            let listed = KINDS.contains(&target.name) != WITHOUT.contains(&target.name);
            assert!(listed, "{} is to be in KINDS or in WITHOUT", target.name);
        }
    }

    #[test]
    fn a_version_that_is_written_reads_and_damage_shows() {
        let corpus = tempfile::tempdir().expect("a folder");
        write_version(corpus.path(), 7).expect("files");
        let root = corpus.path().join("v7");
        assert!(check_version(&root).expect("files that read") > 30);
        // A second time too: reading leaves a version as it is.
        check_version(&root).expect("files that read");
        assert!(write_version(corpus.path(), 7).is_err(), "a version is never changed");
        for (name, at) in [("bgv/sum.ct", 200), ("triples/triples-2x1x2-P0.bin.seal", 60)] {
            let path = root.join(name);
            let whole = fs::read(&path).expect("a file");
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, bytes).expect("a file");
            assert!(check_version(&root).is_err(), "{name}");
            fs::write(&path, whole).expect("a file");
        }
    }
}
