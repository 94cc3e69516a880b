//! Tables and figures of the papers this library builds on, measured again: items as data, rows as JSON objects.
//!
//! A row has what was measured here under `ours_`, what the paper printed under `paper_`, and `security_bits`. What
//! could not be measured, or differs from the paper's setting, is a sentence among the deviations.

mod extended;
mod floors;
mod key_bytes;
mod level_circuits;
mod level_plans;
mod levelaware;
mod linear;
mod parameters;
mod perspective;
mod planner;
mod revisiting;
mod runner;
mod schedules;
pub mod sets;
mod sweep;
mod triples;
mod triples_protocol;

use serde_json::{Map, Value};
use synchromesh::cost::Profile;

pub use self::runner::Runner;
use synchromesh_bench::Error;
use synchromesh_bench::device::Device;

/// A row: keys in the order in which they were put.
pub type Row = Map<String, Value>;

/// A line of a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is.
    pub name: String,
    /// Points from left to right.
    pub points: Vec<(f64, f64)>,
    /// Whether the points are joined by a line; alone they are measurements beside a line of predictions.
    pub joined: bool,
}

/// A figure of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Heading.
    pub title: String,
    /// Title of the horizontal axis.
    pub x: String,
    /// Title of the vertical axis.
    pub y: String,
    /// Both axes logarithmic.
    pub logarithmic: bool,
    /// Lines.
    pub series: Vec<Series>,
}

/// What an item came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// One object a row.
    pub rows: Vec<Row>,
    /// What differs from the paper and why, what was left out and why.
    pub deviations: Vec<String>,
    /// The item as a figure.
    pub figure: Option<Figure>,
}

/// What a run may use.
pub struct Settings {
    /// Under a minute: the smallest degrees only, and one pair of domains.
    pub quick: bool,
    /// This machine's profile, if there is one.
    pub profile: Option<Profile>,
    /// Where the items of linear key switching are measured; all others are the CPU's.
    pub device: Device,
}

/// A table, a figure or a claim that can be measured again.
#[derive(Clone, Copy)]
pub struct Item {
    /// Its name on the command line.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    run: fn(&mut Runner<'_>) -> Result<Outcome, Error>,
}

/// ePrint 2023/1642.
const PERSPECTIVE: &str = "ePrint 2023/1642, A New Perspective on Key Switching for BGV-like Schemes";
/// Level-aware key switching.
const LEVEL_AWARE: &str = "Hwang, Seo, Song: Optimizing HE Operations via Level-aware Key-switching Framework";
/// Linear key switching.
const LINEAR: &str = "Efficient Key-Switching for Word-Type FHE and GPU Acceleration";
/// ePrint 2021/204.
const REVISITING: &str = "ePrint 2021/204, Revisiting Homomorphic Encryption Schemes for Finite Fields";
/// ePrint 2023/593.
const TRIPLES: &str = "ePrint 2023/593, Implementing and Optimizing Matrix Triples with Homomorphic Encryption";
/// Our own.
const OWN: &str = "this library";

