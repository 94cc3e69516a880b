//! An encrypted column: as many ciphertexts as its rows take, and how many rows there are.

use super::keys::{KeyFile, evaluation_keys, plan_section, public_key, secret_key};
use crate::bundle::{Bundle, CIPHERTEXT, COLUMN, ColumnHead, Kind};
use crate::demo::Health;
use crate::error::Error;
use crate::expression::{Algebra, Graph};
use crate::number::Number;
use crate::scheme::{Flooding, Scheme};
use crate::table::MAX_CELLS;
use indicatif::ProgressBar;
use serde::Serialize;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use synchromesh::bundle::Unproven;
use synchromesh::ckks::Release;
use synchromesh::plan::Plan;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::second_key::second_id;
use synchromesh::rlwe::wire::{EnvelopeKey, KeyId, WireError};
use synchromesh::rlwe::{self, Randomness};
use synchromesh_rlwe::file::{Access, Existing};

/// A file to be written, and what of it may be replaced.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Its path.
    pub path: &'a Path,
    /// What is done with a file that is there.
    pub existing: Existing,
}

/// An encrypted column of a scheme.
pub struct Column<A: Scheme> {
    /// Its name in tables.
    pub name: String,
    /// Numbers in it.
    pub rows: usize,
    /// As many ciphertexts as they take.
    pub ciphertexts: Vec<A::Ciphertext>,
}

impl<A: Scheme> Column<A> {
    /// The column in a file, under the secret key `key` if one is named, its certificates believed as far as `trust` gives
    /// a reason.
    ///
    /// # Errors
    /// [`Error::Session`] when the number of ciphertexts is not what the rows take; the containers'.
    pub fn from_bundle(scheme: &A, bundle: &Bundle, key: Option<KeyId>, trust: Trust<'_>) -> Result<Self, Error> {
        let head = ColumnHead::of(bundle)?;
        let (count, slots) = (bundle.all(CIPHERTEXT).count(), scheme.slots());
        if head.rows == 0 || head.rows > MAX_CELLS || count != head.rows.div_ceil(slots) {
            let what = format!("{count} ciphertexts of {slots} slots do not make a column of {} rows", head.rows);
            return Err(Error::Session { what });
        }
        let read = |bytes| scheme.read(bytes, key, trust);
        let ciphertexts = bundle.all(CIPHERTEXT).map(read).collect::<Result<_, _>>()?;
        Ok(Self { name: head.name, rows: head.rows, ciphertexts })
    }

    /// Writes the column, sealed under the envelope key if there is one and no certificate is
    /// believed on the user's word; whether it was.
    ///
    /// # Errors
    /// The file's.
    pub fn write(
        &self,
        scheme: &A,
        plan: &Plan,
        target: Target<'_>,
        envelope: Option<&EnvelopeKey>,
    ) -> Result<bool, Error> {
        let head = ColumnHead { name: self.name.clone(), rows: self.rows }.to_bytes()?;
        let (plan_name, plan) = plan_section(plan)?;
        let containers = self.ciphertexts.iter().map(|c| scheme.write(c)).collect::<Result<Vec<_>, _>>()?;
        let mut sections = vec![(plan_name, plan.as_bytes()), (COLUMN, &head[..])];
        sections.extend(containers.iter().map(|bytes| (CIPHERTEXT, &bytes[..])));
        let envelope = envelope.filter(|_| !self.ciphertexts.iter().any(|c| scheme.is_on_word(c)));
        Bundle::write(target.path, Kind::Column, &sections, envelope, (Access::Public, target.existing))?;
        Ok(envelope.is_some())
    }

    /// The state of the first ciphertext; all of a column have the same.
    #[must_use]
    pub fn health(&self, scheme: &A) -> Option<Health> {
        self.ciphertexts.first().map(|ciphertext| scheme.health(ciphertext))
    }

    /// How far a decrypted number may be off.
    #[must_use]
    pub fn error_bound(&self, scheme: &A) -> f64 {
        self.ciphertexts.iter().map(|ciphertext| scheme.error_bound(ciphertext)).fold(0.0, f64::max)
    }
}

