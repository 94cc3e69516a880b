//! Tuples of single numbers that MPC programs take beside matrix triples, all under one MAC key.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use synchromesh_parties::session::MOST_PARTIES;

use crate::error::{Error, Result};
use crate::field::{Element, Field};
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::share::Shared;

/// MP-SPDZ reads so many tuples at a time, and fails where a file ends before.
pub const READ_TOGETHER: usize = 101;

/// What tuples are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// a, b and a b.
    Triples,
    /// a and a^2.
    Squares,
    /// A bit.
    Bits,
    /// a and 1 / a.
    Inverses,
    /// A number that one party knows and masks an input with. Of each party as many.
    Inputs,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Triples, Self::Squares, Self::Bits, Self::Inverses, Self::Inputs];

    /// The word for them on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Triples => "triples",
            Self::Squares => "squares",
            Self::Bits => "bits",
            Self::Inverses => "inverses",
            Self::Inputs => "inputs",
        }
    }

    /// Shared numbers of a tuple.
    #[must_use]
    pub const fn width(self) -> usize {
        match self {
            Self::Triples => 3,
            Self::Squares | Self::Inverses => 2,
            Self::Bits | Self::Inputs => 1,
        }
    }

    /// How many a file holds that is to serve so many: a multiple of [`READ_TOGETHER`], and more by one less than that at
    /// least, as each thread of a program begins to read where those before it will end.
    #[must_use]
    pub const fn rounded(count: usize) -> usize {
        count.saturating_add(READ_TOGETHER - 1).next_multiple_of(READ_TOGETHER)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|kind| kind.word() == text);
        known.ok_or_else(|| Error::UnknownTuples { text: text.into() })
    }
}

/// One party's shares of tuples of one kind. Each is used up by one use, hence no `Clone`.
#[derive(Debug)]
pub struct Tuples {
    kind: Kind,
    /// The numbers of all tuples, a row for each place in a tuple.
    parts: Vec<Shared>,
    /// The party whose inputs these mask.
    owner: Option<usize>,
    /// What the owner knows.
    clear: Option<Matrix>,
}

impl Tuples {
    /// Tuples of these numbers: for each place in a tuple a row of as many numbers.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of rows or of other lengths, or where there are none.
    pub fn new(kind: Kind, parts: Vec<Shared>) -> Result<Self> {
        let count = parts.first().map_or(0, |part| part.value().columns());
        let found = |part: &Shared| (part.value().rows(), part.value().columns());
        let what = "tuples";
        if parts.len() != kind.width() {
            return Err(Error::Shape { left: (kind.width(), count), right: (parts.len(), count), what });
        }
        if let Some(other) = parts.iter().map(found).find(|found| *found != (1, count)) {
            return Err(Error::Shape { left: (1, count), right: other, what });
        }
        Ok(Self { kind, parts, owner: None, clear: None })
    }

    /// Masks of the inputs of party `owner`, who knows the numbers themselves.
    ///
    /// # Errors
    /// [`Error::Shape`] unless all are one row of as many numbers.
    pub fn inputs(owner: usize, masks: Shared, clear: Option<Matrix>) -> Result<Self> {
        let count = masks.value().columns();
        if let Some(other) = clear.as_ref().filter(|clear| (clear.rows(), clear.columns()) != (1, count)) {
            let right = (other.rows(), other.columns());
            return Err(Error::Shape { left: (1, count), right, what: "input masks" });
        }
        Ok(Self { owner: Some(owner), clear, ..Self::new(Kind::Inputs, vec![masks])? })
    }

