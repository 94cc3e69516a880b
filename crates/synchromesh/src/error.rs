//! What can go wrong in a scheme: the errors of the layers below, and mismatches that only a scheme can see.

mod limit;

use synchromesh_rlwe::entropy::EntropyError;
use synchromesh_rlwe::ring::prime::PrimeError;

use crate::batch::BatchError;
use crate::embedding::EmbeddingError;
use crate::plain_modulus::PlainModulusError;

pub use limit::{Limit, Nearest};

/// Result of a scheme's operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Keys, ciphertexts or parameters were refused by the layer below.
    #[error(transparent)]
    Rlwe(#[from] synchromesh_rlwe::Error),
    /// Values mod t could not be encoded or decoded.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// No usable plaintext modulus.
    #[error(transparent)]
    PlainModulus(#[from] PlainModulusError),
    /// Complex values could not be encoded or decoded.
    #[error(transparent)]
    Embedding(#[from] EmbeddingError),
    /// The primes asked for do not exist.
    #[error(transparent)]
    Primes(#[from] PrimeError),
    /// A field of a plan that its parameters do not bear out.
    #[error("the plan says that its {field} is {says}; its parameters make that {makes}")]
    PlanField {
        /// The field.
        field: &'static str,
        /// What the plan says.
        says: String,
        /// What it must be.
        makes: String,
    },
    /// A plaintext belongs to another plaintext modulus.
    #[error("the plaintext is modulo {found}, the parameters are modulo {expected}")]
    PlainModulusDiffers {
        /// t of the parameters, in decimal.
        expected: String,
        /// t of the plaintext, in decimal.
        found: String,
    },
    /// A plaintext has another number of coefficients than the ring.
    #[error("the plaintext has {found} coefficients, the ring degree is {expected}")]
    Degree {
        /// N of the parameters.
        expected: usize,
        /// Coefficients of the plaintext.
        found: usize,
    },
    /// The plaintext modulus shares a factor with a prime.
    #[error("the plaintext modulus {t} shares a factor with prime {prime}")]
    SharedFactor {
        /// t in decimal.
        t: String,
        /// The prime.
        prime: u64,
    },
    /// Two scales differ.
    #[error("the scales differ: 2^{left:.6} and 2^{right:.6}")]
    ScaleMismatch {
        /// log2 of one.
        left: f64,
        /// log2 of the other.
        right: f64,
    },
    /// A message may be larger than bootstrapping was planned for.
    #[error("a slot of the message may reach {have}, and bootstrapping is planned for messages of at most {most}")]
    MessageBound {
        /// The declared bound.
        have: f64,
        /// The largest that is refreshed.
        most: f64,
    },
    /// A ciphertext of BFV or BGV has too much noise to be refreshed.
    #[error("the ciphertext has a noise budget of {have:.1} bits, and a refresh takes one of {needed:.1}")]
    RefreshBudget {
        /// Its noise budget, in bits.
        have: f64,
        /// The least that is refreshed, in bits.
        needed: f64,
    },
    /// A refresh does not reach the noise budget that was planned for.
    #[error("passes of this refresh end at a noise budget of {reached:.1} bits, and {wanted} are planned for")]
    RefreshStalls {
        /// What is reached, in bits.
        reached: f64,
        /// What is planned for, in bits.
        wanted: u32,
    },
    /// An argument of a function that may be outside the interval on which it is approximated.
    #[error("{function} is approximated on {low} to {high}, and a slot of its argument may reach {have}")]
    Interval {
        /// The function.
        function: &'static str,
        /// The declared bound of the argument.
        have: f64,
        /// The interval's lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// A tolerance that no approximation reaches.
    #[error(
        "{function} on {low} to {high} is not approximated to {tolerance:e}: the nearest that works is {nearest:.3e}"
    )]
    Tolerance {
        /// The function.
        function: &'static str,
        /// What was asked for.
        tolerance: f64,
        /// What can be had.
        nearest: f64,
        /// The interval's lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// A function of an argument that is off by more than its polynomials are certified for.
    #[error("the argument of {function} may be off by {off:.3e}, and it is certified for no more than {most:.3e}")]
    Rough {
        /// The function.
        function: &'static str,
        /// By what the argument of one of its polynomials may be off, relative to half its interval.
        off: f64,
        /// How much is certified.
        most: f64,
    },
    /// A function with a singularity on the interval.
    #[error("{function} has no polynomial near it on {low} to {high}: it is singular at {at}")]
    Singular {
        /// The function.
        function: &'static str,
        /// Where it is singular.
        at: f64,
        /// The interval's lower end.
        low: f64,
        /// Its upper end.
        high: f64,
    },
    /// A parameter literal of a scheme breaks a rule.
    #[error("parameters: {rule}")]
    Params {
        /// The rule, with the numbers.
        rule: String,
    },
    /// A description of what is to be planned breaks a rule.
    #[error("request: {rule}")]
    Request {
        /// The rule, with the numbers.
        rule: String,
    },
    /// A plan or a profile that is no such file, or of another version.
    #[error("{rule}")]
    Format {
        /// What is wrong with it.
        rule: String,
    },
    /// What an operation was given.
    #[error("{rule}")]
    Argument {
        /// The rule it breaks, with the numbers.
        rule: String,
    },
    /// The way of decryption asked for is not exact for these parameters.
    #[error("decryption by {method} is not exact at level {level}: it needs {needed}")]
    Decryption {
        /// The way asked for.
        method: &'static str,
        /// Level of the ciphertext.
        level: usize,
        /// The bound it breaks, with the numbers.
        needed: String,
    },
    /// There are too few primes beside those of a level for the second base of a product.
    #[error(
        "a sum of {terms} product(s) at level {level} needs a second base of {needed:.1} bits, the primes outside that \
         level have {have:.1}"
    )]
    SecondBase {
        /// Bits it needs.
        needed: f64,
        /// Bits of all primes that could serve.
        have: f64,
        /// Level of the product.
        level: usize,
        /// Products in the sum.
        terms: usize,
    },
    /// A header of a ciphertext cannot be right.
    #[error("the ciphertext's {field} is invalid: {reason}")]
    Header {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// Rotations that a circuit makes have no keys.
    #[error("no keys to rotate by {steps:?}{}", if *.swap { ", nor to swap rows or conjugate" } else { "" })]
    MissingRotations {
        /// The steps, to the left.
        steps: Vec<i64>,
        /// Whether the key that swaps rows (BFV, BGV) or conjugates (CKKS) is missing too.
        swap: bool,
    },
    /// Decrypted values cannot be released as asked for.
    #[error("no release: {reason}")]
    Release {
        /// What stands against it, with the numbers.
        reason: String,
    },
    /// A message that is too large for its modulus once it is hidden in shares.
    #[error(
        "in shares a message of level {level} takes {needed:.1} bits, and the modulus of that level has room for {room:.1}"
    )]
    NoRoomForShares {
        /// Its level.
        level: usize,
        /// log2 of the largest sum of what all show.
        needed: f64,
        /// log2 of the largest that the modulus tells apart.
        room: f64,
        /// The lowest level that has the room, if there is one.
        least: Option<usize>,
    },
    /// No parameters do what a description asks for.
    #[error("no parameters up to N = 2^17 fit this description, by {limit}: {reason}{}", nearest_text(.nearest.as_ref()))]
    NoPlan {
        /// The limit that the largest degree ran into.
        limit: Limit,
        /// How, with the numbers.
        reason: String,
        /// A request that works.
        nearest: Option<Nearest>,
    },
    /// Prepared keys that serve every level take more bytes than there may be.
    #[error(
        "no prepared keys of at most {budget} bytes serve every level; the least that do take {least} bytes: {plans}"
    )]
    KeyBudget {
        /// Bytes there may be.
        budget: u64,
        /// Bytes of the least keys that serve every level.
        least: u64,
        /// The plans that these are for, in words.
        plans: String,
    },
    /// Numbers of a form that a scheme does not compute with.
    #[error("{found} in {scheme}")]
    NumberForm {
        /// What they are.
        found: &'static str,
        /// The scheme, or what else was asked for.
        scheme: &'static str,
    },
    /// An integer that a slot does not hold as it is.
    #[error("number {index} is outside -t/2 to t/2 for t = {t}")]
    NumberExceedsModulus {
        /// Its place, from 0.
        index: usize,
        /// The integer.
        value: String,
        /// The plaintext modulus.
        t: String,
    },
    /// An operation that a scheme does not have.
    #[error("{operation} in {scheme}")]
    NotOfScheme {
        /// The operation.
        operation: &'static str,
        /// The scheme.
        scheme: &'static str,
    },
    /// A ciphertext or a map of another session.
    #[error("the object is of another scheme or device")]
    OtherScheme,
    /// Operands that do not go together.
    #[error("{reason}")]
    Shape {
        /// Why, with the numbers.
        reason: String,
    },
    /// More rotations than there are.
    #[error("{count} rotations, and there are at most {most}")]
    TooManyRotations {
        /// How many keys were asked for.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A refresh that nothing was planned for.
    #[error("a refresh, and the parameters were made without bootstrapping")]
    NoBootstrap,
    /// An operation needs keys and the evaluator has none.
    #[error("{operation} needs evaluation keys, and this evaluator has none")]
    NoKeys {
        /// What was asked for.
        operation: &'static str,
    },
}

