//! The integration tests of synchromesh-ring, one program: what they share is compiled once.

mod backend;
mod fused;
mod kernels;
mod ledger;
