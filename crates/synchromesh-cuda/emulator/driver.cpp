// A driver without a card: what src/driver.rs asks of libcuda, over the emulator, so that it is tested where there is no
// card. Parameters of kernels are taken as the PTX declares them; work waits until somebody waits for it, and what a
// stream that is captured must not be asked for is refused.
//
// SYNCHROMESH_STAND_IN says what kind of driver it is, in words NAME=NUMBER: version (1000 major + 10 minor), devices,
// capabilityI (10 major + minor of device I), ratio (floats to doubles), memory (bytes that can be had), total (bytes that
// it says it has), cache (bytes), launches (how many succeed), clusters (most blocks of one that there is room for), ptx (0:
// its compiler refuses it).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "device.h"

#define API extern "C" __attribute__((visibility("default"))) int

namespace {

enum Result {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LAUNCH_FAILED = 719,
    NOT_SUPPORTED = 801,
    CAPTURE_UNSUPPORTED = 900,
};

// The dynamic shared memory that a kernel has without asking, and at most.
const u32 SHARED_UNASKED = 48 * 1024, SHARED_MOST = 160 * 1024;

long word(const std::string& name, long otherwise) {
    const char* words = std::getenv("SYNCHROMESH_STAND_IN");
    std::string text = std::string(" ") + (words == nullptr ? "" : words);
    size_t at = text.find(" " + name + "=");
    return at == std::string::npos ? otherwise : std::strtol(text.c_str() + at + name.size() + 2, nullptr, 10);
}

long capability(int device) { return word("capability" + std::to_string(device), 90); }

// The least one that has clusters.
const long CLUSTERS = 90;

typedef std::function<int()> Step;
typedef std::vector<Step> Graph;

struct Stream {
    std::deque<Step> queue;
    std::unique_ptr<Graph> captured;
    // Who captures: what must not be asked for meanwhile is so for that thread.
    std::thread::id by;
};

struct Function {
    std::string name;
    // Size and alignment of each parameter.
    std::vector<std::pair<size_t, size_t>> parameters;
    u32 shared = SHARED_UNASKED;
};

struct Module {
    std::map<std::string, Function> functions;
};

struct Stream;

struct Event {
    bool over = false;
    // Where it was recorded last.
    Stream* stream = nullptr;
    std::chrono::steady_clock::time_point at;
};

std::recursive_mutex mutex;
std::set<Stream*> streams;
std::map<u64, size_t> memory;
size_t memory_used = 0;
// Page-locked memory of the host: copies read and write it when they are made, not when they are asked for.
std::map<u64, size_t> locked;
long launches = 0;
// What every call says once the device has failed.
int failed = SUCCESS;
// A context a device.
const int MOST_DEVICES = 8;
int contexts[MOST_DEVICES];
thread_local const int* current = nullptr;

int usable() { return failed != SUCCESS ? failed : current == nullptr ? INVALID_CONTEXT : SUCCESS; }

bool capturing() {
    for (Stream* stream : streams) {
        if (stream->captured != nullptr && stream->by == std::this_thread::get_id()) {
            return true;
        }
    }
    return false;
}

// Whether memory that was handed out holds all these bytes.
bool within(u64 address, size_t bytes, const std::map<u64, size_t>& of = memory) {
    auto after = of.upper_bound(address);
    return after != of.begin() && address + bytes <= (--after)->first + after->second;
}

int add(Stream* stream, Step step) {
    if (stream == nullptr || streams.count(stream) == 0) {
        return INVALID_HANDLE;
    }
    if (stream->captured != nullptr) {
        stream->captured->push_back(std::move(step));
    } else {
        stream->queue.push_back(std::move(step));
    }
    return SUCCESS;
}

int drain(Stream* stream) {
    while (!stream->queue.empty()) {
        Step step = std::move(stream->queue.front());
        stream->queue.pop_front();
        if (failed == SUCCESS) {
            failed = step();
        }
    }
    return failed;
}

int drain_all() {
    for (Stream* stream : streams) {
        drain(stream);
    }
    return failed;
}

// The entry points that PTX declares, with their parameters.
bool parse(const std::string& ptx, Module& module) {
    size_t at = 0;
    while ((at = ptx.find(".entry ", at)) != std::string::npos) {
        size_t open = ptx.find('(', at), close = ptx.find(')', at);
        if (open == std::string::npos || close == std::string::npos) {
            return false;
        }
        Function function;
        function.name = ptx.substr(at + 7, open - at - 7);
        std::string list = ptx.substr(open, close - open);
        for (size_t p = 0; (p = list.find(".param ", p)) != std::string::npos; p += 7) {
            std::string one = list.substr(p + 7, list.find_first_of(",\n", p) - p - 7);
            size_t size = one.find(".u64") == 0 ? 8 : one.find(".u32") == 0 ? 4 : 0, alignment = size;
            if (one.find(".align ") == 0 && one.find('[') != std::string::npos) {
                alignment = std::strtoul(one.c_str() + 7, nullptr, 10);
                size = std::strtoul(one.c_str() + one.find('[') + 1, nullptr, 10);
            }
            if (size == 0) {
                return false;
            }
            function.parameters.emplace_back(size, alignment);
        }
        std::string name = function.name;
        module.functions.emplace(name, std::move(function));
        at = close;
    }
    return !module.functions.empty();
}

// A launch with its parameters copied, as the emulator takes them.
int launch(const std::string& name, std::vector<u32> grid, std::vector<u32> block, u32 cluster, u32 shared,
           const std::vector<u64>& list, size_t bytes) {
    long most = word("launches", -1);
    if (most >= 0 && launches >= most) {
        return LAUNCH_FAILED;
    }
    launches++;
    const emulator::Kernel* kernel = emulator::find(name.c_str());
    if (kernel == nullptr || (kernel->bytes + 7) / 8 != (bytes + 7) / 8) {
        return LAUNCH_FAILED;
    }
    const emulator::Manner manner = {emulator::SOURCES, 0, 0, nullptr};
    int fault = synchromesh_emulate(name.c_str(), grid.data(), block.data(), cluster, shared, list.data(),
                                    kernel->bytes, kernel->sizes, kernel->count, &manner);
    return fault == 0 ? SUCCESS : LAUNCH_FAILED;
}

// Queues a launch with its parameters copied, as long as the PTX says that they are.
int queue_launch(Function* function, const u32* grid, const u32* block, u32 cluster, u32 shared, Stream* stream,
                 void** parameters, void** extra) {
    if (int wrong = usable()) {
        return wrong;
    }
    if (shared > function->shared || parameters == nullptr || extra != nullptr) {
        return INVALID_VALUE;
    }
    size_t end = 0;
    std::vector<u64> list;
    for (size_t i = 0; i < function->parameters.size(); i++) {
        auto [size, alignment] = function->parameters[i];
        size_t begin = (end + alignment - 1) / alignment * alignment;
        end = begin + size;
        list.resize((end + 7) / 8);
        std::memcpy((char*)list.data() + begin, parameters[i], size);
    }
    auto step = [name = function->name, grid = std::vector<u32>(grid, grid + 3),
                 block = std::vector<u32>(block, block + 3), cluster, shared, list,
                 end] { return launch(name, grid, block, cluster, shared, list, end); };
    return add(stream, step);
}

}  // namespace

