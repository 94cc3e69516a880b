//! Every object as bytes: frozen, read back in every shape, and refused by a typed error when damaged or foreign.

use crate::common::{Counted, Fixture, automorphism, error_bits, fixture, literal, message};
use synchromesh_ring::sampler::Seed;
use synchromesh_ring::{Coeff, Ntt, Poly};
use synchromesh_rlwe::codec::{Attached, CiphertextHead, Received, Trust, largest_container};
use synchromesh_rlwe::noise::require_room;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::wire::{
    EnvelopeKey, Expected, HEADER_BYTES, Header, KeyId, ObjectType, ParamsDigest, Reader, TRAILER_BYTES, WireError,
    Writer, peek,
};
use synchromesh_rlwe::{
    Ciphertext, DigitSizes, Error, EvaluationKeys, Params, ParamsLiteral, PublicKey, SecretKey, Security, Source,
    SwitchDomain, SwitchKey, SwitchPlan,
};

type Result<T> = std::result::Result<T, Error>;
/// Reads an object and writes it again.
type Again = fn(&Fixture, &[u8], Option<&EnvelopeKey>) -> Result<Vec<u8>>;

/// Primes of 50, 40, 45, 50 and 36 bits that are 1 mod 2^11.
const FROZEN: [u64; 5] = [1125899906826241, 1099511592961, 35184372060161, 1125899906820097, 68719464449];

struct Sample {
    name: &'static str,
    object: ObjectType,
    bytes: Vec<u8>,
    again: Again,
}

fn params_again(_: &Fixture, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
    Params::from_bytes(bytes, envelope)?.to_bytes(envelope)
}

fn secret_again(f: &Fixture, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
    Ok(SecretKey::from_bytes(&f.context, bytes, envelope)?.to_bytes(&f.context, envelope)?.to_vec())
}

fn public_again(f: &Fixture, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
    PublicKey::from_bytes(&f.context, bytes, None, envelope)?.to_bytes(&f.context, envelope)
}

fn keys_again(f: &Fixture, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
    EvaluationKeys::from_bytes(&f.context, bytes, None, envelope)?.to_bytes(&f.context, envelope)
}

