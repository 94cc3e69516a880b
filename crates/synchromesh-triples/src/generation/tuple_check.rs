//! The check of tuples of single numbers before any is given out, and what is made of what it opens.
//!
//! What comes in is a row of shared numbers for each number drawn and for each product. With coins tossed after all shares
//! are fixed, numbers are opened that are linear in all that is given out, with coefficients nobody could foresee, and which
//! numbers that are used up hide. So their MACs are a check of every MAC, as in [`super::check`]:
//!
//! - triples a, b, c with b' and c' = a b' beside them: e = r b - b', and r c - c' - e a, which is 0;
//! - squares a, s with b and u = b^2: e = r a - b, and r^2 s - u - e (r a + b), which is 0;
//! - bits: of squares, checked in the same way, all s are opened. An s that is the square of a has two roots, of which a is
//!   one, so that a over the even one is 1 or -1, and each as likely (ePrint 2012/642, section 4.2);
//! - inverses: of triples that hold c too, so that 1 / a = b / c;
//! - input masks: each party's numbers are told to it alone, and then a sum of them with coins is opened that the first
//!   of them hides. Whoever told other shares than it opens is known to the owner.

use synchromesh_parties::Blame;
use synchromesh_parties::transport::Transport;
use zeroize::Zeroizing;

use crate::error::{Error, Result};
use crate::field::{Element, Field};
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::opening::Unchecked;
use crate::roots::{Roots, inverses_vartime};
use crate::session::Session;
use crate::share::Shared;
use crate::tuples::{Kind, Tuples};

/// What of each kind is drawn, as so many rows, and of which rows products are made.
pub(super) const fn recipe(kind: Kind) -> (usize, &'static [[usize; 2]]) {
    match kind {
        Kind::Triples | Kind::Inverses => (3, &[[0, 1], [0, 2]]),
        Kind::Squares | Kind::Bits => (2, &[[0, 0], [1, 1]]),
        Kind::Inputs => (1, &[]),
    }
}

/// How many numbers a row must have for so many tuples of each party's: those that are used up among them.
pub(super) fn numbers(kind: Kind, count: usize, parties: usize) -> usize {
    match kind {
        Kind::Triples | Kind::Squares | Kind::Bits | Kind::Inverses => count,
        Kind::Inputs => count.saturating_add(1).saturating_mul(parties),
    }
}

/// The tuples, if all of them pass: one list, and of input masks one for each party.
///
/// # Errors
/// [`synchromesh_parties::Error::Abort`] if one does not; [`Error::MacKeyLeaked`] if a MAC does not fit.
pub(super) fn check<T: Transport>(
    session: &mut Session<T>,
    key: &MacKeyShare,
    kind: Kind,
    rows: &[Shared],
) -> Result<Vec<Tuples>> {
    let mut check = Check { field: session.field().clone(), session, key, unchecked: Unchecked::new() };
    match (kind, rows) {
        (Kind::Triples, [a, b, d, c, f]) => check.triples([a, b, c], [d, f]).map(|made| vec![made]),
        (Kind::Inverses, [a, b, d, c, f]) => check.inverses([a, b, c], [d, f]).map(|made| vec![made]),
        (Kind::Squares, [a, b, s, u]) => check.squares([a, s], [b, u]).map(|made| vec![made]),
        (Kind::Bits, [a, b, s, u]) => check.bits([a, s], [b, u]).map(|made| vec![made]),
        (Kind::Inputs, [a]) => check.inputs(a),
        _ => Err(Error::Shape { left: (recipe(kind).0, 0), right: (rows.len(), 0), what: "rows of one kind" }),
    }
}

struct Check<'a, T> {
    field: Field,
    session: &'a mut Session<T>,
    key: &'a MacKeyShare,
    unchecked: Unchecked,
}

