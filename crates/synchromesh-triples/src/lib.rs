#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod codec;
#[cfg(test)]
mod constant_time_tests;
pub mod dealer;
pub mod demand;
pub mod error;
pub mod field;
pub mod generation;
pub mod handout;
pub mod journal;
pub mod mac;
pub mod matrix;
pub mod mp_spdz;
pub mod online;
pub mod opening;
pub mod party;
mod roots;
pub mod session;
pub mod share;
pub mod tuples;

pub use error::{Error, Result};
pub use field::{Element, Field};
pub use mac::MacKeyShare;
pub use matrix::Matrix;
pub use share::{MatrixTriple, Shape, Shared};
pub use synchromesh_parties as parties;
