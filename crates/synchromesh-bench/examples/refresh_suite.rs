//! Refreshes at real parameters judged by decryption:
//! `refresh_suite [cuda] [OUT [LOG_N:REFRESHES:CHAIN | SCHEME:LOG_N:T:PRODUCTS ..]]`.
//!
//! Unless said otherwise at N = 2^16: 1000 refreshes of CKKS and 100 of one ciphertext, and 100 products in a row of BFV and
//! BGV for each t. What was found is written on the way; lines of the tables that are not measured again stay. Built with the
//! feature of that name, `cuda` computes on the first card, at the same parameters.

use std::path::Path;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::exact::Scheme;
use synchromesh::plan::bootstrap::{BootstrapRequest, ExactBootstrapRequest};
use synchromesh_bench::device::Device;
use synchromesh_bench::exact_refreshes::{Row, multiply_in_a_row};
use synchromesh_bench::refreshes::{Judgement, MOST_DEVIATIONS, judge};
use synchromesh_rlwe::{Randomness, Security};

/// Refreshes after which what was found is written.
const OFTEN: usize = 25;

const ERRORS: &str = "log_n,log_qp,security,refreshes,worst_error_bits,certified_bits,error_over_certificate,chain,\
                      chain_error_bits,chain_certified_bits,largest_multiple,deviations";

const MULTIPLES: &str = "log_n,multiple,times,expected";

const PRODUCTS: &str = "scheme,log_n,t,log_qp,security,products,refreshes,budget_before_bits,budget_after_bits,seconds";

/// Plaintext moduli of 17, 51 and 128 bits.
const MODULI: [&str; 3] = ["65537", "2251799813554177", "170141183460469231731687303715887513601"];

/// A case as it is asked for.
enum Case {
    /// Refreshes of fresh messages and of one ciphertext at this degree.
    Ckks { log_n: u32, refreshes: usize, chain: usize },
    /// Products in a row.
    Exact { bgv: bool, log_n: u32, t: String, products: usize },
}

impl Case {
    fn all() -> Vec<Self> {
        let exact = |bgv| MODULI.map(|t| Self::Exact { bgv, log_n: 16, t: t.to_owned(), products: 100 });
        let ckks = Self::Ckks { log_n: 16, refreshes: 1000, chain: 100 };
        std::iter::once(ckks).chain([false, true].into_iter().flat_map(exact)).collect()
    }

    fn parse(text: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let parts: Vec<&str> = text.split(':').collect();
        match parts.as_slice() {
            [log_n, refreshes, chain] => {
                Ok(Self::Ckks { log_n: log_n.parse()?, refreshes: refreshes.parse()?, chain: chain.parse()? })
            }
            [scheme @ ("bfv" | "bgv"), log_n, t, products] => {
                let (t, products) = ((*t).to_owned(), products.parse()?);
                Ok(Self::Exact { bgv: *scheme == "bgv", log_n: log_n.parse()?, t, products })
            }
            _ => Err(format!("'{text}' is neither LOG_N:REFRESHES:CHAIN nor bfv|bgv:LOG_N:T:PRODUCTS").into()),
        }
    }

    /// Whether everything that was found is as it should be.
    fn run(&self, out: &Path, device: Device) -> Result<bool, Box<dyn std::error::Error>> {
        match self {
            &Self::Ckks { log_n, refreshes, chain } => refreshed(out, log_n, [refreshes, chain], device),
            Self::Exact { bgv: false, log_n, t, products } => multiplied::<Bfv>(out, *log_n, t, *products, device),
            Self::Exact { bgv: true, log_n, t, products } => multiplied::<Bgv>(out, *log_n, t, *products, device),
        }
    }
}

/// The table of a file with these lines in place of those that begin so.
fn put(path: &Path, head: &str, own: &str, lines: Vec<String>) -> std::io::Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    let mut all: Vec<String> = before.lines().skip(1).filter(|l| !l.starts_with(own)).map(str::to_owned).collect();
    all.extend(lines);
    std::fs::write(path, format!("{head}\n{}\n", all.join("\n")))
}

const fn security(log_n: u32) -> Security {
    if log_n < 15 { Security::Insecure } else { Security::Bits128 }
}

