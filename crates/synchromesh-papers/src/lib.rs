//! The papers that this library builds on, measured again: what only a comparison with them needs.

#![forbid(unsafe_code)]

pub mod look_ahead;
pub mod reproduce;
pub mod revisiting;
