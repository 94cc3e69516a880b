//! Attacks from the network: strangers who are silent, slow or many, a line that trickles, parties that never come.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::run;
use crate::tls::{peers, setting};
use synchromesh_parties::session::{Kind, Session};
use synchromesh_parties::tls::{Identity, Tls};
use synchromesh_parties::transport::Transport;
use synchromesh_parties::{Blame, Error, Result};

/// Patience of the parties: far more than an honest connection takes, far less than a test may.
const PATIENCE: Duration = Duration::from_secs(8);

/// Connects all parties and lets them agree on a few bytes.
fn meet(identities: &[Identity], listeners: &[TcpListener]) -> Vec<Result<()>> {
    let peers = peers(identities, listeners);
    let party = |number: usize| {
        let transport = Tls::connect(number, &identities[number], &listeners[number], &peers, PATIENCE)?;
        let mut session = Session::new(transport, "a meeting")?;
        session.broadcast(Kind::Opening, &[number as u8; 100], 100)?;
        session.agree()
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..identities.len()).map(|number| scope.spawn(move || party(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Every party meets the others although `strangers` are at the door of each, and soon.
fn all_meet_in_spite_of(strangers: impl Fn(&str) -> Vec<TcpStream>) {
    let (identities, listeners) = setting(3);
    let kept: Vec<Vec<TcpStream>> =
        peers(&identities, &listeners).iter().map(|peer| strangers(&peer.address)).collect();
    let start = Instant::now();
    for (party, result) in meet(&identities, &listeners).into_iter().enumerate() {
        result.unwrap_or_else(|error| panic!("party {party} after {:?}: {error}", start.elapsed()));
    }
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    drop(kept);
}

#[test]
fn a_stranger_who_says_nothing_stops_nobody() {
    all_meet_in_spite_of(|address| vec![TcpStream::connect(address).unwrap()]);
}

/// More than the queue of the system holds, let alone that of the handshakes. The calls come while the parties meet.
#[test]
fn five_hundred_silent_strangers_stop_nobody() {
    let (identities, listeners) = setting(2);
    let address = listeners[0].local_addr().unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let mut kept = Vec::new();
            while kept.len() < 500 && !done.load(Ordering::SeqCst) {
                kept.extend(TcpStream::connect_timeout(&address, Duration::from_millis(200)));
            }
            kept.len()
        });
        // A good part of them is there first.
        thread::sleep(Duration::from_millis(50));
        let start = Instant::now();
        let results = meet(&identities, &listeners);
        done.store(true, Ordering::SeqCst);
        let strangers = flood.join().unwrap();
        for result in results {
            result.unwrap_or_else(|error| panic!("{strangers} strangers, {:?}: {error}", start.elapsed()));
        }
        assert!(strangers > 100 && start.elapsed() < PATIENCE, "{strangers}, {:?}", start.elapsed());
    });
}

/// A record of TLS of which a byte comes now and then: as long as it does, no read ever times out.
#[test]
fn strangers_who_trickle_stop_nobody() {
    let done = Arc::new(AtomicBool::new(false));
    let trickle = |address: &str| -> Vec<TcpStream> {
        let trickler = |_| {
            let mut stream = TcpStream::connect(address).unwrap();
            let (kept, done) = (stream.try_clone().unwrap(), Arc::clone(&done));
            thread::spawn(move || {
                let record = [&[0x16, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb][..], &[0; 1 << 14]].concat();
                for byte in record {
                    if done.load(Ordering::SeqCst) || stream.write_all(&[byte]).is_err() {
                        return;
                    }
                    thread::sleep(Duration::from_millis(20));
                }
            });
            kept
        };
        (0..10).map(trickler).collect()
    };
    all_meet_in_spite_of(trickle);
    done.store(true, Ordering::SeqCst);
}

/// What is no TLS, and what declares more than any handshake has.
#[test]
fn garbage_stops_nobody() {
    all_meet_in_spite_of(|address| {
        let say = |bytes: &[u8]| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        };
        let huge = [&[0x16, 3, 1, 0x40, 0][..], &[1, 0xff, 0xff, 0xff], &[0; 1 << 14]].concat();
        vec![say(b"GET / HTTP/1.0\r\n\r\n"), say(&[0; 1 << 15]), say(&huge), say(&[0xff; 100])]
    });
}

/// Strangers with certificates of their own, who call again and again.
#[test]
fn strangers_with_other_certificates_stop_nobody() {
    let (identities, listeners) = setting(3);
    let list = peers(&identities, &listeners);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for number in [1, 2] {
            let (list, done) = (&list, &done);
            scope.spawn(move || {
                let (stranger, listener) = (Identity::new().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
                let mut his = list.clone();
                his[number].fingerprint = stranger.fingerprint();
                while !done.load(Ordering::SeqCst) {
                    let short = Duration::from_millis(300);
                    assert!(Tls::connect(number, &stranger, &listener, &his, short).is_err());
                }
            });
        }
        let results = meet(&identities, &listeners);
        done.store(true, Ordering::SeqCst);
        results.into_iter().for_each(|result| result.unwrap());
    });
}

