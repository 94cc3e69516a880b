//! An encrypted column: as many ciphertexts as its rows take, and how many rows there are.

use super::keys::{KeyFile, evaluation_keys, plan_section, public_key, secret_key};
use crate::bundle::{Bundle, CIPHERTEXT, COLUMN, ColumnHead, Kind};
use crate::error::Error;
use crate::expression::{self, Graph};
use crate::number::{Number, numbers};
use crate::table::MAX_CELLS;
use indicatif::ProgressBar;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use synchromesh::bundle::Unproven;
use synchromesh::ckks::{Published, Release};
use synchromesh::plan::{Plan, SchemeName};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::derived_key::second_id;
use synchromesh::rlwe::wire::{EnvelopeKey, KeyId, WireError};
use synchromesh::rlwe::{self, Randomness};
use synchromesh::scheme::{Binary, Encryptor, Operation, State, Values};
use synchromesh::session::{AnySession, Engine, Erased};
use synchromesh_ring::Backend;
use synchromesh_ring::backend::Open;
use synchromesh_rlwe::file::{Access, Existing};

/// A file to be written, and what of it may be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its path.
    pub path: &'a Path,
    /// What is done with a file that is there.
    pub existing: Existing,
}

/// An encrypted column.
pub struct Column {
    /// Its name in tables.
    pub name: String,
    /// Numbers in it.
    pub rows: usize,
    /// As many ciphertexts as they take.
    pub ciphertexts: Vec<Erased>,
}

impl Column {
    /// The column in a file, under the secret key `key` if one is named, its certificates believed as far as `trust` gives
    /// a reason.
    ///
    /// # Errors
    /// [`Error::Session`] when the number of ciphertexts is not what the rows take; the containers'.
    pub fn from_bundle<E: Engine + ?Sized>(
        session: &E,
        bundle: &Bundle,
        key: Option<KeyId>,
        trust: Trust<'_>,
    ) -> Result<Self, Error> {
        let head = ColumnHead::of(bundle)?;
        let (count, slots) = (bundle.all(CIPHERTEXT).count(), session.slots()?.count());
        if head.rows == 0 || head.rows > MAX_CELLS || count != head.rows.div_ceil(slots) {
            let what = format!("{count} ciphertexts of {slots} slots do not make a column of {} rows", head.rows);
            return Err(Error::Session { what });
        }
        let read = |bytes| session.read(bytes, key, trust);
        let ciphertexts = bundle.all(CIPHERTEXT).map(read).collect::<Result<_, _>>()?;
        Ok(Self { name: head.name, rows: head.rows, ciphertexts })
    }

    /// Writes the column, sealed under the envelope key if there is one and no certificate is
    /// believed on the user's word; whether it was.
    ///
    /// # Errors
    /// The file's.
    pub fn write<E: Engine + ?Sized>(
        &self,
        session: &E,
        plan: &Plan,
        target: Target<'_>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<bool, Error> {
        let head = ColumnHead { name: self.name.clone(), rows: self.rows }.to_bytes()?;
        let (plan_name, plan) = plan_section(plan)?;
        let containers = self.ciphertexts.iter().map(|c| session.write(c)).collect::<Result<Vec<_>, _>>()?;
        let mut sections = vec![(plan_name, plan.as_bytes()), (COLUMN, &head[..])];
        sections.extend(containers.iter().map(|bytes| (CIPHERTEXT, &bytes[..])));
        let states = self.states(session)?;
        let envelope = envelope.filter(|_| !states.iter().any(|state| state.on_word));
        Bundle::write(target.path, Kind::Column, &sections, envelope, (Access::Public, target.existing))?;
        Ok(envelope.is_some())
    }

    /// Where each ciphertext stands.
    fn states<E: Engine + ?Sized>(&self, session: &E) -> Result<Vec<State>, Error> {
        Ok(self.ciphertexts.iter().map(|ciphertext| session.state(ciphertext)).collect::<Result<_, _>>()?)
    }
}

