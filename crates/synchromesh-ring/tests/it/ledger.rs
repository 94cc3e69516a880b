//! The ledger: what a device is asked for, in the units its time is linear in, and nothing changed on the way.

use std::collections::BTreeSet;
use std::sync::Arc;

use synchromesh_ring::backend::{DigitLimb, GadgetDigits, SlotSum, Stage};
use synchromesh_ring::ledger::{Operation, Work};
use synchromesh_ring::prime::ntt_primes;
use synchromesh_ring::rns::{ConvertSpec, Overflow};
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, ConvertMode, Cpu, Dry, IndexSet, Ledger, Ring, View, ViewMut};
use synchromesh_testing::laws;

/// Two narrow primes, then two wide ones.
fn ring() -> Arc<Ring> {
    let primes = [ntt_primes(40, 10, 2).unwrap(), ntt_primes(55, 10, 2).unwrap()].concat();
    Arc::new(Ring::new(10, &primes).unwrap())
}

fn set(indices: &[usize]) -> IndexSet {
    indices.iter().copied().collect()
}

/// Calls of every stage of a key switch; the words that come out.
fn stages<B: Backend>(backend: &B) -> Vec<u64> {
    let primes = [0, 1, 2, 3];
    let rows: Vec<usize> = (0..8).collect();
    let random = |digit| {
        let mut x = backend.alloc(8).unwrap();
        let (seed, each) = (Seed::from_bytes([9; 32]), [0, 1, 2, 3, 0, 1, 2, 3]);
        backend.uniform(&each, &seed, Purpose::PublicRandomness, digit, ViewMut::new(&mut x, &rows)).unwrap();
        x
    };
    let (mut d, k0, k1, mut out) = (random(0), random(1), random(2), random(3));
    let ones = [1, 1];
    let spec = ConvertSpec::new(backend.ring(), &set(&[0, 1]), &set(&[2, 3]), &ones, &ones, Overflow::Round).unwrap();
    let conversion = backend.conversion(&set(&[0, 1]), &set(&[2, 3]), &spec).unwrap();
    let [src, dst] = [[0, 1], [2, 3]];
    backend.convert(&conversion, View::new(&k0, &src), ViewMut::new(&mut d, &dst), ConvertMode::Replace).unwrap();
    let row4: Vec<usize> = (0..4).collect();
    fn two<'a, B: Backend>(buffer: &'a B::Buffer, rows: &'a [usize]) -> View<'a, B> {
        View { buffer, batch: 2, batch_stride: 4, rows }
    }
    // Digit 0 is coefficients on the last three primes and slots of the input on the first.
    let mut first = vec![DigitLimb::Coefficients; 4];
    first[0] = DigitLimb::Input(5);
    let limbs = [first, vec![DigitLimb::Coefficients; 4]];
    let gadget = GadgetDigits {
        digits: ViewMut { buffer: &mut d, batch: 2, batch_stride: 4, rows: &row4 },
        limbs: &limbs,
        input: Some(&k1),
    };
    let to = ViewMut { buffer: &mut out, batch: 2, batch_stride: 4, rows: &row4 };
    let keys = [two::<B>(&k0, &row4), two::<B>(&k1, &row4)];
    backend.stage(&primes, Stage::GadgetProduct { gadget, keys, out: to, accumulate: false }).unwrap();
    let (mut x, mut y) = (random(4), random(5));
    let ys = vec![View::new(&out, &row4), View::new(&k0, &row4)];
    let sum = SlotSum { x: ViewMut::new(&mut x, &row4), ys, out: Some(ViewMut::new(&mut y, &row4)) };
    backend.stage(&primes, Stage::SlotSums { sums: vec![sum], g: 3 }).unwrap();
    backend.ntt_inverse(&primes, ViewMut { buffer: &mut out, batch: 2, batch_stride: 4, rows: &row4 }).unwrap();
    let (src, dst) = (View::new(&y, &row4), ViewMut::new(&mut x, &row4));
    backend.stage(&primes, Stage::NttInverseInto { src, dst }).unwrap();
    let mut words = vec![0; 16 * 1024];
    backend.download(&out, 0, &mut words[..8 * 1024]).unwrap();
    backend.download(&x, 0, &mut words[8 * 1024..]).unwrap();
    words
}

