//! Random circuits that go between BFV and BGV and multiply one by the other (ePrint 2021/204, appendix A): what is not
//! refused decrypts, and its error is within its certificate.

use crate::joined::joined;
use crate::oracle::{Ct, Device, Fixture, Model, T128};
use synchromesh::Result;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::{Bgv, Bridge, Factors};
use synchromesh_testing::random::SplitMix;

/// A ciphertext of either scheme.
enum Either {
    Bfv(Ct<Bfv>),
    Bgv(Ct<Bgv>),
}
use Either::{Bfv as InBfv, Bgv as InBgv};

/// Both schemes and the bridge.
struct Both {
    bfv: Fixture<Bfv>,
    bgv: Fixture<Bgv>,
    bridge: Bridge<Device>,
}

/// What a run came to.
#[derive(Debug, Default)]
struct Tally {
    computed: usize,
    refused: usize,
    crossed: usize,
}

impl Both {
    /// A random step: its result, its model, and whether both schemes had a part in it.
    fn step(&self, pool: &[(Either, Model)], random: &mut SplitMix) -> (Result<Either>, Model, bool) {
        let mut pick = || &pool[random.below(pool.len() as u64) as usize];
        let ((x, a), (y, b)) = (pick(), pick());
        let (sum, product) = (self.bfv.add(a, b), self.bfv.mul(a, b));
        let choice = random.below(3);
        match (x, y) {
            (InBfv(x), InBfv(y)) => match choice {
                0 => (self.bfv.evaluator.add(x, y).map(InBfv), sum, false),
                1 => (self.bfv.evaluator.mul(x, y).map(InBfv), product, false),
                _ => (self.bridge.to_bgv(x).map(InBgv), a.clone(), true),
            },
            (InBgv(x), InBgv(y)) => match choice {
                0 => (self.bgv.evaluator.add(x, y).map(InBgv), sum, false),
                1 => (self.bgv.evaluator.mul(x, y).map(InBgv), product, false),
                _ => {
                    let level = random.below(x.level() as u64 + 1) as usize;
                    (self.bridge.to_bfv_at(x, level).map(InBfv), a.clone(), true)
                }
            },
            (InBfv(x), InBgv(y)) | (InBgv(y), InBfv(x)) => {
                let three = self.bridge.mul(x, y);
                match choice {
                    0 => (three.map(InBfv), product, true),
                    _ => (three.and_then(|p| self.bfv.evaluator.relinearize(&p)).map(InBfv), product, true),
                }
            }
        }
    }

    fn judge(&self, value: &Either, model: &Model) {
        match value {
            InBfv(x) => self.bfv.judge(x, model),
            InBgv(y) => self.bgv.judge(y, model),
        };
    }
}

/// `count` circuits for each t and way of tracking factors.
fn circuits(count: usize, seed: u64) -> Tally {
    let (mut tally, mut random) = (Tally::default(), SplitMix::new(seed));
    for t in ["2", "257", "65537", "1073479681", T128] {
        for factors in [Factors::PerLevel, Factors::Ghs] {
            let (bfv, bgv, bridge) = joined(t, factors, seed);
            let mut both = Both { bfv, bgv, bridge };
            for _ in 0..count {
                let mut pool = Vec::new();
                for i in 0..4 {
                    let model = both.bfv.random();
                    let level = 2 - random.below(2) as usize;
                    let ct = match i % 2 {
                        0 => InBfv(both.bfv.encrypt_at(&model, level)),
                        _ => InBgv(both.bgv.encrypt_at(&model, level)),
                    };
                    pool.push((ct, model));
                }
                for _ in 0..8 {
                    let (result, model, crosses) = both.step(&pool, &mut random);
                    match result {
                        Ok(value) => {
                            tally.computed += 1;
                            tally.crossed += usize::from(crosses);
                            both.judge(&value, &model);
                            let three = matches!(&value, InBfv(x) if x.components() == 3);
                            if !three {
                                pool.push((value, model));
                            }
                        }
                        Err(error) => {
                            assert!(["noise", "level"].contains(&error.kind()), "t = {t}: {error}");
                            tally.refused += 1;
                        }
                    }
                }
            }
        }
    }
    tally
}

#[test]
fn mixed_circuits_decrypt_or_are_refused() {
    let tally = circuits(2, 5);
    assert!(tally.computed > 80 && tally.crossed > 40 && tally.refused > 2, "{tally:?}");
}

#[test]
#[ignore = "a thousand circuits; cargo xtask verify runs them"]
fn a_thousand_mixed_circuits_decrypt_or_are_refused() {
    let tally = circuits(100, 6);
    assert!(tally.computed > 4_000 && tally.crossed > 2_000, "{tally:?}");
}
