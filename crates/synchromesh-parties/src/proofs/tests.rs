//! What needs the inside of a proof: distribution of responses, extraction from two transcripts, provers that cheat.

use std::sync::Arc;

use num_bigint::{BigInt, BigUint};
use synchromesh::bgv::{Ciphertext, Context, Params, ParamsLiteral};
use synchromesh::rlwe::ring::sampler::Seed;
use synchromesh::rlwe::ring::{Backend, Cpu, Ntt, Poly};
use synchromesh::rlwe::{PublicKey, Randomness, Security};

use super::careless::careless;
use super::encryption::{Content, EncryptionProofs, Witness};
use super::integers::{Integers, width_of};
use super::linear::{CHALLENGE_BYTES, Plan, pack};
use super::transcript::Challenge;
use super::{Challenges, Masking, Parameters, ProofError, Transcript};

const LOG_N: u32 = 10;
const N: usize = 1 << LOG_N;

pub(super) fn context(t: &str, q_bits: &[u32]) -> (Arc<Context>, PublicKey, Randomness) {
    let literal = ParamsLiteral {
        log_n: LOG_N,
        t: t.to_owned(),
        q_bits: q_bits.to_vec(),
        p_bits: vec![50],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: q_bits.len(),
        security: Security::Insecure,
        primes: None,
    };
    let context = Context::new(Params::new(literal).unwrap()).unwrap();
    let mut randomness = Randomness::insecure_from_number(7);
    let (_, public) = context.generate_keys(&mut randomness).unwrap();
    (context, public, randomness)
}

fn monomials(log2_span: u32) -> Parameters {
    let challenges = Challenges::Monomials { log2_span };
    Parameters::new(128, challenges, Masking::Rejection).unwrap()
}

fn bits() -> Parameters {
    Parameters::new(128, Challenges::Bits, Masking::Rejection).unwrap()
}

fn transcript() -> Transcript {
    Transcript::new(&[3; 32], 1, "test")
}

fn seed(number: u8) -> Seed {
    Seed::from_bytes([number; 32])
}

/// X^e x for e below 2N.
fn shifted(x: &[BigInt], e: usize) -> Vec<BigInt> {
    let n = x.len();
    let mut out = vec![BigInt::ZERO; n];
    for (i, x) in x.iter().enumerate() {
        let at = (i + e) % (2 * n);
        out[at % n] = if at < n { x.clone() } else { -x };
    }
    out
}

/// The exponents whose monomials add up to k / (c - d), with one sign.
fn quotient(c: Challenge, d: Challenge, k: u32) -> (Vec<usize>, BigInt) {
    let inverse = |e: usize| (2 * N - e) % (2 * N);
    match (c, d) {
        (None, None) => panic!("equal challenges"),
        (Some(a), None) => (vec![inverse(a)], k.into()),
        (None, Some(b)) => (vec![inverse(b)], -BigInt::from(k)),
        (Some(a), Some(b)) => {
            assert_eq!(k, 2);
            let step = (2 * N + b - a) % (2 * N);
            let count = (1..=N).find(|m| m * step % (2 * N) == N).unwrap();
            ((0..count).map(|i| (inverse(a) + i * step) % (2 * N)).collect(), 1.into())
        }
    }
}

fn times_quotient(x: &[BigInt], (exponents, sign): &(Vec<usize>, BigInt)) -> Vec<BigInt> {
    let mut sum = vec![BigInt::ZERO; x.len()];
    for &e in exponents {
        sum.iter_mut().zip(shifted(x, e)).for_each(|(sum, x)| *sum += sign * x);
    }
    sum
}

fn largest(x: &[BigInt]) -> BigUint {
    x.iter().map(|x| x.magnitude().clone()).max().unwrap()
}

