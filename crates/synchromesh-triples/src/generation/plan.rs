//! The choice of parameters for triples of some shapes: packing, ring, moduli, flooding; by runs of the circuit without data.
//!
//! Every certificate in such a run is that of ciphertexts of which only what their makers had to prove is known, and
//! a set of parameters is taken if all of them hold, the masks of all parties fit on top, and no smaller one does. Tuples
//! of single numbers ([`Kind`](crate::tuples::Kind)) need less than any matrix product, and are made with every plan.

mod agreed;
mod rehearsal;

use std::path::Path;

use serde::{Deserialize, Serialize};
use synchromesh::bgv::{Context, Evaluator, Params, ParamsLiteral};
use synchromesh::circuits::{Arithmetic, MatrixChoices, MatrixPacking, MatrixPlan, Slicing, SlotShape};
use synchromesh::rlwe::file::{self, Access, Existing};
use synchromesh::rlwe::noise::KeyBound;
use synchromesh::rlwe::ring::Backend;
use synchromesh::rlwe::{KeyPart, Security, Source};
use synchromesh_parties::session::{MOST_PARTIES, numbered};

use self::agreed::{Agreed, Packed};
pub(crate) use self::rehearsal::log2_value;
use self::rehearsal::{Placed, rehearse};
use super::encryption::Proofs;
use super::floor::Floor;
use super::forecast::{MOST_BYTES, Work};
use crate::error::{Error, Result};
use crate::field::Field;
use crate::share::Shape;

/// Bits of the primes that are tried first.
const WIDTH: u32 = 50;

/// Narrowest primes tried.
const NARROWEST: u32 = 36;

/// Most ciphertext primes.
const MOST_PRIMES: usize = 40;

/// Degrees tried, as log2.
const DEGREES: std::ops::RangeInclusive<u32> = 13..=16;

/// Where keys come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keys {
    /// From a dealer, whom all parties trust.
    #[default]
    Dealt,
    /// From the parties, each of which proves that its shares are right: every bound holds for shares of cheaters.
    Generated,
}

impl Keys {
    /// The [`Request::window`] that serves them: a dealer makes the keys of 8 in no time; where parties make keys,
    /// every one is in their proofs.
    #[must_use]
    pub const fn window(self) -> usize {
        match self {
            Self::Dealt => 8,
            Self::Generated => 1,
        }
    }
}

/// What is to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The prime p.
    pub field: Field,
    /// Number of parties, 2 to 64.
    pub parties: usize,
    /// The shape of the triples.
    pub shape: Shape,
    /// Other shapes that are made with the same keys.
    pub more: Vec<Shape>,
    /// Triples that will be made at a time, at least 1: no ciphertext is packed with more.
    pub count: usize,
    /// Statistical security in bits: of MACs, flooding and proofs. 40, 64 or 80 are usual.
    pub statistical_security: u32,
    /// log2 of how many ciphertexts will be decrypted under one key at the most.
    pub log2_decryptions: u32,
    /// Rotations made from one decomposition; as many keys for each factor.
    pub window: usize,
    /// What parties prove of their encryptions.
    pub proofs: Proofs,
    /// Where keys come from.
    pub keys: Keys,
    /// Computational security.
    pub security: Security,
    /// log2 of the degree N; none: the smallest that works.
    pub log_n: Option<u32>,
}

impl Request {
    /// Triples of a shape among parties, with 80 bits of statistical security and 2^20 decryptions.
    #[must_use]
    pub fn new(field: &Field, parties: usize, shape: Shape) -> Self {
        Self {
            field: field.clone(),
            parties,
            shape,
            more: Vec::new(),
            count: 1,
            statistical_security: 80,
            log2_decryptions: 20,
            window: Keys::default().window(),
            proofs: Proofs::default(),
            keys: Keys::default(),
            security: Security::Bits128,
            log_n: None,
        }
    }

    /// What is to be computed for one shape, for a forecast.
    fn work<'a>(&self, (shape, matrices): &'a (Shape, MatrixPlan), log_n: u32, limbs: usize) -> Work<'a> {
        Work { matrices, shape: *shape, parties: self.parties, count: self.count, log_n, limbs }
    }

    fn within(&self, tasks: &[(Shape, MatrixPlan)], log_n: u32, limbs: usize) -> Result<()> {
        tasks.iter().try_for_each(|task| self.work(task, log_n, limbs).within(MOST_BYTES))
    }

    /// All shapes, each once.
    fn shapes(&self) -> Vec<Shape> {
        let mut all = vec![self.shape];
        for shape in &self.more {
            if !all.contains(shape) {
                all.push(*shape);
            }
        }
        all
    }
}

