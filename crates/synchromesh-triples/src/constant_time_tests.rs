//! Every operation on secrets, of this crate and those below, with its secrets marked for memcheck: no branch and no
//! address may depend on one. Run by `cargo xtask harden constant-time` with the feature `memcheck` under Valgrind;
//! without it these tests compute the same and judge nothing.

use std::sync::Arc;

use synchromesh::bfv::Decryption;
use synchromesh::exact::{Plaintext, Rotations, Scheme};
use synchromesh::plain_modulus::U256;
use synchromesh::rlwe::ring::sampler::{Purpose, Seed, SmallPoly, cbd21, gaussian, ternary};
use synchromesh::rlwe::ring::secrecy::{findings, hide, hide_all, reveal_all};
use synchromesh::rlwe::ring::{Cpu, Domain, Ntt, Poly, Ring};
use synchromesh::rlwe::wire::{EnvelopeKey, HEADER_BYTES};
use synchromesh::rlwe::{KeyId, KeyPart, PublicKey, Randomness, SecondKey, SecretKey, Security, flood};
use synchromesh::{bfv, bgv, ckks, exact};
use synchromesh_parties::proofs::encryption::{Content, EncryptionProofs};
use synchromesh_parties::proofs::keys::{Part, ShareProofs};
use synchromesh_parties::proofs::{Parameters, Transcript};
use zeroize::Zeroizing;

use crate::field::{DEFAULT_PRIME, Element, Field};
use crate::generation::MaskKey;
use crate::roots::{Roots, inverses_vartime};
use crate::{MacKeyShare, Matrix, Shared};

const LOG_N: u32 = 10;
const N: usize = 1 << LOG_N;

/// Runs `work`; fails if memcheck watched and had something to report of it.
fn watched<T>(work: impl FnOnce() -> T) -> T {
    let before = findings();
    let result = work();
    assert_eq!(findings(), before, "memcheck reported branches or addresses that depend on secrets");
    result
}

/// 32 secret bytes.
fn secret_seed(number: u8) -> Seed {
    Seed::from_bytes(hide([number; 32]))
}

/// A source of which everything is secret.
fn secret_randomness(number: u8) -> Randomness {
    Randomness::insecure_from_seed(secret_seed(number))
}

fn hide_poly<D: Domain>(poly: &Poly<Cpu, D>) {
    hide_all(poly.buffer().words());
}

fn reveal_poly<D: Domain>(poly: &Poly<Cpu, D>) {
    reveal_all(poly.buffer().words());
}

/// A secret key of which the name is public and the coefficients are not.
fn secret_key(context: &synchromesh::rlwe::Context<Cpu>) -> SecretKey {
    let known = SecretKey::generate(context, &mut Randomness::insecure_from_number(1)).expect("a key");
    let coefficients = known.small().as_slice().to_vec();
    hide_all(&coefficients);
    SecretKey::from_small(context, KeyId([1; 16]), SmallPoly::from_vec(coefficients)).expect("an even key")
}

/// Its public key, which has been published.
fn public_key(context: &synchromesh::rlwe::Context<Cpu>, secret: &SecretKey) -> PublicKey {
    let public = PublicKey::generate(context, secret, &mut secret_randomness(2)).expect("a public key");
    reveal_poly(public.b());
    public
}

fn literal(t: &str, q_bits: &[u32]) -> exact::ParamsLiteral {
    exact::ParamsLiteral {
        log_n: LOG_N,
        t: t.to_owned(),
        q_bits: q_bits.to_vec(),
        p_bits: vec![60],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: q_bits.len(),
        security: Security::Insecure,
        primes: None,
    }
}

fn ckks_literal() -> ckks::ParamsLiteral {
    ckks::ParamsLiteral {
        log_n: LOG_N,
        log_scale: 40,
        q_bits: vec![50, 40, 40],
        p_bits: vec![55],
        level_limbs: vec![],
        schedule: Default::default(),
        omega: 2,
        log_scales: vec![],
        mode: ckks::Mode::Auto,
        security: Security::Insecure,
        primes: None,
    }
}