#[test]
fn integers_agree_with_big_integers_at_all_widths() {
    let (context, _, _) = context("65537", &[50, 40]);
    let (backend, primes) = (context.backend(), context.params().rlwe().q().clone());
    for bits in [3u64, 26, 61, 62, 63, 64, 120, 126, 190, 300] {
        let x = Integers::uniform(&seed(bits as u8), 1, N, bits, width_of(bits + 1));
        let y = Integers::uniform(&seed(bits as u8), 2, N, bits - 2, width_of(bits - 2));
        let (big_x, big_y) = (x.to_big_vartime(), y.to_big_vartime());
        let size = BigInt::from(1) << bits;
        assert!(big_x.iter().all(|x| -&size <= *x && *x < size));
        let (most, least) = (big_x.iter().max().unwrap(), big_x.iter().min().unwrap());
        assert!(bits > 6 || (most + 1 == size && -least == size), "both ends occur");
        let bound = largest(&big_x);
        assert!(x.within(&bound) && !x.within(&(&bound - 1u32)));
        let mut bytes = Vec::new();
        x.pack(bits + 1, &mut bytes);
        assert_eq!(bytes.len(), (N * (bits as usize + 1)).div_ceil(8));
        let (back, clean) = Integers::unpack(&bytes, N, bits + 1, width_of(bits + 1));
        assert!(clean && back.to_big_vartime() == big_x);
        assert_eq!(Integers::from_big_vartime(&big_x, width_of(bits + 1)).to_big_vartime(), big_x);
        for e in [0, 1, 700, N, N + 5, 2 * N - 1] {
            let mut sum = Integers::from_big_vartime(&big_x, width_of(bits + 1));
            sum.add_monomial(&y, e, N);
            let expected: Vec<BigInt> = big_x.iter().zip(shifted(&big_y, e)).map(|(x, y)| x + y).collect();
            assert_eq!(sum.to_big_vartime(), expected, "{bits} {e}");
        }
        let words = x.to_poly(backend, &primes).unwrap().to_words(backend).unwrap();
        for (prime, limb) in primes.iter().zip(words.chunks_exact(N)) {
            let q = BigInt::from(backend.ring().modulus(prime).value());
            assert!(limb.iter().zip(&big_x).all(|(&word, x)| BigInt::from(word) == ((x % &q) + &q) % &q));
        }
    }
}

#[test]
fn residues_are_centred_at_even_and_odd_moduli() {
    for t in [
        BigUint::from(2u32),
        BigUint::from(97u32),
        BigUint::from(1u32) << 64u32,
        (BigUint::from(1u32) << 256u32) - 189u32,
    ] {
        let half = &t >> 1u32;
        let values = [BigUint::ZERO, BigUint::from(1u32), half.clone(), (&half + 1u32) % &t, &t - 1u32];
        let limbs = values.iter().map(|x| synchromesh::plain_modulus::from_biguint(x).unwrap());
        let centred = Integers::from_residues(limbs, &t, width_of(half.bits())).to_big_vartime();
        for (x, c) in values.iter().zip(centred) {
            let t = BigInt::from(t.clone());
            assert_eq!((BigInt::from(x.clone()) - &c) % &t, BigInt::ZERO);
            assert!(&c * 2 <= t && &c * -2 < t, "{c}");
        }
    }
}

#[test]
fn quotients_of_challenges_grow_no_more_than_stated() {
    let one: Vec<BigInt> = (0..N).map(|i| u32::from(i == 0).into()).collect();
    for challenges in
        [0, 1, 4].map(|log2_span| Challenges::Monomials { log2_span }).into_iter().chain([Challenges::Bits])
    {
        let all: Vec<Challenge> = (0..challenges.size()).map(|i| challenges.number(i as usize, N)).collect();
        let k = challenges.multiple();
        let mut most = 0;
        for &c in &all {
            for &d in all.iter().filter(|&&d| d != c) {
                let quotient = quotient(c, d, k);
                let sum = BigInt::from(quotient.0.len()) * BigInt::from(quotient.1.magnitude().clone());
                most = most.max(u32::try_from(sum).unwrap());
                let mut product = vec![BigInt::ZERO; N];
                let inverse = times_quotient(&one, &quotient);
                for (challenge, sign) in [(c, 1), (d, -1)] {
                    if let Some(e) = challenge {
                        product.iter_mut().zip(shifted(&inverse, e)).for_each(|(sum, x)| *sum += sign * x);
                    }
                }
                assert_eq!(product, one.iter().map(|x| x * k).collect::<Vec<_>>(), "{c:?} {d:?}");
            }
        }
        assert_eq!(most, challenges.growth(), "{challenges:?}");
    }
}

struct Batch {
    ciphertexts: Vec<Ciphertext>,
    witnesses: Vec<Witness>,
}

impl Batch {
    fn new(proofs: &EncryptionProofs<'_, Cpu>, context: &Context, count: usize, randomness: &mut Randomness) -> Self {
        let values: Vec<i64> = (0..N as i64).map(|i| i * 31 % 1000 - 500).collect();
        let plaintext = context.encode_coefficients(&values[..]).unwrap();
        let (ciphertexts, witnesses) = (0..count).map(|_| proofs.encrypt(&plaintext, randomness).unwrap()).unzip();
        Self { ciphertexts, witnesses }
    }

