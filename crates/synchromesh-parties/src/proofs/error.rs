//! Why a proof was not made or not believed.

/// Result of this module.
pub type Result<T> = std::result::Result<T, ProofError>;

/// Errors of proofs. Those that end in "refused" come from the verifier: the prover cheats, or its message was altered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProofError {
    /// Parameters that prove nothing, or not this.
    #[error("proof parameters: {rule}")]
    Parameters {
        /// The rule, with the numbers.
        rule: String,
    },
    /// The prover's own secrets are not what it is about to claim.
    #[error("there is no proof for this witness: {column} of statement {index} {reason}")]
    Witness {
        /// Which of the statements.
        index: usize,
        /// Which part of the witness.
        column: &'static str,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Statements, witnesses or ciphertexts do not fit together.
    #[error("{what}: {expected} expected, {got} given")]
    Count {
        /// What is counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// A ciphertext that is no statement of this proof.
    #[error("ciphertext {index} is not one this proof can be about: {reason}")]
    Statement {
        /// Which ciphertext.
        index: usize,
        /// Why.
        reason: &'static str,
    },
    /// A proof of another length.
    #[error("a proof of {got} bytes was refused: this one has {expected}")]
    Length {
        /// Bytes it must have.
        expected: usize,
        /// Bytes it has.
        got: usize,
    },
    /// A response is larger than any honest prover's.
    #[error("a proof was refused: response {row} has a coefficient of {column} beyond its bound of {bits} bits")]
    Oversized {
        /// Which response.
        row: usize,
        /// Which part of it.
        column: &'static str,
        /// Bits of the bound.
        bits: u64,
    },
    /// Bits that must be zero are not.
    #[error("a proof was refused: response {row} has bits set behind {column}")]
    Padding {
        /// Which response.
        row: usize,
        /// Which part of it.
        column: &'static str,
    },
    /// The responses do not belong to this challenge.
    #[error("a proof was refused: its challenge does not follow from this statement, session and prover")]
    Challenge,
    /// Rejection sampling found no response. It happens with probability 2^-256.
    #[error("no response was found in {attempts} attempts")]
    Attempts {
        /// Attempts made.
        attempts: u64,
    },
    /// Keys, ciphertexts or the device.
    #[error(transparent)]
    Rlwe(#[from] synchromesh::rlwe::Error),
    /// The scheme.
    #[error(transparent)]
    Scheme(#[from] synchromesh::Error),
}

impl From<synchromesh::rlwe::ring::Error> for ProofError {
    fn from(error: synchromesh::rlwe::ring::Error) -> Self {
        Self::Rlwe(error.into())
    }
}

impl ProofError {
    /// A stable name of the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Parameters { .. } => "proof_parameters",
            Self::Witness { .. } => "proof_witness",
            Self::Count { .. } => "proof_count",
            Self::Statement { .. } => "proof_statement",
            Self::Length { .. } => "proof_length",
            Self::Oversized { .. } => "proof_oversized",
            Self::Padding { .. } => "proof_padding",
            Self::Challenge => "proof_challenge",
            Self::Attempts { .. } => "proof_attempts",
            Self::Rlwe(_) => "proof_rlwe",
            Self::Scheme(_) => "proof_scheme",
        }
    }

    /// Whether the verifier refused what a prover sent, which no honest prover sends.
    #[must_use]
    pub const fn blames_prover(&self) -> bool {
        matches!(
            self,
            Self::Statement { .. }
                | Self::Length { .. }
                | Self::Oversized { .. }
                | Self::Padding { .. }
                | Self::Challenge
        )
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Parameters { .. } => "use the parameters this module names for the kind of statement".into(),
            Self::Witness { .. } => "encrypt and share with the functions of this module".into(),
            Self::Count { .. } => "give one witness for each statement".into(),
            Self::Statement { .. } => "encrypt under this key, at this level, with the functions of this module".into(),
            Self::Attempts { .. } => "the random generator is at fault: stop".into(),
            Self::Rlwe(error) => error.remedy(),
            Self::Scheme(error) => error.remedy(),
            _ => "abort: whoever sent this is to blame".into(),
        }
    }
}
