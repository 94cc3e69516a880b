//! What this machine is: instruction sets, processor name, date.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Instruction sets that the library has kernels for on this architecture, in ascending order, with whether this CPU
/// runs them.
pub(crate) fn isas() -> Vec<(&'static str, bool)> {
    let mut isas = vec![("scalar", true)];
    #[cfg(target_arch = "x86_64")]
    {
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let ifma = avx512 && is_x86_feature_detected!("avx512ifma");
        isas.extend([("avx2", is_x86_feature_detected!("avx2")), ("avx512", avx512), ("ifma", ifma)]);
    }
    #[cfg(target_arch = "aarch64")]
    isas.push(("neon", std::arch::is_aarch64_feature_detected!("neon")));
    isas
}

/// The most capable of [`isas`] that this CPU runs.
pub(crate) fn best_isa() -> &'static str {
    isas().into_iter().rev().find(|(_, here)| *here).map_or("scalar", |(isa, _)| isa)
}

/// The processor's model name, with family and model number, since cloud machines hide the former.
pub(crate) fn cpu() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)
            .map(|(_, value)| value.trim().to_owned())
    };
    match (field("model name"), field("cpu family"), field("model")) {
        (Some(name), Some(family), Some(model)) => format!("{name} family {family} model {model}"),
        (Some(name), ..) => name,
        _ => format!("unknown {}", std::env::consts::ARCH),
    }
}

/// Today in UTC as `YYYY-MM-DD`.
pub(crate) fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs());
    let (year, month, day) = civil(seconds / 86_400);
    format!("{year:04}-{month:02}-{day:02}")
}

/// The Gregorian date of a day counted from 1970-01-01, by shifting years to begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// Processes that ran or waited in the last minute, on average; other work on the machine shows here.
pub(crate) fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// `rustc --version`.
pub(crate) fn rustc() -> String {
    first_line(Command::new("rustc").arg("--version"))
}

/// The commit of the workspace, with a mark where files differ from it.
pub(crate) fn commit(root: &Path) -> String {
    first_line(Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).current_dir(root))
}

fn first_line(command: &mut Command) -> String {
    command
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))
        .unwrap_or_else(|| "unknown".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }

    #[test]
    fn scalar_is_always_there() {
        assert_eq!(isas()[0], ("scalar", true));
    }
}
