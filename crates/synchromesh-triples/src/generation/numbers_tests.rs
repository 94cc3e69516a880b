//! Tuples of single numbers among honest parties, and among some of whom one cheats.

use std::path::Path;
use std::thread;
use std::time::Duration;

use synchromesh_parties::Blame;
use synchromesh_parties::tampering::Tamper;
use synchromesh_parties::transport::InProcess;

use super::tests::{Cheat, dealt, run_each, unused};
use super::tuple_check::{check, recipe};
use crate::dealer::TrustedDealer;
use crate::field::{DEFAULT_PRIME, Field};
use crate::matrix::Matrix;
use crate::session::Session;
use crate::share::Shared;
use crate::tuples::{Kind, Tuples, check_opened};
use crate::{MacKeyShare, Result};

/// A run for tuples of one kind with journals in this directory, in which the last party tampers and behaves so.
pub(super) fn run(
    journals: &Path,
    kind: Kind,
    count: usize,
    tamper: Option<Tamper>,
    cheat: Cheat,
) -> Vec<Result<Vec<Tuples>>> {
    let (setup, keys) = dealt();
    let keys = unused((setup, keys));
    run_each(journals, (setup, &keys), tamper, cheat, |generator| generator.generate_tuples(kind, count))
}

/// A run with fresh journals, in which nobody tampers with a frame.
fn run_once(kind: Kind, count: usize, cheat: Cheat) -> Vec<Result<Vec<Tuples>>> {
    run(tempfile::tempdir().unwrap().path(), kind, count, None, cheat)
}

/// Opens what all parties made, and returns how many tuples each list has.
pub(super) fn hold(kind: Kind, made: Vec<Result<Vec<Tuples>>>) -> usize {
    let (setup, keys) = dealt();
    let macs: Vec<MacKeyShare> = keys.iter().map(|key| key.mac().clone()).collect();
    let mut made: Vec<_> = made.into_iter().map(|made| made.unwrap().into_iter()).collect();
    let lists = made[0].len();
    assert_eq!(lists, if kind == Kind::Inputs { keys.len() } else { 1 });
    let mut count = 0;
    for owner in 0..lists {
        let tuples: Vec<Tuples> = made.iter_mut().map(|lists| lists.next().unwrap()).collect();
        assert!(tuples.iter().all(|tuples| tuples.kind() == kind));
        if kind == Kind::Inputs {
            let knows = |(party, tuples): (usize, &Tuples)| tuples.clear().is_some() == (party == owner);
            assert!(tuples.iter().enumerate().all(knows));
        }
        check_opened(setup.plan().field(), &macs, &tuples).unwrap();
        count = tuples[0].count();
    }
    count
}

#[test]
fn honest_parties_get_tuples_that_hold() {
    // More than one ciphertext has numbers, and more than are proven together.
    let n = dealt().0.plan().params().n();
    for (kind, count) in
        [(Kind::Triples, 11 * n), (Kind::Squares, 101), (Kind::Bits, 2 * n), (Kind::Inverses, n + 5), (Kind::Inputs, n)]
    {
        assert_eq!(hold(kind, run_once(kind, count, Cheat::None)), count, "{kind}");
    }
}

/// Bits are as often 0 as 1, and squares and inverses are not all of one number.
#[test]
fn bits_are_even() {
    let (setup, keys) = dealt();
    let field = setup.plan().field();
    let made = run_once(Kind::Bits, 1000, Cheat::None);
    let values = made.iter().map(|made| made.as_ref().unwrap()[0].parts()[0].value().clone());
    let bits = values.reduce(|a, b| a.add(field, &b).unwrap()).unwrap();
    let ones = bits.entries().iter().filter(|bit| **bit == field.small(1)).count();
    // 500 in the mean: off by 160 is 10 deviations.
    assert!((340..660).contains(&ones), "{ones} of 1000");
    assert_eq!(keys.len(), made.len());
}

/// What may be wrong in the rows of a kind: a cheat for each.
pub(super) fn wrongs(kind: Kind) -> Vec<Cheat> {
    let (drawn, pairs) = recipe(kind);
    let rows = drawn + pairs.len();
    let cheats = (0..drawn).map(Cheat::OtherNumbers).chain((0..rows).map(Cheat::WrongRowMac));
    // Products are decrypted, and the MACs of all.
    let shares = (0..rows + pairs.len()).map(Cheat::WrongShare);
    cheats.chain(shares).chain([Cheat::SlantedAlpha, Cheat::OtherAlpha]).collect()
}

#[test]
fn wrong_numbers_macs_and_shares_end_in_an_abort() {
    // The others are in the adversary's suite.
    let cases = [
        (Kind::Bits, Cheat::OtherNumbers(0)),
        (Kind::Bits, Cheat::WrongRowMac(3)),
        (Kind::Bits, Cheat::WrongShare(0)),
        (Kind::Inputs, Cheat::OtherNumbers(0)),
        (Kind::Inverses, Cheat::WrongShare(2)),
        (Kind::Squares, Cheat::WrongRowMac(0)),
    ];
    for (kind, cheat) in cases {
        assert!(wrongs(kind).contains(&cheat));
        for result in &run_once(kind, 40, cheat)[..2] {
            let error = result.as_ref().unwrap_err();
            assert_eq!(error.kind(), "abort", "{kind} {cheat:?}: {error}");
            assert!(!matches!(error.blame(), Some(Blame::Party(0 | 1))), "{kind} {cheat:?}: {error}");
        }
    }
}

