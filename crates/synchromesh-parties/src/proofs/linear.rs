//! Batch proofs for a [`Relation`]: z = y + C w for V masks y and a V x U matrix C of challenges (ePrint 2019/035).
//!
//! The prover announces A y, the challenges are a hash of it, of the statements and of the transcript, and the verifier
//! checks A z = A y + C u and the size of z. Announcements are not sent: the verifier computes them from the responses and
//! checks that they hash to the challenges.

use num_bigint::BigUint;
use synchromesh::rlwe::Context;
use synchromesh::rlwe::noise::hints;
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::ring::{Backend, Coeff, Ntt, Poly, secrecy};
use zeroize::{Zeroize, Zeroizing};

use super::error::{ProofError, Result};
use super::integers::{Integers, width_of};
use super::relation::{Column, Relation};
use super::transcript::{Challenge, Challenges, Transcript};
use super::{Masking, Parameters};

/// Bytes of the challenge at the head of a proof.
pub const CHALLENGE_BYTES: usize = 32;

/// Attempts of which each fails with probability at most 1/2.
const MOST_ATTEMPTS: u64 = 256;

/// The sizes of one column's responses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnPlan {
    /// log2 of the width of a mask: uniform on +-2^this, or of that standard deviation.
    pub log2_mask: u64,
    /// Bound on a response's coefficients.
    pub response: BigUint,
    /// Bound on the coefficients of k w, for any prover that convinces.
    pub extracted: BigUint,
    /// Bits of a coefficient in a proof.
    pub bits: u64,
    /// Coefficients: N, or 1 for a constant.
    pub count: usize,
    /// How responses hide it.
    pub masking: Masking,
}

impl ColumnPlan {
    /// Bytes of one response.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.count * self.bits as usize).div_ceil(8)
    }

    pub(super) const fn width(&self) -> usize {
        width_of(self.bits)
    }
}

/// The sizes of a proof for a number of statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// V, the number of responses.
    pub rows: usize,
    /// U, the number of statements.
    pub statements: usize,
    /// k: what a verifier may assume is that k u = A w' for a w' within the bounds.
    pub multiple: u32,
    /// Each polynomial of the witness.
    pub columns: Vec<ColumnPlan>,
}

impl Plan {
    /// Bytes of a proof: 32 + V (sum over the columns of ceil(N bits / 8)).
    #[must_use]
    pub fn bytes(&self) -> usize {
        CHALLENGE_BYTES + self.rows * self.columns.iter().map(ColumnPlan::bytes).sum::<usize>()
    }

    /// log2 of the extracted bound of column `j` over k times the honest one.
    #[must_use]
    pub fn slack_log2<B: Backend>(&self, relation: &Relation<B>, j: usize) -> f64 {
        let log2 = synchromesh::exact::log2_biguint;
        log2(&self.columns[j].extracted) - log2(&relation.columns()[j].bound) - f64::from(self.multiple).log2()
    }
}

/// Proofs for statements of one relation.
pub struct Linear<'a, B: Backend> {
    context: &'a Context<B>,
    relation: &'a Relation<B>,
    parameters: Parameters,
}

impl<'a, B: Backend> Linear<'a, B> {
    /// Proofs for `relation`.
    ///
    /// # Errors
    /// [`ProofError::Parameters`] for challenges that the ring or the relation does not allow.
    pub fn new(context: &'a Context<B>, relation: &'a Relation<B>, parameters: Parameters) -> Result<Self> {
        let refused = |rule: String| Err(ProofError::Parameters { rule });
        let challenges = parameters.challenges;
        let log_n = context.params().ring().log_n();
        if let Challenges::Monomials { log2_span } = challenges
            && log2_span > log_n
        {
            return refused(format!("challenges of span 2^{log2_span} in a ring of degree 2^{log_n}"));
        }
        if !challenges.are_integers() && (relation.has_constants() || relation.has_automorphisms()) {
            return refused("constants and automorphisms need challenges that are integers: Challenges::Bits".into());
        }
        Ok(Self { context, relation, parameters })
    }

