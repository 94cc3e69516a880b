//! CKKS over chains whose levels are no prefixes of one another, judged by decryption.

use crate::ckks_fixture::{chain, close, fixture, literal, plus, rotated, times, values, zip};
use synchromesh::ckks::{Mode, Params, ParamsLiteral};
use synchromesh::rlwe::{PrimeSwitching, Schedule};

fn switched(log_n: u32, (mu, kappa): (usize, usize), log_scale: u32, depth: usize, p: &[u32]) -> ParamsLiteral {
    let chain = PrimeSwitching::new(mu, kappa).unwrap().chain(log_scale + 15, log_scale, depth, 60).unwrap();
    ParamsLiteral { schedule: chain.schedule, ..literal(log_n, log_scale, &chain.q_bits, p) }
}

#[test]
fn chains_of_mostly_large_primes() {
    for (split, log_scale, depth) in
        [((1, 2), 30, 5), ((2, 3), 36, 7), ((1, 3), 20, 4), ((4, 5), 40, 12), ((3, 5), 36, 6)]
    {
        // Slots of 2^-20 are below the noise of a 20-bit scale.
        let log_scale = if log_scale == 20 { 20 } else { log_scale };
        chain(ParamsLiteral { omega: 3, ..switched(11, split, log_scale, depth, &[60, 60, 60, 60]) }, 20);
    }
}

#[test]
fn scales_stay_near_the_one_asked_for_and_are_exact() {
    for ((mu, kappa), log_scale) in [((1, 2), 30), ((2, 3), 36), ((4, 5), 40), ((9, 10), 45)] {
        let params = Params::new(switched(13, (mu, kappa), log_scale, 40, &[60; 3])).unwrap();
        for level in 1..=40 {
            let [here, below] = [level, level - 1].map(|l| params.scale(l).unwrap());
            assert!((below.log2() - f64::from(log_scale)).abs() < 0.01, "({mu}, {kappa}): {below} at level {level}");
            let [active, lower] = [level, level - 1].map(|l| params.rlwe().level(l).unwrap());
            let mut expected = here.times(here).unwrap();
            for i in active.without(lower).iter() {
                let prime = synchromesh::ckks::Scale::product([params.rlwe().ring().modulus(i).value()]).unwrap();
                expected = expected.over(&prime).unwrap();
            }
            for i in lower.without(active).iter() {
                let prime = synchromesh::ckks::Scale::product([params.rlwe().ring().modulus(i).value()]).unwrap();
                expected = expected.times(&prime).unwrap();
            }
            assert_eq!(below, &expected);
        }
        let text = serde_json::to_string(params.literal()).unwrap();
        assert_eq!(Params::new(serde_json::from_str(&text).unwrap()).unwrap(), params);
    }
}

#[test]
fn any_level_reaches_any_lower_one_in_both_modes() {
    for mode in [Mode::Auto, Mode::Manual] {
        let mut f = fixture(ParamsLiteral { mode, ..switched(11, (2, 3), 36, 7, &[60, 60, 60]) }, 30);
        let n = f.context.params().slots();
        let (x, y) = (values(n, 1.0, 31), values(n, 1.0, 32));
        for from in 1..=7 {
            let encoded = f.context.encode_complex(&x, 1.0).unwrap();
            let cx = f.context.encrypt_at(&f.public, &encoded, from, &mut f.randomness).unwrap();
            for to in 0..from {
                let low = f.evaluator.mod_switch_to(&cx, to).unwrap();
                assert_eq!(low.level(), to);
                close(&f, &low, &x, "switched");
                let encoded = f.context.encode_complex(&y, 1.0).unwrap();
                let cy = f.context.encrypt_at(&f.public, &encoded, to, &mut f.randomness).unwrap();
                if low.scale() == cy.scale() {
                    close(&f, &f.evaluator.add(&cx, &cy).unwrap(), &zip(&x, &y, plus), "a sum across levels");
                }
            }
            let product = f.evaluator.mul(&cx, &cx).unwrap();
            let product = if mode == Mode::Manual { f.evaluator.rescale(&product).unwrap() } else { product };
            assert_eq!(product.level(), from - 1);
            close(&f, &product, &zip(&x, &x, times), "a product");
            let three = f.evaluator.square_no_relin(&cx).unwrap();
            let two = f.evaluator.relinearize(&f.evaluator.rescale(&three).unwrap()).unwrap();
            close(&f, &two, &zip(&x, &x, times), "rescaled alone, then relinearised");
        }
    }
}

#[test]
fn a_second_secret_key_below_the_leading_levels() {
    for leading in [1, 2] {
        let mut q = vec![40; 9];
        q[0] = 55;
        let mut plain = ParamsLiteral { omega: 5, ..literal(11, 40, &q, &[50, 50]) };
        plain.schedule = Schedule::default().with_second_key(leading);
        let params = Params::new(plain.clone()).unwrap();
        assert!(params.second_plan().unwrap().digits.len() < params.plan().digits.len());
        chain(plain, 50);
        let mut both = ParamsLiteral { omega: 5, ..switched(11, (2, 3), 36, 7, &[58, 58]) };
        both.schedule = both.schedule.with_second_key(leading);
        chain(both, 60);
    }
    // Rotations and sums across the change of keys.
    let mut literal = literal(11, 40, &[55, 40, 40, 40, 40], &[50, 50]);
    literal.schedule = literal.schedule.with_second_key(2);
    let mut f = fixture(literal, 70);
    let x = values(f.context.params().slots(), 1.0, 71);
    let high = f.encrypt(&x, 1.0);
    let low = f.evaluator.mod_switch_to(&high, 1).unwrap();
    assert_ne!(high.inner().key(), low.inner().key());
    for ct in [&high, &low] {
        close(&f, &f.evaluator.rotate(ct, 5).unwrap(), &rotated(&x, 5), "a rotation");
        close(&f, &f.evaluator.add(ct, &low).unwrap(), &zip(&x, &x, plus), "a sum");
        close(&f, &f.evaluator.mul(&low, ct).unwrap(), &zip(&x, &x, times), "a product");
    }
    let three = f.evaluator.square_no_relin(&f.evaluator.mod_switch(&high).unwrap()).unwrap();
    close(&f, &f.evaluator.relinearize(&f.evaluator.rescale(&three).unwrap()).unwrap(), &zip(&x, &x, times), "late");
}

#[test]
fn schedules_that_make_no_scale_are_refused() {
    let good = switched(11, (2, 3), 36, 4, &[60]);
    let mut wrong = good.clone();
    wrong.schedule.levels[1] = wrong.schedule.levels[2].clone();
    assert_eq!(Params::new(wrong).unwrap_err().kind(), "params");
    let both = ParamsLiteral { level_limbs: vec![1], ..good.clone() };
    assert_eq!(Params::new(both).unwrap_err().kind(), "params");
    let none = ParamsLiteral { schedule: Schedule::of(vec![vec![]]), ..good };
    assert_eq!(Params::new(none).unwrap_err().kind(), "params");
}
