//! Proofs for shares of decryptions: d = c_1 s + t f with the s of a share b = -a s + t e of the public key, and noise f that is
//! not much wider than it should be; or that share encrypted under somebody's public key (b', a'), with f in the place of that
//! encryption's own first error: (d + b' v, a' v + t e_1).
//!
//! Of s and e nothing is said, however often a key is used: their responses are uniform. Of f, v and e_1, which are drawn once, a
//! share is sent in Gaussian hints, since the bounds on them enter the room that a decryption takes.
//!
//! b determines s: of two short (s, e) for one b the differences are short and solve a (s - s') = t (e - e') modulo Q, which
//! for a uniform a exists with probability at most 2^(-8 N), Q being at least 2^12 times the product of what is proven of
//! both.

use num_bigint::BigUint;
use synchromesh::rlwe::noise::hints;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, SmallPoly};
use synchromesh::rlwe::ring::{Backend, Ntt, Poly};
use synchromesh::rlwe::secret_key::SecretPoly;
use synchromesh::rlwe::{Context, PublicKey, Randomness};
use zeroize::Zeroizing;

use super::encryption::uniform;
use super::error::{ProofError, Result};
use super::integers::Integers;
use super::keys::{error_column, secret_column};
use super::linear::{Linear, Plan};
use super::relation::{Column, Factor, Relation, Term};
use super::transcript::Transcript;
use super::{Masking, Parameters};

/// The columns of s, e and f, and of v and e_1 where shares are encrypted.
const SECRET: usize = 0;
const ERROR: usize = 1;
const NOISE: usize = 2;
const SEALING: usize = 3;
const SEALING_ERROR: usize = 4;

/// The noise of a share, from this seed: as many independent Gaussians of width 2^bits as the ring has coefficients.
#[derive(Clone, Copy)]
pub struct Flood<'a> {
    /// The seed, secret.
    pub seed: &'a Seed,
    /// log2 of the width.
    pub bits: u32,
}

impl std::fmt::Debug for Flood<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Flood(2^{})", self.bits)
    }
}

/// What a share is encrypted with: v and e_1, drawn once. Wiped when dropped, never printed.
pub struct Sealing {
    v: SmallPoly,
    error: SmallPoly,
}

impl std::fmt::Debug for Sealing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sealing(secret)")
    }
}

impl Sealing {
    /// A fresh one.
    ///
    /// # Errors
    /// [`rlwe::Error::Entropy`](synchromesh::rlwe::Error::Entropy) without randomness.
    pub fn draw<B: Backend>(context: &Context<B>, randomness: &mut Randomness) -> Result<Self> {
        let (params, seed) = (context.params(), randomness.next_seed()?);
        let v = params.secret().sample(&seed, Purpose::EncryptionSecret, 0, params.n());
        Ok(Self { v, error: params.error().sample(&seed, Purpose::EncryptionError, 1, params.n()) })
    }

    /// (d + b' v, a' v + t e_1) for what a party shows and the key (b', a').
    ///
    /// # Errors
    /// When the device fails.
    pub fn seal<B: Backend>(
        &self,
        context: &Context<B>,
        d: Poly<B, Ntt>,
        key: &PublicKey<B>,
    ) -> Result<[Poly<B, Ntt>; 2]> {
        let (params, backend, primes) = (context.params(), context.backend(), d.primes().clone());
        let small = |x: &SmallPoly| -> Result<SecretPoly<B>> {
            Ok(SecretPoly::new(Poly::from_signed(backend, &primes, x.as_slice())?.into_ntt(backend)?))
        };
        let (v, error) = (small(&self.v)?, small(&self.error)?);
        let mut first = d;
        first.mul_acc(backend, &key.b().restrict(backend, &primes)?, v.poly())?;
        let mut second = uniform(context, &primes, key.seed(), Purpose::PublicKeyUniform, 0)?.mul(backend, v.poly())?;
        second.mul_scalar_acc(backend, error.poly(), &params.ring().residues(&primes, params.error_multiple()))?;
        Ok([first, second])
    }
}

/// Proofs for shares of one decryption.
pub struct DecryptionProofs<'a, B: Backend> {
    context: &'a Context<B>,
    relation: Relation<B>,
    /// -a modulo the first prime.
    masks: Poly<B, Ntt>,
}

