//! Running the library's work without the interpreter's lock, and so that Ctrl-C ends the wait for it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use synchromesh_ring::threads::spawn;

use crate::fault::Fault;

/// How often a wait looks for signals.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(internal()))
}

pub(crate) fn internal() -> Fault {
    let remedy = "report it with the program that led here; no result was produced";
    Fault::own("internal", "the library broke one of its own invariants", remedy)
}

/// Runs `work` without the interpreter's lock.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T, Fault> + Send) -> PyResult<T> {
    Ok(py.detach(|| guarded(work))?)
}

/// Runs `work` on a thread of its own and waits for it; a signal that raises an exception ends the wait at once, and
/// what the thread then produces is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> PyResult<T> {
    attended(py, work, || Ok(()))
}

/// Steps of a long work.
#[derive(Default)]
pub(crate) struct Steps {
    done: AtomicUsize,
    abandoned: AtomicBool,
}

impl Steps {
    /// One more is done; fails where nobody waits for the rest.
    pub(crate) fn step(&self) -> synchromesh::Result<()> {
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(synchromesh::Error::Argument { rule: "nobody waits for this work any more".into() });
        }
        Ok(())
    }
}

/// As [`interruptible`]: `progress` is called with how many steps were done since it was last called, and where it raises an
/// exception, or a signal does, the work ends at its next step.
pub(crate) fn counted<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Steps) -> Result<T, Fault> + Send + 'static,
) -> PyResult<T> {
    let steps = Arc::new(Steps::default());
    let (own, mut told) = (Arc::clone(&steps), 0);
    let made = attended(
        py,
        move || work(&own),
        || {
            let done = steps.done.load(Ordering::Relaxed);
            if let Some(progress) = progress.filter(|_| done > told) {
                progress.call1((done - told,))?;
            }
            told = done;
            Ok(())
        },
    );
    steps.abandoned.store(true, Ordering::Relaxed);
    made
}

/// Runs `work` on a thread of its own, and `look` here again and again while it runs, and once more when it is done.
fn attended<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
    mut look: impl FnMut() -> PyResult<()>,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let spawned = spawn("synchromesh", move || {
        // Nobody waits any more if this fails.
        let _ = sender.send(guarded(work));
    });
    spawned.map_err(|e| Fault::own("thread", format!("no thread could be started: {e}"), "end other threads"))?;
    loop {
        let waited = py.detach(move || {
            let result = receiver.recv_timeout(SLICE);
            (receiver, result)
        });
        receiver = waited.0;
        look()?;
        match waited.1 {
            Ok(result) => return Ok(result?),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(internal().into()),
        }
    }
}
