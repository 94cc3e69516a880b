//! Whether a measurement fits into the memory that is free.

pub use synchromesh_rlwe::memory::{available_bytes, forget_peak, peak_bytes, total_bytes};

/// Part of the free memory that a measurement may take.
const SHARE: f64 = 0.7;

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
    fn nothing_fits_and_everything_does_not() {
        assert!(fits(0).is_ok());
        assert!(available_bytes().is_none() || fits(usize::MAX).is_err());
    }
}
