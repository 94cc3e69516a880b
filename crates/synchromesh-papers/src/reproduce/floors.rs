//! What a card's rates say of key switches: the least time, and the time of stages that go through memory one by one.
//!
//! Rates are those of an H200: 132 multiprocessors with 64 lanes of each pipe at 1.98 GHz; memory as copies were measured,
//! the second-level cache as assumed. Instructions of a butterfly and of a product with 128-bit sum are counted in compiled
//! code: 13.8 on the busiest pipe with integers, 8 with doubles, 8.7 for a product.

use serde_json::json;
use synchromesh::cost::Shape;

use super::linear::{COMPARED, compared};
use super::runner::row;
use super::{Outcome, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{Prepared, Request};

/// Instructions a second and pipe.
const PIPE: f64 = 132.0 * 64.0 * 1.98e9;
/// Bytes a second from memory, and from the second-level cache.
const MEMORY: f64 = 4.3e12;
const CACHE: f64 = 6e12;
/// Instructions of a butterfly with integers and with doubles, and of a product.
const BUTTERFLY: [f64; 2] = [13.8, 8.0];
const PRODUCT: f64 = 8.7;
const LOG_N: u32 = 16;

/// Microseconds of one ciphertext of a batch.
struct Times {
    /// The least, with integers and with doubles; with transforms in two passes and in one.
    floors: [[f64; 2]; 2],
    /// Every primitive through memory.
    unfused: f64,
}

impl Times {
    /// From what is counted for one ciphertext, and the key that a batch shares.
    fn new(prepared: &Prepared, batch: usize) -> Result<Self, Error> {
        let (n, counts) = (prepared.params().n() as f64, prepared.counts()?);
        let limb = 8.0 * n;
        let ciphertext = prepared.ends().iter().map(|end| 2 * end.len()).sum::<usize>() as f64 * limb;
        let key = prepared.key_bytes() as f64;
        let once = (key / batch as f64 + ciphertext) / MEMORY;
        let products = (counts.mul + counts.convert_mac) as f64 * n * PRODUCT / PIPE;
        let ntt = counts.ntt as f64;
        let floor = |passes: f64, butterfly: f64| {
            let transforms = ntt * n / 2.0 * f64::from(LOG_N) * butterfly / PIPE;
            // A pass reads and writes.
            1e6 * once.max(transforms + products).max(2.0 * passes * ntt * limb / CACHE)
        };
        let shared = key - key / batch as f64;
        let unfused = (counts.bytes as f64 + 2.0 * ntt * limb - shared) / MEMORY;
        let floors = [2.0, 1.0].map(|passes| BUTTERFLY.map(|butterfly| floor(passes, butterfly)));
        Ok(Self { floors, unfused: (1e6 * unfused).max(floors[0][0]) })
    }
}

/// Floors and unfused times of the methods that `linear-claims` compares.
pub(super) fn floors(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let mut rows = Vec::new();
    for l in [16, 24, 32] {
        for (name, request) in COMPARED.into_iter().zip(compared(LOG_N, "bgv", l)) {
            runner.note(&format!("l = {l}, {name}"));
            let prepared = Prepared::new(&Request { shape: Shape { batch: 1, ..request.shape }, ..request })?;
            let counts = prepared.counts()?;
            for batch in [1, 8, 64] {
                let Times { floors, unfused } = Times::new(&prepared, batch)?;
                let [[integers, doubles], [one_pass_integers, one_pass_doubles]] = floors;
                let fraction = |floor: f64| (100.0 * floor / unfused).round() / 100.0;
                rows.push(row(json!({
                    "log_n": LOG_N, "scheme": "bgv", "l": l, "method": name, "batch": batch,
                    "ours_ntt": counts.ntt, "ours_mul": counts.mul + counts.convert_mac,
                    "ours_key_mb": (prepared.key_bytes() as f64 / 1e6).round(),
                    "floor_integers_us": integers.round(), "floor_doubles_us": doubles.round(),
                    "floor_one_pass_integers_us": one_pass_integers.round(),
                    "floor_one_pass_doubles_us": one_pass_doubles.round(),
                    "unfused_us": unfused.round(), "unfused_fraction_of_floor_integers": fraction(integers),
                    "unfused_fraction_of_floor_doubles": fraction(doubles),
                    "security_bits": prepared.params().security_bits().round(), "secure": prepared.is_secure(),
                })));
            }
        }
    }
    let said = [
        "a prediction from counted operations and an H200's rates: nothing of it has run on a card",
        "microseconds of one ciphertext of a batch, which reads the key once",
        "the floor is the largest of: key, input and output once through memory; the operations; both passes of every transform through the second-level cache",
        "one pass: as if a cluster of blocks did every transform, which reads and writes once",
        "unfused is every primitive's operands through memory, transforms in two passes, or the operations where those take longer",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

#[cfg(test)]
mod tests {
    use crate::reproduce::{Item, Settings};
    use synchromesh_bench::device::Device;

    #[test]
    fn keys_are_shared_by_a_batch_and_nothing_is_below_its_floor() {
        let settings = Settings { quick: true, profile: None, device: Device::Cpu };
        let rows = Item::find("linear-floors").unwrap().run(&settings, &mut |_| {}).unwrap().rows;
        assert_eq!(rows.len(), 36);
        for batches in rows.chunks(3) {
            let get = |i: usize, key: &str| batches[i][key].as_f64().unwrap();
            for key in ["floor_integers_us", "floor_doubles_us", "unfused_us"] {
                assert!(get(0, key) >= get(1, key) && get(1, key) >= get(2, key), "{batches:?}");
            }
            for i in 0..3 {
                assert!(get(i, "floor_doubles_us") <= get(i, "floor_integers_us"), "{batches:?}");
                assert!(get(i, "floor_integers_us") <= get(i, "unfused_us"), "{batches:?}");
                for kind in ["integers", "doubles"] {
                    let [one, two] = ["floor_one_pass", "floor"].map(|floor| get(i, &format!("{floor}_{kind}_us")));
                    assert!(one <= two, "{batches:?}");
                }
            }
            // A key that is read from memory alone takes its bytes over the rate, and all else more.
            assert!(get(0, "floor_integers_us") >= (get(0, "ours_key_mb") / 4.3).floor(), "{batches:?}");
        }
    }
}