/// The name of the format of plans.
const FORMAT: &str = "synchromesh triple generation 1";

/// The name of their files.
const NAME: &str = "plan.json";

/// Largest plan read, in bytes.
const LARGEST: u64 = 1 << 20;

/// What a run without data says of the levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Placement {
    /// At which matrices are multiplied.
    pub(crate) product: usize,
    /// At which ciphertexts are decrypted.
    pub(crate) decryption: usize,
    /// log2 of the largest |m + t e| there.
    pub(crate) value_bits: f64,
    /// Bits of a party's mask.
    pub(crate) mask_bits: u32,
}

/// Triples of one shape: how they are packed, and where they are computed.
#[derive(Clone, Debug)]
struct Task {
    shape: Shape,
    matrices: MatrixPlan,
    placement: Placement,
}

/// Parameters that work.
///
/// A plan for several shapes speaks of the first of them: [`Self::of`] turns it to another.
#[derive(Clone, Debug)]
pub struct GenerationPlan {
    agreed: Agreed,
    field: Field,
    params: Params,
    tasks: Vec<Task>,
    /// Which task is spoken of.
    at: usize,
    /// Of tuples of single numbers.
    slots: Placement,
}

impl GenerationPlan {
    /// The smallest parameters for a request.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::Parties`], [`Error::WeakMac`], [`Error::NoSlots`], [`Error::TooLarge`] beyond
    /// [`MOST_BYTES`] of a party, or [`Error::NoParameters`].
    pub fn find(request: &Request) -> Result<Self> {
        check_request(request)?;
        let refused =
            |reason: String| Error::NoParameters { shape: request.shape.to_string(), parties: request.parties, reason };
        let degrees = request.log_n.map_or(DEGREES, |log_n| log_n..=log_n);
        let mut last = String::from("no degree was tried");
        for log_n in degrees {
            require_slots(&request.field, log_n)?;
            match find_at(request, log_n) {
                Ok(Some(plan)) => return Ok(plan),
                Err(error @ Error::TooLarge { .. }) => return Err(error),
                Ok(None) => last = format!("at N = 2^{log_n} the moduli that fit are not secure"),
                Err(error) => last = format!("at N = 2^{log_n}: {error}"),
            }
        }
        Err(refused(last))
    }

    fn new(request: &Request, tasks: &[(Shape, MatrixPlan)], params: &Params, placed: Placed) -> Self {
        let packed = |(shape, matrices): &(Shape, MatrixPlan)| {
            let p = matrices.packing();
            let packing = [p.rows(), p.inner(), p.columns(), p.window()];
            Packed { shape: shape.to_string(), packing, grid: matrices.grid(), batch: matrices.batch() }
        };
        let mut packed = tasks.iter().map(packed);
        let Packed { shape, packing, grid, batch } = packed.next().unwrap_or_default();
        let agreed = Agreed {
            format: FORMAT.into(),
            prime: request.field.prime().to_string(),
            parties: request.parties,
            shape,
            statistical_security: request.statistical_security,
            log2_decryptions: request.log2_decryptions,
            proofs: request.proofs,
            keys: request.keys,
            packing,
            grid,
            batch,
            more: packed.collect(),
            window: request.window,
            params: params.literal().clone(),
        };
        Self::placed(agreed, request.field.clone(), params.clone(), tasks, placed)
    }

    fn placed(
        agreed: Agreed,
        field: Field,
        params: Params,
        tasks: &[(Shape, MatrixPlan)],
        Placed { tasks: placements, slots }: Placed,
    ) -> Self {
        let task = |(&(shape, matrices), placement)| Task { shape, matrices, placement };
        Self { agreed, field, params, tasks: tasks.iter().zip(placements).map(task).collect(), at: 0, slots }
    }

