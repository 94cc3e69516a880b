//! Times circuits of ePrint 2021/204, appendix G: `circuits bfv|bgv [product|polynomial K..]`.

use synchromesh::plan::SchemeName;
use synchromesh_bench::circuits::{Circuit, Request, measure};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let scheme = match args.first().map(String::as_str) {
        Some("bfv") => SchemeName::Bfv,
        Some("bgv") => SchemeName::Bgv,
        _ => return Err("bfv or bgv".into()),
    };
    let circuit = match args.get(1).map(String::as_str) {
        Some("product") => Circuit::Product,
        Some("inner-product") => Circuit::InnerProduct,
        None | Some("polynomial") => Circuit::Polynomial,
        Some(other) => return Err(format!("no circuit {other}").into()),
    };
    for k in args.iter().skip(2) {
        let report = measure(&Request { scheme, circuit, k: k.parse()?, t: None })?;
        #[expect(clippy::print_stdout, reason = "the result of a command")]
        {
            println!("{report:?}");
        }
    }
    Ok(())
}
