//! Arbitrary payloads in a sealed container, read by primitives that the input chooses: each is refused by a typed
//! error, or written again to the very same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use synchromesh_rlwe::wire::{
    Expected, Header, KeyId, ObjectType, ParamsDigest, Reader, TRAILER_BYTES, WireError, Writer,
};

const HEADER: Header = Header::new(ObjectType::Ciphertext, ParamsDigest([1; 32]), KeyId([2; 16]));

/// Reads one primitive, chosen with its arguments by `op`, and writes it again.
fn step(op: &[u8; 12], reader: &mut Reader<'_>, writer: &mut Writer) -> Result<(), WireError> {
    let q = u64::from_le_bytes([op[2], op[3], op[4], op[5], op[6], op[7], op[8], op[9]]) >> (op[1] & 63);
    let n = usize::from(u16::from_le_bytes([op[10], op[11]]));
    match op[0] % 11 {
        0 => writer.u8(reader.u8()?),
        1 => writer.bool(reader.bool()?),
        2 => writer.u16(reader.u16()?),
        3 => writer.u32(reader.u32()?),
        4 => writer.u64(reader.u64()?),
        5 => writer.bytes("bytes", reader.bytes("bytes", n)?)?,
        6 => writer.string("string", reader.string("string", n)?)?,
        7 => writer.scheme_header(reader.scheme_header()?)?,
        8 => writer.limb(q, &reader.limb(q, n)?)?,
        9 => {
            let mut small = vec![0; n];
            reader.small_into(q, &mut small)?;
            assert!(small.iter().all(|c| c.unsigned_abs() <= q));
            writer.small(q, &small)?;
        }
        _ => {
            // A length nobody can allocate must fail on the bytes present.
            let huge = usize::MAX >> (op[1] & 15);
            assert!(reader.limb((1 << 61) - 1, huge).is_err());
        }
    }
    Ok(())
}

fuzz_target!(|input: (Vec<[u8; 12]>, Vec<u8>)| {
    let (ops, payload) = input;
    let mut sealed = Writer::new(HEADER, payload.len());
    sealed.raw(&payload);
    let sealed = sealed.finish(None);
    let mut reader = Reader::open(&sealed, &Expected::any(ObjectType::Ciphertext, u64::MAX)).expect("sealed here");
    let mut writer = Writer::new(HEADER, 0);
    for op in ops.iter().take(64) {
        let start = payload.len() - reader.remaining();
        let written = writer.payload_len();
        match step(op, &mut reader, &mut writer) {
            Ok(()) => {
                let read = payload.len() - reader.remaining();
                assert_eq!(read - start, writer.payload_len() - written);
            }
            Err(error) => {
                assert!(!error.kind().is_empty() && !error.remedy().is_empty());
                return;
            }
        }
    }
    let read = payload.len() - reader.remaining();
    let copy = writer.finish(None);
    assert_eq!(copy[copy.len() - TRAILER_BYTES - read..copy.len() - TRAILER_BYTES], payload[..read]);
});