/// What is known of a column that was written or read.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    scheme: &'static str,
    rows: usize,
    ciphertexts: usize,
    level: Option<usize>,
    modulus_bits: Option<f64>,
    noise_bits: Option<f64>,
    /// Bits by which the certified error could grow before the column does not decrypt: the least of its ciphertexts.
    budget_bits: Option<f64>,
    /// log2 of the probability with which a ciphertext decrypts wrongly, at most.
    log2_p_fail: f64,
    /// CKKS: how far a decrypted number may be off.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_bound: Option<f64>,
    /// Published: bits of the declared bound that are right, and log2 of the width of the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    precision_bits: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sigma_bits: Option<u32>,
    security_bits: f64,
    /// Whether the file is authenticated under the envelope key of the directory; none where nobody looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    authenticated: Option<bool>,
}

impl Summary {
    /// Of a column in a session of a plan. All ciphertexts of a column have the same level, modulus and noise.
    ///
    /// # Errors
    /// A column of other parameters.
    pub fn new<B: Backend>(session: &dyn AnySession<B>, plan: &Plan, column: &Column) -> Result<Self, Error> {
        let states = column.states(session)?;
        let (first, error_bound) = (states.first(), states.iter().map(|state| state.error_bound).fold(0.0, f64::max));
        Ok(Self {
            scheme: plan.scheme.name(),
            rows: column.rows,
            ciphertexts: column.ciphertexts.len(),
            level: first.map(|state| state.level),
            modulus_bits: first.map(|state| state.modulus_bits),
            noise_bits: first.map(|state| state.noise_bits),
            budget_bits: states.iter().map(|state| state.noise_budget).reduce(f64::min),
            log2_p_fail: plan.log2_p_fail,
            error_bound: (error_bound > 0.0).then_some(error_bound),
            precision_bits: None,
            sigma_bits: None,
            security_bits: session.rlwe().params().security_bits(),
            authenticated: None,
        })
    }

    fn authenticated(self, authenticated: bool) -> Self {
        Self { authenticated: Some(authenticated), ..self }
    }
}

/// Encrypts numbers, none larger than `bound`, and writes the column.
///
/// # Errors
/// The scheme's for a number it cannot hold; the file's.
pub fn encrypt(
    keys: &KeyFile,
    (name, numbers): (&str, &[Number]),
    bound: f64,
    out: Target<'_>,
    bar: &ProgressBar,
) -> Result<Summary, Error> {
    let plan = &keys.plan;
    let session = plan.open_any()?;
    let key = public_key(session.rlwe(), keys)?;
    let (by, level, slots) = (Encryptor::Public(&key), session.top_level(), session.slots()?.count());
    let mut randomness = Randomness::from_os();
    bar.set_length(numbers.len().div_ceil(slots) as u64);
    let parts = numbers.chunks(slots).map(|part| Ok((part, randomness.fork()?)));
    let parts = parts.collect::<Result<Vec<_>, rlwe::Error>>()?;
    let ciphertexts = session.threads().try_map(parts, |(numbers, mut randomness)| {
        let ciphertext = session.encrypt(&by, &values(plan.scheme, numbers)?, bound, level, &mut randomness)?;
        bar.inc(1);
        Ok::<_, Error>(ciphertext)
    })?;
    let column = Column { name: name.to_owned(), rows: numbers.len(), ciphertexts };
    let authenticated = column.write(&*session, plan, out, keys.envelope.as_ref())?;
    Ok(Summary::new(&*session, plan, &column)?.authenticated(authenticated))
}

