//! Whether a measurement fits into the memory that is free.

use crate::Error;
use crate::device::Device;
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

/// As [`fits`], of refreshes on a device, with what to do where there is too little. A card has memory of its own, and says
/// what it lacks.
pub(crate) fn fits_refresh(bytes: u64, device: Device) -> Result<(), Error> {
    if !device.is_host() {
        return Ok(());
    }
    fits(bytes as usize).map_err(|free| {
        let [bytes, free] = [bytes, free].map(|bytes| bytes as f64 / 1e9);
        let reason = format!(
            "a refresh takes {bytes:.1} GB of memory, {free:.1} GB are free, of which {:.1} may be taken: fewer baby steps \
             or levels need fewer keys",
            SHARE * free
        );
        Error::Request { reason }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_fits_and_everything_does_not() {
        assert!(fits(0).is_ok());
        assert!(available_bytes().is_none() || fits(usize::MAX).is_err());
        assert!(fits_refresh(0, Device::Cpu).is_ok());
        if let Err(error) = fits_refresh(1 << 50, Device::Cpu) {
            assert!(error.to_string().contains("takes 1125899.9 GB"), "{error}");
        }
    }
}
