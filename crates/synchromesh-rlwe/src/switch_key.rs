//! Switch keys: what they switch, and their wire form with a seed.

use std::fmt;

use synchromesh_ring::sampler::{Purpose, Seed, SmallPoly};
use synchromesh_ring::{Backend, Cpu, IndexSet, Ntt, Poly, View, ViewMut};

use crate::context::Context;
use crate::error::Error;
use crate::key_part::KeyPart;
use crate::params::hex;
use crate::randomness::Randomness;
use crate::secret_key::{SecretKey, SecretPoly, scaled_error, uniform};
use crate::spectrum;
use crate::switch_plan::{DigitSizes, KeyRow, KeyShape, SwitchPlan};
use crate::wire::KeyId;

/// What a switch key brings under its target key s.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// s^2, for relinearisation.
    Square,
    /// s(X^g), for a rotation: the key takes s to s(X^(1/g)), and X -> X^g follows.
    Galois(usize),
    /// Another secret key.
    Key(KeyId),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Square => f.write_str("s^2 (relinearisation)"),
            Self::Galois(g) => write!(f, "s(X^{g}) (rotation)"),
            Self::Key(id) => write!(f, "key {}", hex(&id.0)),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The halves a_j of a switch key, which errors do not enter.
pub enum UniformHalves<B: Backend = Cpu> {
    /// Expanded from a public seed.
    Seed(Seed),
    /// Themselves, one for each row of the part: of a key that was made in shares, whose a_j nobody chose.
    Given(Vec<Poly<B, Ntt>>),
}

/// The wire form: for each row j, b_j = -a_j s + t e_j + P g_j s' modulo QP, with a_j expanded from a seed and g_j
/// the CRT idempotent of the row's digit (ePrint 2023/1642, section 2.8), times 2^(w i) for radix digit i.
pub struct SwitchKey<B: Backend = Cpu> {
    source: Source,
    target: KeyId,
    params_digest: [u8; 32],
    part: KeyPart,
    uniform: UniformHalves<B>,
    b: Vec<Poly<B, Ntt>>,
}

impl<B: Backend> SwitchKey<B> {
    /// Makes the key that brings `source` under `secret`, with the stored digits and special primes of `plan`.
    ///
    /// For [`Source::Key`], `other` is that key; otherwise it is not used.
    ///
    /// # Errors
    /// [`Error::MissingKey`] when the other secret key is not given, [`Error::ParamsDiffer`] for a secret key of other
    /// parameters, [`Error::Security`], [`Error::Entropy`], or when the device fails.
    pub fn generate(
        context: &Context<B>,
        secret: &SecretKey<B>,
        source: Source,
        other: Option<&SecretKey<B>>,
        plan: &SwitchPlan,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let part = KeyPart::whole(context.params(), plan.shape())?;
        Self::generate_part(context, secret, source, other, &part, randomness)
    }

    /// The part of such a key that `part` names, the same as [`Self::trim`] leaves of the whole.
    ///
    /// # Errors
    /// As [`Self::generate`].
    pub fn generate_part(
        context: &Context<B>,
        secret: &SecretKey<B>,
        source: Source,
        other: Option<&SecretKey<B>>,
        part: &KeyPart,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        Self::from_root(context, secret, (source, other), part, &randomness.next_seed()?)
    }

    /// The key whose randomness is expanded from `root`.
    pub(crate) fn from_root(
        context: &Context<B>,
        secret: &SecretKey<B>,
        (source, other): (Source, Option<&SecretKey<B>>),
        part: &KeyPart,
        root: &Seed,
    ) -> Result<Self, Error> {
        let backend = context.backend();
        [Some(secret), other].into_iter().flatten().try_for_each(|key| key.require_params(context.params()))?;
        let slots = secret.slots().poly();
        let missing = || Error::MissingKey { source_name: source.to_string(), have: "no secret key for it".to_owned() };
        let (under, from) = match source {
            Source::Square => (slots.duplicate(backend)?, slots.mul(backend, slots)?),
            Source::Galois(g) => {
                let inverse = inverse_galois(g, 2 * context.params().n());
                (slots.automorphism(backend, inverse)?, slots.duplicate(backend)?)
            }
            Source::Key(id) => {
                let other = other.filter(|k| k.id() == id).ok_or_else(missing)?;
                // On all primes of the part, of which keys under the other secret may know fewer.
                let own = part.primes().intersection(&part.shape().q);
                let from = Poly::from_small(backend, &own, other.small())?.into_ntt(backend)?;
                (slots.duplicate(backend)?, from)
            }
        };
        let (under, from) = (SecretPoly::new(under), SecretPoly::new(from));
        secret.require_secure(context.params(), part.primes())?;
        let seed = root.derive("switch key uniform", 0).published();
        let errors = root.derive("switch key error", 0);
        let rows = part.shape().rows(context.params());
        let b = part
            .rows()
            .iter()
            .map(|&i| row_body(context, &under, &from, (&rows[i], part), [&seed, &errors]))
            .collect::<Result<_, _>>()?;
        let params_digest = *context.params().digest();
        let uniform = UniformHalves::Seed(seed);
        Ok(Self { source, target: secret.id(), params_digest, part: part.clone(), uniform, b })
    }

