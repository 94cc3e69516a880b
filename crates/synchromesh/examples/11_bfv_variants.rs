//! Ways of multiplying in BFV: what they cost, what they leave, and sums of products that are scaled once.

use std::sync::Arc;
use std::time::Instant;

use synchromesh::Result;
use synchromesh::bfv::{Ciphertext, Context, Encryption, Evaluator, Multiplication, Params, ParamsLiteral, Rotations};
use synchromesh::rlwe::{EvaluationKeys, Randomness, SecretKey, Security};

fn main() -> Result<()> {
    // A chain of 8 primes at N = 2^14, and one special prime more than key switching needs: the original product has a
    // longer second base, which it takes from the primes outside Q.
    let context = Context::new(Params::new(ParamsLiteral {
        log_n: 14,
        t: "65537".to_owned(),
        q_bits: vec![36; 8],
        p_bits: vec![50; 2],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 8,
        security: Security::Bits128,
        primes: None,
    })?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let keys = Arc::new(context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness)?);
    let values: Vec<i64> = (-50..50).collect();
    let plaintext = context.encode(&values)?;
    let x = context.encrypt(&public, &plaintext, &mut randomness)?;

    // The original scheme's ciphertext is one like any other, with more noise in its certificate.
    let original = context.encrypt_by(Encryption::ORIGINAL, &public, &plaintext, x.level(), &mut randomness)?;
    let budgets = [context.noise_budget(&x)?, context.noise_budget(&original)?];
    println!("noise budget of a fresh ciphertext: {:.1} bits, original: {:.1}\n", budgets[0], budgets[1]);
    assert!(budgets[1] < budgets[0]);

    every_way(&context, &keys, &secret, &x)?;
    leveled_products(&context, &keys, &secret, &x)?;
    lazy_sums(&context, &keys, &secret, &x)
}

fn check(context: &Context, secret: &SecretKey, ciphertext: &Ciphertext, power: u32, times: i64) -> Result<()> {
    let expected: Vec<i64> = (-50..50i64)
        .map(|x| {
            let value = (0..power).fold(1, |y, _| y * x % 65537) * times % 65537;
            if value > 32768 {
                value - 65537
            } else if value < -32768 {
                value + 65537
            } else {
                value
            }
        })
        .collect();
    assert_eq!(context.decode(&context.decrypt(secret, ciphertext)?)?[..100], expected);
    Ok(())
}

/// All ways give the same product. The certificate says what each leaves.
fn every_way(context: &Arc<Context>, keys: &Arc<EvaluationKeys>, secret: &SecretKey, x: &Ciphertext) -> Result<()> {
    println!("x^2:");
    for (name, how) in Multiplication::NAMED {
        let evaluator = Evaluator::new(context, Some(Arc::clone(keys))).with_variant(how);
        evaluator.square(x)?;
        let start = Instant::now();
        let square = evaluator.square(x)?;
        let (time, budget) = (start.elapsed(), context.noise_budget(&square)?);
        println!("  {name:<10} {time:>10.2?}, {budget:.1} bits left, level {}", square.level());
        check(context, secret, &square, 2, 1)?;
    }
    println!();
    Ok(())
}

/// The more noise a ciphertext has, the fewer of its bits say anything. A leveled product leaves the others out, key
/// switching included, and returns to the modulus of its operands; a descending one stays below.
fn leveled_products(
    context: &Arc<Context>,
    keys: &Arc<EvaluationKeys>,
    secret: &SecretKey,
    x: &Ciphertext,
) -> Result<()> {
    println!("x^4:");
    let plain = Evaluator::new(context, Some(Arc::clone(keys)));
    let square = plain.square(x)?;
    for how in [Multiplication::NEW, Multiplication::LEVELED, Multiplication::DESCENDING] {
        let evaluator = Evaluator::new(context, Some(Arc::clone(keys))).with_variant(how);
        let fourth = evaluator.square(&square)?;
        println!("  level {}, {:.1} bits left", fourth.level(), context.noise_budget(&fourth)?);
        check(context, secret, &fourth, 4, 1)?;
        if fourth.level() < square.level() {
            // The way back is a multiplication by the primes between, exact and without a key.
            let raised = evaluator.mod_raise_to(&fourth, square.level())?;
            check(context, secret, &raised, 4, 1)?;
        }
    }
    println!();
    Ok(())
}

/// A sum of products is scaled and relinearised once: each term costs its tensor product alone, and less noise.
fn lazy_sums(context: &Arc<Context>, keys: &Arc<EvaluationKeys>, secret: &SecretKey, x: &Ciphertext) -> Result<()> {
    let evaluator = Evaluator::new(context, Some(Arc::clone(keys)));
    let start = Instant::now();
    let mut sum = evaluator.mul(x, x)?;
    for _ in 1..16 {
        sum = evaluator.add(&sum, &evaluator.mul(x, x)?)?;
    }
    let plain = start.elapsed();
    let start = Instant::now();
    let lazy = evaluator.sum_of_products(&[[x, x]; 16])?;
    let (quick, budgets) = (start.elapsed(), [context.noise_budget(&sum)?, context.noise_budget(&lazy)?]);
    println!(
        "16 products: {plain:.2?} one by one, {:.1} bits left; {quick:.2?} at once, {:.1}",
        budgets[0], budgets[1]
    );
    assert!(budgets[1] >= budgets[0]);
    check(context, secret, &sum, 2, 16)?;
    check(context, secret, &lazy, 2, 16)
}