    fn ciphertexts(&self) -> Vec<&Ciphertext> {
        self.ciphertexts.iter().collect()
    }

    fn witnesses(&self) -> Vec<&[Integers]> {
        self.witnesses.iter().map(|witness| witness.0.as_slice()).collect()
    }
}

/// The responses in a proof.
fn responses(plan: &Plan, proof: &[u8]) -> Vec<Vec<Integers>> {
    let mut rest = &proof[CHALLENGE_BYTES..];
    let read = |_| {
        let column = |column: &super::linear::ColumnPlan| {
            let (bytes, behind) = rest.split_at(column.bytes());
            rest = behind;
            Integers::unpack(bytes, column.count, column.bits, width_of(column.bits)).0
        };
        plan.columns.iter().map(column).collect()
    };
    (0..plan.rows).map(read).collect()
}

#[test]
fn accepted_masks_leave_every_response_equally_likely() {
    // By enumeration: whatever is added, each response within the bound comes from exactly one mask.
    let (log2_mask, hidden) = (4u32, 3);
    let bound = BigUint::from((1u32 << log2_mask) - 1 - hidden);
    for added in -(hidden as i64)..=i64::from(hidden) {
        let mut seen: Vec<i64> = Vec::new();
        for mask in -(1i64 << log2_mask)..1 << log2_mask {
            let mut z = Integers::from_signed([mask].iter(), 1);
            z.add_monomial(&Integers::from_signed([added].iter(), 1), 0, 1);
            if z.within(&bound) {
                seen.push(mask + added);
            }
        }
        assert_eq!(seen, (-12..=12).collect::<Vec<i64>>(), "{added}");
    }
    // And the plans have that bound.
    let (context, public, _) = context("65537", &[50, 50]);
    for parameters in [Parameters::batch(), Parameters::constant(), bits()] {
        let proofs = EncryptionProofs::new(&context, &public, 1, Content::Any, parameters.insecure(20)).unwrap();
        let plan = proofs.plan(5).unwrap();
        for (plan, column) in plan.columns.iter().zip(proofs.relation().columns()) {
            let border = BigUint::from(1u32) << plan.log2_mask;
            assert_eq!(&plan.response + &column.bound * 5u32 + 1u32, border);
        }
    }
}

#[test]
fn a_thousand_proofs_are_accepted_and_their_responses_say_nothing_of_the_witness() {
    let (context, public, mut randomness) = context("65537", &[50, 50]);
    let parameters = monomials(3).insecure(8);
    let proofs = EncryptionProofs::new(&context, &public, 1, Content::Any, parameters).unwrap();
    let linear = proofs.linear().unwrap();
    let (count, plan) = (2, proofs.plan(2).unwrap());
    // The witnesses with most to hide, and with nothing.
    for largest in [true, false] {
        let of = |column: &super::relation::Column| {
            let value = if largest { BigInt::from(column.bound.clone()) } else { BigInt::ZERO };
            Integers::from_big_vartime(&vec![value; N], 1)
        };
        let witness: Vec<Integers> = proofs.relation().columns().iter().map(of).collect();
        let image = proofs.relation().image(context.rlwe(), &witness).unwrap();
        let target: Vec<&Poly<Cpu, Ntt>> = image.iter().map(|part| part.poly()).collect();
        let targets = vec![target.as_slice(); count];
        let mut buckets = vec![[0u32; 16]; plan.columns.len()];
        for _ in 0..500 {
            let seed = randomness.next_seed().unwrap();
            let proof = linear.prove(&targets, &vec![witness.as_slice(); count], &transcript(), &seed).unwrap();
            linear.verify(&targets, &proof, &transcript()).unwrap();
            for response in responses(&plan, &proof) {
                for ((z, column), buckets) in response.iter().zip(&plan.columns).zip(&mut buckets) {
                    let bound = i128::try_from(column.response.clone()).unwrap();
                    for z in z.to_big_vartime() {
                        let z = i128::try_from(z).unwrap();
                        buckets[((z + bound) * 16 / (2 * bound + 1)) as usize] += 1;
                    }
                }
            }
        }
        for buckets in buckets {
            let expected = f64::from(buckets.iter().sum::<u32>()) / 16.0;
            let chi_square: f64 = buckets.iter().map(|&x| (f64::from(x) - expected).powi(2) / expected).sum();
            // 15 degrees of freedom: beyond 50 in one of 80,000 cases.
            assert!(chi_square < 50.0, "{chi_square} {buckets:?}");
        }
    }
}

