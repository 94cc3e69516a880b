//! Deadlines: a program that hangs is ended, and a check that does ends this one with a report.

use std::io::{self, Read};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

/// Longest that a check or a program may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(900);

/// How often is looked.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a program to its end, or ends it after [`LIMIT`] or when all time is over; then it is not begun.
pub(crate) fn output(command: &mut Command, until: Option<Instant>) -> io::Result<Output> {
    let start = Instant::now();
    let left = until.map_or(LIMIT, |until| until.saturating_duration_since(start));
    if left.is_zero() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "not begun: the minutes that were given are over"));
    }
    let limit = left.min(LIMIT);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("ended after {} s", limit.as_secs())));
        }
        thread::sleep(LOOK);
    };
    let bytes = |reader: thread::JoinHandle<Vec<u8>>| reader.join().unwrap_or_default();
    Ok(Output { status, stdout: bytes(stdout), stderr: bytes(stderr) })
}

fn reader(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        bytes
    })
}

/// Looks whether a check in this process comes to an end: one that waits for a kernel which does not cannot be stopped.
pub(crate) struct Watch(Arc<Mutex<Option<(String, Instant)>>>);

impl Watch {
    pub(crate) fn start() -> Self {
        let now: Arc<Mutex<Option<(String, Instant)>>> = Arc::default();
        let watched = Arc::clone(&now);
        thread::spawn(move || {
            loop {
                thread::sleep(LOOK);
                let current = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((name, since)) = &*current
                    && since.elapsed() > LIMIT
                {
                    let message = format!("the check \"{name}\" has not ended after {} s", LIMIT.as_secs());
                    let remedy = "a kernel hangs, or the device is far slower than any card: look at its driver";
                    crate::finish(&json!({"error": {"kind": "timeout", "message": message, "remedy": remedy}}), true);
                    std::process::exit(1);
                }
            }
        });
        Self(now)
    }

    pub(crate) fn begin(&self, name: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((name.to_owned(), Instant::now()));
    }

    pub(crate) fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
