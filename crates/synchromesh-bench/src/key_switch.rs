//! One key switch: relinearisation or rotation, any method and domains, folded or not, with its counted cost.

mod methods;
mod swap;
mod timed;

use std::sync::Arc;

use serde::Serialize;
use synchromesh::cost::{self, OneSwitch, Op, Profile, Shape};
use synchromesh_ring::isa::Isa;
use synchromesh_ring::prime::ntt_primes_excluding;
use synchromesh_ring::{Counting, Cpu, IndexSet, Threads};
use synchromesh_rlwe::codec::switch_key_bytes;
use synchromesh_rlwe::security::{self, SecurityLevel};
use synchromesh_rlwe::{
    Context, DigitSizes, KeyPart, Params, ParamsLiteral, PrimeSwitching, ProductRing, Security, Source, SwitchPlan,
};

pub use self::methods::{Aux, Gadget, Second, fastest};
pub use self::timed::Timed;

use crate::Error;
use crate::device::Device;
use crate::timing::median_seconds;

/// How digits are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One prime a digit.
    Bv,
    /// One digit.
    Ghs,
    /// Exactly `omega` digits, whose numbers of primes differ by at most one.
    Hybrid {
        /// Number of digits.
        omega: usize,
    },
    /// Digits of so many primes.
    Digits {
        /// Primes in a digit.
        primes: usize,
    },
}

impl Method {
    /// Primes in a digit when there are `l` primes.
    fn digit_primes(self, l: usize) -> Result<usize, Error> {
        let refuse = |reason: String| Err(Error::Request { reason });
        match self {
            Self::Bv => Ok(1),
            Self::Ghs => Ok(l),
            Self::Hybrid { omega } => Ok(DigitSizes::equal(l, omega)?.0[0]),
            Self::Digits { primes } if primes == 0 || primes > l => {
                refuse(format!("digits of {primes} primes: there must be 1 to {l} in each"))
            }
            Self::Digits { primes } => Ok(primes),
        }
    }

    /// Primes in each digit when there are `l` primes, the longer digits first.
    fn sizes(self, l: usize) -> Result<DigitSizes, Error> {
        let most = self.digit_primes(l)?;
        if let Self::Hybrid { omega } = self {
            return Ok(DigitSizes((0..omega).map(|j| (l - j).div_ceil(omega)).collect()));
        }
        Ok(DigitSizes((0..l).step_by(most).map(|start| most.min(l - start)).collect()))
    }
}

/// The primes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chain {
    /// As few equal primes of at most `width` bits as give log2 q; P of `log_p` bits, by default as many as the largest
    /// digit.
    Equal {
        /// Bits of the modulus of the ciphertext being switched.
        log_q: u32,
        /// Bits of P.
        log_p: Option<u32>,
        /// Most bits of a prime; `None`: 47 where products of 52 bits are faster, 60 elsewhere.
        width: Option<u32>,
    },
    /// Widths prime by prime.
    Widths {
        /// Of the ciphertext primes, those that stay longest first.
        q: Vec<u32>,
        /// Of the special primes.
        p: Vec<u32>,
    },
}

/// What to measure; see the command `bench key-switch`.
#[derive(Debug, Clone)]
pub struct Request {
    /// log2 of the degree.
    pub log_n: u32,
    /// The primes.
    pub chain: Chain,
    /// The digits.
    pub method: Method,
    /// How they come from the stored key, and whether P is borrowed.
    pub gadget: Gadget,
    /// The second decomposition, in an extended ring, if any.
    pub second: Option<Second>,
    /// Limbs of the ciphertext when fewer than the key has.
    pub limbs: Option<usize>,
    /// mu large primes leave with P and kappa small ones come in: the last ones of [`Chain::Widths`], or primes that
    /// [`Chain::Equal`] gets besides, of mu/kappa of the large ones' width.
    pub swap: Option<PrimeSwitching>,
    /// Error multiple: 1 for BFV and CKKS, the plaintext modulus for BGV, in decimal.
    pub error_multiple: String,
    /// Operation, domains and batch.
    pub shape: Shape,
    /// Constants at run time instead of in the key.
    pub unfolded: bool,
}

/// Operations per N coefficients; `bytes` are bytes moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CountReport {
    /// Transforms of one limb.
    pub ntt: u64,
    /// Element-wise multiplications.
    pub mul: u64,
    /// Products inside base conversions.
    pub convert_mac: u64,
    /// Products of the overflow corrections.
    pub correction: u64,
    /// Bytes read and written.
    pub bytes: u64,
}

