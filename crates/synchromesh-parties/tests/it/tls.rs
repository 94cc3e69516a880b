//! Parties over TLS on the loopback: the same protocol, and strangers and impostors who are kept out.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use synchromesh_parties::session::{Kind, Session};
use synchromesh_parties::tls::{Identity, Peer, Tls};
use synchromesh_parties::{Error, Result};

const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn peers(identities: &[Identity], listeners: &[TcpListener]) -> Vec<Peer> {
    let pairs = identities.iter().zip(listeners);
    let peer = |(id, listener): (&Identity, &TcpListener)| Peer {
        address: listener.local_addr().unwrap().to_string(),
        fingerprint: id.fingerprint(),
    };
    pairs.map(peer).collect()
}

pub(crate) fn setting(parties: usize) -> (Vec<Identity>, Vec<TcpListener>) {
    let listener = |_| TcpListener::bind("127.0.0.1:0").unwrap();
    ((0..parties).map(|_| Identity::new().unwrap()).collect(), (0..parties).map(listener).collect())
}

#[test]
fn megabytes_pass_both_ways_at_once() {
    let (identities, listeners) = setting(3);
    let peers = peers(&identities, &listeners);
    // A stranger who says something that is not TLS is none of the parties, and disturbs none.
    TcpStream::connect(&peers[0].address[..]).unwrap().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let talk = |party: usize| -> Result<Vec<u8>> {
        let transport = Tls::connect(party, &identities[party], &listeners[party], &peers, TIMEOUT)?;
        let mut session = Session::new(transport, "megabytes")?;
        let received = session.broadcast(Kind::Opening, &vec![party as u8; 3 << 20], 3 << 20)?;
        session.agree()?;
        Ok(received.iter().map(|bytes| bytes[bytes.len() - 1]).collect())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..3).map(|party| scope.spawn(move || talk(party))).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap().unwrap(), [0, 1, 2]);
        }
    });
}

#[test]
fn an_impostor_is_not_connected() {
    let (identities, listeners) = setting(2);
    let peers = peers(&identities, &listeners);
    let impostor = Identity::new().unwrap();
    let short = Duration::from_millis(400);
    let mut his = peers.clone();
    his[1].fingerprint = impostor.fingerprint();
    thread::scope(|scope| {
        let honest = scope.spawn(|| Tls::connect(0, &identities[0], &listeners[0], &peers, short).map(|_| ()));
        let _ = Tls::connect(1, &impostor, &listeners[1], &his, short);
        let error = honest.join().unwrap().unwrap_err();
        assert!(matches!(&error, Error::Abort { .. }) && error.to_string().contains("party 1"), "{error}");
    });
    // The same with the impostor as the one who is called.
    his[1].fingerprint = identities[1].fingerprint();
    his[0].fingerprint = impostor.fingerprint();
    thread::scope(|scope| {
        let honest = scope.spawn(|| Tls::connect(1, &identities[1], &listeners[1], &peers, short).map(|_| ()));
        let _ = Tls::connect(0, &impostor, &listeners[0], &his, short);
        let error = honest.join().unwrap().unwrap_err();
        assert!(matches!(&error, Error::Abort { .. }) && error.to_string().contains("party 0"), "{error}");
    });
    assert_eq!(Tls::connect(1, &impostor, &listeners[1], &peers, short).unwrap_err().kind(), "tls");
}

#[test]
fn a_list_in_which_two_parties_are_one_connects_nobody() {
    let (identities, listeners) = setting(3);
    let (list, short) = (peers(&identities, &listeners), Duration::from_millis(100));
    let one = list[1].clone();
    for second in
        [Peer { fingerprint: one.fingerprint, ..list[2].clone() }, Peer { address: one.address, ..list[2].clone() }]
    {
        let twice = [&list[..2], &[second]].concat();
        let refused = Tls::connect(0, &identities[0], &listeners[0], &twice, short).unwrap_err();
        assert_eq!(refused.kind(), "same_party", "{refused}");
    }
}
