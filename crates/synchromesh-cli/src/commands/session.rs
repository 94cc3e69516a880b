//! `keygen`, `encrypt`, `eval`, `decrypt`: a session through files.

use super::overwrite::Overwrite;
use super::place::{Place, Used, on_device};
use crate::bundle::{Bundle, Kind};
use crate::error::Error;
use crate::expression::Graph;
use crate::number::Number;
use crate::output::{Report, progress};
use crate::session::{self, Directory, Target, decrypt, encrypt, evaluate, generate, require_secure};
use crate::table::Table;
use clap::Args;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use synchromesh::ckks::Release;
use synchromesh::plan::{Plan, SchemeName};
use synchromesh_rlwe::file::{self, Access};

/// The largest plan file that is read, in bytes.
const MAX_PLAN_BYTES: u64 = 1 << 24;

/// Makes the keys of a plan: DIR/secret.key and DIR/envelope.key (mode 0600), DIR/public.key, DIR/eval.keys, all or none.
/// Existing keys stay.
///
/// A directory that is made is its owner's alone (mode 0700). Whoever holds envelope.key is trusted to say how much noise a
/// ciphertext has: give it to those who encrypt and compute for you if you trust them.
#[derive(Args, Debug)]
pub(super) struct Keygen {
    /// The plan, from `plan --out`.
    #[arg(long)]
    plan: PathBuf,
    /// The directory for the keys.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Accept less than 128 bits of security.
    #[arg(long)]
    insecure: bool,
}

#[derive(Serialize)]
struct KeyFile {
    path: String,
    bytes: u64,
}

#[derive(Serialize)]
struct Keys {
    scheme: &'static str,
    key_id: String,
    security_bits: f64,
    /// log2 of the probability with which a decryption fails, or in ckks an error exceeds its certificate, at most.
    log2_p_fail: f64,
    rotations: Vec<i64>,
    files: Vec<KeyFile>,
}

impl Keygen {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<Report, Error> {
        let plan = read_plan(&self.plan)?;
        require_secure(&plan, self.insecure)?;
        require_memory(&plan)?;
        let directory = Directory::new(&self.out);
        let generated = generate(&plan, &directory)?;
        let file = |(path, bytes): (PathBuf, u64)| KeyFile { path: path.display().to_string(), bytes };
        Report::new(&Keys {
            scheme: plan.scheme.name(),
            key_id: generated.key_id,
            security_bits: plan.security_bits,
            log2_p_fail: plan.log2_p_fail,
            rotations: plan.rotations,
            files: generated.files.into_iter().map(file).collect(),
        })
    }
}

/// Fails for a plan whose keys and circuit take more memory than there is.
pub(super) fn require_memory(plan: &Plan) -> Result<(), Error> {
    match (plan.memory, synchromesh_rlwe::memory::available_bytes()) {
        (Some(memory), Some(free)) if memory.total_bytes > free => {
            Err(Error::Memory { needed: memory.total_bytes, free })
        }
        _ => Ok(()),
    }
}

/// A plan in a JSON file.
pub(super) fn read_plan(path: &Path) -> Result<Plan, Error> {
    let text = String::from_utf8(file::read(path, MAX_PLAN_BYTES)?);
    let text = text.map_err(|_| Error::Plan { what: "it is not UTF-8 text".to_owned() })?;
    Ok(Plan::from_json(&text)?)
}

/// Encrypts a column of a CSV or NPY table with DIR/public.key. With DIR/envelope.key the file is authenticated.
///
/// A column longer than the slots takes several ciphertexts, all in one file. In bfv and bgv every number must be an
/// integer from -t/2 to t/2; in ckks none may exceed --bound, which is public.
#[derive(Args, Debug)]
pub(super) struct Encrypt {
    /// The directory of keys.
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,
    /// The table.
    #[arg(long, value_name = "FILE")]
    r#in: PathBuf,
    /// The encrypted column.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The column, by name or by number from 1; not needed for a table of one column.
    #[arg(long)]
    column: Option<String>,
    /// ckks: no number of the column has a larger magnitude.
    #[arg(long, default_value_t = 1.0)]
    bound: f64,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Accept less than 128 bits of security.
    #[arg(long)]
    insecure: bool,
}