/// Whoever does not come is named as missing, all of them, and whoever comes is not.
#[test]
fn parties_that_never_come_are_missing() {
    let (identities, listeners) = setting(5);
    let list = peers(&identities, &listeners);
    let patience = Duration::from_millis(1500);
    // A stranger knocks at the door, who is nobody's fault.
    let _stranger = TcpStream::connect(&list[1].address).unwrap();
    let start = Instant::now();
    let connect = |party: usize| Tls::connect(party, &identities[party], &listeners[party], &list, patience).map(drop);
    let results: Vec<(usize, Result<()>)> = thread::scope(|scope| {
        let threads: Vec<_> = [1, 3].map(|party| (party, scope.spawn(move || connect(party)))).into_iter().collect();
        threads.into_iter().map(|(party, thread)| (party, thread.join().unwrap())).collect()
    });
    for (party, result) in results {
        let error = result.unwrap_err();
        let Error::Abort { blame: Blame::Missing(missing), .. } = &error else { panic!("party {party}: {error}") };
        assert_eq!(missing, &[0, 2, 4], "party {party}: {error}");
        assert!(error.to_string().contains("parties 0, 2 and 4"), "{error}");
    }
    assert!(start.elapsed() < 3 * patience, "{:?}", start.elapsed());
}

/// Passes bytes on between a caller and a party, those of the caller one by one from when it is told to.
fn slow_line(to: &str, slow: &Arc<AtomicBool>) -> String {
    let (listener, to, slow) = (TcpListener::bind("127.0.0.1:0").unwrap(), to.to_owned(), Arc::clone(slow));
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for caller in listener.incoming() {
            let (mut caller, mut party) = (caller.unwrap(), TcpStream::connect(&to).unwrap());
            let (mut back, mut forth) = (party.try_clone().unwrap(), caller.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut back, &mut forth));
            let slow = Arc::clone(&slow);
            thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = caller.read(&mut bytes) {
                    let pieces = if slow.load(Ordering::SeqCst) { 1 } else { count };
                    for piece in bytes[..count].chunks(pieces) {
                        if party.write_all(piece).is_err() {
                            return;
                        }
                        if pieces == 1 {
                            thread::sleep(Duration::from_millis(50));
                        }
                    }
                }
            });
        }
    });
    address
}

/// A frame of which a byte comes every now and then ends with the party's patience, not with the frame.
#[test]
fn a_frame_that_trickles_ends_in_time() {
    let (identities, listeners) = setting(2);
    let (slow, patience) = (Arc::new(AtomicBool::new(false)), Duration::from_millis(700));
    let list = peers(&identities, &listeners);
    let mut his = list.clone();
    his[0].address = slow_line(&list[0].address, &slow);
    let party = |number: usize| {
        let list = if number == 0 { &list } else { &his };
        let transport = Tls::connect(number, &identities[number], &listeners[number], list, patience)?;
        let mut session = Session::new(transport, "a slow line")?;
        slow.store(true, Ordering::SeqCst);
        let start = Instant::now();
        let result = session.broadcast(Kind::Opening, &[number as u8; 1 << 12], 1 << 12).map(drop);
        assert!(start.elapsed() < 6 * patience, "party {number} after {:?}", start.elapsed());
        result
    };
    let results: Vec<Result<()>> = thread::scope(|scope| {
        let threads = [0, 1].map(|number| scope.spawn(move || party(number)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let error = results[0].as_ref().unwrap_err();
    let Error::Abort { blame: Blame::Missing(missing), .. } = error else { panic!("{error}") };
    assert!(missing == &[1] && error.to_string().contains("in time"), "{error}");
}

/// The last party tells the others different things: in the hello, and in any later message. Honest parties never blame one
/// another.
#[test]
fn an_equivocator_does_not_turn_honest_parties_against_each_other() {
    for round in 0..5 {
        let tamper = Box::new(move |n: usize, peer: usize, mut frame: Vec<u8>| {
            // A frame to each of two peers makes a round.
            if n / 2 == round && peer == 1 {
                let end = frame.len() - 1;
                frame[end] ^= 1;
            }
            Some(frame)
        });
        let results = run(3, Some(tamper), |transport| {
            let mut session = Session::new(transport, "an equivocator")?;
            session.broadcast(Kind::Opening, &[7; 16], 16)?;
            session.agree()?;
            session.broadcast(Kind::Opening, &[8; 16], 16)?;
            session.agree()
        });
        for (party, result) in results[..2].iter().enumerate() {
            println!("round {round}, party {party}: {result:?}");
            let Err(Error::Abort { blame, .. }) = result else { panic!("round {round}, party {party}: {result:?}") };
            let honest = |blame: &Blame| match blame {
                Blame::Party(party) => *party < 2,
                Blame::Missing(parties) => parties.iter().any(|party| *party < 2),
                Blame::Somebody => false,
            };
            assert!(!honest(blame), "round {round}: party {party} blames {blame}");
        }
    }
}

/// Either of two may have been given the wrong plan.
#[test]
fn parties_about_different_things_blame_neither() {
    let results = run(2, None, |transport| {
        let about = if transport.party() == 0 { "one thing" } else { "another" };
        Session::new(transport, about).map(drop)
    });
    for result in results {
        let Err(Error::Abort { blame, .. }) = &result else { panic!("{result:?}") };
        assert_eq!(*blame, Blame::Somebody);
    }
}