#[test]
fn nothing_is_changed_and_stages_are_whole() {
    let ledger = Ledger::new(Cpu::open(ring()).unwrap());
    assert_eq!(stages(&ledger), stages(&Cpu::open(ring()).unwrap()));
    let (entries, _) = ledger.take();
    let work = |operation, narrow: bool| entries.get(&(operation, narrow)).map_or([0; 4], |t| t.work.features());
    // Two sources are narrow, two destinations wide: the 64-bit kernel, 4 products, both sources multiplied first.
    assert_eq!((work(Operation::Convert, true), work(Operation::Convert, false)), ([2, 0, 0, 2], [0, 2, 4, 0]));
    assert_eq!(work(Operation::GadgetProduct, true), [2, 3, 4, 0]);
    assert_eq!(work(Operation::GadgetProduct, false), [2, 4, 4, 0]);
    assert_eq!(work(Operation::SlotSums, true), [2, 2, 4, 2]);
    assert_eq!(work(Operation::NttInverse, false), [2, 4, 0, 0]);
    assert_eq!(work(Operation::NttInverseInto, true), [2, 2, 0, 0]);
    // Fused stages are not split into the transforms they consist of.
    assert!(!entries.contains_key(&(Operation::NttForward, true)));
    assert!(entries.values().all(|t| t.seconds > 0.0));
}

#[test]
fn narrow_destinations_take_wide_sources_in_halves() {
    let ledger = Ledger::new(Dry::new(ring()));
    let (from, to, ones) = (set(&[0, 2, 3]), set(&[1]), [1; 3]);
    let spec = ConvertSpec::new(ledger.ring(), &from, &to, &ones, &ones[..1], Overflow::Round).unwrap();
    let conversion = ledger.conversion(&from, &to, &spec).unwrap();
    let (src, mut dst) = (ledger.alloc(3).unwrap(), ledger.alloc(1).unwrap());
    let rows = [0, 1, 2];
    let into = ViewMut::new(&mut dst, &rows[..1]);
    ledger.convert(&conversion, View::new(&src, &rows), into, ConvertMode::Replace).unwrap();
    let work = ledger.take().0;
    let of = |narrow: bool| work[&(Operation::Convert, narrow)].work.features();
    assert_eq!((of(true)[..3].to_vec(), of(false)[..3].to_vec()), (vec![1, 1, 5], vec![2, 0, 0]));
}

#[test]
fn a_dry_ledger_says_the_same_and_counts_live_bytes() {
    let (real, dry) = (Ledger::new(Cpu::open(ring()).unwrap()), Ledger::new(Dry::new(ring())));
    stages(&real);
    stages(&dry);
    let ((real, real_peak), (dry_entries, peak)) = (real.take(), dry.take());
    let work = |e: &synchromesh_ring::ledger::Entries| e.iter().map(|(k, t)| (*k, t.work)).collect::<Vec<_>>();
    assert_eq!(work(&real), work(&dry_entries));
    // Six buffers of eight rows at once.
    assert_eq!((real_peak, peak), (6 * 8 * 8192, 6 * 8 * 8192));
    assert_eq!(dry.take(), (Default::default(), 0));
    assert_eq!(Work::default().features(), [0; 4]);
}

#[test]
fn every_stage_is_written_down_whole_or_by_its_parts() {
    let ledger = Ledger::new(Cpu::open(ring()).unwrap());
    laws::same_stages(&Cpu::open(ring()).unwrap(), &ledger);
    let (entries, _) = ledger.take();
    let operations: BTreeSet<Operation> = entries.keys().map(|(operation, _)| *operation).collect();
    let whole = [
        Operation::GadgetProduct,
        Operation::GadgetProductCoeff,
        Operation::GadgetSums,
        Operation::SlotSums,
        Operation::SumInto,
        // Products with slots that repeat.
        Operation::InnerProduct,
        Operation::NttInverseInto,
        Operation::Tensor,
    ];
    // Digits brought to slots, a product on top of slots, a sum that is turned, several conversions, and a tensor product of
    // slots.
    let parts = [
        Operation::NttForward,
        Operation::NttInverse,
        Operation::Copy,
        Operation::Add,
        Operation::Convert,
        Operation::ConvertAdd,
        Operation::PermuteCoeff,
        Operation::Mul,
        Operation::MulAcc,
    ];
    let expected = whole.into_iter().chain(parts).chain([Operation::Uniform]);
    assert_eq!(operations, expected.collect());
}