/// The value of one operation of an expression, as `apply` computes operations of a scheme.
///
/// # Errors
/// [`Error::NotInteger`] and [`Error::NotReal`] for a constant that the scheme does not compute with; `apply`'s.
pub fn compute<C>(
    scheme: SchemeName,
    inputs: &[Arc<C>],
    operation: &expression::Operation<&Arc<C>>,
    apply: impl Fn(&Operation<'_>, &[&C]) -> synchromesh::Result<C>,
) -> Result<Arc<C>, Error> {
    let of = |operation: Operation<'_>, x: &[&Arc<C>]| {
        let x: Vec<&C> = x.iter().map(|x| &***x).collect();
        Ok(Arc::new(apply(&operation, &x)?))
    };
    let number = |c: &Number| values(scheme, std::slice::from_ref(c));
    match operation {
        expression::Operation::Input(index) => Ok(Arc::clone(&inputs[*index])),
        expression::Operation::Add(a, b) => of(Operation::Binary(Binary::Add), &[a, b]),
        expression::Operation::Sub(a, b) => of(Operation::Binary(Binary::Sub), &[a, b]),
        expression::Operation::Mul(a, b) => of(Operation::Binary(Binary::Mul), &[a, b]),
        expression::Operation::Neg(a) => of(Operation::Neg, &[a]),
        expression::Operation::Square(a) => of(Operation::Square, &[a]),
        expression::Operation::AddConst(a, c) => of(Operation::Scalar(Binary::Add, &number(c)?), &[a]),
        expression::Operation::MulConst(a, c) => of(Operation::Scalar(Binary::Mul, &number(c)?), &[a]),
        expression::Operation::Rotate(a, k) => of(Operation::Rotate(*k), &[a]),
        expression::Operation::Conjugate(a) => of(Operation::Swap, &[a]),
        expression::Operation::Refresh(a) => of(Operation::Refresh, &[a]),
        expression::Operation::Apply(a, None, f) => of(Operation::Function(f), &[a]),
        expression::Operation::Apply(a, Some(b), f) => of(Operation::Function(f), &[a, b]),
        expression::Operation::Table(a, None, table) => of(Operation::Table(table), &[a]),
        expression::Operation::Table(a, Some(b), table) => of(Operation::Table(table), &[a, b]),
    }
}

fn unbound(name: &str) -> Error {
    Error::Usage { message: format!("the expression uses '{name}', and no {name}=FILE is given") }
}

/// Why the certificates in the file at `path` are believed: the envelope key beside the keys, or the user's word.
fn trust(
    (bundle, path): (&Bundle, &Path),
    keys: &KeyFile,
    owner: KeyId,
    on_word: bool,
) -> Result<Trust<'static>, Error> {
    bundle.trust(keys.envelope.as_ref(), on_word).map_err(|why| match bundle.key_id() {
        // Of other keys altogether: that says more than that it is not authentic.
        Ok(found) if why == Unproven::NotAuthentic && found != owner && found != second_id(owner) => {
            rlwe::Error::from(WireError::WrongKey { expected: owner, found }).into()
        }
        _ => Error::Unproven { path: path.display().to_string(), why },
    })
}

