//! Proofs of plaintext knowledge from outside: what is proven decrypts, and what was altered is refused.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use synchromesh::bgv::{Ciphertext, Context, Evaluator, Params, ParamsLiteral, Plaintext};
use synchromesh::rlwe::{PublicKey, Randomness, SecretKey, Security};
use synchromesh_parties::proofs::encryption::{Content, EncryptionProofs, KeyBound};
use synchromesh_parties::proofs::{Challenges, Masking, Parameters, ProofError, Transcript};

/// A prime of 128 bits, the default of matrix triples.
const PRIME: &str = "340282366920938463463374607431759953921";

struct Fixture {
    context: Arc<Context>,
    secret: SecretKey,
    public: PublicKey,
    randomness: Randomness,
}

fn literal(log_n: u32, t: &str, q_bits: Vec<u32>) -> ParamsLiteral {
    ParamsLiteral {
        log_n,
        t: t.to_owned(),
        omega: q_bits.len(),
        q_bits,
        p_bits: vec![60],
        level_limbs: vec![],
        schedule: Default::default(),
        security: Security::Insecure,
        primes: None,
    }
}

fn fixture(log_n: u32, t: &str, q_bits: Vec<u32>) -> Fixture {
    let context = Context::new(Params::new(literal(log_n, t, q_bits)).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(3);
    let (secret, public) = context.generate_keys(&mut randomness).unwrap();
    Fixture { context, secret, public, randomness }
}

/// Coefficients of all sizes below t, or one constant.
fn message(f: &Fixture, content: Content, salt: u32) -> Plaintext {
    let t = BigInt::from(f.context.params().t().value().clone());
    let value = |i: u32| (&t - 1) * BigInt::from((i * 977 + salt * 131) % 1021) / 1020;
    let n = f.context.params().rlwe().n() as u32;
    let values: Vec<BigInt> =
        (0..n).map(|i| if i > 0 && content == Content::Constant { BigInt::ZERO } else { value(i + 1) }).collect();
    f.context.encode_coefficients(&values[..]).unwrap()
}

fn transcript() -> Transcript {
    Transcript::new(&[9; 32], 1, "a test")
}

/// Encrypts, proves, verifies, and decrypts what is usable; its noise stays within the certificate.
fn judge(f: &mut Fixture, level: usize, content: Content, parameters: Parameters, count: u32) {
    let proofs = EncryptionProofs::new(&f.context, &f.public, level, content, parameters).unwrap();
    let messages: Vec<Plaintext> = (0..count).map(|i| message(f, content, i)).collect();
    let (ciphertexts, witnesses): (Vec<Ciphertext>, Vec<_>) =
        messages.iter().map(|m| proofs.encrypt(m, &mut f.randomness).unwrap()).unzip();
    let ciphertexts: Vec<&Ciphertext> = ciphertexts.iter().collect();
    let proof = proofs.prove(&ciphertexts, &witnesses, &transcript(), &mut f.randomness).unwrap();
    assert_eq!(proof.len(), proofs.proof_bytes(count as usize).unwrap());
    let bound = proofs.verify(&ciphertexts, &proof, &transcript()).unwrap();
    assert_eq!(bound, proofs.bound(count as usize).unwrap());
    let key = KeyBound::honest(f.context.params().rlwe(), 1);
    for (ciphertext, message) in ciphertexts.iter().zip(&messages) {
        let usable = proofs.usable(ciphertext, &bound, &key).unwrap();
        assert_eq!(f.context.decrypt(&f.secret, &usable).unwrap().poly(), message.poly());
        let certified = bound.noise_log2(f.context.params().rlwe(), &key);
        assert!((usable.noise().certificate.remainder - certified).abs() < 1e-6);
        // The honest prover's noise, measured by a certificate of its own, is far below.
        assert!(usable.noise().certificate.remainder > ciphertext.noise().certificate.sigma + 10.0);
    }
}

#[test]
fn what_is_proven_decrypts_at_all_plaintext_moduli_and_levels() {
    let batch = Parameters::batch().insecure(40);
    let constant = Parameters::constant().insecure(20);
    let mut f = fixture(10, PRIME, vec![50, 55, 45, 50, 60]);
    judge(&mut f, 4, Content::Any, batch, 3);
    judge(&mut f, 4, Content::Constant, constant, 1);
    judge(&mut f, 3, Content::Any, Parameters::batch().insecure(9), 1);
    let mut f = fixture(11, "65537", vec![50, 50, 30]);
    judge(&mut f, 2, Content::Any, batch, 2);
    judge(&mut f, 1, Content::Constant, constant, 2);
    // Even t has no half; challenges 0 and 1 need none.
    let bits = Parameters::new(128, Challenges::Bits, Masking::Rejection).unwrap().insecure(20);
    let mut f = fixture(10, "2", vec![50, 50]);
    let refused = EncryptionProofs::new(&f.context, &f.public, 1, Content::Any, batch).err().unwrap();
    assert_eq!(refused.kind(), "proof_parameters");
    judge(&mut f, 1, Content::Any, bits, 2);
    judge(&mut f, 0, Content::Constant, bits, 1);
    let near = ((BigUint::from(1u32) << 256u32) - 189u32).to_string();
    let mut f = fixture(10, &near, vec![60; 6]);
    judge(&mut f, 5, Content::Any, batch, 2);
    judge(&mut f, 5, Content::Constant, constant, 1);
}

#[test]
fn a_proof_is_for_its_statement_its_session_and_its_prover_only() {
    let mut f = fixture(10, "65537", vec![50, 50, 50]);
    let parameters = Parameters::batch().insecure(40);
    let proofs = EncryptionProofs::new(&f.context, &f.public, 2, Content::Any, parameters).unwrap();
    let messages = [0, 1, 2].map(|i| message(&f, Content::Any, i));
    let made = messages.map(|m| proofs.encrypt(&m, &mut f.randomness).unwrap());
    let [(a, first), (b, second), (c, _)] = made;
    let proof = proofs.prove(&[&a, &b], &[first, second], &transcript(), &mut f.randomness).unwrap();
    proofs.verify(&[&a, &b], &proof, &transcript()).unwrap();
    let refused = |ciphertexts: &[&Ciphertext], proof: &[u8], transcript: &Transcript| {
        let error = proofs.verify(ciphertexts, proof, transcript).unwrap_err();
        assert!(error.blames_prover(), "{error}");
        error
    };
    // Another session, prover, purpose; something more that should have been the same.
    for other in [
        Transcript::new(&[8; 32], 1, "a test"),
        Transcript::new(&[9; 32], 2, "a test"),
        Transcript::new(&[9; 32], 1, "another test"),
    ] {
        assert_eq!(refused(&[&a, &b], &proof, &other), ProofError::Challenge);
    }
    let mut more = transcript();
    more.absorb("round", &[1]);
    assert_eq!(refused(&[&a, &b], &proof, &more), ProofError::Challenge);
    // Other ciphertexts: exchanged, replaced, altered, one fewer.
    assert_eq!(refused(&[&b, &a], &proof, &transcript()), ProofError::Challenge);
    assert_eq!(refused(&[&a, &c], &proof, &transcript()), ProofError::Challenge);
    assert_eq!(refused(&[&a], &proof, &transcript()).kind(), "proof_length");
    let altered = Evaluator::new(&f.context, None).neg(&a).unwrap();
    assert_eq!(refused(&[&altered, &b], &proof, &transcript()), ProofError::Challenge);
    let dropped = Evaluator::new(&f.context, None).mod_switch(&a).unwrap();
    assert_eq!(refused(&[&dropped, &b], &proof, &transcript()).kind(), "proof_statement");
    let (_, stranger) = f.context.generate_keys(&mut f.randomness).unwrap();
    let others = EncryptionProofs::new(&f.context, &stranger, 2, Content::Any, parameters).unwrap();
    assert_eq!(others.verify(&[&a, &b], &proof, &transcript()).unwrap_err().kind(), "proof_statement");
}

#[test]
fn every_truncation_and_every_kind_of_flipped_bit_is_refused() {
    let mut f = fixture(10, "65537", vec![50, 50, 50]);
    let parameters = Parameters::constant().insecure(3);
    let proofs = EncryptionProofs::new(&f.context, &f.public, 2, Content::Constant, parameters).unwrap();
    let (ciphertext, witness) = proofs.encrypt(&message(&f, Content::Constant, 0), &mut f.randomness).unwrap();
    let proof = proofs.prove(&[&ciphertext], &[witness], &transcript(), &mut f.randomness).unwrap();
    proofs.verify(&[&ciphertext], &proof, &transcript()).unwrap();
    for length in (0..proof.len()).step_by(97).chain([proof.len() - 1]) {
        assert_eq!(proofs.verify(&[&ciphertext], &proof[..length], &transcript()).unwrap_err().kind(), "proof_length");
    }
    let longer = [&proof[..], &[0]].concat();
    assert_eq!(proofs.verify(&[&ciphertext], &longer, &transcript()).unwrap_err().kind(), "proof_length");
    let mut kinds = std::collections::BTreeSet::new();
    // All of the challenge and of the last bytes, with the constant's padding, and a sample of the rest.
    let bits = (0..256).chain((256..8 * proof.len()).step_by(1009)).chain(8 * proof.len() - 48..8 * proof.len());
    for bit in bits {
        let mut flipped = proof.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = proofs.verify(&[&ciphertext], &flipped, &transcript()).unwrap_err();
        assert!(error.blames_prover(), "{error}");
        kinds.insert(error.kind());
    }
    assert!(kinds.contains("proof_challenge") && kinds.contains("proof_padding"), "{kinds:?}");
}

#[test]
fn parameters_that_prove_nothing_are_refused() {
    let f = fixture(10, "65537", vec![50, 50]);
    let new = |content, parameters| EncryptionProofs::new(&f.context, &f.public, 1, content, parameters);
    assert_eq!(Parameters::new(80, Challenges::Bits, Masking::Rejection).unwrap_err().kind(), "proof_parameters");
    let wide = Parameters::new(128, Challenges::Monomials { log2_span: 11 }, Masking::Rejection).unwrap();
    assert_eq!(new(Content::Any, wide).err().unwrap().kind(), "proof_parameters");
    assert_eq!(new(Content::Constant, Parameters::batch()).err().unwrap().kind(), "proof_parameters");
    let proofs = new(Content::Any, Parameters::batch()).unwrap();
    assert_eq!(proofs.plan(0).unwrap_err().kind(), "proof_count");
    assert_eq!(proofs.prove(&[], &[], &transcript(), &mut Randomness::from_os()).unwrap_err().kind(), "proof_count");
    // A modulus of one prime cannot hold what is proven of so many.
    let proofs = EncryptionProofs::new(&f.context, &f.public, 0, Content::Any, Parameters::batch()).unwrap();
    assert!(proofs.plan(1).is_ok());
    assert_eq!(proofs.plan(1 << 18).unwrap_err().kind(), "proof_parameters");
}

/// At the parameters of a 128 x 128 triple; docs/triples-proofs.md has these numbers.
#[test]
fn sizes_at_real_parameters_are_what_the_documentation_says() {
    let mut f = fixture(15, PRIME, vec![60; 13]);
    let bits = |content, parameters, count: usize| {
        let proofs = EncryptionProofs::new(&f.context, &f.public, 12, content, parameters).unwrap();
        let plan = proofs.plan(count).unwrap();
        for (j, column) in proofs.relation().columns().iter().enumerate() {
            let masks = plan.columns[j].log2_mask as f64 - synchromesh::exact::log2_biguint(&column.bound);
            let slack = plan.slack_log2(proofs.relation(), j);
            assert!(slack - masks <= 12.0, "slack 2^{slack}, of which the masks are 2^{masks}");
        }
        (plan.rows, plan.columns.iter().map(|column| column.bits).collect::<Vec<_>>(), plan.bytes())
    };
    let batch = bits(Content::Any, Parameters::batch(), 32);
    assert_eq!(batch, (15, vec![28, 33, 33, 155], 15_298_592));
    assert_eq!(batch.2, 32 + 15 * (1 << 15) * (28 + 33 + 33 + 155) / 8);
    let constant = bits(Content::Constant, Parameters::constant(), 1);
    assert_eq!(constant, (81, vec![27, 30, 30, 138], 28_866_002));
    judge(&mut f, 12, Content::Any, Parameters::batch(), 2);
}
