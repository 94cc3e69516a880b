//! Parameters for a circuit that the caller wrote: it runs without data, and the run says what it needs.
//!
//! The circuit runs on [`Dry`] at the parameters of a description. A rotation without a key adds the rotation; a
//! certificate that fails, or a level that is missing, makes the description one multiplication deeper; a CKKS result
//! that is too coarse makes it more precise. The first parameters at which the whole circuit runs are the plan.

use std::cell::Cell;
use std::sync::Arc;

use synchromesh_rlwe::Randomness;

use super::limit::{MOST_DEPTH, MOST_PRECISION};
use super::trace::{Trace, Traced};
use super::{Description, Limit, MOST_NODES, Nearest, PRECISION, Plan, SchemeName, too_small};
use crate::circuits::Arithmetic;
use crate::ckks;
use crate::ckks::recording::Recorder;
use crate::cost::{self, DryLedger, recorder};
use crate::error::{Error, Result};
use crate::exact::{self, Scheme};
use crate::rotations::Rotations;

/// Most attempts at finding parameters: rotations found in turn, levels added, bits of precision added.
const MOST_RUNS: usize = 200;

/// Bits that a scale grows without making results finer, before the errors of approximations are held to be the reason.
const MOST_IN_VAIN: u32 = 8;

/// Most bits that level 0 is widened by for large messages of CKKS, and the least at a time.
const HEADROOM: std::ops::RangeInclusive<u32> = 4..=200;

/// Most bits that scales grow by for what a circuit makes of errors.
const MOST_FINER: u32 = 80;

/// What one run without data found.
enum Outcome {
    Runs(Traced),
    /// Nothing that it lacks, and so many levels that it does not use.
    Shallower(usize),
    Missing(Rotations),
    /// Another multiplication deep.
    Deeper,
    /// So many bits more for messages of CKKS above 1.
    Wider(u32),
    /// More bits of precision, for results of this bound.
    Finer(u32, f64),
    /// More bits for the argument of a function, after so many operations, or this error.
    Rough(u32, usize, Error),
}

impl Description {
    /// Parameters at which a circuit of BFV or BGV runs, with the rotations it makes; S names the scheme.
    ///
    /// The circuit gets an evaluator and `inputs` fresh ciphertexts. Of the description, depth and rotations are where
    /// the search starts.
    ///
    /// # Errors
    /// [`Error::Request`] for a description of another scheme or when nothing fits; what the circuit itself fails with.
    pub fn plan_exact<S: Scheme>(
        &self,
        inputs: usize,
        circuit: impl Fn(
            &exact::Evaluator<S, DryLedger>,
            &[exact::Ciphertext<S, DryLedger>],
        ) -> Result<Vec<exact::Ciphertext<S, DryLedger>>>,
    ) -> Result<Plan> {
        if self.scheme.name() != S::NAME {
            return Err(Error::request(format!("the description is for {}, not for {}", self.scheme.name(), S::NAME)));
        }
        let run = |plan: &Plan, steps: &Rotations, _| {
            let params = plan.exact::<S>()?;
            let device = recorder(params.rlwe());
            let trace = Trace::new(device.reader());
            let watched = (device, Some(Trace::observer(&trace)));
            let evaluator = plan.on_exact(params, watched, |ring| Ok(cost::recorder_on(ring)))?;
            let context = evaluator.context();
            let mut randomness = Randomness::insecure_from_number(0);
            let (secret, public) = context.generate_keys(&mut randomness)?;
            let keys = evaluator.generate_keys(&secret, &keyed(plan, steps), &mut randomness)?;
            let evaluator = evaluator.with_keys(Arc::new(keys)).with_routes(plan.routes.clone().map(Arc::new));
            trace.restart();
            let message = context.encode_coefficients(&[1i64][..])?;
            let fresh = (0..inputs).map(|_| context.encrypt(&public, &message, &mut randomness));
            let result = fresh.collect::<Result<Vec<_>>>().and_then(|fresh| circuit(&evaluator, &fresh));
            let traced = trace.take();
            let opened = result.and_then(|results| self.open_all(context, &results));
            opened.map_or_else(Outcome::of, |()| Ok(Outcome::Runs(traced)))
        };
        self.search_for(run, |plan, traced| plan.with_circuit(traced, self.max_memory_bytes))
    }

