//! ePrint 2023/593, section 4.5: the homomorphic product of matrix triples, timed again.
//!
//! Sizes are those of the paper, in blocks of 128 x 128 at N = 2^15, two products at a time; its times are seconds on an
//! AMD EPYC 7742. A size is measured where it fits; otherwise its time is k^2 times that of the rotations of one block
//! plus k^3 times that of its products, k being blocks across, and the row says so.

use serde_json::json;
use synchromesh::circuits::{MatrixChoices, MatrixPacking, MatrixPlan, SlotShape};

use super::runner::row;
use super::{Outcome, Row, Runner};
use synchromesh_bench::Error;
use synchromesh_bench::device::Device;
use synchromesh_bench::matmul::{RUNS, Report, Request, measure};
use synchromesh_bench::memory;

/// Blocks of the paper.
const BLOCK: usize = 128;

/// Keys of the paper's hoisting: 2 d for A, d for B (section 3.1), and one for products.
pub(super) const HOISTING_KEYS: usize = 3 * BLOCK + 1;

/// Largest size measured: beyond it a run takes minutes.
const MEASURED: usize = 512;

/// What one block takes in a setting: the seconds of its rotations and of its products, and its bytes.
struct Unit {
    report: Report,
    rotations: f64,
    products: f64,
}

fn request(runner: &Runner<'_>, d: usize, size: usize, choices: MatrixChoices) -> Request {
    let runs = if runner.quick() { 1 } else { RUNS };
    let (t_bits, log_n, width, device) = (128, 15, 60, Device::Cpu);
    Request { d, size, t_bits, log_n, width, choices, doubled: false, check: false, runs, device }
}

/// Measures one block.
fn unit(runner: &mut Runner<'_>, d: usize, choices: MatrixChoices) -> Result<Unit, Error> {
    runner.note(&format!("one block of {d} x {d}, windows of {} steps", choices.window.min(d)));
    let report = measure(&request(runner, d, d, choices))?;
    let products = report.tensor_s * d as f64;
    Ok(Unit { rotations: report.median_s - products, products, report })
}

/// A size: seconds of all products packed, bytes, and whether that is measured.
struct Sized {
    seconds: f64,
    bytes: Option<u64>,
    measured: bool,
}

impl Unit {
    fn at(&self, runner: &mut Runner<'_>, size: usize, choices: MatrixChoices) -> Result<Sized, Error> {
        let d = self.report.d;
        if size == d {
            return Ok(Sized { seconds: self.report.median_s, bytes: self.report.peak_bytes, measured: true });
        }
        let k = size.div_ceil(d) as f64;
        let again = if choices.tile.is_some() { k.powi(3) } else { k * k };
        // Each block of the factors beyond the first holds its digits, at most 2 x 3 + 2 of all limbs of 14.
        let state = 8.0 * f64::from(1u32 << self.report.log_n) * 14.0 * 8.0;
        let blocks = if choices.tile.is_some() { 2.0 * k - 2.0 } else { 2.0 * (k * k - 1.0) };
        let bytes = self.report.peak_bytes.map(|bytes| bytes + (blocks * state) as u64);
        let fits = bytes.is_none_or(|bytes| memory::fits(bytes as usize).is_ok());
        if runner.quick() || size > MEASURED || !fits {
            return Ok(Sized { seconds: self.rotations * again + self.products * k.powi(3), bytes, measured: false });
        }
        runner.note(&format!("{size} x {size}"));
        let report = measure(&request(runner, d, size, choices))?;
        Ok(Sized { seconds: report.median_s, bytes: report.peak_bytes, measured: true })
    }
}

pub(super) fn rounded(x: f64) -> f64 {
    (1e3 * x).round() / 1e3
}

fn gib(bytes: Option<u64>) -> Option<f64> {
    bytes.map(|bytes| rounded(bytes as f64 / f64::from(1 << 30)))
}

fn put(row: &mut Row, prefix: &str, sized: &Sized) {
    row.insert(format!("ours_{prefix}_s"), json!(rounded(sized.seconds)));
    row.insert(format!("ours_{prefix}_gib"), json!(gib(sized.bytes)));
    row.insert(format!("{prefix}_measured"), json!(sized.measured));
}

