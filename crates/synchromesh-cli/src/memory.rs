//! The memory this process has used.

/// The most bytes that were resident at once, as Linux counts them (VmHWM); `None` where there is no such count.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    parse_peak(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_peak(status: &str) -> Option<u64> {
    let kibibytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix("kB")?;
    kibibytes.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_bytes() {
        assert_eq!(parse_peak("VmPeak:\t 9 kB\nVmHWM:\t   123456 kB\nVmRSS:\t 1 kB\n"), Some(126_418_944));
        assert_eq!(parse_peak("VmRSS:\t 1 kB\n"), None);
        assert_eq!(parse_peak("VmHWM:\t lots kB\n"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_peak_covers_what_was_touched() {
        let touched = vec![1u8; 64 << 20];
        assert!(peak_bytes().unwrap() >= std::hint::black_box(&touched).len() as u64);
    }
}
