//! Linear maps of slots: a matrix times an encrypted vector, what rotations that takes, and keys against time.

use std::sync::Arc;
use std::time::Instant;

use num_bigint::BigInt;
use synchromesh::bfv::{self, Bfv};
use synchromesh::circuits::{LinearTransform, SlotShape, SlotSum};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::Randomness;
use synchromesh::{Error, Result};

/// Size of the matrix.
const SIZE: usize = 64;

fn main() -> Result<()> {
    // The entries are public; the vector is encrypted, and repeated along each row of slots so that rotations of the
    // row are rotations of the vector.
    let matrix: Vec<Vec<BigInt>> =
        (0..SIZE).map(|r| (0..SIZE).map(|c| BigInt::from((r * r + 3 * c + r * c) % 100)).collect()).collect();
    let description = Description { min_slots: 4096, ..Description::new(SchemeName::Bfv, 1) };
    // The degree is not known yet: the map is made for the slots that the evaluator has.
    let plan = description.plan_exact::<Bfv>(1, |evaluator, x| {
        let shape = SlotShape { row: evaluator.context().params().n() / 2, rows: 2 };
        let map = LinearTransform::repeated(shape, &matrix)?;
        let image = map.prepare(evaluator, x[0].level())?.apply(evaluator, &x[0])?;
        Ok(vec![SlotSum::new(SIZE).run(evaluator, &image)?])
    })?;
    println!("N = 2^{}, {} bits of security", plan.log_n, plan.security_bits);
    println!("the run without data asked for the rotations {:?}", plan.rotations);
    assert!(plan.security_bits >= 128.0);

    let context = bfv::Context::new(plan.bfv()?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let shape = SlotShape { row: context.params().n() / 2, rows: 2 };
    let map = LinearTransform::repeated(shape, &matrix)?;
    let baby = map.baby_steps();
    println!("\n{} diagonals; with {baby} baby steps:", map.diagonals());

    // All diagonals by baby steps: one decomposition, the most keys. One baby step: a key switch for each diagonal.
    let few = map.rotations(baby);
    let all = few.clone().and(&map.rotations(SIZE)).and(&SlotSum::new(SIZE).rotations());
    let keys = context.generate_evaluation_keys(&secret, &all, &mut randomness)?;
    let evaluator = bfv::Evaluator::new(&context, Some(Arc::new(keys)));
    let vector: Vec<i64> = (0..SIZE as i64).map(|i| 7 * i % 50 - 25).collect();
    let slots: Vec<i64> = (0..shape.count()).map(|i| vector[i % SIZE]).collect();
    let x = context.encrypt(&public, &context.encode(&slots)?, &mut randomness)?;
    let entry = |r: usize, c: usize| ((r * r + 3 * c + r * c) % 100) as i64;
    let dot = |r: usize| (0..SIZE).map(|c| entry(r, c) * vector[c]).sum::<i64>();
    for count in [baby, SIZE] {
        let prepared = map.prepare_with(&evaluator, x.level(), count)?;
        prepared.apply(&evaluator, &x)?;
        let start = Instant::now();
        let image = prepared.apply(&evaluator, &x)?;
        let (time, keys) = (start.elapsed(), prepared.rotations().by.len());
        println!(
            "  {count:3} baby steps: {keys:2} rotation keys, {time:.1?}, diagonals of {} MiB, budget {:.1} bits",
            prepared.bytes(context.params().n()) >> 20,
            context.noise_budget(&image)?
        );
        let result = context.decode(&context.decrypt(&secret, &image)?)?;
        assert!((0..shape.count()).all(|i| (result[i] - dot(i % SIZE)).rem_euclid(65_537) == 0));
    }
    let image = map.prepare(&evaluator, x.level())?.apply(&evaluator, &x)?;
    let total = SlotSum::new(SIZE).run(&evaluator, &image)?;
    let result = context.decode(&context.decrypt(&secret, &total)?)?;
    entries_of_the_image(&result, (0..SIZE).map(dot).sum());
    missing_keys(&evaluator, &x)
}

/// The sum of the image's entries is in every slot: rotations of a repeated vector wrap around.
fn entries_of_the_image(slots: &[i64], sum: i64) {
    assert!(slots.iter().all(|x| (x - sum).rem_euclid(65_537) == 0));
    println!("\nthe entries of the image add up to {} modulo 65537", sum.rem_euclid(65_537));
}

/// A rotation without a key is an error that names it.
fn missing_keys(evaluator: &bfv::Evaluator, x: &bfv::Ciphertext) -> Result<()> {
    let refused = SlotSum::new(3).stride(100).run(evaluator, x).err();
    println!("{}", refused.as_ref().map(Error::to_string).unwrap_or_default());
    assert_eq!(refused.map(|e| e.kind()), Some("missing_key"));
    Ok(())
}
