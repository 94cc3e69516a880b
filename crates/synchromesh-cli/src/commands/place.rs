//! Flags that say where a command computes, and the error for choices that this program does not offer.

use crate::error::Error;
use clap::{Args, ValueEnum};

/// Where and on how many threads.
#[derive(Args, Debug)]
pub(super) struct Place {
    /// The device.
    #[arg(long, value_enum, default_value = "auto")]
    device: Device,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: u32,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Device {
    Auto,
    Cpu,
    Cuda,
    Emulated,
}

impl Place {
    /// Refuses what is not there.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !matches!(self.device, Device::Auto | Device::Cpu) {
            return Err(unavailable("--device", &name(self.device), "auto, cpu"));
        }
        if self.threads != 1 {
            return Err(unavailable("--threads", &self.threads.to_string(), "1"));
        }
        Ok(())
    }
}

/// The error for a flag's value.
pub(super) fn unavailable(flag: &str, value: &str, available: &str) -> Error {
    Error::Unavailable { choice: format!("{flag} {value}"), available: available.to_owned() }
}

/// The name of a choice on the command line.
pub(super) fn name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
