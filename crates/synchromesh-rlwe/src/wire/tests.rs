//! Round trips, frozen bytes, and rejection of every damaged container. Random choices come from fixed seeds.

use super::*;
use synchromesh_ring::sampler::{Purpose, Seed, Stream};

const PARAMS: ParamsDigest = ParamsDigest([0x50; 32]);
const KEY: KeyId = KeyId([0x4b; 16]);
const QS: [u64; 9] =
    [2, 3, 65_537, (1 << 20) - 3, (1 << 32) - 5, (1 << 50) - 27, (1 << 60) + 33, (1 << 61) - 1, 1 << 63];

fn header() -> Header {
    Header::new(ObjectType::Ciphertext, PARAMS, KEY).seeded()
}

fn expected(envelope: Option<&EnvelopeKey>) -> Expected<'_> {
    Expected { params: Some(PARAMS), key: Some(KEY), envelope, ..Expected::any(ObjectType::Ciphertext, 1 << 16) }
}

fn words(seed: u8, n: usize) -> Vec<u64> {
    let mut out = vec![0; n];
    Stream::new(&Seed::from_bytes([seed; 32]), Purpose::PublicRandomness, 0, 0).fill_words(0, &mut out);
    out
}

fn residues(seed: u8, q: u64, n: usize) -> Vec<u64> {
    words(seed, n).into_iter().map(|w| w % q).collect()
}

/// A container with one of everything.
fn sample(envelope: Option<&EnvelopeKey>) -> Vec<u8> {
    let mut w = Writer::new(header(), 0);
    w.u8(1);
    w.bool(true);
    w.u16(0x0302);
    w.u32(0x0706_0504);
    w.u64(0x0f0e_0d0c_0b0a_0908);
    w.bytes("bytes", b"abc").unwrap();
    w.string("name", "größe").unwrap();
    w.scheme_header(&[9; 5]).unwrap();
    w.limb((1 << 20) - 3, &residues(1, (1 << 20) - 3, 13)).unwrap();
    w.small(1, &[-1, 0, 1, 1]).unwrap();
    w.finish(envelope)
}

fn parse(bytes: &[u8], envelope: Option<&EnvelopeKey>) -> Result<(), WireError> {
    let mut r = Reader::open(bytes, &expected(envelope))?;
    assert_eq!(*r.header(), header());
    assert_eq!((r.u8()?, r.bool()?, r.u16()?, r.u32()?), (1, true, 0x0302, 0x0706_0504));
    assert_eq!(r.u64()?, 0x0f0e_0d0c_0b0a_0908);
    assert_eq!((r.bytes("bytes", 3)?, r.string("name", 7)?), (&b"abc"[..], "größe"));
    assert_eq!(r.scheme_header()?, [9; 5]);
    assert_eq!(r.limb((1 << 20) - 3, 13)?, residues(1, (1 << 20) - 3, 13));
    let mut small = [0; 4];
    r.small_into(1, &mut small)?;
    assert_eq!(small, [-1, 0, 1, 1]);
    r.finish()
}

fn envelope(byte: u8) -> EnvelopeKey {
    EnvelopeKey::from_bytes([byte; 32])
}

#[test]
fn everything_written_is_read_back() {
    parse(&sample(None), None).unwrap();
    parse(&sample(Some(&envelope(1))), Some(&envelope(1))).unwrap();
}

#[test]
fn bytes_are_frozen() {
    let plain = sample(None);
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_string();
    assert_eq!(plain.len(), HEADER_BYTES + 16 + 7 + 11 + 9 + 33 + 1 + TRAILER_BYTES);
    assert_eq!(plain[..12], *b"\x89SMESH\r\n\x01\x00\x05\x00");
    assert_eq!([hash(&plain), hash(&sample(Some(&envelope(1))))], ["2be715b93db562ee", "b176be3a0c5f083b"]);
}

#[test]
fn limbs_of_every_width_and_length_round_trip() {
    for q in QS {
        let bits = residue_bits(q).unwrap();
        assert!(q <= 1 << bits && q > 1 << (bits - 1));
        for n in [0, 1, 2, 7, 8, 63, 64, 65, 1000] {
            let mut values = residues(2, q, n);
            if n > 1 {
                (values[0], values[n - 1]) = (q - 1, q - 1);
            }
            let mut w = Writer::new(header(), 0);
            w.limb(q, &values).unwrap();
            assert_eq!(w.payload_len(), limb_bytes(n, q).unwrap());
            let bytes = w.finish(None);
            let packed = &bytes[HEADER_BYTES..bytes.len() - TRAILER_BYTES];
            for (j, value) in values.iter().enumerate() {
                let bit = |i: usize| u64::from(packed[i / 8] >> (i % 8) & 1);
                let by_definition: u64 = (0..bits as usize).map(|i| bit(j * bits as usize + i) << i).sum();
                assert_eq!(by_definition, *value, "q {q} n {n} j {j}");
            }
            let mut r = Reader::open(&bytes, &expected(None)).unwrap();
            assert_eq!(r.limb(q, n).unwrap(), values, "q {q} n {n}");
            r.finish().unwrap();
        }
    }
}

