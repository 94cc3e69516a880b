//! `bench bootstrap`: refreshes at parameters found for a precision (CKKS) or for products in a row (BFV and BGV).

use std::path::PathBuf;

use super::Placed;
use crate::commands::overwrite::Overwrite;
use crate::commands::place::Place;
use crate::commands::plan::Scheme;
use crate::error::Error;
use crate::output::{Report, say};
use crate::plot::chart::chart;
use clap::Args;
use synchromesh::bfv::Bfv;
use synchromesh::bgv::Bgv;
use synchromesh::ckks::bootstrap::Messages;
use synchromesh::plan::bootstrap::{BootstrapRequest, ExactBootstrapRequest};
use synchromesh_bench::bootstrap::{self, measure};
use synchromesh_bench::device::Device;
use synchromesh_bench::exact_refreshes;
use synchromesh_papers::reproduce::{Figure, Series};
use synchromesh_rlwe::Security;
use synchromesh_rlwe::file::{self, Access};

/// Parameters of `bench bootstrap`.
#[derive(Args, Debug)]
pub(in crate::commands) struct BootstrapBench {
    /// The scheme: of ckks the slots are refreshed, of bfv and bgv the noise goes.
    #[arg(long, value_enum, default_value = "ckks")]
    scheme: Scheme,
    /// log2 of the degree N.
    #[arg(long, value_parser = clap::value_parser!(u32).range(10..=17))]
    log_n: u32,
    /// Plaintext modulus, for bfv and bgv.
    #[arg(long, default_value = "65537")]
    t: String,
    /// Products in a row between two refreshes, for bfv and bgv.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    products: u32,
    /// For ckks: log2 of the scale of the levels between two refreshes.
    #[arg(long, value_name = "BITS", default_value_t = 40, value_parser = clap::value_parser!(u32).range(20..=90))]
    log_scale: u32,
    /// For ckks: bits that the certificate of a refreshed message is to leave [default: 15, and 8 at 128 bits of
    /// security below N = 2^16].
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=60))]
    precision: Option<u32>,
    /// For ckks: log2 of level 0's modulus over the largest message: a bit more takes a bit of each level inside, and two off
    /// what the sine bends by, which limits what is measured where noise does not [default: as few as the certificate needs].
    #[arg(long, value_name = "BITS")]
    ratio: Option<u32>,
    /// For ckks: rounds of a refresh, each of which refreshes what the one before was off by; of several, what is refreshed is
    /// one level above the lowest, where scales have room for as much precision.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=8))]
    rounds: u32,
    /// For ckks: levels between two refreshes [default: those that take the least time each].
    #[arg(long, value_name = "L")]
    levels: Option<usize>,
    /// For ckks: messages have real slots only.
    #[arg(long)]
    real: bool,
    /// For ckks: messages repeat after so many slots, a power of two: fewer take less time and fewer keys [default: all].
    #[arg(long, value_name = "N")]
    slots: Option<usize>,
    /// Baby steps of each map, a power of two: fewer of them need fewer keys and less memory, and take longer [default: 8 from
    /// N = 2^16 on, the fastest below].
    #[arg(long, value_name = "B")]
    baby_steps: Option<usize>,
    /// For ckks: digits of a key switch; fewer make smaller keys and wider special primes [default: the fewest that fit].
    #[arg(long, value_name = "D")]
    digits: Option<usize>,
    /// For ckks: widest prime of the levels inside, 30 to 60 bits: levels that are wider share narrow primes, which a processor
    /// is done with sooner [default: 49, on a graphics card 60].
    #[arg(long, value_name = "BITS")]
    widest: Option<u32>,
    /// Refreshes that are timed, after one that is not.
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    iterations: u32,
    /// No security at all, for a small degree; of ckks, levels have to be said.
    #[arg(long)]
    insecure: bool,
    #[command(flatten)]
    place: Place,
    /// For ckks: draw the modulus over the seconds of a refresh, stage by stage.
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    overwrite: Overwrite,
}

