//! [`AnyDevice`]: the CPU, a card or the emulator, chosen at run time, for whoever compiles for all of them at once.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use synchromesh_ring::backend::{Around, Open, RadixDigit, SignedWidth, Stage, View, ViewMut};
use synchromesh_ring::rns::ConvertSpec;
use synchromesh_ring::sampler::{Purpose, Seed};
use synchromesh_ring::{Backend, BackendError, ConvertMode, Cpu, IndexSet, Ring, Threads};
use zeroize::Zeroize;

use crate::cuda::Cuda;
#[cfg(feature = "driver")]
use crate::driver::Driver;
#[cfg(feature = "emulated")]
use crate::emulated::Emulated;

/// Names the device of programs that are not told one.
const VARIABLE: &str = "SYNCHROMESH_DEVICE";

/// Which device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The CPU.
    Cpu,
    /// A card, by its number from 0 on; none: the first that will do.
    Cuda(Option<usize>),
    /// The kernels of a card on the CPU.
    Emulated,
}

impl DeviceChoice {
    /// What the environment variable `SYNCHROMESH_DEVICE` names, else the CPU.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] where it names no device.
    pub fn of_environment() -> Result<Self, BackendError> {
        std::env::var(VARIABLE).map_or(Ok(Self::Cpu), |name| name.parse())
    }

    /// The devices of this machine that this crate was built for.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut found = vec![Self::Cpu];
        #[cfg(feature = "driver")]
        found.extend(Driver::list().into_iter().flatten().filter_map(|card| card.name.parse::<Self>().ok()));
        #[cfg(feature = "emulated")]
        found.push(Self::Emulated);
        found
    }
}

impl fmt::Display for DeviceChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(None) => f.write_str("cuda"),
            Self::Cuda(Some(number)) => write!(f, "cuda:{number}"),
            Self::Emulated => f.write_str("emulated"),
        }
    }
}

impl FromStr for DeviceChoice {
    type Err = BackendError;

    /// Reads "cpu", "cuda" for the first card that will do, "cuda:1" for the second of all, "emulated".
    fn from_str(text: &str) -> Result<Self, BackendError> {
        match text.split_once(':') {
            None if text == "cpu" => Ok(Self::Cpu),
            None if text == "cuda" => Ok(Self::Cuda(None)),
            None if text == "emulated" => Ok(Self::Emulated),
            Some(("cuda", number)) if let Ok(number) = number.parse() => Ok(Self::Cuda(Some(number))),
            _ => {
                let reason = "devices are cpu, cuda, cuda:1 and so on, emulated".to_owned();
                Err(BackendError::Unavailable { device: text.to_owned(), reason })
            }
        }
    }
}

/// One of the devices that this crate was built for. Results are those of every other, bit for bit.
pub enum AnyDevice {
    /// The CPU.
    Cpu(Cpu),
    /// A card.
    #[cfg(feature = "driver")]
    Cuda(Cuda<Driver>),
    /// The emulator.
    #[cfg(feature = "emulated")]
    Emulated(Cuda<Emulated>),
}

/// Runs an expression on the device inside.
macro_rules! on {
    ($outer:expr, $inner:ident => $body:expr) => {
        match $outer {
            AnyDevice::Cpu($inner) => $body,
            #[cfg(feature = "driver")]
            AnyDevice::Cuda($inner) => $body,
            #[cfg(feature = "emulated")]
            AnyDevice::Emulated($inner) => $body,
        }
    };
}

impl AnyDevice {
    /// Opens a device; the CPU on the threads of the process.
    ///
    /// # Errors
    /// [`BackendError::Unavailable`] for one that this machine lacks or this crate was not built for, and as
    /// [`Cpu::open`] and [`Cuda::new`].
    pub fn open(ring: &Arc<Ring>, choice: DeviceChoice) -> Result<Self, BackendError> {
        match choice {
            DeviceChoice::Cpu => Cpu::open(Arc::clone(ring)).map(Self::Cpu),
            #[cfg(feature = "driver")]
            DeviceChoice::Cuda(None) => <Cuda<Driver> as Open>::open(ring).map(Self::Cuda),
            #[cfg(feature = "driver")]
            DeviceChoice::Cuda(Some(number)) => Cuda::<Driver>::open(Arc::clone(ring), number).map(Self::Cuda),
            #[cfg(feature = "emulated")]
            DeviceChoice::Emulated => <Cuda<Emulated> as Open>::open(ring).map(Self::Emulated),
            #[cfg(not(all(feature = "driver", feature = "emulated")))]
            other => {
                let reason = "this program was built without it".to_owned();
                Err(BackendError::Unavailable { device: other.to_string(), reason })
            }
        }
    }
}

