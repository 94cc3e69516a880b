//! Products of encrypted matrices: blocks in slots, three keys or many, and a product of three matrices.

use std::sync::Arc;
use std::time::Instant;

use num_bigint::BigInt;
use synchromesh::Result;
use synchromesh::bgv::{self, Bgv};
use synchromesh::circuits::{Arithmetic, Matrix, MatrixChoices, MatrixPlan, Side, Slicing, SlotShape};
use synchromesh::plan::{Description, SchemeName};
use synchromesh::rlwe::Randomness;

const T: i64 = 65_537;

/// Plans for (A B) C with A of 20 x 30, B of 30 x 10, C of 10 x 12, in the slots that there are.
fn plans(slots: SlotShape) -> Result<[MatrixPlan; 2]> {
    let tensor = <bgv::Evaluator as Arithmetic>::COST.tensor;
    let slicing = Slicing { slots, batch: 1, masks: false, chain: Some(Side::Left), tensor };
    let first = slicing.best([20, 30, 10])?;
    Ok([first, MatrixPlan::new(*first.packing(), [20, 10, 12], 1, first.grid())?])
}

/// (A B) C on ciphertexts of any evaluator: real ones, or one without data that finds parameters.
fn circuit<A: synchromesh::circuits::MatrixArithmetic>(
    evaluator: &A,
    choices: &MatrixChoices,
    [a, b, c]: [&[A::Ciphertext]; 3],
) -> Result<Vec<A::Ciphertext>> {
    let [first, second] = plans(evaluator.slots()?)?;
    let product = first.multiply(evaluator, choices, a, b)?;
    // From the layout of products to that of left factors: a linear map of the slots, U_sigma.
    let map = first.chain::<A::Scalar>(&second, Side::Left)?;
    let prepared = map.prepare(evaluator, evaluator.level(&product[0]))?;
    let again = product.iter().map(|x| prepared.apply(evaluator, x)).collect::<Result<Vec<_>>>()?;
    second.multiply(evaluator, choices, &again, c)
}

fn main() -> Result<()> {
    let choices = MatrixChoices::mixed(4);
    let description = Description::new(SchemeName::Bgv, 2);
    let plan = description.plan_exact::<Bgv>(3, |evaluator, fresh| {
        let [first, second] = plans(evaluator.slots()?)?;
        let copies = |x, count| (0..count).map(|_| evaluator.duplicate(x)).collect::<Result<Vec<_>>>();
        let a = copies(&fresh[0], first.ciphertexts(Side::Left))?;
        let b = copies(&fresh[1], first.ciphertexts(Side::Right))?;
        let c = copies(&fresh[2], second.ciphertexts(Side::Right))?;
        circuit(evaluator, &choices, [&a, &b, &c])
    })?;
    assert!(plan.security_bits >= 128.0);
    println!("N = 2^{}, {} bits of security", plan.log_n, plan.security_bits);

    let context = bgv::Context::new(plan.bgv()?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let slots = SlotShape { row: context.params().n() / 2, rows: 2 };
    let [first, second] = plans(slots)?;
    println!("{first}\n{second}");
    let all = [MatrixChoices::REUSED, MatrixChoices::HOISTED];
    let rotations = all.iter().fold(first.rotations(&choices), |steps, c| steps.and(&first.rotations(c)));
    let map = first.chain::<BigInt>(&second, Side::Left)?;
    let rotations = rotations.and(&map.rotations(map.baby_steps()));
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let evaluator = bgv::Evaluator::new(&context, Some(Arc::new(keys)));

    let matrix = |rows, columns, factor: usize| {
        Matrix::from_fn(rows, columns, |i, j| BigInt::from((i * i + factor * j + i * j) % 100))
    };
    let (a, b, c) = (matrix(20, 30, 3)?, matrix(30, 10, 7)?, matrix(10, 12, 5)?);
    let mut encrypt = |plan: &MatrixPlan, side, m: &Matrix<BigInt>| -> Result<Vec<bgv::Ciphertext>> {
        let slots = plan.slots(side, std::slice::from_ref(m))?;
        slots.iter().map(|slots| context.encrypt(&public, &context.encode(slots)?, &mut randomness)).collect()
    };
    let (x, y) = (encrypt(&first, Side::Left, &a)?, encrypt(&first, Side::Right, &b)?);
    let z = encrypt(&second, Side::Right, &c)?;
    let decrypt = |plan: &MatrixPlan, product: &[bgv::Ciphertext]| -> Result<Matrix<BigInt>> {
        let slots = |x| context.decode_big(&context.decrypt(&secret, x)?);
        Ok(plan.products(&product.iter().map(slots).collect::<Result<Vec<_>>>()?)?.remove(0))
    };

    println!("\nA B");
    for (name, choices) in [("one key a factor", all[0]), ("windows of 4", choices), ("hoisted", all[1])] {
        first.multiply(&evaluator, &choices, &x, &y)?;
        let start = Instant::now();
        let product = first.multiply(&evaluator, &choices, &x, &y)?;
        let (time, keys) = (start.elapsed(), first.rotations(&choices).by.len());
        println!("  {name}: {keys} rotation keys, {time:.1?}");
        assert!(equal(&decrypt(&first, &product)?, &[&a, &b]));
    }
    let product = circuit(&evaluator, &choices, [&x, &y, &z])?;
    assert!(equal(&decrypt(&second, &product)?, &[&a, &b, &c]));
    println!("A B C is right, with {:.0} bits of noise budget left", context.noise_budget(&product[0])?);
    Ok(())
}

/// Whether a matrix is the product of others modulo t.
fn equal(found: &Matrix<BigInt>, factors: &[&Matrix<BigInt>]) -> bool {
    let number = |m: &Matrix<BigInt>, i, j| m.get(i, j).cloned().unwrap_or_default();
    let product = factors[1..].iter().fold(factors[0].clone(), |a, b| {
        let entry = |i, j| (0..a.columns()).map(|k| number(&a, i, k) * number(b, k, j)).sum::<BigInt>() % T;
        Matrix::from_fn(a.rows(), b.columns(), entry).expect("factors have entries")
    });
    let gaps = found.entries().iter().zip(product.entries()).map(|(x, y)| (x - y) % T);
    found.entries().len() == product.entries().len() && gaps.into_iter().all(|gap| gap == BigInt::default())
}
