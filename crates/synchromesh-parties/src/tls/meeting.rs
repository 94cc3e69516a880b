//! How parties find each other: calls to those with lower numbers and from those with higher ones, all at the same time.
//!
//! Whoever calls is a stranger until its certificate is known. A stranger costs a socket and the state of one handshake, of which
//! there are at most [`STRANGERS`], each with a deadline of its own; nothing that one does keeps another waiting. A party
//! whose call was lost among strangers' calls again: it knows that it arrived when it is welcomed.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::channel::Channel;
use super::{NAME, Peer, Stop, fingerprint};

/// Most handshakes with callers at one time.
const STRANGERS: usize = 256;

/// Longest that one handshake may take as a whole.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long to wait between attempts to reach a party.
const RETRY: Duration = Duration::from_millis(50);

/// How long to wait before looking at the callers again.
const TURN: Duration = Duration::from_millis(5);

/// What a party says to a caller that it knows.
const WELCOME: [u8; 1] = *b"w";

/// Parties that did not come, each with the reason, as far as one is known.
pub(super) type Absent = Vec<(usize, String)>;

/// One party on its way to the others.
pub(super) struct Meeting<'a> {
    pub(super) party: usize,
    pub(super) peers: &'a [Peer],
    pub(super) listener: &'a TcpListener,
    /// How it answers calls.
    pub(super) server: Arc<ServerConfig>,
    /// How it calls each party.
    pub(super) clients: Vec<Arc<ClientConfig>>,
    pub(super) deadline: Instant,
    /// Ends the wait.
    pub(super) stop: &'a Stop,
}

impl Meeting<'_> {
    /// A channel to each party; none to this one.
    pub(super) fn channels(&self) -> io::Result<Result<Vec<Option<Channel>>, Absent>> {
        self.listener.set_nonblocking(true)?;
        let hopeless = AtomicBool::new(false);
        let (called, mut channels) = thread::scope(|scope| {
            let call = |peer: usize| {
                let hopeless = &hopeless;
                scope.spawn(move || self.call(peer, hopeless))
            };
            let calls: Vec<_> = (0..self.party).map(call).collect();
            let answered = self.answer(&hopeless);
            let died = || Err(io::Error::other("its thread died"));
            let called: Vec<_> = calls.into_iter().map(|call| call.join().unwrap_or_else(|_| died())).collect();
            (called, answered)
        });
        let (mut absent, mut refused) = (Absent::new(), Absent::new());
        for (peer, made) in called.into_iter().enumerate() {
            match made {
                Ok(channel) => channels[peer] = Some(channel),
                Err(error) if decisive(&error) => refused.push((peer, error.to_string())),
                Err(error) => absent.push((peer, error.to_string())),
            }
        }
        let silent = (self.party + 1..self.peers.len()).filter(|&peer| channels[peer].is_none());
        absent.extend(silent.map(|peer| (peer, "it did not call".to_owned())));
        // Where one party is hopeless the others were not waited for.
        let absent = if refused.is_empty() { absent } else { refused };
        Ok(if absent.is_empty() { Ok(channels) } else { Err(absent) })
    }

    /// Calls a party until it answers, the time is over, or it is clear that it never will.
    fn call(&self, peer: usize, hopeless: &AtomicBool) -> io::Result<Channel> {
        loop {
            let error = match self.call_once(peer) {
                Ok(channel) => return Ok(channel),
                Err(error) => error,
            };
            hopeless.fetch_or(decisive(&error) || self.stop.is_stopped(), Ordering::SeqCst);
            if hopeless.load(Ordering::SeqCst) || Instant::now() + RETRY >= self.deadline {
                return Err(error);
            }
            thread::sleep(RETRY);
        }
    }

    fn call_once(&self, peer: usize) -> io::Result<Channel> {
        let deadline = self.deadline.min(Instant::now() + HANDSHAKE);
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let address = self.peers[peer].address.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let tcp = TcpStream::connect_timeout(&address, left)?;
        tcp.set_nodelay(true)?;
        let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.clients[peer]), name).map_err(io::Error::other)?;
        let mut channel = Channel::new(connection, tcp)?;
        channel.shake_hands(deadline)?;
        let mut welcome = [0; WELCOME.len()];
        channel.take(&mut welcome, deadline)?;
        if welcome == WELCOME { Ok(channel) } else { Err(io::Error::other("it speaks another protocol")) }
    }

    /// Channels to those who call and whose certificate is that of a party with a higher number. One that calls again has lost its
    /// earlier call.
    fn answer(&self, hopeless: &AtomicBool) -> Vec<Option<Channel>> {
        let mut channels: Vec<Option<Channel>> = self.peers.iter().map(|_| None).collect();
        let mut callers = Callers::default();
        loop {
            callers.greet(self.listener, &self.server);
            for (shown, connection, tcp) in callers.known() {
                let peer = self.peers.iter().position(|peer| Some(peer.fingerprint) == shown);
                let Some(peer) = peer.filter(|&peer| peer > self.party) else { continue };
                let welcomed = Channel::new(connection, tcp).and_then(|mut channel| {
                    channel.put(&WELCOME, self.deadline.min(Instant::now() + RETRY))?;
                    Ok(channel)
                });
                if let Ok(channel) = welcomed {
                    channels[peer] = Some(channel);
                }
            }
            let complete = channels[self.party + 1..].iter().all(Option::is_some);
            hopeless.fetch_or(self.stop.is_stopped(), Ordering::SeqCst);
            if complete || hopeless.load(Ordering::SeqCst) || Instant::now() >= self.deadline {
                return channels;
            }
            thread::sleep(TURN);
        }
    }
}

