//! What the items share: timing several key switches in turn, within the memory there is.

use std::time::Duration;

use serde_json::{Value, json};
use synchromesh::cost::{Op, Profile, Shape};

use super::{Row, Settings};
use synchromesh_bench::Error;
use synchromesh_bench::device::Device;
use synchromesh_bench::key_switch::Timed;
use synchromesh_bench::key_switch::{Chain, Gadget, Method, Prepared, Request};
use synchromesh_bench::memory;
use synchromesh_bench::timing::interleaved_medians;

/// The plaintext modulus of the authors' benchmark of ePrint 2023/1642 is a prime of 30 bits; for us any that is odd.
pub(super) const ERROR_MULTIPLE: &str = "1073643521";

/// log2 of the degree on an emulated device.
const EMULATED_LOG_N: u32 = 10;

/// Measures rows and keeps what could not be.
pub struct Runner<'a> {
    settings: &'a Settings,
    progress: &'a mut dyn FnMut(&str),
    /// What was left out, and why.
    pub(super) deviations: Vec<String>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(settings: &'a Settings, progress: &'a mut dyn FnMut(&str)) -> Self {
        Self { settings, progress, deviations: Vec::new() }
    }

    pub(super) const fn quick(&self) -> bool {
        self.settings.quick
    }

    /// Where key switches are measured.
    pub(super) const fn device(&self) -> Device {
        self.settings.device
    }

    /// `log_n`, or a degree that the device can be asked for; says so once.
    pub(super) fn degree(&mut self, log_n: u32) -> u32 {
        if self.device().is_real() {
            return log_n;
        }
        let line = format!("emulated: N = 2^{EMULATED_LOG_N} instead of the paper's degrees, and times mean nothing");
        if !self.deviations.contains(&line) {
            self.deviations.push(line);
        }
        EMULATED_LOG_N
    }

    pub(super) const fn profile(&self) -> Option<&'a Profile> {
        self.settings.profile.as_ref()
    }

    pub(super) fn note(&mut self, what: &str) {
        (self.progress)(what);
    }

    /// Whether a degree is measured; if not, says so once.
    pub(super) fn takes_degree(&mut self, log_n: u32) -> bool {
        let taken = !self.quick() || log_n <= 15;
        let line = format!("N = 2^{log_n} is left out by --quick");
        if !taken && !self.deviations.contains(&line) {
            self.deviations.push(line);
        }
        taken
    }

    /// Time for one row: on a device that is nobody else's less.
    pub(super) fn least(&self) -> Duration {
        Duration::from_millis(if self.quick() || !self.device().is_host() { 150 } else { 1000 })
    }

    /// Median milliseconds of each request, in turn: the mean of the four pairs of domains, or the pair of slots alone
    /// if quick. None when they do not fit into memory together.
    pub(super) fn milliseconds(&mut self, label: &str, requests: &[&Prepared]) -> Result<Option<Vec<f64>>, Error> {
        let pairs = [(true, true), (false, false), (false, true), (true, false)];
        self.over_domains(label, requests, &pairs[..if self.quick() { 1 } else { 4 }], (self.least(), 3))
    }

    /// As [`Self::milliseconds`], slots to slots.
    pub(super) fn slots_milliseconds(
        &mut self,
        label: &str,
        requests: &[&Prepared],
    ) -> Result<Option<Vec<f64>>, Error> {
        self.over_domains(label, requests, &[(true, true)], (self.least(), 3))
    }

    /// Median milliseconds slots to slots of one request, briefly; none when it does not fit into memory.
    pub(super) fn alone(&mut self, label: &str, request: &Prepared) -> Result<Option<f64>, Error> {
        let times = self.over_domains(label, &[request], &[(true, true)], (self.least() / 20, 3))?;
        Ok(times.map(|times| times[0]))
    }

    /// As [`Self::slots_milliseconds`], 15 rounds at the least.
    pub(super) fn in_turn(&mut self, label: &str, requests: &[&Prepared]) -> Result<Option<Vec<f64>>, Error> {
        self.over_domains(label, requests, &[(true, true)], (self.least(), 15))
    }

    fn over_domains(
        &mut self,
        label: &str,
        requests: &[&Prepared],
        pairs: &[(bool, bool)],
        (least, rounds): (Duration, usize),
    ) -> Result<Option<Vec<f64>>, Error> {
        self.note(label);
        let needed: usize = requests.iter().map(|r| r.peak_bytes()).sum();
        let fits = if self.device().is_host() { memory::fits(needed) } else { Ok(()) };
        if let Err(free) = fits {
            let gib = |bytes: f64| bytes / (1u64 << 30) as f64;
            self.deviations.push(format!(
                "{label}: left out, it needs {:.1} GiB and {:.1} GiB are free",
                gib(needed as f64),
                gib(free as f64)
            ));
            return Ok(None);
        }
        let opened: Result<Vec<Box<dyn Timed>>, Error> = requests.iter().map(|r| r.open(self.device())).collect();
        let mut switches = match opened {
            // The CPU's memory was asked about above.
            Err(error) if error.kind() == "memory_budget" && !self.device().is_host() => {
                self.deviations.push(format!("{label}: left out, {error}"));
                return Ok(None);
            }
            opened => opened?,
        };
        let mut sums = vec![0.0; switches.len()];
        for &(input_ntt, output_ntt) in pairs {
            let shaped = |(s, r): (Box<dyn Timed>, &&Prepared)| s.shaped(Shape { input_ntt, output_ntt, ..r.shape() });
            switches = switches.into_iter().zip(requests).map(shaped).collect::<Result<_, _>>()?;
            let mut runs: Vec<Box<dyn FnMut() -> Result<(), Error> + '_>> = Vec::new();
            for switch in &mut switches {
                runs.push(Box::new(|| switch.run()));
            }
            let medians = interleaved_medians(&mut runs, least / pairs.len() as u32, rounds)?;
            sums.iter_mut().zip(medians).for_each(|(sum, s)| *sum += s);
        }
        Ok(Some(sums.into_iter().map(|s| 1e3 * s / pairs.len() as f64).collect()))
    }
}

