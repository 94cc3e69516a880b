//! What every kernel of the PTX does, counted in fixed runs, and the record of it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use synchromesh::cost::{OneSwitch, Shape};
use synchromesh_cuda::{Counts, Cuda, Emulated, Kernels, Order, Transforms};
use synchromesh_ring::backend::{SignedWidth, View, ViewMut};
use synchromesh_ring::{Backend, Ring};
use synchromesh_rlwe::{Context, Params, ParamsLiteral, Security, SwitchPlan};
use synchromesh_testing::{laws, toy};

/// The record, relative to the crate.
pub(crate) const RECORD: &str = "ptx/counts.csv";

/// Counts by run and kernel.
pub(crate) type Table = BTreeMap<(String, String), Counts>;

/// A card in integers, or one with fast doubles and clusters.
fn card(doubles: bool) -> (&'static str, Emulated, Transforms) {
    let device = Emulated::new(Order::Ascending).with_kernels(Kernels::Ptx).counting();
    if doubles {
        ("doubles", device.with_fast_doubles().with_clusters(), Transforms::default())
    } else {
        ("integers", device, Transforms::TwoPasses)
    }
}

/// The laws and the primitives that they do without at N = 2^11, and all stages at N = 2^14; a key switch at N = 2^16, alone and two as one. Each modulo primes of
/// 60 bits by integers in two passes, and of 49 bits by doubles in clusters.
pub(crate) fn count() -> Table {
    let mut table = Table::new();
    for doubles in [false, true] {
        let bits = if doubles { 49 } else { 60 };
        let (name, device, transforms) = card(doubles);
        let open = |log_n| {
            let ring = Arc::new(Ring::new(log_n, &toy::ntt_primes(bits, log_n, 3)).expect("a ring"));
            Cuda::new(ring, device.clone(), None).expect("a device").with_transforms(transforms)
        };
        laws::all(&open(11), 1);
        primitives(&open(11));
        enter(&mut table, &format!("laws in {name}"), &device);
        laws::perform(&open(14), 1);
        enter(&mut table, &format!("stages in {name}"), &device);
        switch(&device, transforms, bits);
        enter(&mut table, &format!("switch in {name}"), &device);
    }
    table
}

fn enter(table: &mut Table, run: &str, device: &Emulated) {
    table.extend(device.take_counts().into_iter().map(|(kernel, counts)| ((run.to_owned(), kernel), counts)));
}

/// A limb from signed integers of every width, and an inner product of three limbs.
fn primitives(cuda: &Cuda<Emulated>) {
    let n = cuda.ring().n();
    let [mut out, mut x] = [2, 3].map(|rows| cuda.alloc(rows).expect("memory"));
    cuda.upload(&vec![3; 3 * n], &mut x, 0).expect("upload");
    let three = View { buffer: &x, batch: 3, batch_stride: 1, rows: &[0] };
    let both = ViewMut { buffer: &mut out, batch: 2, batch_stride: 1, rows: &[0] };
    cuda.inner_product(&[0], three, [three, three], both, false).expect("an inner product");
    for width in SignedWidth::ALL {
        cuda.reduce_signed(&[0], &vec![-5; n], width, ViewMut::new(&mut out, &[0])).expect("residues");
    }
}

/// A rotation by a hybrid switch with two digits of two primes, and two of them as one.
fn switch(device: &Emulated, transforms: Transforms, bits: u32) {
    const LOG_N: u32 = 16;
    let mut primes = toy::ntt_primes(bits, LOG_N, 6);
    let special = primes.split_off(4);
    let params = Params::new(ParamsLiteral {
        tag: "counted".to_owned(),
        log_n: LOG_N,
        q: primes,
        p: special,
        aux: Vec::new(),
        level_limbs: Vec::new(),
        schedule: Default::default(),
        error_multiple: "1".to_owned(),
        error: Default::default(),
        security: Security::Insecure,
    })
    .expect("parameters");
    let plan = SwitchPlan::hybrid(&params, 2).expect("a plan");
    let cuda = Cuda::new(Arc::clone(params.ring()), device.clone(), None).expect("a device");
    let top = params.level(params.top_level()).expect("a level").clone();
    let context = Context::with_backend(params, cuda.with_transforms(transforms));
    let shape = Shape { batch: 2, ..Shape::ROTATION };
    let switch = Arc::new(OneSwitch::new(&context, &plan, [&top, &top], shape).expect("a switch"));
    // What made the key and the operands.
    drop(device.take_counts());
    let two = Arc::clone(&switch);
    let _ = context.backend().record(2, move |i| two.run_one(i)).expect("a recording");
}

/// The table as its record.
pub(crate) fn record(table: &Table) -> String {
    let mut text = format!("run,kernel,{}\n", Counts::NAMES.join(","));
    for ((run, kernel), counts) in table {
        let values: Vec<String> = counts.values().iter().map(u64::to_string).collect();
        let _ = writeln!(text, "{run},{kernel},{}", values.join(","));
    }
    text
}

/// Where a record differs from another, in words: which rows are more than they were, and what else is not the same. Rows
/// have their names before the column of launches.
pub(crate) fn differences(had: &str, have: &str) -> Vec<String> {
    fn rows(text: &str) -> BTreeMap<String, Vec<&str>> {
        let names = columns(text).iter().position(|column| *column == "launches").unwrap_or(2);
        let mut rows = BTreeMap::new();
        for line in text.lines().skip(1) {
            let mut words: Vec<&str> = line.split(',').collect();
            let values = words.split_off(names.min(words.len()));
            rows.insert(words.join(", "), values);
        }
        rows
    }
    fn columns(text: &str) -> Vec<&str> {
        text.lines().next().unwrap_or_default().split(',').collect()
    }
    let (had_rows, have_rows) = (rows(had), rows(have));
    let columns = columns(have);
    let mut found = Vec::new();
    for name in had_rows.keys().filter(|name| !have_rows.contains_key(*name)) {
        found.push(format!("{name}: it is not counted any more"));
    }
    for (name, values) in &have_rows {
        let Some(before) = had_rows.get(name) else {
            found.push(format!("{name}: it was not counted"));
            continue;
        };
        let named = columns.iter().skip(columns.len() - values.len().min(columns.len()));
        let differing = named.zip(before.iter().zip(values)).filter(|(_, (before, now))| before != now);
        found.extend(differing.map(|(column, (before, now))| {
            let number = |word: &str| word.parse::<f64>().unwrap_or(0.0);
            let word = if number(now) > number(before) { "more" } else { "less" };
            format!("{name}: {word} {column}, {now} where it was {before}")
        }));
    }
    if found.is_empty() && had != have {
        found.push("the columns are others".to_owned());
    }
    found
}
