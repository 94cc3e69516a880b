//! Proofs of plaintext knowledge: c_0 = b u + t e_0 + m, c_1 = a u + t e_1 with short u, e_0, e_1 and m.
//!
//! The special primes of the public key are not used, so that encryption is exactly this map. What a verifier may assume is
//! that k c encrypts a known message with known, short randomness, k = 1 or 2 by the challenges; the honest prover encrypts
//! m / k, and everybody goes on with k c.

use num_bigint::BigUint;
use synchromesh::bgv::{Bgv, Ciphertext, Context, Factor as Correction};
use synchromesh::exact::{Plaintext, Scheme, log2_biguint};
use synchromesh::plain_modulus::{Arithmetic, PlainModulus, U256, from_biguint};
pub use synchromesh::rlwe::noise::KeyBound;
use synchromesh::rlwe::noise::{Noise, Origins, log2_add};
use synchromesh::rlwe::ring::sampler::{Purpose, Seed};
use synchromesh::rlwe::ring::{Backend, IndexSet, Ntt, Poly, ViewMut};
use synchromesh::rlwe::{self, KeyId, Params, PublicKey, Randomness};
use zeroize::Zeroizing;

use super::Parameters;
use super::error::{ProofError, Result};
use super::integers::{Integers, width_of};
use super::linear::{Linear, Plan};
use super::relation::{Column, Factor, Relation, Term};
use super::transcript::Transcript;

/// The order of the columns.
const U: usize = 0;
const ERROR_0: usize = 1;
const ERROR_1: usize = 2;
const MESSAGE: usize = 3;

/// What is proven of the plaintext polynomial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing more than its size.
    Any,
    /// That it is a constant: the same value in every slot.
    Constant,
}

/// The message and the randomness of an encryption. Wiped when dropped, and never printed.
pub struct Witness(pub(super) Vec<Integers>);

impl std::fmt::Debug for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Witness(secret)")
    }
}

/// What may be assumed of k c for a ciphertext c of an accepted proof, whoever made it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// k.
    pub multiple: u32,
    /// Bound on the coefficients of its message, an integer polynomial that is taken modulo t.
    pub message: BigUint,
    /// Bound on the coefficients of its u.
    pub u: BigUint,
    /// Bound on the coefficients of its e_0 and e_1.
    pub error: BigUint,
}

impl Bound {
    /// The bounds on k c with their k.
    #[must_use]
    pub const fn new(multiple: u32, message: BigUint, u: BigUint, error: BigUint) -> Self {
        Self { multiple, message, u, error }
    }

    /// log2 of a bound on |e| where the phase of k c is (m mod t) + t e: the message beyond t, e u, e_0 and e_1 s, the
    /// products by Cauchy and Schwarz.
    #[must_use]
    pub fn noise_log2(&self, params: &Params, key: &KeyBound) -> f64 {
        let half = f64::from(params.ring().log_n()) / 2.0;
        let [message, u, error] = [&self.message, &self.u, &self.error].map(log2_biguint);
        let t = log2_biguint(params.error_multiple());
        let terms = [message - t, 0.0, u + half + key.error, error + half + key.secret];
        // The last addition is for the roundings of the others.
        terms.into_iter().fold(error, log2_add) + 1e-9
    }
}

/// Encryptions under one public key at one level, with proofs.
pub struct EncryptionProofs<'a, B: Backend> {
    context: &'a Context<B>,
    relation: Relation<B>,
    parameters: Parameters,
    content: Content,
    key: KeyId,
    level: usize,
    header: Correction,
    /// f / k mod t, what the message is multiplied by.
    factor: BigUint,
}

