//! What ends a long command early: SIGTERM, SIGINT, SIGHUP, or the end of whoever started it. Its processes end with it.

use crate::error::Error;
use crate::output::finish;
use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use synchromesh_ring::threads::spawn;

/// Exit code of a command that was interrupted, as of every error.
const CODE: i32 = 2;

/// Processes that end with this one.
#[derive(Clone, Debug, Default)]
pub struct Children(Arc<Mutex<Vec<Child>>>);

/// Kills those that still run.
fn end(running: &mut Vec<Child>) {
    for child in running.iter_mut() {
        let _ = child.kill();
    }
    for mut child in running.drain(..) {
        let _ = child.wait();
    }
}

impl Children {
    fn lock(&self) -> MutexGuard<'_, Vec<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process; its standard output, if that is piped. Nothing waits while it holds the list.
    ///
    /// # Errors
    /// What the system says.
    pub fn spawn(&self, command: &mut Command) -> std::io::Result<Option<ChildStdout>> {
        self.start(command, |child| child.stdout.take())
    }

    /// Starts a process; its standard error, if that is piped.
    ///
    /// # Errors
    /// What the system says.
    pub fn spawn_heard(&self, command: &mut Command) -> std::io::Result<Option<ChildStderr>> {
        self.start(command, |child| child.stderr.take())
    }

    fn start<R>(&self, command: &mut Command, pipe: impl FnOnce(&mut Child) -> R) -> std::io::Result<R> {
        let mut running = self.lock();
        let mut child = command.spawn()?;
        let pipe = pipe(&mut child);
        running.push(child);
        Ok(pipe)
    }

    /// How process number `at` ended; it has closed its standard output.
    ///
    /// # Errors
    /// What the system says, or that there is no such process.
    pub fn wait(&self, at: usize) -> std::io::Result<ExitStatus> {
        self.lock().get_mut(at).ok_or(std::io::ErrorKind::NotFound)?.wait()
    }

    /// Kills those that still run.
    pub fn end(&self) {
        end(&mut self.lock());
    }

    /// From now on a signal ends these processes and then this one, with a typed error and exit code 2.
    ///
    /// # Errors
    /// [`Error::Io`] if the system takes no handler.
    #[cfg(unix)]
    pub fn end_with_signals(&self, json: bool) -> Result<(), Error> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::iterator::Signals;
        let failed = |source| Error::Io { path: "signals".into(), source };
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(failed)?;
        let children = self.clone();
        let watch = move || {
            if let Some(signal) = signals.forever().next() {
                let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
                // Held until the end, so that no process is started any more.
                let mut running = children.lock();
                end(&mut running);
                leave(json, format!("ended by {name}"));
            }
        };
        spawn("signals", watch).map_err(failed)?;
        Ok(())
    }
}

#[cfg(not(unix))]
impl Children {
    /// Does nothing: where there are no signals, the console ends these processes and this one.
    ///
    /// # Errors
    /// None.
    pub fn end_with_signals(&self, _json: bool) -> Result<(), Error> {
        Ok(())
    }
}

/// From now on this process ends when its standard input does: whoever started it is gone, even by SIGKILL.
///
/// # Errors
/// [`Error::Io`] if no thread can be started.
pub fn end_with_input(json: bool) -> Result<(), Error> {
    let watch = move || {
        let (mut bytes, mut stdin) = ([0; 64], std::io::stdin().lock());
        while let Ok(1..) = stdin.read(&mut bytes) {}
        leave(json, "ended as the process that started it did".into());
    };
    let spawned = spawn("input", watch);
    spawned.map(drop).map_err(|source| Error::Io { path: "standard input".into(), source })
}

fn leave(json: bool, what: String) -> ! {
    let _ = finish(json, Err(Error::Interrupted { what }));
    std::process::exit(CODE)
}
