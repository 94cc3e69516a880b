//! Parameters by looking ahead (ePrint 2023/593, section 3.3 and Algorithm 1): a circuit in parts between which moduli may
//! be switched; the numbers of ciphertext and special primes, and how many are dropped at each place, follow from the
//! noise.
//!
//! One more special prime is taken, or one more prime dropped, where that makes the error a prime shorter at the end of
//! the look-ahead; a ciphertext prime is added where the error does not decrypt. Two loops stand around it: primes become
//! narrower while their number stays, and the degree grows until it is secure.
//!
//! Algorithm 1 as printed compares errors of different parts; the authors' program compares those of the same part with
//! and without the change, which is what this does. A place where no switch pays gets none: in the paper's circuit the
//! first.

use synchromesh_rlwe::Security;
use synchromesh_rlwe::noise::log2_add;

use synchromesh::{Error, Result};

/// Rounds of an algorithm that has come to no end.
const MOST_ROUNDS: usize = 10_000;

/// The primes at a place of the circuit: how many there are, and of how many bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moduli {
    /// log2 of the degree n.
    pub log_n: u32,
    /// Ciphertext primes that are left.
    pub q: usize,
    /// Special primes.
    pub p: usize,
    /// Digits of a key switch.
    pub omega: usize,
    /// Bits of each prime.
    pub bits: u32,
}

/// Bounds by the canonical norm with D = 6 for secrets of variance 1/2 and errors of variance 21/2 (ePrint 2023/593,
/// section 4.3), as log2; the plaintext modulus t as log2.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Canonical {
    /// log2 t.
    pub log2_t: f64,
}

impl Canonical {
    /// Of a fresh encryption: t sqrt(3n (126n + 127)).
    #[must_use]
    pub fn encryption(self, log_n: u32) -> f64 {
        let n = f64::from(log_n).exp2();
        self.log2_t + (3.0 * n * (126.0 * n + 127.0)).sqrt().log2()
    }

    /// Of a product with a constant: the bound times t sqrt(3n).
    #[must_use]
    pub fn constant(self, bound: f64, log_n: u32) -> f64 {
        bound + self.log2_t + (3.0 * f64::from(log_n).exp2()).sqrt().log2()
    }

    /// What rounding adds: (t/2) sqrt(3n (2n + 4)).
    fn rounding(self, log_n: u32) -> f64 {
        let n = f64::from(log_n).exp2();
        self.log2_t - 1.0 + (3.0 * n * (2.0 * n + 4.0)).sqrt().log2()
    }

    /// After `drop` primes are dropped one by one, where the error leaves room for it; otherwise as it was.
    #[must_use]
    pub fn mod_switch(self, bound: f64, moduli: &Moduli, drop: usize) -> f64 {
        let (bits, rounding) = (f64::from(moduli.bits), self.rounding(moduli.log_n));
        let mut switched = bound;
        for dropped in 0..drop {
            let room = moduli.q.saturating_sub(dropped) as f64 * bits - 1.0;
            if log2_add(switched, bits + rounding) >= room {
                return bound;
            }
            switched = log2_add(switched - bits, rounding);
        }
        switched
    }

    /// After a key switch: q_max t n sqrt(63 c/2) with q_max the largest digit and c the number of primes and digits,
    /// divided by P and rounded.
    #[must_use]
    pub fn key_switch(self, bound: f64, moduli: &Moduli) -> f64 {
        let bits = f64::from(moduli.bits);
        let digit = moduli.q.div_ceil(moduli.omega.max(1)) as f64 * bits;
        let gadget =
            |count: usize| digit + self.log2_t + f64::from(moduli.log_n) + (63.0 * count as f64 / 2.0).sqrt().log2();
        let without = log2_add(bound, gadget(moduli.q + moduli.omega));
        if moduli.p == 0 {
            return without;
        }
        let (special, rounding) = (moduli.p as f64, self.rounding(moduli.log_n) + (moduli.p as f64).log2() / 2.0);
        let inner = gadget(moduli.q + moduli.p + moduli.omega - 1);
        let room = (moduli.q as f64 + special) * bits - 1.0;
        if log2_add(log2_add(bound, inner), special * bits + rounding) >= room {
            return without;
        }
        log2_add(bound, log2_add(inner - special * bits, rounding))
    }

    /// With flooding by t 2^bits.
    #[must_use]
    pub fn flood(self, bound: f64, bits: f64) -> f64 {
        log2_add(bound, self.log2_t + bits)
    }
}