impl<'a, B: Backend> EncryptionProofs<'a, B> {
    /// Encryptions under `key` at `level`.
    ///
    /// # Errors
    /// [`ProofError::Parameters`] for challenges that do not fit the content, or a k that shares a factor with t;
    /// [`rlwe::Error::ParamsDiffer`] and [`rlwe::Error::Level`] as everywhere.
    pub fn new(
        context: &'a Context<B>,
        key: &PublicKey<B>,
        level: usize,
        content: Content,
        parameters: Parameters,
    ) -> Result<Self> {
        let params = context.params().rlwe();
        params.require_digest(key.params_digest())?;
        let primes = params.level(level)?;
        let header = Bgv::fresh_header(context, level)?;
        let t = params.error_multiple();
        let k = parameters.challenges().multiple();
        let inverse = BigUint::from(k).modinv(t).ok_or_else(|| ProofError::Parameters {
            rule: format!("{k} must be a unit modulo t = {t}; use Challenges::Bits"),
        })?;
        let factor = inverse * header.value() % t;
        let relation = relation(context.rlwe(), key, primes, content)?;
        let proofs = Self { context, relation, parameters, content, key: key.id(), level, header, factor };
        proofs.linear()?;
        Ok(proofs)
    }

    /// k: a verifier may assume nothing of c itself, only of k c.
    #[must_use]
    pub const fn multiple(&self) -> u32 {
        self.parameters.challenges().multiple()
    }

    /// The relation that is proven; its columns are u, e_0, e_1 and m.
    #[must_use]
    pub const fn relation(&self) -> &Relation<B> {
        &self.relation
    }