fn nearest_text(nearest: Option<&Nearest>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; {nearest} would fit"))
}

impl From<synchromesh_rlwe::ring::Error> for Error {
    fn from(error: synchromesh_rlwe::ring::Error) -> Self {
        Self::Rlwe(error.into())
    }
}

impl From<synchromesh_rlwe::ring::BackendError> for Error {
    fn from(error: synchromesh_rlwe::ring::BackendError) -> Self {
        synchromesh_rlwe::ring::Error::from(error).into()
    }
}

impl From<EntropyError> for Error {
    fn from(error: EntropyError) -> Self {
        Self::Rlwe(error.into())
    }
}

impl Error {
    /// The same of a number whose place was counted from `start`.
    pub(crate) fn counted_from(self, start: usize) -> Self {
        match self {
            Self::NumberExceedsModulus { index, value, t } => {
                Self::NumberExceedsModulus { index: start + index, value, t }
            }
            other => other,
        }
    }

    /// A rule that a parameter literal breaks.
    pub(crate) fn params(rule: impl Into<String>) -> Self {
        Self::Params { rule: rule.into() }
    }

    /// A rule that a description of what is to be planned breaks.
    pub(crate) fn request(rule: impl Into<String>) -> Self {
        Self::Request { rule: rule.into() }
    }