    /// The plan as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(&self.agreed).unwrap_or_default()
    }

    /// Writes `plan.json`.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`] if it is there already or cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        Ok(file::write(&directory.join(NAME), self.to_json().as_bytes(), Access::Public, Existing::Keep)?)
    }

    /// Reads what [`Self::write`] wrote; who wrote it may be anybody, and [`Floor`] is what is accepted.
    ///
    /// # Errors
    /// [`synchromesh_parties::Error::File`], and as [`Self::from_json`].
    pub fn read(directory: &Path, floor: &Floor) -> Result<Self> {
        let path = directory.join(NAME);
        let text = String::from_utf8(file::read(&path, LARGEST)?);
        Self::from_json(&text.map_err(|_| Error::format(&path, "it is not text"))?, floor)
    }

    /// The plan in a JSON file, checked as if it had been found here: security, and every certificate.
    ///
    /// # Errors
    /// [`Error::NoParameters`] for what is no plan or does not work, [`Error::BelowFloor`] for one that gives less than
    /// `floor`, [`Error::TooLarge`] beyond [`MOST_BYTES`], and as [`Field::new`].
    pub fn from_json(text: &str, floor: &Floor) -> Result<Self> {
        let refused =
            |shape: &str, parties: usize, reason: String| Error::NoParameters { shape: shape.into(), parties, reason };
        let agreed: Agreed = serde_json::from_str(text).map_err(|e| refused("?", 0, e.to_string()))?;
        let Agreed { shape, parties, .. } = &agreed;
        let refused = |reason: String| refused(shape, *parties, reason);
        if agreed.format != FORMAT || agreed.log2_decryptions > 60 || agreed.statistical_security > 256 {
            return Err(refused("the plan is of another format".into()));
        }
        agreed.check_sizes().map_err(|reason| refused(reason.into()))?;
        let (field, shape): (Field, Shape) = (agreed.prime.parse()?, shape.parse()?);
        let params = parameters(agreed.keys, *parties, agreed.params.clone())?;
        if params.t().value() != field.prime() {
            return Err(refused("its parameters are for another prime".into()));
        }
        floor.check(&agreed.offer(&params))?;
        let packed = |packed: &Packed| {
            let ([rows, inner, columns, window], shape) = (packed.packing, packed.shape.parse()?);
            let packing = MatrixPacking::new(slots(params.log_n()), rows, inner, columns, window)?;
            Ok((shape, MatrixPlan::new(packing, extended(shape), packed.batch, packed.grid)?))
        };
        let tasks = agreed.packed().iter().map(packed).collect::<Result<Vec<(Shape, MatrixPlan)>>>()?;
        let request = Request {
            field: field.clone(),
            parties: *parties,
            shape,
            more: tasks[1..].iter().map(|(shape, _)| *shape).collect(),
            count: agreed.batch,
            statistical_security: agreed.statistical_security,
            log2_decryptions: agreed.log2_decryptions,
            window: agreed.window,
            proofs: agreed.proofs,
            keys: agreed.keys,
            security: agreed.params.security,
            log_n: Some(params.log_n()),
        };
        check_request(&request)?;
        require_slots(&field, params.log_n())?;
        if request.shapes().len() != tasks.len() {
            return Err(refused("it has a shape twice".into()));
        }
        request.within(&tasks, params.log_n(), params.rlwe().q().len())?;
        let placed = rehearse(&request, &tasks, &params)?;
        let placed = placed.ok_or_else(|| refused("its parameters leave no room for the flooding".into()))?;
        Ok(Self::placed(agreed, field, params, &tasks, placed))
    }

    /// In what the plan is below [`Floor::default`], in words.
    #[must_use]
    pub fn shortfalls(&self) -> Vec<String> {
        let offer = self.agreed.offer(&self.params);
        Floor::default().shortfalls(&offer).iter().map(ToString::to_string).collect()
    }

    /// The field.
    #[must_use]
    pub fn field(&self) -> &Field {
        &self.field
    }

    fn task(&self) -> &Task {
        &self.tasks[self.at]
    }

    /// The shape of the triples.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.task().shape
    }

    /// All shapes that the plan has keys for.
    #[must_use]
    pub fn shapes(&self) -> Vec<Shape> {
        self.tasks.iter().map(|task| task.shape).collect()
    }

    /// The same plan, turned to another of its shapes.
    ///
    /// # Errors
    /// [`Error::NoParameters`] for a shape that it does not have.
    pub fn of(&self, shape: Shape) -> Result<Self> {
        let at = self.tasks.iter().position(|task| task.shape == shape).ok_or_else(|| {
            let has: Vec<String> = self.shapes().iter().map(ToString::to_string).collect();
            let reason = format!("the plan is for {}", has.join(", "));
            Error::NoParameters { shape: shape.to_string(), parties: self.parties(), reason }
        })?;
        Ok(Self { at, ..self.clone() })
    }

    /// Number of parties.
    #[must_use]
    pub fn parties(&self) -> usize {
        self.agreed.parties
    }

    /// Bits of statistical security.
    #[must_use]
    pub fn statistical_security(&self) -> u32 {
        self.agreed.statistical_security
    }

    /// What parties prove of their encryptions.
    #[must_use]
    pub fn proofs(&self) -> Proofs {
        self.agreed.proofs
    }

    /// Where keys come from.
    #[must_use]
    pub fn keys(&self) -> Keys {
        self.agreed.keys
    }

    /// Rotations made from one decomposition.
    #[must_use]
    pub fn window(&self) -> usize {
        self.agreed.window
    }

    /// Most ciphertexts decrypted under one key.
    #[must_use]
    pub fn most_decryptions(&self) -> u64 {
        1 << self.agreed.log2_decryptions
    }

    /// Triples made together.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.task().matrices.batch()
    }

    /// The parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// How matrices are packed. B has one column more than the triples: see [`Generator`](super::Generator).
    #[must_use]
    pub fn matrices(&self) -> &MatrixPlan {
        &self.task().matrices
    }

    /// Bits of each party's masks.
    #[must_use]
    pub fn mask_bits(&self) -> u32 {
        self.task().placement.mask_bits
    }

    pub(crate) fn choices(&self) -> MatrixChoices {
        MatrixChoices::mixed(self.agreed.window)
    }

    pub(crate) fn placement(&self) -> &Placement {
        &self.task().placement
    }

    /// Where tuples of single numbers are computed.
    pub(crate) fn slots(&self) -> &Placement {
        &self.slots
    }

    /// The highest level at which anything is decrypted: that of the parties' shares of the secret key.
    pub(crate) fn decryption(&self) -> usize {
        let tasks = self.tasks.iter().map(|task| task.placement.decryption);
        tasks.fold(self.slots.decryption, usize::max)
    }

    /// The keys that all shapes take, and which part of each.
    pub(crate) fn key_parts<B: Backend>(&self, context: &Context<B>) -> Result<Vec<(Source, KeyPart)>> {
        // That of tuples is the highest of all.
        let level = self.slots.product;
        let mut all: Vec<(Source, KeyPart)> = Vec::new();
        for task in &self.tasks {
            for (source, part) in task.matrices.key_parts(context, &self.choices(), level)? {
                match all.iter_mut().find(|(known, _)| *known == source) {
                    None => all.push((source, part)),
                    Some((_, known)) if known.rows().len() < part.rows().len() => *known = part,
                    Some(_) => {}
                }
            }
        }
        Ok(all)
    }
}