fn ciphertext_again<D: SwitchDomain>(f: &Fixture, bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<Vec<u8>> {
    let trust = envelope.map_or(Trust::Certificate, Trust::Envelope);
    let read: Received<Counted, D> = Ciphertext::from_bytes(&f.context, bytes, None, trust)?;
    let head = CiphertextHead::from_bytes(f.context.params(), bytes, envelope)?;
    assert_eq!(head, read.head);
    let attached = Attached { scheme_header: &head.scheme_header, seed: read.seed.as_ref() };
    read.ciphertext.to_bytes(&f.context, attached, envelope)
}

/// The keys of `f`: relinearisation, two rotations, and one from another secret key.
fn keys(f: &mut Fixture, plan: &SwitchPlan) -> EvaluationKeys<Counted> {
    let other = SecretKey::generate(&f.context, &mut f.randomness).unwrap();
    let sources = [Source::Galois(2047), Source::Square, Source::Galois(3)];
    let mut keys = EvaluationKeys::generate(&f.context, &f.secret, sources, plan, &mut f.randomness).unwrap();
    let (source, other) = (Source::Key(other.id()), Some(&other));
    keys.insert(SwitchKey::generate(&f.context, &f.secret, source, other, plan, &mut f.randomness).unwrap()).unwrap();
    keys
}

/// A ciphertext of `components` components (a third one is made up) with its seed.
fn encrypt<D: SwitchDomain>(f: &mut Fixture, level: usize, components: usize) -> (Ciphertext<Counted, D>, Seed) {
    let (_, poly) = message(&f.context, level, 5);
    let (ct, seed) = f.secret.encrypt::<D>(&f.context, &poly, level, &mut f.randomness).unwrap();
    let (key, noise) = (ct.key(), ct.noise());
    let mut parts = ct.into_parts();
    if components == 3 {
        parts.push(parts[0].duplicate(f.context.backend()).unwrap());
    }
    (Ciphertext::new(f.context.params(), parts, level, key, noise).unwrap(), seed)
}

/// One container of each kind.
fn samples(f: &mut Fixture, envelope: Option<&EnvelopeKey>) -> Vec<Sample> {
    let plan = SwitchPlan::hybrid(f.context.params(), 2).unwrap();
    let keys = keys(f, &plan);
    let public = PublicKey::generate(&f.context, &f.secret, &mut f.randomness).unwrap();
    let (slots, _) = encrypt::<Ntt>(f, 1, 3);
    let (coefficients, _) = encrypt::<Coeff>(f, 0, 2);
    let (fresh, seed) = encrypt::<Ntt>(f, 2, 2);
    let c = &f.context;
    let header = Attached { scheme_header: b"scale 2^40", seed: None };
    let seeded = Attached { scheme_header: &[], seed: Some(&seed) };
    let sample = |name, object, bytes: Vec<u8>, again| Sample { name, object, bytes, again };
    let ct = ObjectType::Ciphertext;
    vec![
        sample("params", ObjectType::Params, c.params().to_bytes(envelope).unwrap(), params_again as Again),
        sample("secret", ObjectType::SecretKey, f.secret.to_bytes(c, envelope).unwrap().to_vec(), secret_again),
        sample("public", ObjectType::PublicKey, public.to_bytes(c, envelope).unwrap(), public_again),
        sample("keys", ObjectType::SwitchKeySet, keys.to_bytes(c, envelope).unwrap(), keys_again),
        sample("slots", ct, slots.to_bytes(c, header, envelope).unwrap(), ciphertext_again::<Ntt>),
        sample(
            "coeff",
            ct,
            coefficients.to_bytes(c, Attached::default(), envelope).unwrap(),
            ciphertext_again::<Coeff>,
        ),
        sample("seeded", ct, fresh.to_bytes(c, seeded, envelope).unwrap(), ciphertext_again::<Ntt>),
    ]
}

fn small(seed: u64) -> Fixture {
    fixture(literal(10, &[50, 40, 45], &[50, 36], "65537"), seed)
}

fn envelope(byte: u8) -> EnvelopeKey {
    EnvelopeKey::from_bytes([byte; 32])
}

/// The payload of a container.
fn payload(bytes: &[u8]) -> &[u8] {
    &bytes[HEADER_BYTES..bytes.len() - TRAILER_BYTES]
}

/// A container with this header and payload, correctly sealed.
fn seal(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(header, payload.len());
    writer.raw(payload);
    writer.finish(None)
}

/// Pseudorandom numbers for choosing what to damage.
fn numbers(seed: u64) -> impl Iterator<Item = usize> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize
    })
}

#[test]
fn bytes_are_frozen() {
    let literal = ParamsLiteral { q: FROZEN[..3].to_vec(), p: FROZEN[3..].to_vec(), ..literal(10, &[], &[], "65537") };
    let digest = |s: &Sample| format!("{} {} {}", s.name, s.bytes.len(), &blake3::hash(&s.bytes).to_hex()[..16]);
    let found: Vec<String> = samples(&mut fixture(literal, 11), None).iter().map(digest).collect();
    let frozen = [
        "params 309 a05c9c3d4004d7ca",
        "secret 364 687aab5c6cbe5618",
        "public 28428 0da6077e7909ba8a",
        "keys 226604 89d73ceae6e9d15b",
        "slots 34694 9de410373e198445",
        "coeff 12924 f2f0b4ddbd019bf7",
        "seeded 17436 3d9846856584ea63",
    ];
    assert_eq!(found, frozen);
}

#[test]
fn objects_are_read_and_written_again_unchanged_under_many_parameters() {
    let many = ParamsLiteral { level_limbs: vec![2, 3, 5], ..literal(10, &[61, 20, 30, 53, 58], &[], "2") };
    for literal in [literal(10, &[50, 40, 45], &[50, 36], "1"), many, literal(11, &[60, 59, 58], &[61], "65537")] {
        for key in [None, Some(&envelope(7))] {
            let mut f = fixture(literal.clone(), 3);
            for sample in samples(&mut f, key) {
                let again = (sample.again)(&f, &sample.bytes, key).unwrap_or_else(|e| panic!("{}: {e}", sample.name));
                assert!(again == sample.bytes, "{} changed", sample.name);
                let limit = largest_container(f.context.params(), sample.object);
                assert!(sample.bytes.len() as u64 <= limit, "{} exceeds its limit", sample.name);
            }
        }
    }
}