#[test]
fn attempts_succeed_as_often_as_computed() {
    let (context, public, mut randomness) = context("65537", &[50, 50]);
    let parameters = monomials(10).insecure(8);
    let proofs = EncryptionProofs::new(&context, &public, 1, Content::Any, parameters).unwrap();
    let (linear, plan) = (proofs.linear().unwrap(), proofs.plan(1).unwrap());
    let rejected: f64 = plan
        .columns
        .iter()
        .zip(proofs.relation().columns())
        .map(|(plan, column)| {
            let hidden = f64::from(u32::try_from(column.bound.clone()).unwrap()) + 0.5;
            -(plan.count as f64) * (-hidden / (plan.log2_mask as f64).exp2()).ln_1p()
        })
        .sum::<f64>()
        * plan.rows as f64;
    let expected = (-rejected).exp();
    assert!(expected > 0.5);
    let witness: Vec<Integers> = proofs.relation().columns().iter().map(|_| Integers::zero(N, 1)).collect();
    let (runs, mut accepted) = (1000, 0);
    for _ in 0..runs {
        let mut masks: Vec<_> = {
            let seed = randomness.next_seed().unwrap();
            (0..plan.rows).map(|v| linear.masks(&plan, v, &seed)).collect()
        };
        let challenges = vec![vec![Some(0)]; plan.rows];
        accepted += u32::from(linear.respond(&plan, &mut masks, &[&witness], &challenges));
    }
    let deviation = (expected * (1.0 - expected) * f64::from(runs)).sqrt();
    assert!(
        (f64::from(accepted) - expected * f64::from(runs)).abs() < 5.0 * deviation,
        "{accepted} of {runs}, {expected}"
    );
}

#[test]
fn two_transcripts_give_a_witness_within_the_bound_and_the_bound_is_attained() {
    let t = "340282366920938463463374607431759953921";
    let (context, public, mut randomness) = context(t, &[50, 50, 50, 50, 50]);
    for parameters in [monomials(10), monomials(4), monomials(0), bits()] {
        let parameters = parameters.insecure(12);
        let proofs = EncryptionProofs::new(&context, &public, 4, Content::Any, parameters).unwrap();
        let batch = Batch::new(&proofs, &context, 2, &mut randomness);
        let (linear, plan) = (proofs.linear().unwrap(), proofs.plan(2).unwrap());
        let (k, seed) = (plan.multiple, seed(5));
        // The same masks answer two challenge matrices that differ in column 1 only.
        let run = |digest: u8| {
            let mut z: Vec<Vec<Integers>> = (0..plan.rows).map(|v| linear.masks(&plan, v, &seed)).collect();
            let mut challenges = linear.challenges(&plan, &[1; 32]);
            for (row, other) in challenges.iter_mut().zip(linear.challenges(&plan, &[digest; 32])) {
                row[1] = other[1];
            }
            linear.respond(&plan, &mut z, &batch.witnesses(), &challenges);
            (z, challenges)
        };
        let ((z, c), (other, d)) = (run(2), run(3));
        let v = (0..plan.rows).find(|&v| c[v][1] != d[v][1]).expect("some row differs");
        let quotient = quotient(c[v][1], d[v][1], k);
        let extract = |(z, other): (&Integers, &Integers)| {
            let difference: Vec<BigInt> =
                z.to_big_vartime().iter().zip(other.to_big_vartime()).map(|(x, y)| x - y).collect();
            times_quotient(&difference, &quotient)
        };
        let extracted: Vec<Vec<BigInt>> = z[v].iter().zip(&other[v]).map(extract).collect();
        for (x, plan) in extracted.iter().zip(&plan.columns) {
            assert!(largest(x) <= plan.extracted);
        }
        let witness: Vec<Integers> = extracted.iter().map(|x| Integers::from_big_vartime(x, 5)).collect();
        let image = proofs.relation().image(context.rlwe(), &witness).unwrap();
        for (image, part) in image.iter().zip(batch.ciphertexts[1].inner().parts()) {
            let times_k = context.params().rlwe().ring().residues(part.primes(), &k.into());
            let mut target = part.duplicate(context.backend()).unwrap();
            target.mul_scalar_assign(context.backend(), &times_k).unwrap();
            let words = |poly: &Poly<Cpu, Ntt>| poly.to_words(context.backend()).unwrap();
            assert_eq!(words(image.poly()), words(&target));
        }
        attained(parameters.challenges(), &plan);
    }
}

