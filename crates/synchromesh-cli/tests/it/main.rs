//! The integration tests of the command line, one program.

mod command;
mod crashes;
mod demo;
mod device;
mod files;
mod forgery;
mod keygen;
mod matmul;
mod parties;
mod plan_fields;
mod plan_options;
mod profile;
mod readme;
mod session;
mod shell;
mod triples;