impl<'a, B: Backend> DecryptionProofs<'a, B> {
    /// For shares of the phase of a ciphertext with this c_1, under the public key of this seed, each by a sum of up to so many
    /// secrets, with noise of width 2^bits times `multiple`; encrypted under a receiver's key, if there is one.
    ///
    /// # Errors
    /// [`ProofError::Parameters`] where so few primes are left that b does not determine s.
    pub fn new(
        context: &'a Context<B>,
        (seed, secrets): (&Seed, usize),
        c1: &Poly<B, Ntt>,
        (bits, multiple): (u32, &BigUint),
        receiver: Option<&PublicKey<B>>,
    ) -> Result<Self> {
        let (params, backend, primes) = (context.params(), context.backend(), c1.primes());
        let noise = Column {
            name: "f",
            bound: BigUint::from(1u32) << (bits + hints::LOG2_WITHIN),
            deviation: f64::from(bits).exp2(),
            constant: false,
            masking: Some(Masking::Hints),
        };
        let summed = |column: Column| Column {
            bound: column.bound * secrets,
            deviation: column.deviation * (secrets as f64).sqrt(),
            ..column
        };
        let mut columns = vec![summed(secret_column(params, "s")), summed(error_column(params)), noise];
        let mut a = uniform(context, primes, seed, Purpose::PublicKeyUniform, 0)?;
        a.neg_assign(backend)?;
        let masks = a.restrict(backend, &primes.iter().take(1).collect())?;
        let integer = |x: &BigUint| Factor::Integer(params.ring().residues(primes, x));
        let term = |column, factor| Term { column, galois: 1, factor };
        let mut rows = vec![
            vec![term(SECRET, Factor::Ring(a)), term(ERROR, integer(params.error_multiple()))],
            vec![term(SECRET, Factor::Ring(c1.duplicate(backend)?)), term(NOISE, integer(multiple))],
        ];
        if let Some(key) = receiver {
            let hinted = |column: Column, name| Column { name, masking: Some(Masking::Hints), ..column };
            columns.push(hinted(secret_column(params, "v"), "v"));
            columns.push(hinted(error_column(params), "e_1"));
            rows[1].push(term(SEALING, Factor::Ring(key.b().restrict(backend, primes)?)));
            let a = uniform(context, primes, key.seed(), Purpose::PublicKeyUniform, 0)?;
            rows.push(vec![term(SEALING, Factor::Ring(a)), term(SEALING_ERROR, integer(params.error_multiple()))]);
        }
        let proofs = Self { context, relation: Relation::new(context, primes, columns, rows)?, masks };
        let plan = proofs.plan()?;
        let (q, proven) =
            (params.ring().product(primes), &plan.columns[SECRET].extracted * &plan.columns[ERROR].extracted);
        if proven.clone() << 12u32 > q {
            let rule = format!(
                "Q of {} bits: a share of the public key determines a secret from {} bits on",
                q.bits(),
                proven.bits() + 12
            );
            return Err(ProofError::Parameters { rule });
        }
        Ok(proofs)
    }