/// Whoever tells the owner of input masks another share than it opens to all is named by the owner.
#[test]
fn a_share_that_is_told_otherwise_is_blamed_on_its_sender() {
    // Two frames a round: hello and agreement, four rounds of the MAC key, four of the numbers, one of decryption.
    const TOLD: usize = 2 * (2 + 4 + 4 + 1);
    let tamper: Tamper = Box::new(|n, _, mut frame| {
        if n == TOLD {
            let number = frame.len() - 16;
            frame[number] ^= 1;
        }
        Some(frame)
    });
    let root = tempfile::tempdir().unwrap();
    let results = run(root.path(), Kind::Inputs, 40, Some(tamper), Cheat::None);
    let error = results[0].as_ref().unwrap_err();
    assert!(error.blame() == Some(&Blame::Party(2)) && error.to_string().contains("told another share"), "{error}");
    assert_eq!(results[1].as_ref().unwrap_err().kind(), "abort");
}

/// What two parties make of rows of a dealer.
fn verdicts(kind: Kind, rows: &[Matrix]) -> (TrustedDealer, Vec<Result<Vec<Tuples>>>) {
    let field: Field = DEFAULT_PRIME.parse().unwrap();
    let dealer = TrustedDealer::new(&field, 2).unwrap();
    let mut shares: Vec<Vec<Shared>> = vec![Vec::new(), Vec::new()];
    for row in rows {
        shares.iter_mut().zip(dealer.share(row).unwrap()).for_each(|(list, share)| list.push(share));
    }
    let transports = InProcess::mesh(2, Duration::from_secs(20));
    let verdicts = thread::scope(|scope| {
        let threads: Vec<_> = (transports.into_iter().zip(dealer.keys()).zip(&shares))
            .map(|((transport, key), rows)| {
                let field = &field;
                scope.spawn(move || check(&mut Session::new(transport, field, 80, "a check")?, key, kind, rows))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (dealer, verdicts)
}

/// Rows as they should be, of 5 numbers.
fn rows(field: &Field, kind: Kind) -> Vec<Matrix> {
    let (drawn, pairs) = recipe(kind);
    let mut rows: Vec<Matrix> = (0..drawn).map(|_| Matrix::random(field, 1, 5).unwrap()).collect();
    for &[i, j] in pairs {
        rows.push(rows[i].times(field, &rows[j]).unwrap());
    }
    rows
}

/// The MACs hold, and the product is none: in what is given out, and in what is used up.
#[test]
fn products_that_are_none_are_found_though_their_macs_hold() {
    let field: Field = DEFAULT_PRIME.parse().unwrap();
    for kind in [Kind::Triples, Kind::Squares, Kind::Bits, Kind::Inverses] {
        let (drawn, pairs) = recipe(kind);
        for row in drawn..drawn + pairs.len() {
            let mut rows = rows(&field, kind);
            let entry = &mut rows[row].entries_mut()[3];
            *entry = field.add(*entry, field.small(1));
            for verdict in verdicts(kind, &rows).1 {
                let error = verdict.unwrap_err();
                assert!(error.blame() == Some(&Blame::Somebody) && error.kind() == "abort", "{kind}: {error}");
            }
        }
        let (dealer, made) = verdicts(kind, &rows(&field, kind));
        let made: Vec<Tuples> = made.into_iter().map(|made| made.unwrap().remove(0)).collect();
        check_opened(&field, dealer.keys(), &made).unwrap();
    }
}

/// Numbers that are 0 have no inverse and two equal roots: they are left out.
#[test]
fn zeros_are_left_out() {
    let field: Field = DEFAULT_PRIME.parse().unwrap();
    for kind in [Kind::Inverses, Kind::Bits] {
        let mut rows = rows(&field, kind);
        rows[0].entries_mut()[2] = field.small(0);
        for &[i, j] in recipe(kind).1 {
            let product = rows[i].times(&field, &rows[j]).unwrap();
            rows.push(product);
        }
        let (drawn, pairs) = recipe(kind);
        let rows = [&rows[..drawn], &rows[drawn + pairs.len()..]].concat();
        let (dealer, made) = verdicts(kind, &rows);
        let made: Vec<Tuples> = made.into_iter().map(|made| made.unwrap().remove(0)).collect();
        assert_eq!(made[0].count(), 4);
        check_opened(&field, dealer.keys(), &made).unwrap();
    }
}

/// A square of another number, which is a square all the same, makes no bit: it is not opened as one.
#[test]
fn a_square_of_another_number_is_no_bit() {
    let field: Field = DEFAULT_PRIME.parse().unwrap();
    let mut rows = rows(&field, Kind::Bits);
    let other = field.small(5);
    rows[2].entries_mut()[4] = field.mul(other, other);
    for verdict in verdicts(Kind::Bits, &rows).1 {
        assert!(verdict.unwrap_err().to_string().contains("square that is none"));
    }
}
