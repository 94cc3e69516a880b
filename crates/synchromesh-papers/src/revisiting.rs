//! The circuits of ePrint 2021/204 (Tables 2, 3 and 6 to 8, Figure 1): product trees, polynomials and inner products in
//! BFV and BGV, the paper's figures beside what they come to here.
//!
//! The paper's noise is that of its own runs on inputs of its own; ours is measured in the phase. BFV runs at the
//! paper's parameters, which are chosen by averages. Certificates, which hold for any message, would refuse the last
//! step of many cells, so that here they are replaced by the errors measured as the circuit goes along. A few of the
//! smallest cells are refused even so: what one product may do to ciphertexts without any error is more than they have
//! room for; their primes grow bit by bit until it runs. BGV runs at the parameters that the static rule of section 4
//! gives with the paper's noise model, likewise, and where that is refused with the certified one.

mod bfv;
mod bgv;
mod noise;

use serde::Serialize;

use synchromesh_bench::Error;

pub use bgv::printed_chain;

/// The paper's figures, one line a cell.
const TABLES: &str = include_str!("../data/revisiting.csv");
/// Most bits that the primes of a cell are made longer by.
const MOST_EXTRA: u32 = 8;

/// What is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Circuit {
    /// The product of 2^k ciphertexts, as a binary tree (Tables 2 and 6).
    Tree,
    /// The sum of a_i x^i for i up to k, each a_i drawn from 0 to 15, or 1 for t = 2 (Tables 3 and 7).
    Polynomial,
    /// The sum of k products (Table 8).
    InnerProduct,
}

impl Circuit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tree, Self::Polynomial, Self::InnerProduct];

    /// `tree`, `polynomial` or `inner-product`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Polynomial => "polynomial",
            Self::InnerProduct => "inner-product",
        }
    }
}

/// A cell of the tables: a circuit at some parameters in one variant of a scheme.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// The circuit.
    pub circuit: Circuit,
    /// Plaintext modulus.
    pub t: u64,
    /// Digits of a key switch; none: one for each prime.
    pub digits: Option<usize>,
    /// Size of the circuit: depth of the tree, degree of the polynomial, pairs of the inner product.
    pub k: usize,
    /// `behz`, `hps`, `new`, `leveled`, `lazy-switch` or `lazy` of BFV, or `bgv`.
    pub variant: String,
    /// log2 of the degree.
    #[serde(rename = "paper_log_n")]
    pub log_n: u32,
    /// Bits of a ciphertext prime; in BGV of the prime of a level.
    #[serde(rename = "paper_log_qi")]
    pub log_qi: u32,
    /// Bits of the modulus; in BGV without the prime that goes before the first product.
    #[serde(rename = "paper_log_q")]
    pub log_q: u32,
    /// log2 of the error at the end; in BGV as if no modulus switch had scaled it.
    pub paper_log_e: f64,
    /// Seconds, on an Intel Core i7-9700 at 3 GHz with PALISADE 1.10.4.
    pub paper_s: f64,
}

/// A cell with what was measured here.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The paper's cell.
    #[serde(flatten)]
    pub published: Published,
    /// What was measured; none where the certificates refuse the parameters.
    #[serde(flatten)]
    pub ours: Option<Measured>,
    /// Estimated security of our parameters, special primes included.
    pub security_bits: f64,
}

/// The outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Measured {
    /// log2 of the degree.
    pub ours_log_n: u32,
    /// log2 of the modulus, as the paper's column has it.
    pub ours_log_q: f64,
    /// log2 of the largest error at the end, as the paper's column has it, the median of three or five runs.
    pub ours_log_e: f64,
    /// Seconds of the fastest run, one thread, key switching included.
    pub ours_s: f64,
    /// Whether the result decrypts to what the circuit computes on plain values.
    pub correct: bool,
}

/// Products one after another at parameters for all of them (Figure 1).
#[derive(Debug, Clone, PartialEq)]
pub struct Products {
    /// Milliseconds of the product at depth 1, 2, .., key switching included.
    pub milliseconds: Vec<f64>,
    /// log2 of the modulus.
    pub log_q: f64,
    /// Estimated security, special primes included.
    pub security_bits: f64,
}

/// All cells of a circuit's table.
///
/// # Errors
/// [`Error::Request`] when the table that is part of this crate cannot be read.
pub fn published(circuit: Circuit) -> Result<Vec<Published>, Error> {
    let rows = TABLES.lines().skip(1).map(parse).collect::<Result<Vec<_>, _>>()?;
    Ok(rows.into_iter().filter(|row| row.circuit == circuit).collect())
}

