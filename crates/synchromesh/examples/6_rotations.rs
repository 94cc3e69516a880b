//! Rotations: moving slots, summing them, what keys that takes, and many rotations for the price of little more than one.

use std::sync::Arc;
use std::time::Instant;

use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::Randomness;
use synchromesh::{Result, bfv, ckks};

/// Slots that are summed.
const COUNT: usize = 16;
/// Rotations that keys are made for: powers of two reach every sum.
const STEPS: [i64; 5] = [1, 2, 4, 8, -1];

fn main() -> Result<()> {
    rows_and_columns()?;
    sums_of_slots()?;
    real_slots()
}

/// A BFV context with keys for [`STEPS`] and for the swap of the rows, and 2 x N/2 numbers 0, 1, 2, .. encrypted.
fn integers() -> Result<(bfv::Evaluator, synchromesh::rlwe::SecretKey, bfv::Ciphertext, Vec<i64>)> {
    let mut description = Description::new(SchemeName::Bfv, 0);
    // Sums of COUNT ciphertexts, with two bits to spare for the naive way below.
    description.additions = 4 * COUNT - 1;
    description.rotations = STEPS.to_vec();
    description.swap = true;
    description.min_slots = 4096;
    let plan = description.plan()?;
    println!("BFV, N = 2^{}, {} bits of security; keys: {} kB", plan.log_n, plan.security_bits, plan.key_bytes / 1024);
    assert!(plan.security_bits >= 128.0);
    let context = bfv::Context::new(plan.bfv()?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    // Each rotation needs its own key, made by the owner of the secret key. Keys are large, so one makes those needed.
    let rotations = bfv::Rotations::by(STEPS).and_swap();
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let values: Vec<i64> = (0..plan.slots as i64).collect();
    let x = context.encrypt(&public, &context.encode(&values)?, &mut randomness)?;
    Ok((bfv::Evaluator::new(&context, Some(Arc::new(keys))), secret, x, values))
}

fn show(context: &bfv::Context, what: &str, ct: &bfv::Ciphertext) -> Result<()> {
    println!("  {what:<24} noise budget {:5.1} bits", context.noise_budget(ct)?);
    Ok(())
}

/// The slots are two rows of N/2. `rotate_rows` turns both rows, k > 0 to the left; `rotate_columns` swaps them.
fn rows_and_columns() -> Result<()> {
    let (evaluator, secret, x, values) = integers()?;
    let context = evaluator.context();
    let half = values.len() / 2;
    let decrypt = |ct: &bfv::Ciphertext| context.decode(&context.decrypt(&secret, ct)?);
    show(context, "x", &x)?;
    for k in [1, -1] {
        let rotated = evaluator.rotate_rows(&x, k)?;
        show(context, &format!("rows rotated by {k}"), &rotated)?;
        let result = decrypt(&rotated)?;
        println!("    {:?} .. and {:?} ..", &result[..4], &result[half..half + 4]);
        let expected = |i: usize| values[i / half * half + (i as i64 + k).rem_euclid(half as i64) as usize];
        assert!((0..values.len()).all(|i| result[i] == expected(i)));
    }
    let swapped = evaluator.rotate_columns(&x)?;
    show(context, "columns rotated", &swapped)?;
    let result = decrypt(&swapped)?;
    println!("    {:?} .. and {:?} ..", &result[..4], &result[half..half + 4]);
    assert_eq!((&result[..half], &result[half..]), (&values[half..], &values[..half]));

    // Without its key a rotation is an error that names what is there.
    let refused = evaluator.rotate_rows(&x, 3).err();
    assert!(refused.as_ref().is_some_and(|error| error.kind() == "missing_key"));
    if let Some(error) = refused {
        println!("  rotated by 3: {error}\n  what to do:   {}", error.remedy());
    }
    // 3 = 1 + 2, at the price of two key switches.
    let three = evaluator.rotate_rows(&evaluator.rotate_rows(&x, 1)?, 2)?;
    assert_eq!(decrypt(&three)?[..4], [3, 4, 5, 6]);
    Ok(())
}

/// The sum of 16 neighbours in every slot. The naive way takes 15 rotations, each adding its noise to those before it;
/// doubling takes 4.
fn sums_of_slots() -> Result<()> {
    let (evaluator, secret, x, values) = integers()?;
    let context = evaluator.context();
    println!("\nsums of {COUNT} slots:");
    let mut naive = x.duplicate(context)?;
    let mut turned = x.duplicate(context)?;
    for _ in 1..COUNT {
        turned = evaluator.rotate_rows(&turned, 1)?;
        naive = evaluator.add(&naive, &turned)?;
    }
    show(context, "15 rotations", &naive)?;
    let mut sum = x.duplicate(context)?;
    for k in [8, 4, 2, 1] {
        sum = evaluator.add(&sum, &evaluator.rotate_rows(&sum, k)?)?;
    }
    show(context, "4 rotations", &sum)?;
    let expected: i64 = values[..COUNT].iter().sum();
    for ct in [&naive, &sum] {
        assert_eq!(context.decode(&context.decrypt(&secret, ct)?)?[0], expected);
    }

    // Rotations of one ciphertext share the first part of their work, the decomposition into digits.
    let one_at_a_time = || STEPS.iter().map(|&k| evaluator.rotate_rows(&x, k)).collect::<Result<Vec<_>>>();
    // The first time a key is used it is prepared, and memory is taken that is used again later.
    one_at_a_time()?;
    evaluator.rotate_rows_many(&x, &STEPS)?;
    let start = Instant::now();
    let single = one_at_a_time()?;
    let one_by_one = start.elapsed();
    let start = Instant::now();
    let many = evaluator.rotate_rows_many(&x, &STEPS)?;
    println!("  {} rotations: one by one {one_by_one:.1?}, together {:.1?}", STEPS.len(), start.elapsed());
    for (a, b) in single.iter().zip(&many) {
        assert_eq!(context.decrypt(&secret, a)?, context.decrypt(&secret, b)?);
    }
    Ok(())
}

/// CKKS has one row of N/2 slots. Real numbers stay what they are under conjugation; complex ones do not.
fn real_slots() -> Result<()> {
    let mut description = Description::new(SchemeName::Ckks, 0);
    description.rotations = vec![1];
    description.swap = true;
    let plan = description.plan()?;
    println!("\nCKKS, N = 2^{}, {} slots", plan.log_n, plan.slots);
    assert!(plan.security_bits >= 128.0);
    let context = ckks::Context::new(plan.ckks()?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let rotations = ckks::Rotations::by([1]).and_conjugate();
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let values = [ckks::Complex64::new(0.25, 0.5), ckks::Complex64::new(-0.5, 0.75)];
    let x = context.encrypt(&public, &context.encode_complex(&values, 1.0)?, &mut randomness)?;
    for (what, ct) in [("rotated by 1", evaluator.rotate(&x, 1)?), ("conjugated", evaluator.conjugate(&x)?)] {
        let result = context.decode_complex(&context.decrypt(&secret, &ct)?)?;
        println!(
            "  {what:<14} {:+.4} {:+.4} i, budget {:.1} bits",
            result[0].re,
            result[0].im,
            context.noise_budget(&ct)
        );
        let expected = if what == "conjugated" { (0.25, -0.5) } else { (-0.5, 0.75) };
        let error = (result[0].re - expected.0).hypot(result[0].im - expected.1);
        assert!(error <= context.error_bound(&ct));
    }
    Ok(())
}
