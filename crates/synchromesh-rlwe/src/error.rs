//! What can go wrong with keys, ciphertexts and parameters; every variant carries the numbers and has a remedy.

use crate::entropy::EntropyError;
use crate::security::SecurityError;
use crate::wire::WireError;

/// Indices of the primes of each digit, and of the special primes.
pub type DigitsOfPrimes = (Vec<Vec<usize>>, Vec<usize>);

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The ring refused.
    #[error(transparent)]
    Ring(#[from] synchromesh_ring::Error),
    /// Parameters are less secure than asked for.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// No randomness.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
    /// Bytes that are not the object expected, or an object that has no bytes.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A parameter literal breaks a rule.
    #[error("parameters: {rule}")]
    Params {
        /// The rule, with the numbers.
        rule: String,
    },
    /// A way of switching keys that these parameters, this level or this key do not have.
    #[error("key switch: {rule}")]
    SwitchPlan {
        /// The rule it breaks, with the numbers.
        rule: String,
    },
    /// What an operation was given.
    #[error("{rule}")]
    Argument {
        /// The rule it breaks, with the numbers.
        rule: String,
    },
    /// A polynomial of a key is larger at some root of X^N + 1 than certificates of noise allow.
    #[error("{what} small enough at all roots of X^N + 1 for certificates of noise")]
    Uneven {
        /// Which, with a verb.
        what: &'static str,
    },
    /// The extended ring of a double decomposition cannot hold the inner product.
    #[error(
        "double decomposition with {omega} digits of the ciphertext and {omega2} of the key needs auxiliary primes of \
         {need_bits} bits together; {have} primes have {have_bits}"
    )]
    AuxPrimes {
        /// Auxiliary primes there are.
        have: usize,
        /// Bits of their product.
        have_bits: u32,
        /// Bits it must have.
        need_bits: u32,
        /// Digits of the ciphertext.
        omega: usize,
        /// Digits of the key.
        omega2: usize,
        /// Numbers of digits next to these for which the primes suffice.
        nearest: Option<(usize, usize)>,
    },
    /// An operation needs more levels than the ciphertext has left.
    #[error("this needs level {needed} or more, the ciphertext is at level {have} of {top}")]
    Level {
        /// Level needed.
        needed: usize,
        /// Level of the ciphertext.
        have: usize,
        /// Level of a fresh ciphertext.
        top: usize,
    },
    /// A key switch borrows primes that its input still has.
    #[error(
        "this key switch borrows {borrowed} of {primes} ciphertext primes and takes at most {most} limbs; the input has {limbs}"
    )]
    BorrowedPrimes {
        /// Limbs of the input.
        limbs: usize,
        /// Most limbs that the plan's digits cover.
        most: usize,
        /// Ciphertext primes in P.
        borrowed: usize,
        /// Ciphertext primes of the parameters.
        primes: usize,
    },
    /// Operands made under different parameters.
    #[error("objects were made under different parameters: {left} and {right}")]
    ParamsDiffer {
        /// Digest of one, in hexadecimal.
        left: String,
        /// Digest of the other.
        right: String,
    },
    /// Operands under different secret keys.
    #[error("objects belong to different secret keys: {left} and {right}")]
    KeysDiffer {
        /// Key id of one.
        left: String,
        /// Key id of the other.
        right: String,
    },
    /// A key that the operation needs is not there.
    #[error("no key to switch from {source_name}; have: {have}")]
    MissingKey {
        /// What had to be switched.
        source_name: String,
        /// Names of the keys present.
        have: String,
    },
    /// A key was trimmed to fewer levels than the operation needs.
    #[error("the key for {source_name} was trimmed to what primes {have:?} need, and lacks what {missing:?} need")]
    TrimmedKey {
        /// What had to be switched.
        source_name: String,
        /// Indices of primes of the input, or of P, that the key has lost.
        missing: Vec<usize>,
        /// Indices of those that it has kept.
        have: Vec<usize>,
    },
    /// Digits and special primes that do not go together, or that the stored key does not have.
    #[error("digits of the primes {digits:?} with P of the primes {special:?}: {rule}")]
    Digits {
        /// Indices of the primes of each digit.
        digits: Vec<Vec<usize>>,
        /// Indices of the special primes.
        special: Vec<usize>,
        /// The rule they break, with the numbers.
        rule: String,
        /// Digits and special primes next to these that go together.
        nearest: Option<Box<DigitsOfPrimes>>,
    },
    /// A plan is for keys stored with other digits or special primes than this one.
    #[error(
        "the plan is for a key in digits of {needed:?} primes with {needed_special} special prime(s); the key for \
         {source_name} is stored in digits of {have:?} with {have_special}"
    )]
    KeyShape {
        /// What had to be switched.
        source_name: String,
        /// Primes in each digit of the key that the plan is for.
        needed: Vec<usize>,
        /// Its special primes.
        needed_special: usize,
        /// Primes in each digit of this key.
        have: Vec<usize>,
        /// Its special primes.
        have_special: usize,
    },
    /// A ciphertext has the wrong number of components.
    #[error("a ciphertext of {expected} components is needed, this one has {got}")]
    Components {
        /// Components needed.
        expected: usize,
        /// Components present.
        got: usize,
    },
    /// The result could decrypt wrongly.
    #[error(
        "the result could decrypt wrongly: its noise may reach 2^{noise_bits:.1}, \
         and level {level} has room for 2^{room_bits:.1} at failure probability 2^-{log2_failure}"
    )]
    Noise {
        /// log2 of the noise bound.
        noise_bits: f64,
        /// log2 of the largest noise that decrypts.
        room_bits: f64,
        /// Level of the result.
        level: usize,
        /// Accepted failure probability, as minus its log2.
        log2_failure: u32,
    },
    /// The noise of an operand is not known, so nothing can be said about the result.
    #[error(
        "nothing vouches for the noise of an operand: its certificate was read from a file without an envelope key; \
         level {level} has room for 2^{room_bits:.1}"
    )]
    UnknownNoise {
        /// log2 of the largest noise that decrypts.
        room_bits: f64,
        /// Level of the result.
        level: usize,
    },
    /// A certificate that is believed on somebody's word was to be vouched for.
    #[error(
        "the certificate of an operand was read from a file and believed on the user's word; {what} needs one that is proven"
    )]
    OnWord {
        /// What was to be made of it.
        what: &'static str,
    },
}