fn parse(line: &str) -> Result<Published, Error> {
    let bad = || Error::Request { reason: format!("not a line of the published tables: {line}") };
    let cells: Vec<&str> = line.split(',').collect();
    let &[circuit, t, digits, k, variant, log_n, log_qi, log_q, log_e, seconds] = cells.as_slice() else {
        return Err(bad());
    };
    let circuit = Circuit::ALL.into_iter().find(|c| c.name() == circuit).ok_or_else(bad)?;
    Ok(Published {
        circuit,
        t: t.parse().map_err(|_| bad())?,
        digits: if digits == "L" { None } else { Some(digits.parse().map_err(|_| bad())?) },
        k: k.parse().map_err(|_| bad())?,
        variant: variant.to_owned(),
        log_n: log_n.parse().map_err(|_| bad())?,
        log_qi: log_qi.parse().map_err(|_| bad())?,
        log_q: log_q.parse().map_err(|_| bad())?,
        paper_log_e: log_e.parse().map_err(|_| bad())?,
        paper_s: seconds.parse().map_err(|_| bad())?,
    })
}

/// Runs a cell's circuit: BFV at the cell's parameters, or with primes as little longer as the certificates ask for,
/// BGV at those of the static rule.
///
/// # Errors
/// [`Error`] for parameters that cannot be built, or when the device fails.
pub fn measure(published: &Published) -> Result<Row, Error> {
    let row = |(ours, security_bits)| Row { published: published.clone(), ours, security_bits };
    if published.variant == "bgv" {
        return bgv::measure(published).map(row);
    }
    for extra in 0..MOST_EXTRA {
        if let (Some(ours), security_bits) = bfv::measure(published, extra)? {
            return Ok(row((Some(ours), security_bits)));
        }
    }
    bfv::measure(published, MOST_EXTRA).map(row)
}

/// How often a circuit is run, each time on inputs and coefficients of its own, by the seconds of the first run.
const fn runs(seconds: f64) -> usize {
    if seconds < 1.0 { 5 } else { 3 }
}

/// The next pseudo-random word.
fn mix(counter: &mut u64) -> u64 {
    *counter = counter.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *counter;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `depth` products one after another in a variant of [`Published::variant`], with three digits, at degree 2^log_n and
/// whatever the security.
///
/// # Errors
/// As [`measure`].
pub fn products(variant: &str, log_n: u32, t: u64, depth: usize) -> Result<Products, Error> {
    if variant == "bgv" { bgv::products(log_n, t, depth) } else { bfv::products(variant, log_n, t, depth) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_of_the_tables_is_there() {
        let count = |circuit| published(circuit).unwrap().len();
        assert_eq!(Circuit::ALL.map(count), [210, 210, 18]);
        for row in Circuit::ALL.into_iter().flat_map(|circuit| published(circuit).unwrap()) {
            assert!(row.variant == "bgv" || row.log_q % row.log_qi == 0, "{row:?}: equal primes");
            assert!(row.paper_log_e < f64::from(row.log_q) && row.paper_s > 0.0, "{row:?}");
        }
    }

    #[test]
    fn small_cells_decrypt_with_no_more_noise_than_the_papers() {
        let small = |row: &&Published| {
            let size = if row.circuit == Circuit::Tree { 2 } else { 4 };
            row.log_n <= 13 && row.k <= size && row.t > 2 && row.digits.is_none()
        };
        let mut longer = 0;
        for circuit in [Circuit::Tree, Circuit::Polynomial] {
            for row in published(circuit).unwrap().iter().filter(small) {
                let Some(ours) = measure(row).unwrap().ours else { panic!("{row:?} is refused") };
                assert!(ours.correct, "{row:?} {ours:?}");
                let extra = ours.ours_log_q - f64::from(row.log_q);
                if row.variant == "bgv" {
                    assert!(ours.ours_log_e < ours.ours_log_q, "{row:?} {ours:?}");
                    continue;
                }
                longer += u32::from(extra > 0.0);
                // The paper does not say which coefficients below 16 it drew.
                let slack = if circuit == Circuit::Tree { 1.0 } else { 4.0 };
                assert!(ours.ours_log_e <= row.paper_log_e + slack, "{row:?} {ours:?}");
            }
        }
        assert!(longer <= 8, "{longer}");
    }

    #[test]
    fn the_static_rule_comes_to_the_papers_level_sizes() {
        for circuit in [Circuit::Tree, Circuit::Polynomial] {
            for row in published(circuit).unwrap().iter().filter(|row| row.variant == "bgv") {
                let level = printed_chain(row).unwrap().level;
                assert!((level + 1.0 - f64::from(row.log_qi)).abs() < 4.5, "{row:?} {level}");
            }
        }
    }

    #[test]
    fn products_follow_one_another_in_every_variant() {
        for variant in ["hps", "new", "leveled", "bgv"] {
            for t in [2, 65_537] {
                let products = products(variant, 11, t, 3).unwrap();
                assert_eq!(products.milliseconds.len(), 3);
                assert!(products.milliseconds.iter().all(|ms| *ms > 0.0) && products.log_q > 40.0, "{products:?}");
            }
        }
    }
}
