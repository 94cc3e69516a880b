//! The files of one run, lent to a program: once, and gone when it ends.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use synchromesh_triples::dealer::TrustedDealer;
use synchromesh_triples::field::Field;
use synchromesh_triples::handout::{Ended, run};
use synchromesh_triples::party::Spread;
use synchromesh_triples::{MacKeyShare, Shape};

use crate::common::field;

const NAME: &str = "Matrix-2x2x2-P0";

/// The runs of party 0 of two, each with a matrix triple, and MP-SPDZ's directory.
struct Stock {
    root: tempfile::TempDir,
    key: MacKeyShare,
}

impl Stock {
    fn new(runs: usize) -> Self {
        let (field, shape): (Field, Shape) = (field(), "2x2x2".parse().unwrap());
        let dealer = TrustedDealer::new(&field, 2).unwrap();
        let stock = Self { root: tempfile::tempdir().unwrap(), key: dealer.keys()[0].clone() };
        let spread = Spread { runs: Some(runs), threads: None };
        for place in spread.places(stock.root.path(), &field, (0, 2), 1).unwrap() {
            place.write_key(&stock.key).unwrap();
            let triple = dealer.triple(shape).unwrap().remove(0);
            place.write_triples(&stock.key, shape, vec![triple]).unwrap();
        }
        stock
    }

    fn from(&self, number: usize) -> PathBuf {
        Spread::run(self.root.path(), number)
    }

    fn player_data(&self) -> PathBuf {
        self.root.path().join("MP-SPDZ/Player-Data")
    }

    fn lent(&self) -> PathBuf {
        self.player_data().join("2-p-128").join(NAME)
    }