/// Every item.
pub const ITEMS: &[Item] = &[
    Item {
        id: "perspective-table2",
        title: "operations of single decomposition, by formula and counted",
        paper: PERSPECTIVE,
        run: perspective::table2,
    },
    Item {
        id: "perspective-table3",
        title: "operations of double decomposition, by formula and counted",
        paper: PERSPECTIVE,
        run: sweep::table3,
    },
    Item {
        id: "perspective-table4",
        title: "transforms of double decomposition by operation and domains",
        paper: PERSPECTIVE,
        run: extended::table4,
    },
    Item {
        id: "perspective-table5",
        title: "cost of replacing primes during a key switch",
        paper: PERSPECTIVE,
        run: perspective::table5,
    },
    Item {
        id: "perspective-table6",
        title: "all primes small against mostly large primes",
        paper: PERSPECTIVE,
        run: perspective::table6,
    },
    Item { id: "perspective-table7", title: "one digit against two", paper: PERSPECTIVE, run: perspective::table7 },
    Item {
        id: "perspective-table8",
        title: "many digits against twice the degree with two digits",
        paper: PERSPECTIVE,
        run: perspective::table8,
    },
    Item {
        id: "perspective-table9",
        title: "constants at run time against constants folded into the key",
        paper: PERSPECTIVE,
        run: perspective::table9,
    },
    Item {
        id: "perspective-figure1",
        title: "single and double decomposition over log q",
        paper: PERSPECTIVE,
        run: perspective::figure1,
    },
    Item {
        id: "perspective-claims",
        title: "a key switch against a multiplication without it",
        paper: PERSPECTIVE,
        run: perspective::claims,
    },
    Item {
        id: "perspective-sweep",
        title: "single and double decomposition at every number of primes",
        paper: PERSPECTIVE,
        run: sweep::sweep,
    },
    Item {
        id: "perspective-limits",
        title: "the largest moduli for 128 bits of security, by formula and by estimator",
        paper: PERSPECTIVE,
        run: parameters::perspective_limits,
    },
    Item {
        id: "perspective-depth12",
        title: "a circuit of depth 12 with small primes only and with mostly large ones",
        paper: PERSPECTIVE,
        run: schedules::depth12,
    },
    Item {
        id: "perspective-depth8",
        title: "a circuit of depth 8 under a second secret key, and with N raised",
        paper: PERSPECTIVE,
        run: schedules::depth8,
    },
    Item {
        id: "linear-table2",
        title: "operations of linear key switching, by formula and counted",
        paper: LINEAR,
        run: extended::linear_table2,
    },
    Item {
        id: "linear-table8",
        title: "linear key switching, double decomposition and one prime a digit",
        paper: LINEAR,
        run: extended::linear_table8,
    },
    Item {
        id: "linear-table4",
        title: "operations of double decomposition by the primes of a key digit, by formula and counted",
        paper: LINEAR,
        run: linear::table4,
    },
    Item {
        id: "linear-table5",
        title: "memory of double decomposition by the number of decompositions that are kept",
        paper: LINEAR,
        run: linear::table5,
    },
    Item { id: "linear-table6", title: "the parameters and their security", paper: LINEAR, run: linear::table6 },
    Item {
        id: "linear-table7",
        title: "memory of keys: linear, double decomposition once and kept for every key digit",
        paper: LINEAR,
        run: linear::table7,
    },
    Item {
        id: "linear-figure2",
        title: "double decomposition by the primes of a key digit, operations and time",
        paper: LINEAR,
        run: linear::figure2,
    },
    Item { id: "linear-figure4", title: "key switching by level", paper: LINEAR, run: linear::figure4 },
    Item { id: "linear-figure5", title: "where the time of a key switch goes", paper: LINEAR, run: linear::figure5 },
    Item {
        id: "linear-claims",
        title: "linear against baseline and hybrid key switching at equal security, by batch",
        paper: LINEAR,
        run: linear::claims,
    },
    Item {
        id: "linear-floors",
        title: "what a card's rates say of each method: floors, unfused stages, batches",
        paper: LINEAR,
        run: floors::floors,
    },
    Item { id: "levelaware-table2", title: "the parameters", paper: LEVEL_AWARE, run: level_plans::table2 },
    Item {
        id: "levelaware-table4",
        title: "polynomials evaluated from the highest level",
        paper: LEVEL_AWARE,
        run: level_circuits::table4,
    },
    Item {
        id: "levelaware-claims",
        title: "the index map against fixed digit lengths, expansion against transmission",
        paper: LEVEL_AWARE,
        run: level_circuits::claims,
    },
    Item {
        id: "levelaware-table5",
        title: "sizes of expanded keys and the time to expand them",
        paper: LEVEL_AWARE,
        run: level_plans::table5,
    },
    Item {
        id: "levelaware-bytes",
        title: "bytes of a key, plain, packed and trimmed",
        paper: LEVEL_AWARE,
        run: key_bytes::bytes,
    },
    Item {
        id: "levelaware-table3",
        title: "key switching by level and digit length, the fixed digit lengths",
        paper: LEVEL_AWARE,
        run: levelaware::table3,
    },
    Item {
        id: "levelaware-figure1",
        title: "the best digit length at each level",
        paper: LEVEL_AWARE,
        run: levelaware::figure1,
    },
    Item {
        id: "levelaware-table1",
        title: "complexity by level and digit length, by formula and counted",
        paper: LEVEL_AWARE,
        run: levelaware::table1,
    },
    Item {
        id: "revisiting-table1",
        title: "operations of a BFV product, by formula and counted",
        paper: REVISITING,
        run: revisiting::table1,
    },
    Item {
        id: "revisiting-table2",
        title: "product trees at t = 2^16 + 1",
        paper: REVISITING,
        run: revisiting::table2,
    },
    Item { id: "revisiting-table3", title: "polynomials at t = 2^16 + 1", paper: REVISITING, run: revisiting::table3 },
    Item {
        id: "revisiting-table4",
        title: "operations of key switches, by formula and counted",
        paper: REVISITING,
        run: revisiting::table4,
    },
    Item { id: "revisiting-table5", title: "bits of key-switching keys", paper: REVISITING, run: revisiting::table5 },
    Item {
        id: "revisiting-table6",
        title: "product trees at three plaintext moduli",
        paper: REVISITING,
        run: revisiting::table6,
    },
    Item {
        id: "revisiting-table7",
        title: "polynomials at three plaintext moduli",
        paper: REVISITING,
        run: revisiting::table7,
    },
    Item {
        id: "revisiting-table8",
        title: "inner products of 128 pairs, lazily switched and scaled",
        paper: REVISITING,
        run: revisiting::table8,
    },
    Item {
        id: "revisiting-figure1",
        title: "a product at several depths over the plaintext modulus",
        paper: REVISITING,
        run: revisiting::figure1,
    },
    Item {
        id: "revisiting-claims",
        title: "which scheme is faster, and what leveled products save",
        paper: REVISITING,
        run: revisiting::claims,
    },
    Item {
        id: "revisiting-logq",
        title: "moduli for product trees, certified and on average",
        paper: REVISITING,
        run: parameters::revisiting_logq,
    },
    Item {
        id: "triples-table1",
        title: "parameters of matrix triples by looking ahead",
        paper: TRIPLES,
        run: parameters::triples_table1,
    },
    Item {
        id: "triples-table2",
        title: "rotations and products of encrypted matrices, with earlier work",
        paper: TRIPLES,
        run: triples::table2,
    },
    Item {
        id: "triples-table3",
        title: "hoisting against key re-use, one thread",
        paper: TRIPLES,
        run: triples::table3,
    },
    Item {
        id: "triples-table4",
        title: "hoisting against hoisting with key re-use, several threads",
        paper: TRIPLES,
        run: triples::table4,
    },
    Item {
        id: "triples-table5",
        title: "rotations made once against rotations made again",
        paper: TRIPLES,
        run: triples::table5,
    },
    Item { id: "triples-table6", title: "slicing of 192 x 192", paper: TRIPLES, run: triples::table6 },
    Item {
        id: "triples-protocol",
        title: "moduli with flooding, keys, traffic and rounds of the whole protocol",
        paper: TRIPLES,
        run: triples_protocol::protocol,
    },
    Item {
        id: "planner-predictions",
        title: "predicted against measured time of key switches",
        paper: OWN,
        run: planner::predictions,
    },
    Item {
        id: "planner-choices",
        title: "the plan chosen by prediction against the best one measured",
        paper: OWN,
        run: planner::choices,
    },
    Item {
        id: "planner-index-map",
        title: "each method at each level of level-aware parameters, and the choice",
        paper: OWN,
        run: level_plans::index_map,
    },
];

