//! Fetch by similarity: records, payloads and queries as the harness draws them, its stages, and what is right.

use std::collections::HashMap;
use std::f64::consts::TAU;
use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::{COMPARED, Measured, Run, Words, median};
use crate::workspace;

/// Queries of a run, half of them near a centre of records.
const QUERIES: usize = 20;

const THRESHOLD: f64 = 0.8;

/// Within it records may be found or not.
const GAP: f64 = 0.01;

type Payload = [i16; 7];

pub(super) fn build(root: &Path, _: &Path) -> Result<()> {
    super::build(root, "fetch-by-similarity")
}

pub(super) fn fetch(run: &Run<'_>) -> Measured {
    answer(run, &[], |result, sure, undecided| {
        let found: Vec<Payload> = result.chunks_exact(14).map(payload).collect();
        let mut all = sure.to_vec();
        all.extend(undecided);
        found.is_sorted() && holds(&found, sure) && holds(&all, &found)
    })
}

pub(super) fn count(run: &Run<'_>) -> Measured {
    answer(run, &["--count_only"], |result, sure, undecided| {
        let count = <[u8; 8]>::try_from(result).map(|bytes| u64::from_le_bytes(bytes) as usize);
        count.is_ok_and(|count| (sure.len()..=sure.len() + undecided.len()).contains(&count))
    })
}

/// Runs all stages, and asks of each result whether it is right, given payloads that it must have and those it may have.
fn answer(run: &Run<'_>, more: &[&str], right: impl Fn(&[u8], &[Payload], &[Payload]) -> bool) -> Measured {
    // As the harness has them: a dimension for each size.
    let dimension = if run.size.count < 1_000_000 { 128 } else { 256 };
    let mut drawn = Drawn { words: Words::new(), dimension };
    let centres: Vec<Vec<f32>> = (0..run.size.count / 32).map(|_| drawn.unit()).collect();
    let records: Vec<Vec<f32>> = (0..run.size.count).map(|_| drawn.record(&centres)).collect();
    let payloads: Vec<Payload> =
        (0..run.size.count).map(|_| std::array::from_fn(|_| (drawn.words.next() >> 55) as i16)).collect();
    fs::write(run.data().join("db.bin"), bytes(records.iter().flatten()))?;
    let flat: Vec<u8> = payloads.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    fs::write(run.data().join("payloads.bin"), flat)?;

    let program = workspace::target(run.root).join("release/fetch-by-similarity");
    let timed = |stage| run.stage(&program, &[&[stage, run.number.as_str(), "--seed", "1"], more].concat());
    let mut times = vec![
        ("preprocess records", timed("client_preprocess_dataset")?),
        ("key generation", timed("client_key_generation")?),
        ("encode and encrypt records", timed("client_encode_encrypt_db")?),
        ("preprocess encrypted records", timed("server_preprocess_dataset")?),
    ];
    let (mut each, mut near) = ([const { Vec::new() }; 4], 0);
    for number in 0..QUERIES {
        let query = drawn.query(&centres, number.is_multiple_of(2));
        fs::write(run.data().join("query.bin"), bytes(&query))?;
        each[0].push(timed("client_preprocess_query")?);
        each[1].push(timed("client_encode_encrypt_query")?);
        each[2].push(timed("server_encrypted_compute")?);
        each[3].push(timed("client_decrypt_decode")? + timed("client_postprocess")?);
        let (mut sure, mut undecided) = (Vec::new(), Vec::new());
        for (record, &payload) in records.iter().zip(&payloads) {
            let product: f64 = record.iter().zip(&query).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
            if (product - THRESHOLD).abs() < GAP {
                undecided.push(payload);
            } else if product > THRESHOLD {
                sure.push(payload);
            }
        }
        near += undecided.len();
        let result = fs::read(run.io().join("results.bin"))?;
        ensure!(right(&result, &sure, &undecided), "{}: query {number} is answered wrong", run.size.name);
    }
    let stages = ["preprocess query", "encode and encrypt query", COMPARED, "decrypt and postprocess"];
    times.extend(stages.into_iter().zip(each.map(median)));
    Ok((times, format!("{QUERIES} of {QUERIES}, {near} records within {GAP} of {THRESHOLD}")))
}

/// Whether the first has all of the second, as often.
fn holds(all: &[Payload], some: &[Payload]) -> bool {
    let mut left: HashMap<&Payload, usize> = HashMap::new();
    for payload in all {
        *left.entry(payload).or_default() += 1;
    }
    some.iter().all(|payload| left.get_mut(payload).filter(|left| **left > 0).map(|left| *left -= 1).is_some())
}

fn payload(bytes: &[u8]) -> Payload {
    std::array::from_fn(|i| i16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]))
}

fn bytes<'a>(numbers: impl IntoIterator<Item = &'a f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Vectors of so many coordinates.
struct Drawn {
    words: Words,
    dimension: usize,
}

impl Drawn {
    /// In \[0, 1).
    fn uniform(&mut self) -> f64 {
        (self.words.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform on the sphere: normal coordinates (Box and Muller), divided by their length.
    fn unit(&mut self) -> Vec<f32> {
        let normal = |drawn: &mut Self| {
            let radius = (-2.0 * (1.0 - drawn.uniform()).ln()).sqrt();
            (radius * (TAU * drawn.uniform()).cos()) as f32
        };
        let drawn = (0..self.dimension).map(|_| normal(self)).collect();
        normalised(drawn)
    }

    fn near(&mut self, centres: &[Vec<f32>]) -> Vec<f32> {
        let centre = &centres[(self.uniform() * centres.len() as f64) as usize];
        let other = self.unit();
        normalised(centre.iter().zip(other).map(|(c, x)| c + 0.3 * x).collect())
    }

    fn record(&mut self, centres: &[Vec<f32>]) -> Vec<f32> {
        if self.words.next() >> 63 == 0 { self.near(centres) } else { self.unit() }
    }

    fn query(&mut self, centres: &[Vec<f32>], near: bool) -> Vec<f32> {
        if near { self.near(centres) } else { self.unit() }
    }
}

fn normalised(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.into_iter().map(|x| x / length).collect()
}