/// Any container around this payload, correctly sealed.
fn sealed(payload: &[u8]) -> Vec<u8> {
    let mut w = Writer::new(header(), payload.len());
    w.raw(payload);
    w.finish(None)
}

#[test]
fn a_limb_has_one_encoding() {
    // Three residues mod 5 take nine bits: each value from q up, and each padding bit, is refused.
    for code in 0..=u16::MAX {
        let bytes = sealed(&code.to_le_bytes());
        let mut r = Reader::open(&bytes, &expected(None)).unwrap();
        let valid = code >> 9 == 0 && [0, 3, 6].iter().all(|s| code >> s & 7 < 5);
        match r.limb(5, 3) {
            Ok(values) => {
                assert!(valid, "{code:016b}");
                let mut w = Writer::new(header(), 2);
                w.limb(5, &values).unwrap();
                assert_eq!(w.finish(None), bytes);
            }
            Err(e) => assert!(!valid && e.kind() == "non_canonical", "{code:016b}: {e}"),
        }
    }
    // Padding inside the last whole word is looked at too.
    let bytes = sealed(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 0, 0, 0, 0x40]);
    let mut r = Reader::open(&bytes, &expected(None)).unwrap();
    assert_eq!(r.limb(1 << 63, 2).unwrap_err().kind(), "non_canonical");
}

#[test]
fn writers_refuse_what_readers_would() {
    let mut w = Writer::new(header(), 0);
    assert_eq!(w.limb(17, &[16, 17]).unwrap_err().kind(), "non_canonical");
    assert_eq!(w.small(1, &[2]).unwrap_err().kind(), "non_canonical");
    assert_eq!(w.small(1, &[-2]).unwrap_err().kind(), "non_canonical");
    assert_eq!(w.small(i64::MAX as u64, &[0]).unwrap_err().kind(), "wire_modulus");
    assert_eq!(w.limb(1, &[]).unwrap_err(), WireError::Modulus { q: 1 });
    assert_eq!(w.scheme_header(&[0; 1025]).unwrap_err().kind(), "too_large");
    assert_eq!(w.payload_len(), 0);
}

#[test]
fn every_header_bit_flip_is_refused() {
    for keyed in [None, Some(&envelope(1))] {
        let good = sample(keyed);
        for bit in 0..HEADER_BYTES * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let error = parse(&bad, keyed).expect_err("a flipped bit must be refused");
            let kind = match bit / 8 {
                0..8 => "not_a_container",
                8..10 if bit != 64 => "future_version",
                _ => "header_corrupt",
            };
            assert_eq!(error.kind(), kind, "bit {bit}");
        }
    }
}

#[test]
fn every_body_bit_flip_is_refused() {
    let key = envelope(1);
    for (keyed, kind) in [(None, "body_corrupt"), (Some(&key), "not_authentic")] {
        let good = sample(keyed);
        for bit in HEADER_BYTES * 8..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&bad, keyed).unwrap_err().kind(), kind, "bit {bit}");
        }
    }
}

#[test]
fn random_damage_is_refused() {
    let good = sample(None);
    for (round, w) in words(3, 4000).chunks_exact(4).enumerate() {
        let mut bad = good.clone();
        for pick in &w[..1 + round % 3] {
            bad[(pick >> 8) as usize % good.len()] ^= (*pick as u8).max(1);
        }
        if round % 5 == 0 {
            let at = w[3] as usize % good.len();
            bad.splice(at..at, w[3].to_le_bytes());
        }
        if bad != good {
            parse(&bad, None).unwrap_err();
        }
    }
}

#[test]
fn every_truncation_and_extension_is_refused() {
    let good = sample(None);
    for len in 0..good.len() {
        let error = parse(&good[..len], None).unwrap_err();
        let WireError::Truncated { need, have } = error else { panic!("{len} bytes: {error}") };
        assert!(have == len as u64 && need > have);
    }
    for extra in 1..100 {
        let mut bad = good.clone();
        bad.resize(good.len() + extra, 0);
        let error = WireError::TrailingBytes { part: "container", extra: extra as u64 };
        assert_eq!(parse(&bad, None).unwrap_err(), error);
    }
}