typedef std::lock_guard<std::recursive_mutex> Lock;

API cuInit(unsigned) { return word("devices", 1) == 0 ? NO_DEVICE : SUCCESS; }

API cuDriverGetVersion(int* version) {
    *version = (int)word("version", 12080);
    return SUCCESS;
}

API cuDeviceGetCount(int* count) {
    *count = (int)word("devices", 1);
    return SUCCESS;
}

API cuDeviceGet(int* device, int ordinal) {
    *device = ordinal;
    return ordinal < word("devices", 1) && ordinal < MOST_DEVICES ? SUCCESS : INVALID_DEVICE;
}

API cuDeviceGetName(char* name, int length, int device) {
    std::string model = "stand-in " + std::to_string(device);
    if ((size_t)length <= model.size()) {
        return INVALID_VALUE;
    }
    std::memcpy(name, model.c_str(), model.size() + 1);
    return SUCCESS;
}

API cuDeviceTotalMem_v2(size_t* bytes, int) {
    *bytes = (size_t)word("total", 4l << 30);
    return SUCCESS;
}

API cuDeviceGetAttribute(int* value, int attribute, int device) {
    switch (attribute) {
        case 38: *value = (int)word("cache", 64 << 10); return SUCCESS;
        case 75: *value = (int)(capability(device) / 10); return SUCCESS;
        case 76: *value = (int)(capability(device) % 10); return SUCCESS;
        case 87: *value = (int)word("ratio", 2); return SUCCESS;
        case 97: *value = SHARED_MOST; return SUCCESS;
        case 120: *value = capability(device) >= CLUSTERS ? 1 : 0; return SUCCESS;
        default: return INVALID_VALUE;
    }
}

API cuDevicePrimaryCtxRetain(void** handle, int device) {
    *handle = &contexts[device];
    return failed;
}

API cuDevicePrimaryCtxRelease_v2(int) { return SUCCESS; }