/// What `bench key-switch` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Key-switching method, in the words of `--method`.
    pub method: &'static str,
    /// log2 of the degree.
    pub log_n: u32,
    /// Widths of the primes of the ciphertext being switched, those that may come in last, borrowed ones apart.
    pub q_bits: Vec<u32>,
    /// Widths of the primes of the result.
    pub target_bits: Vec<u32>,
    /// Large primes that leave and small ones that come in.
    pub swap: Option<PrimeSwitching>,
    /// Widths of the special primes, borrowed ones too.
    pub p_bits: Vec<u32>,
    /// Bits of all primes of the key.
    pub log_qp: u32,
    /// Estimated security.
    pub security_bits: f64,
    /// Digits.
    pub omega: usize,
    /// Digits of the key in an extended ring; none in R_QP.
    pub omega2: Option<usize>,
    /// Primes in a digit.
    pub digit_primes: usize,
    /// Primes of the extended ring E; 0 in R_QP.
    pub aux_primes: usize,
    /// Limbs of the ciphertext.
    pub limbs: usize,
    /// Ciphertexts switched.
    pub batch: usize,
    /// Instruction set.
    pub isa: &'static str,
    /// Device.
    pub device: String,
    /// Launches of one run of the batch, on a device that has launches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launches: Option<usize>,
    /// Median milliseconds of the batch.
    pub median_ms: f64,
    /// The same by the device's own clock, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_ms: Option<f64>,
    /// Predicted milliseconds of the batch; none without a machine profile.
    pub predicted_ms: Option<f64>,
    /// Bytes of the prepared key.
    pub key_bytes: usize,
    /// Bytes of the key at rest, both halves a word a residue.
    pub plain_bytes: usize,
    /// Bytes of the key on the wire: the uniform half as a seed, residues at their own width.
    pub wire_bytes: u64,
    /// Of these, what ciphertexts of so many limbs and fewer need.
    pub trimmed_wire_bytes: u64,
    /// Counted operations of the batch.
    pub counts: CountReport,
}

/// Widths of the fewest primes of at most `width` bits whose product has at least `log` bits, as equal as they get.
#[must_use]
pub fn widths(log: u32, width: u32) -> Vec<u32> {
    let count = log.div_ceil(width).max(1);
    vec![log.div_ceil(count); count as usize]
}

/// The instruction set in use, and the widest primes that suit it.
fn isa_and_width() -> Result<(Isa, u32), Error> {
    let isa = Isa::detect().map_err(|e| Error::Request { reason: e.to_string() })?;
    Ok((isa, if isa.multiplies_narrow() { 47 } else { 60 }))
}

/// Bits of the widest primes that suit this CPU.
///
/// # Errors
/// An instruction set asked for that the CPU lacks.
pub fn suitable_width() -> Result<u32, Error> {
    Ok(isa_and_width()?.1)
}

/// A request with its parameters and plan built.
#[derive(Debug, Clone)]
pub struct Prepared {
    params: Params,
    plan: SwitchPlan,
    ends: [IndexSet; 2],
    swap: Option<PrimeSwitching>,
    shape: Shape,
    unfused: bool,
}

impl Prepared {
    /// Builds the parameters and the plan of `request`.
    ///
    /// # Errors
    /// [`Error`] for parameters that cannot be built.
    pub fn new(request: &Request) -> Result<Self, Error> {
        let params = Params::new(literal(request)?)?;
        let ends = request.ends(&params)?;
        let plan = request.with_folding(methods::plan(request, &params)?, &ends);
        Ok(Self { params, plan, ends, swap: request.swap, shape: request.shape, unfused: false })
    }

    /// The same, on a card by a launch for each primitive and transforms in two passes, or not so.
    #[must_use]
    pub fn unfused(mut self, unfused: bool) -> Self {
        self.unfused = unfused;
        self
    }

    /// Whether a card has a launch for each primitive.
    #[must_use]
    pub const fn is_unfused(&self) -> bool {
        self.unfused
    }

    /// The parameters.
    #[must_use]
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// The plan.
    #[must_use]
    pub const fn plan(&self) -> &SwitchPlan {
        &self.plan
    }

    /// The primes of the ciphertext that is switched and those of the result.
    #[must_use]
    pub const fn ends(&self) -> &[IndexSet; 2] {
        &self.ends
    }

