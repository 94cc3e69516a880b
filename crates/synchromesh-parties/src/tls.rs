//! Parties on different machines: TCP with mutual TLS 1.3, each certificate known to all parties beforehand.
//!
//! There is no certificate authority. A party makes an [`Identity`], gives its [`fingerprint`](Identity::fingerprint) to the others by
//! a channel they trust, and from then on nobody else can speak for it.

mod channel;
mod meeting;
mod stop;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{ClientConfig, DigitallySignedStruct, DistinguishedName, ServerConfig, SignatureScheme};
use zeroize::Zeroizing;

use self::channel::Channel;
use self::meeting::{Absent, Meeting};
pub use self::stop::Stop;
use crate::error::{Blame, Error, Result};
use crate::session::{MOST_PARTIES, numbered};
use crate::transport::{Fault, Transport};

/// The name in every certificate, which means nothing.
const NAME: &str = "synchromesh-party";

/// How long a party that aborts tries to tell each other one, and how long one looks for such a word on a broken channel.
const FAREWELL: Duration = Duration::from_millis(200);

/// Longest timeout: more seconds than that are for ever, and more than clocks hold when they are added to the time.
const LONGEST: Duration = Duration::from_secs(1 << 28);

/// Hash of a certificate, by which the others know a party.
pub type Fingerprint = [u8; 32];

/// A party's certificate and its key.
pub struct Identity {
    certificate: CertificateDer<'static>,
    key: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", blake3::Hash::from(self.fingerprint()))
    }
}

impl Identity {
    /// A fresh self-signed certificate.
    ///
    /// # Errors
    /// [`Error::Tls`] if it cannot be made.
    pub fn new() -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]);
        let made = made.map_err(|error| Error::Tls { reason: error.to_string() })?;
        Ok(Self { certificate: made.cert.der().clone(), key: Zeroizing::new(made.signing_key.serialize_der()) })
    }

    pub(crate) fn from_parts(certificate: CertificateDer<'static>, key: Zeroizing<Vec<u8>>) -> Self {
        Self { certificate, key }
    }

    /// The certificate and its key.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        (&self.certificate, &self.key)
    }

    /// The hash of the certificate.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.certificate)
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.key.to_vec()))
    }
}

fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    blake3::derive_key("synchromesh 1 triples, certificate", certificate)
}

/// Accepts the certificates of a list and no others, whatever names they bear.
#[derive(Debug)]
struct Pinned {
    known: Vec<Fingerprint>,
    provider: Arc<CryptoProvider>,
}

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> std::result::Result<(), rustls::Error> {
        if self.known.contains(&fingerprint(certificate)) {
            Ok(())
        } else {
            Err(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer))
        }
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> std::result::Result<ClientCertVerified, rustls::Error> {
        self.check(certificate).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

/// One party among all: where each listens and the fingerprint of its certificate, in order of their numbers.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `host:port`.
    pub address: String,
    /// Of the certificate.
    pub fingerprint: Fingerprint,
}

/// Checks that a list of parties can be one: 2 to 64 parties, no two of them with one certificate or at one address.
///
/// # Errors
/// [`Error::Parties`], or [`Error::SameParty`] with the numbers of two that are one.
pub fn check_list(peers: &[Peer]) -> Result<()> {
    let parties = peers.len();
    numbered(0, parties)?;
    let place =
        |peer: &Peer| peer.address.parse().map_or_else(|_| peer.address.to_lowercase(), |x: SocketAddr| x.to_string());
    for second in 1..parties {
        for first in 0..second {
            let (one, other) = (&peers[first], &peers[second]);
            if one.fingerprint == other.fingerprint {
                return Err(Error::SameParty { first, second, what: "certificate" });
            }
            if place(one) == place(other) {
                return Err(Error::SameParty { first, second, what: "address" });
            }
        }
    }
    Ok(())
}

/// A transport over TLS connections between all pairs of parties.
pub struct Tls {
    party: usize,
    timeout: Duration,
    channels: Vec<Option<Channel>>,
    /// What the list of all parties calls them.
    numbers: Vec<usize>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls(party {} of {})", self.party, self.channels.len())
    }
}

