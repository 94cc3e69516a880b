//! Keys for the lower levels only: the same numbers in fewer rows and limbs, judged by decryption; their bytes.

use crate::common::{Counted, Fixture, automorphism, error_bits, fixture, literal, message};
use synchromesh_ring::Ntt;
use synchromesh_rlwe::codec::switch_key_bytes;
use synchromesh_rlwe::operations::KeySwitching;
use synchromesh_rlwe::wire::{HEADER_BYTES, TRAILER_BYTES, Writer, peek};
use synchromesh_rlwe::{
    Error, EvaluationKeys, KeyPart, LevelPlans, ParamsLiteral, PrimeSwitching, Randomness, Source, SwitchKey,
    SwitchPlan,
};

const G: usize = 5;

fn unlimited(q: &[u32], t: &str) -> ParamsLiteral {
    ParamsLiteral { level_limbs: (1..q.len()).collect(), ..literal(10, q, &[], t) }
}

fn words(f: &Fixture, key: &SwitchKey<Counted>) -> Vec<Vec<u64>> {
    key.b().iter().map(|b| b.to_words(f.context.backend()).unwrap()).collect()
}

/// Rotates at every level: right within the certificate up to `highest` and wherever else the key has what is needed, the
/// typed refusal at the others.
fn serves_up_to(f: &mut Fixture, keys: EvaluationKeys<Counted>, plans: &LevelPlans, highest: usize) {
    let part = keys.get(Source::Galois(G)).unwrap().part().clone();
    let switching = KeySwitching::new(keys.into(), plans.clone());
    for level in 0..=f.context.params().top_level() {
        let (m, poly) = message(&f.context, level, 3);
        let (ct, _) = f.secret.encrypt::<Ntt>(&f.context, &poly, level, &mut f.randomness).unwrap();
        let rotated = switching.automorphism(&f.context, &ct, G);
        let params = f.context.params();
        let needed = KeyPart::needed(params, plans.at(level), params.level(level).unwrap()).unwrap();
        let has = needed.primes().without(part.primes()).is_empty()
            && needed.rows().iter().all(|row| part.rows().contains(row));
        assert!(has || level > highest);
        if !has {
            let error = rotated.err().unwrap();
            assert_eq!(error.kind(), "trimmed_key", "level {level}, made for {highest}: {error}");
            assert!(error.to_string().contains("s(X^5)") && !error.remedy().is_empty());
            continue;
        }
        let rotated = rotated.unwrap();
        let (t, bound) = (f.context.params().error_multiple().bits() as f64, rotated.noise().bound(10, 128));
        if bound + t + 2.0 < f.context.params().ring().log2(f.context.params().level(level).unwrap()) {
            let measured = error_bits(&f.context, &f.secret, &rotated, &automorphism(&m, G));
            assert!(measured <= bound, "level {level}: error 2^{measured:.2} above its certificate 2^{bound:.2}");
        }
    }
}

/// The same keys in their prepared form alone, which is all that they can be used in.
fn computed_with(f: &Fixture, keys: &EvaluationKeys<Counted>, plans: &LevelPlans) -> EvaluationKeys<Counted> {
    let context = &f.context;
    let stored = keys.to_bytes(context, None).unwrap();
    let alone =
        || EvaluationKeys::from_bytes(context, &stored, None, None).unwrap().into_prepared(context, plans).unwrap();
    let prepared = alone();
    let key = prepared.get(Source::Galois(G)).unwrap();
    assert!(key.b().is_empty() && prepared.prepared_bytes() > 0);
    assert_eq!(prepared.wire_bytes(context.params()), stored.len() as u64);
    let dropped = alone();
    dropped.drop_prepared();
    for refused in [
        prepared.to_bytes(context, None).err(),
        key.trim(context, key.part()).err(),
        key.transfer(context, context).err(),
        key.expand(context, plans.at(0)).err(),
        dropped.prepared(context, Source::Galois(G), plans.at(0)).err(),
    ] {
        let error = refused.unwrap();
        assert!(
            error.kind() == "missing_key" && error.to_string().contains("s(X^5) (rotation) as it is stored"),
            "{error}"
        );
    }
    prepared
}

