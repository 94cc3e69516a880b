//! Random circuits for several libraries: `differential make SCHEME LOG_N COUNT SEED` writes a batch as JSON, `differential
//! run FILE` evaluates one with this library. Programs in `peers/` do the same with others.
//!
//! A batch holds vectors and circuits over them. A circuit is a list of [op, a, b] on registers: the first registers are the
//! encrypted inputs, each operation appends one, the last one is the result. Of exact results a hash of all slots is
//! printed, of CKKS some slots with the certified bound.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use synchromesh::exact::{Rotations, Scheme};
use synchromesh::rlwe::{Randomness, Security};
use synchromesh::{bfv, bgv, ckks, exact};
use synchromesh_testing::random::SplitMix;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Operations by number, as the programs in `peers/` know them: sum, difference, product, rotation to the left by b, sum
/// and product with plain vector b, negation.
const ADD: usize = 0;
const SUB: usize = 1;
const MUL: usize = 2;
const ROTATE: usize = 3;
const ADD_PLAIN: usize = 4;
const MUL_PLAIN: usize = 5;
const NEG: usize = 6;

const T: u64 = 65_537;
const DEPTH: u32 = 2;
const INPUTS: usize = 4;
const PLAINS: usize = 3;
const STEPS: [usize; 3] = [1, 3, 16];
/// Slots of a CKKS result that are printed.
const SHOWN: usize = 16;

/// An index below a bound.
fn below(random: &mut SplitMix, bound: usize) -> usize {
    random.below(bound as u64) as usize
}

/// What all libraries read.
#[derive(Serialize, Deserialize)]
struct Batch {
    scheme: String,
    log_n: u32,
    t: u64,
    depth: u32,
    steps: Vec<usize>,
    /// Integers below t, or reals of at most 1 in thousandths.
    inputs: Vec<Vec<i64>>,
    plains: Vec<Vec<i64>>,
    circuits: Vec<Vec<[usize; 3]>>,
}

fn make(scheme: &str, log_n: u32, count: usize, seed: u64) -> Batch {
    let mut random = SplitMix::new(seed);
    let real = scheme == "ckks";
    let slots = 1usize << (log_n - u32::from(real));
    let vector = |random: &mut SplitMix| -> Vec<i64> {
        let value = |random: &mut SplitMix| {
            if real { below(random, 2001) as i64 - 1000 } else { below(random, T as usize) as i64 }
        };
        (0..slots).map(|_| value(random)).collect()
    };
    let inputs = (0..INPUTS).map(|_| vector(&mut random)).collect();
    let plains = (0..PLAINS).map(|_| vector(&mut random)).collect();
    let circuits = (0..count).map(|_| circuit(&mut random)).collect();
    Batch { scheme: scheme.to_owned(), log_n, t: T, depth: DEPTH, steps: STEPS.to_vec(), inputs, plains, circuits }
}

/// Four to eight operations of which no path has more than [`DEPTH`] products and sums stay below 32.
fn circuit(random: &mut SplitMix) -> Vec<[usize; 3]> {
    // Products on the longest path to a register, and a bound on its values in CKKS.
    let mut registers = [(0u32, 1.0f64); INPUTS].to_vec();
    let mut operations = Vec::new();
    let length = 4 + below(random, 5);
    while operations.len() < length {
        // The newer ones more often, so that circuits are deep.
        let pick = |random: &mut SplitMix, count: usize| below(random, count).max(below(random, count));
        let (op, a, b) = (below(random, 7), pick(random, registers.len()), pick(random, registers.len()));
        let ((depth_a, bound_a), (depth_b, bound_b)) = (registers[a], registers[b]);
        let (operand, depth, bound) = match op {
            ADD | SUB => (b, depth_a.max(depth_b), bound_a + bound_b),
            MUL => (b, depth_a.max(depth_b) + 1, bound_a * bound_b),
            ROTATE => (STEPS[below(random, STEPS.len())], depth_a, bound_a),
            ADD_PLAIN => (below(random, PLAINS), depth_a, bound_a + 1.0),
            MUL_PLAIN => (below(random, PLAINS), depth_a + 1, bound_a),
            _ => (0, depth_a, bound_a),
        };
        if depth <= DEPTH && bound <= 32.0 {
            operations.push([op, a, operand]);
            registers.push((depth, bound));
        }
    }
    operations
}

/// What an evaluator must offer for a circuit.
struct Machine<'a, C, P> {
    two: &'a dyn Fn(usize, &C, &C) -> Outcome<C>,
    plain: &'a dyn Fn(usize, &C, &P) -> Outcome<C>,
    rotate: &'a dyn Fn(&C, i64) -> Outcome<C>,
    neg: &'a dyn Fn(&C) -> Outcome<C>,
}

impl<C, P> Machine<'_, C, P> {
    /// The last register of a circuit.
    fn run(&self, inputs: &[C], plains: &[P], circuit: &[[usize; 3]]) -> Outcome<C> {
        let mut made: Vec<C> = Vec::new();
        for &[op, a, b] in circuit {
            let at = |i: usize| inputs.get(i).or_else(|| made.get(i - inputs.len())).ok_or("no such register");
            let x = at(a)?;
            let next = match op {
                ADD | SUB | MUL => (self.two)(op, x, at(b)?)?,
                ROTATE => (self.rotate)(x, b as i64)?,
                ADD_PLAIN | MUL_PLAIN => (self.plain)(op, x, plains.get(b).ok_or("no such vector")?)?,
                NEG => (self.neg)(x)?,
                _ => return Err("no such operation".into()),
            };
            made.push(next);
        }
        made.pop().ok_or_else(|| "an empty circuit".into())
    }
}

