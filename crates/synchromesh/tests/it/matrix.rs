//! Products of encrypted matrices in BFV and BGV, judged by decryption against the plain product modulo t.

use std::sync::Arc;

use crate::oracle::{Ct, Fixture, Judged, T128, big, deep, fixture};
use num_bigint::BigInt;
use num_integer::Integer;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::{Arithmetic, Matrix, MatrixChoices, MatrixPacking, MatrixPlan, Side, SlotShape};
use synchromesh::exact::{Evaluator, Rotations};

const SHAPE: SlotShape = SlotShape { row: 512, rows: 2 };

const CHOICES: [MatrixChoices; 4] =
    [MatrixChoices::HOISTED, MatrixChoices::REUSED, MatrixChoices::mixed(3), MatrixChoices::RECOMPUTED];

fn all_rotations(plan: &MatrixPlan) -> Rotations {
    CHOICES.iter().fold(Rotations::default(), |steps, choices| steps.and(&plan.rotations(choices)))
}

fn made<S: Judged>(t: &str, masks: u32, products: u32, steps: Rotations, seed: u64) -> Fixture<S> {
    let bits = big(t).bits() as u32;
    // Two levels a mask or a product: one does not do for a modulus as small as 2^17.
    let levels = 2 * (masks + products);
    fixture(deep(10, t, bits + 35, (bits + 40) / 2, levels as usize), &steps, seed)
}

fn random<S: Judged>(f: &mut Fixture<S>, rows: usize, columns: usize) -> Matrix<BigInt> {
    let values = f.random();
    Matrix::from_fn(rows, columns, |i, j| values[(i * columns + j) % values.len()].clone()).unwrap()
}

fn product(a: &Matrix<BigInt>, b: &Matrix<BigInt>, t: &BigInt) -> Matrix<BigInt> {
    let entry =
        |i: usize, j: usize| (0..a.columns()).map(|k| a.get(i, k).unwrap() * b.get(k, j).unwrap()).sum::<BigInt>();
    Matrix::from_fn(a.rows(), b.columns(), |i, j| entry(i, j).mod_floor(t)).unwrap()
}

fn encrypt<S: Judged>(f: &mut Fixture<S>, plan: &MatrixPlan, side: Side, m: &[Matrix<BigInt>]) -> Vec<Ct<S>> {
    plan.slots(side, m).unwrap().iter().map(|slots| f.encrypt(slots)).collect()
}

fn decrypt<S: Judged>(f: &Fixture<S>, plan: &MatrixPlan, products: &[Ct<S>]) -> Vec<Matrix<BigInt>> {
    let slots = |ct| f.decode(&f.context.decrypt(&f.secret, ct).unwrap());
    plan.products(&products.iter().map(slots).collect::<Vec<_>>()).unwrap()
}

/// Both factors of a plan and their products.
struct Case {
    left: Vec<Matrix<BigInt>>,
    right: Vec<Matrix<BigInt>>,
    products: Vec<Matrix<BigInt>>,
}

fn case<S: Judged>(f: &mut Fixture<S>, plan: MatrixPlan) -> Case {
    let [rows, inner, columns] = plan.shape();
    let left: Vec<_> = (0..plan.batch()).map(|_| random(f, rows, inner)).collect();
    let right: Vec<_> = (0..plan.batch()).map(|_| random(f, inner, columns)).collect();
    let t = f.t();
    let products = left.iter().zip(&right).map(|(a, b)| product(a, b, &t)).collect();
    Case { left, right, products }
}

/// All packings: square with masks, lines twice as long, fewer steps than rows, with and without masks; one step.
fn plans() -> Vec<MatrixPlan> {
    let plan = |packing: synchromesh::Result<MatrixPacking>, shape, batch, grid| {
        MatrixPlan::new(packing.unwrap(), shape, batch, grid).unwrap()
    };
    vec![
        plan(MatrixPacking::square(SHAPE, 8), [8, 8, 8], 16, [1, 1]),
        plan(MatrixPacking::square(SHAPE, 8), [11, 9, 13], 2, [2, 1]),
        plan(MatrixPacking::doubled(SHAPE, 8), [11, 9, 25], 1, [2, 4]),
        plan(MatrixPacking::new(SHAPE, 16, 4, 13, 16), [17, 10, 30], 2, [1, 1]),
        plan(MatrixPacking::new(SHAPE, 8, 4, 16, 16), [7, 5, 3], 1, [1, 2]),
        plan(MatrixPacking::new(SHAPE, 16, 1, 16, 16), [5, 2, 7], 1, [1, 1]),
    ]
}