fn words<D: SwitchDomain>(f: &Fixture, parts: &[Poly<Counted, D>]) -> Vec<Vec<u64>> {
    parts.iter().map(|p| p.to_words(f.context.backend()).unwrap()).collect()
}

fn every_level<D: SwitchDomain>(f: &mut Fixture) {
    for level in 0..=f.context.params().top_level() {
        for components in [2, 3] {
            let (ct, seed) = encrypt::<D>(f, level, components);
            let seeds = if components == 2 { vec![None, Some(&seed)] } else { vec![None] };
            for seed in seeds {
                let attached = Attached { scheme_header: &[level as u8; 9], seed };
                let bytes = ct.to_bytes(&f.context, attached, None).unwrap();
                let read = Ciphertext::<_, D>::from_bytes(&f.context, &bytes, Some(ct.key()), Trust::Certificate);
                let Received { ciphertext, seed: came, head } = read.unwrap();
                assert_eq!((ciphertext.level(), ciphertext.key()), (level, f.secret.id()));
                assert_eq!(words(f, ciphertext.parts()), words(f, ct.parts()));
                assert_eq!((head.scheme_header.as_slice(), head.seeded), (&[level as u8; 9][..], seed.is_some()));
                assert_eq!(came.as_ref().map(Seed::as_bytes), seed.map(Seed::as_bytes));
                let (read, written) = (ciphertext.noise(), ct.noise());
                let [read, written] = [read, written].map(|noise| noise.certificate.sigma);
                assert!(read >= written && read < written + 1.0 / 1024.0);
            }
        }
    }
}

#[test]
fn ciphertexts_round_trip_in_both_domains_at_every_level() {
    let mut f = small(5);
    every_level::<Ntt>(&mut f);
    every_level::<Coeff>(&mut f);
}

#[test]
fn what_was_read_still_works() {
    let mut f = small(6);
    let plan = SwitchPlan::with_digits(f.context.params(), &DigitSizes(vec![1, 2])).unwrap();
    let keys = keys(&mut f, &plan).to_bytes(&f.context, None).unwrap();
    let public = PublicKey::generate(&f.context, &f.secret, &mut f.randomness).unwrap();
    let public = public.to_bytes(&f.context, None).unwrap();
    let secret = f.secret.to_bytes(&f.context, None).unwrap();

    let id = Some(f.secret.id());
    f.secret = SecretKey::from_bytes(&f.context, &secret, None).unwrap();
    let public = PublicKey::from_bytes(&f.context, &public, id, None).unwrap();
    let keys = EvaluationKeys::from_bytes(&f.context, &keys, id, None).unwrap();
    assert_eq!(keys.iter().len(), 4);
    let (m, poly) = message(&f.context, 2, 4);
    let ct: Ciphertext<_, Ntt> = public.encrypt(&f.context, &poly, 2, &mut f.randomness).unwrap();
    let bytes = ct.to_bytes(&f.context, Attached::default(), None).unwrap();
    let read = Ciphertext::<_, Ntt>::from_bytes(&f.context, &bytes, id, Trust::Certificate).unwrap().ciphertext;
    let rotated = KeySwitching::new(keys.into(), plan).automorphism(&f.context, &read, 3).unwrap();
    let error = error_bits(&f.context, &f.secret, &rotated, &automorphism(&m, 3));
    assert!(error <= rotated.noise().bound(10, 128) && error < 30.0, "2^{error}");
}