    /// Parameters at which a circuit of CKKS runs and keeps the precision asked for, with the rotations it makes.
    ///
    /// The circuit gets an evaluator and a fresh ciphertext for each bound on an input's slots.
    ///
    /// # Errors
    /// As [`Self::plan_exact`].
    pub fn plan_ckks(
        &self,
        bounds: &[f64],
        circuit: impl Fn(
            &ckks::Evaluator<DryLedger>,
            &[ckks::Ciphertext<DryLedger>],
        ) -> Result<Vec<ckks::Ciphertext<DryLedger>>>,
    ) -> Result<Plan> {
        if self.scheme != SchemeName::Ckks {
            return Err(Error::request(format!("the description is for {}, not for ckks", self.scheme.name())));
        }
        let recorder = Arc::new(Recorder::default());
        let run = |plan: &Plan, steps: &Rotations, shrinks| {
            recorder.take();
            self.run_ckks(plan, steps, shrinks, (bounds, &recorder), &circuit)
        };
        // Places may cost precision that no places did not: what lacks is asked for beyond it.
        let mut description = self.clone();
        loop {
            let lacking = Cell::new(0);
            let follow = |plan: &Plan| {
                let steps = Rotations { by: plan.rotations.clone(), swap: plan.swap };
                match run(plan, &steps, false)? {
                    Outcome::Runs(traced) => Ok(Some(traced)),
                    Outcome::Finer(bits, _) => {
                        lacking.set(bits);
                        Ok(None)
                    }
                    _ => Ok(None),
                }
            };
            let made = description.search_for(run, |plan, traced| {
                plan.with_circuit(traced, self.max_memory_bytes)?.placed(&recorder, follow, self.max_memory_bytes)
            });
            if made.is_ok() || lacking.get() == 0 || !description.refine(lacking.get()) {
                return made;
            }
        }
    }

    /// One run without data, at the parameters of a plan and with keys for these rotations.
    fn run_ckks(
        &self,
        plan: &Plan,
        steps: &Rotations,
        shrinks: bool,
        (bounds, told): (&[f64], &Arc<Recorder>),
        circuit: impl Fn(
            &ckks::Evaluator<DryLedger>,
            &[ckks::Ciphertext<DryLedger>],
        ) -> Result<Vec<ckks::Ciphertext<DryLedger>>>,
    ) -> Result<Outcome> {
        let wanted = f64::from(self.precision.unwrap_or(PRECISION));
        let params = plan.ckks()?;
        let log_scale = params.literal().log_scale;
        let device = recorder(params.rlwe());
        let trace = Trace::new(device.reader());
        let context = ckks::Context::observed(params, device, Some(Trace::observer(&trace)))?;
        let mut randomness = Randomness::insecure_from_number(0);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let evaluator = plan.on_ckks(ckks::Evaluator::new(&context, None))?;
        let keys = evaluator.generate_keys(&secret, &keyed(plan, steps), &mut randomness)?;
        let evaluator = evaluator.with_keys(Arc::new(keys)).with_recorder(told);
        trace.restart();
        let top = evaluator.top_level();
        let fresh =
            |&bound: &f64| context.encrypt_at(&public, &context.encode_bounded(&[], bound)?, top, &mut randomness);
        let fresh = bounds.iter().map(fresh);
        let result = fresh.collect::<Result<Vec<_>>>().and_then(|fresh| circuit(&evaluator, &fresh));
        let results = match result {
            Ok(results) => results,
            Err(Error::Rlwe(synchromesh_rlwe::Error::UnknownNoise { .. })) => {
                let done = trace.take().nodes.len();
                return Err(too_large(format!(
                    "after {done} operations a value may be larger than any number, by the bounds of the inputs"
                )));
            }
            Err(Error::Rlwe(synchromesh_rlwe::Error::Noise { noise_bits, room_bits, .. }))
                if wider(noise_bits - room_bits, log_scale) =>
            {
                return Ok(Outcome::Wider((noise_bits - room_bits).ceil() as u32));
            }
            Err(error @ Error::Rough { off, most, .. }) => {
                let bits = (off / most).log2().clamp(1.0, f64::from(MOST_FINER));
                return Ok(Outcome::Rough(bits.ceil() as u32, trace.take().nodes.len(), error));
            }
            Err(error) => return Outcome::of(error),
        };
        let traced = trace.take();
        // Below the lowest level of results lie those that a refresh takes.
        let spare = if plan.bootstrap.is_some() { 0 } else { plan.depth.saturating_sub(self.depth) };
        let unused = traced.unused_levels().min(spare);
        if shrinks && unused > 0 {
            return Ok(Outcome::Shallower(unused));
        }
        let off = results.iter().map(|x| self.off(&context, x)).collect::<Result<Vec<f64>>>();
        let worst = match off {
            Ok(off) => off.into_iter().fold(0.0, f64::max),
            Err(error) => return Outcome::of(error),
        };
        let lacking = (wanted + worst.log2()).ceil();
        let bound = results.iter().map(|x| evaluator.bound(x)).fold(0.0, f64::max);
        Ok(if lacking > 0.0 { Outcome::Finer(lacking as u32, bound) } else { Outcome::Runs(traced) })
    }