    /// The sizes for `statements` statements.
    ///
    /// # Errors
    /// [`ProofError::Count`] without any, [`ProofError::Parameters`] if Q is too small for the extracted bounds to mean
    /// anything.
    pub fn plan(&self, statements: usize) -> Result<Plan> {
        if statements == 0 || statements > 1 << 20 {
            return Err(ProofError::Count {
                what: "statements",
                expected: statements.clamp(1, 1 << 20),
                got: statements,
            });
        }
        let challenges = self.parameters.challenges;
        let rows = challenges.rows(self.parameters.soundness);
        let (n, all) = (self.context.params().n(), self.relation.columns());
        let columns: Vec<ColumnPlan> =
            all.iter().map(|column| column_plan(self.parameters, column, [n, all.len(), rows, statements])).collect();
        let modulus = self.context.params().ring().product(self.relation.primes());
        if let Some((j, plan)) = columns.iter().enumerate().find(|(_, plan)| &plan.extracted * 4u32 > modulus) {
            let (name, bits) = (self.relation.columns()[j].name, plan.extracted.bits());
            let rule =
                format!("{name} is proven below 2^{bits}, which says little modulo Q of {} bits", modulus.bits());
            return Err(ProofError::Parameters { rule });
        }
        Ok(Plan { rows, statements, multiple: challenges.multiple(), columns })
    }

    /// A proof that the prover knows `witnesses` with A `witnesses[i]` = `targets[i]`, within the bounds of the columns.
    ///
    /// The masks come from `seed`, which must be fresh and secret, and from the statement.
    pub(super) fn prove(
        &self,
        targets: &[&[&Poly<B, Ntt>]],
        witnesses: &[&[Integers]],
        transcript: &Transcript,
        seed: &Seed,
    ) -> Result<Vec<u8>> {
        let plan = self.plan(targets.len())?;
        if witnesses.len() != targets.len() {
            return Err(ProofError::Count { what: "witnesses", expected: targets.len(), got: witnesses.len() });
        }
        witnesses.iter().enumerate().try_for_each(|(index, witness)| self.check(&plan, index, witness))?;
        let statement = self.statement(&plan, targets, transcript)?;
        let seed = bound_seed(seed, &statement);
        for attempt in 0..MOST_ATTEMPTS {
            if let Some(proof) = self.attempt(&plan, &statement, witnesses, &seed.derive("attempt", attempt))? {
                return Ok(proof);
            }
        }
        Err(ProofError::Attempts { attempts: MOST_ATTEMPTS })
    }

    /// Fails for a witness of other proofs, and for one that is not short; when it is, in time independent of it.
    fn check(&self, plan: &Plan, index: usize, witness: &[Integers]) -> Result<()> {
        let expected = plan.columns.len();
        if witness.len() != expected {
            return Err(ProofError::Count { what: "polynomials of a witness", expected, got: witness.len() });
        }
        for ((column, plan), w) in self.relation.columns().iter().zip(&plan.columns).zip(witness) {
            if w.len() != plan.count {
                return Err(ProofError::Witness { index, column: column.name, reason: "belongs to other proofs" });
            }
            if !w.within(&column.bound) {
                return Err(ProofError::Witness { index, column: column.name, reason: "is too large" });
            }
        }
        Ok(())
    }

    /// One attempt: the proof, or nothing if the masks do not hide the witness.
    fn attempt(
        &self,
        plan: &Plan,
        statement: &Transcript,
        witnesses: &[&[Integers]],
        seed: &Seed,
    ) -> Result<Option<Vec<u8>>> {
        let mut responses: Vec<Vec<Integers>> = (0..plan.rows).map(|v| self.masks(plan, v, seed)).collect();
        // Published if the attempt is; of one that is thrown away it says nothing, as a hash of masks nobody will see.
        let digest = secrecy::reveal(self.announce(statement, &responses)?);
        let hidden = self.respond(plan, &mut responses, witnesses, &self.challenges(plan, &digest));
        Ok(hidden.then(|| pack(plan, &digest, &responses)))
    }

    /// The hash of the announcements A y.
    pub(super) fn announce(&self, statement: &Transcript, masks: &[Vec<Integers>]) -> Result<[u8; 32]> {
        let mut transcript = statement.clone();
        for masks in masks {
            for announcement in self.relation.image(self.context, masks)? {
                let words = Zeroizing::new(announcement.poly().to_words(self.context.backend())?);
                transcript.absorb_words("announcement", &words);
            }
        }
        Ok(transcript.digest())
    }

    /// Masks become responses; whether all are within their bounds.
    pub(super) fn respond(
        &self,
        plan: &Plan,
        masks: &mut [Vec<Integers>],
        witnesses: &[&[Integers]],
        challenges: &[Vec<Challenge>],
    ) -> bool {
        let n = self.context.params().n();
        let mut hidden = true;
        for (response, row) in masks.iter_mut().zip(challenges) {
            for (witness, challenge) in witnesses.iter().zip(row) {
                if let Some(e) = challenge {
                    response.iter_mut().zip(*witness).for_each(|(z, w)| z.add_monomial(w, *e, n));
                }
            }
            hidden &= response.iter().zip(&plan.columns).fold(true, |all, (z, plan)| all & z.within(&plan.response));
        }
        hidden
    }

