//! Every key-switching method of the engine at small parameters, and what a device must do with each.

use std::sync::Arc;

use synchromesh::cost::{OneSwitch, Op, Shape};
use synchromesh_cuda::{Cuda, Device, Timed};
use synchromesh_ring::rns::Overflow;
use synchromesh_ring::{Backend, Cpu, Ring};
use synchromesh_rlwe::domain::MixedPoly;
use synchromesh_rlwe::{Context, LevelPlans, Params, SwitchPlan};

use super::{Run, params, params_at};

/// A method at parameters that it fits.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) params: Params,
    pub(crate) plans: LevelPlans,
}

/// All methods: hybrid with every number of digits, folded and not, by every overflow rule, GHS, double decomposition,
/// linear, radix, level-aware.
pub(crate) fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let mut add = |name: String, params: &Params, plans: LevelPlans| {
        all.push(Case { name, params: params.clone(), plans });
    };
    for t in ["1", "65537"] {
        let params = params(&[50, 60, 45, 36, 61], &[61, 60, 59], &[], t);
        for omega in [2, 3, 5] {
            let plan = SwitchPlan::hybrid(&params, omega).expect("a plan");
            add(format!("hybrid, {omega} digits, t = {t}"), &params, plan.clone().into());
            add(format!("hybrid unfolded, {omega} digits, t = {t}"), &params, plan.unfolded().into());
        }
        for overflow in [Overflow::Fast, Overflow::Floor, Overflow::HpsFloor, Overflow::HpsRound, Overflow::Behz] {
            let down = if overflow == Overflow::Behz { Overflow::Behz } else { Overflow::Round };
            let plan = SwitchPlan::hybrid(&params, 3).expect("a plan").with_overflow(overflow, down);
            add(format!("hybrid, {overflow:?}, t = {t}"), &params, plan.into());
        }
    }
    let extended = params(&[50, 48, 45], &[61, 61, 61], &[60; 4], "65537");
    for (name, plan) in [
        ("ghs", SwitchPlan::ghs(&extended)),
        ("double, 3 and 2 digits", SwitchPlan::double(&extended, 3, 2)),
        ("double, 2 and 3 digits", SwitchPlan::double(&extended, 2, 3)),
        ("linear", SwitchPlan::linear(&extended, 1)),
    ] {
        add(name.to_owned(), &extended, plan.expect("a plan").into());
    }
    let radix = params(&[50, 45], &[], &[], "65537");
    add("bv, radix 2^13".to_owned(), &radix, SwitchPlan::bv(&radix, 13).expect("a plan").into());
    let lost = params(&[50, 45, 55, 50, 48, 47], &[], &[], "1");
    add("level-aware".to_owned(), &lost, LevelPlans::level_aware(&lost).expect("plans"));
    all
}

/// Methods at the shape that is measured: this degree, so many primes of 40 bits, one digit for eight of them or one for each.
pub(crate) fn measured(log_n: u32, count: usize) -> Vec<Case> {
    let shape = format!("N = 2^{log_n}, {count} primes");
    let (q, digits) = (vec![40; count], count.div_ceil(8));
    let wide = params_at(log_n, &q, &[60; 6], &[], "1");
    let narrow = params_at(log_n, &q, &[60], &[60; 8], "1");
    let ghs = params_at(log_n, &q, &vec![60; (40 * count).div_ceil(60) + 1], &[], "1");
    let case = |name: &str, params: &Params, plan: LevelPlans| Case {
        name: format!("{name}, {shape}"),
        params: params.clone(),
        plans: plan,
    };
    vec![
        case("hybrid, 8 primes a digit", &wide, SwitchPlan::hybrid(&wide, digits).expect("a plan").into()),
        case("hybrid, 1 prime a digit", &narrow, SwitchPlan::hybrid(&narrow, count).expect("a plan").into()),
        case("linear", &narrow, SwitchPlan::linear(&narrow, 1).expect("a plan").into()),
        case("ghs", &ghs, SwitchPlan::ghs(&ghs).expect("a plan").into()),
    ]
}

