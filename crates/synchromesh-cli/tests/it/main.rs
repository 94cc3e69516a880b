//! The integration tests of the command line, one program.

mod command;
mod demo;
mod device;
mod matmul;
mod profile;
mod session;
mod shell;
mod triples;
