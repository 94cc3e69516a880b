//! Marks for Valgrind's memcheck: which memory is secret, and where what was made of secrets becomes public.
//!
//! Memcheck follows undefined memory through all arithmetic and reports every branch and every address that depends on
//! it. With the feature `memcheck` a test marks secrets as undefined ([`hide`]) before it runs an operation, and the
//! places where something made of secrets is published ([`reveal`]) mark it as defined again: what memcheck then reports
//! is a dependence of the time on a secret. Without the feature all of this is empty, and nothing of it is compiled.

/// `value`, which is public from here on although it was computed from secrets.
#[inline(always)]
#[must_use]
pub fn reveal<T: Copy>(value: T) -> T {
    #[cfg(all(feature = "memcheck", target_arch = "x86_64"))]
    let value = memcheck::marked(value, memcheck::MAKE_MEM_DEFINED);
    value
}

/// Says the same of a slice.
#[inline(always)]
pub fn reveal_all<T>(values: &[T]) {
    #[cfg(all(feature = "memcheck", target_arch = "x86_64"))]
    memcheck::mark(values, memcheck::MAKE_MEM_DEFINED);
    let _ = values;
}

/// `value`, which memcheck takes to be secret from here on.
#[inline(always)]
#[must_use]
pub fn hide<T: Copy>(value: T) -> T {
    #[cfg(all(feature = "memcheck", target_arch = "x86_64"))]
    let value = memcheck::marked(value, memcheck::MAKE_MEM_UNDEFINED);
    value
}

/// Says the same of a slice.
#[inline(always)]
pub fn hide_all<T>(values: &[T]) {
    #[cfg(all(feature = "memcheck", target_arch = "x86_64"))]
    memcheck::mark(values, memcheck::MAKE_MEM_UNDEFINED);
    let _ = values;
}

/// All bits of `bit`, which is 0 or 1: a mask to choose by, of which the compiler must not know that it has two values
/// only, as it then makes a branch of the choice.
#[inline(always)]
#[must_use]
pub fn mask(bit: u64) -> u64 {
    std::hint::black_box(bit.wrapping_neg())
}

/// Reports of memcheck so far; `None` where it does not watch.
#[must_use]
pub fn findings() -> Option<u64> {
    #[cfg(all(feature = "memcheck", target_arch = "x86_64"))]
    return memcheck::findings();
    #[cfg(not(all(feature = "memcheck", target_arch = "x86_64")))]
    None
}

/// Requests to the program that runs this one, in the form that Valgrind documents for its clients.
#[cfg(all(feature = "memcheck", target_arch = "x86_64"))]
mod memcheck {
    /// The requests of a tool begin at its two letters.
    const TOOL: u64 = (b'M' as u64) << 24 | (b'C' as u64) << 16;
    pub(super) const MAKE_MEM_UNDEFINED: u64 = TOOL + 1;
    pub(super) const MAKE_MEM_DEFINED: u64 = TOOL + 2;
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    const COUNT_ERRORS: u64 = 0x1201;

    /// The answer to a request, 0 outside Valgrind.
    fn request(number: u64, address: usize, bytes: usize) -> u64 {
        let arguments = [number, address as u64, bytes as u64, 0, 0, 0];
        let mut answer = 0u64;
        // SAFETY: the rotations add up to 128 bits, so that rdi is what it was, and the exchange is of a register with
        // itself: outside Valgrind nothing happens. Inside, memcheck reads the six words and changes rdx and its own
        // notes on the memory named, which is of a value that the caller borrows.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3", "rol rdi, 13", "rol rdi, 61", "rol rdi, 51", "xchg rbx, rbx",
                in("rax") arguments.as_ptr(),
                inout("rdx") answer,
            );
        }
        answer
    }

    pub(super) fn mark<T>(values: &[T], number: u64) {
        request(number, values.as_ptr() as usize, size_of_val(values));
    }

    /// By way of memory that the compiler must read again.
    #[inline(never)]
    pub(super) fn marked<T: Copy>(value: T, number: u64) -> T {
        let place = std::hint::black_box([value]);
        mark(&place, number);
        std::hint::black_box(place)[0]
    }

    pub(super) fn findings() -> Option<u64> {
        (request(RUNNING_ON_VALGRIND, 0, 0) != 0).then(|| request(COUNT_ERRORS, 0, 0))
    }
}
