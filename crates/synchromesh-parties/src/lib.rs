#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod error;
pub mod hosts;
pub mod joint;
pub mod journal;
pub mod party;
pub mod polynomials;
pub mod proofs;
pub mod proven;
pub mod seeds;
pub mod session;
#[cfg(any(test, feature = "adversary"))]
pub mod tampering;
pub mod tls;
pub mod transport;

pub use error::{Blame, Error, Result};
