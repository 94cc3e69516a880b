//! BFV's errors, measured in its phases.

use num_bigint::BigInt;
use num_integer::Integer;
use synchromesh::bfv::Bfv;
use synchromesh::exact::Plaintext;

use crate::oracle::{Ct, Fixture, Judged, centred, largest};

impl Judged for Bfv {
    fn measure(f: &Fixture<Self>, ct: &Ct<Self>, expected: &Plaintext) -> f64 {
        let (t, q) = (f.t(), f.modulus(ct.level()));
        let numerator = |(x, m): (BigInt, BigInt)| centred(&(&t * x - &q * m), &(&t * &q));
        largest(f.phase(ct).into_iter().zip(f.coefficients(expected)).map(numerator), &t)
    }

    fn phase_of(f: &Fixture<Self>, m: &BigInt, e: &BigInt) -> BigInt {
        let (t, q) = (f.t(), f.modulus(f.context.params().top_level()));
        (BigInt::from(2) * q * m + &t).div_floor(&(BigInt::from(2) * t)) + e
    }

    fn plain_header(_: &Fixture<Self>) {}
}
