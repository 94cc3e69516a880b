//! Proofs for the shares of a distributed key generation: one party's parts of the public key, of rotation keys and of
//! relinearisation keys are what they should be, for a short secret s and short errors.
//!
//! All parts that depend on one s are rows of one relation with s as one column, so that what the responses say of s is said
//! once. Challenges are 0 and 1: they commute with X -> X^g, so that a row may have s(X^g) in it.

use num_bigint::BigUint;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, SmallPoly};
use synchromesh::rlwe::ring::{Backend, IndexSet, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::switch_key::inverse_galois;
use synchromesh::rlwe::{Context, KeyPart, PublicKey, Randomness};

use super::Parameters;
use super::encryption::{KeyBound, uniform};
use super::error::{ProofError, Result};
use super::integers::Integers;
use super::linear::{Linear, Plan};
use super::relation::{Column, Factor, Relation, Term};
use super::transcript::Transcript;

/// One part of a party's share. Every digit j has an error e_j of its own.
pub enum Part<'a, B: Backend> {
    /// b = -a s + t e, with a from the seed: of the public key.
    Public(&'a Seed),
    /// b_j = -a_j s(X^(1/g)) + t e_j + P g_j s, with a_j from the seed: of a rotation key, or with g = 1 the first round
    /// of a relinearisation key.
    Rotation {
        /// g, odd and below 2N.
        galois: usize,
        /// Digits, primes and special primes of the key.
        part: &'a KeyPart,
        /// The public seed of all a_j.
        seed: &'a Seed,
    },
    /// (B_j s + b v_j + t e_j, a_j s + a v_j + t e'_j) for the sums B_j of the first round and the joint public key (b, a):
    /// the second round of a relinearisation key. Summed over all parties these are c_j and c'_j with
    /// c_j + c'_j s = P g_j s^2 + t (short).
    Relinearisation {
        /// Digits, primes and special primes of the key.
        part: &'a KeyPart,
        /// The public seed of all a_j.
        seed: &'a Seed,
        /// B_j.
        sums: &'a [Poly<B, Ntt>],
        /// (b, a).
        key: &'a PublicKey<B>,
    },
}

/// A party's secret and the errors of its share. Wiped when dropped, and never printed.
pub struct ShareWitness(pub(super) Vec<Integers>);

impl std::fmt::Debug for ShareWitness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShareWitness(secret)")
    }
}

/// What may be assumed of a share whose proof was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShareBound {
    /// Bound on the coefficients of s, and of every v_j.
    pub secret: BigUint,
    /// Bound on the coefficients of every error.
    pub error: BigUint,
}

impl ShareBound {
    /// The joint key of shares within these bounds, N coefficients each.
    #[must_use]
    pub fn joint(shares: &[Self], n: usize) -> KeyBound {
        let log2 = |x: BigUint| synchromesh::exact::log2_biguint(&x) + (n as f64).log2() / 2.0;
        KeyBound {
            error: log2(shares.iter().map(|share| &share.error).sum()),
            secret: log2(shares.iter().map(|share| &share.secret).sum()),
        }
    }
}

/// The column of s.
const SECRET: usize = 0;

/// Shares that consist of these parts, with proofs.
pub struct ShareProofs<'a, B: Backend> {
    context: &'a Context<B>,
    relation: Relation<B>,
    parameters: Parameters,
}

/// The relation while it is put together.
struct Builder<'a, B: Backend> {
    context: &'a Context<B>,
    primes: &'a IndexSet,
    columns: Vec<Column>,
    rows: Vec<Vec<Term<B>>>,
}

impl<'a, B: Backend> ShareProofs<'a, B> {
    /// Shares with these parts, all on `primes`.
    ///
    /// # Errors
    /// [`ProofError::Parameters`] for challenges that are not integers, for a part on other primes or an even g,
    /// [`ProofError::Count`] for sums that do not fit.
    pub fn new(
        context: &'a Context<B>,
        primes: &'a IndexSet,
        parts: &[Part<'_, B>],
        parameters: Parameters,
    ) -> Result<Self> {
        context.params().require_secure(primes)?;
        let mut builder = Builder { context, primes, columns: Vec::new(), rows: Vec::new() };
        builder.small_secret("s");
        for part in parts {
            builder.add(part)?;
        }
        let relation = Relation::new(context, primes, builder.columns, builder.rows)?;
        Linear::new(context, &relation, parameters)?;
        Ok(Self { context, relation, parameters })
    }

    /// The relation that is proven; its first column is s.
    #[must_use]
    pub const fn relation(&self) -> &Relation<B> {
        &self.relation
    }

    /// N, of the ring that shares are in.
    #[must_use]
    pub fn degree(&self) -> usize {
        self.context.params().n()
    }

    pub(super) fn linear(&self) -> Result<Linear<'_, B>> {
        Linear::new(self.context, &self.relation, self.parameters)
    }

