//! Oracles for tests: the ring Z\[X\]/(X^N+1), residue number systems and roundings over exact integers; and laws.
//!
//! The oracles are written as their definitions read, in big integers, and share no code with what they judge. A
//! polynomial is a slice of N coefficients, the constant one first; a polynomial in residue form is one vector of N
//! residues a prime. [`laws`] hold a backend to them. Functions panic on operands that do not fit together: an oracle that guesses is worth nothing.

pub mod integer;
pub mod laws;
pub mod poly;
pub mod random;
pub mod rns;
pub mod toy;
