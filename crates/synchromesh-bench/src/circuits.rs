//! Whole circuits of BFV and BGV at the parameters that a plan chooses for them: the product of 2^k ciphertexts, a
//! polynomial of degree k with coefficients below 16, an inner product of k pairs (ePrint 2021/204, appendix G).

use std::sync::Arc;

use serde::Serialize;
use synchromesh::circuits::{Polynomial, inner_product, product};
use synchromesh::exact::{Ciphertext, Context, Evaluator, Params, Rotations, Scheme};
use synchromesh::plan::{Description, SchemeName, SchemeParams};
use synchromesh::{bfv, bgv};
use synchromesh_ring::isa::Isa;
use synchromesh_rlwe::Randomness;

use crate::Error;
use crate::timing::median_seconds;

/// Which circuit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Circuit {
    /// The product of 2^k ciphertexts, in a tree.
    Product,
    /// sum_{i <= k} a_i x^i with |a_i| < 16.
    Polynomial,
    /// sum_{i < k} x_i y_i.
    InnerProduct,
}

/// What to measure; see the command `bench circuit`.
#[derive(Debug, Clone)]
pub struct Request {
    /// BFV or BGV.
    pub scheme: SchemeName,
    /// The circuit.
    pub circuit: Circuit,
    /// Its size.
    pub k: usize,
    /// Plaintext modulus; none: 65537.
    pub t: Option<String>,
}

/// What `bench circuit` reports.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The scheme.
    pub scheme: SchemeName,
    /// The circuit.
    pub circuit: Circuit,
    /// Its size.
    pub k: usize,
    /// log2 of the degree.
    pub log_n: u32,
    /// log2 of the product of the ciphertext primes, rounded.
    pub log_q: u32,
    /// Bits of all primes of a key.
    pub log_qp: u32,
    /// Digits of a key switch.
    pub omega: usize,
    /// Estimated security.
    pub security_bits: f64,
    /// Bits of noise budget that the result has left.
    pub noise_budget: f64,
    /// Instruction set.
    pub isa: &'static str,
    /// Median milliseconds.
    pub median_ms: f64,
}

/// Plans, encrypts, and measures the circuit on one thread.
///
/// # Errors
/// [`Error::Request`] for CKKS or a size outside 1 to 256 (7 for products), or a scheme's refusal.
pub fn measure(request: &Request) -> Result<Report, Error> {
    let most = if request.circuit == Circuit::Product { 7 } else { 256 };
    if request.k == 0 || request.k > most {
        return Err(Error::Request { reason: format!("size {} is outside 1 to {most}", request.k) });
    }
    let depth = match request.circuit {
        Circuit::Product => request.k,
        Circuit::Polynomial => request.k.next_power_of_two().trailing_zeros() as usize,
        Circuit::InnerProduct => 1,
    };
    let mut description = Description::new(request.scheme, depth.max(1));
    description.t.clone_from(&request.t);
    description.additions = if request.circuit == Circuit::Product { 0 } else { 15 };
    // What the description leaves out, sums of many terms, may take a level more.
    loop {
        let plan = description.plan()?;
        let measured = match &plan.params {
            SchemeParams::Bfv(literal) => run(request, &bfv::Params::new(literal.clone())?),
            SchemeParams::Bgv(literal) => run(request, &bgv::Params::new(literal.clone())?),
            SchemeParams::Ckks(_) => return Err(Error::Request { reason: "bfv or bgv, not ckks".to_owned() }),
        };
        match measured {
            Err(Error::Scheme(synchromesh::Error::Rlwe(synchromesh_rlwe::Error::Noise { .. })))
                if description.depth < depth + 3 =>
            {
                description.depth += 1;
            }
            other => return other,
        }
    }
}

fn run<S: Scheme>(request: &Request, params: &Params<S>) -> Result<Report, Error> {
    let context = Context::<S>::new(params.clone())?;
    let mut randomness = Randomness::insecure_from_number(1);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?;
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let message: Vec<i64> = (0..params.n() as i64).map(|i| i * i % 251 - 125).collect();
    let message = context.encode_coefficients(&message)?;
    let count = match request.circuit {
        Circuit::Product => 1 << request.k,
        Circuit::Polynomial => 1,
        Circuit::InnerProduct => 2 * request.k,
    };
    let fresh = (0..count).map(|_| context.encrypt(&public, &message, &mut randomness));
    let fresh = fresh.collect::<synchromesh::Result<Vec<Ciphertext<S>>>>()?;
    let inputs: Vec<&Ciphertext<S>> = fresh.iter().collect();
    let polynomial = Polynomial::power((0..=request.k as i64).map(|i| i * 7 % 15 + 1))?;
    let circuit = || match request.circuit {
        Circuit::Product => product(&evaluator, &inputs),
        Circuit::Polynomial => polynomial.evaluate(&evaluator, inputs[0]),
        Circuit::InnerProduct => inner_product(&evaluator, &inputs[..request.k], &inputs[request.k..]),
    };
    let noise_budget = context.noise_budget(&circuit()?)?;
    let seconds = median_seconds(|| circuit().map(|result| drop(std::hint::black_box(result))))?;
    let rlwe = params.rlwe();
    Ok(Report {
        scheme: request.scheme,
        circuit: request.circuit,
        k: request.k,
        log_n: params.log_n(),
        log_q: rlwe.ring().log2(rlwe.q()).round() as u32,
        log_qp: rlwe.log_qp(),
        omega: params.plan().digits.len(),
        security_bits: rlwe.security_bits(),
        noise_budget,
        isa: Isa::detect().map_or("unknown", Isa::name),
        median_ms: seconds * 1e3,
    })
}
