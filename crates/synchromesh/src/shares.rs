//! Messages in shares among the parties who hold a key, as far as it depends on the scheme: E2S and S2E of ePrint 2020/304.
//!
//! A message is the sum of a public part and of one that each party has for itself. Each party shows c_1 s_i and what hides
//! it; c_0 and the sum of all that is a phase of the public part. The way back is an encryption of each party's own part under the
//! key of all, their sum, and the public part added.
//!
//! **BFV and BGV**: parts are polynomials modulo t, own ones uniform. What hides c_1 s_i is less the own part as the scheme
//! encodes it, and the noise of a decryption, twice as wide: it hides whether message and part wrap around t too.
//!
//! **CKKS**: parts are integer polynomials at the message's scale S, and add up to S z + e over the integers. An own part is a
//! Gaussian wide enough for the whole of S z + e, message and error, by the rule of a release: 2-norms are at most what the
//! certificate and the declared bound allow in a slot. It alone hides what is shown, so that a ciphertext that is made
//! fresh takes over its error and no more. If the parts may be put together for others to see, each gets the noise of
//! a decryption as well, which hides e then. At the top level a part is multiplied by the quotient of both scales, as a fraction of
//! 120 binary digits behind the point, and rounded: the result has the scale of a fresh ciphertext.

mod approximate;
mod exact;

use std::sync::Arc;

use synchromesh_rlwe::ring::sampler::Seed;
use synchromesh_rlwe::ring::{Coeff, Cpu, Ntt, Poly};
use synchromesh_rlwe::{self as rlwe, Noise};
use zeroize::Zeroizing;

use crate::error::Result;
use crate::opening::{Hiding, Opening};
use crate::scheme::Scheme;

/// A party's own part of a message, and what hides with it what that party shows.
pub type OwnPart<P> = (P, Zeroizing<Poly<Cpu, Coeff>>);

/// A scheme whose messages can be in shares.
pub trait Shares: Scheme {
    /// A part of a message, wiped when dropped.
    type Part: Clone + Send + Sync + 'static;

    /// As [`Scheme::opening`], for shares; `together` says whether they may be put together for others to see.
    ///
    /// # Errors
    /// As [`Scheme::opening`], and [`crate::Error::NoRoomForShares`] where the modulus has none for the parts of CKKS.
    fn sharing(
        context: &Self::Context<Cpu>,
        x: &Self::Ciphertext<Cpu>,
        hiding: &Hiding,
        together: bool,
    ) -> Result<Opening<Self::Ciphertext<Cpu>, Cpu>>;

    /// A party's own part, and what it adds to c_1 s_i before it shows that: both from a seed that nobody else knows.
    ///
    /// # Errors
    /// When the device fails.
    fn own_part(
        context: &Self::Context<Cpu>,
        opening: &Opening<Self::Ciphertext<Cpu>, Cpu>,
        seed: &Seed,
    ) -> Result<OwnPart<Self::Part>>;

    /// The public part, from c_0 and what all have shown.
    ///
    /// # Errors
    /// When the device fails.
    fn public_part(
        context: &Self::Context<Cpu>,
        opening: &Opening<Self::Ciphertext<Cpu>, Cpu>,
        phase: &Poly<Cpu, Coeff>,
    ) -> Result<Self::Part>;

    /// All of a public part, for parties to compare.
    fn absorb(part: &Self::Part, hasher: &mut blake3::Hasher);

    /// A part as a fresh ciphertext has it, at the top level, and the error that brings.
    ///
    /// # Errors
    /// For a part of other parameters, or when the device fails.
    fn fresh_part(context: &Self::Context<Cpu>, part: &Self::Part) -> Result<(Zeroizing<Poly<Cpu, Coeff>>, Noise)>;

    /// The ciphertext of the whole message: the sum of the encryptions of all parties' own parts, so many, with its error,
    /// and the public part.
    ///
    /// # Errors
    /// [`rlwe::Error::Noise`] if the certificate leaves no room.
    fn whole(
        context: &Arc<Self::Context<Cpu>>,
        sum: rlwe::Ciphertext<Cpu, Ntt>,
        public: &Self::Part,
        parties: usize,
    ) -> Result<Self::Ciphertext<Cpu>>;
}