    pub(super) fn linear(&self) -> Result<Linear<'_, B>> {
        Linear::new(self.context.rlwe(), &self.relation, self.parameters)
    }

    /// The sizes of a proof for `count` ciphertexts.
    ///
    /// # Errors
    /// As [`Linear::plan`].
    pub fn plan(&self, count: usize) -> Result<Plan> {
        self.linear()?.plan(count)
    }

    /// Bytes of a proof for `count` ciphertexts.
    ///
    /// # Errors
    /// As [`Linear::plan`].
    pub fn proof_bytes(&self, count: usize) -> Result<usize> {
        Ok(self.plan(count)?.bytes())
    }

    /// What a proof for `count` ciphertexts proves of each.
    ///
    /// # Errors
    /// As [`Linear::plan`].
    pub fn bound(&self, count: usize) -> Result<Bound> {
        Ok(Self::bound_of(&self.plan(count)?))
    }

    fn bound_of(plan: &Plan) -> Bound {
        let of = |j: usize| plan.columns[j].extracted.clone();
        Bound { multiple: plan.multiple, message: of(MESSAGE), u: of(U), error: of(ERROR_0).max(of(ERROR_1)) }
    }

    /// Encrypts m / k, so that k c encrypts m, and keeps the randomness.
    ///
    /// # Errors
    /// [`ProofError::Witness`] where a constant was promised and `plaintext` is none, [`rlwe::Error::Entropy`] without
    /// randomness, errors of the scheme for a plaintext of other parameters.
    pub fn encrypt(&self, plaintext: &Plaintext, randomness: &mut Randomness) -> Result<(Ciphertext<B>, Witness)> {
        let params = self.context.params().rlwe();
        let n = params.n();
        let poly = plaintext.poly();
        if poly.coeffs().len() != n {
            let found = poly.coeffs().len();
            return Err(synchromesh::Error::Degree { expected: n, found }.into());
        }
        if poly.modulus().value() != params.error_multiple() {
            let (expected, found) = (params.error_multiple().to_string(), poly.modulus().value().to_string());
            return Err(synchromesh::Error::PlainModulusDiffers { expected, found }.into());
        }
        let message = self.message(plaintext)?;
        let seed = randomness.next_seed()?;
        let u = params.secret().sample(&seed, Purpose::EncryptionSecret, 0, n);
        let error = |i| params.error().sample(&seed, Purpose::EncryptionError, i, n);
        let small = [u, error(0), error(1)];
        let mut witness: Vec<Integers> = small.iter().map(|x| Integers::from_signed(x.as_slice().iter(), 1)).collect();
        witness.push(message);
        let backend = self.context.backend();
        let parts = self.relation.image(self.context.rlwe(), &witness)?;
        let parts = parts.iter().map(|part| Ok(part.poly().duplicate(backend)?)).collect::<Result<_>>()?;
        let noise = rlwe::noise::public(n, params.error().variance().sqrt()).with_origins(Origins::ANY);
        Ok((self.ciphertext(parts, noise)?, Witness(witness)))
    }

    fn ciphertext(&self, parts: Vec<Poly<B, Ntt>>, noise: Noise) -> Result<Ciphertext<B>> {
        let params = self.context.params();
        let inner = rlwe::Ciphertext::new(params.rlwe(), parts, self.level, self.key, noise)?;
        Ok(Ciphertext::from_parts(params, inner, self.header.clone())?)
    }

    /// The centred representative of m f / k mod t.
    fn message(&self, plaintext: &Plaintext) -> Result<Integers> {
        let t = self.context.params().t();
        let coeffs = plaintext.poly().coeffs();
        let values: Zeroizing<Vec<U256>> =
            Zeroizing::new((0..coeffs.len()).map(|i| coeffs.at(i).unwrap_or_default()).collect());
        let scaled = Zeroizing::new(times(t, &values, &self.factor));
        let width = width_of(self.relation.columns()[MESSAGE].bound.bits());
        let message = Integers::from_residues(scaled.iter().copied(), t.value(), width);
        match self.content {
            Content::Any => Ok(message),
            Content::Constant if message.is_constant() => Ok(message.constant()),
            Content::Constant => {
                let column = self.relation.columns()[MESSAGE].name;
                Err(ProofError::Witness { index: 0, column, reason: "is not a constant" })
            }
        }
    }

    /// A proof for these ciphertexts, all made by [`Self::encrypt`] with these witnesses.
    ///
    /// # Errors
    /// [`ProofError::Count`], [`ProofError::Statement`], or [`rlwe::Error::Entropy`] without randomness.
    pub fn prove(
        &self,
        ciphertexts: &[&Ciphertext<B>],
        witnesses: &[Witness],
        transcript: &Transcript,
        randomness: &mut Randomness,
    ) -> Result<Vec<u8>> {
        let targets = self.targets(ciphertexts)?;
        let targets: Vec<&[&Poly<B, Ntt>]> = targets.iter().map(Vec::as_slice).collect();
        let witnesses: Vec<&[Integers]> = witnesses.iter().map(|witness| witness.0.as_slice()).collect();
        self.linear()?.prove(&targets, &witnesses, transcript, &randomness.next_seed()?)
    }

    /// Checks a proof for these ciphertexts, and says what it proves of each.
    ///
    /// # Errors
    /// Those of [`ProofError::blames_prover`], where the prover cheats or the message was altered.
    pub fn verify(&self, ciphertexts: &[&Ciphertext<B>], proof: &[u8], transcript: &Transcript) -> Result<Bound> {
        let targets = self.targets(ciphertexts)?;
        let targets: Vec<&[&Poly<B, Ntt>]> = targets.iter().map(Vec::as_slice).collect();
        Ok(Self::bound_of(&self.linear()?.verify(&targets, proof, transcript)?))
    }

    /// k c, which encrypts the message, under a certificate that holds for any prover that convinces.
    ///
    /// # Errors
    /// [`ProofError::Statement`] for a ciphertext that no proof of these is about.
    pub fn usable(&self, ciphertext: &Ciphertext<B>, bound: &Bound, key: &KeyBound) -> Result<Ciphertext<B>> {
        let params = self.context.params().rlwe();
        let noise = Noise::at_most(bound.noise_log2(params, key)).with_origins(Origins::ANY);
        let k = params.ring().residues(params.level(self.level)?, &BigUint::from(bound.multiple));
        let times = |part: &&Poly<B, Ntt>| {
            let mut part = part.duplicate(self.context.backend())?;
            part.mul_scalar_assign(self.context.backend(), &k)?;
            Ok(part)
        };
        let target = self.target(0, ciphertext)?;
        self.ciphertext(target.iter().map(times).collect::<Result<_>>()?, noise)
    }

    pub(super) fn targets<'c>(&self, ciphertexts: &[&'c Ciphertext<B>]) -> Result<Vec<Vec<&'c Poly<B, Ntt>>>> {
        ciphertexts.iter().enumerate().map(|(i, ciphertext)| self.target(i, ciphertext)).collect()
    }

    fn target<'c>(&self, index: usize, ciphertext: &'c Ciphertext<B>) -> Result<Vec<&'c Poly<B, Ntt>>> {
        let refused = |reason| Err(ProofError::Statement { index, reason });
        let inner = ciphertext.inner();
        if inner.params_digest() != self.context.params().rlwe().digest() {
            return refused("it is of other parameters");
        }
        if inner.key() != self.key {
            return refused("it is under another key");
        }
        if inner.level() != self.level || ciphertext.header() != &self.header {
            return refused("it is not fresh at the level of this proof");
        }
        if inner.parts().len() != 2 {
            return refused("it does not have two components");
        }
        Ok(inner.parts().iter().collect())
    }
}

