//! The machine: its name, the day, and plain passes over memory.

use std::hint::black_box;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use synchromesh::cost::Streaming;
#[cfg(any(feature = "cuda", feature = "emulated"))]
use {
    crate::Error,
    synchromesh_ring::{Backend, View, ViewMut},
};

/// Bytes of a pass, beyond most caches.
const BYTES: usize = 256 << 20;
/// Passes, of which the median counts.
const PASSES: usize = 5;

/// The processor's name, as Linux has it.
#[must_use]
pub fn name() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name")).unwrap_or("");
    let name = model.trim_start_matches([' ', '\t', ':']).trim();
    if name.is_empty() { std::env::consts::ARCH.to_owned() } else { name.to_owned() }
}

/// Today in UTC, year-month-day.
#[must_use]
pub fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (year, month, day) = civil(seconds / 86400);
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01, counting years from March.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let january = month >= 10;
    (era * 400 + year + january as u64, if january { month - 9 } else { month + 3 }, day)
}

/// Rates of reading, writing and copying memory that was touched before.
pub fn streaming() -> Streaming {
    let (mut from, mut to) = (vec![1u64; BYTES / 8], vec![2u64; BYTES / 8]);
    let rate = |bytes: usize, mut pass: Box<dyn FnMut() + '_>| {
        let mut seconds: Vec<f64> = (0..PASSES)
            .map(|_| {
                let start = Instant::now();
                pass();
                start.elapsed().as_secs_f64()
            })
            .collect();
        seconds.sort_by(f64::total_cmp);
        bytes as f64 / seconds[PASSES / 2] / 1e9
    };
    let read = || {
        black_box(black_box(&from).iter().fold(0u64, |sum, x| sum.wrapping_add(*x)));
    };
    let read_gb_per_s = rate(BYTES, Box::new(read));
    let copy_gb_per_s = rate(2 * BYTES, Box::new(|| black_box(&mut to).copy_from_slice(black_box(&from))));
    let write_gb_per_s = rate(BYTES, Box::new(|| black_box(&mut from).fill(black_box(3))));
    Streaming { read_gb_per_s, write_gb_per_s, copy_gb_per_s }
}

/// The rate of copies on a device, of at most `most` bytes at once; reading and writing are put at the same rate.
#[cfg(any(feature = "cuda", feature = "emulated"))]
pub(super) fn copies<B: Backend>(
    backend: &B,
    wait: impl Fn(&B) -> Result<(), Error>,
    most: usize,
) -> Result<Streaming, Error> {
    let rows: Vec<usize> = (0..(BYTES.min(most) / 8 / backend.ring().n()).max(1)).collect();
    let from = super::cases::filled(backend, rows.len())?;
    let mut to = super::cases::filled(backend, rows.len())?;
    let mut seconds = Vec::with_capacity(PASSES);
    for _ in 0..PASSES {
        let start = Instant::now();
        backend.copy(View::new(&from, &rows), ViewMut::new(&mut to, &rows))?;
        wait(backend)?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let bytes = 16 * backend.ring().n() * rows.len();
    let rate = bytes as f64 / seconds[PASSES / 2] / 1e9;
    Ok(Streaming { read_gb_per_s: rate, write_gb_per_s: rate, copy_gb_per_s: rate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (days, date) in [(0, (1970, 1, 1)), (59, (1970, 3, 1)), (11_016, (2000, 2, 29)), (20_778, (2026, 11, 21))] {
            assert_eq!(civil(days), date);
        }
    }
}
