//! What the tests of this crate share: parties as threads, of which the last may tamper with what it sends.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use std::thread;
use std::time::Duration;

use synchromesh_triples::field::{DEFAULT_PRIME, Field};
use synchromesh_triples::parties::tampering::{Tamper, Tampering};

/// Patience of a test, short since a cheater may fall silent.
pub const TIMEOUT: Duration = Duration::from_millis(500);

/// The field of the default prime.
pub fn field() -> Field {
    DEFAULT_PRIME.parse().unwrap()
}

/// Runs `party` on a thread for each transport; the last one's frames pass through `tamper`.
pub fn run<R: Send>(parties: usize, tamper: Option<Tamper>, party: impl Fn(Tampering) -> R + Sync) -> Vec<R> {
    let transports = Tampering::mesh(parties, TIMEOUT, tamper);
    thread::scope(|scope| {
        let threads: Vec<_> = transports.into_iter().map(|transport| scope.spawn(|| party(transport))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
