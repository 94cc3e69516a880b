//! CKKS: approximate arithmetic on vectors of N/2 complex (or real) numbers, with a certificate on every ciphertext.
//!
//! A message z is encoded as the integer polynomial m nearest to S z in the canonical embedding, where a slot is a value
//! m(zeta^(3^i)) and products act slot by slot. A ciphertext satisfies c_0 + c_1 s = S z + e modulo Q_l; e is small
//! against S, and bounded by the certificate. Multiplying gives S^2 z z' + e'', and dividing by the primes of the level
//! brings the scale back: S_(l-1) = S_l^2 / D_l, an exact number that is compared exactly. X -> X^(3^k) rotates the slots
//! by k, X -> X^(2N-1) conjugates them. Results are approximate: [`Context::error_bound`] says how far they may be off.
//!
//! Decrypted values must not be published as they are, see [`Plaintext`]; [`Context::publish`] is for that.

mod beside;
pub mod bootstrap;
mod ciphertext;
mod context;
mod decode;
mod evaluator;
mod lineage;
mod noise;
mod params;
mod plaintext;
mod publish;
mod scale;
mod shares;
mod wire;

pub use crate::embedding::{self, Complex64};
pub use crate::rotations::Rotations;
pub use ciphertext::{Ciphertext, Header};
pub use context::Context;
pub use evaluator::Evaluator;
pub(crate) use evaluator::recording;
pub use lineage::Lineage;
pub use params::{Mode, Params, ParamsLiteral, Primes};
pub use plaintext::Plaintext;
pub use publish::{LEAST_SECURITY, Published, Release};
pub use scale::{Scale, ScaleLiteral};
pub use shares::Part;

/// The scheme, for code that is generic over BFV, BGV and CKKS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ckks {}
