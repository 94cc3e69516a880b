//! Several devices at once: ciphertexts spread over them, with keys on each and with keys where there is room.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::runs::{params, say};
use synchromesh_cuda::{Cuda, Emulated, Order};
use synchromesh_ring::{Backend, Cpu, Ntt, Poly};
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::{
    Ciphertext, Context, Error, EvaluationKeys, LevelPlans, PublicKey, Randomness, SecretKey, Source, Spread,
};

const DEVICES: usize = 3;
const TURNS: [usize; 4] = [3, 9, 27, 81];

fn words<B: Backend>(context: &Context<B>, ct: &Ciphertext<B, Ntt>) -> Vec<u64> {
    ct.parts().iter().flat_map(|part| part.to_words(context.backend()).expect("words")).collect()
}

#[test]
fn operations_are_spread_over_devices_with_the_bits_of_one() {
    let params = params(&[50, 40, 40], &[55, 55], &[], "65537");
    let plans = LevelPlans::of(&params, 2).expect("plans");
    let cpu = Context::with_backend(params.clone(), Cpu::open(Arc::clone(params.ring())).expect("a CPU"));
    let mut randomness = Randomness::insecure_from_number(3);
    let secret = SecretKey::generate(&cpu, &mut randomness).expect("a key");
    let public = PublicKey::generate(&cpu, &secret, &mut randomness).expect("a key");
    let keys = EvaluationKeys::generate(
        &cpu,
        &secret,
        TURNS.map(Source::Galois),
        plans.at(params.top_level()),
        &mut randomness,
    )
    .expect("keys");
    let top = params.top_level();
    let primes = params.level(top).expect("a level");
    let message = Poly::from_words(cpu.backend(), primes, &vec![1; primes.len() * params.n()]).expect("upload");
    let mut item = |i: usize| {
        let ct = public.encrypt::<Ntt>(&cpu, &message, top, &mut randomness).expect("a ciphertext");
        (ct, TURNS[i % TURNS.len()])
    };
    let items: Vec<_> = (0..12).map(&mut item).collect();
    let each = 2 * keys.iter().map(|key| key.part().bytes(params.n())).max().expect("a key");
    let open = |_| {
        let device = Cuda::new(Arc::clone(params.ring()), Emulated::new(Order::Ascending), None).expect("a device");
        Context::with_backend(params.clone(), device)
    };
    let spread = Spread::new((0..DEVICES).map(open).collect()).expect("devices");
    // Room for all keys, and for two of four.
    for (room, most) in [(10 * each, DEVICES), (2 * each, 1)] {
        let (places, placed) = spread.place(&cpu, &keys, &[room; DEVICES]).expect("keys");
        let held: Vec<usize> = placed.iter().map(|keys| keys.iter().len()).collect();
        assert_eq!(held.iter().sum::<usize>(), most * TURNS.len(), "{held:?}");
        let switching: Vec<_> =
            placed.into_iter().map(|keys| KeySwitching::new(Arc::new(keys), plans.clone())).collect();
        let used = std::sync::Mutex::new(BTreeSet::new());
        let turned = spread.map::<_, _, Error>(
            &items,
            |(_, g)| places.with(&[Source::Galois(*g)]),
            |device, (ct, g)| {
                used.lock().expect("a lock").insert(device);
                let context = &spread.contexts()[device];
                let there = ct.transfer(&cpu, context)?;
                switching[device].automorphism(context, &there, *g)?.transfer(context, &cpu)
            },
        );
        let turned = turned.expect("rotations");
        let alone =
            KeySwitching::new(Arc::new(keys.and(&EvaluationKeys::new(keys.target())).expect("keys")), plans.clone());
        for ((ct, g), turned) in items.iter().zip(&turned) {
            let expected = alone.automorphism(&cpu, ct, *g).expect("a rotation");
            assert!(words(&cpu, turned) == words(&cpu, &expected), "g = {g}");
        }
        let used = used.into_inner().expect("a lock").len();
        assert!(used > 1, "one device did all");
        say(&format!("12 rotations on {used} of {DEVICES} devices, keys {held:?}: the bits of the CPU"));
        let nowhere = spread.map::<_, (), Error>(&items, |_| BTreeSet::from([DEVICES]), |_, _| Ok(()));
        assert!(nowhere.is_err_and(|error| error.to_string().contains("item 0")));
    }
}