/// What is known of a column that was written or read.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    scheme: &'static str,
    rows: usize,
    ciphertexts: usize,
    level: Option<u32>,
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
    /// Of a column of these parameters.
    pub fn new<A: Scheme>(scheme: &A, plan: &Plan, column: &Column<A>) -> Self {
        let health = column.health(scheme);
        let error_bound = column.error_bound(scheme);
        Self {
            scheme: plan.scheme.name(),
            rows: column.rows,
            ciphertexts: column.ciphertexts.len(),
            level: health.map(|h| h.level),
            modulus_bits: health.map(|h| h.modulus_bits),
            noise_bits: health.map(|h| h.noise_bits),
            budget_bits: column.ciphertexts.iter().map(|c| scheme.budget(c)).reduce(f64::min),
            log2_p_fail: plan.log2_p_fail,
            error_bound: (error_bound > 0.0).then_some(error_bound),
            precision_bits: None,
            sigma_bits: None,
            security_bits: scheme.rlwe().params().security_bits(),
            authenticated: None,
        }
    }

    fn authenticated(self, authenticated: bool) -> Self {
        Self { authenticated: Some(authenticated), ..self }
    }
}

/// Encrypts numbers, none larger than `bound`, and writes the column.
///
/// # Errors
/// The scheme's for a number it cannot hold; the file's.
pub fn encrypt<A: Scheme>(
    keys: &KeyFile,
    (name, values): (&str, &[Number]),
    bound: f64,
    out: Target<'_>,
    bar: &ProgressBar,
) -> Result<Summary, Error> {
    let plan = &keys.plan;
    let scheme = A::open(plan)?;
    let key = public_key(&scheme, keys)?;
    let mut randomness = Randomness::from_os();
    let mut ciphertexts = Vec::new();
    bar.set_length(values.len().div_ceil(scheme.slots()) as u64);
    for values in values.chunks(scheme.slots()) {
        ciphertexts.push(scheme.encrypt(&key, values, bound, &mut randomness)?);
        bar.inc(1);
    }
    let column = Column { name: name.to_owned(), rows: values.len(), ciphertexts };
    let authenticated = column.write(&scheme, plan, out, keys.envelope.as_ref())?;
    Ok(Summary::new(&scheme, plan, &column).authenticated(authenticated))
}

/// Ciphertexts as values of an expression.
struct Evaluation<'a, A: Scheme> {
    scheme: &'a A,
    inputs: &'a HashMap<String, Rc<A::Ciphertext>>,
}

impl<A: Scheme> Evaluation<'_, A> {
    fn shared(value: Result<A::Ciphertext, Error>) -> Result<Rc<A::Ciphertext>, Error> {
        value.map(Rc::new)
    }
}