/// What is not as in the paper, for every table.
fn deviations(runner: &mut Runner<'_>, more: &[&str]) -> Vec<String> {
    let own = [
        "the product alone: the shares' sums, the MACs and the shared decryption are not in it, and the paper's totals \
         have them",
        "t = 0xffffffffffffffffffffffffff820001 has 128 bits where the paper's has 129; primes and P have its bits",
        "each key is expanded from its seed when it is used, within the time",
        "rows that are not measured are k^2 times the rotations and k^3 times the products of one block",
    ];
    let one = runner.quick().then_some(&"--quick times one product, otherwise the median of three counts");
    let all = own.iter().chain(more).chain(one).map(|line| (*line).to_owned());
    all.chain(runner.deviations.drain(..)).collect()
}

/// Rotations and products against those of the paper and of Chen et al., amortised over the two products packed.
pub(super) fn table2(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    // Size; encryption, rotations of both factors and products of the paper; the sum of the latter in Chen et al.
    const PAPER: [(usize, f64, f64, f64); 5] = [
        (128, 0.09, 1.50 + 0.85 + 0.56, 1.8 + 0.9 + 1.4),
        (256, 0.38, 6.25 + 3.20 + 3.31, 5.6 + 2.3 + 10.1),
        (384, 0.85, 14.15 + 6.95 + 10.85, 12.8 + 4.9 + 34.0),
        (512, 1.51, 24.80 + 12.30 + 27.35, 21.8 + 8.0 + 79.6),
        (1024, 6.10, 98.00 + 49.35 + 236.00, 79.6 + 32.9 + 648.0),
    ];
    let choices = MatrixChoices::HOISTED;
    let unit = unit(runner, BLOCK, choices)?;
    let packed = unit.report.packed as f64;
    let mut rows = Vec::new();
    for (size, encrypt, product, chen) in PAPER {
        let sized = unit.at(runner, size, choices)?;
        let blocks = (size / BLOCK).pow(2) as f64;
        rows.push(row(json!({
            "size": size,
            "ours_encrypt_s": rounded(unit.report.encrypt_s * blocks / packed),
            "paper_encrypt_s": encrypt,
            "ours_product_s": rounded(sized.seconds / packed),
            "paper_product_s": rounded(product),
            "chen_product_s": rounded(chen),
            "measured": sized.measured,
            "threads": 1,
            "paper_threads": 16,
            "security_bits": unit.report.security_bits,
        })));
    }
    let more = [
        "one thread where the paper and Chen et al. (as the paper cites them) use 16; products are RotA + RotB + Multiply",
        "the 14 s that the paper prints for the products of Chen et al. at 128 is taken as 1.4 s: their sum for 256 is 10.1 s",
        "encryption is that of both factors, measured at 128 and times the blocks",
    ];
    Ok(Outcome { rows, deviations: deviations(runner, &more), figure: None })
}

/// A table of two choices at the sizes of Tables 3 to 5, with the paper's seconds and GiB.
fn two(
    runner: &mut Runner<'_>,
    names: [&str; 2],
    choices: [MatrixChoices; 2],
    paper: [[[f64; 2]; 4]; 2],
    paper_keys: [usize; 2],
    more: &[&str],
) -> Result<Outcome, Error> {
    let units = [unit(runner, BLOCK, choices[0])?, unit(runner, BLOCK, choices[1])?];
    let mut rows = Vec::new();
    for (at, size) in [128, 256, 384, 512].into_iter().enumerate() {
        let mut line = row(json!({ "size": size }));
        for (which, name) in names.iter().enumerate() {
            let sized = units[which].at(runner, size, choices[which])?;
            put(&mut line, name, &sized);
            let [seconds, gib] = paper[which][at];
            line.insert(format!("paper_{name}_s"), json!(seconds));
            line.insert(format!("paper_{name}_gib"), json!(gib));
            line.insert(format!("ours_{name}_keys"), json!(units[which].report.rotation_keys + 1));
            line.insert(format!("paper_{name}_keys"), json!(paper_keys[which]));
        }
        line.insert("threads".into(), json!(choices[0].threads));
        line.insert("security_bits".into(), json!(units[0].report.security_bits));
        rows.push(line);
    }
    Ok(Outcome { rows, deviations: deviations(runner, more), figure: None })
}