    /// The sizes of a proof.
    ///
    /// # Errors
    /// As [`Linear::plan`].
    pub fn plan(&self) -> Result<Plan> {
        self.linear()?.plan(1)
    }

    /// The share for `secret` with fresh errors, in the order of the parts and their digits.
    ///
    /// # Errors
    /// [`rlwe::Error::Entropy`](synchromesh::rlwe::Error::Entropy) without randomness; [`ProofError::Count`] unless there are N coefficients.
    pub fn share(&self, secret: &SmallPoly, randomness: &mut Randomness) -> Result<(Vec<Poly<B, Ntt>>, ShareWitness)> {
        let n = self.context.params().n();
        if secret.len() != n {
            return Err(ProofError::Count { what: "coefficients of the secret", expected: n, got: secret.len() });
        }
        self.completed(vec![Integers::from_signed(secret.as_slice().iter(), 1)], randomness)
    }

    /// As [`Self::share`], with the secret and the first errors of another share: `columns` polynomials of its witness in
    /// all. Both relations must begin with the same parts.
    ///
    /// # Errors
    /// As [`Self::share`]; [`ProofError::Count`] for more polynomials than either has.
    pub fn share_again(
        &self,
        witness: &ShareWitness,
        columns: usize,
        randomness: &mut Randomness,
    ) -> Result<(Vec<Poly<B, Ntt>>, ShareWitness)> {
        let most = witness.0.len().min(self.relation.columns().len());
        if !(1..=most).contains(&columns) {
            let what = "polynomials that two shares have in common";
            return Err(ProofError::Count { what, expected: most, got: columns });
        }
        self.completed(witness.0[..columns].iter().map(Integers::duplicate).collect(), randomness)
    }

    /// The share with this beginning of its witness, and fresh polynomials for the rest.
    fn completed(
        &self,
        mut witness: Vec<Integers>,
        randomness: &mut Randomness,
    ) -> Result<(Vec<Poly<B, Ntt>>, ShareWitness)> {
        let params = self.context.params();
        let n = params.n();
        let seed = randomness.next_seed()?;
        let fresh = |(j, column): (usize, &Column)| {
            let (secrets, errors) = (params.secret(), params.error());
            let sample = if column.bound == BigUint::from(secrets.bound()) {
                secrets.sample(&seed, Purpose::EncryptionSecret, j as u32, n)
            } else {
                errors.sample(&seed, Purpose::SwitchKeyError, j as u32, n)
            };
            Integers::from_signed(sample.as_slice().iter(), 1)
        };
        let known = witness.len();
        witness.extend(self.relation.columns().iter().enumerate().skip(known).map(fresh));
        let image = self.relation.image(self.context, &witness)?;
        let copy = |part: &SecretPoly<B>| Ok(part.poly().duplicate(self.context.backend())?);
        Ok((image.iter().map(copy).collect::<Result<_>>()?, ShareWitness(witness)))
    }

    /// A proof for a share made by [`Self::share`].
    ///
    /// # Errors
    /// [`ProofError::Count`] for another number of ring elements, [`ProofError::Witness`] for a secret that is not short.
    pub fn prove(
        &self,
        share: &[Poly<B, Ntt>],
        witness: &ShareWitness,
        transcript: &Transcript,
        randomness: &mut Randomness,
    ) -> Result<Vec<u8>> {
        let target: Vec<&Poly<B, Ntt>> = share.iter().collect();
        self.linear()?.prove(&[&target], &[&witness.0], transcript, &randomness.next_seed()?)
    }

    /// Checks a proof for this share, and says what it proves.
    ///
    /// # Errors
    /// Those of [`ProofError::blames_prover`], where the prover cheats or the message was altered.
    pub fn verify(&self, share: &[Poly<B, Ntt>], proof: &[u8], transcript: &Transcript) -> Result<ShareBound> {
        let target: Vec<&Poly<B, Ntt>> = share.iter().collect();
        let plan = self.linear()?.verify(&[&target], proof, transcript)?;
        let secret = BigUint::from(self.context.params().secret().bound());
        let largest = |secrets: bool| {
            let columns = self.relation.columns().iter().zip(&plan.columns);
            let of = columns.filter(|(column, _)| (column.bound == secret) == secrets);
            of.map(|(_, plan)| plan.extracted.clone()).max().unwrap_or_default()
        };
        Ok(ShareBound { secret: largest(true), error: largest(false) })
    }
}