fn record(out: &Path, judged: &Judgement) -> std::io::Result<()> {
    let bits = |error: f64| -error.log2();
    let line = format!(
        "{},{},{:.0},{},{:.2},{:.2},{:.4},{},{:.2},{:.2},{},{:.2}",
        judged.log_n,
        judged.log_qp,
        judged.security_bits,
        judged.refreshes,
        bits(judged.largest_error),
        bits(judged.certificate),
        judged.nearest.max(judged.chain_nearest),
        judged.chain,
        bits(judged.chain_error),
        bits(judged.chain_certificate),
        judged.largest_multiple(),
        judged.deviations(),
    );
    let own = format!("{},", judged.log_n);
    put(&out.join("errors.csv"), ERRORS, &own, vec![line])?;
    let multiple = |(k, (have, wanted)): (&i64, &(u64, f64))| format!("{},{k},{have},{wanted:.3}", judged.log_n);
    put(&out.join("multiples.csv"), MULTIPLES, &own, judged.multiples.iter().map(multiple).collect())
}

#[expect(clippy::print_stdout, reason = "an example")]
fn refreshed(
    out: &Path,
    log_n: u32,
    [refreshes, chain]: [usize; 2],
    device: Device,
) -> Result<bool, Box<dyn std::error::Error>> {
    let security = security(log_n);
    let request = BootstrapRequest {
        levels: Some(if security == Security::Insecure { 3 } else { 14 }),
        baby_steps: Some(8),
        security,
        ..BootstrapRequest::new(log_n, 40, 15)
    };
    let judged = judge(&request, [refreshes, chain], device, Randomness::from_os(), |judged| {
        eprintln!("{} of {refreshes} refreshes, {} of {chain} of one ciphertext", judged.refreshes, judged.chain);
        if (judged.refreshes + judged.chain).is_multiple_of(OFTEN) {
            record(out, judged).unwrap_or_else(|error| eprintln!("{error}"));
        }
    })?;
    record(out, &judged)?;
    println!(
        "N = 2^{log_n}: {refreshes} refreshes, error 2^{:.2}, certificate 2^{:.2}; {chain} of one ciphertext, error 2^{:.2}, \
         certificate 2^{:.2}; multiples up to {}, {:.1} deviations from what is expected",
        judged.largest_error.log2(),
        judged.certificate.log2(),
        judged.chain_error.log2(),
        judged.chain_certificate.log2(),
        judged.largest_multiple(),
        judged.deviations(),
    );
    Ok(judged.certificates_hold() && judged.deviations() < MOST_DEVIATIONS)
}

#[expect(clippy::print_stdout, reason = "an example")]
fn multiplied<S: Scheme>(
    out: &Path,
    log_n: u32,
    t: &str,
    products: usize,
    device: Device,
) -> Result<bool, Box<dyn std::error::Error>> {
    let request =
        ExactBootstrapRequest { log_n, t: t.to_owned(), products: 1, baby_steps: Some(8), security: security(log_n) };
    let row = multiply_in_a_row::<S>(&request, products, device, |row| {
        eprintln!("{} of {products} products, {} refreshes", row.products, row.refreshes);
        written(out, row).unwrap_or_else(|error| eprintln!("{error}"));
    })?;
    println!("{}, t = {t}: {} products in a row and {} refreshes, all right", row.scheme, row.products, row.refreshes);
    Ok(true)
}

fn written(out: &Path, row: &Row) -> std::io::Result<()> {
    let own = format!("{},{},{},", row.scheme, row.log_n, row.t);
    let line = format!(
        "{own}{},{:.0},{},{},{:.1},{:.1},{:.1}",
        row.log_qp, row.security_bits, row.products, row.refreshes, row.before_bits, row.after_bits, row.seconds
    );
    put(&out.join("products.csv"), PRODUCTS, &own, vec![line])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).peekable();
    let device = match args.next_if(|arg| arg == "cuda") {
        None => Device::Cpu,
        #[cfg(feature = "cuda")]
        Some(_) => Device::Cuda,
        #[cfg(not(feature = "cuda"))]
        Some(_) => return Err("this was built without the feature cuda".into()),
    };
    let out = args.next().unwrap_or_else(|| "docs/bootstrap".to_owned());
    let mut cases = args.map(|text| Case::parse(&text)).collect::<Result<Vec<_>, _>>()?;
    if cases.is_empty() {
        cases = Case::all();
    }
    std::fs::create_dir_all(&out)?;
    let mut good = true;
    for case in cases {
        good &= case.run(Path::new(&out), device)?;
    }
    if good { Ok(()) } else { Err("an error is above its certificate, or multiples are not as expected".into()) }
}
