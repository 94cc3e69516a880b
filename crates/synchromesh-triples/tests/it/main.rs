//! The integration tests of synchromesh-triples, one program: what they share is compiled once.

mod common;
mod files;
mod handout;
mod online;
