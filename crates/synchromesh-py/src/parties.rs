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

fn party(
    (hosts, identity): (PathBuf, PathBuf),
    with: Option<Vec<usize>>,
    timeout: f64,
    stop: &Stop,
) -> Result<Party, Fault> {
    let seconds = Duration::try_from_secs_f64(timeout);
    let timeout = seconds
        .map_err(|_| Fault::own("operation", format!("a timeout of {timeout} seconds"), "give seconds, at least 0"))?;
    Ok(Party { hosts, identity, with, timeout, stop: stop.0.clone() })
}

fn floor(insecure: bool, statistical_security: u32) -> Floor {
    Floor { security: if insecure { 0.0 } else { Floor::default().security }, statistical_security }
}

/// Makes a key with all other parties: its name, this party's number, files, rounds, bytes sent.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn make_joint_key(
    py: Python<'_>,
    plan: String,
    directory: PathBuf,
    hosts: PathBuf,
    identity: PathBuf,
    timeout: f64,
    insecure: bool,
    least_statistical_security: u32,
    stop: &Stop,
) -> PyResult<(String, usize, Vec<PathBuf>, u64, u64)> {
    let made = detached(py, || {
        let plan = Plan::from_json(&plan)?;
        let party = party((hosts, identity), None, timeout, stop)?;
        Ok(party.generate_keys(&plan, &floor(insecure, least_statistical_security), &directory)?)
    })?;
    let files = made.files.into_iter().map(|file| file.0).collect();
    Ok((made.key.to_string(), made.member, files, made.traffic.rounds, made.traffic.bytes_sent))
}

/// Slots by ciphertext, how far a number may be off, members, decryptions so far and at most, rounds, bytes sent.
type Shown<'py> = (Vec<Bound<'py, PyAny>>, f64, Vec<usize>, u64, u64, u64, u64);

/// Decrypts a column with the others who are there.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn decrypt_together<'py>(
    py: Python<'py>,
    keys: PathBuf,
    file: PathBuf,
    hosts: PathBuf,
    identity: PathBuf,
    members: Option<Vec<usize>>,
    precision: f64,
    timeout: f64,
    insecure: bool,
    least_statistical_security: u32,
    complex: bool,
    stop: &Stop,
) -> PyResult<Shown<'py>> {
    let shown = detached(py, || {
        let party = party((hosts, identity), members, timeout, stop)?;
        Ok(party.decrypt(&keys, &[&file], precision, &floor(insecure, least_statistical_security))?)
    })?;
    let bound = shown.columns.iter().map(|column| column.error_bound).fold(0.0, f64::max);
    let values = shown.columns.into_iter().flat_map(|column| column.values);
    let values = values.map(|values| into_array(values, complex, py)).collect::<PyResult<_>>()?;
    let ((made, most), traffic) = (shown.decryptions, shown.traffic);
    Ok((values, bound, shown.members, made, most, traffic.rounds, traffic.bytes_sent))
}

/// Makes a column fresh with the others who are there: as [`pass_on_together`], and its level.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn refresh_together(
    py: Python<'_>,
    keys: PathBuf,
    file: PathBuf,
    out: PathBuf,
    hosts: PathBuf,
    identity: PathBuf,
    members: Option<Vec<usize>>,
    timeout: f64,
    insecure: bool,
    least_statistical_security: u32,
    stop: &Stop,
) -> PyResult<(Passed, usize)> {
    let fresh = detached(py, || {
        let party = party((hosts, identity), members, timeout, stop)?;
        let to: (&[&Path], Existing) = (&[&out], Existing::Replace);
        Ok(party.refresh(&keys, &[&file], to, &floor(insecure, least_statistical_security))?)
    })?;
    let level = fresh.level;
    Ok((passed(out, fresh), level))
}

/// The file, whether it is authenticated, members, decryptions so far and at most, rounds, bytes sent.
type Passed = (PathBuf, bool, Vec<usize>, u64, u64, u64, u64);

/// Brings a column under a receiver's key with the others who are there.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn pass_on_together(
    py: Python<'_>,
    keys: PathBuf,
    file: PathBuf,
    receiver: PathBuf,
    out: PathBuf,
    hosts: PathBuf,
    identity: PathBuf,
    members: Option<Vec<usize>>,
    precision: f64,
    timeout: f64,
    insecure: bool,
    least_statistical_security: u32,
    stop: &Stop,
) -> PyResult<Passed> {
    let passed = detached(py, || {
        let party = party((hosts, identity), members, timeout, stop)?;
        let to: (&Path, &[&Path], Existing) = (&receiver, &[&out], Existing::Replace);
        Ok(party.pass_on(&keys, &[&file], to, precision, &floor(insecure, least_statistical_security))?)
    })?;
    Ok(self::passed(out, passed))
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
#[expect(clippy::too_many_arguments, reason = "each is an argument of Python's function")]
pub(crate) fn hand_on_together(
    py: Python<'_>,
    keys: PathBuf,
    out: PathBuf,
    new_hosts: PathBuf,
    threshold: Option<usize>,
    hosts: PathBuf,
    identity: PathBuf,
    members: Option<Vec<usize>>,
    timeout: f64,
    insecure: bool,
    least_statistical_security: u32,
    stop: &Stop,
) -> PyResult<Handed> {
    let done = detached(py, || {
        let party = party((hosts, identity), members, timeout, stop)?;
        let to = NewHolders { hosts: new_hosts, threshold };
        Ok(party.hand_on(&keys, &to, &floor(insecure, least_statistical_security), &out)?)
    })?;
    let HandedOn { key, joint, member, givers, files, spent, decryptions, traffic, .. } = done;
    let files = files.into_iter().map(|file| file.0).collect();
    let (name, sent) = (key.to_string(), traffic.bytes_sent);
    Ok((name, joint.parties, joint.threshold, member, givers, decryptions, files, spent, traffic.rounds, sent))
}
