//! The integration tests of synchromesh-parties, one program: what they share is compiled once.

mod common;
mod frames;
mod joint;
mod network;
mod proofs;
mod proofs_keys;
mod tls;
