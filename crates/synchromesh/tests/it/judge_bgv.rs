//! BGV's errors, measured in its phases.

use num_bigint::BigInt;
use num_traits::Zero;
use synchromesh::bgv::{Bgv, Factor};
use synchromesh::exact::Plaintext;

use crate::oracle::{Ct, Fixture, Judged, centred, largest};

impl Judged for Bgv {
    fn measure(f: &Fixture<Self>, ct: &Ct<Self>, expected: &Plaintext) -> f64 {
        let t = f.t();
        let factor = BigInt::from(ct.header().value().clone());
        let message = f.coefficients(expected);
        let error = |(x, m): (BigInt, BigInt)| {
            let mut m = centred(&(m * &factor), &t);
            // For even t, +t/2 and -t/2 are the same message; the certificate covers the nearer one.
            if &m + &m == t && x < BigInt::zero() {
                m -= &t;
            }
            let difference = x - m;
            assert!((&difference % &t).is_zero(), "the phase is no multiple of t off the message");
            difference / &t
        };
        largest(f.phase(ct).into_iter().zip(message).map(error), &BigInt::from(1))
    }

    fn phase_of(f: &Fixture<Self>, m: &BigInt, e: &BigInt) -> BigInt {
        m + f.t() * e
    }

    fn plain_header(f: &Fixture<Self>) -> Factor {
        Factor::new(1u32.into(), f.context.params().t().value())
    }
}