    /// Whether keys of these parameters have 128 bits of security.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        security::check(self.params.ring().log_n(), self.params.log_qp(), SecurityLevel::Bits128).is_ok()
    }

    /// Operation, domains and batch.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// Bytes of the prepared key.
    #[must_use]
    pub fn key_bytes(&self) -> usize {
        usize::try_from(self.plan.prepared_bytes(&self.params)).unwrap_or(usize::MAX)
    }

    /// Bytes of the key at rest, both columns.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        let shape = self.plan.shape();
        16 * shape.rows(&self.params).len() * shape.primes().len() * self.params.n()
    }

    /// Bytes on the wire of the whole key, and of what the input's primes need of it.
    fn wire_bytes(&self) -> Result<[u64; 2], Error> {
        let source = match self.shape.op {
            Op::Relin => Source::Square,
            Op::Rotate => Source::Galois(3),
        };
        let whole = KeyPart::whole(&self.params, self.plan.shape())?;
        // A plan in an extended ring needs what the same plan needs outside.
        let plain = SwitchPlan { ring: ProductRing::Base, ..self.plan.clone() };
        let needed = KeyPart::needed(&self.params, &plain, &self.ends[0])?;
        Ok([whole, needed].map(|part| switch_key_bytes(&self.params, source, &part)))
    }

    /// Digits and primes of the extended ring; none in R_QP.
    #[must_use]
    pub fn extended(&self) -> Option<(usize, usize)> {
        match &self.plan.ring {
            ProductRing::Base => None,
            ProductRing::Extended(ring) => Some((ring.key_digits.len(), ring.aux.len())),
        }
    }

    /// Most bytes that a measurement holds: the wire and the prepared key, the digits and both parts, operands and
    /// tables.
    #[must_use]
    pub fn peak_bytes(&self) -> usize {
        let (n, limbs) = (self.params.n(), self.params.ring().moduli().len());
        let (groups, base) = self.extended().map_or((1, limbs), |(groups, aux)| (groups, aux.max(limbs)));
        let rows = (self.plan.digits.len() + 2 * groups + 4) * base + 5 * limbs * self.shape.batch;
        self.key_bytes() + self.stored_bytes() / 2 + 8 * n * rows + 48 * n * limbs
    }

    /// Predicted seconds by `profile`.
    ///
    /// # Errors
    /// When the profile lacks an operation.
    pub fn predict(&self, profile: &Profile) -> Result<f64, Error> {
        Ok(cost::predict(profile, &self.params, &self.plan, self.ends.each_ref(), self.shape)?)
    }

    /// The switch ready to run on this machine's CPU.
    ///
    /// # Errors
    /// When memory is short.
    pub fn on_cpu(&self) -> Result<OneSwitch<Cpu>, Error> {
        let (isa, _) = isa_and_width()?;
        let cpu = Cpu::with_isa(Arc::clone(self.params.ring()), isa)?
            .with_threads(Threads::of_process().map_err(|e| synchromesh_ring::Error::Backend(e.into()))?);
        let context = Context::with_backend(self.params.clone(), cpu);
        Ok(OneSwitch::new(&context, &self.plan, self.ends.each_ref(), self.shape)?)
    }

    /// What one run costs by the papers' counts.
    ///
    /// # Errors
    /// When the plan does not fit the parameters.
    pub fn counts(&self) -> Result<CountReport, Error> {
        let dry = synchromesh_ring::Dry::new(Arc::clone(self.params.ring()));
        let context = Context::with_backend(self.params.clone(), Counting::new(dry));
        let switch = OneSwitch::new(&context, &self.plan, self.ends.each_ref(), self.shape)?;
        let (done, counts) = context.backend().measure(|| switch.run());
        done?;
        let synchromesh_ring::Counts { ntt, mul, convert_mac, correction, bytes } = counts;
        Ok(CountReport { ntt, mul, convert_mac, correction, bytes })
    }

    /// Times the switch and reports it.
    ///
    /// # Errors
    /// When memory is short, or the profile lacks an operation.
    pub fn measure(&self, device: Device, profile: Option<&Profile>) -> Result<Report, Error> {
        let (isa, _) = isa_and_width()?;
        let counts = self.counts()?;
        let predicted = profile.map(|p| self.predict(p)).transpose()?;
        let mut switch = self.open(device)?;
        let seconds = median_seconds(|| switch.run())?;
        let device_seconds = switch.device_seconds()?;
        let params = &self.params;
        let bits = |set: &IndexSet| set.iter().map(|i| params.ring().modulus(i).bits()).collect::<Vec<_>>();
        let [wire_bytes, trimmed_wire_bytes] = self.wire_bytes()?;
        let candidate = cost::Candidate::new(params, self.plan.clone(), &self.ends[0]);
        Ok(Report {
            method: candidate.method(),
            log_n: params.ring().log_n(),
            q_bits: bits(&params.q().without(&self.plan.special)),
            target_bits: bits(&self.ends[1]),
            swap: self.swap,
            p_bits: bits(&self.plan.special),
            log_qp: params.log_qp(),
            security_bits: params.security_bits(),
            omega: candidate.omega(),
            omega2: self.extended().map(|(digits, _)| digits),
            digit_primes: self.plan.digits.iter().map(IndexSet::len).max().unwrap_or(0),
            aux_primes: self.extended().map_or(0, |(_, primes)| primes),
            limbs: self.ends[0].len(),
            batch: self.shape.batch,
            isa: isa.name(),
            device: switch.device(),
            launches: switch.launches(),
            median_ms: seconds * 1e3,
            device_ms: device_seconds.map(|s| s * 1e3),
            predicted_ms: predicted.map(|s| s * 1e3),
            key_bytes: self.key_bytes(),
            plain_bytes: self.stored_bytes(),
            wire_bytes,
            trimmed_wire_bytes,
            counts,
        })
    }
}

