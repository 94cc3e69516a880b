//! A BFV and a BGV fixture of one secret key, with the bridge between them.
#![allow(unreachable_pub, missing_docs, reason = "shared by the files of one test program")]

use std::sync::Arc;

use synchromesh::bfv::Bfv;
use synchromesh::bgv::{Bgv, Bridge, Factors, Levels, Management, Rotations, bridged_literal};
use synchromesh::exact::{Context, Evaluator, Params};
use synchromesh::rlwe::Randomness;
use synchromesh::rlwe::ring::{Counting, Cpu};
use synchromesh_testing::random::SplitMix;

use crate::oracle::{self, Device, Fixture, deep, fixture};

/// A BFV fixture, the BGV fixture of the same secret with keys of its own, and the bridge between them.
pub fn joined(t: &str, factors: Factors, seed: u64) -> (Fixture<Bfv>, Fixture<Bgv>, Bridge<Device>) {
    let bits = oracle::big(t).bits() as u32 + 28;
    let bfv: Fixture<Bfv> = fixture(deep(10, t, bits + 20, bits, 2), &Rotations::none(), seed);
    let params = Params::<Bgv>::new(bridged_literal(bfv.context.params())).unwrap();
    let cpu = Cpu::open(Arc::clone(params.rlwe().ring())).unwrap();
    let management = Management { factors, levels: Levels::Certified };
    let context = Context::managed_on(params, Counting::new(cpu), management).unwrap();
    let bridge = Bridge::new(&bfv.context, &context).unwrap();
    let secret = bridge.secret_to_bgv(&bfv.secret).unwrap();
    let mut randomness = Randomness::insecure_from_number(seed + 1000);
    let public = synchromesh::rlwe::PublicKey::generate(context.rlwe(), &secret, &mut randomness).unwrap();
    let keys = context.generate_evaluation_keys(&secret, &Rotations::none(), &mut randomness).unwrap();
    let evaluator = Evaluator::new(&context, Some(Arc::new(keys)));
    let bgv = Fixture { context, secret, public, evaluator, randomness, random: SplitMix::new(seed) };
    (bfv, bgv, bridge)
}
