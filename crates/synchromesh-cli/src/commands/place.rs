//! Flags that say where a command computes, and the error for choices that this program does not offer.

use crate::error::Error;
use clap::{Args, ValueEnum};
use synchromesh_cuda::Properties;

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

/// A device that this program was built for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Chosen {
    /// The CPU; with a reason where a card was preferred.
    Cpu { instead: Option<String> },
    /// The first card.
    #[cfg(feature = "cuda")]
    Cuda,
    /// The kernels of a card, emulated.
    #[cfg(feature = "emulated")]
    Emulated,
}

/// The cards of this machine that this program can use.
#[cfg(feature = "cuda")]
pub(super) fn cards() -> Result<Vec<Properties>, Error> {
    Ok(synchromesh_cuda::Driver::list()?)
}

/// The cards of this machine that this program can use.
#[cfg(not(feature = "cuda"))]
pub(super) fn cards() -> Result<Vec<Properties>, Error> {
    Err(unavailable("--device", "cuda", "a build of this program with the feature cuda"))
}

impl Place {
    /// The device meant: for `auto` a card, or the CPU and why.
    pub(super) fn choose(&self) -> Result<Chosen, Error> {
        self.check_threads()?;
        match self.device {
            Device::Cpu => Ok(Chosen::Cpu { instead: None }),
            #[cfg(feature = "cuda")]
            Device::Cuda => cards().map(|_| Chosen::Cuda),
            #[cfg(feature = "cuda")]
            Device::Auto if cards().is_ok() => Ok(Chosen::Cuda),
            Device::Auto => Ok(Chosen::Cpu { instead: cards().err().map(|reason| reason.to_string()) }),
            #[cfg(feature = "emulated")]
            Device::Emulated => Ok(Chosen::Emulated),
            #[cfg(not(all(feature = "cuda", feature = "emulated")))]
            other => Err(unavailable(
                "--device",
                &name(other),
                &format!("auto, cpu, or a build of this program with the feature {}", name(other)),
            )),
        }
    }

    /// Refuses what is not there, for commands that compute on the CPU alone.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !matches!(self.device, Device::Auto | Device::Cpu) {
            return Err(unavailable("--device", &name(self.device), "auto, cpu"));
        }
        self.check_threads()
    }

    fn check_threads(&self) -> Result<(), Error> {
        if self.threads == 1 { Ok(()) } else { Err(unavailable("--threads", &self.threads.to_string(), "1")) }
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
