//! Circuits over any of the three schemes: products, polynomials, inner products, slot sums, linear transforms.
//!
//! A circuit is written once, over [`Arithmetic`], which the evaluators of BFV, BGV and CKKS implement. Each takes the
//! ciphertexts of one scheme, so that mixing schemes does not compile. Before it runs, a circuit says what it takes:
//! how deep it is, how many products it forms, which rotations it needs keys for. Certificates are those of the
//! evaluator's operations, whatever the operands have in common.

mod coefficient;
pub mod functions;
mod linear;
mod matrix;
mod polynomial;
mod product;
mod slots;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::ring::{Backend, IndexSet, Ntt, Poly, Threads};
use synchromesh_rlwe::rotation_sum::Term;
use synchromesh_rlwe::{Context, RotationSum, SwitchDomain};

pub use coefficient::{Coefficient, Number};
pub(crate) use linear::Pattern;
pub use linear::{LinearTransform, PreparedTransform};
pub(crate) use matrix::require_mask;
pub use matrix::{Levels, Mask, Matrix, MatrixArithmetic, MatrixChoices, MatrixPacking, MatrixPlan, Side, Slicing};
pub use polynomial::{Polynomial, PolynomialPlan, chebyshev_coefficients};
pub use product::{inner_product, product, product_depth};

pub use slots::{SlotShape, SlotSum, masked, replicate_blocks};

use crate::error::{Error, Result};
use crate::rotations::Rotations;

/// What products cost a scheme, and whether constants use levels; circuits choose their shape by it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Cost {
    /// A product in three components, in units of a product with its relinearisation.
    pub tensor: f64,
    /// Whether a product with a constant that is no integer takes a level (CKKS).
    pub scalars_take_a_level: bool,
}

/// sum_i a_i b_i + sum_j w_j x_j + c.
pub struct Combination<'a, C, T> {
    /// The pairs (a_i, b_i).
    pub products: Vec<[&'a C; 2]>,
    /// Each x_j with its public weight w_j.
    pub weights: Vec<(&'a C, &'a Coefficient<T>)>,
    /// The public constant c, if any.
    pub constant: Option<&'a Coefficient<T>>,
}

/// A polynomial that multiplies rotations, modulo QP, and its size.
pub type Factor<A> = (Poly<<A as Arithmetic>::Backend, Ntt>, <A as Arithmetic>::Size);

/// An operation on ciphertexts of which some may be refreshed before it.
pub type Run<'r, 'x, C> = dyn Fn(&[&'x C]) -> Result<C> + 'r;

/// The operations that circuits are made of.
///
/// Errors are those of the operations of the same name of the scheme's evaluator.
#[expect(
    clippy::missing_errors_doc,
    reason = "each is the evaluator's operation of the same name, and fails as it does"
)]
pub trait Arithmetic {
    /// Where the ciphertexts are.
    type Backend: Backend;
    /// An encrypted vector.
    type Ciphertext;
    /// A public number: an integer mod t, or a complex number.
    type Scalar: Number;
    /// How large a polynomial is that multiplies a ciphertext, as certificates see it.
    type Size: Clone + Send + Sync + 'static;
    /// What its operations cost.
    const COST: Cost;