/// What comes of a device inside an [`AnyDevice`], and what goes to it.
trait Inside: Backend {
    fn wrap(&self, buffer: Self::Buffer) -> AnyBuffer;
    fn wrap_prepared(&self, conversion: Self::Conversion) -> AnyConversion;
    fn buffer<'a>(&self, outer: &'a AnyBuffer) -> Result<&'a Self::Buffer, BackendError>;
    fn buffer_mut<'a>(&self, outer: &'a mut AnyBuffer) -> Result<&'a mut Self::Buffer, BackendError>;
    fn prepared<'a>(&self, outer: &'a AnyConversion) -> Result<&'a Self::Conversion, BackendError>;
}

/// Declares what an [`AnyDevice`] has of each device, as an enum, and how the parts come out of it again.
macro_rules! each {
    ($($(#[$built:meta])? $name:ident: $device:ty),+) => {
        /// Memory of one of the devices.
        pub enum AnyBuffer { $(#[doc = concat!("Of `", stringify!($device), "`.")] $(#[$built])?
            $name(<$device as Backend>::Buffer)),+ }

        /// A base conversion that one of the devices has prepared.
        pub enum AnyConversion { $(#[doc = concat!("Of `", stringify!($device), "`.")] $(#[$built])?
            $name(Box<<$device as Backend>::Conversion>)),+ }

        impl Zeroize for AnyBuffer {
            fn zeroize(&mut self) {
                match self { $($(#[$built])? Self::$name(buffer) => buffer.zeroize()),+ }
            }
        }

        $($(#[$built])? impl Inside for $device {
            fn wrap(&self, buffer: Self::Buffer) -> AnyBuffer {
                AnyBuffer::$name(buffer)
            }

            fn wrap_prepared(&self, conversion: Self::Conversion) -> AnyConversion {
                AnyConversion::$name(Box::new(conversion))
            }

            fn buffer<'a>(&self, outer: &'a AnyBuffer) -> Result<&'a Self::Buffer, BackendError> {
                <AnyDevice as Around<Self>>::buffer(outer)
            }

            fn buffer_mut<'a>(&self, outer: &'a mut AnyBuffer) -> Result<&'a mut Self::Buffer, BackendError> {
                <AnyDevice as Around<Self>>::buffer_mut(outer)
            }

            fn prepared<'a>(&self, outer: &'a AnyConversion) -> Result<&'a Self::Conversion, BackendError> {
                <AnyDevice as Around<Self>>::prepared(outer)
            }
        }

        $(#[$built])? impl Around<$device> for AnyDevice {
            fn buffer(outer: &AnyBuffer) -> Result<&<$device as Backend>::Buffer, BackendError> {
                if let AnyBuffer::$name(buffer) = outer { Ok(buffer) } else { Err(other(stringify!($name))) }
            }

            fn buffer_mut(outer: &mut AnyBuffer) -> Result<&mut <$device as Backend>::Buffer, BackendError> {
                if let AnyBuffer::$name(buffer) = outer { Ok(buffer) } else { Err(other(stringify!($name))) }
            }

            fn prepared(outer: &AnyConversion) -> Result<&<$device as Backend>::Conversion, BackendError> {
                if let AnyConversion::$name(ready) = outer { Ok(ready) } else { Err(other(stringify!($name))) }
            }
        })+
    };
}

each!(
    Cpu: Cpu,
    #[cfg(feature = "driver")]
    Cuda: Cuda<Driver>,
    #[cfg(feature = "emulated")]
    Emulated: Cuda<Emulated>
);

fn other(device: &str) -> BackendError {
    BackendError::OtherDevice { device: device.to_lowercase() }
}

type Done = Result<(), BackendError>;

impl Backend for AnyDevice {
    type Buffer = AnyBuffer;
    type Conversion = AnyConversion;

    fn ring(&self) -> &Arc<Ring> {
        on!(self, device => device.ring())
    }

    fn keeps_repeated(&self) -> bool {
        on!(self, device => device.keeps_repeated())
    }

