//! What kernels do against the record of it: an instruction more, a sector more or a conflict more fails.

use crate::runs::counted::{Table, count, differences, record};
use crate::runs::say;
use synchromesh_cuda::{Counts, Emulated, Kernels};

const RECORD: &str = include_str!("../../ptx/counts.csv");

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