/// The words in which residues lie.
fn words(plaintext: &Plaintext) -> &[u64] {
    let coeffs = plaintext.poly().coeffs();
    coeffs.as_word().or_else(|| coeffs.as_wide().map(<[U256]>::as_flattened)).unwrap_or_default()
}

/// Encodes, encrypts under both keys, decrypts and decodes.
fn exact_round<S: Scheme>(
    context: &exact::Context<S>,
    decrypted: impl Fn(&SecretKey, &exact::Ciphertext<S>) -> Plaintext,
) {
    let secret = secret_key(context.rlwe());
    let public = public_key(context.rlwe(), &secret);
    let values = hide([5u64; N]);
    let slots = context.slot_encoder().is_ok();
    let message = if slots { context.encode(&values[..]) } else { context.encode_coefficients(&values[..]) };
    let message = message.expect("a message");
    let mut randomness = secret_randomness(3);
    let (symmetric, _) = context.encrypt_with_secret(&secret, &message, &mut randomness).expect("room");
    for ciphertext in [context.encrypt(&public, &message, &mut randomness).expect("room"), symmetric] {
        ciphertext.inner().parts().iter().for_each(reveal_poly);
        let plain = decrypted(&secret, &ciphertext);
        if context.params().t().value().bits() <= 64 {
            let decoded = if slots { context.decode_u64(&plain) } else { context.decode_coefficients_u64(&plain) };
            reveal_all(&decoded.expect("words"));
        }
        reveal_all(words(&plain));
        reveal_all(words(&message));
        assert!(plain.poly() == message.poly());
        hide_all(words(&message));
    }
}

#[test]
fn small_polynomials_are_sampled_and_reduced() {
    watched(|| {
        let ring = Arc::new(Ring::new(LOG_N, &[1_152_921_504_606_584_833, 1_125_899_906_826_241]).expect("primes"));
        let backend = Cpu::open(Arc::clone(&ring)).expect("a device");
        for sample in [ternary, cbd21, gaussian] {
            let small = sample(&secret_seed(9), Purpose::EncryptionError, 3, N);
            let all = (0..2).collect();
            let poly = Poly::from_signed(&backend, &all, small.as_slice()).expect("a polynomial");
            let slots = poly.into_ntt(&backend).expect("slots");
            let square = slots.mul(&backend, &slots).expect("a product");
            square.into_coeff(&backend).expect("coefficients");
        }
    });
}

#[test]
fn keys_are_generated() {
    watched(|| {
        let context =
            bgv::Context::new(bgv::Params::new(literal("65537", &[50, 50, 45])).expect("legal")).expect("a context");
        let mut randomness = secret_randomness(4);
        let (secret, public) = context.generate_keys(&mut randomness).expect("keys");
        reveal_poly(public.b());
        let keys = context.generate_evaluation_keys(
            &secret,
            &Rotations::by([1, -3]).and(&Rotations { swap: true, ..Rotations::none() }),
            &mut randomness,
        );
        keys.expect("keys").iter().for_each(|key| key.b().iter().for_each(reveal_poly));
    });
}

#[test]
fn secret_keys_are_written_and_read() {
    watched(|| {
        let context = ckks::Context::new(ckks::Params::new(ckks_literal()).expect("legal")).expect("a context");
        let secret = secret_key(context.rlwe());
        for envelope in [None, Some(EnvelopeKey::from_bytes(hide([8; 32])))] {
            let bytes = secret.to_bytes(context.rlwe(), envelope.as_ref()).expect("bytes");
            // A reader sees magic, type and lengths before anything else: what is no secret in a file.
            reveal_all(&bytes[..HEADER_BYTES]);
            SecretKey::from_bytes(context.rlwe(), &bytes, envelope.as_ref()).expect("the key");
        }
    });
}