/// A circuit in parts, before each of which primes may be dropped.
pub trait Parts {
    /// How many parts there are.
    fn count(&self) -> usize;
    /// log2 of the errors that go into the first part.
    fn inputs(&self, log_n: u32) -> Vec<f64>;
    /// log2 of the errors that go out of a part when `drop` primes are dropped at its place.
    fn run(&self, part: usize, inputs: &[f64], moduli: &Moduli, drop: usize) -> Vec<f64>;
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookAhead {
    /// Digits of a key switch.
    pub omega: usize,
    /// kappa: parts ahead.
    pub parts: usize,
    /// Widest prime of the machine.
    pub widest: u32,
    /// Narrowest prime that is tried.
    pub narrowest: u32,
    /// Required security.
    pub security: Security,
}

/// Numbers of primes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Looked {
    /// log2 n.
    pub log_n: u32,
    /// Bits of each prime.
    pub bits: u32,
    /// Ciphertext primes.
    pub q: usize,
    /// Special primes.
    pub p: usize,
    /// Primes dropped at each place.
    pub switches: Vec<usize>,
}

impl LookAhead {
    /// Widths and degrees around [`Self::core`]: the narrowest primes of which there are no more than of the widest, then
    /// the first degree from 2^11 on that is secure.
    ///
    /// # Errors
    /// [`Error::Request`] when no degree up to 2^17 is secure, or the algorithm comes to no end.
    pub fn search(&self, circuit: &impl Parts) -> Result<Looked> {
        let mut needed = 0;
        for log_n in 11..=17 {
            let mut best = self.core(circuit, log_n, self.widest)?;
            for bits in (self.narrowest..self.widest).rev() {
                let narrower = self.core(circuit, log_n, bits)?;
                if narrower.q + narrower.p > best.q + best.p {
                    break;
                }
                best = narrower;
            }
            needed = (best.q + best.p) as u32 * best.bits;
            if needed <= self.security.max_log_qp(log_n) {
                return Ok(best);
            }
        }
        Err(Error::Request {
            rule: format!("log QP = {needed} at N = 2^17, which allows {}", self.security.max_log_qp(17)),
        })
    }

    /// Algorithm 1 at a degree and a width.
    ///
    /// # Errors
    /// [`Error::Request`] when it comes to no end: an error that grows with every prime.
    pub fn core(&self, circuit: &impl Parts, log_n: u32, bits: u32) -> Result<Looked> {
        let mut found = Looked { log_n, bits, q: 1, p: 0, switches: vec![0; circuit.count()] };
        let mut depth = 0;
        'rounds: for _ in 0..MOST_ROUNDS {
            if depth == circuit.count() {
                return Ok(found);
            }
            let mut errors = circuit.inputs(log_n);
            for part in 0..=depth {
                let now = self.ahead(circuit, &found, part, &errors);
                let with_special = Looked { p: found.p + 1, ..found.clone() };
                if self.primes(&self.ahead(circuit, &with_special, part, &errors), bits) < self.primes(&now, bits) {
                    found = with_special;
                    continue 'rounds;
                }
                let mut dropping = found.clone();
                dropping.switches[part] += 1;
                let after = self.primes(&self.ahead(circuit, &dropping, part, &errors), bits);
                if after + found.switches[part] < self.primes(&now, bits) {
                    found = dropping;
                    continue 'rounds;
                }
                errors = circuit.run(part, &errors, &self.moduli(&found, part), found.switches[part]);
                let left = found.q.saturating_sub(found.switches[..=part].iter().sum());
                if worst(&errors) >= left as f64 * f64::from(bits) - 1.0 {
                    found.q += 1;
                    continue 'rounds;
                }
            }
            depth += 1;
        }
        Err(Error::Request {
            rule: format!("{MOST_ROUNDS} rounds of look-ahead at N = 2^{log_n} found no end: {found:?}"),
        })
    }

    /// Errors at the end of the look-ahead from a part on.
    fn ahead(&self, circuit: &impl Parts, at: &Looked, part: usize, errors: &[f64]) -> Vec<f64> {
        let last = (part + self.parts.max(1)).min(circuit.count());
        let step = |errors: Vec<f64>, part| circuit.run(part, &errors, &self.moduli(at, part), at.switches[part]);
        (part..last).fold(errors.to_vec(), step)
    }

    /// The primes that a part begins with.
    fn moduli(&self, at: &Looked, part: usize) -> Moduli {
        let dropped: usize = at.switches[..part].iter().sum();
        let Looked { log_n, bits, p, q, .. } = *at;
        Moduli { log_n, q: q.saturating_sub(dropped), p, omega: self.omega, bits }
    }

    /// Primes that the largest error fills.
    fn primes(&self, errors: &[f64], bits: u32) -> usize {
        (worst(errors) / f64::from(bits)).ceil().max(0.0) as usize
    }
}