fn check_request(request: &Request) -> Result<()> {
    let Request { field, parties, statistical_security, .. } = request;
    numbered(0, *parties)?;
    if field.bits() <= u64::from(*statistical_security) {
        return Err(Error::WeakMac { bits: field.bits(), wanted: u64::from(*statistical_security) + 1 });
    }
    Ok(())
}

/// A number in each slot takes roots of unity of order 2N mod p. What the smaller degrees lacked this one has, or none.
fn require_slots(field: &Field, log_n: u32) -> Result<()> {
    let twos = (field.prime() - 1u8).trailing_zeros().unwrap_or(0);
    if twos > u64::from(log_n) { Ok(()) } else { Err(Error::NoSlots { log_n, twos }) }
}

/// The product that is computed: B has one column more, which the check of the product uses up.
fn extended(shape: Shape) -> [usize; 3] {
    [shape.a().0, shape.a().1, shape.b().1 + 1]
}

pub(super) const fn slots(log_n: u32) -> SlotShape {
    SlotShape { row: 1 << (log_n - 1), rows: 2 }
}

/// The packing of each shape that costs least for each triple.
fn packings(request: &Request, log_n: u32) -> Result<Vec<(Shape, MatrixPlan)>> {
    request.shapes().into_iter().map(|shape| Ok((shape, packing(request, shape, log_n)?))).collect()
}