/// A relinearisation of BGV with these primes, as the benchmark of ePrint 2023/1642 has it.
pub(super) fn relinearisation(log_n: u32, q: Vec<u32>, p: Vec<u32>, omega: usize) -> Request {
    Request {
        log_n,
        chain: Chain::Widths { q, p },
        method: Method::Hybrid { omega },
        gadget: Gadget::Idempotent,
        second: None,
        limbs: None,
        swap: None,
        error_multiple: ERROR_MULTIPLE.to_owned(),
        shape: Shape { op: Op::Relin, ..Shape::ROTATION },
        unfolded: false,
    }
}

/// An object as a row.
pub(super) fn row(value: Value) -> Row {
    match value {
        Value::Object(object) => object,
        other => Row::from_iter([("value".to_owned(), other)]),
    }
}

/// What identifies a set in every row.
pub(super) fn head(prepared: &Prepared) -> Row {
    let params = prepared.params();
    let log = |set| params.ring().log2(set).ceil() as u32;
    row(json!({
        "log_n": params.ring().log_n(),
        "log_q": log(params.q()),
        "log_p": log(params.p()),
        "omega": prepared.plan().digits.len(),
        "security_bits": (10.0 * params.security_bits()).round() / 10.0,
    }))
}

/// Puts a number of milliseconds, rounded to a microsecond.
pub(super) fn put_ms(row: &mut Row, key: &str, ms: f64) {
    row.insert(key.to_owned(), json!((1e3 * ms).round() / 1e3));
}

/// Puts `(first / second - 1)` in per cent.
pub(super) fn put_percent(row: &mut Row, key: &str, first: f64, second: f64) {
    row.insert(key.to_owned(), json!((1e3 * (first / second - 1.0)).round() / 10.0));
}