impl Tls {
    /// Connects party `party` with all others: it listens on `listener`, calls those with lower numbers and is called by those
    /// with higher ones, all at one time and whatever strangers do. Waits at most `timeout` for them all, and later as long for
    /// a frame to begin and as long again for it to end.
    ///
    /// # Errors
    /// [`Error::Parties`] and [`Error::SameParty`] for a list that does not fit, [`Error::Tls`] if a certificate or
    /// configuration is refused here, [`Error::Abort`] with [`Blame::Missing`] for parties that do not come: whoever shows
    /// another certificate in a party's place is a stranger, and the party missing.
    pub fn connect(
        party: usize,
        identity: &Identity,
        listener: &TcpListener,
        peers: &[Peer],
        timeout: Duration,
    ) -> Result<Self> {
        Self::meet((0..peers.len()).collect(), party, identity, listener, peers, (timeout, &Stop::default()))
    }

    /// As [`Self::connect`] among some of the parties of a list: `numbers` has theirs, in rising order, `party`'s among them.
    /// In what follows they are numbered anew, and named in errors as the list does. `stop` ends all of it.
    ///
    /// # Errors
    /// As [`Self::connect`], and [`Error::Parties`] for numbers that are none of the list's or not in rising order.
    pub fn among(
        numbers: &[usize],
        party: usize,
        identity: &Identity,
        listener: &TcpListener,
        peers: &[Peer],
        (timeout, stop): (Duration, &Stop),
    ) -> Result<Self> {
        check_list(peers)?;
        let present = numbers.iter().map(|&number| peers.get(number).cloned().ok_or(number));
        let present = present.collect::<std::result::Result<Vec<Peer>, usize>>();
        let refused = |party| Error::Parties { party, parties: peers.len(), most: MOST_PARTIES };
        let present = present.map_err(refused)?;
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(refused(pair[1]));
        }
        let own = numbers.iter().position(|&number| number == party).ok_or_else(|| refused(party))?;
        Self::meet(numbers.to_vec(), own, identity, listener, &present, (timeout, stop))
    }

    /// Connects with these peers, which the list of all parties calls so.
    fn meet(
        numbers: Vec<usize>,
        party: usize,
        identity: &Identity,
        listener: &TcpListener,
        peers: &[Peer],
        (timeout, stop): (Duration, &Stop),
    ) -> Result<Self> {
        numbered(party, peers.len())?;
        check_list(peers)?;
        let timeout = timeout.min(LONGEST);
        let own = identity.fingerprint();
        if peers[party].fingerprint != own {
            let reason = match peers.iter().position(|peer| peer.fingerprint == own) {
                Some(other) => format!(
                    "this certificate is listed as that of party {}, and this is party {}",
                    numbers[other], numbers[party]
                ),
                None => format!("party {} is listed with another certificate than its own", numbers[party]),
            };
            return Err(Error::Tls { reason });
        }
        let refused = |error: &dyn std::fmt::Display| Error::Tls { reason: error.to_string() };
        let clients = peers[..party].iter().map(|peer| client(identity, peer));
        let meeting = Meeting {
            party,
            peers,
            listener,
            server: Arc::new(server(identity, peers).map_err(|error| refused(&error))?),
            clients: clients.collect::<std::result::Result<_, _>>().map_err(|error| refused(&error))?,
            deadline: Instant::now() + timeout,
            stop,
        };
        let met = meeting.channels().map_err(|error| refused(&error))?;
        let channels = met.map_err(|absent| missing(absent, &numbers, timeout))?;
        for channel in channels.iter().flatten() {
            stop.watch(channel.socket().map_err(|error| refused(&error))?);
        }
        Ok(Self { party, timeout, channels, numbers })
    }
}

/// The error that names parties which did not come.
fn missing(absent: Absent, numbers: &[usize], timeout: Duration) -> Error {
    let why: Vec<String> = absent.iter().map(|(peer, reason)| format!("party {}: {reason}", numbers[*peer])).collect();
    let deed = format!("could not be connected within {:.1} s ({})", timeout.as_secs_f64(), why.join("; "));
    let blame = Blame::Missing(absent.into_iter().map(|(peer, _)| numbers[peer]).collect());
    Error::Abort { phase: "the connection".to_owned(), blame, deed }
}

/// How a party calls another.
fn client(identity: &Identity, peer: &Peer) -> std::result::Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Pinned { known: vec![peer.fingerprint], provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(vec![identity.certificate.clone()], identity.key())?;
    Ok(Arc::new(config))
}

/// How a party answers the others.
fn server(identity: &Identity, peers: &[Peer]) -> std::result::Result<ServerConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let known = peers.iter().map(|peer| peer.fingerprint).collect();
    let verifier = Arc::new(Pinned { known, provider: provider.clone() });
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.certificate.clone()], identity.key())?;
    // Nothing is ever resumed.
    config.send_tls13_tickets = 0;
    Ok(config)
}