#[test]
fn shares_are_added_multiplied_written_and_read() {
    watched(|| {
        for prime in [DEFAULT_PRIME, "340282366920938463463374607431768211297"] {
            let field: Field = prime.parse().expect("a prime");
            let matrix = || {
                let random = Matrix::random(&field, 3, 3).expect("entropy");
                hide_all(random.entries());
                random
            };
            let (x, y) =
                (Shared::new(matrix(), matrix()).expect("alike"), Shared::new(matrix(), matrix()).expect("alike"));
            let key = MacKeyShare::new(matrix().entries()[0]);
            let public = Shared::public(&field, &matrix(), 1, &key).expect("a share");
            let sum = x.add(&field, &y).and_then(|z| z.sub(&field, &public)).expect("a sum");
            let product = sum.value().mul(&field, y.mac()).expect("a product").scale(&field, key.secret());
            let z = Shared::new(product, matrix()).expect("alike");
            let again = Shared::from_bytes(&field, 3, 3, &z.to_bytes(&field)).expect("the shares");
            reveal_all(again.value().entries());
        }
    });
}

/// What becomes of rows of single numbers: products with what was opened, and with the root of a square.
#[test]
fn bits_are_made_of_shares() {
    watched(|| {
        let field: Field = DEFAULT_PRIME.parse().expect("a prime");
        let row = || {
            let random = Matrix::random(&field, 1, 5).expect("entropy");
            hide_all(random.entries());
            random
        };
        let (a, b) = (Shared::new(row(), row()).expect("alike"), Shared::new(row(), row()).expect("alike"));
        let opened = Matrix::random(&field, 1, 5).expect("entropy");
        let scaled = a.scale(&field, field.small(3)).and_then(|x| x.add(&field, &b)).expect("a sum");
        let sum = scaled.times_public(&field, &opened).expect("products");
        let joined = sum.columns(1..4).and_then(|part| part.beside(&b)).expect("rows");
        let squares = joined.value().times(&field, joined.mac()).expect("products");
        reveal_all(squares.entries());
        // Of a square that is public by then.
        let root = Roots::new(&field).root_vartime(field.small(4)).expect("a root");
        assert_eq!(field.mul(root, root), field.small(4));
        assert_eq!(inverses_vartime(&field, &[root]).len(), 1);
    });
}

#[test]
fn bfv_encrypts_and_decrypts() {
    // A word modulus with slots and one without, primes for each way to decrypt, and a modulus of several words.
    for (t, q, ways) in [
        ("65537", vec![45, 45], vec![Decryption::Doubles, Decryption::DigitDoubles, Decryption::MultiLimb]),
        ("1000", vec![60, 60], vec![Decryption::DigitDoubles, Decryption::Integers, Decryption::MultiLimb]),
        (DEFAULT_PRIME, vec![60; 4], vec![Decryption::MultiLimb]),
    ] {
        watched(|| {
            let context = bfv::Context::new(bfv::Params::new(literal(t, &q)).expect("legal")).expect("a context");
            for way in ways {
                exact_round(&context, |key, ciphertext| context.decrypt_by(way, key, ciphertext).expect("room"));
            }
        });
    }
}

#[test]
fn bgv_encrypts_and_decrypts() {
    for (t, q) in [("65537", vec![50, 50]), ("1000", vec![60, 45]), (DEFAULT_PRIME, vec![60; 4])] {
        watched(|| {
            let context = bgv::Context::new(bgv::Params::new(literal(t, &q)).expect("legal")).expect("a context");
            exact_round(&context, |key, ciphertext| context.decrypt(key, ciphertext).expect("room"));
        });
    }
}

