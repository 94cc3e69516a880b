//! What tries to break the library: each module counts what it tried and what it found, for `cargo xtask harden`.

pub mod report;
pub mod schemes;
pub mod soak;
