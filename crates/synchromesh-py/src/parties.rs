//! Keys that several parties hold together: making one, decrypting with it, passing columns on, and handing it on itself.
//!
//! A session goes on without the interpreter's lock, on whatever thread called it; [`Stop`] ends it from another.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pyo3::prelude::*;
use synchromesh::plan::Plan;
use synchromesh_rlwe::file::Existing;
use synchromesh_triples::parties::party::{Floor, HandedOn, NewHolders, Party, Rewritten};
use synchromesh_triples::parties::tls;

use crate::fault::Fault;
use crate::run::detached;
use crate::values::into_array;

/// Ends a session that another thread is in.
#[pyclass(frozen, module = "synchromesh._native")]
#[derive(Default)]
pub(crate) struct Stop(tls::Stop);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn stop(&self) {
        self.0.stop();
    }
}

/// Among whom a session is and as whom, how long it waits, and what it takes at least: the list of parties, the certificate, the
/// numbers of those who are there or all, seconds, whether a plan may have less security than usual, and bits that hide shares.
#[derive(FromPyObject)]
pub(crate) struct Among(PathBuf, PathBuf, Option<Vec<usize>>, f64, bool, u32);

impl Among {
    /// What one party does there, until it is stopped.
    fn enter(self, stop: &Stop) -> Result<(Party, Floor), Fault> {
        let Self(hosts, identity, with, timeout, insecure, statistical_security) = self;
        let seconds = Duration::try_from_secs_f64(timeout).map_err(|_| {
            Fault::own("operation", format!("a timeout of {timeout} seconds"), "give seconds, at least 0")
        })?;
        let security = if insecure { 0.0 } else { Floor::default().security };
        let party = Party { hosts, identity, with, timeout: seconds, stop: stop.0.clone() };
        Ok((party, Floor { security, statistical_security }))
    }
}

/// Makes a key with all other parties: its name, this party's number, files, rounds, bytes sent.
#[pyfunction]
pub(crate) fn make_joint_key(
    py: Python<'_>,
    plan: String,
    directory: PathBuf,
    among: Among,
    stop: &Stop,
) -> PyResult<(String, usize, Vec<PathBuf>, u64, u64)> {
    let made = detached(py, || {
        let plan = Plan::from_json(&plan)?;
        let (party, floor) = among.enter(stop)?;
        Ok(party.generate_keys(&plan, &floor, &directory)?)
    })?;
    let files = made.files.into_iter().map(|file| file.0).collect();
    Ok((made.key.to_string(), made.member, files, made.traffic.rounds, made.traffic.bytes_sent))
}

/// Slots by ciphertext, how far a number may be off, members, decryptions so far and at most, rounds, bytes sent.
type Shown<'py> = (Vec<Bound<'py, PyAny>>, f64, Vec<usize>, u64, u64, u64, u64);

/// Decrypts a column with the others who are there.
#[pyfunction]
pub(crate) fn decrypt_together<'py>(
    py: Python<'py>,
    keys: PathBuf,
    file: PathBuf,
    among: Among,
    precision: f64,
    complex: bool,
    stop: &Stop,
) -> PyResult<Shown<'py>> {
    let shown = detached(py, || {
        let (party, floor) = among.enter(stop)?;
        Ok(party.decrypt(&keys, &[&file], precision, &floor)?)
    })?;
    let bound = shown.columns.iter().map(|column| column.error_bound).fold(0.0, f64::max);
    let values = shown.columns.into_iter().flat_map(|column| column.values);
    let values = values.map(|values| into_array(values, complex, py)).collect::<PyResult<_>>()?;
    let ((made, most), traffic) = (shown.decryptions, shown.traffic);
    Ok((values, bound, shown.members, made, most, traffic.rounds, traffic.bytes_sent))
}

/// Makes a column fresh with the others who are there: as [`pass_on_together`], and its level.
#[pyfunction]
pub(crate) fn refresh_together(
    py: Python<'_>,
    keys: PathBuf,
    file: PathBuf,
    out: PathBuf,
    among: Among,
    stop: &Stop,
) -> PyResult<(Passed, usize)> {
    let fresh = detached(py, || {
        let (party, floor) = among.enter(stop)?;
        let to: (&[&Path], Existing) = (&[&out], Existing::Replace);
        Ok(party.refresh(&keys, &[&file], to, &floor)?)
    })?;
    let level = fresh.level;
    Ok((passed(out, fresh), level))
}

/// The file, whether it is authenticated, members, decryptions so far and at most, rounds, bytes sent.
type Passed = (PathBuf, bool, Vec<usize>, u64, u64, u64, u64);

/// Brings a column under a receiver's key with the others who are there.
#[pyfunction]
pub(crate) fn pass_on_together(
    py: Python<'_>,
    keys: PathBuf,
    file: PathBuf,
    to: (PathBuf, PathBuf),
    among: Among,
    precision: f64,
    stop: &Stop,
) -> PyResult<Passed> {
    let passed = detached(py, || {
        let (party, floor) = among.enter(stop)?;
        let to: (&Path, &[&Path], Existing) = (&to.0, &[&to.1], Existing::Replace);
        Ok(party.pass_on(&keys, &[&file], to, precision, &floor)?)
    })?;
    Ok(self::passed(to.1, passed))
}

fn passed(out: PathBuf, written: Rewritten) -> Passed {
    let ((made, most), traffic) = (written.decryptions, written.traffic);
    (out, written.authenticated, written.members, made, most, traffic.rounds, traffic.bytes_sent)
}

/// Name of the key, holders and how many of them decrypt, this party's new number, givers, decryptions so far, files, what is to be
/// deleted, rounds, bytes sent.
type Handed = (String, usize, usize, Option<usize>, Vec<usize>, u64, Vec<PathBuf>, Vec<PathBuf>, u64, u64);

/// Hands a key on to other holders, with those who give and those who take.
#[pyfunction]
pub(crate) fn hand_on_together(
    py: Python<'_>,
    keys: PathBuf,
    out: PathBuf,
    new_hosts: PathBuf,
    threshold: Option<usize>,
    among: Among,
    stop: &Stop,
) -> PyResult<Handed> {
    let done = detached(py, || {
        let (party, floor) = among.enter(stop)?;
        let to = NewHolders { hosts: new_hosts, threshold };
        Ok(party.hand_on(&keys, &to, &floor, &out)?)
    })?;
    let HandedOn { key, joint, member, givers, files, spent, decryptions, traffic, .. } = done;
    let files = files.into_iter().map(|file| file.0).collect();
    let (name, sent) = (key.to_string(), traffic.bytes_sent);
    Ok((name, joint.parties, joint.threshold, member, givers, decryptions, files, spent, traffic.rounds, sent))
}
