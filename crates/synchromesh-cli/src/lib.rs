//! The parts of the `synchromesh` command: tables in and out, expressions, the demo's data and model, plots, output.

pub mod commands;
pub mod dataset;
pub mod demo;
pub mod error;
pub mod expression;
pub mod interrupt;
pub mod logistic;
pub mod matrices;
pub mod number;
pub mod output;
#[cfg(feature = "measure")]
pub mod page;
pub mod plot;
pub mod profile;
pub mod programs;
pub mod session;
pub mod table;
pub mod triples;

pub use synchromesh::bundle;