    fn threads(&self) -> Threads {
        on!(self, device => device.threads())
    }

    fn name(&self) -> String {
        on!(self, device => device.name())
    }

    fn alloc(&self, rows: usize) -> Result<AnyBuffer, BackendError> {
        on!(self, device => device.alloc(rows).map(|buffer| device.wrap(buffer)))
    }

    fn upload(&self, words: &[u64], buffer: &mut AnyBuffer, row: usize) -> Done {
        on!(self, device => device.upload(words, device.buffer_mut(buffer)?, row))
    }

    fn download(&self, buffer: &AnyBuffer, row: usize, words: &mut [u64]) -> Done {
        on!(self, device => device.download(device.buffer(buffer)?, row, words))
    }

    fn copy(&self, src: View<'_, Self>, dst: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.copy(src.inside()?, dst.inside()?))
    }

    fn reduce_signed(&self, primes: &[usize], values: &[i64], width: SignedWidth, dst: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.reduce_signed(primes, values, width, dst.inside()?))
    }

    fn uniform(&self, primes: &[usize], seed: &Seed, purpose: Purpose, digit: u32, dst: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.uniform(primes, seed, purpose, digit, dst.inside()?))
    }

    fn ntt_forward(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.ntt_forward(primes, x.inside()?))
    }

    fn ntt_inverse(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.ntt_inverse(primes, x.inside()?))
    }

    fn add_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        on!(self, device => device.add_assign(primes, x.inside()?, y.inside()?))
    }

    fn sub_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, y: View<'_, Self>) -> Done {
        on!(self, device => device.sub_assign(primes, x.inside()?, y.inside()?))
    }

    fn neg_assign(&self, primes: &[usize], x: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.neg_assign(primes, x.inside()?))
    }

    fn mul_into(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.mul_into(primes, a.inside()?, b.inside()?, out.inside()?))
    }

    fn mul_acc(&self, primes: &[usize], a: View<'_, Self>, b: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.mul_acc(primes, a.inside()?, b.inside()?, out.inside()?))
    }

    fn mul_scalar_assign(&self, primes: &[usize], x: ViewMut<'_, Self>, scalars: &[u64]) -> Done {
        on!(self, device => device.mul_scalar_assign(primes, x.inside()?, scalars))
    }

    fn mul_scalar_acc(&self, primes: &[usize], x: View<'_, Self>, scalars: &[u64], out: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.mul_scalar_acc(primes, x.inside()?, scalars, out.inside()?))
    }

    fn automorphism_coeff(&self, primes: &[usize], g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.automorphism_coeff(primes, g, x.inside()?, out.inside()?))
    }

    fn automorphism_ntt(&self, g: usize, x: View<'_, Self>, out: ViewMut<'_, Self>) -> Done {
        on!(self, device => device.automorphism_ntt(g, x.inside()?, out.inside()?))
    }

    fn conversion(&self, src: &IndexSet, dst: &IndexSet, spec: &ConvertSpec) -> Result<AnyConversion, BackendError> {
        on!(self, device => device.conversion(src, dst, spec).map(|ready| device.wrap_prepared(ready)))
    }

    fn convert(&self, ready: &AnyConversion, src: View<'_, Self>, dst: ViewMut<'_, Self>, mode: ConvertMode) -> Done {
        on!(self, device => device.convert(device.prepared(ready)?, src.inside()?, dst.inside()?, mode))
    }

    fn radix_digit(
        &self,
        primes: &[usize],
        from: usize,
        digit: RadixDigit,
        src: View<'_, Self>,
        dst: ViewMut<'_, Self>,
    ) -> Done {
        on!(self, device => device.radix_digit(primes, from, digit, src.inside()?, dst.inside()?))
    }

    fn inner_product(
        &self,
        primes: &[usize],
        digits: View<'_, Self>,
        [first, second]: [View<'_, Self>; 2],
        out: ViewMut<'_, Self>,
        accumulate: bool,
    ) -> Done {
        on!(self, device => {
            let keys = [first.inside()?, second.inside()?];
            device.inner_product(primes, digits.inside()?, keys, out.inside()?, accumulate)
        })
    }

    fn stage(&self, primes: &[usize], stage: Stage<'_, Self>) -> Done {
        on!(self, device => device.stage(primes, stage.inside()?))
    }
}
