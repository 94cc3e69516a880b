//! Ends what a party does on the network from another thread: a call that is waited for, and every connection.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Ends sessions that are given a copy of it. The others see a connection that was cut.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    stopped: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Stop {
    /// Ends them, for good.
    pub fn stop(&self) {
        self.0.stopped.store(true, Ordering::SeqCst);
        let mut connections = self.0.connections.lock().unwrap_or_else(PoisonError::into_inner);
        connections.drain(..).for_each(|connection| drop(connection.shutdown(Shutdown::Both)));
    }

    /// Whether it has.
    pub(super) fn is_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::SeqCst)
    }

    /// A connection that ends with the others; one that comes too late ends at once.
    pub(super) fn watch(&self, connection: TcpStream) {
        self.0.connections.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        if self.is_stopped() {
            self.stop();
        }
    }
}
