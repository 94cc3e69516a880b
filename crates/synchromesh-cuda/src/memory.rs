//! Device memory: buffers that go back to a pool when dropped, within a budget of bytes; and work, queued or written down.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use zeroize::Zeroize;

use crate::device::{Device, DeviceError};
use crate::work::{Argument, Arguments, Launch, Work};

/// Memory of one size is handed out again without asking the device.
pub(crate) struct Pool<D: Device> {
    device: D,
    budget: u64,
    uploaded: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Addresses by size in bytes.
    free: HashMap<usize, Vec<u64>>,
    free_bytes: u64,
    /// Bytes that buffers hold, and recordings.
    used_bytes: u64,
    recorder: Option<Recorder>,
    /// Memory that belongs to recordings, by address: whether a buffer holds it.
    recorded: HashMap<u64, bool>,
}

/// What one thread's work is written down in.
struct Recorder {
    thread: ThreadId,
    /// Operands whose work is merged.
    operands: usize,
    work: Vec<Work>,
    /// Memory taken for the operand in progress and dropped again, by size: operands share none, as their work is merged.
    free: HashMap<usize, Vec<u64>>,
    /// All memory taken.
    taken: Vec<(u64, usize)>,
    /// How much of it was for earlier operands.
    before: usize,
}

impl State {
    /// The recorder, on the thread that records.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut().filter(|recorder| recorder.thread == thread::current().id())
    }

    /// Takes back the memory of a dropped buffer.
    fn put(&mut self, address: u64, bytes: usize) {
        if let Some(held) = self.recorded.get_mut(&address) {
            *held = false;
            if let Some(recorder) = &mut self.recorder
                && recorder.taken[recorder.before..].contains(&(address, bytes))
            {
                recorder.free.entry(bytes).or_default().push(address);
            }
            return;
        }
        self.used_bytes -= bytes as u64;
        self.free_bytes += bytes as u64;
        self.free.entry(bytes).or_default().push(address);
    }
}

impl<D: Device> Pool<D> {
    pub(crate) fn new(device: D, budget: u64) -> Arc<Self> {
        Arc::new(Self { device, budget, uploaded: AtomicU64::new(0), state: Mutex::default() })
    }

    pub(crate) const fn device(&self) -> &D {
        &self.device
    }