    /// The first parameters at which `run` runs and of which `finish` makes a plan.
    fn search_for(
        &self,
        run: impl Fn(&Plan, &Rotations, bool) -> Result<Outcome>,
        finish: impl Fn(Plan, Traced) -> Result<Plan>,
    ) -> Result<Plan> {
        let mut description = self.clone();
        let asked = Rotations { by: self.rotations.clone(), swap: self.swap };
        let mut steps = asked.clone();
        let mut plan = description.plan()?;
        // How many bits were lacking, and by how many bits scales grew without making them fewer.
        let (mut lacked, mut in_vain) = (u32::MAX, 0);
        // Operations before the argument of a function that lacked them.
        let mut before = 0;
        let mut degree = plan.log_n;
        // Levels that are added at once: in CKKS twice as many each time, and those that are not used go again.
        let (mut more, mut doubling) = (1, self.scheme == SchemeName::Ckks);
        for _ in 0..MOST_RUNS {
            if plan.log_n != degree {
                // Rows of another length are rotated by other steps, by about as many.
                description.expected_rotations = description.expected_rotations.max(steps.by.len());
                (degree, steps) = (plan.log_n, asked.clone());
                (description.rotations, description.swap) = (asked.by.clone(), asked.swap);
            }
            match run(&plan, &steps, doubling)? {
                Outcome::Runs(traced) if (&description.rotations, description.swap) == (&steps.by, steps.swap) => {
                    let alone = plan.memory.map_or(0, |memory| memory.total_bytes);
                    let made = finish(plan, traced);
                    let needed = made.as_ref().err().and_then(needed_bytes);
                    let (Some(needed), Some(most), Some(_)) = (needed, self.max_memory_bytes, description.bootstrap)
                    else {
                        return made;
                    };
                    // Fewer keys of refreshes leave more memory to the circuit: as much as it takes beside them here, or a
                    // little.
                    let budgets = [most.saturating_sub(needed.saturating_sub(alone)), alone.saturating_sub(1)];
                    let fewer = budgets.into_iter().find_map(|budget| {
                        description.max_memory_bytes = Some(budget);
                        description.plan().ok()
                    });
                    let Some(fewer) = fewer else { return made };
                    plan = fewer;
                }
                // Once more at parameters that know all rotations.
                Outcome::Runs(_) => {
                    (description.rotations, description.swap) = (steps.by.clone(), steps.swap);
                    plan = description.plan()?;
                }
                Outcome::Missing(more) => steps = steps.and(&more),
                Outcome::Deeper => {
                    (lacked, in_vain) = (u32::MAX, 0);
                    // Where levels between refreshes are open, there are more of them than none.
                    description.depth = description.depth.max(plan.depth);
                    more = more.min(MOST_DEPTH.saturating_sub(description.depth)).max(1);
                    description.depth += more;
                    description.check()?;
                    if description.bootstrap.is_some() {
                        plan = description.plan()?;
                        continue;
                    }
                    plan = match description.found(None)? {
                        Ok(found) => Plan::new(&description, found),
                        // So many levels at once are too many.
                        Err(_) if more > 1 => {
                            description.depth -= more - 1;
                            doubling = false;
                            description.plan()?
                        }
                        Err(refusal) => return Err(description.refused(refusal)),
                    };
                    more = if doubling { 2 * more } else { 1 };
                }
                Outcome::Shallower(unused) => {
                    (more, doubling) = (1, false);
                    description.depth -= unused;
                    plan = description.plan()?;
                }
                Outcome::Wider(bits) if description.headroom + bits <= *HEADROOM.end() => {
                    // What grows in one place grows in others: more at a time, the more there was before.
                    description.headroom += bits.max(HEADROOM.start() + description.headroom / 2);
                    plan = description.plan()?;
                }
                Outcome::Wider(_) => {
                    description.depth += 1;
                    plan = description.plan()?;
                }
                Outcome::Rough(bits, done, error) => {
                    // Where more was done than before, other bits are lacking.
                    in_vain = if done == before && bits >= lacked { in_vain + lacked } else { 0 };
                    (lacked, before) = (bits, done);
                    if in_vain >= MOST_IN_VAIN || !description.refine(bits) {
                        return Err(error);
                    }
                    plan = description.plan()?;
                }
                Outcome::Finer(bits, bound) => {
                    in_vain = if before == usize::MAX && bits >= lacked { in_vain + lacked } else { 0 };
                    (lacked, before) = (bits, usize::MAX);
                    if in_vain >= MOST_IN_VAIN {
                        return Err(self.too_coarse(bits));
                    }
                    let finer = description.refine(bits).then(|| description.plan());
                    plan = match finer {
                        Some(Ok(plan)) => plan,
                        Some(Err(refusal)) if bound <= 2.0 => return Err(refusal),
                        _ => {
                            let wanted = self.precision.unwrap_or(PRECISION);
                            return Err(too_large(format!(
                                "results may reach 2^{:.0} by the bounds of the inputs, which leaves too little of any scale \
                                 for {wanted} bits after the point",
                                bound.log2()
                            )));
                        }
                    };
                }
            }
        }
        Err(Error::request(format!("no parameters were found in {MOST_RUNS} runs of the circuit")))
    }
}

