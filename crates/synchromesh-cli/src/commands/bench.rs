//! `bench`: medians of one operation on one thread, at any parameters, secure or not.

mod bootstrap;
mod circuit;
mod joint;
mod matmul;
mod scaling;
mod sign;
mod slicing;
mod switching;
mod triples;

use super::place::{Chosen, Place, name, unavailable};
use super::plan::Scheme;
use crate::error::Error;
use crate::output::Report;
use crate::profile;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::path::PathBuf;
use synchromesh::cost::{Op, Shape};
use synchromesh::plan::SchemeName;
use synchromesh_bench::device::Device;
use synchromesh_bench::key_switch::{self, Chain, Prepared};
use synchromesh_bench::{ntt, scheme};
use synchromesh_rlwe::PrimeSwitching;

/// What is measured.
#[derive(Subcommand, Debug)]
pub(super) enum Bench {
    /// The number-theoretic transform of one limb, hot in cache.
    Ntt(Ntt),
    /// One key switch: relinearisation or rotation.
    KeySwitch(KeySwitch),
    /// One operation of a scheme.
    Scheme(SchemeBench),
    /// Refreshes: seconds by stage, precision measured and certified of CKKS, noise budgets of BFV and BGV, keys, memory.
    Bootstrap(bootstrap::BootstrapBench),
    /// One circuit of BFV or BGV, at planned parameters.
    Circuit(circuit::CircuitBench),
    /// Keys that several parties make together, and decryptions under them: time of all, bytes of each.
    Joint(joint::JointBench),
    /// The product of encrypted square matrices, at the parameters of ePrint 2023/593.
    Matmul(matmul::MatmulBench),
    /// The sign of every slot in CKKS outside a gap: depth, time, and what it is off by.
    Sign(sign::SignBench),
    /// Block sizes chosen for products of matrices beside the best measured.
    Slicing(slicing::SlicingBench),
    /// One thread against several, in turn: operations, circuits, encryption, keys.
    Threads(scaling::ScalingBench),
    /// Whole runs of the protocol that makes matrix triples, by size, parties and threads.
    Triples(triples::TriplesBench),
}

impl Bench {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<Report, Error> {
        match self {
            Self::Ntt(ntt) => ntt.run(),
            Self::KeySwitch(switch) => switch.run(),
            Self::Scheme(scheme) => scheme.run(),
            Self::Bootstrap(bootstrap) => bootstrap.run(),
            Self::Circuit(circuit) => circuit.run(),
            Self::Joint(joint) => joint.run(),
            Self::Matmul(matmul) => matmul.run(),
            Self::Sign(sign) => sign.run(),
            Self::Slicing(slicing) => slicing.run(),
            Self::Threads(threads) => threads.run(),
            Self::Triples(triples) => triples.run(),
        }
    }
}

/// Parameters of `bench ntt`.
#[derive(Args, Debug)]
pub(super) struct Ntt {
    /// log2 of the degree N.
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=18))]
    log_n: u32,
    /// Bits of the prime.
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..=61))]
    bits: u32,
    #[command(flatten)]
    place: Place,
}

impl Ntt {
    fn run(&self) -> Result<Report, Error> {
        self.place.check()?;
        Report::new(&ntt::measure(self.log_n, self.bits)?)
    }
}

