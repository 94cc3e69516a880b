//! The three schemes behind one trait, at N = 2^10 and insecure, on vectors of small integers with the clear beside them.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use synchromesh::exact::{self, Scheme};
use synchromesh::rlwe::codec::Trust;
use synchromesh::rlwe::{EvaluationKeys, PublicKey, Randomness, SecretKey, Security};
use synchromesh::rotations::Rotations;
use synchromesh::{bfv, bgv, ckks};

/// log2 of the degree.
pub const LOG_N: u32 = 10;

/// Largest absolute value of an entry that is encrypted.
pub const LARGEST: i64 = 4;

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

/// A scheme with keys, and what its operations give in the clear.
pub trait Subject: Sized + Send + Sync {
    /// A ciphertext.
    type Ciphertext: Send + Sync;

    /// Name for reports.
    const NAME: &'static str;

    /// Fresh keys from a seed.
    ///
    /// # Errors
    /// The library's.
    fn new(size: Size, seed: u64) -> Result<Self>;

    /// Parameters and keys from their files.
    ///
    /// # Errors
    /// The library's.
    fn from_files(files: &Files) -> Result<Self>;

    /// The parameters as JSON, with every prime.
    ///
    /// # Errors
    /// None that a literal causes.
    fn literal_json(&self) -> Result<String>;

    /// Parameters of the keys, and the keys.
    fn keys(&self) -> Keys<'_>;

    /// Parameters and keys as files.
    ///
    /// # Errors
    /// The library's.
    fn to_files(&self) -> Result<Files> {
        let keys = self.keys();
        Ok(Files {
            literal: self.literal_json()?.into_bytes(),
            secret: keys.secret.to_bytes(keys.context, None)?.to_vec(),
            public: keys.public.to_bytes(keys.context, None)?,
            evaluation: keys.evaluation.to_bytes(keys.context, None)?,
        })
    }

    /// Entries of a vector.
    fn slots(&self) -> usize;

    /// Encrypts a vector.
    ///
    /// # Errors
    /// The library's.
    fn encrypt(&self, values: &[i64], randomness: &mut Randomness) -> synchromesh::Result<Self::Ciphertext>;

