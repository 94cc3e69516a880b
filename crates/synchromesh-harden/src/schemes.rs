//! The three schemes at N = 2^10 and insecure, with keys, on vectors of small integers with the clear beside them.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::circuits::Arithmetic;
use synchromesh::ckks::{self, Ckks};
use synchromesh::exact;
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::ring::Cpu;
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey, Security};
use synchromesh::rotations::Rotations;
use synchromesh::scheme::{Encryptor, Scheme, Values};

/// log2 of the degree.
pub const LOG_N: u32 = 10;

/// Largest absolute value of an entry that is encrypted.
pub const LARGEST: i64 = 4;

/// The plaintext modulus: it has slots.
const T: i64 = 12_289;

/// How large the modulus is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Two levels, for circuits.
    Working,
    /// One prime, for files of ten kilobytes.
    Small,
}

impl Size {
    /// Widths of the primes of Q and P, the number of digits.
    const fn widths(self) -> (&'static [u32], &'static [u32], usize) {
        match self {
            Self::Working => (&[50, 50, 50], &[50, 51], 2),
            Self::Small => (&[40], &[41], 1),
        }
    }
}

/// A scheme whose parameters are made without a plan.
pub trait Sample: Scheme<Params: Clone> {
    /// Parameters of a size.
    ///
    /// # Errors
    /// The library's.
    fn sized(size: Size) -> Result<Self::Params>;

    /// Parameters from their literal in JSON.
    ///
    /// # Errors
    /// The library's.
    fn from_json(literal: &[u8]) -> Result<Self::Params>;

    /// The literal with every prime, in JSON.
    ///
    /// # Errors
    /// None that a literal causes.
    fn to_json(params: &Self::Params) -> Result<String>;
}

macro_rules! sample {
    ($scheme:ty, $params:ty, $literal:path) => {
        impl Sample for $scheme {
            fn sized(size: Size) -> Result<Self::Params> {
                Ok(<$params>::new($literal(size))?)
            }

            fn from_json(literal: &[u8]) -> Result<Self::Params> {
                Ok(<$params>::new(serde_json::from_slice(literal).context("no literal")?)?)
            }

            fn to_json(params: &Self::Params) -> Result<String> {
                serde_json::to_string_pretty(params.literal()).context("a literal")
            }
        }
    };
}

sample!(Bfv, exact::Params<Bfv>, exact_literal);
sample!(Bgv, exact::Params<Bgv>, exact_literal);
sample!(Ckks, ckks::Params, ckks_literal);

fn exact_literal(size: Size) -> exact::ParamsLiteral {
    let (q, p, omega) = size.widths();
    exact::ParamsLiteral {
        log_n: LOG_N,
        t: T.to_string(),
        q_bits: q.to_vec(),
        p_bits: p.to_vec(),
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        security: Security::Insecure,
        primes: None,
    }
}

/// A scale ten bits narrower than the last prime, and as wide as the others.
fn ckks_literal(size: Size) -> ckks::ParamsLiteral {
    let (q, p, omega) = size.widths();
    let log_scale = q[0] - 10;
    let q_bits = q.iter().enumerate().map(|(i, bits)| if i == 0 { *bits } else { log_scale }).collect();
    ckks::ParamsLiteral {
        log_n: LOG_N,
        log_scale,
        q_bits,
        p_bits: p.to_vec(),
        level_limbs: vec![],
        schedule: Default::default(),
        omega,
        log_scales: vec![],
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
    }
}

/// A scheme with its keys.
pub struct Subject<S: Sample> {
    params: S::Params,
    evaluator: S::Evaluator<Cpu>,
    secret: SecretKey,
    public: PublicKey,
    keys: Arc<EvaluationKeys>,
}

/// A ciphertext of a subject.
pub type Ciphertext<S> = <S as Scheme>::Ciphertext<Cpu>;

/// Parameters and keys as the bytes of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The literal in JSON.
    pub literal: Vec<u8>,
    /// The secret key.
    pub secret: Vec<u8>,
    /// The public key.
    pub public: Vec<u8>,
    /// The keys to compute with.
    pub evaluation: Vec<u8>,
}

/// A vector of this length from a repeated one, with entries up to [`LARGEST`].
#[must_use]
pub fn message(slots: usize, seed: u64) -> Vec<i64> {
    let mut random = synchromesh_testing::random::SplitMix::new(seed);
    (0..slots).map(|_| random.below(2 * LARGEST as u64 + 1) as i64 - LARGEST).collect()
}

/// Entry by entry.
#[must_use]
pub fn zip(x: &[i64], y: &[i64], f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    x.iter().zip(y).map(|(&x, &y)| f(x, y)).collect()
}

impl<S: Sample> Subject<S> {
    /// Name for reports.
    pub const NAME: &'static str = S::NAME.name();

    /// Fresh keys from a seed.
    ///
    /// # Errors
    /// The library's.
    pub fn new(size: Size, seed: u64) -> Result<Self> {
        Self::with(S::sized(size)?, |context| {
            let rlwe = S::rlwe(context);
            let mut randomness = Randomness::insecure_from_number(seed);
            let secret = SecretKey::generate(rlwe, &mut randomness)?;
            let public = PublicKey::generate(rlwe, &secret, &mut randomness)?;
            let keys = S::generate_evaluation_keys(context, &secret, &Rotations::by([1]), &mut randomness)?;
            Ok((secret, public, keys))
        })
    }