/// Parameters of `bench key-switch`.
#[derive(Args, Debug)]
pub(super) struct KeySwitch {
    /// log2 of the degree N.
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=18))]
    log_n: u32,
    /// Bits of the modulus of the ciphertext that is switched; P comes on top.
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..=8000))]
    log_q: u32,
    /// Bits of P; by default as many as the largest digit.
    #[arg(long, value_parser = clap::value_parser!(u32).range(20..=8000))]
    log_p: Option<u32>,
    /// Digits of the ciphertext [default: with --method auto the fastest that is secure, by the machine's profile or the
    /// fewest from two on; else 2].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=400))]
    omega: Option<u32>,
    /// Digits of the key, for a product in an extended ring [default: for double the number with the fewest transforms].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=800))]
    omega2: Option<u32>,
    /// Primes in a digit.
    #[arg(long)]
    digit_primes: Option<u32>,
    /// Special primes of linear key switching [default: one, or those of --log-p].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100), conflicts_with = "log_p")]
    alpha: Option<u32>,
    /// The method [default: auto, or hybrid where no number of digits is secure].
    #[arg(long, value_enum)]
    method: Option<Method>,
    /// Let auto pick plans of any security.
    #[arg(long)]
    insecure: bool,
    /// A machine profile [default: the one `tune` made].
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Keys stored with the digits that are used, or with single-prime digits that are summed [default: coalesced for
    /// level-aware, else idempotent].
    #[arg(long, value_enum)]
    gadget: Option<Gadget>,
    /// Large primes that leave with P and small ones, of as many bits together, that come in.
    #[arg(long, value_name = "MU,KAPPA", value_parser = swap)]
    swap: Option<PrimeSwitching>,
    /// Limbs of the ciphertext, when fewer than the key has.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=400))]
    limbs: Option<u32>,
    /// The scheme: it sets the resting domain and the error multiple.
    #[arg(long, value_enum, default_value = "ckks")]
    scheme: Scheme,
    /// Plaintext modulus of BGV: the error multiple.
    #[arg(long)]
    t: Option<String>,
    /// The operation.
    #[arg(long, value_enum, default_value = "rotate")]
    op: Operation,
    /// Ciphertexts that one run switches, on the CPU one after another, on a card in one launch for each step; times and
    /// counts are for all of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    /// Domain of the input [default: the scheme's resting domain].
    #[arg(long, value_enum)]
    input: Option<Domain>,
    /// Domain of the output [default: the scheme's resting domain].
    #[arg(long, value_enum)]
    output: Option<Domain>,
    /// Multiply by the constants at run time instead of folding them into the key.
    #[arg(long)]
    unfolded: bool,
    /// On a card, a launch for each primitive and transforms in two passes: what fused stages are measured against.
    #[arg(long)]
    unfused: bool,
    /// Bits of a prime, 20 to 61, or auto: 47 where products of 52 bits are faster (AVX2, AVX-512, NEON), 60 elsewhere.
    #[arg(long, default_value = "auto", value_parser = width)]
    width: Width,
    #[command(flatten)]
    place: Place,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Method {
    Bv,
    Ghs,
    Hybrid,
    Double,
    Linear,
    LevelAware,
    Auto,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Gadget {
    Idempotent,
    Coalesced,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Relin,
    Rotate,
}

impl From<Operation> for Op {
    fn from(operation: Operation) -> Self {
        match operation {
            Operation::Relin => Self::Relin,
            Operation::Rotate => Self::Rotate,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Domain {
    Coeff,
    Ntt,
}

#[derive(Clone, Copy, Debug)]
enum Width {
    Auto,
    Bits(u32),
}

fn width(text: &str) -> Result<Width, String> {
    let bits = || text.parse().ok().filter(|bits| (20..=61).contains(bits)).map(Width::Bits);
    if text == "auto" { Ok(Width::Auto) } else { bits().ok_or_else(|| "expected auto or 20..=61".to_owned()) }
}

fn swap(text: &str) -> Result<PrimeSwitching, String> {
    let numbers: Option<Vec<usize>> = text.split(',').map(|number| number.trim().parse().ok()).collect();
    match numbers.as_deref() {
        Some(&[mu, kappa]) => PrimeSwitching::new(mu, kappa).map_err(|e| e.to_string()),
        _ => Err("expected MU,KAPPA, such as 2,3".to_owned()),
    }
}

/// What `bench key-switch` prints.
#[derive(Serialize)]
struct Switched {
    scheme: SchemeName,
    op: Operation,
    input: Domain,
    output: Domain,
    folded: bool,
    #[serde(flatten)]
    report: key_switch::Report,
    /// Why the CPU was taken where a card was preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_cuda: Option<String>,
}

impl KeySwitch {
    fn run(&self) -> Result<Report, Error> {
        let chosen = self.place.choose_to_measure()?;
        let resting = if self.scheme == Scheme::Bfv { Domain::Coeff } else { Domain::Ntt };
        let (input, output) = (self.input.unwrap_or(resting), self.output.unwrap_or(resting));
        let width = match self.width {
            Width::Auto => None,
            Width::Bits(bits) => Some(bits),
        };
        let request = key_switch::Request {
            log_n: self.log_n,
            chain: Chain::Equal { log_q: self.log_q, log_p: self.log_p, width },
            method: key_switch::Method::Hybrid { omega: 2 },
            gadget: key_switch::Gadget::Idempotent,
            second: None,
            limbs: self.limbs.map(|limbs| limbs as usize),
            swap: self.swap,
            error_multiple: self.error_multiple()?,
            shape: Shape {
                op: self.op.into(),
                input_ntt: input == Domain::Ntt,
                output_ntt: output == Domain::Ntt,
                batch: self.batch as usize,
            },
            unfolded: self.unfolded,
        };
        let profile =
            profile::load_for(self.profile.as_deref(), chosen.profile_name()?, self.place.threads()?.count())?;
        let request = switching::choose(self, request, profile.as_ref())?;
        if self.unfused && matches!(chosen, Chosen::Cpu { .. }) {
            return Err(unavailable("--unfused", "on the CPU", "a card or its emulator"));
        }
        let prepared = Prepared::new(&request)?.unfused(self.unfused);
        let report = prepared.measure(chosen.measured(), profile.as_ref())?;
        let (folded, why_not_cuda) = (!self.unfolded, chosen.why_not_cuda());
        Report::new(&Switched { scheme: self.scheme.into(), op: self.op, input, output, folded, report, why_not_cuda })
    }

    /// t for BGV, 1 elsewhere.
    fn error_multiple(&self) -> Result<String, Error> {
        match (self.scheme, &self.t) {
            (Scheme::Bgv, t) => {
                let t = t.as_deref().unwrap_or("65537");
                let modulus: synchromesh::plain_modulus::PlainModulus = t.parse().map_err(synchromesh::Error::from)?;
                Ok(modulus.to_string())
            }
            (Scheme::Bfv, _) | (Scheme::Ckks, None) => Ok("1".to_owned()),
            (Scheme::Ckks, Some(t)) => {
                Err(Error::Usage { message: format!("--t {t} is for bfv and bgv: ckks has no plaintext modulus") })
            }
        }
    }
}

/// Parameters of `bench scheme`.
#[derive(Args, Debug)]
pub(super) struct SchemeBench {
    /// The scheme.
    #[arg(long, value_enum)]
    scheme: Scheme,
    /// log2 of the degree N.
    #[arg(long, default_value_t = 14, value_parser = clap::value_parser!(u32).range(10..=18))]
    log_n: u32,
    /// Levels above the lowest, one prime each [default: 5, or as many as --q-bits has].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
    depth: Option<u32>,
    /// Widths of the ciphertext primes of bfv and bgv, one a level, the one that stays longest first [default: 50 each].
    #[arg(long, value_name = "BITS,..", value_delimiter = ',', conflicts_with = "depth")]
    q_bits: Option<Vec<u32>>,
    /// Widths of their special primes [default: as long together as the longest digit].
    #[arg(long, value_name = "BITS,..", value_delimiter = ',')]
    p_bits: Option<Vec<u32>>,
    /// Digits of a key switch of bfv and bgv [default: 3].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=101))]
    omega: Option<u32>,
    /// Plaintext modulus of bfv and bgv [default: 65537].
    #[arg(long)]
    t: Option<String>,
    /// Limbs of the operands, when fewer than all.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=101))]
    limbs: Option<u32>,
    /// The operation; mul multiplies and relinearises.
    #[arg(long, value_enum)]
    op: SchemeOperation,
    /// Which of products one after another in bfv and bgv: the operands have been squared one time fewer.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    product: u32,
    /// How bfv or bgv multiplies.
    #[arg(long, value_enum)]
    variant: Option<Variant>,
    /// ckks: operands, or pairs of them, that one run takes; the time is of all of them.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    batch: u32,
    #[command(flatten)]
    place: Place,
}

/// What `bench scheme` and `bench bootstrap` print.
#[derive(Serialize)]
struct Placed<R> {
    #[serde(flatten)]
    report: R,
    /// Why the CPU was taken where a card was preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_cuda: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum SchemeOperation {
    Encrypt,
    Decrypt,
    Add,
    Mul,
    MulNorelin,
    MulRescale,
    Rotate,
    Rescale,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Variant {
    Original,
    Behz,
    Hps,
    New,
    Leveled,
    Descending,
    Lazy,
    Packed,
    Ghs,
    Static,
}

/// Fails unless the variant is among those that a scheme has.
fn offered(variant: Variant, names: &[&str]) -> Result<(), Error> {
    let asked = name(variant);
    if names.contains(&asked.as_str()) {
        return Ok(());
    }
    Err(unavailable("--variant", &asked, &names.join(", ")))
}

impl SchemeBench {
    fn run(&self) -> Result<Report, Error> {
        let (device, why_not_cuda) = if self.scheme == Scheme::Ckks {
            let chosen = self.place.choose_to_measure()?;
            (chosen.measured(), chosen.why_not_cuda())
        } else {
            self.place.check()?;
            (Device::Cpu, None)
        };
        match (self.scheme, self.variant) {
            (_, None) => {}
            (Scheme::Bfv, Some(variant)) => offered(variant, &scheme::bfv::names())?,
            (Scheme::Bgv, Some(variant)) => offered(variant, &scheme::bgv::names())?,
            (_, Some(variant)) => {
                return Err(unavailable("--variant", &name(variant), "ckks without --variant"));
            }
        }
        let op = match self.op {
            SchemeOperation::Encrypt => scheme::Op::Encrypt,
            SchemeOperation::Decrypt => scheme::Op::Decrypt,
            SchemeOperation::Add => scheme::Op::Add,
            SchemeOperation::Mul => scheme::Op::Mul,
            SchemeOperation::MulNorelin => scheme::Op::MulNorelin,
            SchemeOperation::MulRescale => scheme::Op::MulRescale,
            SchemeOperation::Rotate => scheme::Op::Rotate,
            SchemeOperation::Rescale => scheme::Op::Rescale,
        };
        let request = scheme::Request {
            scheme: self.scheme.into(),
            log_n: self.log_n,
            depth: self.depth.map_or_else(|| self.q_bits.as_ref().map_or(6, Vec::len) - 1, |depth| depth as usize),
            q_bits: self.q_bits.clone(),
            p_bits: self.p_bits.clone(),
            omega: self.omega.map(|omega| omega as usize),
            t: self.t.clone(),
            limbs: self.limbs.map(|limbs| limbs as usize),
            op,
            variant: self.variant.map(name),
            product: self.product as usize,
            batch: self.batch as usize,
            device,
        };
        Report::new(&Placed { report: scheme::measure(&request)?, why_not_cuda })
    }
}
