//! Counts what every kernel of the PTX does and what whole operations take, and prints both with the times that a model of
//! cards predicts: `kernel-counts [--check]` writes the records, or compares with them.

#[path = "../tests/it/runs/mod.rs"]
mod runs;

use std::path::Path;
use std::process::ExitCode;

use runs::counted::{RECORD, Table, count, differences, record};
use runs::operations;

fn main() -> ExitCode {
    let check = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [flag] if flag == "--check" => true,
        other => {
            eprintln!("unknown arguments {other:?}; usage: kernel-counts [--check]");
            return ExitCode::from(2);
        }
    };
    let operations = operations::record();
    print_operations(&operations);
    let table = count();
    print(&table);
    let mut outcome = ExitCode::SUCCESS;
    type Differences = fn(&str, &str) -> Vec<String>;
    let records: [(&str, String, Differences); 2] =
        [(RECORD, record(&table), differences), (operations::RECORD, operations, operations::differences)];
    for (path, have, differences) in records {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        let failed = if check {
            let found = differences(&std::fs::read_to_string(&path).unwrap_or_default(), &have);
            found.iter().for_each(|line| eprintln!("{}: {line}", path.display()));
            !found.is_empty()
        } else {
            let written = std::fs::write(&path, have);
            written.inspect_err(|error| eprintln!("{}: {error}", path.display())).is_err()
        };
        if failed {
            outcome = ExitCode::FAILURE;
        }
    }
    outcome
}

/// A line for each operation, card and kernel.
fn print_operations(record: &str) {
    for line in record.lines() {
        let words: Vec<&str> = line.split(',').collect();
        let [name, card, kernel, rest @ ..] = words.as_slice() else { continue };
        print!("{:<34}{card:<10}{kernel:<26}", name.replace('/', ", "));
        rest.iter().for_each(|word| print!("{word:>17}"));
        println!();
    }
}

/// A line for each kernel and run: what a warp issues, by class, and how it reaches memory.
fn print(table: &Table) {
    println!(
        "{:<44}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>8}{:>10}{:>6}",
        "run, kernel (instructions of PTX a warp)",
        "all",
        "mul 64",
        "mul 32",
        "int 64",
        "int 32",
        "double",
        "others",
        "memory",
        "barrier",
        "sectors",
        "useful",
        "conflicts",
        "ways"
    );
    for ((run, kernel), counts) in table {
        let warps = counts.threads as f64 / 32.0;
        let a_warp = |count: u64| format!("{:.1}", count as f64 / warps);
        let share =
            |part: u64, of: u64| if of == 0 { "-".to_owned() } else { format!("{:.2}", part as f64 / of as f64) };
        let others = counts.divide + counts.compare + counts.moves + counts.branch;
        let memory = counts.global + counts.shared + counts.generic + counts.parameter;
        println!(
            "{:<44}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>8}{:>10}{:>6}",
            format!("{run}: {kernel}"),
            a_warp(counts.instructions()),
            a_warp(counts.multiply64),
            a_warp(counts.multiply32),
            a_warp(counts.integer64),
            a_warp(counts.integer32),
            a_warp(counts.double),
            a_warp(others),
            a_warp(memory),
            a_warp(counts.barrier),
            a_warp(counts.global_sectors),
            share(counts.global_bytes, 32 * counts.global_sectors),
            share(counts.shared_passes, counts.shared_least),
            counts.shared_ways
        );
    }
}