#[test]
fn trimmed_keys_serve_their_levels_and_refuse_the_others() {
    // Levels of prime switching have primes that come back below: their keys have rows that no higher level needs.
    let chain = PrimeSwitching::new(2, 3).unwrap().chain(58, 38, 5, 61).unwrap();
    let returning = ParamsLiteral { schedule: chain.schedule, ..literal(10, &chain.q_bits, &[60, 61], "2") };
    for (literal, plan) in [
        (returning, Some(chain.q_bits.len())),
        (literal(10, &[45, 50, 44, 40, 51], &[58, 59, 57], "65537"), Some(2)),
        (literal(10, &[45, 50, 44, 40, 51], &[58, 59, 57], "1"), Some(3)),
        (unlimited(&[50, 45, 44, 46, 48, 50, 50], "65537"), None),
    ] {
        let mut f = fixture(literal, 11);
        let params = f.context.params().clone();
        let plans = plan.map_or_else(
            || LevelPlans::level_aware(&params).unwrap(),
            |omega| SwitchPlan::hybrid(&params, omega).unwrap().into(),
        );
        let make = |part: &KeyPart| {
            let mut randomness = Randomness::insecure_from_number(12);
            SwitchKey::generate_part(&f.context, &f.secret, Source::Galois(G), None, part, &mut randomness).unwrap()
        };
        let all = make(&KeyPart::whole(&params, plans.at(0).shape()).unwrap());
        let mut parts = Vec::new();
        let mut last = 0;
        for highest in 0..=params.top_level() {
            let part = plans.needed(&params, highest).unwrap();
            let trimmed = all.trim(&f.context, &part).unwrap();
            assert_eq!(words(&f, &trimmed), words(&f, &make(&part)), "made small or cut small");
            let bytes = switch_key_bytes(&params, Source::Galois(G), &part);
            assert!(bytes >= last, "a key for more levels has more bytes");
            last = bytes;
            let mut keys = EvaluationKeys::new(f.secret.id());
            keys.insert(trimmed).unwrap();
            let read = keys.to_bytes(&f.context, None).unwrap();
            assert_eq!(read.len() as u64, keys.wire_bytes(&params), "the forecast must be exact");
            assert_eq!(read.len() as u64, bytes + (HEADER_BYTES + TRAILER_BYTES + 4) as u64);
            let again = EvaluationKeys::from_bytes(&f.context, &read, None, None).unwrap();
            assert_eq!(again.to_bytes(&f.context, None).unwrap(), read);
            assert_eq!(again.get(Source::Galois(G)).unwrap().part(), &part);
            parts.push((again, highest));
        }
        let whole = switch_key_bytes(&params, Source::Galois(G), all.part());
        assert!(last <= whole);
        let lowest = parts[0].0.get(Source::Galois(G)).unwrap();
        let wanted = plans.needed(&params, 1).unwrap();
        assert_eq!(lowest.trim(&f.context, &wanted).err().unwrap().kind(), "trimmed_key");
        for (keys, highest) in parts {
            let alone = computed_with(&f, &keys, &plans);
            serves_up_to(&mut f, alone, &plans, highest);
            serves_up_to(&mut f, keys, &plans, highest);
        }
    }
}

#[test]
fn byte_counts_are_those_of_the_formulas() {
    // Hwang, Seo and Song, Table 5, at its own part but a small degree: 2 ceil((L - r) / r) L N words.
    let params = synchromesh_rlwe::Params::new(unlimited(&[44; 40], "1")).unwrap();
    let (l, n) = (40, params.n());
    for (r, rounded) in [(1, 1.636), (2, 0.797), (4, 0.377), (8, 0.168), (16, 0.084)] {
        let plan = SwitchPlan::level_aware(&params, r, r).unwrap();
        let bytes = plan.prepared_bytes(&params);
        assert_eq!(bytes, (2 * (l - r).div_ceil(r) * l * n * 8) as u64);
        assert!((bytes as f64 * 64.0 / 1e9 - rounded).abs() < 5e-4, "r = {r}: {bytes}");
    }
    // Stored: a seed, and one half over all primes in 44 bits a residue rather than 64.
    let part = KeyPart::whole(&params, SwitchPlan::level_aware(&params, 1, 1).unwrap().shape()).unwrap();
    assert_eq!(part.bytes(n), (l * l * n * 8) as u64);
    let wire = switch_key_bytes(&params, Source::Square, &part);
    assert_eq!(wire, (1 + 4 + 2 * l + 32 + l * l * n * 44 / 8) as u64);
}

