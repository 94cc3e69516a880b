//! The online phase among honest parties and among some of whom one cheats, at every message.

use crate::common::{field, run};
use synchromesh_triples::dealer::TrustedDealer;
use synchromesh_triples::online::Online;
use synchromesh_triples::parties::session::Kind;
use synchromesh_triples::parties::tampering::Tamper;
use synchromesh_triples::parties::transport::Transport;
use synchromesh_triples::parties::{self, Blame};
use synchromesh_triples::session::Session;
use synchromesh_triples::{MacKeyShare, Matrix, MatrixTriple, Result, Shape, Shared};

/// What each party brings.
struct Inputs {
    keys: Vec<MacKeyShare>,
    x: Vec<Shared>,
    y: Vec<Shared>,
    z: Vec<Shared>,
    product: Matrix,
}

const SHAPES: [(usize, usize, usize); 2] = [(2, 3, 4), (2, 4, 1)];

/// X of 2 x 3, Y of 3 x 4, Z of 4 x 1 and two triples, so that X Y Z is a chain of two products.
fn deal(parties: usize) -> (Inputs, Vec<Vec<MatrixTriple>>) {
    let field = field();
    let dealer = TrustedDealer::new(&field, parties).unwrap();
    let matrix = |rows, columns| Matrix::random(&field, rows, columns).unwrap();
    let (x, y, z) = (matrix(2, 3), matrix(3, 4), matrix(4, 1));
    let product = x.mul(&field, &y).unwrap().mul(&field, &z).unwrap();
    let [x, y, z] = [x, y, z].map(|m| dealer.share(&m).unwrap());
    let mut triples: Vec<Vec<MatrixTriple>> = (0..parties).map(|_| Vec::new()).collect();
    for (rows, inner, columns) in SHAPES {
        let shares = dealer.triple(Shape::new(rows, inner, columns).unwrap()).unwrap();
        triples.iter_mut().zip(shares).for_each(|(list, triple)| list.push(triple));
    }
    (Inputs { keys: dealer.keys().to_vec(), x, y, z, product }, triples)
}

fn compute<T: Transport>(transport: T, inputs: &Inputs, triples: Vec<MatrixTriple>) -> Result<Matrix> {
    let party = transport.party();
    let mut online = Online::new(Session::new(transport, &field(), 80, "X Y Z")?, inputs.keys[party].clone())?;
    let mut triples = triples.into_iter();
    let mut next = || triples.next().expect("two triples");
    let xy = online.multiply(&inputs.x[party], &inputs.y[party], next())?;
    let xyz = online.multiply(&xy, &inputs.z[party], next())?;
    Ok(online.reveal(&[&xyz])?.remove(0))
}

fn outcomes(parties: usize, tamper: Option<Tamper>) -> (Vec<Result<Matrix>>, Matrix) {
    let (inputs, triples) = deal(parties);
    let triples: Vec<_> = triples.into_iter().map(|list| std::sync::Mutex::new(Some(list))).collect();
    let results = run(parties, tamper, |transport| {
        let own = triples[transport.party()].lock().unwrap().take().unwrap();
        compute(transport, &inputs, own)
    });
    (results, inputs.product)
}

#[test]
fn honest_parties_get_the_product() {
    for parties in [2, 3, 5] {
        let (results, product) = outcomes(parties, None);
        for result in results {
            assert_eq!(result.unwrap(), product);
        }
    }
}

/// One bit of one frame, for every frame and several places in it: no honest party ever returns a matrix that is wrong.
#[test]
fn a_cheater_is_caught_at_every_message() {
    let (mut caught, mut rounds) = (0, 0);
    for number in 0.. {
        let mut sent = false;
        for place in [0, 33, 45, 49, usize::MAX] {
            let flag = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
            let seen = flag.clone();
            let tamper: Tamper = Box::new(move |n, _, mut frame| {
                if n == number {
                    seen.store(true, std::sync::atomic::Ordering::SeqCst);
                    let place = place.min(frame.len() - 1);
                    frame[place] ^= 1;
                }
                Some(frame)
            });
            let (results, product) = outcomes(3, Some(tamper));
            sent |= flag.load(std::sync::atomic::Ordering::SeqCst);
            for result in &results[..2] {
                match result {
                    Ok(matrix) => assert_eq!(*matrix, product),
                    Err(error) => {
                        assert_eq!(error.kind(), "abort", "{error}");
                        let blame = error.blame();
                        assert!(!matches!(blame, Some(Blame::Party(0 | 1))), "frame {number} at {place}: {error}");
                        caught += 1;
                    }
                }
            }
        }
        if !sent {
            break;
        }
        rounds = number;
    }
    println!("{caught} aborts over {rounds} messages");
    assert!(rounds > 20 && caught >= 5 * rounds);
}

