//! A noise certificate as two integers in units of 2^-10 bits, rounded up: what is read is never below what was
//! written, and what was read once is written again unchanged.

use crate::noise::Certificate;
use crate::wire::{Reader, WireError, Writer};

/// Units in a bit.
const UNITS: f64 = 1024.0;
/// Largest absolute value, 2^20 bits.
const LIMIT: i32 = 1 << 30;
/// Stands for log2 0.
const NO_ERROR: i32 = i32::MIN;
/// Stands for an error without a bound.
const UNKNOWN: i32 = i32::MAX;

/// log2 of a bound, rounded up to a unit; whatever is beyond 2^20 bits, or no number, is unknown.
fn to_fixed(log2: f64) -> i32 {
    let units = (log2 * UNITS).ceil();
    if log2 == f64::NEG_INFINITY {
        NO_ERROR
    } else if units <= f64::from(LIMIT) {
        // A whole number within 2^30 after the maximum: the conversion is exact.
        units.max(-f64::from(LIMIT)) as i32
    } else {
        UNKNOWN
    }
}

fn from_fixed(units: i32) -> Option<f64> {
    match units {
        NO_ERROR => Some(f64::NEG_INFINITY),
        UNKNOWN => Some(f64::INFINITY),
        _ if units.unsigned_abs() <= LIMIT.unsigned_abs() => Some(f64::from(units) / UNITS),
        _ => None,
    }
}

/// Appends a certificate by its two numbers; half an unknown one is unknown.
pub(super) fn write(writer: &mut Writer, (sigma, remainder): (f64, f64)) {
    let mut units = [to_fixed(sigma), to_fixed(remainder)];
    if units.contains(&UNKNOWN) {
        units = [UNKNOWN; 2];
    }
    units.into_iter().for_each(|x| writer.u32(x.cast_unsigned()));
}

/// Reads a certificate.
pub(super) fn read(reader: &mut Reader<'_>) -> Result<Certificate, WireError> {
    let units = [reader.u32()?.cast_signed(), reader.u32()?.cast_signed()];
    let refuse = || reader.refuse("no writer produces this certificate", 8);
    let half_known = units.contains(&UNKNOWN) && units != [UNKNOWN; 2];
    let [Some(sigma), Some(remainder)] = units.map(from_fixed) else { return Err(refuse()) };
    if half_known { Err(refuse()) } else { Ok(Certificate::claimed(sigma, remainder)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Expected, Header, KeyId, ObjectType, ParamsDigest};

    const HEADER: Header = Header::new(ObjectType::Ciphertext, ParamsDigest([1; 32]), KeyId([2; 16]));

    fn bytes(noise: Certificate) -> Vec<u8> {
        let mut writer = Writer::new(HEADER, 8);
        write(&mut writer, noise.claim(10));
        writer.finish(None)
    }

    fn parse(bytes: &[u8]) -> Result<Certificate, WireError> {
        read(&mut Reader::open(bytes, &Expected::any(ObjectType::Ciphertext, 8)).unwrap())
    }

    #[test]
    fn certificates_round_up_once_by_less_than_a_unit() {
        let values = [f64::NEG_INFINITY, -2e6, -1048576.0, -33.33, -0.0, 1e-9, 0.7, 1.0, 61.0 + 1.0 / 1024.0, 1e6];
        for sigma in values {
            for remainder in values {
                let noise = Certificate::claimed(sigma, remainder);
                let read = parse(&bytes(noise)).unwrap();
                for (before, after) in [(sigma, read.sigma), (remainder, read.remainder)] {
                    let floor = before.max(if before.is_finite() { -1048576.0 } else { before });
                    assert!(after >= floor && (after == floor || after < floor + 1.0 / 1024.0), "{before} {after}");
                }
                assert_eq!(bytes(read), bytes(noise));
            }
        }
    }

    #[test]
    fn what_has_no_bound_is_unknown_in_both_parts() {
        for bad in [f64::INFINITY, f64::NAN, 1048576.1, f64::MAX] {
            for noise in [Certificate::claimed(bad, 1.0), Certificate::claimed(1.0, bad)] {
                assert_eq!(bytes(noise), bytes(Certificate::UNKNOWN));
            }
        }
        assert_eq!(parse(&bytes(Certificate::UNKNOWN)).unwrap(), Certificate::UNKNOWN);
        for units in [[UNKNOWN, 0], [0, UNKNOWN], [LIMIT + 1, 0], [0, -LIMIT - 1], [UNKNOWN - 1, UNKNOWN]] {
            let mut writer = Writer::new(HEADER, 8);
            units.into_iter().for_each(|x| writer.u32(x.cast_unsigned()));
            assert_eq!(parse(&writer.finish(None)).unwrap_err().kind(), "non_canonical", "{units:?}");
        }
    }
}