/// The relation of an encryption under `key`.
fn relation<B: Backend>(
    context: &rlwe::Context<B>,
    key: &PublicKey<B>,
    primes: &IndexSet,
    content: Content,
) -> Result<Relation<B>> {
    let (params, backend) = (context.params(), context.backend());
    let t = params.error_multiple();
    let (secret, error) = (params.secret(), params.error());
    let column = |name, bound: BigUint, deviation, constant| Column { name, bound, deviation, constant, masking: None };
    let small = |name, bound: u64, variance: f64| column(name, bound.into(), variance.sqrt(), false);
    let columns = vec![
        small("u", secret.bound(), secret.variance()),
        small("e_0", error.bound(), error.variance()),
        small("e_1", error.bound(), error.variance()),
        column("m", t >> 1u32, (log2_biguint(t) - 12f64.log2() / 2.0).exp2(), content == Content::Constant),
    ];
    let residues = |x: &BigUint| Factor::Integer(params.ring().residues(primes, x));
    let term = |column, factor| Term { column, galois: 1, factor };
    let b = key.b().restrict(backend, primes)?;
    let a = uniform(context, primes, key.seed(), Purpose::PublicKeyUniform, 0)?;
    let message = term(MESSAGE, residues(&BigUint::from(1u32)));
    let rows = vec![
        vec![term(U, Factor::Ring(b)), term(ERROR_0, residues(t)), message],
        vec![term(U, Factor::Ring(a)), term(ERROR_1, residues(t))],
    ];
    Relation::new(context, primes, columns, rows)
}

/// A uniform polynomial in slots, expanded from a public seed.
pub(crate) fn uniform<B: Backend>(
    context: &rlwe::Context<B>,
    primes: &IndexSet,
    seed: &Seed,
    purpose: Purpose,
    digit: u32,
) -> Result<Poly<B, Ntt>> {
    let mut a = Poly::new(context.backend(), primes)?;
    let rows: Vec<usize> = (0..primes.len()).collect();
    let out = ViewMut::new(a.buffer_mut(), &rows);
    let done = context.backend().uniform(primes.as_slice(), seed, purpose, digit, out);
    done.map_err(rlwe::ring::Error::from)?;
    Ok(a)
}

/// x f mod t for each residue x and a public f.
fn times(t: &PlainModulus, values: &[U256], factor: &BigUint) -> Vec<U256> {
    let f = from_biguint(factor).unwrap_or_default();
    match t.arithmetic() {
        Arithmetic::Word(t) => values.iter().map(|x| [t.mul(x[0], f[0]), 0, 0, 0]).collect(),
        Arithmetic::Wide(t) => values.iter().map(|x| t.mul(x, &f)).collect(),
    }
}