    /// The sum.
    ///
    /// # Errors
    /// The library's.
    fn add(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext>;

    /// The difference.
    ///
    /// # Errors
    /// The library's.
    fn sub(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext>;

    /// The product, relinearised.
    ///
    /// # Errors
    /// The library's.
    fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext>;

    /// The rotation by one to the left.
    ///
    /// # Errors
    /// The library's.
    fn rotate(&self, x: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext>;

    /// What [`Self::rotate`] gives, in the clear.
    fn rotated(&self, x: &[i64]) -> Vec<i64>;

    /// Whether a ciphertext decrypts to these integers: exactly modulo t, or within its error bound.
    ///
    /// # Errors
    /// The library's.
    fn holds(&self, x: &Self::Ciphertext, expected: &[i64]) -> synchromesh::Result<bool>;

    /// The ciphertext as a container.
    ///
    /// # Errors
    /// The library's.
    fn to_bytes(&self, x: &Self::Ciphertext) -> synchromesh::Result<Vec<u8>>;

    /// The ciphertext in a container; its certificate is believed.
    ///
    /// # Errors
    /// The library's.
    fn read(&self, bytes: &[u8]) -> synchromesh::Result<Self::Ciphertext>;
}

/// The keys of a subject and where they belong.
pub struct Keys<'a> {
    /// Context of the layer of keys.
    pub context: &'a Arc<synchromesh::rlwe::Context>,
    /// The secret key.
    pub secret: &'a SecretKey,
    /// The public key.
    pub public: &'a PublicKey,
    /// The keys to compute with.
    pub evaluation: &'a Arc<EvaluationKeys>,
}

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

impl Files {
    /// The keys, read in their context.
    fn read(&self, context: &synchromesh::rlwe::Context) -> Result<(SecretKey, PublicKey, Arc<EvaluationKeys>)> {
        let secret = SecretKey::from_bytes(context, &self.secret, None)?;
        let id = Some(secret.id());
        let public = PublicKey::from_bytes(context, &self.public, id, None)?;
        Ok((secret, public, Arc::new(EvaluationKeys::from_bytes(context, &self.evaluation, id, None)?)))
    }
}

/// Rotations that keys are made for.
fn rotations() -> Rotations {
    Rotations::by([1])
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

/// BFV or BGV.
pub struct Exact<S: Scheme> {
    context: Arc<exact::Context<S>>,
    secret: SecretKey,
    public: PublicKey,
    keys: Arc<EvaluationKeys>,
    evaluator: exact::Evaluator<S>,
}

impl<S: Scheme> Exact<S> {
    /// The parameters: t has slots.
    #[must_use]
    pub fn literal(size: Size) -> exact::ParamsLiteral {
        let (q, p, omega) = size.widths();
        exact::ParamsLiteral {
            log_n: LOG_N,
            t: "12289".to_owned(),
            q_bits: q.to_vec(),
            p_bits: p.to_vec(),
            level_limbs: vec![],
            schedule: Default::default(),
            omega,
            security: Security::Insecure,
            primes: None,
        }
    }

    /// The context.
    pub const fn context(&self) -> &Arc<exact::Context<S>> {
        &self.context
    }
}

macro_rules! exact {
    ($scheme:ty, $name:literal) => {
        impl Subject for Exact<$scheme> {
            type Ciphertext = exact::Ciphertext<$scheme>;

            const NAME: &'static str = $name;

            fn new(size: Size, seed: u64) -> Result<Self> {
                let context = exact::Context::<$scheme>::new(exact::Params::new(Self::literal(size))?)?;
                let mut randomness = Randomness::insecure_from_number(seed);
                let (secret, public) = context.generate_keys(&mut randomness)?;
                let keys = Arc::new(context.generate_evaluation_keys(&secret, &rotations(), &mut randomness)?);
                let evaluator = exact::Evaluator::new(&context, Some(Arc::clone(&keys)));
                Ok(Self { context, secret, public, keys, evaluator })
            }

            fn from_files(files: &Files) -> Result<Self> {
                let literal: exact::ParamsLiteral = serde_json::from_slice(&files.literal).context("no literal")?;
                let context = exact::Context::<$scheme>::new(exact::Params::new(literal)?)?;
                let (secret, public, keys) = files.read(context.rlwe())?;
                let evaluator = exact::Evaluator::new(&context, Some(Arc::clone(&keys)));
                Ok(Self { context, secret, public, keys, evaluator })
            }

            fn literal_json(&self) -> Result<String> {
                serde_json::to_string_pretty(self.context.params().literal()).context("a literal")
            }

            fn keys(&self) -> Keys<'_> {
                let Self { context, secret, public, keys, .. } = self;
                Keys { context: context.rlwe(), secret, public, evaluation: keys }
            }

            fn slots(&self) -> usize {
                self.context.params().n()
            }

            fn encrypt(&self, values: &[i64], randomness: &mut Randomness) -> synchromesh::Result<Self::Ciphertext> {
                self.context.encrypt(&self.public, &self.context.encode(values)?, randomness)
            }

            fn add(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
                self.evaluator.add(x, y)
            }

            fn sub(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
                self.evaluator.sub(x, y)
            }

            fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
                self.evaluator.mul(x, y)
            }

            fn rotate(&self, x: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
                self.evaluator.rotate_rows(x, 1)
            }

            fn rotated(&self, x: &[i64]) -> Vec<i64> {
                let row = x.len() / 2;
                x.chunks_exact(row).flat_map(|row| row[1..].iter().chain(&row[..1])).copied().collect()
            }

            fn holds(&self, x: &Self::Ciphertext, expected: &[i64]) -> synchromesh::Result<bool> {
                const T: i64 = 12_289;
                let found = self.context.decode(&self.context.decrypt(&self.secret, x)?)?;
                Ok(found.len() == expected.len() && found.iter().zip(expected).all(|(f, e)| (f - e) % T == 0))
            }

            fn to_bytes(&self, x: &Self::Ciphertext) -> synchromesh::Result<Vec<u8>> {
                x.to_bytes(&self.context, None)
            }

            fn read(&self, bytes: &[u8]) -> synchromesh::Result<Self::Ciphertext> {
                exact::Ciphertext::from_bytes(&self.context, bytes, Some(self.secret.id()), Trust::Certificate)
            }
        }
    };
}

exact!(bfv::Bfv, "bfv");
exact!(bgv::Bgv, "bgv");

/// CKKS.
pub struct Approximate {
    context: Arc<ckks::Context>,
    secret: SecretKey,
    public: PublicKey,
    keys: Arc<EvaluationKeys>,
    evaluator: ckks::Evaluator,
}

impl Approximate {
    /// The parameters: a scale ten bits narrower than the last prime, and as wide as the others.
    #[must_use]
    pub fn literal(size: Size) -> ckks::ParamsLiteral {
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
            mode: ckks::Mode::Auto,
            security: Security::Insecure,
            primes: None,
        }
    }

