//! A party whose frames are changed on their way out: what an adversary can do on its own channels, for tests.

use std::time::Duration;

use crate::transport::{Fault, InProcess, Transport};

/// What becomes of a frame: a function of its number, of who gets it, and of itself. `None` is silence, on every channel and
/// ever after.
pub type Tamper = Box<dyn FnMut(usize, usize, Vec<u8>) -> Option<Vec<u8>> + Send>;

/// A transport whose frames pass through a function first.
pub struct Tampering<T = InProcess> {
    inner: T,
    count: usize,
    mute: bool,
    tamper: Option<Tamper>,
}

impl<T> std::fmt::Debug for Tampering<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tampering").field("count", &self.count).field("mute", &self.mute).finish_non_exhaustive()
    }
}

impl<T> Tampering<T> {
    /// With nothing sent so far; without a function frames stay as they are.
    pub fn new(inner: T, tamper: Option<Tamper>) -> Self {
        Self { inner, count: 0, mute: false, tamper }
    }
}

impl Tampering {
    /// Parties as threads, of which the last one's frames pass through `tamper`; one waits at most `timeout` for a frame.
    #[must_use]
    pub fn mesh(parties: usize, timeout: Duration, mut tamper: Option<Tamper>) -> Vec<Self> {
        let transports = InProcess::mesh(parties, timeout).into_iter();
        let cheats = |inner: &InProcess| inner.party() + 1 == parties;
        transports
            .map(|inner| if cheats(&inner) { Self::new(inner, tamper.take()) } else { Self::new(inner, None) })
            .collect()
    }
}

impl<T: Transport> Transport for Tampering<T> {
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn number(&self, party: usize) -> usize {
        self.inner.number(party)
    }

    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> Result<Vec<u8>, Fault> {
        let number = self.count;
        self.count += 1;
        let frame = match &mut self.tamper {
            Some(tamper) => tamper(number, peer, frame),
            None => Some(frame),
        };
        self.mute |= frame.is_none();
        frame.map_or(Err(Fault::Disconnected), |frame| self.inner.exchange(peer, frame, limit))
    }

    fn farewell(&mut self, frame: &[u8]) {
        if !self.mute {
            self.inner.farewell(frame);
        }
    }
}