/// Hoisting against key re-use, one thread.
pub(super) fn table3(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let hoisting = [[74.8, 9.08], [325.0, 20.94], [792.0, 40.96], [1535.0, 68.35]];
    let reuse = [[90.8, 5.30], [392.0, 17.18], [952.0, 36.99], [1839.0, 64.72]];
    let choices = [MatrixChoices::HOISTED, MatrixChoices::REUSED];
    two(runner, ["hoisting", "reuse"], choices, [hoisting, reuse], [HOISTING_KEYS, 3], &[])
}

/// Hoisting against windows of 16 steps, on the threads there are.
pub(super) fn table4(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let hoisting = [[6.48, 9.84], [32.3, 21.02], [80.4, 40.77], [154.0, 68.43]];
    let mixed = [[7.72, 5.83], [35.3, 17.68], [86.2, 37.44], [163.0, 65.10]];
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(16);
    let choices = [MatrixChoices::HOISTED, MatrixChoices::mixed(16)].map(|choices| choices.threads(threads));
    let more = format!("{threads} threads where the paper has 16; its key re-use here is the mix of section 3.1");
    two(runner, ["hoisting", "mixed"], choices, [hoisting, mixed], [HOISTING_KEYS, 33], &[more.as_str()])
}

/// Every rotation made once against rotations made again for each block of the product.
pub(super) fn table5(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    let once = [[74.8, 9.08], [325.0, 20.94], [792.0, 40.96], [1535.0, 68.35]];
    let again = [[75.3, 4.49], [597.0, 4.84], [2024.0, 5.42], [4741.0, 6.23]];
    let choices = [MatrixChoices::HOISTED, MatrixChoices::RECOMPUTED];
    let more = [
        "the paper keeps all rotations of all blocks where it makes each once; here all blocks take a step together, \
                 and only their digits and the sums are kept",
    ];
    two(runner, ["once", "again"], choices, [once, again], [HOISTING_KEYS; 2], &more)
}

/// 192 x 192 in blocks of 32, 64 and 128.
pub(super) fn table6(runner: &mut Runner<'_>) -> Result<Outcome, Error> {
    const SIZE: usize = 192;
    let slots = SlotShape { row: 1 << 14, rows: 2 };
    let choices = MatrixChoices::HOISTED;
    let reference = unit(runner, BLOCK, choices)?;
    let mut rows = Vec::new();
    for (d, paper) in [(32, 4.53), (64, 3.81), (128, 7.10)] {
        let packing = MatrixPacking::square(slots, d)?;
        let plan = MatrixPlan::new(packing, [SIZE; 3], packing.copies(), [1, 1])?;
        // A rotation and a product cost the same in blocks of any size.
        let steps = d as f64 / BLOCK as f64;
        let k = SIZE.div_ceil(d) as f64;
        let mut seconds = steps * (reference.rotations * k * k + reference.products * k.powi(3));
        let measured = !runner.quick();
        if measured {
            runner.note(&format!("{SIZE} x {SIZE} in blocks of {d} x {d}"));
            seconds = measure(&request(runner, d, SIZE, choices))?.median_s;
        }
        rows.push(row(json!({
            "d": d,
            "packed": packing.copies(),
            "paper_packed": (1 << 15) / (d * d),
            "blocks": k,
            "key_switches": plan.key_switches(&choices),
            "ours_amortised_s": rounded(seconds / packing.copies() as f64),
            "paper_amortised_s": paper,
            "measured": measured,
            "security_bits": reference.report.security_bits,
        })));
    }
    let more =
        ["one thread where the paper has 128", "the times are divided by the products that one ciphertext packs"];
    Ok(Outcome { rows, deviations: deviations(runner, &more), figure: None })
}
