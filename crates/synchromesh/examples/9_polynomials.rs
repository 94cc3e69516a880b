//! Polynomials: one function written once, planned by running it without data, then run on BGV and on CKKS.

use synchromesh::bgv::{self, Bgv};
use synchromesh::circuits::{Arithmetic, Coefficient, Polynomial, chebyshev_coefficients, product};
use synchromesh::ckks::{Ckks, Complex64};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::Randomness;
use synchromesh::{Error, Result};

/// Where the logistic function is approximated, and by what degree.
const INTERVAL: (f64, f64) = (-8.0, 8.0);
const DEGREE: usize = 27;

fn main() -> Result<()> {
    exact()?;
    approximate()
}

/// Does x lie in {2, 3, 5, 7, 11, 13}? The product of all x - p is 0 if it does: a polynomial of degree 6 modulo t.
fn membership() -> Result<Polynomial<num_bigint::BigInt>> {
    let mut coefficients = vec![1i64];
    for p in [2, 3, 5, 7, 11, 13] {
        let mut next = vec![0; coefficients.len() + 1];
        for (i, c) in coefficients.iter().enumerate() {
            next[i + 1] += c;
            next[i] -= p * c;
        }
        coefficients = next;
    }
    Polynomial::power(coefficients)
}

fn exact() -> Result<()> {
    let polynomial = membership()?;
    let shape = polynomial.plan::<bgv::Evaluator>();
    println!("membership: degree {}, {shape:?}", polynomial.degree());
    // The circuit runs on ciphertexts without data, with all their certificates: that is how parameters are found.
    let description = Description::new(SchemeName::Bgv, shape.depth);
    let plan = description.plan_exact::<Bgv>(1, |evaluator, x| Ok(vec![polynomial.evaluate(evaluator, &x[0])?]))?;
    println!("BGV, N = 2^{}, {} levels, {} bits of security", plan.log_n, plan.depth, plan.security_bits);
    assert!(plan.security_bits >= 128.0);

    let session = plan.open::<Bgv>()?;
    let context = session.context();
    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness)?);
    let values: Vec<i64> = (0..plan.slots as i64).map(|i| i % 20).collect();
    let x = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;
    let result = polynomial.evaluate(&evaluator, &x)?;
    let found = context.decode(&context.decrypt(&secret, &result)?)?;
    let members: Vec<i64> = (0..20).filter(|&i| found[i as usize] == 0).collect();
    println!("  members below 20: {members:?}, {:.1} bits of budget left\n", context.noise_budget(&result)?);
    assert_eq!(members, [2, 3, 5, 7, 11, 13]);
    Ok(())
}

/// Any function of x: the same lines run on data and without.
fn circuit<A: Arithmetic<Scalar = Complex64>>(arithmetic: &A, x: &A::Ciphertext) -> Result<A::Ciphertext> {
    let logistic = |x: f64| 1.0 / (1.0 + (-x).exp());
    let series = Polynomial::chebyshev(chebyshev_coefficients(logistic, INTERVAL, DEGREE), INTERVAL)?;
    let y = series.evaluate(arithmetic, x)?;
    // y (1 - y), the derivative: products of ciphertexts, of as many as one likes.
    let one_less = Polynomial::power([Coefficient::from(1.0), Coefficient::from(-1.0)])?.evaluate(arithmetic, &y)?;
    product(arithmetic, &[&y, &one_less])
}

fn approximate() -> Result<()> {
    let mut description = Description::new(SchemeName::Ckks, 7);
    description.precision = Some(16);
    let plan = description.plan_ckks(&[8.0], |evaluator, x| Ok(vec![circuit(evaluator, &x[0])?]))?;
    println!("CKKS, N = 2^{}, {} levels, {} bits of security", plan.log_n, plan.depth, plan.security_bits);
    assert!(plan.security_bits >= 128.0);

    let session = plan.open::<Ckks>()?;
    let context = session.context();
    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness)?);
    let last = (plan.slots - 1) as f64;
    let points: Vec<f64> = (0..plan.slots).map(|i| 16.0 * i as f64 / last - 8.0).collect();
    let x = context.encrypt(&public, &context.encode_bounded(&points, 8.0)?, &mut randomness)?;
    let result = circuit(&evaluator, &x)?;
    let out = context.decode(&context.decrypt(&secret, &result)?)?;
    let derivative = |x: f64| (-x).exp() / (1.0 + (-x).exp()).powi(2);
    let worst = points.iter().zip(&out).map(|(&x, y)| (y - derivative(x)).abs()).fold(0.0, f64::max);
    let certain = context.error_bound(&result);
    println!("  logistic'(x) on [-8, 8]: off by {worst:.1e}, of which the encryption may be {certain:.1e}");
    assert!(worst < 1e-3 && certain < 2f64.powi(-16));

    // Values beyond the interval would be far off without a word; the bound declared with the input says they are not.
    let wide = context.encrypt(&public, &context.encode_bounded(&points, 9.0)?, &mut randomness)?;
    let refused = circuit(&evaluator, &wide).err();
    println!("  {}", refused.as_ref().map(Error::to_string).unwrap_or_default());
    assert_eq!(refused.map(|e| e.kind()), Some("argument"));
    Ok(())
}