impl<T: Transport> Check<'_, T> {
    fn open<const N: usize>(&mut self, shares: [&Shared; N]) -> Result<[Matrix; N]> {
        let opened = self.unchecked.open(self.session, &shares)?;
        opened.try_into().map_err(|_| Error::aborted())
    }

    /// The end of every check: MACs of all that was opened, and what has to be 0.
    fn settle(&mut self, zero: Option<&Matrix>, deed: &str) -> Result<()> {
        self.unchecked.check(self.session, self.key)?;
        match zero.filter(|zero| zero.entries().iter().any(|x| *x != Element::ZERO)) {
            None => Ok(()),
            Some(_) => Err(self.session.abort(Blame::Somebody, deed).into()),
        }
    }

    fn coin(&mut self) -> Result<Element> {
        self.session.toss(1)?.pop().ok_or_else(Error::aborted)
    }

    /// r c - c' - e a, with e = r b - b' opened.
    fn difference(&mut self, [a, b, c]: [&Shared; 3], [d, f]: [&Shared; 2]) -> Result<Shared> {
        let (field, r) = (self.field.clone(), self.coin()?);
        let [e] = self.open([&b.scale(&field, r)?.sub(&field, d)?])?;
        c.scale(&field, r)?.sub(&field, f)?.sub(&field, &a.times_public(&field, &e)?)
    }

    fn triples(&mut self, [a, b, c]: [&Shared; 3], used: [&Shared; 2]) -> Result<Tuples> {
        let difference = self.difference([a, b, c], used)?;
        let [zero] = self.open([&difference])?;
        self.settle(Some(&zero), NO_PRODUCT)?;
        Tuples::new(Kind::Triples, vec![a.clone(), b.clone(), c.clone()])
    }

    fn inverses(&mut self, [a, b, c]: [&Shared; 3], used: [&Shared; 2]) -> Result<Tuples> {
        let difference = self.difference([a, b, c], used)?;
        let [zero, c] = self.open([&difference, c])?;
        self.settle(Some(&zero), NO_PRODUCT)?;
        // A number is 0 with probability 2 / p, and then has no inverse.
        let kept: Vec<usize> = (0..c.columns()).filter(|&i| c.entries()[i] != Element::ZERO).collect();
        let factors: Vec<Element> = kept.iter().map(|&i| c.entries()[i]).collect();
        let factors = Matrix::new(1, kept.len(), inverses_vartime(&self.field, &factors))?;
        let (a, b) = (chosen(a, &kept)?, chosen(b, &kept)?);
        Tuples::new(Kind::Inverses, vec![a, b.times_public(&self.field, &factors)?])
    }

    /// r^2 s - u - e (r a + b), with e = r a - b opened.
    fn square_difference(&mut self, [a, s]: [&Shared; 2], [b, u]: [&Shared; 2]) -> Result<Shared> {
        let (field, r) = (self.field.clone(), self.coin()?);
        let scaled = a.scale(&field, r)?;
        let [e] = self.open([&scaled.sub(&field, b)?])?;
        let rest = scaled.add(&field, b)?.times_public(&field, &e)?;
        s.scale(&field, field.mul(r, r))?.sub(&field, u)?.sub(&field, &rest)
    }

    fn squares(&mut self, [a, s]: [&Shared; 2], used: [&Shared; 2]) -> Result<Tuples> {
        let difference = self.square_difference([a, s], used)?;
        let [zero] = self.open([&difference])?;
        self.settle(Some(&zero), NO_SQUARE)?;
        Tuples::new(Kind::Squares, vec![a.clone(), s.clone()])
    }

    /// a / (2 root of a^2) + 1 / 2.
    fn bits(&mut self, [a, s]: [&Shared; 2], used: [&Shared; 2]) -> Result<Tuples> {
        let (field, difference) = (self.field.clone(), self.square_difference([a, s], used)?);
        let [zero, squares] = self.open([&difference, s])?;
        self.settle(Some(&zero), NO_SQUARE)?;
        let roots = Roots::new(&field);
        let count = squares.columns();
        let (mut kept, mut doubled) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (i, &square) in squares.entries().iter().enumerate() {
            match roots.root_vartime(square) {
                Some(root) => {
                    kept.push(i);
                    doubled.push(field.add(root, root));
                }
                // With probability 1 / p.
                None if square == Element::ZERO => {}
                None => return Err(self.session.abort(Blame::Somebody, NO_SQUARE).into()),
            }
        }
        let factors = Matrix::new(1, kept.len(), inverses_vartime(&field, &doubled))?;
        let half = field.inverse_of_public(field.small(2));
        let halves = Matrix::new(1, kept.len(), vec![half; kept.len()])?;
        let halves = Shared::public(&field, &halves, self.session.party(), self.key)?;
        let signs = chosen(a, &kept)?.times_public(&field, &factors)?;
        Tuples::new(Kind::Bits, vec![signs.add(&field, &halves)?])
    }

    fn inputs(&mut self, a: &Shared) -> Result<Vec<Tuples>> {
        let (field, own, parties) = (self.field.clone(), self.session.party(), self.session.parties());
        let each = a.value().columns() / parties;
        let rows = (0..parties).map(|party| a.columns(party * each..(party + 1) * each)).collect::<Result<Vec<_>>>()?;
        let told = self.tell(&rows, each)?;
        let (mut sums, mut coins) = (Vec::with_capacity(parties), Vec::with_capacity(parties));
        let mut tossed = self.session.toss(parties * each.saturating_sub(1))?.into_iter();
        for row in &rows {
            let list = std::iter::once(field.small(1)).chain(tossed.by_ref().take(each - 1)).collect();
            let list = Matrix::new(each, 1, list)?;
            sums.push(row.mul_public(&field, &list)?);
            coins.push(list);
        }
        let shares = self.unchecked.open_each(self.session, &sums.iter().collect::<Vec<_>>())?;
        for (party, (told, opened)) in told.iter().zip(&shares).enumerate() {
            if told.mul(&field, &coins[own])? != opened[own] {
                let deed = "told another share of an input mask than it opened";
                return Err(self.session.abort(Blame::Party(party), deed).into());
            }
        }
        self.settle(None, "")?;
        let (first, others) = told.split_first().ok_or_else(Error::aborted)?;
        let clear = others.iter().try_fold(first.clone(), |sum, told| sum.add(&field, told))?;
        let mut made = Vec::with_capacity(parties);
        for (owner, row) in rows.iter().enumerate() {
            let clear = (owner == own).then(|| clear.columns_in(1..each)).transpose()?;
            made.push(Tuples::inputs(owner, row.columns(1..each)?, clear)?);
        }
        Ok(made)
    }

    /// Tells each party the own shares of its row, and returns all parties' shares of the own row.
    fn tell(&mut self, rows: &[Shared], each: usize) -> Result<Vec<Matrix>> {
        let field = self.field.clone();
        let length = each * field.element_bytes();
        let bytes = |row: &Shared| {
            let mut bytes = Zeroizing::new(Vec::with_capacity(length));
            row.value().entries().iter().for_each(|&x| field.write(x, &mut bytes));
            bytes
        };
        let received = self.session.scatter(&rows.iter().map(bytes).collect::<Vec<_>>(), length)?;
        let mut told = Vec::with_capacity(received.len());
        for (party, bytes) in received.iter().enumerate() {
            let read = bytes.chunks_exact(field.element_bytes()).map(|bytes| field.read(bytes)).collect::<Result<_>>();
            match read {
                Ok(entries) => told.push(Matrix::new(1, each, entries)?),
                Err(_) => {
                    return Err(self.session.abort(Blame::Party(party), "sent a share that is not below p").into());
                }
            }
        }
        Ok(told)
    }
}

const NO_PRODUCT: &str = "made a C that is not A B";
const NO_SQUARE: &str = "made a square that is none";

/// The numbers at these places.
fn chosen(row: &Shared, kept: &[usize]) -> Result<Shared> {
    let half =
        |half: &Matrix| Matrix::new(1, kept.len(), kept.iter().map(|&i| half.entries()[i]).collect::<Vec<Element>>());
    Shared::new(half(row.value())?, half(row.mac())?)
}
