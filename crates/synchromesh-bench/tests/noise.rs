//! Errors measured at small degrees: estimates are right on average, certificates hold and are not far above.

use synchromesh_bench::noise::{Options, Plan, Row, Subject, calibrate, measure, saved, write_report};

/// Bits by which a measured standard deviation may differ from the estimate: 0.05, and what four standard errors of a
/// few keys come to; products weigh the few frequencies at which a key is large.
fn tolerance(row: &Row) -> f64 {
    let independent = (row.values as f64).min(row.keys as f64 * f64::from(row.log_n - 1).exp2());
    // A sum over all rotations leaves two coefficients.
    let independent = if row.operation.starts_with("sum of a") { 2.0 * row.keys as f64 } else { independent };
    0.05 + 4.0 * (1 + 3 * row.depth) as f64 / independent.sqrt()
}

/// Bits that a certificate at 2^-40 may be above the largest of a few thousand errors: two for each product, two or, for
/// the heavier tails of slots, three and a half besides; more where what is certified is far from the average case.
fn allowed(row: &Row) -> f64 {
    let base = if row.scheme == "ckks" { 3.5 } else { 2.0 };
    let far = match row.operation {
        // Any plaintext, one on a single frequency included.
        "x times plaintext" if row.scheme != "ckks" => 4.0,
        // Operands with something in common: N in place of its root.
        "x x" => 3.0,
        // Rotations of an error may all agree.
        "sum of a row of slots" | "sum of all slots" => 8.0,
        _ => 0.0,
    };
    base + far + 2.0 * row.depth as f64
}

fn judge(rows: &[Row]) {
    let mut wrong = Vec::new();
    for row in rows {
        let (deviation, gap) = (row.deviation(), row.gap());
        println!("{:<24} {:<28} deviation {deviation:+.3} gap {gap:+.2}", row.scheme, row.operation);
        let holds = row.largest <= row.certificate_40 && row.certificate_40 <= row.certificate_128;
        let average = deviation.abs() <= tolerance(row) && gap <= allowed(row);
        if !holds || (row.average && !average) {
            wrong.push(format!("{} {}: {deviation:+.3} {gap:+.2}", row.scheme, row.operation));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn bfv_errs_as_estimated_and_as_certified() {
    judge(&measure(Subject::Bfv(Plan::Wide), 11, 6).unwrap());
}

#[test]
fn bgv_errs_as_estimated_and_as_certified() {
    judge(&measure(Subject::Bgv(Plan::Wide), 11, 6).unwrap());
}

#[test]
fn ckks_errs_as_estimated_and_as_certified() {
    judge(&measure(Subject::Ckks, 11, 6).unwrap());
}

#[test]
fn decryptions_fail_as_often_as_predicted() {
    for rate in [8, 12] {
        let c = calibrate(11, rate, 100).unwrap();
        assert!((0.5..2.0).contains(&c.ratio) && (c.predicted + f64::from(rate)).abs() < 0.5, "{c:?}");
    }
}

#[test]
fn certificates_take_about_the_modulus_of_the_models_of_the_papers_or_less() {
    for row in saved().unwrap() {
        println!("{row:?}");
        assert!(row.average < row.certificate_128.min(row.certificate_40), "{row:?}");
        assert!(row.average < row.worst_case.min(row.canonical), "{row:?}");
    }
}

#[test]
fn a_report_has_a_line_for_every_operation_and_goes_on_where_it_was() {
    let out = std::env::temp_dir().join(format!("synchromesh-noise-{}", std::process::id()));
    std::fs::create_dir_all(&out).unwrap();
    let record = out.join("record.jsonl");
    let mut options = Options { sizes: vec![(10, 1)], record: Some(record.clone()), wrong: 20 };
    let mut run = |keys| {
        options.sizes[0].1 = keys;
        let (mut measured, mut last) = (0, 0.0);
        let rows = write_report(&out, &options, &mut |share, new| {
            measured += usize::from(new);
            last = share;
        });
        assert!((last - 1.0).abs() < 1e-9);
        (rows.unwrap(), measured)
    };
    let (rows, measured) = run(1);
    assert_eq!(measured, 5);
    let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let lines = read("errors.csv").lines().count() - 1;
    assert!(lines > 100 && lines == rows.len() && read("errors.csv").lines().all(|line| line.split(',').count() >= 16));
    assert_eq!((read("failure-rate.csv").lines().count(), read("modulus.csv").lines().count()), (4, 11));
    // An interrupted line is measured again, and what is there is not.
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, &text[..text.len() - 20]).unwrap();
    let (again, measured) = run(1);
    assert_eq!((measured, format!("{again:?}")), (1, format!("{rows:?}")));
    let (more, measured) = run(2);
    assert_eq!(measured, 5);
    assert!(more.iter().all(|row| row.keys == 2 && row.standard_error.is_finite()));
    // Every operation of every scheme, and labels under both axes.
    let figure = read("errors.svg");
    assert!(rows.iter().all(|row| figure.contains(&format!(">{}</text>", row.operation))));
    assert!(["-0.20", "0.05", "16"].iter().all(|label| figure.matches(&format!(">{label}</text>")).count() == 5));
    std::fs::remove_dir_all(&out).unwrap();
}
