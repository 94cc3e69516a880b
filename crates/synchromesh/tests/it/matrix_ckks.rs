//! Products of encrypted matrices in CKKS, judged by decryption against floating point, within their certificates.

use std::sync::Arc;

use crate::ckks_fixture::{Fixture, fixture, literal, values};
use synchromesh::circuits::{Matrix, MatrixChoices, MatrixPacking, MatrixPlan, Side, SlotShape};
use synchromesh::ckks::{Ciphertext, Complex64, Evaluator, ParamsLiteral, Rotations};

const SHAPE: SlotShape = SlotShape { row: 512, rows: 1 };

const CHOICES: [MatrixChoices; 4] =
    [MatrixChoices::HOISTED, MatrixChoices::REUSED, MatrixChoices::mixed(3), MatrixChoices::RECOMPUTED];

/// `depth` levels of two primes each.
fn made(depth: usize, steps: Rotations, seed: u64) -> Fixture {
    let (mut q, mut limbs) = (vec![31, 34], vec![2]);
    for _ in 0..depth {
        q.extend([29, 21]);
        limbs.push(q.len());
    }
    let digit: u32 = q.chunks(q.len().div_ceil(3)).map(|d| d.iter().sum()).max().unwrap();
    let p = vec![50; digit.div_ceil(49) as usize];
    let mut f = fixture(ParamsLiteral { level_limbs: limbs, omega: 3, ..literal(10, 50, &q, &p) }, seed);
    let keys = f.context.generate_evaluation_keys(&f.secret, &steps, &mut f.randomness).unwrap();
    f.evaluator = Evaluator::new(&f.context, Some(Arc::new(keys)));
    f
}

fn random(rows: usize, columns: usize, seed: u64) -> Matrix<Complex64> {
    let z = values(rows * columns, 1.0, seed);
    Matrix::new(rows, columns, z.iter().map(|z| z.re.into()).collect()).unwrap()
}

fn product(a: &Matrix<Complex64>, b: &Matrix<Complex64>) -> Matrix<Complex64> {
    let entry = |i: usize, j: usize| (0..a.columns()).map(|k| a.get(i, k).unwrap().re * b.get(k, j).unwrap().re).sum();
    Matrix::from_fn(a.rows(), b.columns(), |i, j| Complex64::new(entry(i, j), 0.0)).unwrap()
}

fn encrypt(f: &mut Fixture, plan: &MatrixPlan, side: Side, m: &Matrix<Complex64>) -> Vec<Ciphertext> {
    plan.slots(side, std::slice::from_ref(m)).unwrap().iter().map(|slots| f.encrypt(slots, 1.0)).collect()
}

/// Decrypts and compares with the expected matrix, within the certificates; those promise `bits` bits.
fn near(f: &Fixture, plan: &MatrixPlan, products: &[Ciphertext], expected: &Matrix<Complex64>, bits: i32) {
    let slots = |ct| f.context.decode_complex(&f.context.decrypt(&f.secret, ct).unwrap()).unwrap();
    let found = &plan.products(&products.iter().map(slots).collect::<Vec<_>>()).unwrap()[0];
    let bound = products.iter().map(|ct| f.context.error_bound(ct)).fold(0.0, f64::max);
    let gaps = found.entries().iter().zip(expected.entries()).map(|(x, y)| (x.re - y.re).hypot(x.im));
    let error = gaps.fold(0.0, f64::max);
    assert!(error <= bound, "{plan}: error {error:e} above its certificate {bound:e}");
    assert!(bound < 2f64.powi(-bits), "{plan}: the certificate says {bound:e}, the error is {error:e}");
    let largest = expected.entries().iter().map(|z| z.re.abs()).fold(0.0, f64::max);
    assert!(products.iter().all(|ct| largest <= ct.bound()));
}

#[test]
fn products_of_every_packing_and_choice() {
    let plan = |packing: synchromesh::Result<MatrixPacking>, shape, grid| {
        MatrixPlan::new(packing.unwrap(), shape, 1, grid).unwrap()
    };
    let plans = [
        plan(MatrixPacking::square(SHAPE, 8), [11, 9, 13], [2, 2]),
        plan(MatrixPacking::doubled(SHAPE, 8), [11, 9, 25], [1, 4]),
        plan(MatrixPacking::new(SHAPE, 16, 4, 13, 16), [17, 10, 30], [2, 1]),
        plan(MatrixPacking::new(SHAPE, 8, 4, 16, 16), [7, 5, 3], [1, 2]),
    ];
    let rotations = |plan: &MatrixPlan| CHOICES.iter().fold(Rotations::default(), |s, c| s.and(&plan.rotations(c)));
    let steps = plans.iter().fold(Rotations::default(), |steps, plan| steps.and(&rotations(plan)));
    let mut f = made(2, steps, 91);
    for plan in &plans {
        let [rows, inner, columns] = plan.shape();
        let (a, b) = (random(rows, inner, 92), random(inner, columns, 93));
        let (left, right) = (encrypt(&mut f, plan, Side::Left, &a), encrypt(&mut f, plan, Side::Right, &b));
        for choices in CHOICES.into_iter().chain([MatrixChoices::HOISTED.threads(2)]) {
            let made = plan.multiply(&f.evaluator, &choices, &left, &right).unwrap();
            assert_eq!(made[0].level(), if plan.packing().is_masked() { 0 } else { 1 });
            near(&f, plan, &made, &product(&a, &b), 12);
        }
    }
}

#[test]
fn public_matrices_and_a_chain() {
    let packing = MatrixPacking::square(SHAPE, 8).unwrap();
    let below = [packing.copies(), 1];
    let [first, second] = [[11, 9, 10], [11, 10, 5]].map(|shape| MatrixPlan::new(packing, shape, 1, below).unwrap());
    let map = first.chain::<Complex64>(&second, Side::Left).unwrap();
    let choices = MatrixChoices::mixed(3);
    let plain = first.plain_rotations(Side::Left).unwrap().and(&first.plain_rotations(Side::Right).unwrap());
    let steps = first.rotations(&choices).and(&map.rotations(map.baby_steps())).and(&plain);
    let mut f = made(5, steps, 94);
    let (a, b, c) = (random(11, 9, 95), random(9, 10, 96), random(10, 5, 97));
    let (left, right) = (encrypt(&mut f, &first, Side::Left, &a), encrypt(&mut f, &first, Side::Right, &b));
    let made = first.multiply_plain(&f.evaluator, Side::Left, &left, std::slice::from_ref(&b)).unwrap();
    near(&f, &first, &made, &product(&a, &b), 15);
    let made = first.multiply_plain(&f.evaluator, Side::Right, &right, std::slice::from_ref(&a)).unwrap();
    near(&f, &first, &made, &product(&a, &b), 15);

    let made = first.multiply(&f.evaluator, &choices, &left, &right).unwrap();
    let prepared = map.prepare(&f.evaluator, made[0].level()).unwrap();
    let again: Vec<Ciphertext> = made.iter().map(|x| prepared.apply(&f.evaluator, x).unwrap()).collect();
    let last = encrypt(&mut f, &second, Side::Right, &c);
    let all = second.multiply(&f.evaluator, &choices, &again, &last).unwrap();
    assert_eq!(all[0].level(), 0);
    near(&f, &second, &all, &product(&product(&a, &b), &c), 6);
}