    fn linear(&self) -> Result<Linear<'_, B>> {
        Linear::new(self.context, &self.relation, Parameters::decryption())
    }

    /// The sizes of a proof.
    ///
    /// # Errors
    /// As [`Linear::plan`].
    pub fn plan(&self) -> Result<Plan> {
        self.linear()?.plan(1)
    }

    /// Bytes of a proof.
    ///
    /// # Errors
    /// As [`Linear::plan`].
    pub fn bytes(&self) -> Result<usize> {
        Ok(self.plan()?.bytes())
    }

    /// A proof that what is shown is c_1 s + t f, for the s of this b, or that encrypted with `sealing`.
    ///
    /// # Errors
    /// [`ProofError::Witness`] where b is not of s, [`rlwe::Error::Entropy`](synchromesh::rlwe::Error::Entropy) without randomness.
    pub fn prove(
        &self,
        (b, shown): (&Poly<B, Ntt>, &[Poly<B, Ntt>]),
        (secret, flood, sealing): (&SecretPoly<B>, Flood<'_>, Option<&Sealing>),
        transcript: &Transcript,
        randomness: &mut Randomness,
    ) -> Result<Vec<u8>> {
        let linear = self.linear()?;
        let plan = linear.plan(1)?;
        let n = self.context.params().n();
        let noise = Integers::gaussian(flood.seed, flood.bits, n, plan.columns[NOISE].width());
        let mut witness = vec![self.small(secret)?, self.error(b, secret)?, noise];
        let drawn = sealing.iter().flat_map(|sealing| [&sealing.v, &sealing.error]);
        witness.extend(drawn.map(|x| Integers::from_signed(x.as_slice().iter(), 1)));
        let target = self.target(b, shown)?;
        linear.prove(&[&target.iter().collect::<Vec<_>>()], &[&witness], transcript, &randomness.next_seed()?)
    }

    /// Checks a proof for what is shown by whoever has this b.
    ///
    /// # Errors
    /// Those of [`ProofError::blames_prover`], where the prover cheats or the message was altered.
    pub fn verify(
        &self,
        (b, shown): (&Poly<B, Ntt>, &[Poly<B, Ntt>]),
        proof: &[u8],
        transcript: &Transcript,
    ) -> Result<Plan> {
        let target = self.target(b, shown)?;
        self.linear()?.verify(&[&target.iter().collect::<Vec<_>>()], proof, transcript)
    }

    /// b and what is shown on the primes of c_1.
    fn target(&self, b: &Poly<B, Ntt>, shown: &[Poly<B, Ntt>]) -> Result<Vec<Poly<B, Ntt>>> {
        let (backend, primes) = (self.context.backend(), self.relation.primes());
        [b].into_iter().chain(shown).map(|x| Ok(x.restrict(backend, primes)?)).collect()
    }

    /// The integers that a polynomial has for coefficients modulo the first prime, below half of it.
    fn small(&self, x: &SecretPoly<B>) -> Result<Integers> {
        let x = SecretPoly::new(x.poly().restrict(self.context.backend(), self.masks.primes())?);
        Ok(Integers::from_signed(signed(self.context, &x)?.iter(), 1))
    }

    /// e of b = -a s + t e.
    fn error(&self, b: &Poly<B, Ntt>, secret: &SecretPoly<B>) -> Result<Integers> {
        let (params, backend, first) = (self.context.params(), self.context.backend(), self.masks.primes());
        let own = SecretPoly::new(secret.poly().restrict(backend, first)?);
        let masked = SecretPoly::new(self.masks.mul(backend, own.poly())?);
        let mut error = b.restrict(backend, first)?;
        error.sub_assign(backend, masked.poly())?;
        let inverses = first.iter().zip(params.ring().residues(first, params.error_multiple()));
        let inverses: Vec<u64> =
            inverses.map(|(prime, t)| params.ring().modulus(prime).inv(t).unwrap_or_default()).collect();
        error.mul_scalar_assign(backend, &inverses)?;
        self.small(&SecretPoly::new(error))
    }
}

/// The integers that a polynomial on one prime has for coefficients, below half of it.
pub(crate) fn signed<B: Backend>(context: &Context<B>, x: &SecretPoly<B>) -> Result<Zeroizing<Vec<i64>>> {
    let backend = context.backend();
    let coefficients = Zeroizing::new(x.poly().duplicate(backend)?.into_coeff(backend)?);
    let words = Zeroizing::new(coefficients.to_words(backend)?);
    let q = coefficients.primes().iter().next().map_or(1, |prime| context.params().ring().modulus(prime).value());
    // x - q where q/2 - x is negative.
    let signed = |&x: &u64| x.wrapping_sub(q & ((q / 2).wrapping_sub(x) as i64 >> 63) as u64) as i64;
    Ok(Zeroizing::new(words.iter().map(signed).collect()))
}

#[cfg(test)]
mod tests {
    use synchromesh::exact::log2_biguint;
    use synchromesh::rlwe::SecretKey;
    use synchromesh::rlwe::ring::Cpu;

    use super::super::careless::careless;
    use super::super::tests::context;
    use super::*;

    const BITS: u32 = 125;

    /// A decryption, its share by who holds a secret key, and that key.
    struct Case {
        context: std::sync::Arc<synchromesh::bgv::Context>,
        secret: SecretKey<Cpu>,
        b: Poly<Cpu, Ntt>,
        seed: Seed,
        c1: Poly<Cpu, Ntt>,
    }

    /// The case of this key.
    fn case(key: usize) -> Case {
        let (context, _, mut randomness) = context("65537", &[50; 5]);
        let mut keys = (0..=key).map(|_| context.generate_keys(&mut randomness).unwrap());
        let (secret, public) = keys.nth(key).unwrap();
        let primes = context.rlwe().params().level(context.params().top_level()).unwrap();
        let c1 = SecretPoly::uniform(context.rlwe(), primes).unwrap();
        let c1 = c1.poly().duplicate(context.backend()).unwrap();
        let b = public.b().duplicate(context.backend()).unwrap();
        Case { secret, b, seed: public.seed().clone(), c1, context }
    }

    impl Case {
        fn proofs(&self) -> DecryptionProofs<'_, Cpu> {
            let t = self.context.params().t().value();
            DecryptionProofs::new(self.context.rlwe(), (&self.seed, 1), &self.c1, (BITS, t), None).unwrap()
        }

