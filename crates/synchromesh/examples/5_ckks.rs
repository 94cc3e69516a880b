//! CKKS: real numbers, approximately; pi x^3 + 0.4 x + 1 on thousands of points, with a bound on the error.

use synchromesh::Result;
use synchromesh::ckks::{Ciphertext, Ckks, Context, Evaluator};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::{Randomness, SecretKey};

fn main() -> Result<()> {
    // x^3 takes two products and the factor pi a third, in sums of two. Results shall be within 2^-20.
    let mut description = Description::new(SchemeName::Ckks, 3);
    description.precision = Some(20);
    description.additions = 1;
    let plan = description.plan()?;
    println!("N = 2^{}, primes of {:?} bits, {} slots", plan.log_n, plan.q_bits, plan.slots);
    println!("{} bits of security\n", plan.security_bits);
    assert!(plan.security_bits >= 128.0);

    let session = plan.open::<Ckks>()?;
    let context = session.context();
    let mut randomness = Randomness::from_os();
    let (secret, public) = session.generate_keys(&mut randomness)?;
    let evaluator = session.evaluator(session.generate_evaluation_keys(&secret, &mut randomness)?);

    bounds_are_declared(context)?;
    let last = (plan.slots - 1) as f64;
    let points: Vec<f64> = (0..plan.slots).map(|i| 2.0 * i as f64 / last - 1.0).collect();
    let x = context.encrypt(&public, &context.encode(&points)?, &mut randomness)?;
    show(context, "x", &x);
    let result = polynomial(&evaluator, &x)?;
    compare(context, &secret, &result, &points)?;
    levels_run_out(&evaluator, &result)
}

/// CKKS stores the integers nearest to scale * value, and cannot refuse a large value later: it would wrap around the
/// modulus. So each message declares how large it may be, 1 unless said otherwise, and encoding holds it to that. The
/// bound travels with the ciphertext; it is public.
fn bounds_are_declared(context: &Context) -> Result<()> {
    let refused = context.encode(&[0.5, 3.0]).err();
    assert!(refused.is_some());
    if let Some(error) = refused {
        println!("encode(3.0): {error}\n  what to do: {}\n", error.remedy());
    }
    assert_eq!(context.encode_bounded(&[0.5, 3.0], 4.0)?.bound(), 4.0);
    assert!(context.encode(&[f64::NAN]).is_err());
    Ok(())
}

/// The scale of a product is the product of the scales. Dividing by primes of the same size brings it back: that is a
/// rescale, and takes a level. `mul` does it at once, in the division that relinearisation needs anyway, and every level
/// has one exact scale, so that sums need no approximation "these scales are almost equal".
fn show(context: &Context, what: &str, ct: &Ciphertext) {
    println!(
        "  {what:<16} level {}, scale 2^{:.4}, |values| <= {:.3}, budget {:5.1} bits, certain to {:.1} bits",
        ct.level(),
        ct.log2_scale(),
        ct.bound(),
        context.noise_budget(ct),
        context.precision_bits(ct)
    );
}

/// (pi x) x^2 + 0.4 x + 1. The naive order, ((x x) x) pi, takes one level more: x^2 and pi x can be had at the same
/// level.
fn polynomial(evaluator: &Evaluator, x: &Ciphertext) -> Result<Ciphertext> {
    let context = evaluator.context();
    let naive = evaluator.mul_scalar(&evaluator.mul(&evaluator.square(x)?, x)?, std::f64::consts::PI)?;
    show(context, "((x x) x) pi", &naive);

    let square = evaluator.square(x)?;
    show(context, "x x", &square);
    let pi_x = evaluator.mul_scalar(x, std::f64::consts::PI)?;
    show(context, "pi x", &pi_x);
    let cubic = evaluator.mul(&square, &pi_x)?;
    show(context, "(x x) (pi x)", &cubic);
    assert_eq!(cubic.level(), naive.level() + 1);

    // 0.4 x is one level above the cubic term. The sum brings it down, to exactly the same scale.
    let linear = evaluator.mul_scalar(x, 0.4)?;
    show(context, "0.4 x", &linear);
    let sum = evaluator.add(&cubic, &linear)?;
    show(context, "sum", &sum);
    let result = evaluator.add_scalar(&sum, 1.0)?;
    show(context, "and 1", &result);
    assert_eq!((result.level(), result.scale()), (cubic.level(), cubic.scale()));
    Ok(result)
}

/// The certificate bounds the error of every slot, whatever the values are. Decrypted values show their noise, and the
/// noise shows the key: give them only to those who may have the key, or see SECURITY.md.
fn compare(context: &Context, secret: &SecretKey, result: &Ciphertext, points: &[f64]) -> Result<()> {
    let decrypted = context.decode(&context.decrypt(secret, result)?)?;
    let exact = points.iter().map(|x| std::f64::consts::PI * x.powi(3) + 0.4 * x + 1.0);
    let error = decrypted.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let bound = context.error_bound(result);
    println!("\nlargest error 2^{:.1}, certified 2^{:.1}", error.log2(), bound.log2());
    assert!(error <= bound);
    Ok(())
}

/// When no level is left, a product is refused.
fn levels_run_out(evaluator: &Evaluator, x: &Ciphertext) -> Result<()> {
    let lowest = evaluator.mod_switch_to(x, 0)?;
    show(evaluator.context(), "at level 0", &lowest);
    let refused = evaluator.square(&lowest).err();
    assert!(refused.as_ref().is_some_and(|error| error.kind() == "level"));
    if let Some(error) = refused {
        println!("  squared: {error}\n  what to do: {}", error.remedy());
    }
    Ok(())
}