/// What kernels one relinearisation launches, and how long each takes by the device's clock, the longest first.
pub(crate) fn kernel_times<D: Device>(case: &Case, open: impl Fn(&Arc<Ring>) -> Cuda<D>) -> Vec<(String, Timed)> {
    let shape = Shape { op: Op::Relin, input_ntt: true, output_ntt: true, batch: 1 };
    let switch = one_switch(case, open(case.params.ring()).timing(), shape);
    let device = switch.context().backend();
    // Conversions and keys are prepared by the first one.
    for _ in 0..2 {
        drop(device.take_times());
        drop(switch.run_one(0).expect("a switch"));
    }
    let times = device.take_times().into_iter().map(|(kernel, time)| (kernel.to_string_lossy().into_owned(), time));
    let mut times: Vec<_> = times.collect();
    times.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    times
}

/// That a device switches, rotates, hoists and decrypts with the bits of the CPU.
pub(crate) fn has_the_bits_of_the_cpu<B: Backend>(case: &Case, open: impl FnOnce(&Arc<Ring>) -> B) {
    let Case { name, params, plans } = case;
    let cpu = Run::new(Cpu::open(Arc::clone(params.ring())).expect("a CPU"), params, plans);
    let device = Run::new(open(params.ring()), params, plans);
    assert!(cpu.words == device.words, "{name}: the device differs from the CPU");
}

/// One switch at the top level, of a batch.
fn one_switch<B: Backend>(case: &Case, backend: B, shape: Shape) -> OneSwitch<B> {
    let (params, top) = (&case.params, case.params.top_level());
    let primes = params.level(top).expect("a level").clone();
    let context = Context::with_backend(params.clone(), backend);
    OneSwitch::new(&context, case.plans.at(top), [&primes, &primes], shape).expect("a switch")
}

fn words<B: Backend>(parts: &[MixedPoly<B>; 2], backend: &B) -> Vec<u64> {
    let words = |part: &MixedPoly<B>| {
        let coefficients = part.coeff.to_words(backend).expect("download");
        [coefficients, part.ntt.to_words(backend).expect("download")].concat()
    };
    parts.iter().flat_map(words).collect()
}

/// That a batch of three ciphertexts in one launch a step, replayed, is what the CPU makes of them one by one, in as many
/// launches as one ciphertext takes, and that the memory comes back. The launches, and the launches of one by one.
pub(crate) fn merges<D: Device>(case: &Case, open: impl Fn(&Arc<Ring>) -> Cuda<D>) -> [usize; 2] {
    let mut launches = [0; 2];
    for (op, ntt) in [(Op::Rotate, true), (Op::Relin, false)] {
        let shape = Shape { op, input_ntt: ntt, output_ntt: ntt, batch: 3 };
        let cpu = one_switch(case, Cpu::open(Arc::clone(case.params.ring())).expect("a CPU"), shape);
        let switch = Arc::new(one_switch(case, open(case.params.ring()), shape));
        let device = switch.context().backend();
        let record = |batch: usize| {
            let run = Arc::clone(&switch);
            device.record(batch, move |i| run.run_one(i)).unwrap_or_else(|e| panic!("{}: {e}", case.name))
        };
        let alone = record(1);
        let before = device.memory_in_use();
        let batch = record(3);
        batch.replay().expect("a replay");
        for (i, parts) in batch.results().iter().enumerate() {
            let expected = words(&cpu.run_one(i).expect("a switch"), cpu.context().backend());
            assert!(words(parts, device) == expected, "{}: ciphertext {i} of a batch", case.name);
        }
        launches[0] += batch.launches();
        launches[1] += 3 * alone.launches();
        drop(batch);
        assert_eq!(device.memory_in_use(), before, "{}: memory that a recording took", case.name);
    }
    launches
}
