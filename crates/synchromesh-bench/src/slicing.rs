//! Whether the slicing that is chosen for a shape is the fastest: the best of each size of block measured beside it.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use synchromesh::bgv::{Ciphertext, Context, Evaluator, Params};
use synchromesh::circuits::{Arithmetic, MatrixChoices, MatrixPlan, Side, Slicing};
use synchromesh_rlwe::{EvaluationKeys, Randomness};

use crate::Error;
use crate::device::Device;
use crate::matmul::{self, Request};

/// Inner sides of the blocks that are compared (ePrint 2023/593, Table 6, and half of its least).
const BLOCKS: [usize; 4] = [16, 32, 64, 128];

/// Runs of each slicing, in turn with the others; the least counts, which whatever else runs disturbs least.
const RUNS: usize = 3;

/// The shapes R, K, C that choices are judged on: cubes, the sizes of the papers, long, wide and flat ones, odd ones.
pub const SHAPES: [[usize; 3]; 20] = [
    [5, 7, 3],
    [16, 16, 16],
    [32, 32, 32],
    [33, 65, 17],
    [64, 64, 64],
    [96, 96, 96],
    [128, 128, 128],
    [100, 130, 64],
    [192, 192, 192],
    [128, 128, 1],
    [1, 128, 128],
    [20, 300, 10],
    [300, 20, 10],
    [10, 20, 300],
    [64, 256, 64],
    [256, 64, 256],
    [128, 32, 128],
    [48, 160, 80],
    [200, 100, 50],
    [256, 256, 256],
];

/// A slicing that took so many times as long as the fastest is not measured again.
const FAR: f64 = 1.5;

/// One slicing as measured.
#[derive(Debug, Clone, Serialize)]
pub struct Slice {
    /// Rows, inner side and columns of its blocks.
    pub block: [usize; 3],
    /// Blocks in a ciphertext.
    pub copies: usize,
    /// The cost by which it is chosen, in hoisted rotations.
    pub cost: f64,
    /// Seconds to encrypt both factors and multiply them.
    pub seconds: f64,
}

/// A shape with the slicing that is chosen and the fastest.
#[derive(Debug, Clone, Serialize)]
pub struct Choice {
    /// R, K, C.
    pub shape: [usize; 3],
    /// What is chosen.
    pub chosen: Slice,
    /// What was fastest.
    pub best: Slice,
    /// Seconds of the first over those of the second.
    pub ratio: f64,
    /// All that were measured, the chosen one first.
    pub measured: Vec<Slice>,
}

/// A slicing with everything that a run of it takes.
struct Candidate {
    plan: MatrixPlan,
    cost: f64,
    evaluator: Evaluator,
}

/// Measures the choice for a shape at N = 2^`log_n`, with `window` rotations made from one decomposition: keys for more take
/// longer to make than products.
///
/// # Errors
/// [`Error::Request`] for a modulus that does not fit, or a scheme's refusal.
pub fn measure(shape: [usize; 3], log_n: u32, t_bits: u32, window: usize) -> Result<Choice, Error> {
    let choices = MatrixChoices::mixed(window);
    let request = Request {
        d: 16,
        size: 16,
        t_bits,
        log_n,
        width: 60,
        choices,
        doubled: true,
        check: false,
        runs: matmul::RUNS,
        device: Device::Cpu,
    };
    let t = matmul::modulus(&request)?;
    let context = Context::new(Params::new(matmul::literal(&request, &t)?)?)?;
    let mut randomness = Randomness::insecure_from_number(6);
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let tensor = <Evaluator as Arithmetic>::COST.tensor;
    let slots = Evaluator::new(&context, None).slots()?;
    let slicing = Slicing { slots, batch: 1, masks: false, chain: None, tensor };
    let mut candidates: Vec<Candidate> = Vec::new();
    for (at, (plan, cost)) in slicing.candidates(shape)?.into_iter().enumerate() {
        let inner = plan.packing().inner();
        let first = candidates.iter().all(|other| other.plan.packing().inner() != inner);
        if at > 0 && !(BLOCKS.contains(&inner) && first) {
            continue;
        }
        let top = context.params().top_level();
        let keys = plan.generate_keys(&context, &secret, &choices, top, &mut randomness)?;
        let keys: Arc<EvaluationKeys> = Arc::new(keys);
        candidates.push(Candidate { plan, cost, evaluator: Evaluator::new(&context, Some(keys)) });
    }
    let mut seconds = vec![f64::INFINITY; candidates.len()];
    for _ in 0..RUNS {
        // One that was far behind before stays so.
        let far = FAR * seconds.iter().copied().fold(f64::INFINITY, f64::min);
        for (candidate, least) in candidates.iter().zip(&mut seconds).filter(|(_, least)| **least <= far) {
            let plan = &candidate.plan;
            let [r, k, c] = shape;
            let (left, right) = (matmul::matrices(1, [r, k], 1, &t)?, matmul::matrices(1, [k, c], 2, &t)?);
            let sides = [plan.slots(Side::Left, &left)?, plan.slots(Side::Right, &right)?];
            let start = Instant::now();
            let mut factors: Vec<Vec<Ciphertext>> = Vec::new();
            for slots in &sides {
                let one = |slots| context.encrypt(&public, &context.encode(slots)?, &mut randomness);
                factors.push(slots.iter().map(one).collect::<synchromesh::Result<_>>()?);
            }
            std::hint::black_box(plan.multiply(&candidate.evaluator, &choices, &factors[0], &factors[1])?);
            *least = least.min(start.elapsed().as_secs_f64());
        }
    }
    let slice = |(candidate, &seconds): (&Candidate, &f64)| {
        let p = candidate.plan.packing();
        Slice { block: [p.rows(), p.inner(), p.columns()], copies: p.copies(), cost: candidate.cost, seconds }
    };
    let measured: Vec<Slice> = candidates.iter().zip(&seconds).map(slice).collect();
    let none = || Error::Request { reason: "no slicing was measured".into() };
    let best = measured.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).ok_or_else(none)?.clone();
    let chosen = measured[0].clone();
    Ok(Choice { shape, ratio: chosen.seconds / best.seconds, chosen, best, measured })
}
