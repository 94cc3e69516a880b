//! Device memory: buffers that go back to a pool when dropped, within a budget of bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zeroize::Zeroize;

use crate::device::{Device, DeviceError};

/// Memory of one size is handed out again without asking the device.
pub(crate) struct Pool<D: Device> {
    device: D,
    budget: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses by size in bytes.
    free: HashMap<usize, Vec<u64>>,
    free_bytes: u64,
    used_bytes: u64,
}

impl<D: Device> Pool<D> {
    pub(crate) fn new(device: D, budget: u64) -> Arc<Self> {
        Arc::new(Self { device, budget, state: Mutex::default() })
    }

    pub(crate) const fn device(&self) -> &D {
        &self.device
    }

    pub(crate) const fn budget(&self) -> u64 {
        self.budget
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that buffers hold.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.state().used_bytes
    }

    /// A buffer of `words` words, contents unspecified.
    pub(crate) fn take(self: &Arc<Self>, words: usize) -> Result<DeviceBuffer<D>, DeviceError> {
        let bytes = words * size_of::<u64>();
        let address = if bytes == 0 { 0 } else { self.address(bytes)? };
        Ok(DeviceBuffer { pool: Arc::clone(self), address, words })
    }

    fn address(&self, bytes: usize) -> Result<u64, DeviceError> {
        let mut state = self.state();
        let needed = bytes as u64;
        let refusal = |in_use| DeviceError::MemoryBudget {
            device: self.device.properties().name.clone(),
            needed,
            in_use,
            budget: self.budget,
        };
        let address = if let Some(address) = state.free.get_mut(&bytes).and_then(Vec::pop) {
            state.free_bytes -= needed;
            address
        } else {
            if state.used_bytes + needed > self.budget {
                return Err(refusal(state.used_bytes));
            }
            if state.used_bytes + state.free_bytes + needed > self.budget {
                self.release(&mut state);
            }
            match self.device.allocate(bytes) {
                Err(DeviceError::MemoryBudget { .. }) => {
                    self.release(&mut state);
                    let retried = self.device.allocate(bytes);
                    let in_use = state.used_bytes;
                    retried
                        .map_err(|e| if matches!(e, DeviceError::MemoryBudget { .. }) { refusal(in_use) } else { e })?
                }
                outcome => outcome?,
            }
        };
        state.used_bytes += needed;
        Ok(address)
    }

    /// Gives the memory that nobody holds back to the device.
    fn release(&self, state: &mut State) {
        state.free_bytes = 0;
        for (bytes, addresses) in state.free.drain() {
            for address in addresses {
                // SAFETY: the address came from this device for this size, and no buffer has it.
                unsafe { self.device.free(address, bytes) };
            }
        }
    }
}

impl<D: Device> Drop for Pool<D> {
    fn drop(&mut self) {
        let mut state = std::mem::take(&mut *self.state());
        self.release(&mut state);
    }
}

/// Memory of a device; goes back to its pool when dropped.
pub struct DeviceBuffer<D: Device> {
    pool: Arc<Pool<D>>,
    address: u64,
    words: usize,
}

impl<D: Device> DeviceBuffer<D> {
    /// Where it is on the device.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// Words of it.
    #[must_use]
    pub const fn words(&self) -> usize {
        self.words
    }

    pub(crate) fn is_of(&self, pool: &Arc<Pool<D>>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }

    /// The address of `words` words from `first` on.
    fn part(&self, first: usize, words: usize) -> Result<u64, DeviceError> {
        match first.checked_add(words) {
            Some(end) if end <= self.words => Ok(self.address + (first * size_of::<u64>()) as u64),
            _ => Err(DeviceError::NoSuchRow { row: first.saturating_add(words), rows: self.words }),
        }
    }

    /// Writes words from `first` on.
    pub(crate) fn write(&mut self, first: usize, words: &[u64]) -> Result<(), DeviceError> {
        let address = self.part(first, words.len())?;
        // SAFETY: `part` has checked the range.
        unsafe { self.pool.device.write(words, address) }
    }

    /// Reads words from `first` on.
    pub(crate) fn read(&self, first: usize, words: &mut [u64]) -> Result<(), DeviceError> {
        let address = self.part(first, words.len())?;
        // SAFETY: `part` has checked the range.
        unsafe { self.pool.device.read(address, words) }
    }
}

impl<D: Device> Zeroize for DeviceBuffer<D> {
    /// Clears the memory, after the work that is queued. A device that fails here is lost, and its memory with it.
    fn zeroize(&mut self) {
        if self.words > 0 {
            // SAFETY: the buffer has as many words.
            let _ = unsafe { self.pool.device.clear(self.address, self.words) };
        }
    }
}

impl<D: Device> Drop for DeviceBuffer<D> {
    fn drop(&mut self) {
        let bytes = self.words * size_of::<u64>();
        if bytes > 0 {
            let mut state = self.pool.state();
            state.used_bytes -= bytes as u64;
            state.free_bytes += bytes as u64;
            state.free.entry(bytes).or_default().push(self.address);
        }
    }
}
