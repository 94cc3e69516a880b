//! An NVIDIA card through the driver's own interface, loaded when it is first asked for.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{result, sys};
use synchromesh_ring::backend::Open;
use synchromesh_ring::prime::ntt_primes;
use synchromesh_ring::{BackendError, Ring};

use crate::cuda::{Cuda, ONE_BLOCK_LOG_N};
use crate::device::{Device, DeviceError, First, MAX_CLUSTER, Properties};
use crate::launch::{NTT_THREADS, shared_bytes};
use crate::staging::Staging;
use crate::work::{Arguments, Launch, Work};

/// The kernels as PTX, made by `cargo xtask kernels`.
const PTX: [&str; 5] = [
    include_str!("../ptx/kernels.ptx"),
    include_str!("../ptx/ntt_forward.ptx"),
    include_str!("../ptx/ntt_forward_sum.ptx"),
    include_str!("../ptx/ntt_inverse.ptx"),
    include_str!("../ptx/key_switch.ptx"),
];
/// Those that run in clusters of blocks, for cards that have them.
const CLUSTER_PTX: &str = include_str!("../ptx/cluster.ptx");
/// The version of CUDA whose drivers know that PTX.
const PTX_CUDA: (i32, i32) = (12, 0);
/// The least compute capability that the PTX is for.
const CAPABILITY: (i32, i32) = (8, 0);
/// The least one that the kernels in clusters are for.
const CLUSTER_CAPABILITY: (i32, i32) = (9, 0);
/// Widths of the primes that a card is tried with, in bits.
const USABLE_BITS: [u32; 4] = [30, 47, 50, 60];
/// log2 of the degree: two passes, or a cluster.
const USABLE_LOG_N: u32 = 14;
/// Dynamic shared memory that a kernel has without asking.
const SHARED_UNASKED: u32 = 48 << 10;

/// An NVIDIA card, with a queue of its own in the card's primary context.
pub struct Driver {
    properties: Properties,
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// What the driver has made of each PTX.
    modules: Vec<(&'static str, sys::CUmodule)>,
    functions: Mutex<HashMap<CString, Function>>,
    staging: Mutex<Staging>,
}

/// A kernel found in the module.
#[derive(Clone, Copy)]
struct Function {
    handle: sys::CUfunction,
    /// Dynamic shared memory it has been allowed.
    shared: u32,
}

// SAFETY: the driver's interface may be called from any thread with these handles, once the context is current there,
// as it is made in every method.
unsafe impl Send for Driver {}
// SAFETY: as above; the map of functions is behind a lock.
unsafe impl Sync for Driver {}

/// How an operation of the driver ended, in this crate's words.
fn lost(device: &str, operation: &'static str, error: result::DriverError) -> DeviceError {
    DeviceError::Lost { device: device.to_owned(), operation, reason: format!("{:?}", error.0) }
}

/// That blocks are in clusters of so many.
fn cluster_of(blocks: u32) -> sys::CUlaunchAttribute {
    let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
    value.clusterDim = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: blocks, y: 1, z: 1 };
    let id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    sys::CUlaunchAttribute { id, pad: [0; 4], value }
}