fn packing(request: &Request, shape: Shape, log_n: u32) -> Result<MatrixPlan> {
    let tensor = <Evaluator as Arithmetic>::COST.tensor;
    let mut best: Option<(f64, MatrixPlan)> = None;
    for batch in (0..log_n).map(|i| 1usize << i).take_while(|batch| *batch <= request.count.max(1)) {
        let slicing = Slicing { slots: slots(log_n), batch, masks: false, chain: None, tensor };
        let Ok(candidates) = slicing.candidates(extended(shape)) else { break };
        let (plan, cost) = candidates[0];
        let cost = cost / batch as f64;
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, plan));
        }
    }
    let none = || synchromesh::Error::Request { rule: format!("no packing of {shape} at N = 2^{log_n}") };
    best.map(|(_, plan)| plan).ok_or_else(|| none().into())
}

/// The parameters, for keys that come from there: certificates of keys made in shares hold for the worst that is proven.
fn parameters(keys: Keys, parties: usize, literal: ParamsLiteral) -> Result<Params> {
    let params = Params::new(literal)?;
    Ok(match keys {
        Keys::Dealt => params,
        Keys::Generated => {
            // More are refused before anything is done with the plan.
            params.with_key_bound(KeyBound::proven(params.rlwe(), parties.min(MOST_PARTIES)))
        }
    })
}

fn literal(
    request: &Request,
    log_n: u32,
    (width, count): (u32, usize),
    (omega, special): (usize, usize),
    security: Security,
) -> ParamsLiteral {
    // Below this no masks fit.
    let bits = request.field.bits() as u32 + request.statistical_security + request.log2_decryptions + log_n;
    let least = (bits.div_ceil(width) as usize).min(count);
    ParamsLiteral {
        log_n,
        t: request.field.prime().to_string(),
        q_bits: vec![width; count],
        p_bits: vec![width.max(WIDTH); special],
        level_limbs: (least..=count).collect(),
        schedule: Default::default(),
        omega,
        security,
        primes: None,
    }
}

/// The smallest parameters at a degree; none if what fits is not secure.
fn find_at(request: &Request, log_n: u32) -> Result<Option<GenerationPlan>> {
    let tasks = packings(request, log_n)?;
    // A MAC of a product has a message of two primes, and as much room is taken by masks.
    let least = 2 * request.field.bits() as u32 + request.statistical_security + request.log2_decryptions;
    let mut count = least.div_ceil(WIDTH) as usize;
    // Runs of the circuit without data take their time too.
    request.within(&tasks, log_n, count)?;
    let works = |width: u32, count: usize| -> Result<bool> {
        // Room for the key switch, whatever its digits: they are chosen last.
        let (omega, special) = (3, count.div_ceil(3) + usize::from(request.keys == Keys::Generated));
        let literal = literal(request, log_n, (width, count), (omega, special), Security::Insecure);
        let params = parameters(request.keys, request.parties, literal)?;
        Ok(rehearse(request, &tasks, &params)?.is_some())
    };
    while !works(WIDTH, count)? {
        count += 1;
        let bits = count as u32 * WIDTH;
        if count > MOST_PRIMES || (request.security != Security::Insecure && bits > most_bits(log_n)) {
            return Ok(None);
        }
    }
    let (mut narrow, mut wide) = (NARROWEST, WIDTH);
    while narrow < wide {
        let middle = (narrow + wide) / 2;
        if works(middle, count)? { wide = middle } else { narrow = middle + 1 }
    }
    // A prime more than the widest digit has, where the errors of keys are large.
    let spare = match request.keys {
        Keys::Dealt => 0,
        Keys::Generated => 1,
    };
    for (omega, extra) in (1..=count).flat_map(|omega| (0..=spare).map(move |extra| (omega, extra))) {
        let literal = literal(request, log_n, (wide, count), (omega, extra + count.div_ceil(omega)), request.security);
        let Ok(params) = parameters(request.keys, request.parties, literal) else { continue };
        if let Some(placed) = rehearse(request, &tasks, &params)? {
            return Ok(Some(GenerationPlan::new(request, &tasks, &params, placed)));
        }
    }
    Ok(None)
}

/// Most bits of Q P at 128 bits of security, roughly: what exceeds it is not tried.
fn most_bits(log_n: u32) -> u32 {
    54 << log_n.saturating_sub(11)
}
