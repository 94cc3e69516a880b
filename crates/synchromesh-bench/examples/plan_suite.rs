//! Plans of depth 10 for every scheme and security, and 1000 random circuits at each:
//! `plan_suite [OUT [CIRCUITS [SCHEME:SECURITY ...]]]`. Lines of the table that are not measured again stay.

use std::path::Path;

use synchromesh::plan::SchemeName;
use synchromesh_bench::decryptions::decryptions;
use synchromesh_rlwe::Security;

const HEAD: &str = "scheme,security,depth,log_n,log_q,log_qp,limit,circuits,right,seconds";

/// The table with this line in place of the one that begins alike, or at its end.
fn with_line(table: &mut Vec<String>, line: String) {
    let case = |line: &str| line.split(',').take(2).map(str::to_owned).collect::<Vec<_>>();
    match table.iter_mut().find(|other| case(other) == case(&line)) {
        Some(other) => *other = line,
        None => table.push(line),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let out = args.next().unwrap_or_else(|| "docs/planner".to_owned());
    let circuits = args.next().map_or(Ok(1000), |number| number.parse())?;
    let wanted: Vec<String> = args.collect();
    std::fs::create_dir_all(&out)?;
    let path = Path::new(&out).join("decryptions.csv");
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let mut table: Vec<String> = before.lines().skip(1).map(str::to_owned).collect();
    let mut all = true;
    for security in [Security::Bits128, Security::Bits192, Security::Bits256] {
        for scheme in [SchemeName::Bgv, SchemeName::Ckks, SchemeName::Bfv] {
            let case = format!("{}:{}", scheme.name(), security.level().map_or(0, |level| level.bits()));
            if !wanted.is_empty() && !wanted.contains(&case) {
                continue;
            }
            let mut done = 0;
            let d = decryptions(scheme, security, 10, circuits, &mut || {
                done += 1;
                if done % 100 == 0 {
                    eprintln!("{case}: {done} of {circuits}");
                }
            })?;
            all &= d.right == d.circuits && d.log_qp <= d.limit;
            let line = format!(
                "{},{},{},{},{},{},{},{},{},{:.1}",
                d.scheme, d.security, d.depth, d.log_n, d.log_q, d.log_qp, d.limit, d.circuits, d.right, d.seconds
            );
            println!("{line}");
            with_line(&mut table, line);
            std::fs::write(&path, format!("{HEAD}\n{}\n", table.join("\n")))?;
        }
    }
    if all { Ok(()) } else { Err("a circuit decrypts wrongly, or a modulus is above the table's".into()) }
}