impl From<synchromesh_ring::BackendError> for Error {
    fn from(error: synchromesh_ring::BackendError) -> Self {
        Self::Ring(error.into())
    }
}

impl Error {
    /// A rule that a parameter literal breaks.
    pub(crate) fn params(rule: impl Into<String>) -> Self {
        Self::Params { rule: rule.into() }
    }

    /// A rule that a way of switching keys breaks.
    pub(crate) fn switch_plan(rule: impl Into<String>) -> Self {
        Self::SwitchPlan { rule: rule.into() }
    }

    /// A rule that an argument breaks.
    pub(crate) fn argument(rule: impl Into<String>) -> Self {
        Self::Argument { rule: rule.into() }
    }

    /// A stable word for scripts.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Ring(e) => e.kind(),
            Self::Security(e) => e.kind(),
            Self::Entropy(e) => e.kind(),
            Self::Wire(e) => e.kind(),
            Self::Params { .. } => "params",
            Self::SwitchPlan { .. } => "switch_plan",
            Self::Argument { .. } => "argument",
            Self::Uneven { .. } => "uneven_key",
            Self::AuxPrimes { .. } => "aux_primes",
            Self::Level { .. } => "level",
            Self::BorrowedPrimes { .. } => "borrowed_primes",
            Self::ParamsDiffer { .. } => "params_differ",
            Self::KeysDiffer { .. } => "keys_differ",
            Self::MissingKey { .. } => "missing_key",
            Self::TrimmedKey { .. } => "trimmed_key",
            Self::Digits { .. } => "key_digits",
            Self::KeyShape { .. } => "key_shape",
            Self::Components { .. } => "components",
            Self::Noise { .. } => "noise",
            Self::UnknownNoise { .. } => "unknown_noise",
            Self::OnWord { .. } => "certificate_on_word",
        }
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Ring(e) => e.remedy().to_owned(),
            Self::Security(e) => e.remedy(),
            Self::Entropy(e) => e.remedy().to_owned(),
            Self::Wire(e) => e.remedy().to_owned(),
            Self::Params { .. } => "correct the literal, or let a plan choose the parameters".to_owned(),
            Self::SwitchPlan { .. } => {
                "take the plans that `LevelPlans` or a plan file has for these parameters, or keys made for this one"
                    .to_owned()
            }
            Self::Argument { .. } => "give the operation what it takes; its documentation has the ranges".to_owned(),
            Self::Uneven { .. } => {
                "generate a new one, with the system's randomness; no key that this version generates is refused"
                    .to_owned()
            }
            Self::AuxPrimes { need_bits, nearest, .. } => {
                let primes = format!("add auxiliary primes up to {need_bits} bits");
                match nearest {
                    Some((omega, omega2)) => format!("{primes}, or use {omega} and {omega2} digits"),
                    None => format!("{primes}; no other number of digits fits these"),
                }
            }
            Self::Level { needed, have, .. } => {
                format!("plan for {} more level(s), or do this operation earlier", needed.saturating_sub(*have))
            }
            Self::BorrowedPrimes { limbs, most, primes, .. } => match primes.saturating_sub(*limbs) {
                0 => format!("switch the modulus to at most {most} limbs first"),
                free => format!(
                    "use a plan that borrows at most {free} prime(s), with digits of as many, or switch the modulus to \
                     at most {most} limbs first"
                ),
            },
            Self::ParamsDiffer { left, right } => format!(
                "make both under one plan: the one whose parameters have the digest {left}, or the one with {right}"
            ),
            Self::KeysDiffer { .. } => "use ciphertexts and keys of one secret key, or re-key first".to_owned(),
            Self::MissingKey { source_name, .. } => {
                format!("have the owner of the secret key generate the key for {source_name}")
            }
            Self::TrimmedKey { have, .. } => format!(
                "switch the modulus down to a level whose primes are among {have:?}, with a plan whose P is too, or use a \
                 key for more levels"
            ),
            Self::Digits { nearest: Some(nearest), .. } => {
                format!("use the digits {:?} with P of the primes {:?}", nearest.0, nearest.1)
            }
            Self::Digits { .. } => "use digits that are whole stored ones, and a P of other primes".to_owned(),
            Self::KeyShape { have, have_special, .. } => format!(
                "use a plan for this key: {} digit(s), merged at will, with {have_special} special prime(s); or have the owner \
                 of the secret key make a key for the plan",
                have.len()
            ),
            Self::Components { expected: 2, .. } => "relinearise first".to_owned(),
            Self::Components { .. } => "use a ciphertext with the number of components named".to_owned(),
            Self::Noise { .. } => "switch the modulus before multiplying, plan for more levels or wider primes, \
                 or declare a smaller message bound"
                .to_owned(),
            Self::UnknownNoise { .. } => "exchange ciphertexts under an envelope key, or, if their maker is trusted, \
                 read them with the explicit word trust_certificate"
                .to_owned(),
            Self::OnWord { .. } => {
                "have the file's maker authenticate it under the envelope key, or encrypt and compute \
                 again where that key is"
                    .to_owned()
            }
        }
    }
}
