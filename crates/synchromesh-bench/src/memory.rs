//! How much memory is free, as the system says.

/// Part of the free memory that a measurement may take.
const SHARE: f64 = 0.7;

/// Bytes that can be had now; `None` where the system does not say.
#[must_use]
pub fn available_bytes() -> Option<u64> {
    parse(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

/// Bytes of memory that the machine has; `None` where the system does not say.
#[must_use]
pub fn total_bytes() -> Option<u64> {
    line(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// Bytes that this process has had at most; `None` where the system does not say.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    line(&std::fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// Lets [`peak_bytes`] begin anew, where the system allows it.
pub fn forget_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn parse(meminfo: &str) -> Option<u64> {
    line(meminfo, "MemAvailable:")
}

/// The kibibytes after a name, in bytes.
fn line(text: &str, name: &str) -> Option<u64> {
    let kibibytes = text.lines().find_map(|l| l.strip_prefix(name))?.trim().strip_suffix("kB")?;
    kibibytes.trim_end().parse::<u64>().ok()?.checked_mul(1024)
}

/// Whether `bytes` fit into most of what is free; without knowing, yes. Otherwise how much is free.
///
/// # Errors
/// The bytes that are free.
pub fn fits(bytes: usize) -> Result<(), u64> {
    match available_bytes() {
        Some(free) if bytes as f64 > SHARE * free as f64 => Err(free),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_memory_is_read_in_bytes() {
        assert_eq!(parse("MemTotal: 9 kB\nMemAvailable:   1024 kB\n"), Some(1 << 20));
        assert_eq!(parse("MemTotal: 9 kB\n"), None);
        assert!(fits(0).is_ok());
        assert!(available_bytes().is_none() || fits(usize::MAX).is_err());
    }
}