/// Rewrites header bytes and the checksum over them, as a hostile writer would.
fn forged(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut bad = sample(None);
    bad[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c::crc32c(&bad[..CHECKED_BYTES]);
    bad[CHECKED_BYTES..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
    bad
}

#[test]
fn forged_headers_are_refused_by_name() {
    let error = |at, bytes: &[u8]| parse(&forged(at, bytes), None).unwrap_err();
    assert_eq!(error(8, &2u16.to_le_bytes()), WireError::FutureVersion { found: 2, known: 1 });
    assert_eq!(error(8, &0u16.to_le_bytes()).kind(), "header_corrupt");
    assert_eq!(error(10, &99u16.to_le_bytes()), WireError::UnknownType { found: 99 });
    let (wanted, found) = (ObjectType::Ciphertext, ObjectType::SecretKey);
    assert_eq!(error(10, &2u16.to_le_bytes()), WireError::WrongType { expected: wanted, found });
    assert_eq!(error(12, &4u32.to_le_bytes()).kind(), "non_canonical");
    assert_eq!(error(12, &1u32.to_le_bytes()), WireError::EnvelopeMismatch { keyed: true });
    assert_eq!(error(16, &[1]).kind(), "wrong_params");
    assert_eq!(error(48, &[1]).kind(), "wrong_key");
    let huge = WireError::TooLarge { what: "payload", declared: u64::MAX, limit: 1 << 16 };
    assert_eq!(error(64, &u64::MAX.to_le_bytes()), huge);
    assert_eq!(error(64, &0xffffu64.to_le_bytes()).kind(), "truncated");
    assert_eq!(error(64, &0u64.to_le_bytes()).kind(), "trailing_bytes");
    assert_eq!(error(12, &0u32.to_le_bytes()), WireError::BodyCorrupt);
}

#[test]
fn envelopes_bind_the_key() {
    let (plain, keyed) = (sample(None), sample(Some(&envelope(1))));
    assert_eq!(parse(&plain, Some(&envelope(1))).unwrap_err(), WireError::EnvelopeMismatch { keyed: false });
    assert_eq!(parse(&keyed, None).unwrap_err(), WireError::EnvelopeMismatch { keyed: true });
    assert_eq!(parse(&keyed, Some(&envelope(2))).unwrap_err(), WireError::NotAuthentic);
    assert!(peek(&keyed).unwrap().keyed);
    assert_eq!(format!("{:?}", envelope(1)), "EnvelopeKey(..)");
}

#[test]
fn declared_sizes_are_checked_before_allocation() {
    let open = |payload: &'static [u8]| sealed(payload);
    let huge = open(&[0xff; 4]);
    let reader = || Reader::open(&huge, &expected(None)).unwrap();
    let error = WireError::TooLarge { what: "digits", declared: u64::from(u32::MAX), limit: 10 };
    assert_eq!(reader().count("digits", 10).unwrap_err(), error);
    assert_eq!(reader().bytes("bytes", usize::MAX).unwrap_err().kind(), "truncated");
    assert_eq!(reader().scheme_header().unwrap_err().kind(), "too_large");
    assert_eq!(reader().limb((1 << 61) - 1, usize::MAX).unwrap_err().kind(), "truncated");
    assert_eq!(reader().limb((1 << 61) - 1, 1 << 48).unwrap_err().kind(), "truncated");
    assert_eq!(reader().u64().unwrap_err(), WireError::Truncated { need: 8, have: 4 });
    assert_eq!(
        reader().bool().unwrap_err(),
        WireError::NonCanonical { what: "a boolean is neither 0 nor 1", offset: 0 }
    );
    let rest = reader().finish().unwrap_err();
    assert_eq!(rest, WireError::TrailingBytes { part: "payload", extra: 4 });
    let text = open(&[1, 0, 0, 0, 0xff]);
    assert_eq!(Reader::open(&text, &expected(None)).unwrap().string("name", 9).unwrap_err().kind(), "non_canonical");
}

#[test]
fn types_have_distinct_numbers_and_names() {
    for (i, object) in ObjectType::ALL.into_iter().enumerate() {
        assert_eq!(ObjectType::from_id(object.id()), Some(object));
        assert!(ObjectType::ALL[..i].iter().all(|other| other.id() < object.id()));
        assert!(ObjectType::ALL[..i].iter().all(|other| other.name() != object.name()));
    }
    assert_eq!(ObjectType::from_id(0), None);
}
