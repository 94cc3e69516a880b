//! BGV: the same integers with the message in the low digits, where levels are needed and managed automatically.

use synchromesh::Result;
use synchromesh::bgv::{Bgv, Ciphertext, Context, Evaluator};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Randomness, SecretKey};

/// The plaintext modulus.
const T: i64 = 65_537;

fn main() -> Result<()> {
    let plan = Description::new(SchemeName::Bgv, 3).plan()?;
    let session = plan.open::<Bgv>()?;
    let context = session.context();
    println!("N = 2^{}, primes of {:?} bits, {} bits of security", plan.log_n, plan.q_bits, plan.security_bits);
    assert!(plan.security_bits >= 128.0);
    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness)?);
    let values: Vec<i64> = (0..1000).map(|i| i - 500).collect();
    let x = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;

    down_by_hand_and_lose(&evaluator, &x)?;
    let eighth = automatic(&evaluator, &x)?;
    check(context, &secret, &eighth, &values, 8)?;
    correction_factors(&evaluator, &secret, &x, &values)?;
    one_product_too_many(&evaluator, eighth)
}

/// c^e modulo t, centred as the decoder gives it.
fn power(c: i64, e: u32) -> i64 {
    let r = (0..e).fold(1, |r, _| r * c % T).rem_euclid(T);
    if r > T / 2 { r - T } else { r }
}

fn check(context: &Context, secret: &SecretKey, ct: &Ciphertext, values: &[i64], e: u32) -> Result<()> {
    let result = context.decode(&context.decrypt(secret, ct)?)?;
    assert!(result.iter().zip(values).all(|(&r, &v)| r == power(v, e)));
    println!("  decrypted: all {} values right\n", values.len());
    Ok(())
}

fn show(context: &Context, what: &str, ct: &Ciphertext) -> Result<()> {
    let (level, budget) = (ct.level(), context.noise_budget(ct)?);
    println!("  {what:<12} level {level}, noise budget {budget:5.1} bits, correction factor {}", ct.header().value());
    Ok(())
}

/// The naive way: switch down first, since lower levels are faster. A product squares the noise, and the lowest level
/// has no room for that: it is refused, where other libraries would return a ciphertext that decrypts to garbage.
fn down_by_hand_and_lose(evaluator: &Evaluator, x: &Ciphertext) -> Result<()> {
    println!("\nsquared at the lowest level:");
    let lowest = evaluator.mod_switch_to(x, 0)?;
    show(evaluator.context(), "x", &lowest)?;
    let refused = evaluator.square(&lowest).and_then(|y| evaluator.square(&y)).and_then(|y| evaluator.square(&y)).err();
    assert!(refused.as_ref().is_some_and(|error| error.kind() == "noise"));
    if let Some(error) = refused {
        println!("  {error}\n  what to do: {}\n", error.remedy());
    }
    Ok(())
}

/// In BGV the noise of a product grows with the noises of both factors. Switching down before each product keeps it
/// small: the noise is divided by the primes dropped. `mul` looks at the certificates of its operands and picks the level
/// at which the product has the most room.
fn automatic(evaluator: &Evaluator, x: &Ciphertext) -> Result<Ciphertext> {
    println!("x^8 with levels left to the library:");
    show(evaluator.context(), "x", x)?;
    let square = evaluator.square(x)?;
    show(evaluator.context(), "x^2", &square)?;
    let fourth = evaluator.square(&square)?;
    show(evaluator.context(), "x^4", &fourth)?;
    let eighth = evaluator.square(&fourth)?;
    show(evaluator.context(), "x^8", &eighth)?;
    assert!(eighth.level() < x.level());
    Ok(eighth)
}

/// Switching down multiplies the message by the inverse of the primes dropped, modulo t. The ciphertext remembers by
/// what: its correction factor, which decryption divides out. Sums of ciphertexts with different factors are made equal
/// first, at the least cost in noise.
fn correction_factors(evaluator: &Evaluator, secret: &SecretKey, x: &Ciphertext, values: &[i64]) -> Result<()> {
    println!("x^4 + x across levels:");
    let context = evaluator.context();
    let fourth = evaluator.square(&evaluator.square(x)?)?;
    show(context, "x^4", &fourth)?;
    show(context, "x", x)?;
    let sum = evaluator.add(&fourth, x)?;
    show(context, "x^4 + x", &sum)?;
    let result = context.decode(&context.decrypt(secret, &sum)?)?;
    assert!(result.iter().zip(values).all(|(&r, &v)| (r - power(v, 4) - v) % T == 0));
    println!("  decrypted: all {} values right\n", values.len());
    Ok(())
}

/// The plan was made for three products. It may carry a little more, and then says no.
fn one_product_too_many(evaluator: &Evaluator, eighth: Ciphertext) -> Result<()> {
    println!("on and on:");
    let mut y = eighth;
    for exponent in [16, 32, 64, 128, 256] {
        match evaluator.square(&y) {
            Ok(product) => {
                show(evaluator.context(), &format!("x^{exponent}"), &product)?;
                y = product;
            }
            Err(error) => {
                assert_eq!(error.kind(), "noise");
                println!("  x^{exponent}: {error}\n  what to do: {}", error.remedy());
                return Ok(());
            }
        }
    }
    unreachable!("three levels do not carry eight products")
}
