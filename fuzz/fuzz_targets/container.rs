//! Arbitrary bytes as a container: refused by a typed error, or sealed again to the very same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use synchromesh_rlwe::wire::{Expected, HEADER_BYTES, ObjectType, Reader, Writer, peek};

fn check(bytes: &[u8]) {
    if let Err(error) = peek(bytes) {
        assert!(!error.kind().is_empty() && !error.remedy().is_empty() && !error.to_string().is_empty());
    }
    for object in ObjectType::ALL {
        let Ok(mut reader) = Reader::open(bytes, &Expected::any(object, 1 << 20)) else {
            continue;
        };
        let payload = reader.raw(reader.remaining()).expect("what remains can be read");
        let mut writer = Writer::new(*reader.header(), payload.len());
        writer.raw(payload);
        assert_eq!(writer.finish(None), bytes);
        reader.finish().expect("nothing is left");
    }
}

/// The same bytes with a valid mark, version and header checksum, so that the later checks are reached.
fn repaired(bytes: &[u8], seal: bool) -> Option<Vec<u8>> {
    let mut out = bytes.to_vec();
    out.get_mut(..10)?.copy_from_slice(b"\x89SMESH\r\n\x01\x00");
    if seal {
        let payload = out.len().checked_sub(HEADER_BYTES + 32)?;
        out[64..72].copy_from_slice(&(payload as u64).to_le_bytes());
    }
    let crc = crc32c::crc32c(out.get(..72)?);
    out.get_mut(72..HEADER_BYTES)?.copy_from_slice(&crc.to_le_bytes());
    Some(out)
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    for seal in [false, true] {
        if let Some(bytes) = repaired(bytes, seal) {
            check(&bytes);
        }
    }
});