impl Description {
    /// So many bits more for scales; false where that is too many.
    fn refine(&mut self, bits: u32) -> bool {
        if self.bootstrap.is_some() {
            // What a refresh keeps goes by the precision.
            let finer = self.precision.unwrap_or(PRECISION).saturating_add(bits);
            self.precision = Some(finer.min(MOST_PRECISION));
            return finer <= MOST_PRECISION;
        }
        self.finer = self.finer.saturating_add(bits);
        self.finer <= MOST_FINER
    }

    /// Results that lack so many bits at any scale, since what stands in a function's place is declared to be off.
    fn too_coarse(&self, lacking: u32) -> Error {
        let wanted = self.precision.unwrap_or(PRECISION);
        let nearest = wanted.checked_sub(lacking).filter(|bits| *bits > 0).map(Nearest::Precision);
        let reason = format!(
            "results lack {lacking} of {wanted} bits at any scale: errors of approximations are declared to be larger, so \
             approximate to smaller tolerances"
        );
        Error::NoPlan { limit: Limit::Precision, reason, nearest }
    }
}

/// How much memory a plan takes that is refused for it.
const fn needed_bytes(refusal: &Error) -> Option<u64> {
    match refusal {
        Error::NoPlan { limit: Limit::Memory, nearest: Some(Nearest::MemoryBytes(needed)), .. } => Some(*needed),
        _ => None,
    }
}