/// Evaluates an expression over columns in files, ciphertext by ciphertext, and writes the result; with `on_word`,
/// certificates that nothing vouches for are believed.
///
/// # Errors
/// [`Error::Rows`] for columns of different lengths, [`Error::Unproven`], a name without a file, the scheme's, the files'.
pub fn evaluate<B: Open>(
    keys: &KeyFile,
    graph: &Graph,
    (files, on_word): (&HashMap<String, PathBuf>, bool),
    (name, out): (&str, Target<'_>),
    bar: &ProgressBar,
) -> Result<Summary, Error> {
    let plan = &keys.plan;
    let session = plan.open_any_on(B::open)?;
    let evaluation = evaluation_keys(session.rlwe(), keys)?;
    let target = evaluation.target();
    session.add_keys(&evaluation);
    let mut columns = Vec::new();
    for input in graph.inputs() {
        let path = files.get(input).ok_or_else(|| unbound(input))?;
        let bundle = Bundle::read(path)?.require(Kind::Column)?;
        let trust = trust((&bundle, path), keys, target, on_word)?;
        columns.push(Column::from_bundle(&*session, &bundle, Some(target), trust)?);
    }
    let rows = equal_rows(graph, &columns)?;
    let mut parts: Vec<_> = columns.into_iter().map(|column| column.ciphertexts.into_iter()).collect();
    let count = rows.div_ceil(session.slots()?.count());
    bar.set_length(count as u64);
    let inputs = |_| parts.iter_mut().filter_map(Iterator::next).map(Arc::new).collect::<Vec<_>>();
    let values = session.threads().try_map((0..count).map(inputs).collect(), |inputs| {
        let apply = |operation: &Operation<'_>, x: &[&Erased]| session.apply(operation, x);
        let value = graph.evaluate(|operation| compute(plan.scheme, &inputs, &operation, apply))?;
        bar.inc(1);
        Ok::<_, Error>(value)
    })?;
    // A value is shared only if it is an input itself, and the inputs are gone.
    let ciphertexts = values.into_iter().filter_map(Arc::into_inner).collect();
    let column = Column { name: name.to_owned(), rows, ciphertexts };
    let authenticated = column.write(&*session, plan, out, keys.envelope.as_ref())?;
    Ok(Summary::new(&*session, plan, &column)?.authenticated(authenticated))
}

/// The rows that all inputs have.
fn equal_rows(graph: &Graph, columns: &[Column]) -> Result<usize, Error> {
    let mut inputs = graph.inputs().iter().zip(columns.iter().map(|column| column.rows));
    let (first, rows) = inputs.next().ok_or_else(|| unbound(""))?;
    match inputs.find(|(_, other)| *other != rows) {
        None => Ok(rows),
        Some((second, other)) => Err(Error::Rows { first: first.clone(), rows, second: second.clone(), other }),
    }
}

/// Decrypts the column in the file at `path`: its name and its numbers, with noise that hides their error if `release` asks
/// for it; with `on_word`, certificates that nothing vouches for are believed, though never for a release.
///
/// # Errors
/// [`Error::Unproven`]; the scheme's for another key, a certificate that leaves no room or a release that it does not allow; the file's.
pub fn decrypt(
    keys: &KeyFile,
    (bundle, path): (&Bundle, &Path),
    on_word: bool,
    release: Option<&Release>,
    bar: &ProgressBar,
) -> Result<(String, Vec<Number>, Summary), Error> {
    let plan = &keys.plan;
    let session = plan.open_any()?;
    let secret = secret_key(session.rlwe(), keys)?;
    let trust = trust((bundle, path), keys, secret.id(), on_word)?;
    let column = Column::from_bundle(&*session, bundle, Some(secret.id()), trust)?;
    let (mut values, summary) = (Vec::new(), Summary::new(&*session, plan, &column)?);
    let mut summary = summary.authenticated(matches!(trust, Trust::Enclosed(_)));
    bar.set_length(column.ciphertexts.len() as u64);
    let count = column.ciphertexts.len() as u64;
    if let Some(&Release { shares, .. }) = release.filter(|release| release.shares < count) {
        let reason = format!("{shares} shares are allowed, and the column's {count} ciphertexts take one each");
        return Err(synchromesh::Error::Release { reason }.into());
    }
    let decrypted = session.threads().try_map(column.ciphertexts.iter().collect(), |ciphertext| {
        let decrypted = match release {
            None => (numbers(&session.decrypt(&secret, ciphertext)?), None),
            Some(release) => {
                let Published { values, precision, sigma_bits } = session.publish(&secret, ciphertext, release)?;
                (numbers(&values.into()), Some((precision, sigma_bits)))
            }
        };
        bar.inc(1);
        Ok::<_, Error>(decrypted)
    })?;
    for (part, released) in decrypted {
        values.extend(part);
        if let Some((precision, sigma_bits)) = released {
            summary.precision_bits = Some(summary.precision_bits.map_or(precision, |least| least.min(precision)));
            summary.sigma_bits = summary.sigma_bits.max(Some(sigma_bits));
        }
    }
    values.truncate(column.rows);
    Ok((column.name, values, summary))
}

/// Numbers as a scheme computes with them.
///
/// # Errors
/// [`Error::NotInteger`] for a fraction in an exact scheme, [`Error::NotReal`] for an integer beyond binary64 in CKKS.
fn values(scheme: SchemeName, numbers: &[Number]) -> Result<Values, Error> {
    if scheme == SchemeName::Ckks {
        let real = |x: &Number| x.to_f64().ok_or_else(|| Error::NotReal { value: x.to_string() });
        return Ok(numbers.iter().map(real).collect::<Result<Vec<_>, _>>()?.into());
    }
    let not_integer = |x: &Number| Error::NotInteger { value: x.to_string(), scheme: scheme.name() };
    let integer = |x: &Number| x.to_integer().ok_or_else(|| not_integer(x));
    Ok(numbers.iter().map(integer).collect::<Result<Vec<_>, _>>()?.into())
}