    /// The masks of row v.
    pub(super) fn masks(&self, plan: &Plan, v: usize, seed: &Seed) -> Vec<Integers> {
        let columns = plan.columns.len();
        let mask = |(j, column): (usize, &ColumnPlan)| {
            let number = v * columns + j;
            match column.masking {
                Masking::Rejection => {
                    Integers::uniform(seed, number as u32, column.count, column.log2_mask, column.width())
                }
                Masking::Hints => {
                    let seed = seed.derive("mask", number as u64);
                    Integers::gaussian(&seed, column.log2_mask as u32, column.count, column.width())
                }
            }
        };
        plan.columns.iter().enumerate().map(mask).collect()
    }

    /// Checks a proof for these statements. What may be assumed then is in [`Plan`].
    ///
    /// # Errors
    /// [`ProofError::Length`], [`ProofError::Oversized`], [`ProofError::Padding`] or [`ProofError::Challenge`] for what no
    /// honest prover sends.
    pub fn verify(&self, targets: &[&[&Poly<B, Ntt>]], proof: &[u8], transcript: &Transcript) -> Result<Plan> {
        let plan = self.plan(targets.len())?;
        if proof.len() != plan.bytes() {
            return Err(ProofError::Length { expected: plan.bytes(), got: proof.len() });
        }
        let (head, body) = proof.split_at(CHALLENGE_BYTES);
        let digest: [u8; CHALLENGE_BYTES] = head.try_into().unwrap_or_default();
        let challenges = self.challenges(&plan, &digest);
        let mut transcript = self.statement(&plan, targets, transcript)?;
        let targets = self.words(targets)?;
        let mut rest = body;
        for (row, challenges) in challenges.iter().enumerate() {
            let response = self.response(&plan, row, &mut rest)?;
            self.absorb_announcements(&mut transcript, &targets, &response, challenges)?;
        }
        if transcript.digest() == digest { Ok(plan) } else { Err(ProofError::Challenge) }
    }

    /// Hashes A z - C u for one row.
    pub(super) fn absorb_announcements(
        &self,
        transcript: &mut Transcript,
        targets: &[Vec<Vec<u64>>],
        response: &[Integers],
        challenges: &[Challenge],
    ) -> Result<()> {
        let backend = self.context.backend();
        for (i, image) in self.relation.image(self.context, response)?.iter().enumerate() {
            let mut announcement = self.combined(targets, i, challenges)?;
            announcement.sub_assign(backend, image.poly())?;
            announcement.neg_assign(backend)?;
            transcript.absorb_words("announcement", &announcement.to_words(backend)?);
        }
        Ok(())
    }

    /// Reads the responses of one row.
    fn response(&self, plan: &Plan, row: usize, body: &mut &[u8]) -> Result<Vec<Integers>> {
        let read = |(j, column): (usize, &ColumnPlan)| {
            let name = self.relation.columns()[j].name;
            let (bytes, rest) = body.split_at(column.bytes());
            *body = rest;
            let (z, clean) = Integers::unpack(bytes, column.count, column.bits, column.width());
            if !clean {
                return Err(ProofError::Padding { row, column: name });
            }
            if !z.within(&column.response) {
                return Err(ProofError::Oversized { row, column: name, bits: column.response.bits() });
            }
            Ok(z)
        };
        plan.columns.iter().enumerate().map(read).collect()
    }

    /// What both sides hash before the announcements.
    pub(super) fn statement(
        &self,
        plan: &Plan,
        targets: &[&[&Poly<B, Ntt>]],
        transcript: &Transcript,
    ) -> Result<Transcript> {
        let mut statement = transcript.clone();
        statement.absorb("relation", self.relation.digest());
        let masking = self.parameters.masking.number();
        let sizes = [self.parameters.challenges.size(), plan.multiple, masking.into()];
        statement.absorb_words("parameters", &sizes.map(u64::from));
        statement.absorb_words("sizes", &[plan.rows as u64, plan.statements as u64]);
        for (index, target) in targets.iter().enumerate() {
            if target.len() != self.relation.rows() {
                let what = "ring elements of a statement";
                return Err(ProofError::Count { what, expected: self.relation.rows(), got: target.len() });
            }
            for poly in *target {
                if poly.primes() != self.relation.primes() {
                    return Err(ProofError::Statement { index, reason: "it is modulo other primes" });
                }
                statement.absorb_words("target", &poly.to_words(self.context.backend())?);
            }
        }
        Ok(statement)
    }