/// What becomes of a frame.
type Damage = fn(Vec<u8>) -> Option<Vec<u8>>;

#[test]
fn silence_truncation_and_excess_are_blamed() {
    let cases: [(Damage, &str); 3] = [
        (|_| None, "disconnected"),
        (|frame| Some(frame[..frame.len() - 1].to_vec()), "bytes where"),
        (|frame| Some([frame, vec![0]].concat()), "announced"),
    ];
    for (what, deed) in cases {
        let tamper: Tamper = Box::new(move |n, _, frame| if n == 2 { what(frame) } else { Some(frame) });
        let (results, _) = outcomes(2, Some(tamper));
        let text = results[0].as_ref().unwrap_err().to_string();
        assert!(text.contains("party 1") && (text.contains(deed) || text.contains("in time")), "{text}");
    }
}

/// Different shares to different parties, each of them a legal residue: found by the agreement, not by the MAC.
#[test]
fn equivocation_is_caught() {
    let tamper: Tamper = Box::new(|n, peer, mut frame| {
        if n == 3 && peer == 1 {
            let first = frame.len() - 16 * 2;
            frame[first] ^= 1;
        }
        Some(frame)
    });
    let (results, _) = outcomes(3, Some(tamper));
    for result in &results[..2] {
        let text = result.as_ref().unwrap_err().to_string();
        assert!(text.contains("different things") || text.contains("party 1 has aborted"), "{text}");
    }
    assert!(results[..2].iter().any(|r| r.as_ref().unwrap_err().to_string().contains("different things")));
}

/// A share that is changed before it is sent to anyone, consistently: only the MAC can tell.
#[test]
fn a_flipped_share_fails_the_mac_check() {
    let field = field();
    let (mut inputs, triples) = deal(3);
    let mut entries = inputs.x[2].value().entries().to_vec();
    entries[0] = field.add(entries[0], field.small(1));
    let value = Matrix::new(2, 3, entries).unwrap();
    inputs.x[2] = Shared::new(value, inputs.x[2].mac().clone()).unwrap();
    let triples: Vec<_> = triples.into_iter().map(|list| std::sync::Mutex::new(Some(list))).collect();
    let results = run(3, None, |transport| {
        let own = triples[transport.party()].lock().unwrap().take().unwrap();
        compute(transport, &inputs, own)
    });
    for result in results {
        assert!(result.unwrap_err().to_string().contains("MAC does not fit"));
    }
}

#[test]
fn a_session_stays_aborted_and_sessions_do_not_mix() {
    let field = field();
    let results = run(2, None, |transport| {
        let say = if transport.party() == 0 { "one thing" } else { "another" };
        Session::new(transport, &field, 80, say).map(|_| ())
    });
    for result in results {
        assert!(result.unwrap_err().to_string().contains("another session"));
    }
    let results = run(2, None, |transport| {
        let mut session = Session::new(transport, &field, 80, "same").unwrap();
        let length = if session.party() == 0 { 3 } else { 4 };
        let first = session.broadcast(Kind::Opening, &[0; 4][..length], 4).is_ok();
        (first, session.broadcast(Kind::Opening, &[0; 4], 4).map(|_| ()))
    });
    assert!(results[0].0 && !results[1].0);
    assert_eq!(results[1].1, Err(parties::Error::Aborted));
    let weak = run(2, None, |transport| Session::new(transport, &field, 128, "weak").map(|_| ()).unwrap_err().kind());
    assert_eq!(weak, ["weak_mac"; 2]);
}