    /// The kind of the error, if there was one, and whether the program began.
    fn run(&self, number: usize, ended: Ended) -> (Result<Vec<PathBuf>, synchromesh_triples::Error>, bool) {
        let began = Cell::new(false);
        let result = run(&self.from(number), &self.player_data(), 0, || {
            began.set(true);
            let directory = self.player_data().join("2-p-128");
            let key = std::fs::read_to_string(directory.join("Player-MAC-Keys-p-P0")).unwrap();
            assert!(key.starts_with("2\n") && directory.join("Params-Data").exists());
            assert_eq!(self.lent().metadata().unwrap().len(), 57 + 12 * 32);
            ended
        });
        (result, began.get())
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn the_files_of_a_run_are_lent_once_and_gone_when_it_ends() {
    let stock = Stock::new(2);
    for number in [1, 2] {
        let (result, began) = stock.run(number, Ended::Well);
        assert!(began && result.unwrap().len() == 1);
        assert!(!stock.lent().exists());
        let (result, began) = stock.run(number, Ended::Well);
        let error = result.unwrap_err();
        assert!(error.kind() == "run_used" && error.remedy().contains("another run") && !began, "{error}");
    }
    // Neither are they where they came from, but for the key.
    let left = names(&stock.from(1).join("Player-Data/2-p-128"));
    assert!(!left.iter().any(|name| name.starts_with("Matrix")), "{left:?}");
    assert!(left.contains(&"used-P0".into()));
    stock.key.usable().unwrap();
}

#[test]
fn a_program_that_never_began_used_nothing() {
    let stock = Stock::new(1);
    assert_eq!(stock.run(1, Ended::Never("it is not there".into())).0.unwrap_err().kind(), "program_not_begun");
    assert!(!stock.lent().exists());
    stock.run(1, Ended::Well).0.unwrap();
}

/// Whoever leaves others in a check of MACs may know the key: a run that ended badly burns it.
#[test]
fn a_program_that_ends_badly_burns_the_key() {
    let stock = Stock::new(2);
    let error = stock.run(1, Ended::Badly("exit status: 1".into())).0.unwrap_err();
    assert!(error.kind() == "program_failed" && error.void().len() >= 3, "{error}: {:?}", error.void());
    assert!(!stock.lent().exists());
    let (result, began) = stock.run(2, Ended::Well);
    assert!(result.unwrap_err().kind() == "mac_key_burnt" && !began);
    assert_eq!(stock.key.usable().unwrap_err().kind(), "mac_key_burnt");
    // Whoever knows better deletes the mark; the run stays used, and another one is had.
    let remedy = error.remedy();
    let mark = remedy.split_whitespace().find(|word| word.contains(".check-")).unwrap();
    std::fs::remove_file(mark).unwrap();
    assert_eq!(stock.run(1, Ended::Well).0.unwrap_err().kind(), "run_used");
    stock.run(2, Ended::Well).0.unwrap();
}

/// No two programs at one time, and none while a check goes on: one of them may give the key away.
#[test]
fn programs_under_one_key_do_not_overlap() {
    let stock = Stock::new(2);
    let inner = Cell::new(None);
    let outer = run(&stock.from(1), &stock.player_data(), 0, || {
        let other = stock.root.path().join("other");
        inner.set(Some(run(&stock.from(2), &other, 0, || panic!("it began")).unwrap_err().kind()));
        Ended::Well
    });
    outer.unwrap();
    assert_eq!(inner.get(), Some("mac_key_busy"));
    stock.run(2, Ended::Well).0.unwrap();
}

#[test]
fn what_lies_where_a_program_reads_is_not_taken_for_the_runs() {
    let stock = Stock::new(1);
    let directory = stock.player_data().join("2-p-128");
    std::fs::create_dir_all(&directory).unwrap();
    let put = |name: &str, text: &str| std::fs::write(directory.join(name), text).unwrap();
    let refused = |kind: &str| {
        let (result, began) = stock.run(1, Ended::Well);
        let error = result.unwrap_err();
        assert!(error.kind() == kind && !began && !error.remedy().is_empty(), "{error}");
    };
    for name in ["Matrix-9x9x9-P0", "Bits-p-P0", "Inputs-p-P0-1", "Triples-p-P0-T3"] {
        put(name, "of somebody else");
        refused("file_exists");
        std::fs::remove_file(directory.join(name)).unwrap();
    }
    put("Params-Data", "170141183460469231731687303715885907969\n1\n");
    refused("other_prime");
    std::fs::remove_file(directory.join("Params-Data")).unwrap();
    put("Player-MAC-Keys-p-P0", "2\n5\n");
    refused("other_mac_key");
    std::fs::remove_file(directory.join("Player-MAC-Keys-p-P0")).unwrap();
    // Another party's are none of its business, nor is what it does not know.
    put("Matrix-9x9x9-P1", "of the other party");
    put("DaBits-p-P0", "of another program");
    // A damaged file is not handed on.
    let own = stock.from(1).join("Player-Data/2-p-128").join(NAME);
    let bytes = std::fs::read(&own).unwrap();
    std::fs::write(&own, [&bytes[..200], &[bytes[200] ^ 1], &bytes[201..]].concat()).unwrap();
    refused("format");
    std::fs::write(&own, bytes).unwrap();
    stock.run(1, Ended::Well).0.unwrap();
    assert!(directory.join("Matrix-9x9x9-P1").exists() && directory.join("DaBits-p-P0").exists());
}

/// A process that was killed leaves its list, by which what it was lent is taken away before the next run.
#[test]
fn what_a_killed_run_left_is_taken_away() {
    let stock = Stock::new(1);
    let directory = stock.player_data().join("2-p-128");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("Bits-p-P0"), "left").unwrap();
    std::fs::write(directory.join("Params-Data"), "340282366920938463463374607431759953921\n1\n").unwrap();
    std::fs::write(directory.join("issued-P0"), "Bits-p-P0\nParams-Data\n../../../run-1/x\n").unwrap();
    stock.run(1, Ended::Well).0.unwrap();
    assert!(!directory.join("Bits-p-P0").exists() && directory.join("Params-Data").exists());
}