/// Whether fewer bits are lacking than a level has: then a wider level 0 is cheaper.
fn wider(lacking: f64, log_scale: u32) -> bool {
    lacking > 0.0 && lacking < f64::from(log_scale)
}

/// Bounds of values that no parameters hold.
fn too_large(reason: String) -> Error {
    Error::NoPlan { limit: Limit::Bounds, reason, nearest: None }
}

/// The rotations that keys are made for: those of the plan, and those it does not know of.
fn keyed(plan: &Plan, steps: &Rotations) -> Rotations {
    let new = steps.by.iter().copied().filter(|step| !plan.rotations.contains(step));
    Rotations { swap: steps.swap, ..Rotations::by(plan.rotation_keys().iter().copied().chain(new)) }
}

impl Plan {
    /// The plan with what the caller's circuit does, and the memory that takes.
    pub(super) fn with_circuit(mut self, mut traced: Traced, most: Option<u64>) -> Result<Self> {
        let peak = traced.nodes.iter().map(|node| node.bytes).max().unwrap_or(0);
        let count = traced.nodes.len();
        if let Some(memory) = &mut self.memory {
            memory.raise(peak);
            if most.is_some_and(|most| memory.total_bytes > most) {
                let needed = memory.total_bytes;
                let reason = format!("the circuit takes {needed} bytes of memory at N = 2^{}", self.log_n);
                return Err(Error::NoPlan {
                    limit: Limit::Memory,
                    reason,
                    nearest: Some(Nearest::MemoryBytes(needed)),
                });
            }
        }
        traced.nodes.truncate(MOST_NODES);
        self.explain.push(format!("circuit: {count} ciphertexts are made, with up to {peak} bytes of buffers at once"));
        self.nodes.clone_from(&traced.nodes);
        self.traced = traced;
        Ok(self)
    }
}

/// The circuit of a description on fresh ciphertexts x: as many multiplications as it is deep, each of a sum with itself,
/// one operand of which was rotated by one `switches` times where there are rotations.
pub(super) fn described<A: Arithmetic>(
    evaluator: &A,
    description: &Description,
    switches: usize,
    mut x: A::Ciphertext,
) -> Result<A::Ciphertext> {
    for step in 0..=description.depth {
        let mut term = evaluator.duplicate(&x)?;
        for _ in 0..if description.rotates_at(evaluator.level(&x)) { switches } else { 0 } {
            term = evaluator.rotate(&term, 1)?;
        }
        let sum = sum_of(evaluator, &x, &term, description.additions)?.unwrap_or(term);
        x = if step < description.depth { evaluator.mul(&sum, &sum)? } else { sum };
    }
    Ok(x)
}

/// x + n y by doubling, whose certificate is that of n additions; none for n = 0.
fn sum_of<A: Arithmetic>(
    evaluator: &A,
    x: &A::Ciphertext,
    y: &A::Ciphertext,
    n: usize,
) -> Result<Option<A::Ciphertext>> {
    let Some(top) = n.checked_ilog2() else { return Ok(None) };
    let mut multiple: Option<A::Ciphertext> = None;
    for bit in (0..top).rev() {
        let half = multiple.as_ref().unwrap_or(y);
        let double = evaluator.add(half, half)?;
        multiple = Some(if n >> bit & 1 == 1 { evaluator.add(&double, y)? } else { double });
    }
    evaluator.add(x, multiple.as_ref().unwrap_or(y)).map(Some)
}

impl Outcome {
    /// What an error of the circuit asks for; any other error is the circuit's own.
    fn of(error: Error) -> Result<Self> {
        match error {
            Error::MissingRotations { steps, swap } => Ok(Self::Missing(Rotations { swap, ..Rotations::by(steps) })),
            error if too_small(&error) => Ok(Self::Deeper),
            error => Err(error),
        }
    }
}