#[test]
fn every_header_bit_flip_is_refused() {
    for key in [None, Some(&envelope(2))] {
        let mut f = small(12);
        for sample in samples(&mut f, key) {
            for bit in 0..HEADER_BYTES * 8 {
                let mut bad = sample.bytes.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                let error = (sample.again)(&f, &bad, key).expect_err("a flipped bit must be refused");
                let kind = match bit / 8 {
                    0..8 => "not_a_container",
                    8..10 if bit != 64 => "future_version",
                    _ => "header_corrupt",
                };
                assert_eq!(error.kind(), kind, "{} bit {bit}", sample.name);
                assert!(!error.remedy().is_empty() && !error.to_string().is_empty());
            }
        }
    }
}

#[test]
fn damaged_bodies_are_refused() {
    let key = envelope(3);
    for (key, kind) in [(None, "body_corrupt"), (Some(&key), "not_authentic")] {
        let mut f = small(13);
        for sample in samples(&mut f, key) {
            let bits = (sample.bytes.len() - HEADER_BYTES) * 8;
            let edges = (0..256).chain(bits - 512..bits);
            for bit in edges.chain(numbers(1).take(500).map(|x| x % bits)) {
                let mut bad = sample.bytes.clone();
                bad[HEADER_BYTES + bit / 8] ^= 1 << (bit % 8);
                assert_eq!((sample.again)(&f, &bad, key).unwrap_err().kind(), kind, "{} bit {bit}", sample.name);
            }
        }
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let mut f = small(14);
    for sample in samples(&mut f, None) {
        for len in 0..sample.bytes.len() {
            let kind = (sample.again)(&f, &sample.bytes[..len], None).unwrap_err().kind();
            assert_eq!(kind, "truncated", "{} at {len}", sample.name);
        }
        let extended = [&sample.bytes[..], &[0]].concat();
        assert_eq!((sample.again)(&f, &extended, None).unwrap_err().kind(), "trailing_bytes");
    }
}

/// Damage that carries a correct checksum: refused, or the one encoding of another object.
#[test]
fn sealed_damage_is_refused_or_another_object() {
    let mut f = small(15);
    for sample in samples(&mut f, None) {
        let (header, body) = (peek(&sample.bytes).unwrap().header, payload(&sample.bytes));
        let judge = |body: &[u8], must_fail: bool| {
            let bytes = seal(header, body);
            match (sample.again)(&f, &bytes, None) {
                Ok(again) => assert!(!must_fail && again == bytes, "{}: two encodings of one object", sample.name),
                Err(error) => assert!(!error.remedy().is_empty()),
            }
        };
        let bits = body.len() * 8;
        for bit in (0..bits.min(1024)).chain(numbers(2).take(300).map(|x| x % bits)) {
            let mut bad = body.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            judge(&bad, false);
        }
        for len in (0..body.len().min(200)).chain(numbers(3).take(100).map(|x| x % body.len())) {
            judge(&body[..len], true);
        }
        judge(&[body, &[0]].concat(), true);
        judge(&[0xff; 4096], true);
        let other_flag = Header { seeded: !header.seeded, ..header };
        let kind = (sample.again)(&f, &seal(other_flag, body), None).unwrap_err().kind();
        assert!(["non_canonical", "truncated", "trailing_bytes"].contains(&kind), "{}: {kind}", sample.name);
    }
}

#[test]
fn foreign_objects_are_refused() {
    let mut f = small(16);
    let other = small(17);
    let strangers = fixture(literal(10, &[50, 40, 45], &[50, 36], "2"), 16);
    let all = samples(&mut f, None);
    for sample in &all {
        let header = peek(&sample.bytes).unwrap().header;
        let body = payload(&sample.bytes);
        let kind = |f: &Fixture, bytes: &[u8]| (sample.again)(f, bytes, None).unwrap_err().kind();
        for other in all.iter().filter(|other| other.object != sample.object) {
            assert_eq!(kind(&f, &other.bytes), "wrong_type", "{} as {}", other.name, sample.name);
        }
        if sample.object == ObjectType::Params {
            let digest = Header { params: ParamsDigest([0; 32]), ..header };
            assert_eq!(kind(&f, &seal(digest, body)), "wrong_params");
            let named = Header { key: f.secret.id(), ..header };
            assert_eq!(kind(&f, &seal(named, body)), "wrong_key");
        } else {
            assert_eq!(kind(&strangers, &sample.bytes), "wrong_params", "{}", sample.name);
            let nobody = Header { key: KeyId::NONE, ..header };
            assert_eq!(kind(&f, &seal(nobody, body)), "non_canonical", "{}", sample.name);
        }
        let mut future = sample.bytes.clone();
        future[8] = 2;
        assert_eq!(kind(&f, &future), "future_version");
        let keyed = (sample.again)(&f, &sample.bytes, Some(&envelope(1))).unwrap_err();
        assert_eq!(keyed, Error::Wire(WireError::EnvelopeMismatch { keyed: false }));
    }
    let (c, id) = (&f.context, Some(other.secret.id()));
    let expected = Error::Wire(WireError::WrongKey { expected: other.secret.id(), found: f.secret.id() });
    let find = |name| &all.iter().find(|s| s.name == name).unwrap().bytes;
    assert_eq!(PublicKey::from_bytes(c, find("public"), id, None).err().unwrap(), expected);
    assert_eq!(EvaluationKeys::from_bytes(c, find("keys"), id, None).err().unwrap(), expected);
    let slots = Ciphertext::<_, Ntt>::from_bytes(c, find("slots"), id, Trust::Nothing);
    assert_eq!(slots.err().unwrap(), expected);
    let coeff = Ciphertext::<_, Coeff>::from_bytes(c, find("slots"), None, Trust::Nothing);
    let domains = WireError::WrongDomain { expected_ntt: false, found_ntt: true };
    assert_eq!(coeff.err().unwrap(), Error::Wire(domains));
    let read = Ciphertext::<_, Ntt>::from_bytes(c, find("slots"), None, Trust::Nothing).unwrap().ciphertext;
    assert_eq!(other.secret.phase(c, &read).err().unwrap().kind(), "keys_differ");
}

#[test]
fn envelopes_bind_every_object_to_their_key() {
    let mut f = small(18);
    let other = envelope(2);
    for sample in samples(&mut f, Some(&envelope(1))) {
        let kind = |key| (sample.again)(&f, &sample.bytes, key).unwrap_err().kind();
        assert_eq!(kind(Some(&other)), "not_authentic", "{}", sample.name);
        assert_eq!(kind(None), "envelope_mismatch", "{}", sample.name);
    }
}

#[test]
fn certificates_are_believed_only_with_a_reason() {
    let mut f = small(19);
    let (ct, _) = encrypt::<Ntt>(&mut f, 2, 2);
    let key = envelope(1);
    let plain = ct.to_bytes(&f.context, Attached::default(), None).unwrap();
    let keyed = ct.to_bytes(&f.context, Attached::default(), Some(&key)).unwrap();
    let read = |bytes: &[u8], trust| Ciphertext::<_, Ntt>::from_bytes(&f.context, bytes, None, trust);
    let doubted = read(&plain, Trust::Nothing).unwrap();
    assert!(doubted.ciphertext.noise().certificate.is_unknown() && !doubted.head.claimed.is_unknown());
    for (bytes, trust) in [(&plain, Trust::Certificate), (&keyed, Trust::Envelope(&key))] {
        let believed = read(bytes, trust).unwrap();
        let on_word = matches!(trust, Trust::Certificate);
        let claimed = believed.head.claimed;
        assert_eq!(believed.ciphertext.noise(), if on_word { claimed.on_word() } else { claimed }.into());
        assert_eq!(believed.ciphertext.noise().certificate.is_on_word(), on_word);
        // Nobody vouches for what he has only been told.
        let written = believed.ciphertext.to_bytes(&f.context, Attached::default(), Some(&key));
        assert_eq!(written.err().map(|e| e.kind()), on_word.then_some("certificate_on_word"));
        require_room(believed.ciphertext.noise().bound(10, 128), 40.0, 2, 128).unwrap();
    }
    assert_eq!(read(&plain, Trust::Envelope(&key)).err().unwrap().kind(), "envelope_mismatch");
    assert_eq!(read(&keyed, Trust::Nothing).err().unwrap().kind(), "envelope_mismatch");

    // Nothing computed from it regains a bound, and what is written of it claims none.
    let sum = doubted.ciphertext.sum(&f.context, &ct, false).unwrap();
    let switched = sum.mod_switch_to(&f.context, 0).unwrap();
    let error = require_room(switched.noise().bound(10, 128), 1e6, 0, 128).unwrap_err();
    assert_eq!((error.kind(), error.remedy().contains("trust_certificate")), ("unknown_noise", true));
    let bytes = switched.to_bytes(&f.context, Attached::default(), None).unwrap();
    let again = Ciphertext::<_, Ntt>::from_bytes(&f.context, &bytes, None, Trust::Certificate).unwrap();
    assert!(again.ciphertext.noise().certificate.is_unknown());
}

#[test]
fn parameters_are_checked_again_when_they_are_read() {
    let insecure = literal(10, &[50, 40], &[50], "1");
    let digest = *Params::new(insecure.clone()).unwrap().digest();
    let header = Header::new(ObjectType::Params, ParamsDigest(digest), KeyId::NONE);
    let kind = |literal: &ParamsLiteral| {
        let json = serde_json::to_vec(literal).unwrap();
        Params::from_bytes(&seal(header, &json), None).map(|_| ()).unwrap_err()
    };
    let secure = ParamsLiteral { security: Security::Bits128, ..insecure.clone() };
    assert!(matches!(kind(&secure), Error::Security(_)));
    let composite = ParamsLiteral { q: vec![insecure.q[0], (1 << 40) + 2049], ..insecure.clone() };
    assert_eq!(kind(&composite).kind(), "modulus");
    let repeated = ParamsLiteral { p: vec![insecure.q[0]], ..insecure.clone() };
    assert_eq!(kind(&repeated).kind(), "repeated_modulus");
    assert_eq!(kind(&ParamsLiteral { log_n: 63, ..insecure.clone() }).kind(), "degree");
    assert_eq!(kind(&ParamsLiteral { tag: "other".into(), ..insecure.clone() }).kind(), "wrong_params");
    let long = ParamsLiteral { tag: "x".repeat(1 << 16), ..insecure.clone() };
    assert_eq!(kind(&long).kind(), "too_large");
    assert_eq!(Params::new(long).unwrap().to_bytes(None).unwrap_err().kind(), "too_large");
    let text = serde_json::to_string(&insecure).unwrap();
    for json in [text.replace(',', ", "), text.replace("\"test\"", "\"\\u0074est\""), text.replace("\"p\"", "\"r\"")] {
        let error = Params::from_bytes(&seal(header, json.as_bytes()), None).unwrap_err();
        assert_eq!(error.kind(), "non_canonical", "{json}");
    }
    assert_eq!(Params::from_bytes(&seal(header, text.as_bytes()), None).unwrap().digest(), &digest);
}

#[test]
fn switch_keys_have_one_order_and_valid_sources() {
    let mut f = small(20);
    let plan = SwitchPlan::hybrid(f.context.params(), 2).unwrap();
    let bytes = keys(&mut f, &plan).to_bytes(&f.context, None).unwrap();
    let (header, body) = (peek(&bytes).unwrap().header, payload(&bytes));
    let square = 1 + 4 + 2 * 2 + 32 + 2 * (128 * (50 + 40 + 45 + 50 + 36));
    let galois = square + 4;
    assert_eq!(body.len(), 4 + square + 2 * galois + square + 16);
    let kind = |body: &[u8]| keys_again(&f, &seal(header, body), None).unwrap_err().kind();
    let (first, second) = (&body[4..4 + square], &body[4 + square..4 + square + galois]);
    let two = 2u32.to_le_bytes();
    assert!(keys_again(&f, &seal(header, &[&two, first, second].concat()), None).is_ok());
    assert_eq!(kind(&[&two, second, first].concat()), "non_canonical");
    assert_eq!(kind(&[&two, first, first].concat()), "non_canonical");
    let altered = |at: usize, with: &[u8]| {
        let mut body = [&1u32.to_le_bytes(), second].concat();
        body[4 + at..4 + at + with.len()].copy_from_slice(with);
        kind(&body)
    };
    assert_eq!(altered(0, &[3]), "non_canonical");
    assert_eq!(altered(1, &[4]), "galois_element");
    assert_eq!(altered(1, &2049u32.to_le_bytes()), "galois_element");
    assert_eq!(altered(5, &4u32.to_le_bytes()), "too_large");
    assert_eq!(altered(5, &u32::MAX.to_le_bytes()), "too_large");
    assert_eq!(altered(9, &[3]), "switch_plan");
    assert_eq!(kind(&u32::MAX.to_le_bytes()), "too_large");
    assert_eq!(kind(&2048u32.to_le_bytes()), "truncated");
    let odd =
        EvaluationKeys::generate(&f.context, &f.secret, [Source::Galois(2051)], &plan, &mut f.randomness).unwrap();
    assert_eq!(odd.to_bytes(&f.context, None).unwrap_err().kind(), "galois_element");
}

#[test]
fn writers_refuse_what_readers_would() {
    let mut f = small(21);
    let (ct, seed) = encrypt::<Ntt>(&mut f, 2, 2);
    let (three, third) = encrypt::<Ntt>(&mut f, 2, 3);
    let write = |ct: &Ciphertext<_, _>, attached| ct.to_bytes(&f.context, attached, None).unwrap_err().kind();
    assert_eq!(write(&ct, Attached { scheme_header: &[0; 1025], seed: None }), "too_large");
    assert_eq!(write(&ct, Attached { scheme_header: &[], seed: Some(&third) }), "non_canonical");
    assert_eq!(write(&three, Attached { scheme_header: &[], seed: Some(&third) }), "components");
    let strangers = fixture(literal(10, &[50, 40, 45], &[50, 36], "2"), 21);
    let attached = Attached { scheme_header: &[], seed: Some(&seed) };
    assert_eq!(ct.to_bytes(&strangers.context, attached, None).unwrap_err().kind(), "params_differ");
    let small = f.secret.small().clone();
    let nobody = SecretKey::from_small(&f.context, KeyId::NONE, small).unwrap();
    assert_eq!(nobody.to_bytes(&f.context, None).unwrap_err().kind(), "non_canonical");
}

#[test]
fn secret_keys_reveal_nothing_but_their_container() {
    let f = small(22);
    let bytes = f.secret.to_bytes(&f.context, None).unwrap();
    let expected = Expected::any(ObjectType::SecretKey, 1 << 20);
    assert_eq!(Reader::open(&bytes, &expected).unwrap().remaining(), 2 * 1024 / 8);
    for value in [2, -2, i64::MAX, i64::MIN, (1 << 62) + 1] {
        let mut small = f.secret.small().as_slice().to_vec();
        small[77] = value;
        let small = synchromesh_ring::sampler::SmallPoly::from_vec(small);
        assert_eq!(SecretKey::from_small(&f.context, f.secret.id(), small).err().unwrap().kind(), "argument");
    }
}

#[test]
fn a_secret_key_that_certificates_do_not_hold_for_is_refused() {
    let f = small(23);
    let read = |small: Vec<i64>| {
        let small = synchromesh_ring::sampler::SmallPoly::from_vec(small);
        SecretKey::from_small(&f.context, f.secret.id(), small).map(|key| key.to_bytes(&f.context, None).unwrap())
    };
    let own = f.secret.small().as_slice();
    assert_eq!(read(own.to_vec()).unwrap(), f.secret.to_bytes(&f.context, None).unwrap());
    // X times the secret is as large at every root; a third of it on one frequency is not.
    let (last, others) = own.split_last().unwrap();
    read([&[-last], others].concat()).unwrap();
    let tone = own.iter().enumerate().map(|(i, &x)| if i % 3 == 0 { 1 } else { x }).collect();
    let error = read(tone).unwrap_err();
    assert!(error.kind() == "uneven_key" && error.remedy().contains("generate a new one"), "{error}");
}