fn exact_literal(batch: &Batch) -> exact::ParamsLiteral {
    exact::ParamsLiteral {
        log_n: batch.log_n,
        t: batch.t.to_string(),
        q_bits: vec![50; 4],
        p_bits: vec![55],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 4,
        security: Security::Insecure,
        primes: None,
    }
}

/// Evaluates all circuits in BFV or BGV; `mul` is the product of the scheme.
macro_rules! run_exact {
    ($scheme:ident, $batch:expr) => {{
        let batch: &Batch = $batch;
        let context = $scheme::Context::new($scheme::Params::new(exact_literal(batch))?)?;
        let mut randomness = Randomness::from_os();
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let rotations = Rotations::by(batch.steps.iter().map(|&k| k as i64));
        let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
        let evaluator = $scheme::Evaluator::new(&context, Some(Arc::new(keys)));
        let encode = |x: &Vec<i64>| Ok::<_, Box<dyn std::error::Error>>(context.encode(&x[..])?);
        let plains = batch.plains.iter().map(encode).collect::<Outcome<Vec<_>>>()?;
        let inputs = batch
            .inputs
            .iter()
            .map(|x| Ok(context.encrypt(&public, &encode(x)?, &mut randomness)?))
            .collect::<Outcome<Vec<_>>>()?;
        let machine = Machine {
            two: &|op, x, y| {
                Ok(match op {
                    ADD => evaluator.add(x, y)?,
                    SUB => evaluator.sub(x, y)?,
                    _ => evaluator.mul(x, y)?,
                })
            },
            plain: &|op, x, p| Ok(if op == ADD_PLAIN { evaluator.add_plain(x, p)? } else { evaluator.mul_plain(x, p)? }),
            rotate: &|x, k| Ok(evaluator.rotate_rows(x, k)?),
            neg: &|x| Ok(evaluator.neg(x)?),
        };
        for circuit in &batch.circuits {
            let result = machine.run(&inputs, &plains, circuit)?;
            print(json!({ "hash": hash(&decoded(&context, &context.decrypt(&secret, &result)?)?) }));
        }
    }};
}

fn decoded<S: Scheme>(context: &exact::Context<S>, plaintext: &exact::Plaintext) -> Outcome<Vec<u64>> {
    Ok(context.decode_u64(plaintext)?)
}

/// FNV-1a over residues.
fn hash(values: &[u64]) -> String {
    let hash = values.iter().fold(0xcbf2_9ce4_8422_2325u64, |h, &v| (h ^ v).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

fn run_ckks(batch: &Batch) -> Outcome<()> {
    let literal = ckks::ParamsLiteral {
        log_n: batch.log_n,
        log_scale: 40,
        q_bits: vec![55, 40, 40],
        p_bits: vec![60],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 3,
        log_scales: vec![],
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
    };
    let context = ckks::Context::new(ckks::Params::new(literal)?)?;
    let mut randomness = Randomness::from_os();
    let (secret, public) = context.generate_keys(&mut randomness)?;
    let rotations = Rotations::by(batch.steps.iter().map(|&k| k as i64));
    let keys = context.generate_evaluation_keys(&secret, &rotations, &mut randomness)?;
    let evaluator = ckks::Evaluator::new(&context, Some(Arc::new(keys)));
    let encode = |x: &Vec<i64>| -> Outcome<ckks::Plaintext> {
        Ok(context.encode_bounded(&x.iter().map(|&x| x as f64 / 1000.0).collect::<Vec<_>>(), 1.0)?)
    };
    let plains = batch.plains.iter().map(encode).collect::<Outcome<Vec<_>>>()?;
    let encrypt = |x: &Vec<i64>| Ok(context.encrypt(&public, &encode(x)?, &mut randomness)?);
    let inputs = batch.inputs.iter().map(encrypt).collect::<Outcome<Vec<_>>>()?;
    let machine = Machine {
        two: &|op, x, y| {
            Ok(match op {
                ADD => evaluator.add(x, y)?,
                SUB => evaluator.sub(x, y)?,
                _ => evaluator.mul(x, y)?,
            })
        },
        plain: &|op, x, p| Ok(if op == ADD_PLAIN { evaluator.add_plain(x, p)? } else { evaluator.mul_plain(x, p)? }),
        rotate: &|x, k| Ok(evaluator.rotate(x, k)?),
        neg: &|x| Ok(evaluator.neg(x)?),
    };
    for circuit in &batch.circuits {
        let result = machine.run(&inputs, &plains, circuit)?;
        let values = context.decode(&context.decrypt(&secret, &result)?)?;
        let stride = values.len() / SHOWN;
        let shown: Vec<f64> = values.iter().step_by(stride).copied().collect();
        print(json!({ "values": shown, "bound": context.error_bound(&result) }));
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the result of a command")]
fn print(line: serde_json::Value) {
    println!("{line}");
}

fn main() -> Outcome<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["make", scheme @ ("bfv" | "bgv" | "ckks"), log_n, count, seed] => {
            let batch = make(scheme, log_n.parse()?, count.parse()?, seed.parse()?);
            print(serde_json::to_value(&batch)?);
        }
        ["run", file] => {
            let batch: Batch = serde_json::from_slice(&std::fs::read(file)?)?;
            match batch.scheme.as_str() {
                "bfv" => run_exact!(bfv, &batch),
                "bgv" => run_exact!(bgv, &batch),
                _ => run_ckks(&batch)?,
            }
        }
        _ => return Err("usage: differential make bfv|bgv|ckks LOG_N COUNT SEED | differential run FILE".into()),
    }
    Ok(())
}
