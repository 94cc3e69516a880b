//! Polynomials in Z_Q\[X\]/(X^N+1) in residue number system (RNS) form, and the backends that compute on them.
//!
//! This crate knows no cryptography. From the bottom up:
//! - [`ring`]: one ordered table of primes for a degree N, and [`IndexSet`]s into it;
//! - [`rns`]: what a base conversion or a scaling means, as constants computed from big integers;
//! - [`modulus`], [`prime`], [`ntt`], [`kernels`]: arithmetic modulo one prime, on one limb; [`isa`] picks the lanes;
//! - [`repeated`]: rows of slots that fewer words stand for;
//! - [`threads`]: how many threads the CPU computes on;
//! - [`sampler`]: random polynomials expanded from seeds; [`secrecy`]: marks of what is secret, for a check;
//! - [`backend`]: the operations on whole RNS polynomials that a device offers; [`cpu`] implements them; [`observed`]
//!   tells observers of them: [`counting`] counts them, [`ledger`] writes down how a device is asked;
//! - [`poly`]: a polynomial whose domain (coefficients or slots) and device are types.

// Files and random streams are little-endian words, read in place.
#[cfg(target_endian = "big")]
compile_error!("synchromesh needs a little-endian target");

pub mod backend;
pub mod counting;
pub mod cpu;
pub mod dry;
pub mod error;
pub mod isa;
pub mod kernels;
pub mod ledger;
pub mod modulus;
pub mod ntt;
pub mod observed;
pub mod poly;
pub mod prime;
pub mod repeated;
pub mod ring;
pub mod rns;
pub mod sampler;
pub mod scale;
pub mod secrecy;
mod slot_order;
pub mod threads;
pub mod transcript;

pub use backend::{Backend, BackendError, ConvertMode, View, ViewMut};
pub use counting::{Counting, Counts};
pub use cpu::Cpu;
pub use dry::Dry;
pub use error::Error;
pub use ledger::Ledger;
pub use poly::{Coeff, Domain, Ntt, Poly};
pub use ring::{IndexSet, Ring};
pub use threads::{Threads, ThreadsError};
