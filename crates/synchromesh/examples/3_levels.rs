//! Levels: the chain of primes, switching down it, what that saves and what it costs.

use std::time::Instant;

use synchromesh::bfv::{Bfv, Ciphertext, Context, Evaluator};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Error as RlweError, Randomness, SecretKey};
use synchromesh::{Error, Result};

fn main() -> Result<()> {
    let mut description = Description::new(SchemeName::Bfv, 3);
    description.min_slots = 8192;
    let plan = description.plan()?;
    let session = plan.open::<Bfv>()?;
    let context = session.context();
    show_chain(context)?;

    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness)?);
    let values: Vec<i64> = (0..100).collect();
    let x = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;

    down_the_chain(&evaluator, &secret, &x, &values)?;
    products_at_each_level(&evaluator, &secret, &x, &values)?;
    operands_meet_at_the_lower_level(&evaluator, &x)?;
    there_is_no_way_up(&evaluator, &x)
}

/// The modulus Q of a ciphertext is a product of primes. A ciphertext of level l holds its polynomials modulo the first
/// of them; level 0 has the fewest. `level` counts how many times one can still switch down.
fn show_chain(context: &Context) -> Result<()> {
    let params = context.params();
    println!("N = 2^{}, {} bits of security", params.log_n(), params.rlwe().security_bits());
    assert!(params.rlwe().security_bits() >= 128.0);
    for level in (0..=params.top_level()).rev() {
        let primes = params.rlwe().level(level)?.len();
        println!("  level {level}: {primes} primes, log2 Q = {:.1}", params.log2_modulus(level)?);
    }
    println!("  special primes, in keys only: {}\n", params.rlwe().p().len());
    Ok(())
}

fn show(context: &Context, what: &str, ciphertext: &Ciphertext) -> Result<f64> {
    let budget = context.noise_budget(ciphertext)?;
    let kilobytes = context.params().log2_modulus(ciphertext.level())? * 2.0 * context.params().n() as f64 / 8192.0;
    println!("  {what:<22} level {}, {kilobytes:6.0} kB, noise budget {budget:5.1} bits", ciphertext.level());
    Ok(budget)
}

fn check(context: &Context, secret: &SecretKey, ciphertext: &Ciphertext, expected: &[i64]) -> Result<()> {
    let result = context.decode(&context.decrypt(secret, ciphertext)?)?;
    assert_eq!(result[..expected.len()], *expected);
    Ok(())
}

/// Switching divides everything by the primes dropped, message and noise alike, and rounds. The message stays, the
/// ciphertext shrinks, and the budget falls only as far as the new modulus is smaller.
fn down_the_chain(evaluator: &Evaluator, secret: &SecretKey, x: &Ciphertext, values: &[i64]) -> Result<()> {
    let context = evaluator.context();
    println!("a fresh ciphertext, down the chain:");
    let mut budget = show(context, "x", x)?;
    for level in (0..x.level()).rev() {
        let lower = evaluator.mod_switch_to(x, level)?;
        let left = show(context, "switched", &lower)?;
        assert!(left < budget);
        budget = left;
        check(context, secret, &lower, values)?;
    }
    println!();
    Ok(())
}

/// In BFV levels are a choice: nothing forces one to switch. After a product the noise is as large relative to Q as the
/// rounding would leave it in a smaller Q, so that switching then costs little budget, and whatever follows is faster.
fn products_at_each_level(evaluator: &Evaluator, secret: &SecretKey, x: &Ciphertext, values: &[i64]) -> Result<()> {
    let context = evaluator.context();
    println!("x^2, then x^4 at different levels:");
    let square = evaluator.square(x)?;
    show(context, "x^2", &square)?;
    let t = 65_537;
    let fourth: Vec<i64> = values.iter().map(|v| (v.pow(4) + t / 2) % t - t / 2).collect();
    for level in [square.level(), square.level() - 1] {
        let lower = evaluator.mod_switch_to(&square, level)?;
        // The first product at a level makes its tables.
        evaluator.square(&lower)?;
        let start = Instant::now();
        let product = evaluator.square(&lower)?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        show(context, "x^4", &product)?;
        println!("    in {milliseconds:.1} ms");
        check(context, secret, &product, &fourth)?;
    }
    println!();
    Ok(())
}

/// Operands of different levels are brought to the lower one.
fn operands_meet_at_the_lower_level(evaluator: &Evaluator, x: &Ciphertext) -> Result<()> {
    let lower = evaluator.mod_switch(x)?;
    let sum = evaluator.add(x, &lower)?;
    println!("level {} + level {} gives level {}", x.level(), lower.level(), sum.level());
    show(evaluator.context(), "x + x", &sum)?;
    assert_eq!(sum.level(), lower.level());
    Ok(())
}

/// What was divided away is gone: multiplying by the primes between would bring no room back. Asking for a higher level, or for one below 0, is an error.
fn there_is_no_way_up(evaluator: &Evaluator, x: &Ciphertext) -> Result<()> {
    let lowest = evaluator.mod_switch_to(x, 0)?;
    for error in [evaluator.mod_switch_to(&lowest, 1).err(), evaluator.mod_switch(&lowest).err()] {
        assert!(matches!(error, Some(Error::Rlwe(RlweError::Level { .. }))));
        if let Some(error) = error {
            println!("refused: {error}");
        }
    }
    Ok(())
}