    /// The context.
    pub const fn context(&self) -> &Arc<ckks::Context> {
        &self.context
    }
}

impl Subject for Approximate {
    type Ciphertext = ckks::Ciphertext;

    const NAME: &'static str = "ckks";

    fn new(size: Size, seed: u64) -> Result<Self> {
        let context = ckks::Context::new(ckks::Params::new(Self::literal(size))?)?;
        let mut randomness = Randomness::insecure_from_number(seed);
        let (secret, public) = context.generate_keys(&mut randomness)?;
        let keys = Arc::new(context.generate_evaluation_keys(&secret, &rotations(), &mut randomness)?);
        let evaluator = ckks::Evaluator::new(&context, Some(Arc::clone(&keys)));
        Ok(Self { context, secret, public, keys, evaluator })
    }

    fn from_files(files: &Files) -> Result<Self> {
        let literal: ckks::ParamsLiteral = serde_json::from_slice(&files.literal).context("no literal")?;
        let context = ckks::Context::new(ckks::Params::new(literal)?)?;
        let (secret, public, keys) = files.read(context.rlwe())?;
        let evaluator = ckks::Evaluator::new(&context, Some(Arc::clone(&keys)));
        Ok(Self { context, secret, public, keys, evaluator })
    }

    fn literal_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self.context.params().literal()).context("a literal")
    }

    fn keys(&self) -> Keys<'_> {
        let Self { context, secret, public, keys, .. } = self;
        Keys { context: context.rlwe(), secret, public, evaluation: keys }
    }

    fn slots(&self) -> usize {
        self.context.params().slots()
    }

    fn encrypt(&self, values: &[i64], randomness: &mut Randomness) -> synchromesh::Result<Self::Ciphertext> {
        let reals: Vec<f64> = values.iter().map(|&x| x as f64).collect();
        let message = self.context.encode_bounded(&reals, LARGEST as f64)?;
        self.context.encrypt(&self.public, &message, randomness)
    }

    fn add(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
        self.evaluator.add(x, y)
    }

    fn sub(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
        self.evaluator.sub(x, y)
    }

    fn mul(&self, x: &Self::Ciphertext, y: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
        self.evaluator.mul(x, y)
    }

    fn rotate(&self, x: &Self::Ciphertext) -> synchromesh::Result<Self::Ciphertext> {
        self.evaluator.rotate(x, 1)
    }

    fn rotated(&self, x: &[i64]) -> Vec<i64> {
        x[1..].iter().chain(&x[..1]).copied().collect()
    }

    fn holds(&self, x: &Self::Ciphertext, expected: &[i64]) -> synchromesh::Result<bool> {
        let plain = self.context.decrypt(&self.secret, x)?;
        let (found, bound) = (self.context.decode(&plain)?, plain.error_bound());
        Ok(found.len() == expected.len() && found.iter().zip(expected).all(|(f, &e)| (f - e as f64).abs() <= bound))
    }

    fn to_bytes(&self, x: &Self::Ciphertext) -> synchromesh::Result<Vec<u8>> {
        x.to_bytes(&self.context, None)
    }

    fn read(&self, bytes: &[u8]) -> synchromesh::Result<Self::Ciphertext> {
        ckks::Ciphertext::from_bytes(&self.context, bytes, Some(self.secret.id()), Trust::Certificate)
    }
}

/// Fails unless a ciphertext decrypts to what is expected.
///
/// # Errors
/// The library's, or that it does not.
pub fn require<S: Subject>(subject: &S, x: &S::Ciphertext, expected: &[i64]) -> Result<()> {
    let holds = subject.holds(x, expected).with_context(|| format!("{}: no decryption", S::NAME))?;
    ensure!(holds, "{}: another plaintext", S::NAME);
    Ok(())
}