/// Responses at the border with the worst signs lead to a witness of exactly the size stated.
fn attained(challenges: Challenges, plan: &Plan) {
    let (c, d) = match challenges {
        Challenges::Bits | Challenges::Monomials { log2_span: 0 } => (Some(0), None),
        Challenges::Monomials { log2_span } => (Some(0), Some(N >> log2_span)),
    };
    let quotient = quotient(c, d, challenges.multiple());
    let one: Vec<BigInt> = (0..N).map(|i| u32::from(i == 0).into()).collect();
    let signs = times_quotient(&one, &quotient);
    for column in &plan.columns {
        let most = BigInt::from(column.response.clone()) * 2;
        // Coefficient 0 of the product pairs coefficient i of one with -(N - i) of the other.
        let sign = |x: &BigInt| i32::from(*x > BigInt::ZERO) - i32::from(*x < BigInt::ZERO);
        let paired = |i: usize| if i == 0 { sign(&signs[0]) } else { -sign(&signs[N - i]) };
        let difference: Vec<BigInt> = (0..N).map(|i| paired(i) * &most).collect();
        assert_eq!(largest(&times_quotient(&difference, &quotient)), column.extracted);
    }
}

#[test]
fn witnesses_that_are_too_large_are_refused() {
    let (context, public, mut randomness) = context("65537", &[50, 50, 50]);
    let parameters = Parameters::batch().insecure(40);
    let proofs = EncryptionProofs::new(&context, &public, 2, Content::Any, parameters).unwrap();
    let (linear, plan) = (proofs.linear().unwrap(), proofs.plan(1).unwrap());
    for j in 0..4 {
        let batch = Batch::new(&proofs, &context, 1, &mut randomness);
        // Just beyond what an honest prover has, and twice what responses may be.
        for (size, prover_only) in
            [(&proofs.relation().columns()[j].bound + 1u32, true), (&plan.columns[j].response * 2u32, false)]
        {
            let mut witness: Vec<Integers> =
                batch.witnesses[0].0.iter().map(|w| Integers::from_big_vartime(&w.to_big_vartime(), 2)).collect();
            let mut coefficients = witness[j].to_big_vartime();
            coefficients[17] = size.into();
            witness[j] = Integers::from_big_vartime(&coefficients, 2);
            let image = proofs.relation().image(context.rlwe(), &witness).unwrap();
            let target: Vec<&Poly<Cpu, Ntt>> = image.iter().map(|part| part.poly()).collect();
            let refused = linear.prove(&[&target], &[&witness], &transcript(), &seed(1)).unwrap_err();
            assert_eq!(refused.kind(), "proof_witness");
            if !prover_only {
                let proof = careless(&linear, &[&target], &[&witness], (&transcript(), 10)).unwrap();
                let refused = linear.verify(&[&target], &proof, &transcript()).unwrap_err();
                assert!(matches!(refused, ProofError::Oversized { .. } | ProofError::Challenge), "{refused}");
                assert!(refused.blames_prover());
            }
        }
    }
}

#[test]
fn a_response_one_beyond_its_bound_is_refused_by_name() {
    let (context, public, mut randomness) = context("65537", &[50, 50, 50]);
    let proofs = EncryptionProofs::new(&context, &public, 2, Content::Any, Parameters::batch().insecure(10)).unwrap();
    let batch = Batch::new(&proofs, &context, 1, &mut randomness);
    let proof = proofs.prove(&batch.ciphertexts(), &batch.witnesses, &transcript(), &mut randomness).unwrap();
    let plan = proofs.plan(1).unwrap();
    let digest: [u8; 32] = proof[..32].try_into().unwrap();
    for j in 0..4 {
        let mut z = responses(&plan, &proof);
        let column = &plan.columns[j];
        let mut coefficients = z[1][j].to_big_vartime();
        coefficients[N - 1] = -BigInt::from(&column.response + 1u32);
        z[1][j] = Integers::from_big_vartime(&coefficients, width_of(column.bits));
        let refused = proofs.verify(&batch.ciphertexts(), &pack(&plan, &digest, &z), &transcript()).unwrap_err();
        let name = proofs.relation().columns()[j].name;
        assert_eq!(refused, ProofError::Oversized { row: 1, column: name, bits: column.response.bits() });
    }
}

