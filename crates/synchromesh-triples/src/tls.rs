//! Parties on different machines: TCP with mutual TLS 1.3, each certificate known to all parties beforehand.
//!
//! There is no certificate authority. A party makes an [`Identity`], gives its [`fingerprint`](Identity::fingerprint) to the others by
//! a channel they trust, and from then on nobody else can speak for it.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};
use zeroize::Zeroizing;

use crate::error::{Blame, Error, Result};
use crate::share::MOST_PARTIES;
use crate::transport::{Fault, Transport};

/// How long to wait between attempts to reach a party that does not listen yet.
const RETRY: Duration = Duration::from_millis(50);

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
        let made = rcgen::generate_simple_self_signed(vec!["synchromesh-party".to_owned()]);
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

trait Stream: Read + Write + Send {}
impl<S: Read + Write + Send> Stream for S {}

/// A transport over TLS connections between all pairs of parties.
pub struct Tls {
    party: usize,
    streams: Vec<Option<Box<dyn Stream>>>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tls(party {} of {})", self.party, self.streams.len())
    }
}

impl Tls {
    /// Connects party `party` with all others: it listens on `listener`, calls those with lower numbers and is called by those
    /// with higher ones. Waits at most `timeout` for them all, and later for each frame.
    ///
    /// # Errors
    /// [`Error::Parties`] for a list that does not fit, [`Error::Tls`] if a certificate or configuration is refused here,
    /// [`Error::Abort`] with the blame if a party cannot be reached or shows another certificate.
    pub fn connect(
        party: usize,
        identity: &Identity,
        listener: &TcpListener,
        peers: &[Peer],
        timeout: Duration,
    ) -> Result<Self> {
        let parties = peers.len();
        if !(2..=MOST_PARTIES).contains(&parties) || party >= parties {
            return Err(Error::Parties { party, parties, most: MOST_PARTIES });
        }
        if peers[party].fingerprint != identity.fingerprint() {
            return Err(Error::Tls {
                reason: format!("party {party} is listed with another certificate than its own"),
            });
        }
        let deadline = Instant::now() + timeout;
        let mut streams: Vec<Option<Box<dyn Stream>>> = (0..parties).map(|_| None).collect();
        for (peer, entry) in peers.iter().enumerate().take(party) {
            let stream = call(identity, entry, deadline, timeout);
            streams[peer] = Some(stream.map_err(|error| unreachable_peer(Blame::Party(peer), &error))?);
        }
        listener.set_nonblocking(true).map_err(|error| Error::Tls { reason: error.to_string() })?;
        while let Some(missing) = streams.iter().skip(party + 1).position(Option::is_none) {
            match answer(identity, listener, peers, deadline, timeout) {
                Ok((peer, stream)) if peer > party && streams[peer].is_none() => streams[peer] = Some(stream),
                Err(error) if Instant::now() >= deadline => {
                    return Err(unreachable_peer(Blame::Party(party + 1 + missing), &error));
                }
                // Whoever calls without a certificate of the list is none of the parties.
                Ok(_) | Err(_) => std::thread::sleep(RETRY),
            }
        }
        Ok(Self { party, streams })
    }
}

fn unreachable_peer(blame: Blame, error: &io::Error) -> Error {
    Error::Abort { phase: "the connection".to_owned(), blame, deed: format!("could not be connected: {error}") }
}

fn call(identity: &Identity, peer: &Peer, deadline: Instant, timeout: Duration) -> io::Result<Box<dyn Stream>> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Pinned { known: vec![peer.fingerprint], provider: provider.clone() });
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_auth_cert(vec![identity.certificate.clone()], identity.key())
        .map_err(io::Error::other)?;
    let mut tcp = loop {
        let address = peer.address.to_socket_addrs()?.next().ok_or(io::ErrorKind::AddrNotAvailable)?;
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(tcp) => break tcp,
            Err(error) if Instant::now() + RETRY >= deadline => return Err(error),
            Err(_) => std::thread::sleep(RETRY),
        }
    };
    prepare(&tcp, timeout)?;
    let name = ServerName::try_from("synchromesh-party").map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    connection.complete_io(&mut tcp)?;
    Ok(Box::new(StreamOwned::new(connection, tcp)))
}

/// The next call that comes, and the number of the party whose certificate it shows.
fn answer(
    identity: &Identity,
    listener: &TcpListener,
    peers: &[Peer],
    deadline: Instant,
    timeout: Duration,
) -> io::Result<(usize, Box<dyn Stream>)> {
    let provider = Arc::new(ring::default_provider());
    let known = peers.iter().map(|peer| peer.fingerprint).collect();
    let verifier = Arc::new(Pinned { known, provider: provider.clone() });
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![identity.certificate.clone()], identity.key())
        .map_err(io::Error::other)?;
    let mut tcp = loop {
        match listener.accept() {
            Ok((tcp, _)) => break tcp,
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            Err(_) if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            Err(_) => std::thread::sleep(RETRY),
        }
    };
    tcp.set_nonblocking(false)?;
    prepare(&tcp, timeout)?;
    let mut connection = ServerConnection::new(Arc::new(config)).map_err(io::Error::other)?;
    while connection.is_handshaking() {
        connection.complete_io(&mut tcp)?;
    }
    let shown = connection.peer_certificates().and_then(|list| list.first()).map(fingerprint);
    let number = peers.iter().position(|peer| Some(peer.fingerprint) == shown);
    let number = number.ok_or_else(|| io::Error::other("a caller showed no certificate of this session"))?;
    Ok((number, Box::new(StreamOwned::new(connection, tcp))))
}

fn prepare(tcp: &TcpStream, timeout: Duration) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(timeout))?;
    tcp.set_write_timeout(Some(timeout))
}

impl Transport for Tls {
    fn party(&self) -> usize {
        self.party
    }

    fn parties(&self) -> usize {
        self.streams.len()
    }

    fn exchange(&mut self, peer: usize, frame: Vec<u8>, limit: usize) -> std::result::Result<Vec<u8>, Fault> {
        let first = self.party < peer;
        let stream = self.streams.get_mut(peer).and_then(Option::as_mut).ok_or(Fault::Disconnected)?;
        if first {
            send(stream, &frame)?;
            receive(stream, limit)
        } else {
            let answer = receive(stream, limit)?;
            send(stream, &frame)?;
            Ok(answer)
        }
    }
}

fn send(stream: &mut Box<dyn Stream>, frame: &[u8]) -> std::result::Result<(), Fault> {
    let sent = stream.write_all(&(frame.len() as u64).to_le_bytes());
    sent.and_then(|()| stream.write_all(frame)).and_then(|()| stream.flush()).map_err(|error| fault(&error))
}

fn receive(stream: &mut Box<dyn Stream>, limit: usize) -> std::result::Result<Vec<u8>, Fault> {
    let mut length = [0; 8];
    stream.read_exact(&mut length).map_err(|error| fault(&error))?;
    let bytes = u64::from_le_bytes(length);
    if bytes > limit as u64 {
        return Err(Fault::TooLong { bytes, limit: limit as u64 });
    }
    let mut frame = vec![0; bytes as usize];
    stream.read_exact(&mut frame).map_err(|error| fault(&error))?;
    Ok(frame)
}

fn fault(error: &io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Fault::TimedOut,
        _ => Fault::Disconnected,
    }
}
