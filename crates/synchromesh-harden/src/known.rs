//! Known answers: a seed gives the same keys, ciphertexts and files on every instruction set and number of threads.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::Ckks;
use synchromesh::rlwe::Randomness;

use crate::report::Report;
use crate::schemes::{Files, Sample, Size, Subject, message};
use crate::targets::named;

/// A digest by the name of what it is of.
type Digests = BTreeMap<String, String>;

/// Files that depend on no randomness of the system, by the names of their targets.
const FILES: [&str; 4] = ["params", "switch_keys", "ciphertext", "mp_spdz_triples"];

/// What writes the digests that a test misses.
const WRITE: &str = "`cargo run -p synchromesh-harden -- known --write` puts them on file";

fn path() -> PathBuf {
    crate::corpus::folder().join("digests.json")
}

/// Computes all digests, and compares them with those on file or, if `write`, puts them there.
///
/// # Errors
/// When they cannot be computed or the file not be read or written.
pub fn run(write: bool) -> Result<Report> {
    let found = digests()?;
    let mut report = Report::new();
    if write {
        let text = serde_json::to_string_pretty(&found).context("digests")?;
        fs::create_dir_all(crate::corpus::folder()).context("no folder for the digests")?;
        fs::write(path(), format!("{text}\n")).context("cannot write the digests")?;
    }
    let text = fs::read_to_string(path()).with_context(|| format!("there are no digests; {WRITE}"))?;
    let expected: Digests = serde_json::from_str(&text).context("digests on file")?;
    for name in expected.keys().chain(found.keys().filter(|name| !expected.contains_key(*name))) {
        if expected.get(name) != found.get(name) {
            let what = format!("{name}: {:?} where {:?} was", found.get(name), expected.get(name));
            report.finding(&what, "cargo run -p synchromesh-harden -- known");
        }
    }
    report.count("digests", found.len() as u64);
    Ok(report)
}

fn digests() -> Result<Digests> {
    let mut all = Digests::new();
    of_scheme::<Bfv>(&mut all)?;
    of_scheme::<Bgv>(&mut all)?;
    of_scheme::<Ckks>(&mut all)?;
    for name in FILES {
        for (at, bytes) in (named(name)?.seeds)()?.iter().enumerate() {
            all.insert(format!("{name} {at}"), digest(bytes));
        }
    }
    Ok(all)
}

fn digest(bytes: &[u8]) -> String {
    format!("{} bytes {}", bytes.len(), &blake3::hash(bytes).to_hex()[..32])
}

fn of_scheme<S: Sample>(all: &mut Digests) -> Result<()> {
    let subject = Subject::<S>::new(Size::Working, 11)?;
    let Files { literal, secret, public, evaluation } = subject.to_files()?;
    let mut randomness = Randomness::insecure_from_number(12);
    let (slots, e) = (subject.slots()?, subject.evaluator());
    let [a, b] = [13, 14].map(|seed| message(slots, seed));
    let (x, y) = (subject.encrypt(&a, &mut randomness)?, subject.encrypt(&b, &mut randomness)?);
    let mut put = |name: &str, bytes: &[u8]| all.insert(format!("{} {name}", Subject::<S>::NAME), digest(bytes));
    put("literal", &literal);
    put("secret key", &secret);
    put("public key", &public);
    put("evaluation keys", &evaluation);
    put("fresh", &subject.to_bytes(&x)?);
    put("sum", &subject.to_bytes(&e.add(&x, &y)?)?);
    put("product", &subject.to_bytes(&e.mul(&x, &y)?)?);
    put("rotation", &subject.to_bytes(&e.rotate(&x, 1)?)?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_give_what_they_gave() {
        assert_eq!(run(false).expect("digests").findings(), 0);
    }
}
