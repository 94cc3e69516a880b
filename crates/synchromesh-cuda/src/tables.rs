//! The constants of a ring on a device: primes, and twiddle factors in bit-reversed order.

use std::sync::Arc;

use synchromesh_ring::modulus::Modulus;
use synchromesh_ring::prime::root_of_unity;
use synchromesh_ring::{BackendError, Ring};

use crate::arguments::{Pair, Prime, RingTables, inverse_n};
use crate::device::{Device, DeviceError};
use crate::memory::{DeviceBuffer, Pool};

/// The constants, and where they are.
pub(crate) struct Tables<D: Device> {
    _primes: DeviceBuffer<D>,
    _forward: DeviceBuffer<D>,
    _inverse: DeviceBuffer<D>,
    addresses: RingTables,
}

impl<D: Device> Tables<D> {
    pub(crate) fn new(pool: &Arc<Pool<D>>, ring: &Ring) -> Result<Self, BackendError> {
        let (moduli, log_n) = (ring.moduli(), ring.log_n());
        let fast = pool.device().properties().fast_doubles;
        let constants: Vec<Prime> = moduli.iter().map(|modulus| Prime::new(modulus, log_n, fast)).collect();
        let mut primes = pool.take(constants.len() * size_of::<Prime>() / size_of::<u64>())?;
        primes.write(0, bytemuck::cast_slice(&constants))?;
        let words = 2 * ring.n();
        let (mut forward, mut inverse) = (pool.take(moduli.len() * words)?, pool.take(moduli.len() * words)?);
        for (i, (modulus, prime)) in moduli.iter().zip(&constants).enumerate() {
            let psi = root_of_unity(modulus, log_n).map_err(|e| BackendError::Unsupported {
                device: pool.device().properties().name.clone(),
                modulus: modulus.value(),
                log_n,
                reason: e.to_string(),
            })?;
            let write = |to: &mut DeviceBuffer<D>, base, scale| -> Result<(), DeviceError> {
                let in_doubles = prime.in_doubles != 0;
                let powers = powers(modulus, base, (log_n, in_doubles), scale);
                if !in_doubles {
                    return to.write(i * words, bytemuck::cast_slice(&powers));
                }
                let values: Vec<u64> = powers.iter().map(|power| power.value).collect();
                to.write(i * words, &values)
            };
            write(&mut forward, psi, 1)?;
            write(&mut inverse, modulus.pow(psi, modulus.value() - 2), inverse_n(modulus, log_n))?;
        }
        let addresses = RingTables {
            primes: primes.address(),
            forward: forward.address(),
            inverse: inverse.address(),
            log_n,
            unused: 0,
        };
        Ok(Self { _primes: primes, _forward: forward, _inverse: inverse, addresses })
    }

    pub(crate) const fn addresses(&self) -> &RingTables {
        &self.addresses
    }
}

/// base^rev(k) at k, rev on log_n bits; that at 1 times `scale`.
fn powers(modulus: &Modulus, base: u64, (log_n, in_doubles): (u32, bool), scale: u64) -> Vec<Pair> {
    let mut table = vec![Pair::default(); 1 << log_n];
    let step = modulus.scalar(base);
    let mut power = 1;
    for k in 0..1usize << log_n {
        let at = k.reverse_bits() >> (usize::BITS - log_n);
        let value = if at == 1 { modulus.mul(power, scale) } else { power };
        table[at] = Pair::of(value, modulus, in_doubles);
        power = modulus.mul_scalar(power, &step);
    }
    table
}
