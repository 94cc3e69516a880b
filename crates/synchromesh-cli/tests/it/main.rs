//! The integration tests of the command line, one program.

mod command;
mod crashes;
mod demo;
mod device;
mod files;
mod keygen;
mod matmul;
mod profile;
mod session;
mod shell;
mod triples;