/// Whether calling again is of no use: somebody else is there, or this party is not on the other's list.
fn decisive(error: &io::Error) -> bool {
    use rustls::Error as E;
    let of_tls = error.get_ref().and_then(|error| error.downcast_ref::<E>());
    matches!(of_tls, Some(E::InvalidCertificate(_) | E::AlertReceived(_)))
}

/// A handshake with somebody who called.
struct Caller {
    connection: ServerConnection,
    tcp: TcpStream,
    from: IpAddr,
    deadline: Instant,
}

impl Caller {
    /// Takes in what has come, which is not waited for; whether the handshake is done.
    fn proceed(&mut self) -> io::Result<bool> {
        match self.connection.read_tls(&mut self.tcp) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        let processed = self.connection.process_new_packets();
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.tcp) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                written => written?,
            };
        }
        processed.map_err(io::Error::other)?;
        Ok(!self.connection.is_handshaking())
    }
}

/// All who called and are not known yet, the oldest first.
#[derive(Default)]
struct Callers(VecDeque<Caller>);

impl Callers {
    /// Takes the calls that have come, at most a whole table of them.
    fn greet(&mut self, listener: &TcpListener, server: &Arc<ServerConfig>) {
        for _ in 0..STRANGERS {
            match listener.accept() {
                Ok((tcp, from)) => {
                    if self.0.len() == STRANGERS {
                        self.forget();
                    }
                    let ready = tcp.set_nonblocking(true).and_then(|()| tcp.set_nodelay(true));
                    if let (Ok(()), Ok(connection)) = (ready, ServerConnection::new(Arc::clone(server))) {
                        let deadline = Instant::now() + HANDSHAKE;
                        self.0.push_back(Caller { connection, tcp, from: from.ip(), deadline });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Whatever the system lacks, a caller less gives some of it back.
                Err(_) => return self.forget(),
            }
        }
    }

    /// Drops the oldest caller from the address that most calls came from.
    fn forget(&mut self) {
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        self.0.iter().for_each(|caller| *counts.entry(caller.from).or_default() += 1);
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        if let Some(at) = self.0.iter().position(|caller| most.is_some_and(|(from, _)| from == caller.from)) {
            self.0.remove(at);
        }
    }

    /// Those whose handshake is done, each with the fingerprint of what it showed; whoever failed or is late is dropped.
    fn known(&mut self) -> Vec<(Option<super::Fingerprint>, ServerConnection, TcpStream)> {
        let now = Instant::now();
        let mut known = Vec::new();
        for mut caller in std::mem::take(&mut self.0) {
            match caller.proceed() {
                Ok(true) => {
                    let shown = caller.connection.peer_certificates().and_then(|list| list.first()).map(fingerprint);
                    known.push((shown, caller.connection, caller.tcp));
                }
                Ok(false) if now < caller.deadline => self.0.push_back(caller),
                _ => {}
            }
        }
        known
    }
}
