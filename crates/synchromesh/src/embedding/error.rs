//! What can go wrong between complex vectors and integer polynomials.

/// Why values could not be encoded or coefficients not decoded. No variant carries a value: they may be secret.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingError {
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
    /// More values than slots.
    #[error("{given} values do not fit into {slots} slots")]
    TooManyValues {
        /// Values given.
        given: usize,
        /// Slots there are, N/2.
        slots: usize,
    },
    /// An input is NaN or infinite.
    #[error("input {index} is not a finite number")]
    NotFinite {
        /// Its index, from 0.
        index: usize,
    },
    /// An input exceeds the declared bound.
    #[error("input {index} is larger in absolute value than the declared bound {bound}")]
    AboveBound {
        /// Its index, from 0.
        index: usize,
        /// The declared bound.
        bound: f64,
    },
    /// The declared bound is no usable number.
    #[error("the declared bound {bound} is outside 2^-{log2_limit} to 2^{log2_limit}")]
    BoundOutOfRange {
        /// The bound given.
        bound: f64,
        /// Largest |log2| of a bound.
        log2_limit: u32,
    },
    /// The scale is no m 2^e with 1 <= m < 2 and e in range.
    #[error("the scale {mantissa} * 2^{exponent} needs a mantissa in [1, 2) and an exponent in -{limit}..={limit}")]
    ScaleOutOfRange {
        /// Mantissa given.
        mantissa: f64,
        /// Exponent given.
        exponent: i64,
        /// Largest |exponent|.
        limit: i32,
    },
    /// A scaled coefficient does not fit.
    #[error("coefficient {index} reaches 2^{log2_limit} at the scale of about 2^{log2_scale}")]
    CoefficientTooLarge {
        /// Its index, from 0.
        index: usize,
        /// log2 of the least size refused.
        log2_limit: u32,
        /// Exponent of the scale.
        log2_scale: i32,
    },
    /// Another number of coefficients than N.
    #[error("{found} coefficients where the ring degree is {expected}")]
    LengthMismatch {
        /// N.
        expected: usize,
        /// Coefficients given.
        found: usize,
    },
}

impl EmbeddingError {
    /// A stable name of the kind of error.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::LogNOutOfRange { .. } => "log_n_out_of_range",
            Self::TooManyValues { .. } => "too_many_values",
            Self::NotFinite { .. } => "not_finite",
            Self::AboveBound { .. } => "above_declared_bound",
            Self::BoundOutOfRange { .. } => "bound_out_of_range",
            Self::ScaleOutOfRange { .. } => "scale_out_of_range",
            Self::CoefficientTooLarge { .. } => "coefficient_too_large",
            Self::LengthMismatch { .. } => "length_mismatch",
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            Self::LogNOutOfRange { min, max, .. } => format!("choose a ring degree from 2^{min} to 2^{max}"),
            Self::TooManyValues { slots, .. } => {
                format!("split the values into vectors of at most {slots}, or raise N")
            }
            Self::NotFinite { .. } => "remove or replace NaN and infinite inputs".into(),
            Self::AboveBound { .. } => "declare a larger bound, or divide the inputs by a common factor".into(),
            Self::BoundOutOfRange { .. } => "declare a positive finite bound; 1 is usual".into(),
            Self::ScaleOutOfRange { .. } => "use a scale such as 2^40".into(),
            Self::CoefficientTooLarge { .. } => "use a smaller scale, or divide the inputs by a common factor".into(),
            Self::LengthMismatch { expected, .. } => format!("give {expected} coefficients, zeros included"),
        }
    }
}
