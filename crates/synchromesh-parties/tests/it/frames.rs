//! An adversary on its own channels: every deed at every frame of a session over TLS, and what the others make of it.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::tls::{peers, setting};
use synchromesh_parties::session::{Kind, Session};
use synchromesh_parties::tampering::{Tamper, Tampering};
use synchromesh_parties::tls::{Identity, Peer, Tls};
use synchromesh_parties::transport::Transport;
use synchromesh_parties::{Blame, Error, Result};

/// How long parties wait for a frame.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes before the payload of a frame: session, round, sender, kind.
const HEADER: usize = 48;

/// Rounds of a session: hello, agreement; a broadcast, agreement; a coin.
const ROUNDS: usize = 2 + 2 + 3;

/// What the last of three parties does to one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    /// Random bytes of the right length.
    Garbage,
    /// Random bytes behind the right header.
    GarbageBehindHeader,
    /// The frame that had this place in another session of the same parties about the same.
    Foreign,
    /// What the same peer got in the round before.
    Replayed,
    /// A byte of the round, the sender or the kind is another.
    WrongRound,
    WrongSender,
    WrongKind,
    /// Without its last byte, with one more, without any.
    Cut,
    Long,
    Empty,
    /// As much as fits into memory, nearly.
    Huge,
    /// No byte more on any channel.
    Silent,
}

const DEEDS: [Deed; 12] = [
    Deed::Garbage,
    Deed::GarbageBehindHeader,
    Deed::Foreign,
    Deed::Replayed,
    Deed::WrongRound,
    Deed::WrongSender,
    Deed::WrongKind,
    Deed::Cut,
    Deed::Long,
    Deed::Empty,
    Deed::Huge,
    Deed::Silent,
];

/// Frames in the order in which they were sent.
type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

impl Deed {
    /// Does it to frame `number`; `other` are the frames of another session.
    fn tamper(self, number: usize, other: &Frames) -> Tamper {
        let (other, mut sent) = (Arc::clone(other), Vec::<Vec<u8>>::new());
        Box::new(move |n, _, mut frame| {
            sent.push(frame.clone());
            if n != number {
                return Some(frame);
            }
            let garbage = |bytes: &mut [u8]| blake3::Hasher::new().update(bytes).finalize_xof().fill(bytes);
            match self {
                Self::Garbage => garbage(&mut frame),
                Self::GarbageBehindHeader => garbage(&mut frame[HEADER..]),
                Self::Foreign => frame = other.lock().unwrap()[n].clone(),
                Self::Replayed => frame = sent[n.saturating_sub(2)].clone(),
                Self::WrongRound => frame[32] ^= 1,
                Self::WrongSender => frame[40] ^= 3,
                Self::WrongKind => frame[44] ^= 1,
                Self::Cut => frame.truncate(frame.len() - 1),
                Self::Long => frame.push(0),
                Self::Empty => frame.clear(),
                Self::Huge => frame.resize(1 << 26, 0),
                Self::Silent => return None,
            }
            Some(frame)
        })
    }

    /// Whether whoever gets the frame can blame the sender: the frame alone shows that no honest party sent it.
    fn shows(self, number: usize) -> bool {
        let hello = number < 2;
        match self {
            Self::Cut | Self::Long | Self::Empty | Self::Huge => true,
            // Before the hello is agreed on nobody knows who has the wrong plan.
            Self::Garbage | Self::WrongRound | Self::WrongSender | Self::WrongKind | Self::Replayed => !hello,
            // Frames bear the session's number from the third round on.
            Self::Foreign => number >= 4,
            // The opening of a commitment is the last of all.
            Self::GarbageBehindHeader => number >= 2 * (ROUNDS - 1),
            Self::Silent => false,
        }
    }

    /// Whether it is no deed: a frame to whom nothing was sent before is sent as it is.
    fn is_none(self, number: usize) -> bool {
        self == Self::Replayed && number < 2
    }
}

/// A session of three parties, the last of which tampers; each party's result, and how long all took.
fn run(identities: &[Identity], tamper: Tamper) -> (Vec<Result<()>>, Duration) {
    let (_, listeners) = setting(3);
    let list: Vec<Peer> = peers(identities, &listeners);
    let tamper = Mutex::new(Some(tamper));
    let party = |number: usize| {
        let own = if number == 2 { tamper.lock().unwrap().take() } else { None };
        let transport = Tls::connect(number, &identities[number], &listeners[number], &list, PATIENCE)?;
        talk(Tampering::new(transport, own))
    };
    let start = Instant::now();
    let results = thread::scope(|scope| {
        let party = &party;
        let threads: Vec<_> = (0..3).map(|number| scope.spawn(move || party(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (results, start.elapsed())
}

fn talk<T: Transport>(transport: T) -> Result<()> {
    let mut session = Session::new(transport, "every frame")?;
    session.broadcast(Kind::Opening, &[1; 64], 64)?;
    session.agree()?;
    session.coin().map(drop)
}

#[test]
fn every_deed_at_every_frame_ends_in_time_with_a_blame_that_is_true() {
    let identities: Vec<Identity> = (0..3).map(|_| Identity::new().unwrap()).collect();
    let other = Frames::default();
    let kept = Arc::clone(&other);
    let keep: Tamper = Box::new(move |_, _, frame: Vec<u8>| {
        kept.lock().unwrap().push(frame.clone());
        Some(frame)
    });
    assert!(run(&identities, keep).0.iter().all(Result::is_ok));
    assert_eq!(other.lock().unwrap().len(), 2 * ROUNDS);
    let (mut runs, mut blamed) = (0, 0);
    for (deed, number) in DEEDS.iter().flat_map(|deed| (0..2 * ROUNDS).map(move |number| (*deed, number))) {
        let (results, time) = run(&identities, deed.tamper(number, &other));
        let what = format!("{deed:?} at frame {number}, {time:?}: {results:?}");
        assert!(time < 3 * PATIENCE, "{what}");
        if deed.is_none(number) {
            assert!(results.iter().all(Result::is_ok), "{what}");
            continue;
        }
        // Frames go to party 0 and party 1 in turn. In the last round only the one that is deceived can know.
        let receiver = number % 2;
        for (party, result) in results[..2].iter().enumerate() {
            let blame = match result {
                Err(Error::Abort { blame, .. }) => blame,
                Ok(()) if party != receiver && number >= 2 * (ROUNDS - 1) => continue,
                _ => panic!("party {party}: {what}"),
            };
            let allowed = match blame {
                Blame::Party(party) => *party == 2,
                // One that waits for a party that waits may lose patience first.
                Blame::Missing(parties) => parties == &[2] || deed == Deed::Silent,
                Blame::Somebody => true,
            };
            assert!(allowed, "party {party}: {what}");
            assert!(party != receiver || !deed.shows(number) || *blame == Blame::Party(2), "party {party}: {what}");
            blamed += usize::from(*blame == Blame::Party(2));
        }
        runs += 1;
    }
    println!("{runs} runs, the cheater blamed by number {blamed} times");
    assert!(runs > 150 && blamed > 100);
}