/// Widths of the ciphertext primes.
fn q_widths(request: &Request) -> Result<Vec<u32>, Error> {
    match &request.chain {
        Chain::Widths { q, .. } => Ok(q.clone()),
        Chain::Equal { log_q, width, .. } => swap::widths_with_small(*log_q, most_bits(*width)?, request.swap),
    }
}

/// Most bits of a prime.
fn most_bits(width: Option<u32>) -> Result<u32, Error> {
    let width = width.map_or_else(|| isa_and_width().map(|(_, width)| width), Ok)?;
    if (20..=61).contains(&width) {
        return Ok(width);
    }
    Err(Error::Request { reason: format!("width {width} is outside 20..=61") })
}

/// Widths of the primes of P, borrowed ones too.
fn p_widths(request: &Request, q_bits: &[u32]) -> Result<Vec<u32>, Error> {
    match &request.chain {
        Chain::Widths { p, .. } => Ok(p.clone()),
        Chain::Equal { log_p, width, .. } => {
            let sizes = request.sizes(q_bits)?.0;
            let mut widths_left = q_bits.iter();
            let digits = sizes.iter().map(|&size| widths_left.by_ref().take(size).sum::<u32>());
            let largest = digits.max().unwrap_or(0);
            Ok(widths(log_p.unwrap_or(largest), most_bits(*width)?))
        }
    }
}

fn literal(request: &Request) -> Result<ParamsLiteral, Error> {
    let q_bits = q_widths(request)?;
    let p_bits = p_widths(request, &q_bits)?;
    let aux_bits = methods::aux_widths(request, &q_bits, &p_bits)?;
    let mut q = Vec::new();
    for &bits in q_bits.iter().chain(&p_bits).chain(&aux_bits) {
        let next = ntt_primes_excluding(bits, request.log_n, 1, &q)?;
        q.extend(next);
    }
    let aux = q.split_off(q_bits.len() + p_bits.len());
    let borrows = request.gadget == Gadget::Borrowing;
    let p = if borrows { vec![] } else { q.split_off(q_bits.len()) };
    Ok(ParamsLiteral {
        tag: "bench".to_owned(),
        log_n: request.log_n,
        q,
        p,
        aux,
        level_limbs: if borrows { (1..=q_bits.len()).collect() } else { vec![] },
        schedule: Default::default(),
        error_multiple: request.error_multiple.clone(),
        error: Default::default(),
        security: Security::Insecure,
    })
}

/// Runs the request on a device.
///
/// # Errors
/// [`Error`] for parameters that cannot be built, and a device that cannot be had.
pub fn measure(request: &Request, device: Device, profile: Option<&Profile>) -> Result<Report, Error> {
    Prepared::new(request)?.measure(device, profile)
}

/// A rotation of CKKS, slots to slots.
#[must_use]
pub fn rotation(log_n: u32, chain: Chain, method: Method) -> Request {
    Request {
        log_n,
        chain,
        method,
        gadget: Gadget::Idempotent,
        second: None,
        limbs: None,
        swap: None,
        error_multiple: "1".to_owned(),
        shape: Shape::ROTATION,
        unfolded: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_as_many_or_as_long_as_asked_for() {
        let sizes = |method: Method, l| method.sizes(l).unwrap().0;
        assert_eq!(sizes(Method::Hybrid { omega: 5 }, 6), [2, 1, 1, 1, 1]);
        assert_eq!(sizes(Method::Hybrid { omega: 3 }, 11), [4, 4, 3]);
        assert_eq!(sizes(Method::Digits { primes: 4 }, 10), [4, 4, 2]);
        assert_eq!((sizes(Method::Bv, 3), sizes(Method::Ghs, 3)), (vec![1; 3], vec![3]));
        for l in 1..30 {
            for omega in 1..=l {
                let sizes = sizes(Method::Hybrid { omega }, l);
                assert!(sizes.len() == omega && sizes.iter().sum::<usize>() == l && sizes[0] - sizes[omega - 1] <= 1);
            }
        }
        assert!(Method::Hybrid { omega: 4 }.sizes(3).is_err() && Method::Hybrid { omega: 0 }.sizes(3).is_err());
        assert!(Method::Digits { primes: 0 }.sizes(3).is_err() && Method::Digits { primes: 4 }.sizes(3).is_err());
    }
}