    pub(super) fn challenges(&self, plan: &Plan, digest: &[u8; 32]) -> Vec<Vec<Challenge>> {
        self.parameters.challenges.expand(digest, plan.rows, plan.statements, self.context.params().n())
    }

    /// The targets as residues: in slots where challenges are integers, in coefficients where they are monomials.
    pub(super) fn words(&self, targets: &[&[&Poly<B, Ntt>]]) -> Result<Vec<Vec<Vec<u64>>>> {
        let backend = self.context.backend();
        let words = |poly: &&Poly<B, Ntt>| {
            if self.parameters.challenges.are_integers() {
                return Ok(poly.to_words(backend)?);
            }
            Ok(poly.duplicate(backend)?.into_coeff(backend)?.to_words(backend)?)
        };
        targets.iter().map(|target| target.iter().map(words).collect()).collect()
    }

    /// The sum of challenge times target over all statements, for ring element i, in slots.
    fn combined(&self, targets: &[Vec<Vec<u64>>], i: usize, challenges: &[Challenge]) -> Result<Poly<B, Ntt>> {
        let (backend, primes, n) = (self.context.backend(), self.relation.primes(), self.context.params().n());
        let mut sum = vec![0; primes.len() * n];
        for (target, e) in targets.iter().zip(challenges).filter_map(|(target, e)| Some((&target[i], (*e)?))) {
            for (prime, (to, from)) in primes.iter().zip(sum.chunks_exact_mut(n).zip(target.chunks_exact(n))) {
                let q = backend.ring().modulus(prime);
                let (negative, shift) = (e >= n, e % n);
                let (head, tail) = to.split_at_mut(shift);
                let add = |to: &mut u64, x: u64, minus: bool| *to = if minus { q.sub(*to, x) } else { q.add(*to, x) };
                tail.iter_mut().zip(from).for_each(|(to, &x)| add(to, x, negative));
                head.iter_mut().zip(&from[n - shift..]).for_each(|(to, &x)| add(to, x, !negative));
            }
        }
        if self.parameters.challenges.are_integers() {
            return Ok(Poly::from_words(backend, primes, &sum)?);
        }
        Ok(Poly::<B, Coeff>::from_words(backend, primes, &sum)?.into_ntt(backend)?)
    }
}

/// The sizes of a column among `columns`, for N = `n`, V = `rows` and U = `statements`.
fn column_plan(parameters: Parameters, column: &Column, [n, columns, rows, statements]: [usize; 4]) -> ColumnPlan {
    let count = if column.constant { 1 } else { n };
    let hidden = &column.bound * statements;
    let masking = column.masking.unwrap_or(parameters.masking);
    let (log2_mask, response) = match masking {
        // A coefficient is thrown away with probability (hidden + 1/2) / 2^k; all of them with 1/2 at most.
        Masking::Rejection => {
            let least = (&hidden + 1u32) * (2 * columns * count * rows);
            let log2 = (least - 1u32).bits();
            (log2, (BigUint::from(1u32) << log2) - 1u32 - hidden)
        }
        Masking::Hints => {
            let log2 = hints::log2_mask(rows * statements, column.deviation);
            (log2, (BigUint::from(hints::TAIL) << log2) + hidden)
        }
    };
    let extracted = &response * 2u32 * parameters.challenges.growth();
    let bits = response.bits() + 1;
    ColumnPlan { log2_mask, response, extracted, bits, count, masking }
}

/// The proof with this challenge and these responses.
pub(super) fn pack(plan: &Plan, digest: &[u8; CHALLENGE_BYTES], responses: &[Vec<Integers>]) -> Vec<u8> {
    let mut proof = Vec::with_capacity(plan.bytes());
    proof.extend_from_slice(digest);
    for (z, plan) in responses.iter().flat_map(|response| response.iter().zip(&plan.columns)) {
        z.pack(plan.bits, &mut proof);
    }
    proof
}

/// A seed of masks that depends on the statement too: a repeated seed with another statement gives other masks.
fn bound_seed(seed: &Seed, statement: &Transcript) -> Seed {
    let mut hasher = blake3::Hasher::new_derive_key("synchromesh 1 triples, masks of a proof");
    hasher.update(seed.as_bytes());
    hasher.update(&statement.digest());
    let mut bytes = *hasher.finalize().as_bytes();
    hasher.zeroize();
    let seed = Seed::from_bytes(bytes);
    bytes.zeroize();
    seed
}