impl BootstrapBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        if let (Some(plot), Scheme::Bfv | Scheme::Bgv) = (&self.plot, self.scheme) {
            return Err(Error::Usage {
                message: format!("--plot {}: stages are drawn for ckks alone, passes are all alike", plot.display()),
            });
        }
        match self.scheme {
            Scheme::Ckks => self.approximate(),
            Scheme::Bfv => self.exact::<Bfv>(),
            Scheme::Bgv => self.exact::<Bgv>(),
        }
    }

    const fn security(&self) -> Security {
        if self.insecure { Security::Insecure } else { Security::Bits128 }
    }

    /// Below N = 2^16 security leaves no room for as much.
    fn precision(&self) -> u32 {
        self.precision.unwrap_or(if self.log_n < 16 && !self.insecure { 8 } else { 15 })
    }

    /// The fastest take more memory than most machines have where the degree is large.
    fn baby_steps(&self) -> Option<usize> {
        self.baby_steps.or_else(|| (self.log_n >= 16).then_some(8))
    }

    fn exact<S: synchromesh::exact::Scheme>(&self) -> Result<Report, Error> {
        let chosen = self.place.choose_to_measure()?;
        let request = ExactBootstrapRequest {
            log_n: self.log_n,
            t: self.t.clone(),
            products: self.products,
            baby_steps: self.baby_steps(),
            security: self.security(),
        };
        let (iterations, device) = (self.iterations as usize, chosen.measured());
        let report = exact_refreshes::measure::<S>(&request, iterations, device, |what| say(&format!("{what}\n")))?;
        say(&format!(
            "{:.2} s in {} passes of {:.2} s; a noise budget of {:.1} bits becomes one of {:.1}; {:.2} GB of keys\n",
            report.seconds,
            report.passes,
            report.pass_s,
            report.before_bits,
            report.after_bits,
            report.key_bytes as f64 / 1e9
        ));
        Report::new(&Placed { report, why_not_cuda: chosen.why_not_cuda() })
    }

    fn approximate(&self) -> Result<Report, Error> {
        let existing = self.overwrite.permit(self.plot.as_deref())?;
        let chosen = self.place.choose_to_measure()?;
        let (iterations, device) = (self.iterations as usize, chosen.measured());
        let request = BootstrapRequest {
            ratio_bits: self.ratio,
            levels: self.levels,
            messages: if self.real { Messages::Real } else { Messages::Complex },
            slots: self.slots,
            baby_steps: self.baby_steps(),
            digits: self.digits,
            widest: self.widest.or_else(|| (device != Device::Cpu).then_some(60)),
            rounds: self.rounds,
            security: self.security(),
            ..BootstrapRequest::new(self.log_n, self.log_scale, self.precision())
        };
        let report = measure(&request, iterations, device, |what| say(&format!("{what}\n")))?;
        for stage in &report.stages {
            say(&format!("{}: {:.2} s, to level {}\n", stage.stage.name(), stage.seconds, stage.level));
        }
        say(&format!(
            "{:.2} s; {:.1} bits measured, {:.1} on average, {:.1} certified; {} of {:.0} bits; {:.2} GB of keys\n",
            report.seconds,
            report.measured_bits,
            report.mean_bits,
            report.certified_bits,
            levels(report.usable_levels),
            report.usable_bits,
            report.key_bytes as f64 / 1e9
        ));
        if let Some(plot) = &self.plot {
            file::write(plot, chart(&stairs(&report)).as_bytes(), Access::Public, existing)?;
        }
        Report::new(&Placed { report, why_not_cuda: chosen.why_not_cuda() })
    }
}

fn levels(count: usize) -> String {
    format!("{count} level{}", if count == 1 { "" } else { "s" })
}

/// The modulus over the seconds of a refresh, a line for each stage.
fn stairs(report: &bootstrap::Report) -> Figure {
    let modulus = |level: usize| report.q_bits.iter().take(level + 1).map(|&bits| f64::from(bits)).sum::<f64>();
    let (mut seconds, mut level) = (0.0, report.bootstrap.slots_to_coeffs);
    let lines = report.stages.iter().map(|stage| {
        let begin = (seconds, modulus(level));
        (seconds, level) = (seconds + stage.seconds, stage.level);
        let name = format!("{}, {:.2} s", stage.stage.name(), stage.seconds);
        Series { name, points: vec![begin, (seconds, modulus(level))], joined: true }
    });
    Figure {
        series: lines.collect(),
        title: format!(
            "A refresh at N = 2^{}: {:.1} bits certified, {} of {:.0} bits",
            report.log_n,
            report.certified_bits,
            levels(report.usable_levels),
            report.usable_bits
        ),
        x: "seconds".to_owned(),
        y: "modulus of the ciphertext, in bits".to_owned(),
        logarithmic: false,
    }
}
