//! `bench`: medians of one operation on one thread, at any parameters, secure or not.

use super::place::{Place, name, unavailable};
use super::plan::Scheme;
use crate::error::Error;
use crate::output::Report;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use synchromesh::plan::SchemeName;
use synchromesh_bench::key_switch::{self, Op};
use synchromesh_bench::{ntt, scheme};

/// What is measured.
#[derive(Subcommand, Debug)]
pub(super) enum Bench {
    /// The number-theoretic transform of one limb, hot in cache.
    Ntt(Ntt),
    /// One key switch: relinearisation or rotation.
    KeySwitch(KeySwitch),
    /// One operation of a scheme.
    Scheme(SchemeBench),
}

impl Bench {
    /// Runs the command.
    pub(super) fn run(&self) -> Result<Report, Error> {
        match self {
            Self::Ntt(ntt) => ntt.run(),
            Self::KeySwitch(switch) => switch.run(),
            Self::Scheme(scheme) => scheme.run(),
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
    /// Digits of the ciphertext [default: 2; 1 with --method ghs].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=400))]
    omega: Option<u32>,
    /// Digits of the second decomposition.
    #[arg(long)]
    omega2: Option<u32>,
    /// Primes in a digit.
    #[arg(long)]
    digit_primes: Option<u32>,
    /// The method.
    #[arg(long, value_enum, default_value = "auto")]
    method: Method,
    /// The gadget.
    #[arg(long, value_enum, default_value = "idempotent")]
    gadget: Gadget,
    /// Large primes dropped and small primes gained by the division.
    #[arg(long, value_name = "MU,KAPPA")]
    swap: Option<String>,
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
    /// Key switches at once.
    #[arg(long, default_value_t = 1)]
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
    /// Bits of a prime, 20 to 61, or auto: 50 where the CPU has IFMA, 60 elsewhere.
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
}

impl KeySwitch {
    fn run(&self) -> Result<Report, Error> {
        self.place.check()?;
        self.check()?;
        let resting = if self.scheme == Scheme::Bfv { Domain::Coeff } else { Domain::Ntt };
        let (input, output) = (self.input.unwrap_or(resting), self.output.unwrap_or(resting));
        let request = key_switch::Request {
            log_n: self.log_n,
            log_q: self.log_q,
            log_p: self.log_p,
            omega: self.omega()?,
            limbs: self.limbs.map(|limbs| limbs as usize),
            error_multiple: self.error_multiple()?,
            op: if self.op == Operation::Relin { Op::Relinearize } else { Op::Rotate },
            input_ntt: input == Domain::Ntt,
            output_ntt: output == Domain::Ntt,
            unfolded: self.unfolded,
            width: match self.width {
                Width::Auto => None,
                Width::Bits(bits) => Some(bits),
            },
        };
        let report = key_switch::measure(&request)?;
        let folded = !self.unfolded;
        Report::new(&Switched { scheme: self.scheme.into(), op: self.op, input, output, folded, report })
    }

    /// Refuses what the engine does not offer.
    fn check(&self) -> Result<(), Error> {
        if !matches!(self.method, Method::Auto | Method::Hybrid | Method::Ghs) {
            return Err(unavailable("--method", &name(self.method), "auto, hybrid, ghs"));
        }
        if self.gadget == Gadget::Coalesced {
            return Err(unavailable("--gadget", "coalesced", "idempotent"));
        }
        if self.batch != 1 {
            return Err(unavailable("--batch", &self.batch.to_string(), "1"));
        }
        let second = [("--omega2", self.omega2), ("--digit-primes", self.digit_primes)];
        if let Some((flag, value)) = second.into_iter().find_map(|(flag, value)| Some((flag, value?))) {
            return Err(unavailable(
                flag,
                &value.to_string(),
                "--omega, which sets the digits of methods hybrid and ghs",
            ));
        }
        match &self.swap {
            Some(swap) => Err(unavailable("--swap", swap, "a division by P alone, without --swap")),
            None => Ok(()),
        }
    }

    fn omega(&self) -> Result<usize, Error> {
        match (self.method, self.omega) {
            (Method::Ghs, Some(omega)) if omega != 1 => {
                let message = format!("--method ghs has one digit, and --omega {omega} asks for {omega}");
                Err(Error::Usage { message })
            }
            (Method::Ghs, _) => Ok(1),
            (_, omega) => Ok(omega.unwrap_or(2) as usize),
        }
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
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=18))]
    log_n: u32,
    /// Levels above the lowest, one prime each.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=100))]
    depth: u32,
    /// Plaintext modulus of bfv and bgv [default: 65537].
    #[arg(long)]
    t: Option<String>,
    /// Limbs of the operands, when fewer than all.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=101))]
    limbs: Option<u32>,
    /// The operation; mul multiplies and relinearises.
    #[arg(long, value_enum)]
    op: SchemeOperation,
    /// How bfv multiplies.
    #[arg(long, value_enum)]
    variant: Option<Variant>,
    #[command(flatten)]
    place: Place,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum SchemeOperation {
    Encrypt,
    Decrypt,
    Add,
    Mul,
    MulNorelin,
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
    Lazy,
    Packed,
}

impl SchemeBench {
    fn run(&self) -> Result<Report, Error> {
        self.place.check()?;
        match (self.scheme, self.variant) {
            (_, None) | (Scheme::Bfv, Some(Variant::New)) => {}
            (Scheme::Bfv, Some(variant)) => return Err(unavailable("--variant", &name(variant), "new")),
            (_, Some(variant)) => {
                return Err(unavailable("--variant", &name(variant), "bgv and ckks without --variant"));
            }
        }
        let op = match self.op {
            SchemeOperation::Encrypt => scheme::Op::Encrypt,
            SchemeOperation::Decrypt => scheme::Op::Decrypt,
            SchemeOperation::Add => scheme::Op::Add,
            SchemeOperation::Mul => scheme::Op::Mul,
            SchemeOperation::MulNorelin => scheme::Op::MulNorelin,
            SchemeOperation::Rotate => scheme::Op::Rotate,
            SchemeOperation::Rescale => scheme::Op::Rescale,
        };
        let request = scheme::Request {
            scheme: self.scheme.into(),
            log_n: self.log_n,
            depth: self.depth as usize,
            t: self.t.clone(),
            limbs: self.limbs.map(|limbs| limbs as usize),
            op,
        };
        Report::new(&scheme::measure(&request)?)
    }
}
