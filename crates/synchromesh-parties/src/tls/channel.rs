//! A connection of which every message, and every handshake, ends by a deadline as a whole, however slowly it goes on.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustls::Connection;

use crate::transport::Fault;

/// Memory taken for a frame of which nothing has come yet; more only once this much has.
const FIRST: usize = 1 << 24;

/// Most bytes of a frame sent before it is seen that the time is over.
const PIECE: usize = 1 << 16;

/// A socket of which every call ends by a deadline: reads and writes that make some progress do not put it off.
struct Timed<'a> {
    tcp: &'a TcpStream,
    deadline: Instant,
}

impl Timed<'_> {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // The system takes no timeout of 0.
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left.max(Duration::from_millis(1))) }
    }

    /// Once more where a signal came in between.
    fn patiently(&self, mut call: impl FnMut(&TcpStream, Duration) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            match call(self.tcp, self.left()?) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.patiently(|mut tcp, left| {
            tcp.set_read_timeout(Some(left))?;
            tcp.read(bytes)
        })
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.patiently(|mut tcp, left| {
            tcp.set_write_timeout(Some(left))?;
            tcp.write(bytes)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A connection and its socket.
pub(super) struct Channel {
    connection: Connection,
    tcp: TcpStream,
    /// A frame was begun and not ended: what follows would be read as part of it.
    cut: bool,
}

impl Channel {
    pub(super) fn new(connection: impl Into<Connection>, tcp: TcpStream) -> io::Result<Self> {
        tcp.set_nonblocking(false)?;
        Ok(Self { connection: connection.into(), tcp, cut: false })
    }

    /// Its socket once more.
    pub(super) fn socket(&self) -> io::Result<TcpStream> {
        self.tcp.try_clone()
    }

    /// Goes through the handshake.
    pub(super) fn shake_hands(&mut self, deadline: Instant) -> io::Result<()> {
        while self.connection.is_handshaking() {
            self.push(deadline)?;
            if self.connection.is_handshaking() {
                self.pull(deadline)?;
            }
        }
        self.push(deadline)
    }

    /// Bytes outside of any frame.
    pub(super) fn put(&mut self, mut bytes: &[u8], deadline: Instant) -> io::Result<()> {
        while !bytes.is_empty() {
            let taken = self.connection.writer().write(&bytes[..bytes.len().min(PIECE)])?;
            bytes = &bytes[taken..];
            self.push(deadline)?;
        }
        Ok(())
    }

    /// As many bytes as there is room for.
    pub(super) fn take(&mut self, bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.connection.reader().read(&mut bytes[filled..]) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.pull(deadline)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sends a frame. The peer may take `timeout` before it begins to read, and as long again until it has read all.
    pub(super) fn send(&mut self, frame: &[u8], timeout: Duration) -> Result<(), Fault> {
        let deadline = Instant::now() + 2 * timeout;
        if self.cut {
            return Err(Fault::Disconnected);
        }
        self.cut = true;
        let sent = self.put(&(frame.len() as u64).to_le_bytes(), deadline).and_then(|()| self.put(frame, deadline));
        self.cut = sent.is_err();
        sent.map_err(|error| fault(&error))
    }

    /// Receives a frame of at most `limit` bytes. It has to begin within `timeout`, and to end within as long again.
    pub(super) fn receive(&mut self, limit: usize, timeout: Duration) -> Result<Vec<u8>, Fault> {
        let mut length = [0; 8];
        self.take(&mut length, Instant::now() + timeout).map_err(|error| fault(&error))?;
        let bytes = u64::from_le_bytes(length);
        if bytes > limit as u64 {
            return Err(Fault::TooLong { bytes, limit: limit as u64 });
        }
        let (bytes, deadline) = (bytes as usize, Instant::now() + timeout);
        let mut frame = Vec::new();
        for end in [bytes.min(FIRST), bytes] {
            let start = frame.len();
            frame.try_reserve_exact(end - start).map_err(|_| Fault::NoMemory { bytes: bytes as u64 })?;
            frame.resize(end, 0);
            self.take(&mut frame[start..], deadline).map_err(|error| fault(&error))?;
        }
        Ok(frame)
    }

    fn push(&mut self, deadline: Instant) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut Timed { tcp: &self.tcp, deadline })?;
        }
        Ok(())
    }

    fn pull(&mut self, deadline: Instant) -> io::Result<()> {
        let read = self.connection.read_tls(&mut Timed { tcp: &self.tcp, deadline })?;
        let processed = self.connection.process_new_packets();
        // An alert says to the peer why this is the end. What cannot be sent does not keep from reading what had come before.
        if !self.cut {
            drop(self.push(deadline));
        }
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if read == 0 && self.connection.is_handshaking() { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

fn fault(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Fault::TimedOut,
        _ => Fault::Disconnected,
    }
}