    /// Their kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.parts[0].value().columns()
    }

    /// The party whose inputs they mask, if they mask inputs.
    #[must_use]
    pub fn owner(&self) -> Option<usize> {
        self.owner
    }

    /// The numbers themselves, where this party's inputs are masked with them.
    #[must_use]
    pub fn clear(&self) -> Option<&Matrix> {
        self.clear.as_ref()
    }

    pub(crate) fn parts(&self) -> &[Shared] {
        &self.parts
    }

    /// Those at these places.
    pub(crate) fn part(&self, range: Range<usize>) -> Result<Self> {
        let parts = self.parts.iter().map(|part| part.columns(range.clone())).collect::<Result<_>>()?;
        let clear = self.clear.as_ref().map(|clear| clear.columns_in(range)).transpose()?;
        Ok(Self { parts, clear, ..*self })
    }

    /// These and others of their kind and owner.
    pub(crate) fn joined(self, other: &Self) -> Result<Self> {
        let parts = self.parts.iter().zip(&other.parts).map(|(a, b)| a.beside(b)).collect::<Result<_>>()?;
        let clear = match (&self.clear, &other.clear) {
            (Some(a), Some(b)) => Some(a.beside(b)?),
            _ => None,
        };
        Ok(Self { parts, clear, ..self })
    }
}

/// Opens tuples of all parties, side by side, and checks every MAC and what makes them tuples: for tests, and for whoever
/// may see everything. `tuples[i]` and `keys[i]` are party i's.
///
/// # Errors
/// [`Error::WrongTuple`] for the first that is wrong; [`synchromesh_parties::Error::Parties`] or [`Error::Shape`] if the
/// lists do not fit.
pub fn check_opened(field: &Field, keys: &[MacKeyShare], tuples: &[Tuples]) -> Result<()> {
    let parties = keys.len();
    if parties != tuples.len() || !(2..=MOST_PARTIES).contains(&parties) {
        return Err(synchromesh_parties::Error::Parties { party: tuples.len(), parties, most: MOST_PARTIES }.into());
    }
    let (kind, count) = (tuples[0].kind, tuples[0].count());
    let what = "lists of the same tuples";
    let shape = |tuples: &Tuples| (tuples.kind.width(), tuples.count());
    let same = |other: &&Tuples| (other.kind, other.count(), other.owner) == (kind, count, tuples[0].owner);
    if let Some(other) = tuples.iter().find(|other| !same(other)) {
        return Err(Error::Shape { left: shape(&tuples[0]), right: shape(other), what });
    }
    let alpha = keys.iter().fold(Element::ZERO, |sum, key| field.add(sum, key.secret()));
    let sum = |place: usize, half: fn(&Shared) -> &Matrix| {
        let mut shares = tuples.iter().map(|tuples| half(&tuples.parts[place]).clone());
        let first = shares.next().ok_or_else(Error::aborted)?;
        shares.try_fold(first, |sum, share| sum.add(field, &share))
    };
    let wrong = |index: usize, reason| Err(Error::WrongTuple { kind: kind.word(), index, count, reason });
    let mut opened = Vec::with_capacity(kind.width());
    for place in 0..kind.width() {
        let (value, mac) = (sum(place, Shared::value)?, sum(place, Shared::mac)?);
        let expected = value.scale(field, alpha);
        if let Some(index) = mac.entries().iter().zip(expected.entries()).position(|(found, right)| found != right) {
            return wrong(index, "a MAC does not fit");
        }
        opened.push(value);
    }
    let one = field.small(1);
    for index in 0..count {
        let at = |place: usize| opened[place].entries()[index];
        let (holds, reason) = match kind {
            Kind::Triples => (at(2) == field.mul(at(0), at(1)), "C is not A B"),
            Kind::Squares => (at(1) == field.mul(at(0), at(0)), "it is no square"),
            Kind::Bits => (at(0) == Element::ZERO || at(0) == one, "it is no bit"),
            Kind::Inverses => (field.mul(at(0), at(1)) == one, "it is no inverse"),
            Kind::Inputs => {
                let owner = tuples[0].owner.and_then(|owner| tuples.get(owner));
                let clear = owner.and_then(|owner| owner.clear.as_ref()).map(|clear| clear.entries()[index]);
                (clear == Some(at(0)), "its owner knows another number")
            }
        };
        if !holds {
            return wrong(index, reason);
        }
    }
    Ok(())
}