impl<A: Scheme> Algebra for Evaluation<'_, A> {
    type Value = Rc<A::Ciphertext>;
    type Error = Error;

    fn input(&mut self, name: &str) -> Result<Self::Value, Error> {
        self.inputs.get(name).cloned().ok_or_else(|| unbound(name))
    }
    fn add(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.add(a, b))
    }
    fn sub(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.sub(a, b))
    }
    fn neg(&mut self, a: &Self::Value) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.neg(a))
    }
    fn mul(&mut self, a: &Self::Value, b: &Self::Value) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.mul(a, b))
    }
    fn square(&mut self, a: &Self::Value) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.square(a))
    }
    fn add_const(&mut self, a: &Self::Value, c: &Number) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.add_const(a, c))
    }
    fn mul_const(&mut self, a: &Self::Value, c: &Number) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.mul_const(a, c))
    }
    fn rotate(&mut self, a: &Self::Value, k: i64) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.rotate(a, k))
    }
    fn conjugate(&mut self, a: &Self::Value) -> Result<Self::Value, Error> {
        Self::shared(self.scheme.conjugate(a))
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
pub fn evaluate<A: Scheme>(
    keys: &KeyFile,
    graph: &Graph,
    (files, on_word): (&HashMap<String, PathBuf>, bool),
    (name, out): (&str, Target<'_>),
    bar: &ProgressBar,
) -> Result<Summary, Error> {
    let plan = &keys.plan;
    let scheme = A::open(plan)?;
    let evaluation = evaluation_keys(&scheme, keys)?;
    let target = evaluation.target();
    let scheme = scheme.with_keys(evaluation, plan.routes.as_ref());
    let mut columns = HashMap::new();
    for input in graph.inputs() {
        let path = files.get(input).ok_or_else(|| unbound(input))?;
        let bundle = Bundle::read(path)?.require(Kind::Column)?;
        let trust = trust((&bundle, path), keys, target, on_word)?;
        columns.insert(input.clone(), Column::from_bundle(&scheme, &bundle, Some(target), trust)?);
    }
    let rows = equal_rows(graph, &columns)?;
    let mut ciphertexts = Vec::new();
    let mut parts: Vec<_> = columns.into_iter().map(|(name, c)| (name, c.ciphertexts.into_iter())).collect();
    let count = rows.div_ceil(scheme.slots());
    bar.set_length(count as u64);
    for _ in 0..count {
        let next = |(name, part): &mut (String, std::vec::IntoIter<_>)| Some((name.clone(), Rc::new(part.next()?)));
        let inputs = parts.iter_mut().filter_map(next).collect();
        let value = graph.evaluate(&mut Evaluation { scheme: &scheme, inputs: &inputs })?;
        drop(inputs);
        // The value is shared only if it is an input itself, and the inputs are gone.
        ciphertexts.extend(Rc::into_inner(value));
        bar.inc(1);
    }
    let column = Column { name: name.to_owned(), rows, ciphertexts };
    let authenticated = column.write(&scheme, plan, out, keys.envelope.as_ref())?;
    Ok(Summary::new(&scheme, plan, &column).authenticated(authenticated))
}

/// The rows that all inputs have.
fn equal_rows<A: Scheme>(graph: &Graph, columns: &HashMap<String, Column<A>>) -> Result<usize, Error> {
    let mut inputs = graph.inputs().iter().filter_map(|name| Some((name, columns.get(name)?.rows)));
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
pub fn decrypt<A: Scheme>(
    keys: &KeyFile,
    (bundle, path): (&Bundle, &Path),
    on_word: bool,
    release: Option<&Release>,
    bar: &ProgressBar,
) -> Result<(String, Vec<Number>, Summary), Error> {
    let plan = &keys.plan;
    let scheme = A::open(plan)?;
    let secret = secret_key(&scheme, keys)?;
    let trust = trust((bundle, path), keys, secret.id(), on_word)?;
    let column = Column::from_bundle(&scheme, bundle, Some(secret.id()), trust)?;
    let (mut values, summary) = (Vec::new(), Summary::new(&scheme, plan, &column));
    let mut summary = summary.authenticated(matches!(trust, Trust::Enclosed(_)));
    bar.set_length(column.ciphertexts.len() as u64);
    let count = column.ciphertexts.len() as u64;
    if let Some(&Release { shares, .. }) = release.filter(|release| release.shares < count) {
        let reason = format!("{shares} shares are allowed, and the column's {count} ciphertexts take one each");
        return Err(synchromesh::Error::Release { reason }.into());
    }
    for ciphertext in &column.ciphertexts {
        values.extend(match release {
            None => scheme.decrypt(&secret, ciphertext)?,
            Some(release) => {
                let (values, Flooding { precision, sigma_bits }) = scheme.publish(&secret, ciphertext, release)?;
                summary.precision_bits = Some(summary.precision_bits.map_or(precision, |least| least.min(precision)));
                summary.sigma_bits = summary.sigma_bits.max(Some(sigma_bits));
                values
            }
        });
        bar.inc(1);
    }
    values.truncate(column.rows);
    Ok((column.name, values, summary))
}