    pub(crate) const fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes that were copied to the device.
    pub(crate) fn uploaded_bytes(&self) -> u64 {
        self.uploaded.load(Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that buffers and recordings hold.
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
        let again = state.recorder().and_then(|recorder| recorder.free.get_mut(&bytes)).and_then(Vec::pop);
        if let Some(address) = again {
            state.recorded.insert(address, true);
            return Ok(address);
        }
        let address = match state.free.get_mut(&bytes).and_then(Vec::pop) {
            Some(address) => {
                state.free_bytes -= bytes as u64;
                address
            }
            None => self.allocate(&mut state, bytes)?,
        };
        state.used_bytes += bytes as u64;
        if let Some(recorder) = state.recorder() {
            recorder.taken.push((address, bytes));
            state.recorded.insert(address, true);
        }
        Ok(address)
    }

    /// New memory of the device, within the budget.
    fn allocate(&self, state: &mut State, bytes: usize) -> Result<u64, DeviceError> {
        let needed = bytes as u64;
        let refusal = |state: &State, budget| DeviceError::MemoryBudget {
            device: self.device.properties().name.clone(),
            needed,
            in_use: state.used_bytes,
            budget,
        };
        let over = |state: &State| state.used_bytes + state.free_bytes + needed > self.budget;
        if over(state) && state.used_bytes + needed <= self.budget {
            self.release(state);
        }
        if over(state) {
            return Err(refusal(state, self.budget));
        }
        match self.device.allocate(bytes) {
            Err(DeviceError::MemoryBudget { .. }) => {
                self.release(state);
                let retried = self.device.allocate(bytes);
                // Others hold what the budget would allow.
                retried.map_err(|e| match e {
                    DeviceError::MemoryBudget { .. } => refusal(state, state.used_bytes),
                    e => e,
                })
            }
            outcome => outcome,
        }
    }

    /// Gives the memory that nobody holds back to the device; none while there are recordings, as those may read it.
    fn release(&self, state: &mut State) {
        if !state.recorded.is_empty() {
            return;
        }
        state.free_bytes = 0;
        for (bytes, addresses) in state.free.drain() {
            for address in addresses {
                // What is given back may have held a secret key. A device that fails here is lost, and its memory with it.
                // SAFETY: the address came from this device for this size, and no buffer has it.
                unsafe {
                    let _ = self.device.clear(address, bytes / size_of::<u64>());
                    self.device.free(address, bytes);
                }
            }
        }
    }

    /// Queues a kernel, or writes it down.
    ///
    /// # Safety
    /// As [`Device::launch`].
    pub(crate) unsafe fn launch(
        &self,
        kernel: &'static CStr,
        launch: Launch,
        arguments: &[Argument<'_>],
    ) -> Result<(), DeviceError> {
        let arguments = Arguments::new(arguments);
        if let Some(recorder) = self.state().recorder() {
            recorder.work.push(Work::Launch { kernel: Cow::Borrowed(kernel), launch, arguments });
            return Ok(());
        }
        // SAFETY: forwarded contract.
        unsafe { self.device.launch(kernel, launch, &arguments) }
    }

    /// Refuses what cannot be written down.
    fn refuse_while_recording(&self, operation: &'static str) -> Result<(), DeviceError> {
        if self.state().recorder().is_some() { Err(DeviceError::Recording { operation }) } else { Ok(()) }
    }

    /// From now on this thread's work is written down and not done.
    pub(crate) fn begin_recording(&self, operands: usize) -> Result<(), DeviceError> {
        let mut state = self.state();
        if state.recorder.is_some() {
            return Err(DeviceError::Recording { operation: "another recording" });
        }
        let (work, free, taken) = (Vec::new(), HashMap::new(), Vec::new());
        let thread = thread::current().id();
        state.recorder = Some(Recorder { thread, operands, work, free, taken, before: 0 });
        Ok(())
    }

    /// Operands whose work goes into one launch: 1 where none is written down.
    pub(crate) fn operands(&self) -> usize {
        self.state().recorder().map_or(1, |recorder| recorder.operands)
    }

    /// What was written down for one operand; the next one shares no memory with it.
    pub(crate) fn end_operand(&self) -> Vec<Work> {
        let mut state = self.state();
        let Some(recorder) = state.recorder() else { return Vec::new() };
        recorder.free.clear();
        recorder.before = recorder.taken.len();
        std::mem::take(&mut recorder.work)
    }

    /// Work is done again; the memory that was taken stays as it is until [`Pool::forget`].
    pub(crate) fn end_recording(&self) -> Vec<(u64, usize)> {
        self.state().recorder.take().map_or_else(Vec::new, |recorder| recorder.taken)
    }

    /// Takes back the memory of a recording, or leaves it to the buffers that hold it.
    pub(crate) fn forget(&self, memory: &[(u64, usize)]) {
        let mut state = self.state();
        for &(address, bytes) in memory {
            if state.recorded.remove(&address) == Some(false) {
                state.put(address, bytes);
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
        self.pool.refuse_while_recording("a copy to the device")?;
        let address = self.part(first, words.len())?;
        // A driver may refuse to copy nothing.
        if words.is_empty() {
            return Ok(());
        }
        self.pool.uploaded.fetch_add(size_of_val(words) as u64, Ordering::Relaxed);
        // SAFETY: `part` has checked the range.
        unsafe { self.pool.device.write(words, address) }
    }

    /// Reads words from `first` on.
    pub(crate) fn read(&self, first: usize, words: &mut [u64]) -> Result<(), DeviceError> {
        self.pool.refuse_while_recording("a copy from the device")?;
        let address = self.part(first, words.len())?;
        if words.is_empty() {
            return Ok(());
        }
        // SAFETY: `part` has checked the range.
        unsafe { self.pool.device.read(address, words) }
    }
}

impl<D: Device> Zeroize for DeviceBuffer<D> {
    /// Clears the memory, after the work that is queued. A device that fails here is lost, and its memory with it.
    fn zeroize(&mut self) {
        if self.words > 0 {
            if let Some(recorder) = self.pool.state().recorder() {
                recorder.work.push(Work::Clear { address: self.address, words: self.words });
                return;
            }
            // SAFETY: the buffer has as many words.
            let _ = unsafe { self.pool.device.clear(self.address, self.words) };
        }
    }
}

impl<D: Device> Drop for DeviceBuffer<D> {
    fn drop(&mut self) {
        let bytes = self.words * size_of::<u64>();
        if bytes > 0 {
            self.pool.state().put(self.address, bytes);
        }
    }
}