pub(super) fn secret_column(params: &synchromesh::rlwe::Params, name: &'static str) -> Column {
    let secret = params.secret();
    Column { name, bound: secret.bound().into(), deviation: secret.variance().sqrt(), constant: false, masking: None }
}

pub(super) fn error_column(params: &synchromesh::rlwe::Params) -> Column {
    let error = params.error();
    Column {
        name: "e",
        bound: error.bound().into(),
        deviation: error.variance().sqrt(),
        constant: false,
        masking: None,
    }
}

impl<B: Backend> Builder<'_, B> {
    fn column(&mut self, column: Column) -> usize {
        self.columns.push(column);
        self.columns.len() - 1
    }

    fn small_secret(&mut self, name: &'static str) -> usize {
        self.column(secret_column(self.context.params(), name))
    }

    /// t e for an error of its own.
    fn error(&mut self) -> Term<B> {
        let column = self.column(error_column(self.context.params()));
        let t = self.context.params().ring().residues(self.primes, self.context.params().error_multiple());
        Term { column, galois: 1, factor: Factor::Integer(t) }
    }

    fn add(&mut self, part: &Part<'_, B>) -> Result<()> {
        match part {
            Part::Public(seed) => {
                let a = self.negated(seed, Purpose::PublicKeyUniform, 0)?;
                let error = self.error();
                self.rows.push(vec![Term { column: SECRET, galois: 1, factor: a }, error]);
                Ok(())
            }
            Part::Rotation { galois, part, seed } => self.rotation(*galois, part, seed),
            Part::Relinearisation { part, seed, sums, key } => self.relinearisation(part, seed, sums, key),
        }
    }

    fn require(&self, part: &KeyPart) -> Result<()> {
        if part.primes() == self.primes {
            return Ok(());
        }
        Err(ProofError::Parameters { rule: "the parts of a share must be on the same primes".into() })
    }

    fn rotation(&mut self, galois: usize, part: &KeyPart, seed: &Seed) -> Result<()> {
        self.require(part)?;
        let params = self.context.params();
        let two_n = 2 * params.n();
        if galois.is_multiple_of(2) || galois >= two_n {
            let rule = format!("the Galois element {galois} is not odd and below 2N = {two_n}");
            return Err(ProofError::Parameters { rule });
        }
        let under = inverse_galois(galois, two_n);
        let rows = part.shape().rows(params);
        let special = params.ring().product(&part.shape().special);
        for &index in part.rows() {
            let row = &rows[index];
            let power = BigUint::from(1u32) << row.radix.map_or(0, |radix| radix.bits * radix.index);
            let gadget = params.ring().residues(self.primes, &(&special * power));
            let own = |(i, x)| if row.own.contains(i) { x } else { 0 };
            let gadget = self.primes.iter().zip(gadget).map(own).collect();
            let a = self.negated(seed, Purpose::SwitchKeyUniform, index as u32)?;
            let error = self.error();
            self.rows.push(vec![
                Term { column: SECRET, galois: under, factor: a },
                error,
                Term { column: SECRET, galois: 1, factor: Factor::Integer(gadget) },
            ]);
        }
        Ok(())
    }

    fn relinearisation(
        &mut self,
        part: &KeyPart,
        seed: &Seed,
        sums: &[Poly<B, Ntt>],
        key: &PublicKey<B>,
    ) -> Result<()> {
        self.require(part)?;
        if sums.len() != part.rows().len() {
            return Err(ProofError::Count {
                what: "sums of the first round",
                expected: part.rows().len(),
                got: sums.len(),
            });
        }
        let backend = self.context.backend();
        for (&index, sum) in part.rows().iter().zip(sums) {
            sum.require(self.primes)?;
            let v = self.small_secret("v");
            let a_j = uniform(self.context, self.primes, seed, Purpose::SwitchKeyUniform, index as u32)?;
            let a = uniform(self.context, self.primes, key.seed(), Purpose::PublicKeyUniform, 0)?;
            let b = key.b().restrict(backend, self.primes)?;
            for (of_s, of_v) in [(sum.duplicate(backend)?, b), (a_j, a)] {
                let error = self.error();
                self.rows.push(vec![
                    Term { column: SECRET, galois: 1, factor: Factor::Ring(of_s) },
                    Term { column: v, galois: 1, factor: Factor::Ring(of_v) },
                    error,
                ]);
            }
        }
        Ok(())
    }

    /// -a.
    fn negated(&self, seed: &Seed, purpose: Purpose, digit: u32) -> Result<Factor<B>> {
        let mut a = uniform(self.context, self.primes, seed, purpose, digit)?;
        a.neg_assign(self.context.backend())?;
        Ok(Factor::Ring(a))
    }
}
