//! How parties reach each other: one exchange of frames with one peer at a time, over any means.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Why a frame did not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The peer is gone.
    Disconnected,
    /// Nothing came in time.
    TimedOut,
    /// The peer announced more bytes than any honest one sends here. Nothing was read.
    TooLong {
        /// Bytes announced.
        bytes: u64,
        /// Most bytes allowed.
        limit: u64,
    },
    /// The peer does not take the own frame. What it had sent before is its reason, perhaps.
    Undelivered {
        /// The frame that came from it.
        received: Vec<u8>,
    },
    /// This process has no memory for what is expected.
    NoMemory {
        /// Bytes of the frame.
        bytes: u64,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Disconnected => f.write_str("disconnected"),
            Self::TimedOut => f.write_str("did not answer in time"),
            Self::Undelivered { .. } => f.write_str("disconnected"),
            Self::NoMemory { bytes } => write!(f, "has no memory for a message of {bytes} bytes"),
            Self::TooLong { bytes, limit } => write!(f, "announced a message of {bytes} bytes, {limit} are allowed"),
        }
    }
}

/// Authenticated channels between all parties. Frames arrive whole and in order; who may read them is the transport's affair.
pub trait Transport: Send {
    /// Number of this party, from 0.
    fn party(&self) -> usize;

    /// Parties in all.
    fn parties(&self) -> usize;

    /// What the list of all parties calls one of these, where only some of them have met.
    fn number(&self, party: usize) -> usize {
        party
    }

    /// Sends a frame to a peer and returns the one it sends, of at most `limit` bytes.
    ///
    /// A session calls this for pairs of parties in one order known to all, so that an implementation without buffers may
    /// let the lower number send first.
    ///
    /// # Errors
    /// [`Fault`] when none comes.
    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> Result<Vec<u8>, Fault>;

    /// Sends a last frame to every peer that will take it, and waits for nobody. A peer finds it in the place of the next frame
    /// that it expects. A transport without such means leaves its peers to find out.
    fn farewell(&mut self, frame: &[u8]) {
        let _ = frame;
    }
}

/// Threads of one process, joined by queues.
#[derive(Debug)]
pub struct InProcess {
    party: usize,
    timeout: Duration,
    /// For each party a queue to it and one from it; the own pair is a loop that nobody uses.
    queues: Vec<(Sender<Frame>, Receiver<Frame>)>,
}

type Frame = Vec<u8>;

impl InProcess {
    /// A transport for each of `parties` threads; one waits at most `timeout` for a frame.
    #[must_use]
    pub fn mesh(parties: usize, timeout: Duration) -> Vec<Self> {
        let mut to: Vec<Vec<Sender<Frame>>> = (0..parties).map(|_| Vec::new()).collect();
        let mut from: Vec<Vec<Receiver<Frame>>> = (0..parties).map(|_| Vec::new()).collect();
        for sender in &mut to {
            for receiver in &mut from {
                let (send, receive) = channel();
                sender.push(send);
                receiver.push(receive);
            }
        }
        let ends = to.into_iter().zip(from).map(|(to, from)| to.into_iter().zip(from).collect());
        ends.enumerate().map(|(party, queues)| Self { party, timeout, queues }).collect()
    }
}

impl Transport for InProcess {
    fn party(&self) -> usize {
        self.party
    }

    fn parties(&self) -> usize {
        self.queues.len()
    }

    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> Result<Vec<u8>, Fault> {
        let (to, from) = &self.queues[peer];
        let sent = to.send(frame);
        let frame = from.recv_timeout(self.timeout).map_err(|error| match error {
            RecvTimeoutError::Timeout => Fault::TimedOut,
            RecvTimeoutError::Disconnected => Fault::Disconnected,
        })?;
        if frame.len() > limit {
            return Err(Fault::TooLong { bytes: frame.len() as u64, limit: limit as u64 });
        }
        // Whoever is gone may have said why before.
        if sent.is_ok() { Ok(frame) } else { Err(Fault::Undelivered { received: frame }) }
    }

    fn farewell(&mut self, frame: &[u8]) {
        for (to, _) in &self.queues {
            drop(to.send(frame.to_vec()));
        }
    }
}
