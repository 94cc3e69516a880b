//! What a card's rates say of key switches: the least time, and the time of stages that go through memory one by one.
//!
//! Rates are those of an H200: 132 multiprocessors that issue four instructions of 32 threads a clock at 1.98 GHz; memory as
//! copies were measured, the second-level cache as assumed. Instructions are those that an assembler makes of the kernels of
//! synchromesh-cuda, all of them, with addresses, loads and stores, counted where they run (`ptx/counts.csv` and
//! `ptx/operations.csv` there).

use serde_json::json;
use synchromesh::cost::Shape;

use super::linear::{COMPARED, compared};
use super::runner::row;
use super::{Outcome, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::key_switch::{Prepared, Request};

/// Instructions of threads a second.
const ISSUED: f64 = 132.0 * 4.0 * 32.0 * 1.98e9;
/// Bytes a second from memory, and from the second-level cache.
const MEMORY: f64 = 4.3e12;
const CACHE: f64 = 6e12;
/// Instructions of a butterfly with integers, in two passes, and with doubles, in clusters of blocks.
const BUTTERFLY: [f64; 2] = [48.0, 28.1];
/// Instructions of a product of an inner product, and of one in a base conversion with integers and with doubles.
const PRODUCT: f64 = 39.1;
const CONVERTED: [f64; 2] = [22.7, 17.3];
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
        let (mul, convert, ntt) = (counts.mul as f64, counts.convert_mac as f64, counts.ntt as f64);
        let floor = |passes: f64, kind: usize| {
            let products = n * (mul * PRODUCT + convert * CONVERTED[kind]) / ISSUED;
            let transforms = ntt * n / 2.0 * f64::from(LOG_N) * BUTTERFLY[kind] / ISSUED;
            // A pass reads and writes.
            1e6 * once.max(transforms + products).max(2.0 * passes * ntt * limb / CACHE)
        };
        let shared = key - key / batch as f64;
        let unfused = (counts.bytes as f64 + 2.0 * ntt * limb - shared) / MEMORY;
        let floors = [2.0, 1.0].map(|passes| [0, 1].map(|kind| floor(passes, kind)));
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
        "a prediction from counted operations and an H200's rates, not a measurement: docs/gpu.md has what an H200 took",
        "microseconds of one ciphertext of a batch, which reads the key once",
        "the floor is the largest of: key, input and output once through memory; the instructions of the kernels, as counted, at the most that a card issues; both passes of every transform through the second-level cache",
        "one pass: as if a cluster of blocks did every transform, which reads and writes once",
        "unfused is every primitive's operands through memory, transforms in two passes, or the operations where those take longer",
    ];
    Ok(Outcome { rows, deviations: said.map(str::to_owned).to_vec(), figure: None })
}

#[cfg(test)]
mod tests {
    use super::{BUTTERFLY, CONVERTED, PRODUCT};
    use crate::reproduce::{Item, Settings};
    use std::collections::BTreeMap;
    use synchromesh_bench::device::Device;

    /// A column of a record of synchromesh-cuda by the names of its rows; none where that crate is not beside this one.
    fn counted(record: &str, names: usize, column: &str) -> Option<BTreeMap<String, f64>> {
        let path = format!("{}/../synchromesh-cuda/ptx/{record}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).ok()?;
        let at = text.lines().next()?.split(',').position(|name| name == column)?;
        let row = |line: &str| {
            let words: Vec<&str> = line.split(',').collect();
            Some((words[..names].join(","), words.get(at)?.parse().ok()?))
        };
        Some(text.lines().skip(1).filter_map(row).collect())
    }

    #[test]
    fn instructions_are_those_that_are_counted() {
        let Some(assembled) = counted("counts.csv", 2, "assembled") else { return };
        // Butterflies of so many layers of so many limbs at N = 2^16, by kernel.
        let butterflies = |run: &str, layers: f64, kernels: &[(&str, f64)]| {
            let instructions: f64 = kernels.iter().map(|(kernel, _)| assembled[&format!("{run},{kernel}")]).sum();
            let limbs: f64 = kernels.iter().map(|(_, limbs)| limbs).sum();
            32.0 * instructions / (limbs * layers * 32768.0)
        };
        let first = [("ntt_forward_first", 16.0), ("ntt_forward_sum", 8.0)];
        let passes = [first, [("ntt_inverse_first", 8.0), ("ntt_inverse_last", 8.0)]].concat();
        let integers = butterflies("switch in integers", 8.0, &passes);
        let clusters = [("ntt_forward_sum_cluster", 8.0), ("ntt_inverse_cluster", 8.0)];
        let doubles = butterflies("switch in doubles", 16.0, &clusters);
        let whole = counted("operations.csv", 3, "assembled").unwrap();
        let a_product = |row: &str, products: f64| 32.0 * whole[row] / (products * 65536.0);
        // 33 groups, two primes, 32 digits, two columns; 120 limbs from 8 and 64 from 6 primes, with a correction each.
        let product = a_product("linear/slots,H100,inner_product", 33.0 * 2.0 * 32.0 * 2.0);
        let converted =
            |card: &str| a_product(&format!("hybrid/alpha = 8/slots,{card},convert"), 120.0 * 9.0 + 64.0 * 7.0);
        let found = [integers, doubles, product, converted("RTX 4090"), converted("H100")];
        let ours = [BUTTERFLY[0], BUTTERFLY[1], PRODUCT, CONVERTED[0], CONVERTED[1]];
        for (found, ours) in found.into_iter().zip(ours) {
            assert!((found - ours).abs() < 0.02 * ours, "counted {found:.1}, here {ours:.1}");
        }
    }

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