#[derive(Serialize)]
struct Written {
    out: String,
    bytes: u64,
    #[serde(flatten)]
    summary: session::Summary,
}

#[derive(Serialize)]
struct Evaluated {
    #[serde(flatten)]
    written: Written,
    #[serde(flatten)]
    used: Used,
}

impl Written {
    fn new(out: &Path, summary: session::Summary) -> Self {
        let bytes = std::fs::metadata(out).map_or(0, |metadata| metadata.len());
        Self { out: out.display().to_string(), bytes, summary }
    }

    fn report(out: &Path, summary: session::Summary) -> Result<Report, Error> {
        Report::new(&Self::new(out, summary))
    }
}

impl Encrypt {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let target = Target { path: &self.out, existing: self.overwrite.permit([self.out.as_path()])? };
        let table = Table::read(&self.r#in)?;
        let column = self.find(&table)?;
        let values: Vec<Number> = table.column(column)?.cloned().collect();
        let name = table.names().and_then(|names| names.get(column).cloned()).unwrap_or_else(|| stem(&self.out));
        let keys = Directory::new(&self.keys).read(Kind::PublicKey)?;
        require_secure(&keys.plan, self.insecure)?;
        let exact = keys.plan.scheme != SchemeName::Ckks;
        if exact {
            // Says row and column of a number that is no integer.
            table.integers(column)?;
        } else {
            table.reals(column)?;
        }
        let bar = progress(json, 0);
        let summary = encrypt(&keys, (&name, &values), self.bound, target, &bar)?;
        bar.finish_and_clear();
        Written::report(&self.out, summary)
    }

    fn find(&self, table: &Table) -> Result<usize, Error> {
        let refuse = |message: String| Err(Error::Usage { message });
        let Some(wanted) = &self.column else {
            if table.columns() == 1 {
                return Ok(0);
            }
            let message = format!("the table has {} columns: name one with --column", table.columns());
            return refuse(message);
        };
        let named = |name: &(usize, &String)| name.1 == wanted;
        let mut named = table.names().unwrap_or_default().iter().enumerate().filter(named);
        match (named.next(), named.count()) {
            (Some((index, _)), 0) => return Ok(index),
            (Some((first, _)), more) => {
                let (first, count) = (first + 1, more + 1);
                return refuse(format!(
                    "{count} columns of the table are named '{wanted}': give the number of one, say --column {first}"
                ));
            }
            (None, _) => {}
        }
        match wanted.parse::<usize>() {
            Ok(number) if (1..=table.columns()).contains(&number) => Ok(number - 1),
            _ => refuse(format!("the table has no column '{wanted}' among its {}", table.columns())),
        }
    }
}

/// The name of a file without directory and extension.
fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// Computes on encrypted columns with DIR/eval.keys; the secret key is not needed and not read.
///
/// EXPRESSION has names, numbers, + - * ^, parentheses, rotate(x, k) and conj(x). rotate moves slot i + k to slot i
/// within a ciphertext: of all N/2 slots in ckks, of each half of the N slots in bfv and bgv, where conj swaps the
/// halves; and refresh(x) under a plan with --bootstrap, which also refreshes by itself. In bfv and bgv it also has functions of
/// integers from a declared range: equal(x, y, 0, 15) and less(x, y, 0, 15) for operands from 0 to 15, lookup(x, 3, 10, 20)
/// for 10 where x is 3 and 20 where it is 4. In ckks it has functions, approximated where the argument lies, to a tolerance:
/// exp(x, -8, 0, 1e-4) for -8 <= x <= 0 (-1, 1 and a 1024th without numbers), log, sigmoid, tanh, gelu, sqrt, rsqrt, inverse,
/// abs, relu, max(x, y), min(x, y), clip(x, LEAST, MOST, ..); sign, step and compare(x, y) with a last number, the distance
/// from the jump that stays undecided. Files must be authenticated under DIR/envelope.key; then the result is too.
#[derive(Args, Debug)]
pub(super) struct Eval {
    /// What to compute, say 'x*y + 2*x'.
    expression: String,
    /// Encrypted columns by name.
    #[arg(value_name = "NAME=FILE", required = true, value_parser = binding)]
    inputs: Vec<(String, PathBuf)>,
    /// The directory of keys.
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,
    /// The encrypted result.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Believe the noise certificates of files that are not authenticated. The result is not authenticated either.
    #[arg(long)]
    trust_certificate: bool,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Accept less than 128 bits of security.
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    place: Place,
}

