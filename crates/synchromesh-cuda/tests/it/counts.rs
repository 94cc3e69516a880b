//! What kernels do against the record of it: an instruction more, a sector more or a conflict more fails.

use std::collections::BTreeMap;

use crate::runs::counted::{Table, count, differences, record};
use crate::runs::operations::{self, OPERATIONS};
use crate::runs::say;
use synchromesh_cuda::model::{A100, CARDS, H100};
use synchromesh_cuda::{Counts, Emulated, Kernels, Launch, model};

const RECORD: &str = include_str!("../../ptx/counts.csv");
const OPERATIONS_RECORD: &str = include_str!("../../ptx/operations.csv");

#[test]
fn kernels_do_what_the_record_says() {
    let table = count();
    let found = differences(RECORD, &record(&table));
    assert!(
        found.is_empty(),
        "`cargo xtask kernels` writes the record anew, where this is meant:\n{}",
        found.join("\n")
    );
    for kernel in Emulated::kernels(Kernels::Ptx) {
        let name = kernel.to_str().expect("a name");
        let whole = !name.ends_with("_merged") && !name.starts_with("instructions_");
        assert!(!whole || table.keys().any(|(_, counted)| counted == name), "{name} is not counted");
    }
    let merged = table.keys().filter(|(_, kernel)| kernel.ends_with("_merged")).count();
    say(&format!("{} rows of counts, {merged} of them of merged kernels: as on record", table.len()));
}

#[test]
fn what_differs_from_a_record_is_named() {
    let row = |kernel: &str, multiply64, shared_passes| {
        (("a run".to_owned(), kernel.to_owned()), Counts { multiply64, shared_passes, ..Counts::default() })
    };
    let had = record(&Table::from([row("one", 5, 7), row("two", 1, 1)]));
    let differs = |rows| differences(&had, &record(&Table::from_iter::<Vec<_>>(rows)));
    assert!(differs(vec![row("one", 5, 7), row("two", 1, 1)]).is_empty());
    let found = differs(vec![row("one", 6, 4), row("three", 1, 1)]);
    assert_eq!(
        found,
        [
            "a run, two: it is not counted any more",
            "a run, one: more multiply64, 6 where it was 5",
            "a run, one: less shared_passes, 4 where it was 7",
            "a run, three: it was not counted",
        ]
    );
    assert_eq!(differences(&had.replacen("launches", "starts", 1), &had), ["the columns are others"]);
}

#[test]
fn a_whole_operation_takes_what_the_record_says() {
    let rows = operations::record_of(&OPERATIONS[0], &H100);
    let found = operations::differences(OPERATIONS_RECORD, &rows);
    assert!(
        found.is_empty(),
        "`cargo xtask kernels` writes the record anew, where this is meant:\n{}",
        found.join("\n")
    );
    let all = rows.lines().find(|line| line.split(',').nth(2) == Some("all")).expect("a row of all kernels");
    say(&format!("on record, launches to microseconds: {all}"));
    // More than the slack is found.
    let slower = rows.replacen("convert,3,", "convert,4,", 1);
    assert_ne!(slower, rows);
    assert!(!operations::differences(OPERATIONS_RECORD, &slower).is_empty());
}

/// The columns of a record by their names, row by row.
fn table(record: &'static str) -> impl Iterator<Item = BTreeMap<&'static str, &'static str>> {
    let mut lines = record.lines().map(|line| line.split(','));
    let names: Vec<&str> = lines.next().expect("a first line").collect();
    lines.map(move |line| names.iter().copied().zip(line).collect())
}

#[test]
fn what_is_on_record_is_within_limits() {
    const PASSES: f64 = 2.0;
    const LAUNCHES: f64 = 20.0;
    const OCCUPANCY: f64 = 0.25;
    /// Microseconds of a hybrid switch with eight primes a digit on an H100: an H200 took 605.
    const HYBRID: f64 = 610.0;
    let number = |row: &BTreeMap<&str, &str>, name: &str| row[name].parse::<f64>().expect("a number");
    for row in table(RECORD).chain(table(OPERATIONS_RECORD)) {
        assert!(number(&row, "shared_ways") <= PASSES, "{row:?}");
    }
    let mut operations = 0;
    for row in table(OPERATIONS_RECORD).filter(|row| row["kernel"] == "all") {
        operations += 1;
        assert!(number(&row, "launches") <= LAUNCHES && number(&row, "occupancy") >= OCCUPANCY, "{row:?}");
        if (row["operation"], row["card"]) == (OPERATIONS[0].name, H100.name) {
            assert!(number(&row, "microseconds") <= HYBRID, "{row:?}");
        }
    }
    assert_eq!(operations, OPERATIONS.len() * CARDS.len());
}

#[test]
fn a_multiprocessor_holds_a_quarter_of_its_warps_of_every_kernel() {
    // Threads and bytes of shared memory of the largest blocks.
    let shapes =
        [("gadget_product", 128, 5376), ("convert", 128, 18 << 10), ("cluster", 256, 69_632), ("", 256, 34_816)];
    for kernel in Emulated::kernels(Kernels::Ptx) {
        let name = kernel.to_str().expect("a name");
        let (_, threads, shared) = shapes.iter().find(|(part, ..)| name.contains(part)).expect("any kernel");
        let launch = Launch { grid: [1, 1, 1], cluster: 1, threads: *threads, shared: *shared };
        for card in CARDS.iter().filter(|card| model::registers(name, card.architecture).is_some()) {
            let occupancy = card.occupancy(name, launch);
            assert!(occupancy >= 0.25, "{name} on {}: {occupancy}", card.name);
        }
    }
    let unknown = Launch { grid: [1, 1, 1], cluster: 1, threads: 32, shared: 0 };
    assert_eq!(A100.resident("no_such_kernel", unknown), 0);
}