fn products<S: Judged>(t: &str, plans: &[MatrixPlan], seed: u64) {
    let steps = plans.iter().fold(Rotations::default(), |steps, plan| steps.and(&all_rotations(plan)));
    let mut f: Fixture<S> = made(t, 1, 1, steps, seed);
    for plan in plans {
        let case = case(&mut f, *plan);
        let left = encrypt(&mut f, plan, Side::Left, &case.left);
        let right = encrypt(&mut f, plan, Side::Right, &case.right);
        for choices in CHOICES {
            let product = plan.multiply(&f.evaluator, &choices, &left, &right).unwrap();
            assert_eq!(decrypt(&f, plan, &product), case.products, "{choices:?} {plan}");
            assert!(product.iter().all(|x| x.components() == 2));
        }
        let threads = plan.multiply(&f.evaluator, &MatrixChoices::HOISTED.threads(3), &left, &right).unwrap();
        assert_eq!(decrypt(&f, plan, &threads), case.products, "threads: {plan}");
    }
}

#[test]
fn products_in_bgv() {
    products::<Bgv>("65537", &plans(), 61);
    products::<Bgv>(T128, &[plans()[1], plans()[2]], 62);
}

#[test]
fn products_in_bfv() {
    products::<Bfv>("65537", &plans()[1..4], 63);
    products::<Bfv>(T128, &[plans()[4]], 64);
}

/// The judge compares every slot and the error in the phase with the certificate.
#[test]
fn certificates_hold() {
    let plan = MatrixPlan::new(MatrixPacking::square(SHAPE, 16).unwrap(), [16, 16, 16], 4, [1, 1]).unwrap();
    let mut f: Fixture<Bgv> = made("65537", 1, 1, all_rotations(&plan), 65);
    let case = case(&mut f, plan);
    let left = encrypt(&mut f, &plan, Side::Left, &case.left);
    let right = encrypt(&mut f, &plan, Side::Right, &case.right);
    for choices in [MatrixChoices::HOISTED, MatrixChoices::REUSED] {
        let made = plan.multiply(&f.evaluator, &choices, &left, &right).unwrap();
        f.judge(&made[0], &plan.packing().pack_plainly(&case.products));
    }
}

fn public_factors<S: Judged>(t: &str) {
    for plan in [plans()[1], plans()[2], plans()[3]] {
        let steps = plan.plain_rotations(Side::Left).unwrap().and(&plan.plain_rotations(Side::Right).unwrap());
        let mut f: Fixture<S> = made(t, 1, 0, steps, 66);
        let case = case(&mut f, plan);
        let left = encrypt(&mut f, &plan, Side::Left, &case.left);
        let product = plan.multiply_plain(&f.evaluator, Side::Left, &left, &case.right).unwrap();
        assert_eq!(decrypt(&f, &plan, &product), case.products, "{plan}");
        let right = encrypt(&mut f, &plan, Side::Right, &case.right);
        let product = plan.multiply_plain(&f.evaluator, Side::Right, &right, &case.left).unwrap();
        assert_eq!(decrypt(&f, &plan, &product), case.products, "{plan}");
    }
}

#[test]
fn public_matrices_times_encrypted_ones() {
    public_factors::<Bgv>("65537");
    public_factors::<Bfv>(T128);
}

