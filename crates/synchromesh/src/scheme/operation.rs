//! Operations as data: what is computed, apart from which scheme computes it and what it is computed with.

use std::collections::BTreeMap;

use synchromesh_rlwe::ring::Backend;

use super::{Scheme, Values};
use crate::circuits::functions::{Approximation, Table};
use crate::circuits::{Arithmetic, Coefficient, LinearTransform, Number, Polynomial, SlotSum, inner_product};
use crate::error::{Error, Result};

/// Operations on two ciphertexts, or a ciphertext and public numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    /// x + y
    Add,
    /// x - y
    Sub,
    /// x y
    Mul,
}

/// An operation on ciphertexts.
pub enum Operation<'a> {
    /// Of two ciphertexts.
    Binary(Binary),
    /// Of one and a public vector; slots that it does not name meet 0.
    Plain(Binary, &'a Values),
    /// Of one and one public number, the same in every slot; exact schemes take it modulo t.
    Scalar(Binary, &'a Values),
    /// -x
    Neg,
    /// x^2
    Square,
    /// Every row of slots rotated to the left.
    Rotate(i64),
    /// The rows of slots swapped (BFV, BGV), or all slots conjugated (CKKS).
    Swap,
    /// Bootstrapping: the same message with levels, or room for noise, to compute with.
    Refresh,
    /// The ciphertext at a level no higher than its own.
    AtLevel(usize),
    /// The ciphertext, of whose message the caller says that no slot exceeds this; nothing where messages are residues.
    Bounded(f64),
    /// The ciphertext as that of a message that no slot is further from than this, by the caller's word; in CKKS only.
    Approximate(f64),
    /// The ciphertext as that of the message which it decrypts to, from which nothing is off; in CKKS only.
    AsComputed,
    /// The ciphertext, of whose message the caller says that it is 0 beside these slots; nothing in an exact scheme.
    Zeros(&'a [bool]),
    /// A sum of slots.
    SumSlots(&'a SlotSum),
    /// The sum of x_i y_i: all x, then as many y.
    InnerProduct,
    /// c_0 + c_1 x + c_2 x^2 + .. with these coefficients.
    Polynomial(&'a Values, Where<'a>),
    /// A function approximated on an interval, of as many ciphertexts as it has arguments; in CKKS only.
    Function(&'a Approximation),
    /// A function of integers by its values, of one ciphertext or of the difference of two; in BFV and BGV only.
    Table(&'a Table),
    /// sum_i c_i T_i(u) with these coefficients, u the affine map of the interval to \[-1, 1\]; in CKKS only.
    Chebyshev(&'a [f64], (f64, f64), Where<'a>),
}

/// The slots in which a polynomial is computed; the others become 0 on the way, at no level but where all coefficients are
/// integers, which take none in CKKS. None: all.
pub type Where<'a> = Option<&'a [bool]>;

/// A coefficient of a polynomial that is computed in some slots.
pub(super) fn coefficient<T: Number>(value: T, slots: Where<'_>) -> Coefficient<T> {
    match slots {
        Some(slots) if !value.is_zero() => {
            Coefficient::Slots(slots.iter().map(|&own| if own { value.clone() } else { T::integer(0) }).collect())
        }
        _ => Coefficient::All(value),
    }
}

/// The entries of a linear map of slots that are not 0.
#[derive(Clone)]
pub struct Entries {
    /// Slot of the result, for each entry.
    pub to: Vec<u32>,
    /// Slot of the argument.
    pub from: Vec<u32>,
    /// The entries.
    pub values: Values,
}

/// How many entries of a map are turned into numbers of the scheme at a time.
const RUN: usize = 1 << 12;

/// The result of an operation on the ciphertexts `x`.
///
/// # Errors
/// [`Error::Shape`] unless there are as many ciphertexts as it takes, numbers that the scheme does not hold, and those of
/// the evaluator's operation of the same name.
pub fn apply<S: Scheme, B: Backend>(
    e: &S::Evaluator<B>,
    operation: &Operation<'_>,
    x: &[&S::Ciphertext<B>],
) -> Result<S::Ciphertext<B>> {
    match operation {
        // What is asked for is not to be undone.
        Operation::Refresh | Operation::AtLevel(_) => carried_out::<S, B>(e, operation, x),
        _ => e.with_room(x, &|x| carried_out::<S, B>(e, operation, x)),
    }
}

#[deny(clippy::wildcard_enum_match_arm, reason = "a new operation is to be carried out")]
fn carried_out<S: Scheme, B: Backend>(
    e: &S::Evaluator<B>,
    operation: &Operation<'_>,
    x: &[&S::Ciphertext<B>],
) -> Result<S::Ciphertext<B>> {
    let one = || operands(x).map(|[x]| x);
    match operation {
        Operation::Binary(op) => {
            let [x, y] = operands(x)?;
            match op {
                Binary::Add => e.add(x, y),
                Binary::Sub => e.sub(x, y),
                Binary::Mul => e.mul(x, y),
            }
        }
        Operation::Plain(op, values) => S::plain(e, *op, one()?, values),
        Operation::Scalar(op, value) => {
            let none = || Error::Shape { reason: "an operation with a public number and none given".to_owned() };
            S::scalar(e, *op, one()?, S::numbers(value)?.into_iter().next().ok_or_else(none)?)
        }
        Operation::Neg => e.neg(one()?),
        Operation::Square => e.square(one()?),
        Operation::Rotate(k) => e.rotate(one()?, *k),
        Operation::Swap => e.swap(one()?),
        Operation::Refresh => e.refresh(one()?),
        Operation::AtLevel(level) => e.at_level(one()?, *level),
        Operation::Bounded(bound) => e.bounded(e.duplicate(e.renewed(one()?, 0)?)?, *bound),
        Operation::Zeros(own) => S::zeros(e, one()?, own),
        Operation::Approximate(error) => S::approximate(e, one()?, *error),
        Operation::AsComputed => Ok(e.exactly(one()?)?.0),
        Operation::SumSlots(sum) => sum.run(e, one()?),
        Operation::InnerProduct if !x.len().is_multiple_of(2) => Err(not_taken(x.len())),
        Operation::InnerProduct => {
            let (x, y) = x.split_at(x.len() / 2);
            inner_product(e, x, y)
        }
        Operation::Polynomial(coefficients, slots) => {
            let (x, coefficients) = (one()?, held::<S, B>(e, coefficients)?);
            Polynomial::power(coefficients.into_iter().map(|c| coefficient(c, *slots)))?.evaluate(e, x)
        }
        Operation::Function(approximation) => S::function(e, approximation, x),
        Operation::Table(table) => S::table(e, table, x),
        Operation::Chebyshev(coefficients, interval, slots) => S::chebyshev(e, one()?, coefficients, *interval, *slots),
    }
}

/// The ciphertexts of an operation that takes K.
fn operands<'x, C, const K: usize>(x: &[&'x C]) -> Result<[&'x C; K]> {
    x.try_into().map_err(|_| not_taken(x.len()))
}

fn not_taken(count: usize) -> Error {
    Error::Shape { reason: format!("an operation that does not take {count} ciphertexts") }
}

/// A linear map with these entries.
///
/// # Errors
/// [`Error::Shape`] for lists of different lengths or a slot that there is not, numbers that the scheme does not hold.
pub fn linear_map<S: Scheme, B: Backend>(e: &S::Evaluator<B>, entries: &Entries) -> Result<LinearTransform<S::Number>> {
    let shape = e.slots()?;
    if entries.to.len() != entries.from.len() || entries.to.len() != entries.values.len() {
        return Err(Error::Shape { reason: "a map's lists differ in length".to_owned() });
    }
    let mut diagonals = BTreeMap::new();
    let mut slots = entries.to.iter().zip(&entries.from);
    // Few at a time: numbers as circuits have them may take more memory than all entries.
    for (run, values) in entries.values.runs(RUN).enumerate() {
        let numbers = held::<S, B>(e, &values).map_err(|error| error.counted_from(run * RUN))?;
        for (value, (&to, &from)) in numbers.into_iter().zip(&mut slots) {
            let (to, from) = (to as usize, from as usize);
            if to.max(from) >= shape.count() {
                let reason = format!("an entry from slot {from} to slot {to} of {}", shape.count());
                return Err(Error::Shape { reason });
            }
            let step = (from % shape.row + shape.row - to % shape.row) % shape.row;
            let swap = from / shape.row != to / shape.row;
            let diagonal = diagonals.entry((swap, step)).or_insert_with(|| vec![Number::integer(0); shape.count()]);
            diagonal[to] = value;
        }
    }
    let mut map = LinearTransform::zero(shape);
    for ((swap, step), values) in diagonals {
        map.add_diagonal(step as i64, swap, values)?;
    }
    Ok(map)
}

/// Numbers that the scheme holds as they are.
fn held<S: Scheme, B: Backend>(e: &S::Evaluator<B>, values: &Values) -> Result<Vec<S::Number>> {
    let numbers = S::numbers(values)?;
    S::require_held(S::context(e), &numbers)?;
    Ok(numbers)
}
