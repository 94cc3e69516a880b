//! Switch keys: what they switch, their wire form with a seed, and their prepared form with constants folded in.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, Cpu, IndexSet, Ntt, Poly, View, ViewMut};

use crate::context::{Cache, Context};
use crate::error::Error;
use crate::params::hex;
use crate::randomness::Randomness;
use crate::secret_key::{KeyId, SecretKey, SecretPoly, scaled_error, uniform};
use crate::switch_plan::{DigitSizes, SwitchPlan};

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

/// The wire form: for each digit j, b_j = -a_j s + t e_j + P g_j s' modulo QP, with a_j expanded from a seed and g_j
/// the CRT idempotent of the digit (ePrint 2023/1642, section 2.8).
pub struct SwitchKey<B: Backend = Cpu> {
    source: Source,
    target: KeyId,
    params_digest: [u8; 32],
    sizes: DigitSizes,
    seed: Seed,
    b: Vec<Poly<B, Ntt>>,
}

impl<B: Backend> SwitchKey<B> {
    /// Makes the key that brings `source` under `secret`, with the digits and special primes of `plan`.
    ///
    /// For [`Source::Key`], `other` is that key; otherwise it is not used.
    ///
    /// # Errors
    /// [`Error::MissingKey`] when the other secret key is not given, [`Error::Entropy`], or when the device fails.
    pub fn generate(
        context: &Context<B>,
        secret: &SecretKey<B>,
        source: Source,
        other: Option<&SecretKey<B>>,
        plan: &SwitchPlan,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let backend = context.backend();
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
                (slots.duplicate(backend)?, other.slots().poly().duplicate(backend)?)
            }
        };
        let (under, from) = (SecretPoly::new(under), SecretPoly::new(from));
        context.params().require_secure(&context.params().keyed())?;
        let root = randomness.next_seed()?;
        let seed = root.derive("switch key uniform", 0);
        let errors = root.derive("switch key error", 0);
        let b = (0..plan.digits.len())
            .map(|j| digit_body(context, &under, &from, plan, j, &seed, &errors))
            .collect::<Result<_, _>>()?;
        let params_digest = *context.params().digest();
        Ok(Self { source, target: secret.id(), params_digest, sizes: plan.digit_sizes(), seed, b })
    }

    /// The key with these parts, as read from a file.
    ///
    /// # Errors
    /// [`Error::Params`] when the number of digits does not fit, [`Error::Ring`] for a digit on other primes than QP,
    /// [`Error::Security`] when QP is too large for N.
    pub fn from_parts(
        context: &Context<B>,
        source: Source,
        target: KeyId,
        sizes: DigitSizes,
        seed: Seed,
        b: Vec<Poly<B, Ntt>>,
    ) -> Result<Self, Error> {
        let params = context.params();
        SwitchPlan::with_digits(params, &sizes)?;
        if b.len() != sizes.0.len() {
            return Err(Error::params(format!("a key of {} digits has {} polynomials", sizes.0.len(), b.len())));
        }
        let keyed = params.keyed();
        params.require_secure(&keyed)?;
        b.iter().try_for_each(|p| p.require(&keyed))?;
        Ok(Self { source, target, params_digest: *params.digest(), sizes, seed, b })
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

    /// Primes in each digit.
    #[must_use]
    pub const fn sizes(&self) -> &DigitSizes {
        &self.sizes
    }

    /// The public seed of all a_j.
    #[must_use]
    pub const fn seed(&self) -> &Seed {
        &self.seed
    }

    /// b_j in slots over QP.
    #[must_use]
    pub fn b(&self) -> &[Poly<B, Ntt>] {
        &self.b
    }

    /// Bytes of a prepared key of this shape: 2 omega (l + k) N words.
    #[must_use]
    pub fn prepared_bytes(&self, context: &Context<B>) -> usize {
        self.b.iter().map(|p| 2 * 8 * p.primes().len() * context.params().n()).sum()
    }

    /// Expands the seed and multiplies the constants of `plan` into both columns.
    ///
    /// # Errors
    /// [`Error::ParamsDiffer`], [`Error::Params`] when the plan has other digits, or when the device fails.
    pub fn prepare(&self, context: &Context<B>, plan: &SwitchPlan) -> Result<PreparedKey<B>, Error> {
        context.params().require_digest(&self.params_digest)?;
        if plan.digit_sizes() != self.sizes {
            return Err(Error::params(format!(
                "the plan has digits {:?}, the key {:?}",
                plan.digit_sizes().0,
                self.sizes.0
            )));
        }
        let (backend, ring) = (context.backend(), synchromesh_ring::Error::from);
        let primes = context.params().q().union(&plan.special);
        let factors = plan.key_factors(context.params())?;
        let rows = primes.len();
        let all: Vec<usize> = (0..rows).collect();
        let mut columns =
            [backend.alloc(rows * self.b.len()).map_err(ring)?, backend.alloc(rows * self.b.len()).map_err(ring)?];
        for (j, b) in self.b.iter().enumerate() {
            let a = uniform(context, &primes, &self.seed, Purpose::SwitchKeyUniform, j as u32)?;
            let at: Vec<usize> = (j * rows..(j + 1) * rows).collect();
            for (column, poly) in columns.iter_mut().zip([b, &a]) {
                backend.copy(View::new(poly.buffer(), &all), ViewMut::new(column, &at)).map_err(ring)?;
                if factors.iter().any(|&f| f != 1) {
                    backend.mul_scalar_assign(primes.as_slice(), ViewMut::new(column, &at), &factors).map_err(ring)?;
                }
            }
        }
        Ok(PreparedKey { source: self.source, target: self.target, primes, columns })
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

/// b_j = -a_j s + t e_j + P s' on the primes of digit j, without the last term elsewhere.
fn digit_body<B: Backend>(
    context: &Context<B>,
    under: &SecretPoly<B>,
    from: &SecretPoly<B>,
    plan: &SwitchPlan,
    j: usize,
    seed: &Seed,
    errors: &Seed,
) -> Result<Poly<B, Ntt>, Error> {
    let (backend, params) = (context.backend(), context.params());
    let keyed = params.keyed();
    let a = uniform(context, &keyed, seed, Purpose::SwitchKeyUniform, j as u32)?;
    let error = params.error().sample(errors, Purpose::SwitchKeyError, j as u32, params.n());
    let mut b = scaled_error(context, &keyed, &error)?.into_ntt(backend)?;
    b.sub_assign(backend, SecretPoly::new(a.mul(backend, under.poly())?).poly())?;
    let own = &plan.digits[j];
    let p = params.ring().residues(own, &params.ring().product(&plan.special));
    let rows = keyed.rows(own)?;
    backend
        .mul_scalar_acc(own.as_slice(), View::new(from.poly().buffer(), &rows), &p, ViewMut::new(b.buffer_mut(), &rows))
        .map_err(synchromesh_ring::Error::from)?;
    Ok(b)
}

/// A key on the device with its constants folded in: two columns, each \[digit\]\[limb of QP\]\[N\] in slots.
pub struct PreparedKey<B: Backend = Cpu> {
    source: Source,
    target: KeyId,
    primes: IndexSet,
    columns: [B::Buffer; 2],
}

impl<B: Backend> PreparedKey<B> {
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

    /// The primes of its rows.
    #[must_use]
    pub const fn primes(&self) -> &IndexSet {
        &self.primes
    }

    /// Column 0 (b) and column 1 (a).
    #[must_use]
    pub const fn columns(&self) -> &[B::Buffer; 2] {
        &self.columns
    }
}

/// The switch keys of one secret key, and their prepared forms, made at first use.
pub struct EvaluationKeys<B: Backend = Cpu> {
    target: KeyId,
    keys: BTreeMap<Source, Arc<SwitchKey<B>>>,
    prepared: Cache<(Source, SwitchPlan), PreparedKey<B>>,
}

impl<B: Backend> EvaluationKeys<B> {
    /// No keys yet.
    #[must_use]
    pub fn new(target: KeyId) -> Self {
        Self { target, keys: BTreeMap::new(), prepared: Cache::default() }
    }

    /// Makes keys for each of `sources` (relinearisation and rotations).
    ///
    /// # Errors
    /// As [`SwitchKey::generate`].
    pub fn generate(
        context: &Context<B>,
        secret: &SecretKey<B>,
        sources: impl IntoIterator<Item = Source>,
        plan: &SwitchPlan,
        randomness: &mut Randomness,
    ) -> Result<Self, Error> {
        let mut keys = Self::new(secret.id());
        for source in sources {
            keys.insert(SwitchKey::generate(context, secret, source, None, plan, randomness)?)?;
        }
        Ok(keys)
    }

    /// Adds a key.
    ///
    /// # Errors
    /// [`Error::KeysDiffer`] when it switches to another secret key.
    pub fn insert(&mut self, key: SwitchKey<B>) -> Result<(), Error> {
        self.target.require(key.target)?;
        self.keys.insert(key.source, Arc::new(key));
        self.prepared.clear();
        Ok(())
    }

    /// The secret key they belong to.
    #[must_use]
    pub const fn target(&self) -> KeyId {
        self.target
    }

    /// All keys in their wire form.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<SwitchKey<B>>> {
        self.keys.values()
    }

    /// The wire form of one key.
    ///
    /// # Errors
    /// [`Error::MissingKey`].
    pub fn get(&self, source: Source) -> Result<&Arc<SwitchKey<B>>, Error> {
        self.keys.get(&source).ok_or_else(|| {
            let have: Vec<String> = self.keys.keys().take(8).map(Source::to_string).collect();
            let more = self.keys.len().saturating_sub(8);
            let suffix = if more > 0 { format!(" and {more} more") } else { String::new() };
            let have = if have.is_empty() { "none".to_owned() } else { have.join(", ") + &suffix };
            Error::MissingKey { source_name: source.to_string(), have }
        })
    }

    /// One key prepared for `plan`, from the cache if it was made before.
    ///
    /// # Errors
    /// [`Error::MissingKey`], or as [`SwitchKey::prepare`].
    pub fn prepared(
        &self,
        context: &Context<B>,
        source: Source,
        plan: &SwitchPlan,
    ) -> Result<Arc<PreparedKey<B>>, Error> {
        let key = self.get(source)?;
        self.prepared.get_or_make((source, plan.clone()), || key.prepare(context, plan))
    }

    /// Drops the prepared forms; they are derived again at need.
    pub fn drop_prepared(&self) {
        self.prepared.clear();
    }
}
