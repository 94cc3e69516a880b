//! What the phases of a run take, and whoever wants to know where it is.

use std::time::Instant;

use synchromesh_parties::session::Session;
use synchromesh_parties::transport::Transport;

/// What one phase took.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Phase {
    /// Its name: of keys `key_session`, `key_shares`, `relinearisation_key`; of triples `session`, `mac_key`, `encrypt`,
    /// `exchange`, `multiply`, `decrypt`, `check`.
    pub name: &'static str,
    /// Seconds.
    pub seconds: f64,
    /// Bytes this party sent.
    pub bytes_sent: u64,
    /// Rounds.
    pub rounds: u64,
}

/// Where a run is: a phase begins, or a part of it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The phase.
    pub phase: &'static str,
    /// Parts done.
    pub done: usize,
    /// Parts in all.
    pub of: usize,
    /// Bytes sent so far.
    pub bytes_sent: u64,
    /// Rounds so far.
    pub rounds: u64,
}

/// Whoever wants to know where a run is.
pub type Observer<'a> = dyn FnMut(Progress) + 'a;

/// Phases so far, and the one that is going on.
pub(crate) struct Recorder<'a> {
    phases: Vec<Phase>,
    began: (&'static str, Instant, (u64, u64)),
    observer: Box<Observer<'a>>,
}

impl<'a> Recorder<'a> {
    /// A run that begins with this phase.
    pub(crate) fn new(first: &'static str, observer: Box<Observer<'a>>) -> Self {
        Self { phases: Vec::new(), began: (first, Instant::now(), (0, 0)), observer }
    }

    /// The phases that have ended, each name once.
    pub(crate) fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Ends a phase and begins another.
    pub(crate) fn enter<T: Transport>(&mut self, session: &mut Session<T>, name: &'static str, of: usize) {
        let (last, since, (rounds, bytes)) = self.began;
        let now = session.traffic();
        let (seconds, rounds, bytes_sent) = (since.elapsed().as_secs_f64(), now.0 - rounds, now.1 - bytes);
        match self.phases.iter_mut().find(|phase| phase.name == last) {
            Some(phase) => {
                phase.seconds += seconds;
                phase.rounds += rounds;
                phase.bytes_sent += bytes_sent;
            }
            None => self.phases.push(Phase { name: last, seconds, bytes_sent, rounds }),
        }
        self.began = (name, Instant::now(), now);
        session.enter(name);
        self.tell(session, 0, of);
    }

    /// Says how far the phase is.
    pub(crate) fn tell<T: Transport>(&mut self, session: &Session<T>, done: usize, of: usize) {
        let (rounds, bytes_sent) = session.traffic();
        (self.observer)(Progress { phase: self.began.0, done, of, bytes_sent, rounds });
    }
}