impl Item {
    /// The item called `id`.
    #[must_use]
    pub fn find(id: &str) -> Option<&'static Self> {
        ITEMS.iter().find(|item| item.id == id)
    }

    /// Whether it can be measured on a card.
    #[must_use]
    pub fn on_devices(&self) -> bool {
        self.paper == LINEAR
    }

    /// Runs it; `progress` hears what comes next.
    ///
    /// # Errors
    /// When parameters cannot be built. What only this machine lacks is a deviation.
    pub fn run(&self, settings: &Settings, progress: &mut dyn FnMut(&str)) -> Result<Outcome, Error> {
        (self.run)(&mut Runner::new(settings, progress))
    }
}

/// Rows as CSV: a column for each key that occurs, in the order of first occurrence.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let mut keys: Vec<&String> = Vec::new();
    for key in rows.iter().flat_map(Map::keys) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let cell = |value: Option<&Value>| match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let quoted = |text: String| match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    };
    let header: Vec<String> = keys.iter().map(|key| quoted((*key).clone())).collect();
    let line = |row: &Row| keys.iter().map(|key| quoted(cell(row.get(*key)))).collect::<Vec<_>>().join(",");
    std::iter::once(header.join(",")).chain(rows.iter().map(line)).map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn items_have_names_of_their_own_that_begin_with_a_paper() {
        for (i, item) in ITEMS.iter().enumerate() {
            assert!(ITEMS[..i].iter().all(|other| other.id != item.id), "{}", item.id);
            let word = item.id.split('-').next().unwrap();
            let words = ["perspective", "linear", "levelaware", "revisiting", "triples", "planner"];
            assert!(words.contains(&word), "{}", item.id);
            assert_eq!(Item::find(item.id).unwrap().title, item.title);
        }
        assert!(Item::find("perspective").is_none());
    }

    #[test]
    fn rows_become_csv_with_every_key() {
        let row = |value: Value| value.as_object().unwrap().clone();
        let rows = [row(json!({"a": 1, "b": "x,\"y\""})), row(json!({"c": null, "a": 2.5}))];
        assert_eq!(csv(&rows), "a,b,c\n1,\"x,\"\"y\"\"\",\n2.5,,\n");
        assert_eq!(csv(&[]), "\n");
    }
}
