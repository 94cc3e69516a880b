//! Page-locked memory of the host that copies to and from a card go through: a card reads and writes it by itself, so that a
//! copy to the card is over for the caller once the words are here, and one from it is taken on while the next is under way.

use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use zeroize::Zeroize;

/// Words of each of the parts that a copy is cut into.
const WORDS: usize = 1 << 19;
/// Parts under way at a time.
const PARTS: usize = 2;

/// One part, and the event that says that the card is done with it.
struct Part {
    words: *mut u64,
    over: sys::CUevent,
    /// How many words it may still hold.
    used: usize,
}

// SAFETY: memory and an event of the driver, which may be used from any thread once the context is current there.
unsafe impl Send for Part {}

/// The parts, taken in turn. Every method needs the context to be current.
pub(crate) struct Staging {
    parts: Vec<Part>,
    next: usize,
}

impl Staging {
    /// None yet: memory is asked for when it is first needed.
    pub(crate) const fn new() -> Self {
        Self { parts: Vec::new(), next: 0 }
    }

    /// A part that the card is done with.
    fn take(&mut self) -> Result<usize, DriverError> {
        if self.parts.len() < PARTS {
            // SAFETY: freed when this is dropped, and written before it is read.
            let words = unsafe { result::malloc_host(WORDS * size_of::<u64>(), 0)? }.cast::<u64>();
            match result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING) {
                Ok(over) => self.parts.push(Part { words, over, used: 0 }),
                Err(error) => {
                    // SAFETY: made above, and nobody has it.
                    let _ = unsafe { result::free_host(words.cast()) };
                    return Err(error);
                }
            }
        }
        let at = self.next % self.parts.len().max(1);
        self.next = (self.next + 1) % PARTS;
        self.parts[at].wait()?;
        Ok(at)
    }

    /// Queues a copy to the card; `words` are taken on before it returns.
    ///
    /// # Safety
    /// The memory at `address` holds as many words; the stream is alive.
    pub(crate) unsafe fn write(
        &mut self,
        words: &[u64],
        address: u64,
        stream: sys::CUstream,
    ) -> Result<(), DriverError> {
        for (i, chunk) in words.chunks(WORDS).enumerate() {
            let at = self.take()?;
            let part = &mut self.parts[at];
            // SAFETY: a part has WORDS words, and the card is done with it.
            let here = unsafe { std::slice::from_raw_parts_mut(part.words, chunk.len()) };
            here.copy_from_slice(chunk);
            part.used = part.used.max(chunk.len());
            let to = address + (i * WORDS * size_of::<u64>()) as u64;
            // SAFETY: by contract the memory is there; the part stays as it is until its event is over.
            unsafe { result::memcpy_htod_async(to, here, stream)? };
            // SAFETY: event and stream are alive.
            unsafe { result::event::record(part.over, stream)? };
        }
        Ok(())
    }

    /// Copies from the card, after the work that is queued.
    ///
    /// # Safety
    /// As [`Self::write`].
    pub(crate) unsafe fn read(
        &mut self,
        address: u64,
        words: &mut [u64],
        stream: sys::CUstream,
    ) -> Result<(), DriverError> {
        let mut before: Option<(usize, &mut [u64])> = None;
        for (i, chunk) in words.chunks_mut(WORDS).enumerate() {
            let at = self.take()?;
            let part = &mut self.parts[at];
            part.used = part.used.max(chunk.len());
            // SAFETY: a part has WORDS words, and the card is done with it.
            let here = unsafe { std::slice::from_raw_parts_mut(part.words, chunk.len()) };
            let from = address + (i * WORDS * size_of::<u64>()) as u64;
            // SAFETY: by contract the memory is there; the part is not read before its event is over.
            unsafe { result::memcpy_dtoh_async(here, from, stream)? };
            // SAFETY: event and stream are alive.
            unsafe { result::event::record(part.over, stream)? };
            if let Some((at, chunk)) = before.replace((at, chunk)) {
                self.parts[at].hand_out(chunk)?;
            }
        }
        before.map_or(Ok(()), |(at, chunk)| self.parts[at].hand_out(chunk))
    }

    /// Sets what copies have left here to 0: it may be of what a secret was.
    pub(crate) fn wipe(&mut self) {
        for part in &mut self.parts {
            // A card that fails here is lost, and touches it no more.
            let _ = part.wait();
            // SAFETY: a part has WORDS words, and the card is done with it.
            unsafe { std::slice::from_raw_parts_mut(part.words, part.used) }.zeroize();
            part.used = 0;
        }
    }
}

impl Part {
    /// Waits until the card is done with it.
    fn wait(&self) -> Result<(), DriverError> {
        // SAFETY: the event is alive; one that was never recorded is over.
        unsafe { result::event::synchronize(self.over) }
    }

    /// What was copied here, once it is.
    fn hand_out(&self, words: &mut [u64]) -> Result<(), DriverError> {
        self.wait()?;
        // SAFETY: a part has WORDS words, of which the card has written as many.
        words.copy_from_slice(unsafe { std::slice::from_raw_parts(self.words, words.len()) });
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.wipe();
        for part in &self.parts {
            // SAFETY: made by `take`, and nobody else has them; a driver that fails here is gone.
            unsafe {
                let _ = result::event::destroy(part.over);
                let _ = result::free_host(part.words.cast());
            }
        }
    }
}
