//! Arithmetic expressions over named ciphertexts: `0.5*x*y - rotate(x, 3)^2 + conj(z)`, `max(x, sigmoid(y, -8, 8))`.
//!
//! Text -> syntax tree (`parser`) -> a graph in which equal subexpressions are one node ([`Graph`]) -> values of any
//! kind. Constants are folded; a product of several factors is taken shallowest first, and a power x^n as
//! x^ceil(n/2) * x^floor(n/2), so the multiplicative depth is the least that products of two allow.

mod graph;
mod parser;

pub use graph::{Graph, Operation};

use std::ops::Range;

/// The longest text that is read, in bytes.
pub const MAX_TEXT: usize = 1 << 16;

/// The deepest nesting of parentheses, calls and signs.
pub const MAX_NESTING: usize = 100;

/// The largest exponent.
pub const MAX_EXPONENT: u32 = 1 << 12;

/// The most nodes a graph may have.
pub const MAX_NODES: usize = 1 << 14;

/// The widest integer constant, in bits, that folding may produce.
pub const MAX_CONSTANT_BITS: u64 = 1 << 12;

/// What is wrong with an expression; `span` is the range of bytes of the text that is to blame.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[error("at character {}: {problem}", span.start + 1)]
pub struct ExpressionError {
    /// What is wrong.
    pub problem: Problem,
    /// Where, in bytes from 0.
    pub span: Range<usize>,
}

/// The ways in which an expression can be wrong.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A character that begins no token.
    #[error("'{0}' has no meaning here")]
    Character(char),
    /// Something else was needed.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// What would have been right.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Digits that are no finite number.
    #[error("{0} is not a finite number")]
    Number(String),
    /// A name that is called but is no function.
    #[error("there is no function '{0}'")]
    Function(String),
    /// Division.
    #[error("there is no division of encrypted values")]
    Division,
    /// An exponent that is no integer from 0 to [`MAX_EXPONENT`].
    #[error("the exponent {0} is not an integer from 0 to {MAX_EXPONENT}")]
    Exponent(String),
    /// A rotation count that is no 32-bit integer.
    #[error("the rotation {0} is not an integer of 32 bits")]
    Rotation(String),
    /// A constant where a ciphertext is needed.
    #[error("{0} needs a ciphertext, and this is a constant")]
    Constant(&'static str),
    /// Numbers that a function does not take.
    #[error("{function} takes {takes}")]
    Arguments {
        /// The function.
        function: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// A function that is not approximated as asked for.
    #[error(transparent)]
    Approximation(synchromesh::Error),
    /// No name at all, or none that matters.
    #[error("the value does not depend on any ciphertext")]
    NoCiphertext,
    /// A folded constant that left the range of its kind.
    #[error("a constant exceeds {MAX_CONSTANT_BITS} bits or the largest real")]
    Overflow,
    /// Text, nesting or graph beyond its limit.
    #[error("the expression has more than {limit} {what}")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// How many there may be.
        limit: usize,
    },
}

impl ExpressionError {
    /// The stable name of this kind of error, for scripts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.problem {
            Problem::TooLarge { .. } => "expression_too_large",
            Problem::NoCiphertext => "expression_no_ciphertext",
            Problem::Approximation(ref error) => error.kind(),
            _ => "expression",
        }
    }

    /// What the user can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        let remedy = match &self.problem {
            Problem::Approximation(error) => return error.remedy(),
            Problem::Division => {
                "multiply by the reciprocal, say 0.25*x for x/4; in ckks also by inverse(y, low, high)"
            }
            Problem::Function(_) => {
                "the functions are rotate(x, k), conj(x), in bfv and bgv equal, less and lookup, and, in ckks, refresh(x), exp, log, sigmoid, tanh, gelu, sqrt, rsqrt, inverse, \
                 sign, step, abs, relu, clip, compare, max and min"
            }
            Problem::Arguments { .. } => "say sigmoid(x, -8, 8, 1e-4) for -8 <= x <= 8 to within 1e-4",
            Problem::Exponent(_) => "write a whole number, and parentheses for a power of a power: (x^2)^3",
            Problem::Rotation(_) => "write a whole number of slots, say rotate(x, -4)",
            Problem::Constant(_) | Problem::NoCiphertext => "use a name given as NAME=FILE",
            Problem::Overflow => "use smaller constants: they are reduced modulo t in any case",
            Problem::TooLarge { .. } => "split the expression into several evaluations",
            Problem::Character(_) | Problem::Unexpected { .. } | Problem::Number(_) => {
                "use names, numbers, + - * ^, parentheses and functions, say 'x*y + 2*rotate(x, 1)'"
            }
        };
        remedy.to_owned()
    }

    fn new(problem: Problem, span: Range<usize>) -> Self {
        Self { problem, span }
    }
}
