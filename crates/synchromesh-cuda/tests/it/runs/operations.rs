//! Whole operations at N = 2^16 with 32 primes, counted launch by launch on samples of their blocks, and what a model of
//! cards makes of that.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use synchromesh::cost::{OneSwitch, Op, Shape};
use synchromesh_cuda::model::{CARDS, Card};
use synchromesh_cuda::{Counted, Cuda, Emulated, Order, Transforms};
use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_rlwe::{Context, Params, ParamsLiteral, Security, SwitchPlan};

/// The record, relative to the crate.
pub(crate) const RECORD: &str = "ptx/operations.csv";
const LOG_N: u32 = 16;
const PRIMES: usize = 32;

/// A relinearisation: its name, the widths of P and of the extended ring's primes, primes of a digit, domains.
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    special: &'static [u32],
    aux: &'static [u32],
    digit: usize,
    slots: bool,
}

/// Primes of the ciphertext have 40 bits; P and E are the fewest primes that suffice.
pub(crate) const OPERATIONS: [Operation; 4] = [
    Operation { name: "hybrid/alpha = 8/slots", special: &[55; 6], aux: &[], digit: 8, slots: true },
    Operation { name: "hybrid/alpha = 8/coefficients", special: &[55; 6], aux: &[], digit: 8, slots: false },
    Operation { name: "hybrid/alpha = 1/slots", special: &[55], aux: &[], digit: 1, slots: true },
    Operation { name: "linear/slots", special: &[55], aux: &[60; 2], digit: 1, slots: true },
];

pub(crate) fn params(operation: &Operation) -> Params {
    let mut primes: Vec<u64> = Vec::new();
    for &width in [40; PRIMES].iter().chain(operation.special).chain(operation.aux) {
        primes.push(ntt_primes_excluding(width, LOG_N, 1, &primes).expect("a prime")[0]);
    }
    let aux = primes.split_off(PRIMES + operation.special.len());
    let p = primes.split_off(PRIMES);
    Params::new(ParamsLiteral {
        tag: "counted".to_owned(),
        log_n: LOG_N,
        q: primes,
        p,
        aux,
        level_limbs: Vec::new(),
        schedule: Default::default(),
        error_multiple: "65537".to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    })
    .expect("parameters")
}

/// How its key is switched.
pub(crate) fn plan(operation: &Operation, params: &Params) -> SwitchPlan {
    if operation.aux.is_empty() {
        SwitchPlan::hybrid(params, PRIMES / operation.digit)
    } else {
        SwitchPlan::linear(params, operation.digit)
    }
    .expect("a plan")
}

/// A relinearisation in its domain.
pub(crate) const fn shape(operation: &Operation) -> Shape {
    Shape { op: Op::Relin, input_ntt: operation.slots, output_ntt: operation.slots, batch: 1 }
}

/// The launches of one switch after another one, on a device like the card.
pub(crate) fn launches(operation: &Operation, card: &Card) -> Vec<Counted> {
    let mut device = Emulated::new(Order::Ascending).sampling(card.cache_bytes);
    if card.fast_doubles {
        device = device.with_fast_doubles();
    }
    if card.clusters {
        device = device.with_clusters();
    }
    let params = params(operation);
    let plan = plan(operation, &params);
    let cuda = Cuda::new(Arc::clone(params.ring()), device.clone(), None).expect("a device");
    let top = params.level(params.top_level()).expect("a level").clone();
    let context = Context::with_backend(params, cuda.with_transforms(Transforms::default()));
    let switch = OneSwitch::new(&context, &plan, [&top, &top], shape(operation)).expect("a switch");
    switch.run().expect("a switch");
    drop(device.take_launches());
    switch.run().expect("a switch");
    device.take_launches()
}

/// The columns of the record: one row for each operation, card and kernel, and one for all kernels.
const COLUMNS: &str =
    "operation,card,kernel,launches,assembled,shared_ways,megabytes,missed_megabytes,occupancy,bound,microseconds\n";