fn binding(text: &str) -> Result<(String, PathBuf), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok((name.to_owned(), PathBuf::from(path))),
        _ => Err("expected NAME=FILE".to_owned()),
    }
}

impl Eval {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let target = Target { path: &self.out, existing: self.overwrite.permit([self.out.as_path()])? };
        let chosen = self.place.choose()?;
        let graph = Graph::parse(&self.expression)?;
        let mut files = HashMap::new();
        for (name, path) in &self.inputs {
            if !graph.inputs().contains(name) {
                return Err(Error::Usage {
                    message: format!("{name}=FILE is given, and the expression has no '{name}'"),
                });
            }
            if files.insert(name.clone(), path.clone()).is_some() {
                return Err(Error::Usage { message: format!("{name}=FILE is given twice") });
            }
        }
        let keys = Directory::new(&self.keys).read(Kind::EvaluationKeys)?;
        require_secure(&keys.plan, self.insecure)?;
        require_memory(&keys.plan)?;
        let bar = progress(json, 0);
        let name = stem(&self.out);
        let files = (&files, self.trust_certificate);
        let out = (&*name, target);
        let summary = on_device!(chosen, Device => evaluate::<Device>(&keys, &graph, files, out, &bar))?;
        bar.finish_and_clear();
        Report::new(&Evaluated { written: Written::new(&self.out, summary), used: chosen.used() })
    }
}

/// Decrypts a column with DIR/secret.key into a CSV file, or an NPY file if --out ends in .npy.
///
/// The file must be authenticated under DIR/envelope.key. Decrypted ckks values carry traces of the key: do not publish them
/// as they are. With --publish they get noise that hides those.
#[derive(Args, Debug)]
pub(super) struct Decrypt {
    /// The directory of keys.
    #[arg(long, value_name = "DIR")]
    keys: PathBuf,
    /// The encrypted column.
    #[arg(long, value_name = "FILE")]
    r#in: PathBuf,
    /// The table.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// ckks: values that others may see. PRECISION bits of the bound must stay right; SHARES is how many ciphertexts will
    /// ever be published under this key; S is the statistical security, 30 bits or more.
    #[arg(long, value_name = "PRECISION,SHARES,S", value_parser = release)]
    publish: Option<Release>,
    /// Believe the noise certificates of a file that is not authenticated: a false one gives wrong results, and those who
    /// see these can learn the key. Not for --publish.
    #[arg(long)]
    trust_certificate: bool,
    #[command(flatten)]
    overwrite: Overwrite,
    /// Accept less than 128 bits of security.
    #[arg(long)]
    insecure: bool,
}

fn release(text: &str) -> Result<Release, String> {
    let wrong = || "expected PRECISION,SHARES,S, say 20,16,40".to_owned();
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let [precision, shares, security] = parts[..] else { return Err(wrong()) };
    Ok(Release {
        precision: precision.parse().map_err(|_| wrong())?,
        shares: shares.parse().map_err(|_| wrong())?,
        security: security.parse().map_err(|_| wrong())?,
    })
}

impl Decrypt {
    /// Runs the command.
    pub(super) fn run(&self, json: bool) -> Result<Report, Error> {
        let existing = self.overwrite.permit([self.out.as_path()])?;
        let column = Bundle::read(&self.r#in)?.require(Kind::Column)?;
        let keys = Directory::new(&self.keys).read(Kind::SecretKey)?;
        require_secure(&keys.plan, self.insecure)?;
        let bar = progress(json, 0);
        let (column, release) = ((&column, &*self.r#in), self.publish.as_ref());
        let (name, values, summary) = decrypt(&keys, column, self.trust_certificate, release, &bar)?;
        bar.finish_and_clear();
        let table = Table::from_columns(Some(vec![name]), &[values])?;
        let access = if release.is_some() { Access::Public } else { Access::Secret };
        file::write(&self.out, &table.to_bytes(&self.out)?, access, existing)?;
        Written::report(&self.out, summary)
    }
}