API cuCtxSetCurrent(void* handle) {
    current = (const int*)handle;
    return current >= contexts && current < contexts + MOST_DEVICES ? SUCCESS : INVALID_CONTEXT;
}

API cuStreamCreate(Stream** stream, unsigned) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    streams.insert(*stream = new Stream);
    return SUCCESS;
}

API cuStreamSynchronize(Stream* stream) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (streams.count(stream) == 0) {
        return INVALID_HANDLE;
    }
    return stream->captured != nullptr ? CAPTURE_UNSUPPORTED : drain(stream);
}

API cuStreamDestroy_v2(Stream* stream) {
    Lock lock(mutex);
    if (streams.erase(stream) == 0) {
        return INVALID_HANDLE;
    }
    delete stream;
    return SUCCESS;
}

API cuStreamBeginCapture_v2(Stream* stream, int) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (streams.count(stream) == 0 || stream->captured != nullptr) {
        return INVALID_HANDLE;
    }
    stream->captured = std::make_unique<Graph>();
    stream->by = std::this_thread::get_id();
    return SUCCESS;
}

API cuStreamEndCapture(Stream* stream, Graph** graph) {
    Lock lock(mutex);
    if (streams.count(stream) == 0 || stream->captured == nullptr) {
        return INVALID_HANDLE;
    }
    *graph = stream->captured.release();
    return SUCCESS;
}

API cuGraphInstantiateWithFlags(Graph** executable, Graph* graph, u64) {
    *executable = new Graph(*graph);
    return SUCCESS;
}

API cuGraphDestroy(Graph* graph) {
    delete graph;
    return SUCCESS;
}

API cuGraphExecDestroy(Graph* graph) {
    Lock lock(mutex);
    drain_all();
    delete graph;
    return SUCCESS;
}

API cuGraphLaunch(Graph* graph, Stream* stream) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    for (const Step& step : *graph) {
        if (int wrong = add(stream, step)) {
            return wrong;
        }
    }
    return SUCCESS;
}

API cuModuleLoadDataEx(Module** module, const char* image, unsigned count, const int* options, void** values) {
    const int error_log = 5, error_log_bytes = 6;
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (word("ptx", 1) == 0) {
        if (count == 2 && options[0] == error_log && options[1] == error_log_bytes) {
            std::snprintf((char*)values[0], (size_t)values[1], "line 1: a word that it does not know");
        }
        return INVALID_PTX;
    }
    auto loaded = std::make_unique<Module>();
    std::string ptx = image;
    size_t target = ptx.find(".target sm_");
    if (target == std::string::npos || !parse(ptx, *loaded)) {
        return INVALID_PTX;
    }
    if (std::strtol(ptx.c_str() + target + 11, nullptr, 10) > capability((int)(current - contexts))) {
        return NO_BINARY_FOR_GPU;
    }
    *module = loaded.release();
    return SUCCESS;
}

API cuModuleUnload(Module* module) {
    Lock lock(mutex);
    drain_all();
    delete module;
    return SUCCESS;
}

API cuModuleGetFunction(Function** function, Module* module, const char* name) {
    Lock lock(mutex);
    auto found = module->functions.find(name);
    if (found == module->functions.end()) {
        return NOT_FOUND;
    }
    *function = &found->second;
    return SUCCESS;
}

API cuFuncSetAttribute(Function* function, int attribute, int value) {
    const int most_shared = 8;
    if (attribute != most_shared || value < 0 || (u32)value > SHARED_MOST) {
        return INVALID_VALUE;
    }
    function->shared = (u32)value;
    return SUCCESS;
}

// CUDA's: one property of a launch, and a launch with its properties.
struct LaunchAttribute {
    int id;
    char pad[4];
    union {
        u32 cluster[3];
        char most[64];
    } value;
};
struct LaunchConfig {
    u32 grid[3], block[3], shared;
    Stream* stream;
    LaunchAttribute* attributes;
    u32 count;
};

API cuLaunchKernelEx(const LaunchConfig* config, Function* function, void** parameters, void** extra) {
    const int cluster_dimension = 4;
    Lock lock(mutex);
    u32 cluster = 1;
    for (u32 i = 0; i < config->count; i++) {
        const LaunchAttribute& attribute = config->attributes[i];
        const u32* shape = attribute.value.cluster;
        if (attribute.id != cluster_dimension || shape[1] != 1 || shape[2] != 1) {
            return INVALID_VALUE;
        }
        if (capability((int)(current - contexts)) < CLUSTERS) {
            return NOT_SUPPORTED;
        }
        cluster = shape[0];
    }
    return queue_launch(function, config->grid, config->block, cluster, config->shared, config->stream, parameters, extra);
}

