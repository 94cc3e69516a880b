//! What tries to break the library: each module counts what it tried and what it found, for `cargo xtask harden`.

pub mod corpus;
pub mod corruption;
pub mod fleet;
pub mod fuzz;
pub mod known;
pub mod memory;
pub mod mutation;
pub mod report;
pub mod schemes;
pub mod soak;
pub mod targets;