        /// c_1 s + t f.
        fn share(&self, secret: &SecretKey<Cpu>, noise: &Integers) -> Poly<Cpu, Ntt> {
            let (backend, ring) = (self.context.backend(), self.context.params().rlwe().ring());
            let mut d = noise.to_poly(backend, self.c1.primes()).unwrap().into_ntt(backend).unwrap();
            d.mul_scalar_assign(backend, &ring.residues(self.c1.primes(), self.context.params().t().value())).unwrap();
            let own = secret.slots().poly().restrict(backend, self.c1.primes()).unwrap();
            d.mul_acc(backend, &self.c1, &own).unwrap();
            d
        }
    }

    fn transcript(prover: usize) -> Transcript {
        Transcript::new(&[3; 32], prover, "test")
    }

    fn noise(bits: u32) -> Integers {
        Integers::gaussian(&Seed::from_bytes([5; 32]), bits, 1024, 3)
    }

    #[test]
    fn what_is_shown_is_proven_and_nothing_else_is() {
        let case = case(0);
        let (proofs, mut randomness) = (case.proofs(), Randomness::from_os());
        let (seed, backend) = (Seed::from_bytes([5; 32]), case.context.backend());
        let flood = Flood { seed: &seed, bits: BITS };
        let d = case.share(&case.secret, &noise(BITS));
        let mut prove = |b, d| {
            let shown = std::slice::from_ref(d);
            proofs.prove((b, shown), (case.secret.slots(), flood, None), &transcript(1), &mut randomness)
        };
        let proof = prove(&case.b, &d).unwrap();
        assert_eq!(proof.len(), proofs.bytes().unwrap());
        let plan = proofs.verify((&case.b, std::slice::from_ref(&d)), &proof, &transcript(1)).unwrap();
        // What room is left for is no less, and not much more.
        let room = hints::log2_proven(BITS.into());
        let proven = log2_biguint(&plan.columns[NOISE].extracted);
        assert!(proven <= room && room < proven + 0.01 && room < f64::from(BITS) + 11.5, "{proven} of {room} bits");
        // By another; for another key's share; a share of other noise or another secret.
        let refused =
            |b, d, proof: &[u8], by| proofs.verify((b, std::slice::from_ref(d)), proof, &transcript(by)).unwrap_err();
        assert_eq!(refused(&case.b, &d, &proof, 2), ProofError::Challenge);
        let other = self::case(1);
        assert_eq!(refused(&other.b, &d, &proof, 1), ProofError::Challenge);
        let shares = [case.share(&case.secret, &noise(BITS - 1)), case.share(&other.secret, &noise(BITS))];
        for d in &shares {
            assert_eq!(refused(&case.b, d, &proof, 1), ProofError::Challenge);
            assert_eq!(refused(&case.b, d, &prove(&case.b, d).unwrap(), 1), ProofError::Challenge);
        }
        // An honest party whose files do not belong together proves nothing.
        assert_eq!(
            prove(&other.b.restrict(backend, case.b.primes()).unwrap(), &d).unwrap_err().kind(),
            "proof_witness"
        );
        let mut altered = proof.clone();
        altered[2000] ^= 1;
        assert!(refused(&case.b, &d, &altered, 1).blames_prover());
        assert_eq!(refused(&case.b, &d, &proof[1..], 1).kind(), "proof_length");
    }

    #[test]
    fn noise_that_leaves_no_room_is_not_proven() {
        let case = case(0);
        let proofs = case.proofs();
        // Not much beyond what is proven of it, and far.
        for bits in [BITS + 9, BITS + 30] {
            let long = noise(bits);
            let d = case.share(&case.secret, &long);
            let target = proofs.target(&case.b, std::slice::from_ref(&d)).unwrap();
            let target: Vec<&Poly<Cpu, Ntt>> = target.iter().collect();
            let witness =
                [proofs.small(case.secret.slots()).unwrap(), proofs.error(&case.b, case.secret.slots()).unwrap(), long];
            let proof = careless(&proofs.linear().unwrap(), &[&target], &[&witness], (&transcript(1), 3)).unwrap();
            let verified = proofs.verify((&case.b, std::slice::from_ref(&d)), &proof, &transcript(1));
            assert!(verified.unwrap_err().blames_prover(), "{bits}");
        }
    }

    #[test]
    fn few_primes_determine_no_secret() {
        let case = case(0);
        let t = case.context.params().t().value();
        let c1 = case.c1.restrict(case.context.backend(), &[0].into_iter().collect()).unwrap();
        let refused = DecryptionProofs::new(case.context.rlwe(), (&case.seed, 1), &c1, (20, t), None).err().unwrap();
        assert_eq!(refused.kind(), "proof_parameters");
    }
}