    /// Parameters and keys from their files.
    ///
    /// # Errors
    /// The library's.
    pub fn from_files(files: &Files) -> Result<Self> {
        Self::with(S::from_json(&files.literal)?, |context| {
            let rlwe = S::rlwe(context);
            let secret = SecretKey::from_bytes(rlwe, &files.secret, None)?;
            let id = Some(secret.id());
            let public = PublicKey::from_bytes(rlwe, &files.public, id, None)?;
            Ok((secret, public, EvaluationKeys::from_bytes(rlwe, &files.evaluation, id, None)?))
        })
    }

    fn with(
        params: S::Params,
        keys: impl FnOnce(&S::Context<Cpu>) -> Result<(SecretKey, PublicKey, EvaluationKeys)>,
    ) -> Result<Self> {
        let evaluator = S::open(params.clone(), Cpu::open(Arc::clone(S::ring(&params)))?)?;
        let (secret, public, keys) = keys(S::context(&evaluator))?;
        let keys = Arc::new(keys);
        Ok(Self { params, evaluator: S::with_keys(&evaluator, Arc::clone(&keys)), secret, public, keys })
    }

    fn context(&self) -> &Arc<S::Context<Cpu>> {
        S::context(&self.evaluator)
    }

    /// The context of the layer of keys.
    pub fn rlwe(&self) -> &Arc<synchromesh::rlwe::Context> {
        S::rlwe(self.context())
    }

    /// The secret key.
    pub const fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// The public key.
    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Parameters and keys as files.
    ///
    /// # Errors
    /// The library's.
    pub fn to_files(&self) -> Result<Files> {
        Ok(Files {
            literal: S::to_json(&self.params)?.into_bytes(),
            secret: self.secret.to_bytes(self.rlwe(), None)?.to_vec(),
            public: self.public.to_bytes(self.rlwe(), None)?,
            evaluation: self.keys.to_bytes(self.rlwe(), None)?,
        })
    }

    /// Entries of a vector.
    ///
    /// # Errors
    /// None: all samples have slots.
    pub fn slots(&self) -> synchromesh::Result<usize> {
        Ok(self.evaluator.slots()?.count())
    }

    /// Encrypts a vector.
    ///
    /// # Errors
    /// The library's.
    pub fn encrypt(&self, values: &[i64], randomness: &mut Randomness) -> synchromesh::Result<Ciphertext<S>> {
        let (by, top) = (Encryptor::Public(&self.public), self.rlwe().params().top_level());
        S::encrypt(self.context(), &by, &values.into(), LARGEST as f64, top, randomness)
    }

    /// Operations on ciphertexts.
    pub const fn evaluator(&self) -> &S::Evaluator<Cpu> {
        &self.evaluator
    }

    /// What a rotation by one to the left gives, in the clear.
    ///
    /// # Errors
    /// None: all samples have slots.
    pub fn rotated(&self, x: &[i64]) -> synchromesh::Result<Vec<i64>> {
        let row = self.evaluator.slots()?.row;
        Ok(x.chunks_exact(row).flat_map(|row| row[1..].iter().chain(&row[..1])).copied().collect())
    }

    /// Whether a ciphertext decrypts to these integers: exactly modulo t, or within its error bound.
    ///
    /// # Errors
    /// The library's.
    pub fn holds(&self, x: &Ciphertext<S>, expected: &[i64]) -> synchromesh::Result<bool> {
        let found = S::decrypt(self.context(), &self.secret, x)?;
        let bound = S::state(self.context(), x)?.error_bound;
        let right = match &found {
            Values::Integers(found) => found.iter().zip(expected).all(|(f, e)| (f - e) % T == 0),
            _ => found.reals().iter().zip(expected).all(|(f, &e)| (f - e as f64).abs() <= bound),
        };
        Ok(found.len() == expected.len() && right)
    }

    /// The ciphertext as a container.
    ///
    /// # Errors
    /// The library's.
    pub fn to_bytes(&self, x: &Ciphertext<S>) -> synchromesh::Result<Vec<u8>> {
        S::write(self.context(), x, None)
    }

    /// The ciphertext in a container; its certificate is believed.
    ///
    /// # Errors
    /// The library's.
    pub fn read(&self, bytes: &[u8]) -> synchromesh::Result<Ciphertext<S>> {
        S::read(self.context(), bytes, Some(self.secret.id()), Trust::Certificate)
    }

    /// Fails unless a ciphertext decrypts to what is expected.
    ///
    /// # Errors
    /// The library's, or that it does not.
    pub fn require(&self, x: &Ciphertext<S>, expected: &[i64]) -> Result<()> {
        let holds = self.holds(x, expected).with_context(|| format!("{}: no decryption", Self::NAME))?;
        ensure!(holds, "{}: another plaintext", Self::NAME);
        Ok(())
    }
}