fn worst(errors: &[f64]) -> f64 {
    errors.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Products of d x d matrices with MACs from the shares of several parties (ePrint 2023/593, Figures 2, 3, 4 and 6): the
/// shares are added; the matrices rotated, masked and multiplied, and the products summed; the sum is switched to
/// two components, multiplied with the MAC key and flooded. Primes may be dropped after the first sum, before each
/// product, and after the sum of the products.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixTriple {
    /// The noise.
    pub model: Canonical,
    /// Parties.
    pub parties: usize,
    /// d.
    pub dimension: usize,
    /// Flooding by t 2^flood.
    pub flood: f64,
}

impl Parts for MatrixTriple {
    fn count(&self) -> usize {
        3
    }

    fn inputs(&self, log_n: u32) -> Vec<f64> {
        vec![self.model.encryption(log_n)]
    }

    fn run(&self, part: usize, inputs: &[f64], moduli: &Moduli, drop: usize) -> Vec<f64> {
        let (model, log_n) = (self.model, moduli.log_n);
        match (part, inputs) {
            (0, &[share]) => vec![model.mod_switch(share + (self.parties as f64).log2(), moduli, drop)],
            (1, &[sum]) => {
                let mac = model.flood(sum + sum, self.flood);
                // Rotated again and again by the same two keys.
                let (mut first, mut second, mut other) = (sum, model.key_switch(sum, moduli), sum);
                let mut product = second + other;
                for _ in 1..self.dimension {
                    [first, second, other] = [first, second, other].map(|x| model.key_switch(x, moduli));
                    let masked = log2_add(model.constant(first, log_n), model.constant(second, log_n));
                    let left = model.mod_switch(masked, moduli, drop);
                    product = log2_add(product, left + model.mod_switch(other, moduli, drop));
                }
                vec![sum, mac, product]
            }
            (2, &[sum, mac, product]) => {
                let product = model.mod_switch(model.key_switch(product, moduli), moduli, drop);
                vec![mac, model.flood(product, self.flood), model.flood(product + sum, self.flood)]
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn triple() -> MatrixTriple {
        MatrixTriple { model: Canonical { log2_t: 128.0 }, parties: 5, dimension: 128, flood: 80.0 }
    }

    fn request() -> LookAhead {
        LookAhead { omega: 3, parts: 1, widest: 60, narrowest: 30, security: Security::Bits128 }
    }

    #[test]
    fn the_papers_table_comes_out_with_its_useless_first_switch() {
        let found = request().search(&triple()).unwrap();
        assert_eq!(found, Looked { log_n: 15, bits: 60, q: 10, p: 4, switches: vec![0, 1, 1] });
    }

    #[test]
    fn what_is_found_decrypts_and_one_prime_less_does_not() {
        for (dimension, parties, bits) in [(128, 5, 60), (64, 2, 50), (16, 3, 35)] {
            let circuit = MatrixTriple { dimension, parties, ..triple() };
            let found = request().core(&circuit, 15, bits).unwrap();
            let decrypts = |found: &Looked| {
                let mut errors = circuit.inputs(15);
                (0..3).all(|part| {
                    let drop = found.switches[part];
                    errors = circuit.run(part, &errors, &request().moduli(found, part), drop);
                    let left = found.q - found.switches[..=part].iter().sum::<usize>();
                    worst(&errors) < left as f64 * f64::from(bits) - 1.0
                })
            };
            assert!(decrypts(&found), "{found:?}");
            assert!(!decrypts(&Looked { q: found.q - 1, ..found.clone() }), "{found:?}");
        }
    }

    #[test]
    fn impossible_circuits_are_refused() {
        let deep = MatrixTriple { model: Canonical { log2_t: 2000.0 }, ..triple() };
        assert_eq!(request().search(&deep).unwrap_err().kind(), "request");
    }
}
