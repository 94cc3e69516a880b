//! The check of a batch before any of it is given out: C = A B and all MACs, at the price of one column of B.
//!
//! B has a column b' more than the triple, and C = A B a column c' = A b'. With a coin of the session for r, chosen after
//! all shares are fixed, the parties open e = B r - b', which b' hides, and C r - c' - A e, which is 0 (Freivalds, with the blinded
//! vector of a sacrifice). Both openings are linear in every entry of A, B and C with coefficients nobody could foresee,
//! so that the check of their MACs is one of every entry's: what is wrong passes with a probability of a few 1/p.

use super::setup::PartyKey;
use crate::error::{Blame, Result};
use crate::field::{Element, Field};
use crate::matrix::Matrix;
use crate::opening::Unchecked;
use crate::session::Session;
use crate::share::{MatrixTriple, Shared};
use crate::transport::Transport;

/// Shares of A, and of B and C with their column more.
pub(crate) struct Candidate {
    pub(crate) a: Shared,
    pub(crate) b: Shared,
    pub(crate) c: Shared,
}

/// The triples, if every one of them passes.
///
/// # Errors
/// [`Error::Abort`](crate::Error::Abort) if one does not.
pub(crate) fn check<T: Transport>(
    session: &mut Session<T>,
    key: &PartyKey,
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
    unchecked.check(session, key.mac())?;
    if zeros.iter().any(|zero| zero.entries().iter().any(|x| *x != Element::ZERO)) {
        return Err(session.abort(Blame::Somebody, "made a C that is not A B"));
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