    /// The key with these parts, as read from a file: b, and a if it is given, of the rows of `part`, in their order.
    ///
    /// # Errors
    /// [`Error::SwitchPlan`] when the number of digits does not fit, [`Error::Ring`] for a digit on other primes than those
    /// of the part, [`Error::Security`] when QP is too large for N.
    pub fn from_parts(
        context: &Context<B>,
        source: Source,
        target: KeyId,
        part: KeyPart,
        uniform: UniformHalves<B>,
        b: Vec<Poly<B, Ntt>>,
    ) -> Result<Self, Error> {
        let params = context.params();
        let given = match &uniform {
            UniformHalves::Seed(_) => None,
            UniformHalves::Given(a) => Some(a),
        };
        for list in [Some(&b), given].into_iter().flatten() {
            if list.len() != part.rows().len() {
                let (rows, have) = (part.rows().len(), list.len());
                return Err(Error::switch_plan(format!("a key of {rows} rows has {have} polynomials")));
            }
            list.iter().try_for_each(|p| p.require(part.primes()))?;
        }
        params.require_secure(part.primes())?;
        Ok(Self { source, target, params_digest: *params.digest(), part, uniform, b })
    }

    /// What is said of this key, without its rows: of one that is computed with in its prepared form alone.
    pub(crate) fn without_rows(&self) -> Self {
        let uniform = match &self.uniform {
            UniformHalves::Seed(seed) => UniformHalves::Seed(Seed::from_bytes(*seed.as_bytes())),
            UniformHalves::Given(_) => UniformHalves::Given(Vec::new()),
        };
        let (source, target, params_digest, part) = (self.source, self.target, self.params_digest, self.part.clone());
        Self { source, target, params_digest, part, uniform, b: Vec::new() }
    }

    /// Fails for a key whose rows are gone.
    pub(crate) fn require_rows(&self) -> Result<(), Error> {
        if !self.b.is_empty() {
            return Ok(());
        }
        let have = "what was prepared of it, for the plans that were named then; whatever else needs the stored key"
            .to_owned();
        Err(Error::MissingKey { source_name: format!("{} as it is stored", self.source), have })
    }

    /// The part of this key that `part` names.
    ///
    /// # Errors
    /// [`Error::MissingKey`] where rows are gone ([`crate::EvaluationKeys::into_prepared`]), [`Error::ParamsDiffer`], [`Error::SwitchPlan`] for a part of other digits, [`Error::TrimmedKey`] for a part this key
    /// has lost, or when the device fails.
    pub fn trim(&self, context: &Context<B>, part: &KeyPart) -> Result<Self, Error> {
        let params = context.params();
        params.require_digest(&self.params_digest)?;
        self.require_rows()?;
        self.require_shape(part.shape())?;
        let lost = part.primes().without(self.part.primes());
        let row = |j: &usize| self.part.rows().iter().position(|i| i == j);
        if !lost.is_empty() || part.rows().iter().any(|j| row(j).is_none()) {
            return Err(self.lacks(&part.usable().without(self.part.usable()).union(&lost)));
        }
        let cut = |b: &Poly<B, Ntt>| Ok(b.restrict(context.backend(), part.primes())?);
        let rows =
            |of: &[Poly<B, Ntt>]| part.rows().iter().filter_map(row).map(|i| cut(&of[i])).collect::<Result<_, Error>>();
        let uniform = match &self.uniform {
            UniformHalves::Seed(seed) => UniformHalves::Seed(Seed::from_bytes(*seed.as_bytes())),
            UniformHalves::Given(a) => UniformHalves::Given(rows(a)?),
        };
        let (source, target, params_digest) = (self.source, self.target, self.params_digest);
        Ok(Self { source, target, params_digest, part: part.clone(), uniform, b: rows(&self.b)? })
    }

