//! Flags that say where a command computes, and the error for choices that this program does not offer.

use crate::error::Error;
use clap::{Args, ValueEnum};
use serde::Serialize;
#[cfg(feature = "measure")]
use synchromesh_bench::device::Device as Measured;
use synchromesh_cuda::Properties;
use synchromesh_ring::Threads;

/// Where and on how many threads.
#[derive(Args, Debug)]
pub(super) struct Place {
    /// The device.
    #[arg(long, value_enum, default_value = "auto")]
    device: Device,
    #[command(flatten)]
    threads: Cores,
}

/// How many threads a command computes on.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Cores {
    /// Threads, 1 to 1024 [default: all cores, or SYNCHROMESH_THREADS; 1 where something is measured].
    #[arg(long, value_name = "K")]
    threads: Option<usize>,
}

impl Cores {
    /// What was asked for becomes the number of the process, all cores if nothing was.
    pub(super) fn settle(self) -> Result<Threads, Error> {
        Ok(match self.threads {
            Some(threads) => Threads::settle(threads)?,
            None => Threads::of_process()?,
        })
    }

    /// As [`Self::settle`], one thread if nothing was asked for: a measurement.
    #[cfg(feature = "measure")]
    pub(super) fn settle_to_measure(self) -> Result<Threads, Error> {
        Ok(Threads::settle(self.threads.unwrap_or(1))?)
    }
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

/// Whether the first card is there and computes what the CPU computes.
#[cfg(feature = "cuda")]
fn usable() -> Result<(), String> {
    cards().map_err(|reason| reason.to_string())?;
    synchromesh_cuda::Cuda::<synchromesh_cuda::Driver>::usable().map_err(|reason| reason.to_string())
}

/// Whether the first card is there and computes what the CPU computes.
#[cfg(not(feature = "cuda"))]
fn usable() -> Result<(), String> {
    cards().map(drop).map_err(|reason| reason.to_string())
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
    #[cfg(feature = "measure")]
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
    #[cfg(feature = "measure")]
    pub(super) fn why_not_cuda(&self) -> Option<String> {
        self.used().why_not_cuda
    }

    /// The choice for measurements.
    #[cfg(feature = "measure")]
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
    /// The device meant, on the threads meant: for `auto` a card, or the CPU and why.
    pub(super) fn choose(&self) -> Result<Chosen, Error> {
        self.threads.settle()?;
        self.device.choose()
    }

    /// As [`Self::choose`], on one thread if no number was given: a measurement.
    #[cfg(feature = "measure")]
    pub(super) fn choose_to_measure(&self) -> Result<Chosen, Error> {
        self.threads.settle_to_measure()?;
        self.device.choose()
    }

    /// Threads that are measured on: one if no number was given.
    #[cfg(feature = "measure")]
    pub(super) fn threads(&self) -> Result<Threads, Error> {
        self.threads.settle_to_measure()
    }

    /// Whether the CPU is an answer to what was asked for.
    #[cfg(feature = "measure")]
    pub(super) const fn may_be_cpu(&self) -> bool {
        matches!(self.device, Device::Auto | Device::Cpu)
    }

    /// What was asked for.
    #[cfg(feature = "measure")]
    pub(super) fn asked(&self) -> String {
        name(self.device)
    }

    /// Refuses what is not there, for measurements of the CPU alone.
    #[cfg(feature = "measure")]
    pub(super) fn check(&self) -> Result<(), Error> {
        if !self.may_be_cpu() {
            return Err(unavailable("--device", &self.asked(), "auto, cpu"));
        }
        self.threads.settle_to_measure().map(drop)
    }
}

impl Device {
    /// The device meant: for `auto` a card, or the CPU and why.
    pub(super) fn choose(self) -> Result<Chosen, Error> {
        match self {
            Self::Cpu => Ok(Chosen::Cpu { instead: None }),
            #[cfg(feature = "cuda")]
            Self::Cuda => cards().map(|_| Chosen::Cuda),
            Self::Auto => match usable() {
                #[cfg(feature = "cuda")]
                Ok(()) => Ok(Chosen::Cuda),
                #[cfg(not(feature = "cuda"))]
                Ok(()) => Ok(Chosen::Cpu { instead: None }),
                Err(reason) => Ok(Chosen::Cpu { instead: Some(reason) }),
            },
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
#[cfg(any(feature = "measure", not(all(feature = "cuda", feature = "emulated"))))]
pub(super) fn unavailable(flag: &str, value: &str, available: &str) -> Error {
    Error::Unavailable { choice: format!("{flag} {value}"), available: available.to_owned() }
}

/// The name of a choice on the command line.
#[cfg(any(feature = "measure", not(all(feature = "cuda", feature = "emulated"))))]
pub(super) fn name(choice: impl ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
