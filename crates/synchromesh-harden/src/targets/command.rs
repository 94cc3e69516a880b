//! What the command line reads of people: tables and expressions.

use std::path::Path;

use anyhow::Result;
use synchromesh_cli::expression::Graph;
use synchromesh_cli::table::Table;

use super::text::text;
use super::{Outcome, TABLES, Target, outcome};

pub(super) const TARGETS: &[Target] =
    &[text("table", table_seeds, table, TABLE), text("expression", expression_seeds, expression, TABLES)];

/// Bytes that a table may take beside twice its file: a cell of two bytes becomes a number of 32.
const TABLE: usize = 16 << 20;

fn table_seeds() -> Result<Vec<Vec<u8>>> {
    let csv = ["a,b\n1,2.5\n-3,4e2\n", "1\n2\n3\n", "\"x, y\";\"z\"\n1;2\n", "99999999999999999999999,0.1\r\n5,6\r\n"];
    let texts =
        csv.iter().filter(|text| Table::from_bytes(text.as_bytes()).is_ok()).map(|text| text.as_bytes().to_vec());
    let npy = Table::from_bytes(b"1,2\n3,4\n")?.to_bytes(Path::new("x.npy"))?;
    let reals = Table::from_bytes(b"1.5,2\n3,4\n")?.to_bytes(Path::new("x.npy"))?;
    Ok(texts.chain([npy, reals]).collect())
}

/// A table as CSV or NPY; what is accepted survives being written as CSV.
fn table(bytes: &[u8]) -> Outcome {
    let read = Table::from_bytes(bytes);
    if let Ok(table) = &read {
        let written = table.to_bytes(Path::new("x.csv")).expect("CSV holds every table");
        let again = Table::from_bytes(&written).expect("a table that was written");
        assert!(again == *table, "a table that does not survive its file");
    }
    outcome!(read)
}

fn expression_seeds() -> Result<Vec<Vec<u8>>> {
    let all = [
        "x*y + 2*x",
        "-(a - b)^4 * 0.5",
        "rotate(x, 3) + conj(y)",
        "((x))",
        "max(x, sigmoid(y, -8, 8)) - clip(x, 0, 1, -2, 2)",
        "x^2 - 1e-3*x + 7",
        "less(x, y, 0, 15)*lookup(x, -1, 5, -7, 9) - equal(x, y, -3, 3)",
    ];
    Ok(all.iter().filter(|text| Graph::parse(text).is_ok()).map(|text| text.as_bytes().to_vec()).collect())
}

/// An expression of the command line.
fn expression(bytes: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(bytes) else { return Outcome::Refused("no text".to_owned()) };
    let read = Graph::parse(text);
    if let Ok(graph) = &read {
        assert!(!graph.operations().is_empty() && graph.depth() < u32::MAX && graph.rotations().len() < text.len());
    }
    outcome!(read)
}
