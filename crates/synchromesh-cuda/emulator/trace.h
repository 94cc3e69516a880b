// Counts what launches do as a card's warps would: instructions that they issue, sectors of memory, passes over the banks
// of shared memory.
#pragma once
#include <algorithm>
#include <vector>

#include "launch.h"

namespace emulator {
namespace {

const u32 WARP = 32;
const u32 BANKS = 32;

// What one thread did: how often it ran each stretch of its entry, and its accesses in order.
struct ThreadTrace {
    std::vector<u32> stretches;
    std::vector<std::pair<u32, u64>> accesses;

    u32* begin(size_t count) {
        if (stretches.size() < count) {
            stretches.resize(count);
        }
        return stretches.data();
    }
};

// Of the threads of a cluster, block after block; of one for all where nothing is counted.
thread_local std::vector<ThreadTrace> traces(1);
thread_local bool tracing = false;

// That of a thread, whose block's rank in the cluster is that of its place along x.
ThreadTrace& of_thread(const Here& here, u32 cluster) {
    if (!tracing) {
        return traces[0];
    }
    u32 thread = here.thread.x + here.threads.x * (here.thread.y + here.threads.y * here.thread.z);
    u32 threads = here.threads.x * here.threads.y * here.threads.z;
    return traces[here.block.x % cluster * threads + thread];
}

// The same access of the threads of a warp.
struct Together {
    u64 addresses[WARP];
    u32 count;
};

// Where the shared memory of a cluster's blocks lies: of the first, how far apart, and where that of the last one ends.
struct Shared {
    u64 first;
    size_t stride;
    u64 end;

    bool has(u64 address) const { return first <= address && address < end; }
};

// Counts the launch in progress, if that is wanted and its kernel can be counted.
class Tracing {
public:
    Tracing(Counts* counts, const Listing* listing) : counts(counts), listing(listing) {
        tracing = counts != nullptr && listing != nullptr;
        if (tracing) {
            counts->launches++;
        }
    }
    ~Tracing() {
        tracing = false;
        traces.resize(1);
    }

    void begin(u32 cluster, u32 threads_of_block) {
        blocks = cluster;
        threads = threads_of_block;
        if (tracing) {
            traces.resize((size_t)blocks * threads);
            for (ThreadTrace& trace : traces) {
                trace.stretches.assign(listing->count, 0);
                trace.accesses.clear();
            }
        }
    }

    void end(const Shared& shared) {
        if (!tracing) {
            return;
        }
        counts->blocks += blocks;
        counts->threads += (u64)blocks * threads;
        for (u32 block = 0; block < blocks; block++) {
            for (u32 first = 0; first < threads; first += WARP) {
                u32 lanes = std::min(WARP, threads - first);
                warp(traces.data() + (size_t)block * threads + first, lanes, shared);
            }
        }
    }

private:
    // A warp issues an instruction as often as the thread of it that runs it most often.
    void warp(const ThreadTrace* lanes, u32 count, const Shared& shared) {
        for (size_t stretch = 0; stretch < listing->count; stretch++) {
            u64 runs = 0;
            for (u32 lane = 0; lane < count; lane++) {
                runs = std::max<u64>(runs, lanes[lane].stretches[stretch]);
            }
            for (u32 i = 0; i < CLASSES; i++) {
                counts->issued[i] += runs * listing->stretches[stretch].counts[i];
            }
        }
        // The k-th time that threads come to an access, they come together.
        for (std::vector<Together>& site : sites) {
            site.clear();
        }
        for (u32 lane = 0; lane < count; lane++) {
            times.assign(times.size(), 0);
            for (auto [number, address] : lanes[lane].accesses) {
                if (number >= sites.size()) {
                    sites.resize(number + 1);
                    times.resize(number + 1);
                }
                std::vector<Together>& site = sites[number];
                size_t time = times[number]++;
                if (time == site.size()) {
                    site.push_back({});
                }
                site[time].addresses[site[time].count++] = address;
            }
        }
        for (size_t site = 0; site < sites.size(); site++) {
            for (const Together& together : sites[site]) {
                reach(listing->sites[site], together, shared);
            }
        }
    }

    void reach(const Site& site, const Together& together, const Shared& shared) {
        if (site.shared || shared.has(together.addresses[0])) {
            Together there = together;
            for (u32 i = 0; i < there.count && !site.shared; i++) {
                there.addresses[i] = (there.addresses[i] - shared.first) % shared.stride;
            }
            banks(site.bytes, there);
            return;
        }
        u64 sectors[WARP];
        std::vector<u64> addresses(together.addresses, together.addresses + together.count);
        std::sort(addresses.begin(), addresses.end());
        addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
        std::transform(addresses.begin(), addresses.end(), sectors, [](u64 address) { return address / 32; });
        counts->global_sectors += std::unique(sectors, sectors + addresses.size()) - sectors;
        counts->global_bytes += addresses.size() * site.bytes;
    }

    // A pass takes one word of four bytes from each bank; words of eight bytes are asked for by half of the threads at a
    // time, of sixteen by a quarter.
    void banks(u32 bytes, const Together& together) {
        const u32 at_once = bytes <= 4 ? WARP : WARP * 4 / bytes;
        for (u32 first = 0; first < together.count; first += at_once) {
            std::vector<u64> words;
            for (u32 i = first; i < std::min(together.count, first + at_once); i++) {
                u64 word = together.addresses[i] / 4;
                for (u64 end = word + (bytes + 3) / 4; word < end; word++) {
                    words.push_back(word);
                }
            }
            std::sort(words.begin(), words.end());
            words.erase(std::unique(words.begin(), words.end()), words.end());
            u64 passes[BANKS] = {};
            for (u64 word : words) {
                passes[word % BANKS]++;
            }
            u64 most = *std::max_element(passes, passes + BANKS);
            counts->shared_passes += most;
            counts->shared_least += (words.size() + BANKS - 1) / BANKS;
            counts->shared_ways = std::max(counts->shared_ways, most);
        }
    }

    Counts* const counts;
    const Listing* const listing;
    u32 blocks = 0, threads = 0;
    // Of the warp at hand: what came together at each access, and how often a thread has come to it.
    std::vector<std::vector<Together>> sites;
    std::vector<size_t> times;
};

}  // namespace
}  // namespace emulator
