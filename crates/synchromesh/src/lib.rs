#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod batch;
pub mod bfv;
pub mod bgv;
pub mod bundle;
pub mod circuits;
pub mod ckks;
pub mod cost;
pub mod embedding;
pub mod error;
pub mod exact;
mod joint;
pub mod opening;
pub mod plain_modulus;
pub mod plan;
pub mod rotations;
pub mod scheme;
mod scheme_name;
pub mod search;
pub mod session;
pub mod shares;

pub use error::{Error, Result};
pub use synchromesh_rlwe as rlwe;

/// The example of the README at the root, compiled and run as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