/// The part of a number that may differ from the record, and how much of it at the least: small buffers lie where the host's
/// memory has room, and share lines of the emulated cache as it comes, so that what it misses differs, a little in all and
/// more in what one kernel leaves in the cache for the next, and the time where memory binds.
const SLACK: [(&str, [f64; 2]); 2] = [("missed_megabytes", [0.1, 16.0]), ("microseconds", [0.05, 2.0])];
/// Those of other columns.
const LITTLE: [f64; 2] = [0.01, 0.0];

/// All operations on all cards.
pub(crate) fn record() -> String {
    let mut text = COLUMNS.to_owned();
    for operation in &OPERATIONS {
        let mut done: Vec<(Card, Vec<Counted>)> = Vec::new();
        for card in CARDS {
            // Cards that count the same differ in rates alone.
            let alike = |of: &Card| {
                (of.cache_bytes, of.clusters, of.fast_doubles) == (card.cache_bytes, card.clusters, card.fast_doubles)
            };
            let before = done.iter().find(|(of, _)| alike(of)).map(|(_, launches)| launches.clone());
            let launches = before.unwrap_or_else(|| launches(operation, &card));
            rows(&mut text, operation.name, &card, &launches);
            done.push((card, launches));
        }
    }
    text
}

/// One operation on one card.
pub(crate) fn record_of(operation: &Operation, card: &Card) -> String {
    let mut text = COLUMNS.to_owned();
    rows(&mut text, operation.name, card, &launches(operation, card));
    text
}

/// Where rows differ by more than the slack from those of the same names in a record, in words.
pub(crate) fn differences(record: &str, rows: &str) -> Vec<String> {
    const NAMES: usize = 3;
    let words = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let split = |mut line: Vec<String>| {
        let values = line.split_off(NAMES.min(line.len()));
        (line, values)
    };
    let had: BTreeMap<Vec<String>, Vec<String>> = record.lines().map(words).map(split).collect();
    let mut found = Vec::new();
    for (line, values) in rows.lines().map(words).map(split) {
        let name = line.join(", ");
        let Some(before) = had.get(&line) else {
            found.push(format!("{name}: it was not counted"));
            continue;
        };
        for ((column, before), now) in COLUMNS.trim().split(',').skip(NAMES).zip(before).zip(&values) {
            let same = match (before.parse::<f64>(), now.parse::<f64>()) {
                (Ok(before), Ok(now)) => {
                    let slack = SLACK.iter().find(|(name, _)| *name == column).map_or(LITTLE, |(_, slack)| *slack);
                    let [part, least] = slack;
                    (now - before).abs() <= (part * before.abs()).max(least)
                }
                _ => before == now,
            };
            if !same {
                found.push(format!("{name}: {column} {now} where it was {before}"));
            }
        }
    }
    found
}

fn rows(text: &mut String, operation: &str, card: &Card, launches: &[Counted]) {
    let mut kernels: BTreeMap<&str, Vec<&Counted>> = BTreeMap::new();
    for launch in launches {
        kernels.entry("all").or_default().push(launch);
        kernels.entry(&launch.kernel).or_default().push(launch);
    }
    for (kernel, launches) in kernels {
        let sum = |of: fn(&Counted) -> u64| launches.iter().map(|launch| of(launch)).sum::<u64>();
        let predicted: Vec<_> = launches.iter().map(|launch| (card.predict(launch), launch)).collect();
        let longest = predicted.iter().map(|(it, _)| it).max_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let occupancy = predicted.iter().map(|(it, _)| it.occupancy).fold(1.0, f64::min);
        let seconds: f64 = predicted.iter().map(|(it, _)| it.seconds).sum();
        let ways = launches.iter().map(|launch| launch.counts.shared_ways).max().unwrap_or(0);
        let _ = writeln!(
            text,
            "{operation},{},{kernel},{},{},{ways},{:.1},{:.1},{:.3},{},{:.1}",
            card.name,
            launches.len(),
            sum(|launch| launch.counts.assembled),
            32e-6 * sum(|launch| launch.counts.global_sectors) as f64,
            32e-6 * sum(|launch| launch.counts.missed_sectors) as f64,
            occupancy,
            longest.map_or("", |it| it.bound),
            1e6 * seconds,
        );
    }
}