/// Loads the driver; the number of devices it has.
fn load() -> Result<usize, DeviceError> {
    const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
    // SAFETY: looks for the library and loads it; nothing is called.
    if !unsafe { sys::is_culib_present() } {
        return Err(DeviceError::NoDriver { library: LIBRARY });
    }
    let failed = |operation| move |error| lost("cuda", operation, error);
    match result::init() {
        Err(result::DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => return Ok(0),
        outcome => outcome.map_err(failed("initialisation"))?,
    }
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map_err(failed("initialisation"))?;
    let have = (version / 1000, version % 1000 / 10);
    if have < PTX_CUDA {
        let words = |(major, minor): (i32, i32)| format!("{major}.{minor}");
        return Err(DeviceError::OldDriver { have: words(have), need: words(PTX_CUDA) });
    }
    let count = result::device::get_count().map_err(failed("initialisation"))?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn attribute(device: sys::CUdevice, name: &str, which: sys::CUdevice_attribute) -> Result<i32, DeviceError> {
    // SAFETY: the device is one that the driver has given.
    unsafe { result::device::get_attribute(device, which) }.map_err(|error| lost(name, "an attribute", error))
}

/// What is known of device `ordinal` without opening it.
fn describe(ordinal: usize) -> Result<(sys::CUdevice, Properties), DeviceError> {
    let name = format!("cuda:{ordinal}");
    let failed = |error| lost(&name, "a description", error);
    let device = result::device::get(ordinal as i32).map_err(failed)?;
    let model = result::device::get_name(device).map_err(failed)?;
    // SAFETY: the device is one that the driver has given.
    let memory_bytes = unsafe { result::device::total_mem(device) }.map_err(failed)? as u64;
    let get = |which| attribute(device, &name, which);
    let have = (
        get(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        get(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    if have < CAPABILITY {
        let words = |(major, minor): (i32, i32)| format!("{major}.{minor}");
        return Err(DeviceError::Unsupported { device: model, have: words(have), need: words(CAPABILITY) });
    }
    let shared = get(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let cache_bytes = u64::from(get(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.unsigned_abs());
    let ratio = get(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)?;
    let clusters = have >= CLUSTER_CAPABILITY && get(sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH)? != 0;
    let (shared_bytes, fast_doubles) = (shared.unsigned_abs(), (1..=2).contains(&ratio));
    let cluster_blocks = if clusters { MAX_CLUSTER } else { 1 };
    let properties = Properties { name, model, memory_bytes, shared_bytes, cache_bytes, cluster_blocks, fast_doubles };
    Ok((device, properties))
}

/// The devices that the kernels can run on, with their numbers: at least one.
fn usable() -> Result<Vec<(usize, Properties)>, DeviceError> {
    let count = load()?;
    let mut reason = DeviceError::NoDevice { ordinal: 0, count };
    let mut devices = Vec::new();
    for ordinal in 0..count {
        match describe(ordinal) {
            Ok((_, properties)) => devices.push((ordinal, properties)),
            Err(error) => reason = error,
        }
    }
    if devices.is_empty() { Err(reason) } else { Ok(devices) }
}

impl Driver {
    /// The devices of this machine that the kernels can run on.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`], [`DeviceError::OldDriver`], [`DeviceError::NoDevice`] where there is none,
    /// [`DeviceError::Unsupported`] where all are too old.
    pub fn list() -> Result<Vec<Properties>, DeviceError> {
        Ok(usable()?.into_iter().map(|(_, properties)| properties).collect())
    }

    /// Opens the first device of [`Driver::list`].
    ///
    /// # Errors
    /// Those of [`Driver::list`], and [`DeviceError::Lost`] when the driver fails.
    pub fn first() -> Result<Self, DeviceError> {
        Self::open(usable()?[0].0)
    }

    /// Opens device `ordinal` and gives it the kernels.
    ///
    /// # Errors
    /// [`DeviceError::NoDriver`], [`DeviceError::OldDriver`], [`DeviceError::NoDevice`], [`DeviceError::Unsupported`],
    /// [`DeviceError::Kernels`] when its compiler refuses them, [`DeviceError::Lost`] when the driver fails.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        let count = load()?;
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        let (device, properties) = describe(ordinal)?;
        // SAFETY: the device is one that the driver has given; the context is released with this object.
        let context =
            unsafe { result::primary_ctx::retain(device) }.map_err(|error| lost(&properties.name, "opening", error))?;
        // From here on what has been made is given back when `opened` is dropped.
        let (stream, modules) = (std::ptr::null_mut(), Vec::new());
        let mut opened = Self {
            device,
            context,
            stream,
            modules,
            functions: Mutex::default(),
            staging: Mutex::new(Staging::new()),
            properties,
        };
        let name = opened.properties.name.clone();
        let failed = |error| lost(&name, "opening", error);
        // SAFETY: the context is alive.
        unsafe { result::ctx::set_current(context) }.map_err(failed)?;
        opened.stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(failed)?;
        let clusters = (opened.properties.cluster_blocks > 1).then_some(CLUSTER_PTX);
        for text in PTX.into_iter().chain(clusters) {
            let module = opened.module(text)?;
            opened.modules.push((text, module));
        }
        opened.properties.cluster_blocks = opened.largest_cluster()?;
        Ok(opened)
    }

    /// Has the driver compile PTX.
    fn module(&self, text: &str) -> Result<sys::CUmodule, DeviceError> {
        const LOG_BYTES: usize = 8 << 10;
        let image = [text.as_bytes(), &[0]].concat();
        let mut log = vec![0u8; LOG_BYTES];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(LOG_BYTES)];
        let (mut module, count) = (std::ptr::null_mut(), options.len() as u32);
        // SAFETY: PTX text that ends in a zero byte; the buffer is as long as its option says, and there when it is written.
        let status = unsafe {
            let image = image.as_ptr().cast::<c_void>();
            sys::cuModuleLoadDataEx(&raw mut module, image, count, options.as_mut_ptr(), values.as_mut_ptr())
        };
        status.result().map(|()| module).map_err(|error| {
            let said = log.split(|&byte| byte == 0).next().unwrap_or_default();
            let reason = format!("{:?}: {}", error.0, String::from_utf8_lossy(said).trim());
            DeviceError::Kernels { device: self.properties.name.clone(), reason }
        })
    }

    /// The most blocks of a cluster that the card has room for, of all kernels in clusters; 1 where it has none.
    fn largest_cluster(&self) -> Result<u32, DeviceError> {
        const KERNELS: [&CStr; 6] = [
            c"ntt_forward_cluster",
            c"ntt_forward_sum_cluster",
            c"ntt_inverse_cluster",
            c"ntt_forward_cluster_merged",
            c"ntt_forward_sum_cluster_merged",
            c"ntt_inverse_cluster_merged",
        ];
        let mut blocks = self.properties.cluster_blocks;
        for kernel in KERNELS {
            while blocks > 1 && self.active_clusters(kernel, blocks)? == 0 {
                blocks /= 2;
            }
        }
        Ok(blocks)
    }

    /// How many clusters of so many of the largest blocks run at a time.
    fn active_clusters(&self, kernel: &CStr, blocks: u32) -> Result<u32, DeviceError> {
        let shared = shared_bytes(ONE_BLOCK_LOG_N);
        let function = self.function(kernel, shared)?;
        let mut attribute = cluster_of(blocks);
        let config = sys::CUlaunchConfig {
            gridDimX: blocks,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: NTT_THREADS,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared,
            hStream: self.stream,
            attrs: &raw mut attribute,
            numAttrs: 1,
        };
        let mut count = 0;
        // SAFETY: writes one integer; the function is a module's.
        let status = unsafe { sys::cuOccupancyMaxActiveClusters(&raw mut count, function, &raw const config) };
        status.result().map_err(self.lost("a question of clusters"))?;
        Ok(count.unsigned_abs())
    }

    /// Makes the context current on this thread.
    fn enter(&self, operation: &'static str) -> Result<(), DeviceError> {
        // SAFETY: the context is alive as long as this object.
        unsafe { result::ctx::set_current(self.context) }.map_err(|error| self.lost(operation)(error))
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self, operation: &'static str) -> impl Fn(result::DriverError) -> DeviceError + '_ {
        move |error| lost(&self.properties.name, operation, error)
    }

    /// What is wrong with a launch, unless it is that the device has failed before.
    fn refused(&self, kernel: &CStr, error: result::DriverError) -> DeviceError {
        match error.0 {
            sys::CUresult::CUDA_ERROR_INVALID_VALUE
            | sys::CUresult::CUDA_ERROR_INVALID_HANDLE
            | sys::CUresult::CUDA_ERROR_NOT_FOUND
            | sys::CUresult::CUDA_ERROR_NOT_SUPPORTED
            | sys::CUresult::CUDA_ERROR_INVALID_CLUSTER_SIZE
            | sys::CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => DeviceError::Launch {
                device: self.properties.name.clone(),
                kernel: kernel.to_string_lossy().into_owned(),
                reason: format!("{:?}", error.0),
            },
            _ => lost(&self.properties.name, "a launch", error),
        }
    }

    /// A kernel of the modules, allowed `shared` bytes of dynamic shared memory.
    fn function(&self, kernel: &CStr, shared: u32) -> Result<sys::CUfunction, DeviceError> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = |error| self.refused(kernel, error);
        let mut function = match functions.get(kernel) {
            Some(function) => *function,
            None => {
                // A module without it is not asked: sanitizers take the driver's answer for a fault of ours.
                let entry = format!(".entry {}(", kernel.to_string_lossy());
                let Some((_, module)) = self.modules.iter().find(|(text, _)| text.contains(&entry)) else {
                    return Err(refused(result::DriverError(sys::CUresult::CUDA_ERROR_NOT_FOUND)));
                };
                let mut handle = std::ptr::null_mut();
                // SAFETY: the module is loaded, and the name ends in a zero byte.
                let status = unsafe { sys::cuModuleGetFunction(&raw mut handle, *module, kernel.as_ptr()) };
                status.result().map_err(refused)?;
                Function { handle, shared: SHARED_UNASKED }
            }
        };
        if shared > function.shared {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function is a module's.
            unsafe { result::function::set_function_attribute(function.handle, which, shared as i32) }
                .map_err(refused)?;
            function.shared = shared;
        }
        functions.insert(kernel.to_owned(), function);
        Ok(function.handle)
    }

    /// Queues a kernel on a stream.
    ///
    /// # Safety
    /// As [`Device::launch`]; the stream is alive.
    unsafe fn launch_on(
        &self,
        stream: sys::CUstream,
        (kernel, launch, arguments): (&CStr, Launch, &Arguments),
    ) -> Result<(), DeviceError> {
        self.enter("a launch")?;
        let function = self.function(kernel, launch.shared)?;
        // A kernel has one parameter, the list.
        let mut list = [arguments.pointer().cast_mut()];
        let [x, y, z] = launch.grid;
        let done = if launch.cluster > 1 {
            let mut attribute = cluster_of(launch.cluster);
            let config = sys::CUlaunchConfig {
                gridDimX: x,
                gridDimY: y,
                gridDimZ: z,
                blockDimX: launch.threads,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: launch.shared,
                hStream: stream,
                attrs: &raw mut attribute,
                numAttrs: 1,
            };
            let none = std::ptr::null_mut();
            // SAFETY: by contract the arguments are the kernel's; the driver copies all of it before it returns.
            unsafe { sys::cuLaunchKernelEx(&raw const config, function, list.as_mut_ptr(), none) }.result()
        } else {
            let block = (launch.threads, 1, 1);
            // SAFETY: as above.
            unsafe { result::launch_kernel(function, (x, y, z), block, launch.shared, stream, &mut list) }
        };
        done.map_err(|error| self.refused(kernel, error))
    }

    /// Queues clearing on a stream.
    ///
    /// # Safety
    /// As [`Device::clear`]; the stream is alive.
    unsafe fn clear_on(&self, stream: sys::CUstream, address: u64, words: usize) -> Result<(), DeviceError> {
        self.enter("clearing")?;
        // SAFETY: by contract the memory is large enough.
        unsafe { result::memset_d8_async(address, 0, words * size_of::<u64>(), stream) }.map_err(self.lost("clearing"))
    }
}

/// A stream of one recording: what other threads queue meanwhile is not written down.
struct Private(sys::CUstream);

impl Drop for Private {
    fn drop(&mut self) {
        // SAFETY: made for this object, and nobody else has it.
        let _ = unsafe { result::stream::destroy(self.0) };
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A driver that fails here is gone, and what it held with it.
        let _ = self.enter("closing");
        if !self.stream.is_null() {
            // SAFETY: made by `open`, and nobody else has it.
            let _ = unsafe { result::stream::synchronize(self.stream) };
        }
        // While its context is there.
        *self.staging() = Staging::new();
        for (_, module) in &self.modules {
            // SAFETY: as above.
            let _ = unsafe { result::module::unload(*module) };
        }
        if !self.stream.is_null() {
            // SAFETY: as above.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
        // SAFETY: retained by `open`.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A CUDA graph, ready to be launched.
pub struct Graph {
    executable: sys::CUgraphExec,
}

// SAFETY: as for the driver's other handles.
unsafe impl Send for Graph {}
// SAFETY: as above; a graph is launched from behind `Driver`, whose stream is in order.
unsafe impl Sync for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `Device::graph`, and nobody else has it. The driver waits for launches of it.
        let _ = unsafe { result::graph::exec_destroy(self.executable) };
    }
}

/// A CUDA event.
pub struct Mark {
    event: sys::CUevent,
}

// SAFETY: as for the driver's other handles.
unsafe impl Send for Mark {}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: made by `Device::mark`, and nobody else has it.
        let _ = unsafe { result::event::destroy(self.event) };
    }
}

impl First for Driver {
    const TESTED: bool = true;

    fn first() -> Result<Self, DeviceError> {
        Self::first()
    }
}

impl Device for Driver {
    type Graph = Graph;
    type Mark = Mark;

    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.enter("an allocation")?;
        // SAFETY: the memory is written before a kernel reads it, or its contents do not matter.
        match unsafe { result::malloc_sync(bytes) } {
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Err(DeviceError::MemoryBudget {
                device: self.properties.name.clone(),
                needed: bytes as u64,
                in_use: 0,
                budget: self.properties.memory_bytes,
            }),
            outcome => outcome.map_err(self.lost("an allocation")),
        }
    }

    unsafe fn free(&self, address: u64, _bytes: usize) {
        // Freeing waits for the work that is queued. A failure means that the device is gone.
        if self.enter("an allocation").is_ok() {
            // SAFETY: by contract `allocate` gave the address, and only queued work uses it.
            let _ = unsafe { result::free_sync(address) };
        }
    }

    unsafe fn write(&self, words: &[u64], address: u64) -> Result<(), DeviceError> {
        self.enter("a copy to the device")?;
        // SAFETY: forwarded contract; the stream is alive as long as this object.
        unsafe { self.staging().write(words, address, self.stream) }.map_err(self.lost("a copy to the device"))
    }

    unsafe fn read(&self, address: u64, words: &mut [u64]) -> Result<(), DeviceError> {
        self.enter("a copy from the device")?;
        // SAFETY: forwarded contract; the stream is alive as long as this object.
        unsafe { self.staging().read(address, words, self.stream) }.map_err(self.lost("a copy from the device"))
    }

    unsafe fn clear(&self, address: u64, words: usize) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract; the stream is alive as long as this object.
        unsafe { self.clear_on(self.stream, address, words) }?;
        // What is cleared may have come by there.
        self.staging().wipe();
        Ok(())
    }

    unsafe fn launch(&self, kernel: &CStr, launch: Launch, arguments: &Arguments) -> Result<(), DeviceError> {
        // SAFETY: forwarded contract; the stream is alive as long as this object.
        unsafe { self.launch_on(self.stream, (kernel, launch, arguments)) }
    }

    fn graph(&self, work: &[Work]) -> Result<Graph, DeviceError> {
        self.enter("recording")?;
        // Functions are found first: that is not for a stream that is captured.
        for item in work {
            if let Work::Launch { kernel, launch, .. } = item {
                self.function(kernel, launch.shared)?;
            }
        }
        let made = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(self.lost("recording"))?;
        let stream = Private(made);
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive as long as its object.
        unsafe { result::stream::begin_capture(stream.0, mode) }.map_err(self.lost("recording"))?;
        let queued: Result<(), DeviceError> = work.iter().try_for_each(|item| match item {
            // SAFETY: nothing runs before the graph is replayed, whose contract is this one.
            Work::Launch { kernel, launch, arguments } => unsafe {
                self.launch_on(stream.0, (kernel, *launch, arguments))
            },
            // SAFETY: as above.
            Work::Clear { address, words } => unsafe { self.clear_on(stream.0, *address, *words) },
        });
        // A capture ends whatever happened.
        // SAFETY: begun above.
        let captured = unsafe { result::stream::end_capture(stream.0) }.map_err(self.lost("recording"));
        queued?;
        let graph = captured?;
        // SAFETY: the graph was made above, and is not used after.
        let executable = unsafe {
            let made = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0));
            let _ = result::graph::destroy(graph);
            made
        };
        executable.map(|executable| Graph { executable }).map_err(self.lost("recording"))
    }

    unsafe fn replay(&self, graph: &Graph) -> Result<(), DeviceError> {
        self.enter("a replay")?;
        // SAFETY: graph and stream are alive; by contract what the graph reaches is there.
        unsafe { result::graph::launch(graph.executable, self.stream) }.map_err(self.lost("a replay"))
    }

    fn mark(&self) -> Result<Mark, DeviceError> {
        self.enter("a time mark")?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT).map_err(self.lost("a time mark"))?;
        let mark = Mark { event };
        // SAFETY: event and stream are alive.
        unsafe { result::event::record(event, self.stream) }.map_err(self.lost("a time mark"))?;
        Ok(mark)
    }

    fn seconds(&self, from: &Mark, to: &Mark) -> Result<f64, DeviceError> {
        self.synchronize()?;
        // SAFETY: both events are alive, and over.
        let milliseconds = unsafe { result::event::elapsed(from.event, to.event) }.map_err(self.lost("a time mark"))?;
        Ok(f64::from(milliseconds) / 1e3)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter("waiting")?;
        // SAFETY: the stream is alive as long as this object.
        unsafe { result::stream::synchronize(self.stream) }.map_err(self.lost("waiting"))
    }
}