impl Transport for Tls {
    fn party(&self) -> usize {
        self.party
    }

    fn parties(&self) -> usize {
        self.channels.len()
    }

    fn number(&self, party: usize) -> usize {
        self.numbers.get(party).copied().unwrap_or(party)
    }

    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> std::result::Result<Vec<u8>, Fault> {
        let channel = self.channels.get_mut(peer).and_then(Option::as_mut).ok_or(Fault::Disconnected)?;
        let timeout = self.timeout;
        let (sent, received) = if self.party < peer {
            let sent = channel.send(&frame, timeout);
            // Whoever takes no more may have said why before.
            let patience = if sent.is_ok() { timeout } else { FAREWELL.min(timeout) };
            (sent, channel.receive(limit, patience)?)
        } else {
            let received = channel.receive(limit, timeout)?;
            (channel.send(&frame, timeout), received)
        };
        if sent.is_ok() { Ok(received) } else { Err(Fault::Undelivered { received }) }
    }

    fn farewell(&mut self, frame: &[u8]) {
        for channel in self.channels.iter_mut().flatten() {
            drop(channel.send(frame, FAREWELL));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use rustls::pki_types::ServerName;
    use rustls::{ClientConnection, ServerConnection};

    use super::*;

    const SHORT: Duration = Duration::from_millis(300);

    /// Both ends of a connection.
    fn ends() -> [Channel; 2] {
        let identities = [(); 2].map(|()| Identity::new().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peers = identities
            .each_ref()
            .map(|identity| Peer { address: address.to_string(), fingerprint: identity.fingerprint() });
        let caller = std::net::TcpStream::connect(address).unwrap();
        let (answerer, _) = listener.accept().unwrap();
        let name = ServerName::try_from(NAME).unwrap();
        let caller = ClientConnection::new(client(&identities[1], &peers[0]).unwrap(), name).map(|c| (c, caller));
        let answerer = ServerConnection::new(Arc::new(server(&identities[0], &peers).unwrap())).map(|c| (c, answerer));
        let (caller, answerer) = (caller.unwrap(), answerer.unwrap());
        let mut ends = [Channel::new(caller.0, caller.1).unwrap(), Channel::new(answerer.0, answerer.1).unwrap()];
        let deadline = Instant::now() + Duration::from_secs(5);
        thread::scope(|scope| {
            ends.each_mut().map(|end| scope.spawn(|| end.shake_hands(deadline))).map(|end| end.join().unwrap().unwrap())
        });
        ends
    }

    /// A known peer that says it will send 2^63 bytes is not waited for, and no memory is taken for them.
    #[test]
    fn a_length_beyond_what_belongs_there_is_refused_before_memory_is_taken() {
        for bytes in [101, 1 << 40, 1 << 63, u64::MAX] {
            let [mut cheater, mut party] = ends();
            cheater.put(&u64::to_le_bytes(bytes), Instant::now() + SHORT).unwrap();
            assert_eq!(party.receive(100, SHORT), Err(Fault::TooLong { bytes, limit: 100 }));
        }
    }

    /// The same with bytes that come one by one in records of their own: of the length, and of the frame.
    #[test]
    fn a_known_peer_that_trickles_is_given_up_in_time() {
        for head in [&[][..], &100u64.to_le_bytes()] {
            let [mut cheater, mut party] = ends();
            let start = Instant::now();
            thread::scope(|scope| {
                scope.spawn(|| {
                    cheater.put(head, Instant::now() + SHORT).unwrap();
                    while start.elapsed() < 3 * SHORT {
                        thread::sleep(SHORT / 6);
                        drop(cheater.put(&[0], Instant::now() + SHORT));
                    }
                });
                assert_eq!(party.receive(1000, SHORT), Err(Fault::TimedOut));
                assert!(start.elapsed() < 2 * SHORT + SHORT / 2, "{:?}", start.elapsed());
            });
        }
    }

    /// A peer that takes nothing does not hold up the sender for ever, and hears nothing more on a channel that was cut.
    #[test]
    fn a_peer_that_reads_nothing_is_given_up_in_time() {
        let [mut party, deaf] = ends();
        let start = Instant::now();
        assert_eq!(party.send(&vec![0; 64 << 20], SHORT), Err(Fault::TimedOut));
        assert!((SHORT..4 * SHORT).contains(&start.elapsed()), "{:?}", start.elapsed());
        assert_eq!(party.send(&[0], SHORT), Err(Fault::Disconnected));
        drop(deaf);
    }
}