#[test]
fn shapes_have_one_encoding_and_are_checked() {
    let mut f = fixture(literal(10, &[50, 40, 45], &[50, 36], "65537"), 20);
    let params = f.context.params().clone();
    let plan = SwitchPlan::hybrid(&params, 3).unwrap();
    let plans = LevelPlans::from(plan.clone());
    let sources = [Source::Square];
    let all = EvaluationKeys::generate(&f.context, &f.secret, sources, &plan, &mut f.randomness).unwrap();
    let part = plans.needed(&params, 1).unwrap();
    assert_eq!((part.rows(), part.primes().as_slice()), (&[0, 1][..], &[0, 1, 3, 4][..]));
    let bytes = all.trim(&f.context, &part).unwrap().to_bytes(&f.context, None).unwrap();
    let (header, body) = (peek(&bytes).unwrap().header, &bytes[HEADER_BYTES..bytes.len() - TRAILER_BYTES]);
    let read = |body: &[u8]| {
        let mut writer = Writer::new(header, body.len());
        writer.raw(body);
        EvaluationKeys::from_bytes(&f.context, &writer.finish(None), None, None).map(|_| ())
    };
    read(body).unwrap();
    // Tag, sizes (4 + 3 * 2), digits (4 + 2 * 2), primes (4 + 4 * 2), from byte 4 on.
    let (tag, digits, primes) = (4, 4 + 1 + 10, 4 + 1 + 10 + 8);
    assert_eq!((body[tag], body[digits], body[primes]), (0x20, 2, 4));
    let altered = |at: usize, with: &[u8]| {
        let mut body = body.to_vec();
        body[at..at + with.len()].copy_from_slice(with);
        read(&body).unwrap_err().kind()
    };
    assert_eq!(altered(tag, &[0x23]), "non_canonical");
    assert_eq!(altered(tag, &[0]), "truncated");
    assert_eq!(altered(digits, &[4]), "too_large");
    assert_eq!(altered(digits, &[0xff, 0xff, 0xff, 0xff]), "too_large");
    assert_eq!(altered(primes, &[6]), "too_large");
    for digits_read in [[0u8, 0, 0, 0], [1, 0, 0, 0], [0, 0, 2, 0], [0, 0, 9, 0]] {
        assert_eq!(altered(digits + 4, &digits_read), "switch_plan", "{digits_read:?}");
    }
    for primes_read in [[0u8, 0, 0, 0], [1, 0, 0, 0], [0, 0, 3, 0]] {
        assert_eq!(altered(primes + 4, &primes_read), "switch_plan", "{primes_read:?}");
    }
    assert_eq!(altered(primes + 10, &[5]), "switch_plan");
    // A whole key that is marked as trimmed.
    let mut whole = all.to_bytes(&f.context, None).unwrap();
    whole.truncate(whole.len() - TRAILER_BYTES);
    let mut marked = whole[HEADER_BYTES..HEADER_BYTES + 4 + 11].to_vec();
    marked[4] |= 0x20;
    marked.extend([3, 0, 0, 0, 0, 0, 1, 0, 2, 0, 5, 0, 0, 0, 0, 0, 1, 0, 2, 0, 3, 0, 4, 0]);
    marked.extend(&whole[HEADER_BYTES + 4 + 11..]);
    assert_eq!(read(&marked).unwrap_err().kind(), "non_canonical");
    let empty = KeyPart::of(&params, plan.shape(), vec![], params.keyed());
    assert!(matches!(empty.unwrap_err(), Error::SwitchPlan { .. }));
}

#[test]
fn keys_made_one_after_the_other_are_one_set() {
    let mut f = fixture(literal(10, &[45, 50, 44], &[58], "65537"), 21);
    let plan = SwitchPlan::hybrid(f.context.params(), 1).unwrap();
    let mut made = |sources: &[Source]| {
        let sources = sources.iter().copied();
        EvaluationKeys::generate(&f.context, &f.secret, sources, &plan, &mut f.randomness).unwrap()
    };
    let first = made(&[Source::Square, Source::Galois(G)]);
    let second = made(&[Source::Square, Source::Galois(G * G)]);
    let both = first.and(&second).unwrap();
    assert_eq!(both.iter().len(), 3);
    for (source, from) in [(Source::Square, &first), (Source::Galois(G), &first), (Source::Galois(G * G), &second)] {
        assert!(std::sync::Arc::ptr_eq(both.get(source).unwrap(), from.get(source).unwrap()), "{source}");
    }
    let other = EvaluationKeys::new(fixture(literal(10, &[45, 50, 44], &[58], "65537"), 22).secret.id());
    assert_eq!(first.and(&other).err().map(|e| e.kind()), Some("keys_differ"));
}
