//! Keys that nobody holds alone: made by n parties, of whom all, or any t, decrypt together (ePrint 2020/304).
//!
//! s = s_1 + .. + s_n, each s_i ternary and drawn by one party. [`generate`] makes the public key, the relinearisation key and
//! keys for rotations of it, which are ordinary keys: whoever encrypts or computes cannot tell. Certificates hold for them
//! under parameters `with_joint` ([`synchromesh::rlwe::noise::SharedKey`], or [`synchromesh::rlwe::noise::KeyBound`]). [`Quorum`] is those who have met to decrypt.
//!
//! Parties follow the protocol here, and try to learn more than they should: up to n - 1 of them together, or t - 1. A
//! frame that no honest party sends is blamed, and so is one who tells different things to different parties; a share of a key
//! or of a decryption that is wrong is not noticed, and makes results wrong. **With proofs**, a value of the plan, both
//! are proven: up to n - 1 parties, or t - 1, may do anything then, but for what is made fresh or in shares.
//!
//! **n of n** or **t of n** is a value of the [`Plan`]. For t of n each party shares its s_i by Shamir's scheme over R_Q, in
//! polynomials with uniform coefficients, at the points 1 .. n: their differences are units, being smaller than any prime. Those who
//! meet know each other before they show anything, so that each multiplies its share by its Lagrange factor first and
//! hides the product with noise after that: factors of any size cost no noise. All that follows is n of n among those who met (ePrint 2022/780).
//! With proofs t of n is a sum of more secrets, each known to n + 1 - t parties (`replicated`): what is proven of a secret is short, and
//! points of polynomials are not.

mod codec;
mod decrypt;
mod generate;
mod noise;
mod plan;
mod points;
mod proven;
mod quorum;
mod refresh;
mod replicated;
mod reshare;
mod rows;
mod share;

pub use decrypt::Opened;
pub use generate::{JointKeys, generate};
pub use plan::{Plan, Wanted};
pub use quorum::Quorum;
pub use refresh::MessageShare;
pub use reshare::{Holding, Taken, reshare};
pub use share::KeyShare;

#[cfg(test)]
mod adversary_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod proven_tests;
#[cfg(test)]
mod refresh_tests;
#[cfg(test)]
mod reshare_tests;
#[cfg(test)]
mod test_kit;
#[cfg(test)]
mod tests;