impl Cuda<Driver> {
    /// Opens device `ordinal` for `ring`, with the budget of [`Cuda::new`], if it passes its self-test.
    ///
    /// # Errors
    /// Those of [`Driver::open`], [`Cuda::new`] and [`Cuda::self_test`].
    pub fn open(ring: Arc<Ring>, ordinal: usize) -> Result<Self, BackendError> {
        let device = Self::new(ring, Driver::open(ordinal)?, None)?;
        device.self_test()?;
        Ok(device)
    }

    /// Whether there is a card that will do and the first such passes its self-test on a ring of a middle degree with primes of all kinds.
    ///
    /// # Errors
    /// As [`Self::open`], with the reason.
    pub fn usable() -> Result<(), BackendError> {
        let failed = |error: &dyn std::fmt::Display| BackendError::Unavailable {
            device: "cuda".to_owned(),
            reason: error.to_string(),
        };
        let mut primes = Vec::new();
        for bits in USABLE_BITS {
            primes.extend(ntt_primes(bits, USABLE_LOG_N, 1).map_err(|error| failed(&error))?);
        }
        let ring = Ring::new(USABLE_LOG_N, &primes).map_err(|error| failed(&error))?;
        <Self as Open>::open(&Arc::new(ring)).map(drop)
    }
}