/// Encoding and decoding of CKKS take variable time: what is secret begins with the encoded message and ends with the
/// phase and the noise for its release.
#[test]
fn ckks_encrypts_decrypts_to_the_phase_and_floods() {
    watched(|| {
        let context = ckks::Context::new(ckks::Params::new(ckks_literal()).expect("legal")).expect("a context");
        let secret = secret_key(context.rlwe());
        let public = public_key(context.rlwe(), &secret);
        let (rlwe, backend) = (context.rlwe(), context.rlwe().backend());
        let level = rlwe.params().top_level();
        let message =
            Poly::from_signed(backend, rlwe.params().level(level).expect("a level"), &hide([5; N])).expect("a message");
        let mut randomness = secret_randomness(3);
        let under_public = public.encrypt::<Ntt>(rlwe, &message, level, &mut randomness).expect("room");
        let (under_secret, _) = secret.encrypt::<Ntt>(rlwe, &message, level, &mut randomness).expect("room");
        for ciphertext in [under_public, under_secret] {
            ciphertext.parts().iter().for_each(reveal_poly);
            let seed = secret.seed_for("a test", &[1; 32]);
            let noise: Vec<i64> = flood::gaussian(&seed, 20, N).iter().map(|&x| x as i64).collect();
            let phase = secret.phase(rlwe, &ciphertext).expect("a phase");
            let mut sum = Poly::from_signed(backend, phase.poly().primes(), &noise).expect("noise");
            sum.add_assign(backend, phase.poly()).expect("a sum");
            let least = ciphertext.parts()[0].primes().iter().take(1).collect();
            secret.phase_on(rlwe, &ciphertext, &least).expect("a phase");
        }
    });
}

/// Integers of any size: noise of joint decryptions, and own parts of CKKS messages in shares, brought to another scale.
#[test]
fn wide_integers_are_drawn_added_and_scaled() {
    watched(|| {
        let ring = Arc::new(Ring::new(LOG_N, &[1_152_921_504_606_584_833, 1_152_921_504_598_720_513]).expect("primes"));
        let backend = Cpu::open(Arc::clone(&ring)).expect("a device");
        let factor = (num_bigint::BigUint::from(5u32) << flood::POINT) / 7u32;
        for (number, bits) in [(1, 40), (2, 110), (3, 190)] {
            let own = flood::Wide::gaussian(&secret_seed(number), bits, N);
            let sum = own.plus(&flood::Wide::gaussian(&secret_seed(number + 8), 70, N)).times(&factor);
            sum.to_poly(&backend, &ring, &(0..2).collect(), &3u32.into()).expect("a polynomial");
        }
    });
}

#[test]
fn a_second_key_is_derived() {
    watched(|| {
        let mut literal = ckks_literal();
        literal.q_bits = vec![50, 40, 40, 40, 40];
        literal.schedule.second = Some(SecondKey { leading_levels: 1, special: vec![], omega: None });
        let Ok(params) = ckks::Params::new(literal) else { panic!("legal") };
        let context = ckks::Context::new(params).expect("a context");
        assert!(secret_key(context.rlwe()).second().is_some());
    });
}

#[test]
fn decryption_shares_are_masked() {
    watched(|| {
        let field: Field = DEFAULT_PRIME.parse().expect("a prime");
        let ring = Arc::new(Ring::new(LOG_N, &[1_152_921_504_606_584_833, 1_152_921_504_598_720_513]).expect("primes"));
        let backend = Cpu::open(Arc::clone(&ring)).expect("a device");
        let key = MaskKey::new(Zeroizing::new(hide([7; 32])));
        for bits in [59, 61, 110] {
            let mask = key.mask(&[1; 32], &[2; 32], bits, N);
            let mut poly = Poly::zero(&backend, &(0..2).collect()).expect("zero");
            hide_poly(&poly);
            mask.add_to(&backend, &ring, &mut poly).expect("a sum");
            let shares = mask.residues(&field, field.small(3));
            let of = shares.as_wide().unwrap_or_default();
            let sum = of.iter().fold(Element::ZERO, |sum, &x| {
                let (x, negated) = (Element(x), field.sub(Element::ZERO, Element(x)));
                field.add(field.mul(sum, x), negated)
            });
            reveal_all(&sum.0);
        }
    });
}

