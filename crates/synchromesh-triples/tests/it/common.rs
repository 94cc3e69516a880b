//! What the tests of this crate share: parties as threads, and one that tampers with what it sends.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use synchromesh_triples::field::{DEFAULT_PRIME, Field};
use synchromesh_triples::transport::{Fault, InProcess, Transport};

/// Patience of a test, short since a cheater may fall silent.
pub const TIMEOUT: Duration = Duration::from_millis(500);

/// The field of the default prime.
pub fn field() -> Field {
    DEFAULT_PRIME.parse().unwrap()
}

/// What a cheater does to the frames it sends.
pub type Tamper = Box<dyn FnMut(usize, usize, Vec<u8>) -> Option<Vec<u8>> + Send>;

/// A transport whose frames pass through a function of (number of the frame, receiver, frame); `None` is silence ever after.
pub struct Tampering<T = InProcess> {
    inner: T,
    count: usize,
    mute: bool,
    tamper: Tamper,
}

impl<T> Tampering<T> {
    /// With nothing sent so far.
    pub fn new(inner: T, tamper: Tamper) -> Self {
        Self { inner, count: 0, mute: false, tamper }
    }
}

impl<T: Transport> Transport for Tampering<T> {
    fn party(&self) -> usize {
        self.inner.party()
    }

    fn parties(&self) -> usize {
        self.inner.parties()
    }

    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> Result<Vec<u8>, Fault> {
        let number = self.count;
        self.count += 1;
        match (self.tamper)(number, peer, frame) {
            Some(frame) => self.inner.exchange(peer, frame, limit),
            None => {
                self.mute = true;
                Err(Fault::Disconnected)
            }
        }
    }

    fn farewell(&mut self, frame: &[u8]) {
        if !self.mute {
            self.inner.farewell(frame);
        }
    }
}

/// Runs `party` on a thread for each transport; the last one's frames pass through `tamper`.
pub fn run<R: Send>(parties: usize, tamper: Tamper, party: impl Fn(Tampering) -> R + Sync) -> Vec<R> {
    let tamper = Mutex::new(Some(tamper));
    let transports = InProcess::mesh(parties, TIMEOUT).into_iter().map(|inner| {
        let cheats = inner.party() == parties - 1;
        let honest: Tamper = Box::new(|_, _, frame| Some(frame));
        let tamper = if cheats { tamper.lock().unwrap().take().unwrap() } else { honest };
        Tampering::new(inner, tamper)
    });
    let transports: Vec<_> = transports.collect();
    thread::scope(|scope| {
        let threads: Vec<_> = transports.into_iter().map(|transport| scope.spawn(|| party(transport))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Nobody cheats.
pub fn honest() -> Tamper {
    Box::new(|_, _, frame| Some(frame))
}