    /// The threads on which operations may run side by side.
    fn threads(&self) -> Threads {
        Threads::ONE
    }
    /// Levels that remain.
    fn level(&self, x: &Self::Ciphertext) -> usize;
    /// A copy.
    fn duplicate(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// x + y.
    fn add(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// x - y.
    fn sub(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// -x.
    fn neg(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// x y, relinearised, and rescaled where the scheme rescales.
    fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// x^2, as [`Self::mul`].
    fn square(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// A sum of products and of weighted ciphertexts, relinearised and rescaled once (lazy key switching, ePrint
    /// 2023/1642, section 2.2).
    fn combine(&self, terms: &Combination<'_, Self::Ciphertext, Self::Scalar>) -> Result<Self::Ciphertext>;
    /// The ciphertext at the lower level that its partner in a [`Combination`] has, where that is worth keeping;
    /// `None` where the combination does better on its own.
    fn lowered(&self, x: &Self::Ciphertext, level: usize) -> Result<Option<Self::Ciphertext>>;
    /// Largest absolute value of a slot that the message is declared to have; infinite where messages are residues.
    fn bound(&self, x: &Self::Ciphertext) -> f64;
    /// The same ciphertext, of whose message the circuit knows that no slot exceeds `bound`; of no consequence where
    /// messages are residues.
    fn bounded(&self, x: Self::Ciphertext, bound: f64) -> Result<Self::Ciphertext>;

    /// The same ciphertext as one of another message, from which no slot of its own is further than `error`.
    fn deviated(&self, x: Self::Ciphertext, error: f64) -> Result<Self::Ciphertext> {
        let _ = (x, error);
        Err(Error::NotOfScheme { operation: "approximations", scheme: "an exact scheme" })
    }

    /// The same ciphertext as one of the message that it decrypts to, from which nothing is off, and how far that is from
    /// its own message at most.
    fn exactly(&self, x: &Self::Ciphertext) -> Result<(Self::Ciphertext, f64)> {
        let _ = x;
        Err(Error::NotOfScheme { operation: "approximations", scheme: "an exact scheme" })
    }

    /// The lowest level that results may have: below it nothing is computed.
    fn lowest_level(&self) -> usize {
        0
    }

    /// The ciphertext, or where its level is below `level` and the evaluator can refresh, the same message at a higher one.
    fn renewed<'x>(&self, x: &'x Self::Ciphertext, level: usize) -> Result<&'x Self::Ciphertext> {
        let _ = level;
        Ok(x)
    }

    /// The same message at the highest level that there is after bootstrapping.
    fn refresh(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext> {
        let _ = x;
        Err(Error::NoBootstrap)
    }

    /// What `run` makes of the operands; where that leaves too little room for noise and the evaluator can refresh, of
    /// operands of which some are refreshed. Where levels run out instead, [`Self::renewed`] sees to it.
    fn with_room<'x>(
        &self,
        x: &[&'x Self::Ciphertext],
        run: &Run<'_, 'x, Self::Ciphertext>,
    ) -> Result<Self::Ciphertext> {
        run(x)
    }

    /// `sum`, made of `x` by sums of two rotations each, with what is known of all of them together.
    fn summed(&self, x: &Self::Ciphertext, sum: Self::Ciphertext, counts: &SumCounts) -> Result<Self::Ciphertext> {
        let _ = (x, counts);
        Ok(sum)
    }

    /// How slots are laid out.
    fn slots(&self) -> Result<SlotShape>;
    /// Fails unless there are keys for all of these rotations.
    fn require_rotations(&self, steps: &Rotations) -> Result<()>;
    /// Every row of slots rotated to the left by k.
    fn rotate(&self, x: &Self::Ciphertext, k: i64) -> Result<Self::Ciphertext>;
    /// The rows of slots swapped (BFV, BGV), or all slots conjugated (CKKS).
    fn swap(&self, x: &Self::Ciphertext) -> Result<Self::Ciphertext>;
    /// The ciphertext at a level no higher than its own.
    fn at_level(&self, x: &Self::Ciphertext, level: usize) -> Result<Self::Ciphertext>;
    /// The rotations that one to the left by k is made of, each of which has a key of its own.
    fn route(&self, k: i64) -> Vec<i64> {
        vec![k]
    }
    /// The Galois element of a rotation to the left by k.
    fn element(&self, k: i64) -> Result<usize>;
    /// The context of the layer below, and the primes that factors of a sum of rotations at `level` live on.
    fn extended(&self, level: usize) -> Result<(&Context<Self::Backend>, IndexSet)>;
    /// The polynomial with these slots, as it multiplies rotations of ciphertexts of `level` modulo QP.
    fn factor(&self, values: &[Self::Scalar], level: usize) -> Result<Factor<Self>>;
    /// A sum of rotations of inputs of one level, in one pass.
    fn rotation_sum(
        &self,
        inputs: &[&Self::Ciphertext],
        sum: &SizedSum<Self::Backend, Self::Size>,
    ) -> Result<Self::Ciphertext>;
}

/// How many rotations of what a sum of slots is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SumCounts {
    /// Of its argument.
    pub(crate) whole: usize,
    /// Of what each key switch on the way leaves.
    pub(crate) switches: Vec<usize>,
    /// How far they are apart.
    pub(crate) stride: i64,
    /// The most of them that bring one slot to the same place.
    pub(crate) same: usize,
}

/// A sum of rotations with what certificates need to know of it.
pub struct SizedSum<'a, B: Backend, Size> {
    pub(crate) sum: &'a RotationSum<B>,
    pub(crate) factors: Factors<'a, B, Size>,
    /// What the map does to the slots.
    pub(crate) size: &'a MapSize,
    /// The most key switches that an input took which is a rotation of the argument already; 0: there is none.
    pub(crate) switches: usize,
}

/// The inputs of a giant step's terms and the sizes of their factors; none: 1.
pub(crate) type Sizes<Size> = Vec<(usize, Option<Size>)>;

/// The terms of one giant step, with the input and the size of each.
pub(crate) type Step<B, Size> = (Vec<Term<B>>, Sizes<Size>);

/// The components of a sum, and what its terms were.
type Summed<'a, B, D, Size> = ([Poly<B, D>; 2], Cow<'a, [Sizes<Size>]>);

/// The factors of a sum of rotations: for each giant step and each of its terms, the input and the size of its factor; none: 1.
pub(crate) enum Factors<'a, B: Backend, Size> {
    /// They are in the sum.
    Held(&'a [Sizes<Size>]),
    /// None is 1, and those of a giant step are made when it is summed.
    Made(&'a dyn Fn(usize) -> Result<Step<B, Size>>),
}

impl<B: Backend, Size: Copy> SizedSum<'_, B, Size> {
    /// Whether any factor is not 1.
    pub(crate) fn is_weighted(&self) -> bool {
        match &self.factors {
            Factors::Held(terms) => terms.iter().flatten().any(|(_, size)| size.is_some()),
            Factors::Made(_) => true,
        }
    }

    /// The components of the sum, divided down to level `to`, and what its terms were.
    pub(crate) fn run<D: SwitchDomain>(
        &self,
        switching: &KeySwitching<B>,
        context: &Context<B>,
        inputs: &[&synchromesh_rlwe::Ciphertext<B, D>],
        to: usize,
    ) -> Result<Summed<'_, B, D, Size>> {
        match &self.factors {
            Factors::Held(terms) => {
                let parts = switching.rotation_sum(context, inputs, self.sum, to)?;
                Ok((parts, Cow::Borrowed(terms)))
            }
            Factors::Made(make) => {
                let mut sizes = Vec::new();
                let parts = switching.rotation_sum_of(context, inputs, self.sum, to, |at| -> Result<_> {
                    let (terms, own) = make(at)?;
                    sizes.push(own);
                    Ok(terms)
                })?;
                // The innermost giant step comes first.
                sizes.reverse();
                Ok((parts, Cow::Owned(sizes)))
            }
        }
    }
}

/// How large a linear map of the slots makes them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MapSize {
    /// The largest sum of absolute values of the factors at one slot.
    pub(crate) gain: f64,
    /// A bound on |A x|_2 for |x|_2 = 1.
    pub(crate) norm: f64,
    /// A bound on |w|_2 for the factors w at one slot.
    pub(crate) row: f64,
    /// The slots at which any factor is not 0; none where all may be.
    pub(crate) own: Option<Arc<[bool]>>,
    /// The sum over the factors of the largest absolute value of each.
    pub(crate) total: f64,
    /// What no message exceeds after the map, where more is known than the gain says.
    pub(crate) image: Option<f64>,
}