/// (A B) C and A (B C) with maps of the slots in between, and a matrix that was packed without sigma.
fn chains<S: Judged>(t: &str, packing: MatrixPacking) {
    let below = [packing.copies(), 1];
    let [first, second] = [[11, 9, 10], [11, 10, 5]].map(|shape| MatrixPlan::new(packing, shape, 1, below).unwrap());
    let map = first.chain::<BigInt>(&second, Side::Left).unwrap();
    let choices = MatrixChoices::mixed(4);
    let steps = first.rotations(&choices).and(&map.rotations(map.baby_steps()));
    let mut f: Fixture<S> = made(t, 3, 2, steps.clone(), 67);
    let (a, b, c) = (random(&mut f, 11, 9), random(&mut f, 9, 10), random(&mut f, 10, 5));
    let t_value = f.t();
    let (ab, abc) = (product(&a, &b, &t_value), product(&product(&a, &b, &t_value), &c, &t_value));
    let left = encrypt(&mut f, &first, Side::Left, &[a]);
    let right = encrypt(&mut f, &first, Side::Right, &[b]);
    let last = encrypt(&mut f, &second, Side::Right, std::slice::from_ref(&c));
    let made = first.multiply(&f.evaluator, &choices, &left, &right).unwrap();
    assert_eq!(decrypt(&f, &first, &made)[0], ab);
    let apply = |f: &Fixture<S>, x: &Ct<S>| {
        map.prepare(&f.evaluator, f.evaluator.level(x)).unwrap().apply(&f.evaluator, x).unwrap()
    };
    let again: Vec<Ct<S>> = made.iter().map(|x| apply(&f, x)).collect();
    let all = second.multiply(&f.evaluator, &choices, &again, &last).unwrap();
    assert_eq!(decrypt(&f, &second, &all)[0], abc);

    // The map takes matrices that were packed as they are: sigma on ciphertexts.
    if packing.rows() >= 11 {
        let plain = packing.pack_plainly(&[ab]);
        let plain = f.encrypt(&plain);
        let again = apply(&f, &plain);
        let all = second.multiply(&f.evaluator, &choices, &[again], &last).unwrap();
        assert_eq!(decrypt(&f, &second, &all), [abc]);
    }
}

#[test]
fn products_of_three_matrices() {
    chains::<Bgv>("65537", MatrixPacking::square(SHAPE, 8).unwrap());
    chains::<Bgv>("65537", MatrixPacking::doubled(SHAPE, 16).unwrap());
    chains::<Bfv>("65537", MatrixPacking::doubled(SHAPE, 8).unwrap());
    chains::<Bgv>(T128, MatrixPacking::square(SHAPE, 16).unwrap());
}

/// tau on ciphertexts: B C as right factor of A (B C).
#[test]
fn a_product_becomes_a_right_factor() {
    for packing in [MatrixPacking::square(SHAPE, 8).unwrap(), MatrixPacking::doubled(SHAPE, 8).unwrap()] {
        let beside = [1, packing.copies()];
        let [first, second] = [[9, 4, 6], [3, 9, 6]].map(|shape| MatrixPlan::new(packing, shape, 1, beside).unwrap());
        let map = first.chain::<BigInt>(&second, Side::Right).unwrap();
        let choices = MatrixChoices::REUSED;
        let steps = first.rotations(&choices).and(&map.rotations(map.baby_steps()));
        let mut f: Fixture<Bgv> = made("65537", 3, 2, steps, 68);
        let (b, c, a) = (random(&mut f, 9, 4), random(&mut f, 4, 6), random(&mut f, 3, 9));
        let t = f.t();
        let expected = product(&a, &product(&b, &c, &t), &t);
        let left = encrypt(&mut f, &first, Side::Left, &[b]);
        let right = encrypt(&mut f, &first, Side::Right, &[c]);
        let made = first.multiply(&f.evaluator, &choices, &left, &right).unwrap();
        let level = f.evaluator.level(&made[0]);
        let prepared = map.prepare(&f.evaluator, level).unwrap();
        let again: Vec<_> = made.iter().map(|x| prepared.apply(&f.evaluator, x).unwrap()).collect();
        let last = encrypt(&mut f, &second, Side::Left, &[a]);
        let all = second.multiply(&f.evaluator, &choices, &last, &again).unwrap();
        assert_eq!(decrypt(&f, &second, &all), [expected]);
    }
}

