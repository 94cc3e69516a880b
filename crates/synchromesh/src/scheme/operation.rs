//! Operations as data: what is computed, apart from which scheme computes it and what it is computed with.

use std::collections::BTreeMap;

use synchromesh_rlwe::ring::Backend;

use super::{Scheme, Values};
use crate::circuits::{
    Arithmetic, Coefficient, LinearTransform, Number, Polynomial, PreparedTransform, SlotSum, inner_product,
};
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
    /// The ciphertext at a level no higher than its own.
    AtLevel(usize),
    /// The ciphertext, of whose message the caller says that no slot exceeds this; nothing where messages are residues.
    Bounded(f64),
    /// A sum of slots.
    SumSlots(&'a SlotSum),
    /// The sum of x_i y_i: all x, then as many y.
    InnerProduct,
    /// c_0 + c_1 x + c_2 x^2 + .. with these coefficients.
    Polynomial(&'a Values),
    /// sum_i c_i T_i(u) with these coefficients, u the affine map of the interval to \[-1, 1\]; in CKKS only.
    Chebyshev(&'a [f64], (f64, f64)),
}

/// The entries of a linear map of slots that are not 0.
pub struct Entries {
    /// Slot of the result, for each entry.
    pub to: Vec<usize>,
    /// Slot of the argument.
    pub from: Vec<usize>,
    /// The entries.
    pub values: Values,
}

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
    match (operation, x) {
        (Operation::Binary(Binary::Add), [x, y]) => e.add(x, y),
        (Operation::Binary(Binary::Sub), [x, y]) => e.sub(x, y),
        (Operation::Binary(Binary::Mul), [x, y]) => e.mul(x, y),
        (Operation::Plain(op, values), [x]) => S::plain(e, *op, x, values),
        (Operation::Scalar(op, value), [x]) => {
            let none = || Error::Shape { reason: "an operation with a public number and none given".to_owned() };
            S::scalar(e, *op, x, S::numbers(value)?.into_iter().next().ok_or_else(none)?)
        }
        (Operation::Neg, [x]) => e.neg(x),
        (Operation::Square, [x]) => e.square(x),
        (Operation::Rotate(k), [x]) => e.rotate(x, *k),
        (Operation::Swap, [x]) => e.swap(x),
        (Operation::AtLevel(level), [x]) => e.at_level(x, *level),
        (Operation::Bounded(bound), [x]) => e.bounded(e.duplicate(x)?, *bound),
        (Operation::SumSlots(sum), [x]) => sum.run(e, x),
        (Operation::InnerProduct, x) if x.len().is_multiple_of(2) => {
            let (x, y) = x.split_at(x.len() / 2);
            inner_product(e, x, y)
        }
        (Operation::Polynomial(coefficients), [x]) => {
            let coefficients = held::<S, B>(e, coefficients)?;
            Polynomial::power(coefficients.into_iter().map(Coefficient::All))?.evaluate(e, x)
        }
        (Operation::Chebyshev(coefficients, interval), [x]) => S::chebyshev(e, x, coefficients, *interval),
        (_, x) => Err(Error::Shape { reason: format!("an operation that does not take {} ciphertexts", x.len()) }),
    }
}

/// A linear map with these entries, encoded for ciphertexts of a level.
///
/// # Errors
/// [`Error::Shape`] for lists of different lengths or a slot that there is not, numbers that the scheme does not hold, or
/// as [`LinearTransform::prepare`].
pub fn prepare<S: Scheme, B: Backend>(
    e: &S::Evaluator<B>,
    entries: &Entries,
    level: usize,
) -> Result<PreparedTransform<S::Evaluator<B>>> {
    let (shape, values) = (e.slots()?, held::<S, B>(e, &entries.values)?);
    if entries.to.len() != entries.from.len() || entries.to.len() != values.len() {
        return Err(Error::Shape { reason: "a map's lists differ in length".to_owned() });
    }
    let mut diagonals = BTreeMap::new();
    for ((&to, &from), value) in entries.to.iter().zip(&entries.from).zip(values) {
        if to.max(from) >= shape.count() {
            let reason = format!("an entry from slot {from} to slot {to} of {}", shape.count());
            return Err(Error::Shape { reason });
        }
        let step = (from % shape.row + shape.row - to % shape.row) % shape.row;
        let swap = from / shape.row != to / shape.row;
        let diagonal = diagonals.entry((swap, step)).or_insert_with(|| vec![Number::integer(0); shape.count()]);
        diagonal[to] = value;
    }
    let mut map = LinearTransform::zero(shape);
    for ((swap, step), values) in diagonals {
        map.add_diagonal(step as i64, swap, values)?;
    }
    map.prepare(e, level)
}

/// Numbers that the scheme holds as they are.
fn held<S: Scheme, B: Backend>(e: &S::Evaluator<B>, values: &Values) -> Result<Vec<S::Number>> {
    let numbers = S::numbers(values)?;
    S::require_held(S::context(e), &numbers)?;
    Ok(numbers)
}
