//! Which vector instructions this CPU has, and in how many pipes it multiplies: the only file that asks.
//!
//! The choice never alters a result; every kernel returns the same bits on every [`Isa`].

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

/// Environment variable that lowers the instruction set [`Isa::detect`] returns.
pub const ISA_VARIABLE: &str = "SYNCHROMESH_ISA";

/// Instruction sets the kernels are compiled for, from the least to the most capable on each architecture.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Isa {
    /// Plain 64-bit integer code; runs everywhere.
    Scalar,
    /// 128-bit vectors of WebAssembly, 2 lanes; in programs compiled with the target feature `simd128`.
    Simd128,
    /// 128-bit vectors of aarch64, 2 lanes; in doubles for moduli under 2^50.
    Neon,
    /// 256-bit vectors (AVX2, FMA), 4 lanes; in doubles for moduli under 2^50.
    Avx2,
    /// 512-bit vectors (F, DQ, VL), 8 lanes; in doubles for moduli under 2^50.
    Avx512,
    /// AVX-512 with 52-bit multiply-add; used for moduli under 2^50, [`Isa::Avx512`] above.
    Ifma,
}

/// In how many of its vector pipes a core multiplies, which decides what the forward transform of 52-bit lanes is made of.
/// The same bits come out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Multipliers {
    /// In every one, as Intel's do at 512 bits: the fewest operations are the fastest.
    Every,
    /// In half of them, as AMD's do since Zen 4: sums cost nothing beside as many products.
    Half,
}

impl Multipliers {
    /// What this CPU has, by its maker.
    #[must_use]
    pub fn detect() -> Self {
        // Virtual machines take long to answer.
        static FOUND: LazyLock<Multipliers> = LazyLock::new(|| {
            let halves = [*b"AuthenticAMD", *b"HygonGenuine"].contains(&maker());
            if halves { Multipliers::Half } else { Multipliers::Every }
        });
        *FOUND
    }
}

/// The maker of this CPU as it says.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn maker() -> [u8; 12] {
    #[allow(unused_unsafe, reason = "safe in later versions of the language")]
    // SAFETY: every x86-64 has the instruction.
    let leaf = unsafe { std::arch::x86_64::__cpuid(0) };
    let mut name = [0; 12];
    name.copy_from_slice([leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).as_flattened());
    name
}

/// No CPU to ask.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
const fn maker() -> [u8; 12] {
    [0; 12]
}

/// Why an instruction set cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IsaError {
    /// The name is none of [`Isa::ALL`].
    #[error("unknown instruction set {name:?}; use one of {}", Isa::ALL.map(Isa::name).join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The CPU lacks it.
    #[error("this CPU lacks {asked}; the best it has is {best}: lower {ISA_VARIABLE} or unset it")]
    Unavailable {
        /// What was asked for.
        asked: Isa,
        /// The most capable instruction set present.
        best: Isa,
    },
}

impl Isa {
    /// Every instruction set, in increasing order.
    pub const ALL: [Self; 6] = [Self::Scalar, Self::Simd128, Self::Neon, Self::Avx2, Self::Avx512, Self::Ifma];

    /// The name used in the environment variable, in reports and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::Simd128 => "simd128",
            Self::Neon => "neon",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Ifma => "ifma",
        }
    }

    /// Whether its kernels for moduli under 2^50 multiply 52 bits at a time, in words or in doubles.
    #[must_use]
    pub fn multiplies_narrow(self) -> bool {
        matches!(self, Self::Neon | Self::Avx2 | Self::Avx512 | Self::Ifma)
    }

    /// Whether those multiply doubles.
    pub(crate) fn multiplies_doubles(self) -> bool {
        matches!(self, Self::Neon | Self::Avx2 | Self::Avx512)
    }

    /// Whether this CPU can run it.
    #[must_use]
    pub fn is_available(self) -> bool {
        self == Self::Scalar || self.is_vector_available()
    }

    #[cfg(target_arch = "x86_64")]
    fn is_vector_available(self) -> bool {
        let avx512 = || {
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
        };
        match self {
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            Self::Avx512 => avx512(),
            Self::Ifma => avx512() && is_x86_feature_detected!("avx512ifma"),
            _ => false,
        }
    }

    #[cfg(target_arch = "aarch64")]
    fn is_vector_available(self) -> bool {
        self == Self::Neon && std::arch::is_aarch64_feature_detected!("neon")
    }

    // A WebAssembly module is refused as a whole where the machine lacks what is in it: nothing is left to ask.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    fn is_vector_available(self) -> bool {
        self == Self::Simd128 && cfg!(all(target_arch = "wasm32", target_feature = "simd128"))
    }

    /// Every instruction set this CPU can run, in increasing order; never empty.
    #[must_use]
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available()).collect()
    }

    /// The best instruction set this CPU can run.
    #[must_use]
    pub fn best() -> Self {
        Self::Ifma.lowered()
    }

    /// The most capable instruction set of this CPU that is not above this one.
    #[must_use]
    pub fn lowered(self) -> Self {
        let mut sets = Self::ALL.into_iter().rev();
        sets.find(|isa| *isa <= self && isa.is_available()).unwrap_or(Self::Scalar)
    }

    /// The instruction set to use: the best one, or what [`ISA_VARIABLE`] asks for.
    ///
    /// # Errors
    /// [`IsaError::Unknown`] for a name that is none of [`Isa::ALL`], [`IsaError::Unavailable`] for one the CPU lacks.
    pub fn detect() -> Result<Self, IsaError> {
        match std::env::var_os(ISA_VARIABLE) {
            None => Ok(Self::best()),
            Some(name) => Self::choose(&name.to_string_lossy()),
        }
    }

    /// The instruction set called `name`, if this CPU has it.
    ///
    /// # Errors
    /// As [`Isa::detect`].
    pub fn choose(name: &str) -> Result<Self, IsaError> {
        name.parse::<Self>()?.require()
    }

    /// Itself, if this CPU has it.
    ///
    /// # Errors
    /// [`IsaError::Unavailable`].
    pub fn require(self) -> Result<Self, IsaError> {
        if self.is_available() { Ok(self) } else { Err(IsaError::Unavailable { asked: self, best: Self::best() }) }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Self, IsaError> {
        Self::ALL
            .into_iter()
            .find(|isa| isa.name() == name)
            .ok_or_else(|| IsaError::Unknown { name: name.chars().take(32).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_strangers_are_refused() {
        for isa in Isa::ALL {
            assert_eq!(isa.name().parse(), Ok(isa));
        }
        assert_eq!("AVX2".parse::<Isa>(), Err(IsaError::Unknown { name: "AVX2".into() }));
        assert!("".parse::<Isa>().is_err());
        let refusal = "sse".parse::<Isa>().unwrap_err().to_string();
        assert!(Isa::ALL.iter().all(|isa| refusal.contains(isa.name())), "{refusal}");
    }

    #[test]
    fn what_the_cpu_lacks_is_an_error() {
        assert_eq!(Isa::available()[0], Isa::Scalar);
        for isa in Isa::ALL {
            let expected =
                if isa.is_available() { Ok(isa) } else { Err(IsaError::Unavailable { asked: isa, best: Isa::best() }) };
            assert_eq!(Isa::choose(isa.name()), expected);
            let lowered = isa.lowered();
            assert!(lowered <= isa && lowered.is_available() && (lowered == isa) == isa.is_available(), "{isa}");
        }
    }
}
