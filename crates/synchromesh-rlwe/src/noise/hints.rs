//! How large a secret polynomial can be of which a proof sends Gaussian responses: the masks hide it, and what is hidden bounds what
//! a cheater can prove. `synchromesh_parties::proofs` sends them, and certificates of keys with proven shares rest on it.

/// Gaussian responses are at most so many standard deviations; one in 2^75 coefficients is beyond.
pub const TAIL: u32 = 10;

/// Gaussian masks are at least so many times as wide as what they hide.
const HIDING: f64 = 8.0;

/// Responses of a proof of 128 bits whose challenges are 0 and 1.
const RESPONSES: usize = 128;

/// log2 of the standard deviation of masks that hide a polynomial, of coefficients of this deviation, in so many responses.
#[must_use]
pub fn log2_mask(responses: usize, deviation: f64) -> u64 {
    (HIDING * (responses as f64).sqrt() * deviation).log2().ceil().max(0.0) as u64
}

/// A bound on the coefficients of a polynomial of which there is a proof of 128 bits; an honest one is within `bound`.
pub(crate) fn proven(bound: f64, deviation: f64) -> f64 {
    2.0 * (f64::from(TAIL) * (log2_mask(RESPONSES, deviation) as f64).exp2() + bound)
}

/// log2 of how many deviations a Gaussian is within whose size is proven; one coefficient in 2^185 is beyond.
pub const LOG2_WITHIN: u32 = 4;

/// log2 of a bound on what is proven to be a Gaussian of width 2^`bits`.
#[must_use]
pub fn log2_proven(bits: f64) -> f64 {
    proven((bits + f64::from(LOG2_WITHIN)).exp2(), bits.exp2()).log2()
}

/// log2 of by how much wider such a Gaussian has to be for what the proof hints at: 64/65 of its variance stay hidden.
#[must_use]
pub fn log2_hinted() -> f64 {
    (65.0f64 / 64.0).log2() / 2.0
}