    /// The error that says which primes this key has lost.
    pub(crate) fn lacks(&self, primes: &IndexSet) -> Error {
        let [missing, have] = [primes, self.part.primes()].map(|set| set.as_slice().to_vec());
        Error::TrimmedKey { source_name: self.source.to_string(), missing, have }
    }

    /// Fails unless this is what the stored key is.
    pub(crate) fn require_shape(&self, shape: &KeyShape) -> Result<(), Error> {
        if shape == self.part.shape() {
            return Ok(());
        }
        let own = self.part.shape();
        Err(Error::KeyShape {
            source_name: self.source.to_string(),
            needed: shape.sizes.0.clone(),
            needed_special: shape.special.len(),
            have: own.sizes.0.clone(),
            have_special: own.special.len(),
        })
    }

    /// What it switches.
    #[must_use]
    pub const fn source(&self) -> Source {
        self.source
    }

    /// The key it switches to.
    #[must_use]
    pub const fn target(&self) -> KeyId {
        self.target
    }

    /// The parameters it was made with.
    #[must_use]
    pub const fn params_digest(&self) -> &[u8; 32] {
        &self.params_digest
    }

    /// Primes in each digit of the whole key.
    #[must_use]
    pub const fn sizes(&self) -> &DigitSizes {
        &self.part.shape().sizes
    }

    /// What of a plan is fixed in the whole key.
    #[must_use]
    pub const fn shape(&self) -> &KeyShape {
        self.part.shape()
    }

    /// Which rows and limbs of it there are.
    #[must_use]
    pub const fn part(&self) -> &KeyPart {
        &self.part
    }

    /// All a_j, or their seed.
    #[must_use]
    pub const fn uniform(&self) -> &UniformHalves<B> {
        &self.uniform
    }

    /// b of the rows of the part, in slots over its primes; none where only what was prepared of it is left
    /// ([`crate::EvaluationKeys::into_prepared`]).
    #[must_use]
    pub fn b(&self) -> &[Poly<B, Ntt>] {
        &self.b
    }
}

/// g^-1 mod 2N for odd g.
#[must_use]
pub fn inverse_galois(g: usize, two_n: usize) -> usize {
    let (mut power, mut result) = (g % two_n, 1);
    let mut exponent = two_n / 4 - 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * power % two_n;
        }
        power = power * power % two_n;
        exponent >>= 1;
    }
    result
}

/// b_j = -a_j s + t e_j + P_0 2^(w i) s' on the primes of the row's digit, without the last term elsewhere.
fn row_body<B: Backend>(
    context: &Context<B>,
    under: &SecretPoly<B>,
    from: &SecretPoly<B>,
    (row, part): (&KeyRow, &KeyPart),
    [seed, errors]: [&Seed; 2],
) -> Result<Poly<B, Ntt>, Error> {
    let (backend, params) = (context.backend(), context.params());
    let (primes, j) = (part.primes(), row.index as u32);
    let a = uniform(context, primes, seed, Purpose::SwitchKeyUniform, j)?;
    let error = if B::HOLDS_NUMBERS {
        spectrum::even_error(params.error(), params.n(), errors, Purpose::SwitchKeyError, j)?
    } else {
        SmallPoly::from_vec(vec![0; params.n()]).bounded(params.error().bound())
    };
    let mut b = scaled_error(context, primes, &error)?.into_ntt(backend)?;
    let mut product = SecretPoly::new(Poly::new(backend, primes)?);
    let (all, secret_rows) = ((0..primes.len()).collect::<Vec<_>>(), under.poly().primes().rows(primes)?);
    let (a, s) = (View::new(a.buffer(), &all), View::new(under.poly().buffer(), &secret_rows));
    backend.mul_into(primes.as_slice(), a, s, ViewMut::new(product.poly_mut().buffer_mut(), &all))?;
    b.sub_assign(backend, product.poly())?;
    let own = row.own.intersection(primes);
    let factors = params.ring().residues(&own, &(params.ring().product(&part.shape().special) * row.power()));
    let (rows, from_rows) = (primes.rows(&own)?, from.poly().primes().rows(&own)?);
    let from = View::new(from.poly().buffer(), &from_rows);
    backend.mul_scalar_acc(own.as_slice(), from, &factors, ViewMut::new(b.buffer_mut(), &rows))?;
    Ok(b)
}