#[test]
fn a_message_that_is_not_constant_is_refused_as_a_constant() {
    let (context, public, mut randomness) = context("65537", &[50, 50, 50]);
    let parameters = Parameters::constant().insecure(20);
    let any = EncryptionProofs::new(&context, &public, 2, Content::Any, parameters).unwrap();
    let constant = EncryptionProofs::new(&context, &public, 2, Content::Constant, parameters).unwrap();
    let values: Vec<i64> = (0..N as i64).map(|i| i64::from(i == 0) * 1234 + i64::from(i == 5)).collect();
    let plaintext = context.encode_coefficients(&values[..]).unwrap();
    let refused = constant.encrypt(&plaintext, &mut randomness).err().unwrap();
    assert_eq!(refused.kind(), "proof_witness");
    let (ciphertext, Witness(mut witness)) = any.encrypt(&plaintext, &mut randomness).unwrap();
    witness[3] = witness[3].constant();
    let linear = constant.linear().unwrap();
    let targets = constant.targets(&[&ciphertext]).unwrap();
    let proof = careless(&linear, &[&targets[0]], &[&witness], (&transcript(), 10)).unwrap();
    assert_eq!(constant.verify(&[&ciphertext], &proof, &transcript()).unwrap_err(), ProofError::Challenge);
    // A witness for any message is none for a constant.
    let (ciphertext, witness) = any.encrypt(&plaintext, &mut randomness).unwrap();
    let refused = constant.prove(&[&ciphertext], &[witness], &transcript(), &mut randomness).unwrap_err();
    assert_eq!(refused.kind(), "proof_witness");
    // The same with the message it claims is accepted.
    let values: Vec<i64> = (0..N as i64).map(|i| i64::from(i == 0) * 1234).collect();
    let (ciphertext, witness) =
        constant.encrypt(&context.encode_coefficients(&values[..]).unwrap(), &mut randomness).unwrap();
    let proof = constant.prove(&[&ciphertext], &[witness], &transcript(), &mut randomness).unwrap();
    constant.verify(&[&ciphertext], &proof, &transcript()).unwrap();
}

#[test]
fn who_knows_nothing_succeeds_with_the_probability_stated() {
    let (context, public, mut randomness) = context("65537", &[50, 50]);
    let parameters = bits().insecure(4);
    let proofs = EncryptionProofs::new(&context, &public, 1, Content::Any, parameters).unwrap();
    let (linear, plan) = (proofs.linear().unwrap(), proofs.plan(1).unwrap());
    assert_eq!(plan.rows, 4);
    // A pair of uniform polynomials encrypts nothing short.
    let batch = Batch::new(&proofs, &context, 2, &mut randomness);
    let parts = [&batch.ciphertexts[0], &batch.ciphertexts[1]].map(|c| &c.inner().parts()[1]);
    let targets: [&[&Poly<Cpu, Ntt>]; 1] = [&parts];
    let words = linear.words(&targets).unwrap();
    let statement = linear.statement(&plan, &targets, &transcript()).unwrap();
    let (tries, mut successes) = (640, 0);
    for number in 0..tries {
        let mut guess = [0; 32];
        guess[..4].copy_from_slice(&u32::to_le_bytes(number));
        let guessed = linear.challenges(&plan, &guess);
        let random = randomness.next_seed().unwrap();
        let z: Vec<Vec<Integers>> = (0..plan.rows)
            .map(|v| {
                let column = |(j, column): (usize, &super::linear::ColumnPlan)| {
                    let digit = (v * plan.columns.len() + j) as u32;
                    Integers::uniform(&random, digit, column.count, column.log2_mask - 1, width_of(column.bits))
                };
                plan.columns.iter().enumerate().map(column).collect()
            })
            .collect();
        let mut hash = statement.clone();
        for (z, challenges) in z.iter().zip(&guessed) {
            linear.absorb_announcements(&mut hash, &words, z, challenges).unwrap();
        }
        let digest = hash.digest();
        let lucky = linear.challenges(&plan, &digest) == guessed;
        let verdict = linear.verify(&targets, &pack(&plan, &digest, &z), &transcript());
        assert_eq!(verdict.is_ok(), lucky);
        successes += u32::from(lucky);
    }
    // 640 / 2^4 = 40, standard deviation 6.1.
    assert!((15..=65).contains(&successes), "{successes}");
}