API cuOccupancyMaxActiveClusters(int* count, Function* function, const LaunchConfig* config) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (function == nullptr || config->count != 1 || config->shared > SHARED_MOST) {
        return INVALID_VALUE;
    }
    *count = config->attributes[0].value.cluster[0] <= (u32)word("clusters", 8) ? 1 : 0;
    return SUCCESS;
}

API cuLaunchKernel(Function* function, u32 gx, u32 gy, u32 gz, u32 bx, u32 by, u32 bz, u32 shared, Stream* stream,
                   void** parameters, void** extra) {
    Lock lock(mutex);
    const u32 grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
    return queue_launch(function, grid, block, 1, shared, stream, parameters, extra);
}

API cuMemAlloc_v2(u64* address, size_t bytes) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (capturing()) {
        return CAPTURE_UNSUPPORTED;
    }
    if (bytes == 0) {
        return INVALID_VALUE;
    }
    if (memory_used + bytes > (size_t)word("memory", 4l << 30)) {
        return OUT_OF_MEMORY;
    }
    void* made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (made == nullptr) {
        return OUT_OF_MEMORY;
    }
    // What a kernel reads before it was written shall not look like residues.
    std::memset(made, 0xdb, bytes);
    memory_used += bytes;
    memory.emplace(*address = (u64)made, bytes);
    return SUCCESS;
}

API cuMemFree_v2(u64 address) {
    Lock lock(mutex);
    auto found = memory.find(address);
    if (found == memory.end()) {
        return INVALID_VALUE;
    }
    drain_all();
    std::memset((void*)address, 0xdd, found->second);
    memory_used -= found->second;
    memory.erase(found);
    std::free((void*)address);
    return failed;
}

API cuMemHostAlloc(void** made, size_t bytes, unsigned) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (capturing()) {
        return CAPTURE_UNSUPPORTED;
    }
    *made = std::malloc(bytes);
    if (*made == nullptr) {
        return OUT_OF_MEMORY;
    }
    std::memset(*made, 0xdb, bytes);
    locked.emplace((u64)*made, bytes);
    return SUCCESS;
}

API cuMemFreeHost(void* address) {
    Lock lock(mutex);
    if (locked.erase((u64)address) == 0) {
        return INVALID_VALUE;
    }
    drain_all();
    std::free(address);
    return failed;
}

API cuMemcpyHtoDAsync_v2(u64 to, const void* from, size_t bytes, Stream* stream) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (!within(to, bytes)) {
        return INVALID_VALUE;
    }
    if (within((u64)from, bytes, locked)) {
        return add(stream, [to, from, bytes] {
            std::memcpy((void*)to, from, bytes);
            return SUCCESS;
        });
    }
    std::vector<char> staged((const char*)from, (const char*)from + bytes);
    return add(stream, [to, staged] {
        std::memcpy((void*)to, staged.data(), staged.size());
        return SUCCESS;
    });
}

API cuMemcpyDtoHAsync_v2(void* to, u64 from, size_t bytes, Stream* stream) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (!within(from, bytes)) {
        return INVALID_VALUE;
    }
    return add(stream, [to, from, bytes] {
        std::memcpy(to, (const void*)from, bytes);
        return SUCCESS;
    });
}

API cuMemsetD8Async(u64 to, unsigned char value, size_t bytes, Stream* stream) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (!within(to, bytes)) {
        return INVALID_VALUE;
    }
    return add(stream, [to, value, bytes] {
        std::memset((void*)to, value, bytes);
        return SUCCESS;
    });
}

API cuEventCreate(Event** event, unsigned) {
    *event = new Event;
    return failed;
}

API cuEventRecord(Event* event, Stream* stream) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    event->over = false;
    event->stream = stream;
    return add(stream, [event] {
        event->over = true;
        event->at = std::chrono::steady_clock::now();
        return SUCCESS;
    });
}

API cuEventSynchronize(Event* event) {
    Lock lock(mutex);
    if (int wrong = usable()) {
        return wrong;
    }
    if (event->stream == nullptr || event->over) {
        return SUCCESS;
    }
    return event->stream->captured != nullptr ? CAPTURE_UNSUPPORTED : drain(event->stream);
}

API cuEventElapsedTime(float* milliseconds, Event* from, Event* to) {
    if (!from->over || !to->over) {
        return NOT_READY;
    }
    *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return SUCCESS;
}

API cuEventDestroy_v2(Event* event) {
    Lock lock(mutex);
    drain_all();
    delete event;
    return SUCCESS;
}