    /// What is wrong with a plan or a profile.
    pub(crate) fn format(rule: impl Into<String>) -> Self {
        Self::Format { rule: rule.into() }
    }

    /// A rule that an argument breaks.
    pub(crate) fn argument(rule: impl Into<String>) -> Self {
        Self::Argument { rule: rule.into() }
    }

    /// Operands that do not go together.
    pub(crate) fn shape(reason: impl Into<String>) -> Self {
        Self::Shape { reason: reason.into() }
    }

    /// A stable word for scripts.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Rlwe(e) => e.kind(),
            Self::Batch(e) => e.kind(),
            Self::PlainModulus(e) => e.kind(),
            Self::Embedding(e) => e.kind(),
            Self::Primes(_) => "primes",
            Self::PlainModulusDiffers { .. } => "plain_modulus_differs",
            Self::Degree { .. } => "plaintext_degree",
            Self::SharedFactor { .. } => "shared_factor",
            Self::ScaleMismatch { .. } => "scale_mismatch",
            Self::MessageBound { .. } => "message_bound",
            Self::RefreshBudget { .. } => "refresh_budget",
            Self::RefreshStalls { .. } => "refresh_stalls",
            Self::Interval { .. } => "interval",
            Self::Tolerance { .. } => "tolerance",
            Self::Rough { .. } => "rough",
            Self::Singular { .. } => "singular",
            Self::Params { .. } => "params",
            Self::Request { .. } => "request",
            Self::Format { .. } => "format",
            Self::Argument { .. } => "argument",
            Self::PlanField { .. } => "plan_field",
            Self::Decryption { .. } => "decryption_method",
            Self::SecondBase { .. } => "second_base",
            Self::Header { .. } => "header",
            Self::MissingRotations { .. } => "missing_key",
            Self::Release { .. } => "release",
            Self::NoRoomForShares { .. } => "no_room_for_shares",
            Self::NoPlan { limit, .. } => limit.kind(),
            Self::KeyBudget { .. } => "key_budget",
            Self::NumberForm { .. } => "dtype",
            Self::NumberExceedsModulus { .. } => "value_exceeds_modulus",
            Self::NotOfScheme { .. } => "scheme",
            Self::OtherScheme => "scheme_differs",
            Self::Shape { .. } => "shape",
            Self::TooManyRotations { .. } => "rotations",
            Self::NoBootstrap => "no_bootstrap",
            Self::NoKeys { .. } => "no_keys",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Rlwe(e) => e.remedy(),
            Self::Batch(e) => e.remedy(),
            Self::PlainModulus(e) => e.remedy(),
            Self::Embedding(e) => e.remedy(),
            Self::Primes(_) => "use other widths or fewer primes, from 20 to 61 bits".to_owned(),
            Self::PlanField { .. } => {
                "use an unaltered plan file, or make the plan anew with `synchromesh plan`".to_owned()
            }
            Self::PlainModulusDiffers { expected, .. } => format!("encode it in a context with t = {expected}"),
            Self::Degree { expected, .. } => format!("encode it in a context with N = {expected}"),
            Self::SharedFactor { .. } => {
                "choose a plaintext modulus coprime to every prime, or other prime widths".to_owned()
            }
            Self::ScaleMismatch { .. } => {
                "rescale or switch one operand to the other's scale, or let scales be managed automatically".to_owned()
            }
            Self::MessageBound { most, .. } => {
                format!("divide the message, declare a bound of at most {most}, or plan for larger messages")
            }
            Self::RefreshBudget { needed, .. } => {
                format!("refresh before a product that leaves less than {needed:.1} bits, or plan for a larger budget")
            }
            Self::RefreshStalls { reached, .. } => {
                format!(
                    "plan for a budget of at most {:.0} bits, or with more levels or larger scales",
                    reached.floor()
                )
            }
            Self::Interval { have, .. } => {
                format!("approximate it on an interval that reaches {have}, or declare a smaller bound (declare_bound)")
            }
            Self::Tolerance { nearest, .. } => {
                format!("ask for {nearest:.3e}, or approximate on a narrower interval, further from singularities")
            }
            Self::Rough { off, most, .. } => {
                let bits = (off / most).log2().ceil();
                format!(
                    "let its argument have {bits} bits more, by a larger scale or by smaller tolerances of what it is computed from"
                )
            }
            Self::Singular { at, .. } => {
                format!(
                    "choose an interval that ends before {at}: the argument's values must keep a distance from there"
                )
            }
            Self::Params { .. } => "correct the literal, or let a plan choose the parameters".to_owned(),
            Self::Request { .. } => "change the request: the numbers in it say what can be planned for".to_owned(),
            Self::Format { .. } => {
                "give an unaltered file of this version, or make it anew with `synchromesh plan` or `synchromesh tune`"
                    .to_owned()
            }
            Self::Argument { .. } => "give the operation what it takes; its documentation has the ranges".to_owned(),
            Self::Decryption { .. } => {
                "decrypt with the automatic choice, which is exact for all parameters".to_owned()
            }
            Self::SecondBase { .. } => {
                "multiply with a tensor product that switches one operand, whose second base always suffices; or use \
                 more special primes, or a lower level"
                    .to_owned()
            }
            Self::Header { .. } => "read the ciphertext from an unaltered file".to_owned(),
            Self::MissingRotations { steps, swap } => format!(
                "have the owner of the secret key generate keys for the rotations {steps:?}{}",
                if *swap { " and for the swap" } else { "" }
            ),
            Self::Release { .. } => {
                "ask for fewer bits or fewer shares, or plan for a larger scale: every bit of it is a bit of precision"
                    .to_owned()
            }
            Self::NoRoomForShares { least: Some(least), .. } => {
                format!("share or refresh it at level {least} or higher, before it is brought lower")
            }
            Self::NoRoomForShares { needed, room, .. } => format!(
                "plan for a lowest level of {:.0} bits more, or for fewer decryptions and less statistical security, two bits \
                 of which are one here",
                (needed - room).ceil()
            ),
            Self::NoPlan { nearest: Some(nearest), .. } => {
                format!("ask for {nearest}, or change the rest of the request")
            }
            Self::NoPlan { limit: Limit::Bounds, .. } => {
                "declare how large values are where you know more than certificates do (declare_bound, after every few \
                 multiplications), bound the inputs lower, or use fewer multiplications"
                    .to_owned()
            }
            Self::NoPlan { .. } => {
                "ask for less security, fewer additions, or a smaller plaintext modulus or precision".to_owned()
            }
            Self::KeyBudget { least, plans, .. } => format!("allow {least} bytes, for {plans}"),
            Self::NumberForm { found: "wide integers", .. } => "use bfv or bgv for large integers".to_owned(),
            Self::NumberForm { .. } => "round them, or use ckks".to_owned(),
            Self::NumberExceedsModulus { .. } => "plan with a larger t, or scale the numbers down".to_owned(),
            Self::NotOfScheme { .. } => {
                "use ckks, or a polynomial in powers; equal, less and look-ups are for integers, in bfv and bgv"
                    .to_owned()
            }
            Self::OtherScheme => "use ciphertexts, keys and maps of one context".to_owned(),
            Self::Shape { .. } => {
                "pass operands of the numbers and shapes that the operation takes, in slots that there are".to_owned()
            }
            Self::TooManyRotations { .. } => "name each rotation once".to_owned(),
            Self::NoBootstrap => {
                "plan with bootstrapping (`plan --bootstrap`), and make the keys of that plan".to_owned()
            }
            Self::NoKeys { operation } => {
                format!("make the evaluator with keys that the owner of the secret key generated for {operation}")
            }
        }
    }
}
