//! What a party makes of what the protocol has it compute and send: nothing else, if it is honest. Cheaters of tests do.

use synchromesh::plain_modulus::U256;
use synchromesh::rlwe::ring::Cpu;

use super::check::Candidate;
use super::circuit::Products;
use super::encryption::Content;
use crate::error::Result;
use crate::field::Field;
use crate::mac::MacKeyShare;
use crate::matrix::Matrix;
use crate::session::Session;
use crate::share::Shared;

/// What is returned, or left where it is, is what goes on; the conduct of [`Honest`] is what each method does by itself.
pub(crate) trait Conduct<T> {
    /// The coefficients in which the share of the MAC key is encrypted.
    fn alpha(&self, _coefficients: &mut [U256]) {}

    /// What encryptions are proven to be of.
    fn content(&self, honest: Content) -> Content {
        honest
    }

    /// So many encryptions with their proofs.
    fn encryptions(&self, _count: usize, _message: &mut [u8]) {}

    /// The shares of A and B that are kept.
    fn inputs(&self, _own: &mut [(Vec<Matrix>, Vec<Matrix>)], _field: &Field) {}

    /// Shares of decryptions, of so many bytes each.
    fn decryptions(&self, _message: &mut [u8], _each: usize, _of: &Products<Cpu>) {}

    /// Triples that are about to be checked.
    fn candidates(&self, _made: &mut [Candidate], _field: &Field) {}

    /// The shares of single numbers that are kept.
    fn numbers(&self, _own: &mut [Matrix], _field: &Field) {}

    /// Rows of single numbers that are about to be checked.
    fn tuples(&self, _rows: &mut [Shared], _field: &Field) {}

    /// What it does before the check.
    fn before_check(&self, _session: &mut Session<T>, _key: &MacKeyShare, _candidates: &[Candidate]) -> Result<()> {
        Ok(())
    }
}

/// Does what the protocol says.
pub(crate) struct Honest;

impl<T> Conduct<T> for Honest {}
