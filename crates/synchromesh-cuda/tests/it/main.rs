//! The integration tests of synchromesh-cuda, one program: what they share is compiled once.

mod card;
mod driver;
mod emulator;
mod key_switch;
mod laws;
mod runs;
mod schemes;
