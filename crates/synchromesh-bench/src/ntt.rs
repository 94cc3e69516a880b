//! The number-theoretic transform of one limb, hot in cache.

use serde::Serialize;
use synchromesh_ring::isa::Isa;
use synchromesh_ring::modulus::Modulus;
use synchromesh_ring::ntt::NttTable;
use synchromesh_ring::prime::ntt_primes;

use crate::Error;
use crate::timing::median_seconds;

/// What `bench ntt` reports.
#[derive(Debug, Clone, Serialize)]
pub struct NttReport {
    /// log2 of the degree.
    pub log_n: u32,
    /// Width of the prime.
    pub bits: u32,
    /// Instruction set of the kernel that ran.
    pub isa: &'static str,
    /// Nanoseconds of a forward transform.
    pub forward_ns: f64,
    /// Nanoseconds of an inverse transform, 1/N included.
    pub inverse_ns: f64,
}

/// Times both directions at N = 2^log_n with the largest prime of `bits` bits.
///
/// # Errors
/// [`Error::Prime`] when there is no such prime, [`Error::Request`] when the table cannot be built.
pub fn measure(log_n: u32, bits: u32) -> Result<NttReport, Error> {
    let q = ntt_primes(bits, log_n, 1)?[0];
    let request = |reason: String| Error::Request { reason };
    let modulus = Modulus::new(q).map_err(|e| request(e.to_string()))?;
    let isa = Isa::detect().map_err(|e| request(e.to_string()))?;
    let table = NttTable::new(modulus, log_n, isa).map_err(|e| request(e.to_string()))?;
    let mut x: Vec<u64> = (0..1u64 << log_n).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % q).collect();
    let repeat = 1usize << 18u32.saturating_sub(log_n);
    let mut time = |run: &dyn Fn(&mut [u64])| {
        median_seconds(|| {
            for _ in 0..repeat {
                run(std::hint::black_box(&mut x));
            }
            Ok::<(), Error>(())
        })
    };
    let forward = time(&|x| table.forward(x))?;
    let inverse = time(&|x| table.inverse(x))?;
    let ns = |s: f64| s / repeat as f64 * 1e9;
    Ok(NttReport { log_n, bits, isa: table.isa().name(), forward_ns: ns(forward), inverse_ns: ns(inverse) })
}