#[test]
fn shares_of_keys_are_proven() {
    watched(|| {
        let context =
            bgv::Context::new(bgv::Params::new(literal("65537", &[50, 45, 52])).expect("legal")).expect("a context");
        let part = KeyPart::whole(context.params().rlwe(), context.params().plan().shape()).expect("a part");
        let seeds = [Seed::from_bytes([2; 32]), Seed::from_bytes([3; 32])];
        let g = context.galois_element(1).expect("slots");
        let parts = [Part::Public(&seeds[0]), Part::Rotation { galois: g, part: &part, seed: &seeds[1] }];
        let parameters = Parameters::keys().insecure(2);
        let proofs = ShareProofs::new(context.rlwe(), part.primes(), &parts, parameters).expect("proofs");
        let secret = ternary(&secret_seed(1), Purpose::SecretKey, 0, N);
        let mut randomness = secret_randomness(5);
        let (share, witness) = proofs.share(&secret, &mut randomness).expect("a share");
        share.iter().for_each(reveal_poly);
        let transcript = Transcript::new(&[4; 32], 1, "a test");
        let proof = proofs.prove(&share, &witness, &transcript, &mut randomness).expect("a proof");
        reveal_all(&proof);
        proofs.verify(&share, &proof, &transcript).expect("an honest proof");
    });
}

#[test]
fn encryptions_are_proven() {
    watched(|| {
        let params = bgv::Params::new(literal(DEFAULT_PRIME, &[60, 60, 60, 60, 60])).expect("legal");
        let context = bgv::Context::new(params).expect("a context");
        let public = public_key(context.rlwe(), &secret_key(context.rlwe()));
        for (content, parameters) in [(Content::Any, Parameters::batch()), (Content::Constant, Parameters::constant())]
        {
            let parameters = parameters.insecure(9);
            let level = context.params().top_level();
            let proofs = EncryptionProofs::new(&context, &public, level, content, parameters).expect("proofs");
            let values = if content == Content::Any { vec![5u64; N] } else { vec![5] };
            let message = context.encode_coefficients(&values[..]).expect("a message");
            if content == Content::Any {
                hide_all(words(&message));
            } else {
                hide_all(&words(&message)[..4]);
            }
            let mut randomness = secret_randomness(6);
            let (ciphertext, witness) = proofs.encrypt(&message, &mut randomness).expect("room");
            ciphertext.inner().parts().iter().for_each(reveal_poly);
            let transcript = Transcript::new(&[4; 32], 1, "a test");
            let proof = proofs.prove(&[&ciphertext], &[witness], &transcript, &mut randomness).expect("a proof");
            reveal_all(&proof);
            proofs.verify(&[&ciphertext], &proof, &transcript).expect("an honest proof");
        }
    });
}

/// What memcheck must find, or it looked at nothing: a branch and an address that depend on a secret.
#[test]
#[ignore = "planted: `cargo xtask harden constant-time` runs it and wants it to be found"]
fn planted_leaks_are_found() {
    let before = findings().expect("memcheck watches");
    let small = ternary(&secret_seed(1), Purpose::SecretKey, 0, N);
    let table = std::hint::black_box([3u64, 1, 4]);
    let looked_up: u64 = small.as_slice().iter().map(|&x| table[(x + 1) as usize % 3]).sum();
    let address = findings().expect("memcheck watches") - before;
    let branches = small.as_slice().iter().filter(|&&x| std::hint::black_box(x) == 1).map(|_| println!()).count();
    let both = findings().expect("memcheck watches") - before;
    assert!(address > 0 && both > address, "{looked_up} {branches}");
}
