//! Flags that say where a command computes, and the error for choices that this program does not offer.

use crate::error::Error;
use clap::{Args, ValueEnum};
use serde::Serialize;
use synchromesh_bench::device::Device as Measured;
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
pub(super) enum Device {
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

/// Runs an expression in which `$backend` names the type of the chosen device's backend.
macro_rules! on_device {
    ($chosen:expr, $backend:ident => $body:expr) => {
        match $chosen {
            $crate::commands::place::Chosen::Cpu { .. } => {
                type $backend = synchromesh_ring::Cpu;
                $body
            }
            #[cfg(feature = "cuda")]
            $crate::commands::place::Chosen::Cuda => {
                type $backend = synchromesh_cuda::Cuda<synchromesh_cuda::Driver>;
                $body
            }
            #[cfg(feature = "emulated")]
            $crate::commands::place::Chosen::Emulated => {
                type $backend = synchromesh_cuda::Cuda<synchromesh_cuda::Emulated>;
                $body
            }
        }
    };
}
pub(super) use on_device;

/// Where a command computed, for its report.
#[derive(Serialize, Clone, Debug)]
pub(super) struct Used {
    device: &'static str,
    /// Why the CPU was taken where a card was preferred.
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_cuda: Option<String>,
}

impl Chosen {
    /// The choice in a report.
    pub(super) fn used(&self) -> Used {
        match self {
            Self::Cpu { instead } => Used { device: "cpu", why_not_cuda: instead.clone() },
            #[cfg(feature = "cuda")]
            Self::Cuda => Used { device: "cuda", why_not_cuda: None },
            #[cfg(feature = "emulated")]
            Self::Emulated => Used { device: "emulated", why_not_cuda: None },
        }
    }

    /// What its machine profile is called: the CPU's by the instruction set.
    pub(super) fn profile_name(&self) -> Result<&'static str, Error> {
        match self {
            Self::Cpu { .. } => Ok(synchromesh_ring::isa::Isa::detect()?.name()),
            #[cfg(feature = "cuda")]
            Self::Cuda => Ok("cuda"),
            #[cfg(feature = "emulated")]
            Self::Emulated => Ok("emulated"),
        }
    }

    /// Why the CPU was taken where a card was preferred.
    pub(super) fn why_not_cuda(&self) -> Option<String> {
        self.used().why_not_cuda
    }

    /// The choice for measurements.
    pub(super) const fn measured(&self) -> Measured {
        match self {
            Self::Cpu { .. } => Measured::Cpu,
            #[cfg(feature = "cuda")]
            Self::Cuda => Measured::Cuda,
            #[cfg(feature = "emulated")]
            Self::Emulated => Measured::Emulated,
        }
    }
}

impl Place {
    /// The device meant: for `auto` a card, or the CPU and why.
    pub(super) fn choose(&self) -> Result<Chosen, Error> {
        self.check_threads()?;
        self.device.choose()
    }

    /// Whether the CPU is an answer to what was asked for.
    pub(super) const fn may_be_cpu(&self) -> bool {
        matches!(self.device, Device::Auto | Device::Cpu)
    }

    /// What was asked for.
    pub(super) fn asked(&self) -> String {
        name(self.device)
    }

    /// Refuses what is not there, for commands that compute on the CPU alone.
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.may_be_cpu() {
            return Err(unavailable("--device", &self.asked(), "auto, cpu"));
        }
        self.check_threads()
    }

    fn check_threads(&self) -> Result<(), Error> {
        if self.threads == 1 { Ok(()) } else { Err(unavailable("--threads", &self.threads.to_string(), "1")) }
    }
}

impl Device {
    /// The device meant: for `auto` a card, or the CPU and why.
    pub(super) fn choose(self) -> Result<Chosen, Error> {
        match self {
            Self::Cpu => Ok(Chosen::Cpu { instead: None }),
            #[cfg(feature = "cuda")]
            Self::Cuda => cards().map(|_| Chosen::Cuda),
            #[cfg(feature = "cuda")]
            Self::Auto if cards().is_ok() => Ok(Chosen::Cuda),
            Self::Auto => Ok(Chosen::Cpu { instead: cards().err().map(|reason| reason.to_string()) }),
            #[cfg(feature = "emulated")]
            Self::Emulated => Ok(Chosen::Emulated),
            #[cfg(not(all(feature = "cuda", feature = "emulated")))]
            other => Err(unavailable(
                "--device",
                &name(other),
                &format!("auto, cpu, or a build of this program with the feature {}", name(other)),
            )),
        }
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