/// ePrint 2023/593, section 3.1: three keys, relinearisation included, where hoisting has about 2d; and U_sigma has
/// 2d - 1 diagonals, U_tau d.
#[test]
fn keys_and_diagonals_are_counted() {
    let d = 16;
    let packing = MatrixPacking::square(SHAPE, d).unwrap();
    let keys = |choices: MatrixChoices| 1 + packing.rotations(&choices).by.len();
    assert_eq!([MatrixChoices::REUSED, MatrixChoices::HOISTED].map(keys), [3, 2 * d - 1]);
    assert_eq!(keys(MatrixChoices::mixed(4)), 1 + 2 * 4);
    assert_eq!(keys(MatrixChoices::for_keys(&packing, 8)), 1 + 2 * 4);
    assert_eq!(keys(MatrixChoices::for_keys(&packing, 1000)), 2 * d - 1);
    let diagonals = |side| packing.map::<BigInt>(side).unwrap().diagonals();
    assert_eq!([Side::Left, Side::Right].map(diagonals), [2 * d - 1, d]);
}

/// Three keys multiply, and those that serve the product's level only are smaller.
#[test]
fn keys_of_a_plan_are_as_few_and_as_short_as_can_be() {
    for (packing, whole) in [(MatrixPacking::square(SHAPE, 8), 2), (MatrixPacking::doubled(SHAPE, 8), 0)] {
        let plan = MatrixPlan::new(packing.unwrap(), [11, 9, 13], 1, [2, 2]).unwrap();
        let mut f: Fixture<Bgv> = made("65537", 1, 1, Rotations::default(), 70);
        let case = case(&mut f, plan);
        let left = encrypt(&mut f, &plan, Side::Left, &case.left);
        let right = encrypt(&mut f, &plan, Side::Right, &case.right);
        let level = plan.levels(&f.evaluator, &left[0], &right[0]).unwrap().product;
        for choices in [MatrixChoices::REUSED, MatrixChoices::HOISTED] {
            let keys = plan.generate_keys(&f.context, &f.secret, &choices, level, &mut f.randomness).unwrap();
            let all = 1 + plan.rotations(&choices).by.len();
            assert_eq!(keys.iter().len(), all);
            let params = f.context.params().rlwe();
            let long = keys.iter().filter(|key| key.part().is_whole(params)).count();
            if choices == MatrixChoices::REUSED {
                let expected = if level < left[0].level() { whole } else { all };
                assert_eq!((all, long), (3, expected));
            }
            let evaluator = Evaluator::new(&f.context, Some(Arc::new(keys)));
            let product = plan.multiply(&evaluator, &choices, &left, &right).unwrap();
            assert_eq!(decrypt(&f, &plan, &product), case.products);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    for [rows, inner, columns, window] in
        [[8, 3, 8, 8], [8, 8, 9, 8], [32, 8, 8, 32], [8, 8, 2, 4], [0, 1, 1, 1], [6, 3, 2, 4]]
    {
        let refused = MatrixPacking::new(SHAPE, rows, inner, columns, window).unwrap_err();
        assert_eq!(refused.kind(), "shape", "{refused}");
    }
    let packing = MatrixPacking::square(SHAPE, 8).unwrap();
    assert!(MatrixPlan::new(packing, [1, 1, 1], 17, [1, 1]).is_err());
    assert!(MatrixPlan::new(packing, [1, 0, 1], 1, [1, 1]).is_err());
    assert!(MatrixPlan::new(packing, [1, 1, 1], usize::MAX, [2, usize::MAX]).is_err());
    let plan = MatrixPlan::new(packing, [8, 8, 8], 1, [1, 1]).unwrap();
    assert!(plan.slots(Side::Left, &[Matrix::new(7, 8, vec![BigInt::from(1); 56]).unwrap()]).is_err());
    assert!(plan.slots::<BigInt>(Side::Left, &[]).is_err());
    assert!(plan.products::<BigInt>(&[Vec::new()]).is_err());
    let mut f: Fixture<Bgv> = made("65537", 1, 1, Rotations::by([1]), 69);
    let case = case(&mut f, plan);
    let left = encrypt(&mut f, &plan, Side::Left, &case.left);
    let refused = plan.multiply(&f.evaluator, &MatrixChoices::HOISTED, &left, &left).err();
    assert_eq!(refused.map(|e| e.kind()), Some("missing_key"));
    let refused = plan.multiply(&f.evaluator, &MatrixChoices::HOISTED, &left, &[]).err();
    assert_eq!(refused.map(|e| e.kind()), Some("shape"));
}
