//! What can go wrong between values mod t and plaintext polynomials.

/// Why values could not be encoded or a polynomial not decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// log2 N is outside the supported range.
    #[error("log2 of the ring degree is {log_n}, outside {min}..={max}")]
    LogNOutOfRange {
        /// log2 N given.
        log_n: u32,
        /// Smallest supported.
        min: u32,
        /// Largest supported.
        max: u32,
    },
    /// t is composite, or not 1 mod 2N.
    #[error("t = {t} ({}) gives no slots at N = 2^{log_n}: slots need a prime t = 1 mod 2N",
        if *prime { "prime" } else { "composite" })]
    NoSlots {
        /// t in decimal.
        t: String,
        /// log2 N.
        log_n: u32,
        /// Whether t is prime.
        prime: bool,
    },
    /// More values than the polynomial has places.
    #[error("{given} values do not fit into {capacity} places")]
    TooManyValues {
        /// Values given.
        given: usize,
        /// Places there are.
        capacity: usize,
    },
    /// The polynomial belongs to another t.
    #[error("the polynomial is modulo {found}, the encoder is modulo {expected}")]
    ModulusMismatch {
        /// The encoder's t in decimal.
        expected: String,
        /// The polynomial's t in decimal.
        found: String,
    },
    /// The polynomial has another number of coefficients.
    #[error("the polynomial has {found} coefficients, the encoder's ring degree is {expected}")]
    LengthMismatch {
        /// The encoder's N.
        expected: usize,
        /// Coefficients found.
        found: usize,
    },
    /// The number of coefficients is no power of two.
    #[error("{length} coefficients: not a power of two")]
    LengthNotDegree {
        /// Coefficients given.
        length: usize,
    },
    /// Residues are stored as words where t needs limbs, or the reverse.
    #[error("residues are stored in the form that a modulus of {bits} bits does not use")]
    WrongStorage {
        /// Bits of t.
        bits: u32,
    },
    /// Some residue is t or more.
    #[error("a residue is not below its modulus of {bits} bits")]
    ResidueOutOfRange {
        /// Bits of t.
        bits: u32,
    },
    /// Values mod t are asked for in a type they may not fit.
    #[error("values modulo t of {bits} bits do not fit {max}-bit integers")]
    DoesNotFit {
        /// Bits of t.
        bits: u32,
        /// Bits of the type asked for.
        max: u32,
    },
}

impl BatchError {
    /// A stable name of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::LogNOutOfRange { .. } => "log_n_out_of_range",
            Self::NoSlots { .. } => "no_slots",
            Self::TooManyValues { .. } => "too_many_values",
            Self::ModulusMismatch { .. } => "plain_modulus_mismatch",
            Self::LengthMismatch { .. } => "length_mismatch",
            Self::LengthNotDegree { .. } => "length_not_degree",
            Self::WrongStorage { .. } => "wrong_residue_storage",
            Self::ResidueOutOfRange { .. } => "residue_out_of_range",
            Self::DoesNotFit { .. } => "value_does_not_fit",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::LogNOutOfRange { min, max, .. } => format!("choose a ring degree from 2^{min} to 2^{max}"),
            Self::NoSlots { log_n, .. } => format!(
                "take t from PlainModulus::next_slot_prime(bits, {log_n}), or use coefficient encoding, which any t has"
            ),
            Self::TooManyValues { capacity, .. } => {
                format!("split the values into polynomials of at most {capacity}, or raise N")
            }
            Self::ModulusMismatch { .. } => "use an encoder made with the polynomial's plaintext modulus".into(),
            Self::LengthMismatch { found, .. } => format!("use an encoder made for N = {found}"),
            Self::LengthNotDegree { .. } => "give N coefficients, zeros included".into(),
            Self::WrongStorage { .. } => "store residues as words below 2^62 and as four limbs above".into(),
            Self::ResidueOutOfRange { .. } => "reduce the residues modulo t first".into(),
            Self::DoesNotFit { .. } => "decode to big integers".into(),
        }
    }
}
