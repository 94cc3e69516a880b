//! The check of a batch before any of it is given out: C = A B and all MACs, at the price of one column of B.
//!
//! B has a column b' more than the triple, and C = A B a column c' = A b'. With a coin of the session for r, chosen after
//! all shares are fixed, the parties open e = B r - b', which b' hides, and C r - c' - A e, which is 0 (Freivalds, with the blinded
//! vector of a sacrifice). Both openings are linear in every entry of A, B and C with coefficients nobody could foresee,
//! so that the check of their MACs is one of every entry's: what is wrong passes with a probability of a few 1/p.

use synchromesh_parties::Blame;
use synchromesh_parties::transport::Transport;

use crate::error::Result;
use crate::field::{Element, Field};
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::opening::Unchecked;
use crate::session::Session;
use crate::share::{MatrixTriple, Shared};

/// Shares of A, and of B and C with their column more.
pub(crate) struct Candidate {
    pub(crate) a: Shared,
    pub(crate) b: Shared,
    pub(crate) c: Shared,
}

/// The triples, if every one of them passes.
///
/// # Errors
/// [`synchromesh_parties::Error::Abort`](crate::Error::Abort) if one does not.
pub(crate) fn check<T: Transport>(
    session: &mut Session<T>,
    key: &MacKeyShare,
    candidates: Vec<Candidate>,
) -> Result<Vec<MatrixTriple>> {
    let field = session.field().clone();
    let columns = candidates.first().map_or(0, |candidate| candidate.c.value().columns());
    let mut coins = session.toss(candidates.len() * columns.saturating_sub(1))?.into_iter();
    let minus_one = field.sub(Element::ZERO, field.small(1));
    let mut vectors = Vec::with_capacity(candidates.len());
    for _ in &candidates {
        let coins: Vec<Element> = coins.by_ref().take(columns - 1).chain([minus_one]).collect();
        vectors.push(Matrix::new(columns, 1, coins)?);
    }
    let mut unchecked = Unchecked::new();
    let blinded =
        candidates.iter().zip(&vectors).map(|(x, r)| x.b.mul_public(&field, r)).collect::<Result<Vec<_>>>()?;
    let opened = unchecked.open(session, &blinded.iter().collect::<Vec<_>>())?;
    let mut differences = Vec::with_capacity(candidates.len());
    for ((x, r), e) in candidates.iter().zip(&vectors).zip(&opened) {
        differences.push(x.c.mul_public(&field, r)?.sub(&field, &x.a.mul_public(&field, e)?)?);
    }
    let zeros = unchecked.open(session, &differences.iter().collect::<Vec<_>>())?;
    unchecked.check(session, key)?;
    if zeros.iter().any(|zero| zero.entries().iter().any(|x| *x != Element::ZERO)) {
        return Err(session.abort(Blame::Somebody, "made a C that is not A B").into());
    }
    candidates.into_iter().map(|x| MatrixTriple::new(x.a, narrowed(&x.b)?, narrowed(&x.c)?)).collect()
}

/// Without the last column.
fn narrowed(shared: &Shared) -> Result<Shared> {
    let half = |m: &Matrix| {
        let rows = m.entries().chunks_exact(m.columns());
        Matrix::new(m.rows(), m.columns() - 1, rows.flat_map(|row| row[..row.len() - 1].iter().copied()).collect())
    };
    Shared::new(half(shared.value())?, half(shared.mac())?)
}

/// A uniform matrix with `extra` columns more.
pub(crate) fn random(field: &Field, (rows, columns): (usize, usize), extra: usize) -> Result<Matrix> {
    Matrix::random(field, rows, columns + extra)
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::dealer::TrustedDealer;
    use crate::field::DEFAULT_PRIME;
    use crate::share::check_opened;
    use synchromesh_parties::transport::InProcess;

    /// The verdicts of two parties on A of 3 x 4, B of 4 x (2 + 1) and a C with right MACs that is off by this in one entry.
    fn verdicts((i, j): (usize, usize), off: u32) -> (TrustedDealer, Vec<Result<Vec<MatrixTriple>>>) {
        let field: Field = DEFAULT_PRIME.parse().unwrap();
        let dealer = TrustedDealer::new(&field, 2).unwrap();
        let (a, b) = (random(&field, (3, 4), 0).unwrap(), random(&field, (4, 2), 1).unwrap());
        let mut c = a.mul(&field, &b).unwrap();
        let entry = &mut c.entries_mut()[i * 3 + j];
        *entry = field.add(*entry, field.small(off));
        let [a, b, c] = [a, b, c].map(|m| dealer.share(&m).unwrap());
        let candidates = a.into_iter().zip(b).zip(c).map(|((a, b), c)| Candidate { a, b, c });
        let all = candidates.zip(InProcess::mesh(2, Duration::from_secs(20)));
        let verdicts = thread::scope(|scope| {
            let party = |(number, (candidate, transport)): (usize, (Candidate, InProcess))| {
                let (key, field) = (dealer.keys()[number].clone(), &field);
                scope.spawn(move || {
                    let mut session = Session::new(transport, field, 80, "a check")?;
                    check(&mut session, &key, vec![candidate])
                })
            };
            let threads: Vec<_> = all.enumerate().map(party).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        (dealer, verdicts)
    }

    #[test]
    fn a_c_that_is_not_a_b_is_found_though_its_macs_hold() {
        // In the triple, and in the column that is used up.
        for place in [(0, 0), (2, 1), (1, 2)] {
            for verdict in verdicts(place, 1).1 {
                let error = verdict.unwrap_err();
                assert!(error.blame() == Some(&Blame::Somebody), "{error}");
                assert!(error.to_string().contains("C that is not A B"), "{error}");
            }
        }
        let (dealer, made) = verdicts((0, 0), 0);
        let made: Vec<Vec<MatrixTriple>> = made.into_iter().map(|made| made.unwrap()).collect();
        check_opened(&DEFAULT_PRIME.parse().unwrap(), dealer.keys(), &made).unwrap();
    }
}
