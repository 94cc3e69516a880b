// Counts what launches do as a card's warps would: instructions that they issue, sectors of memory, passes over the banks
// of shared memory.
#pragma once
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "cache.h"
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

// Of the threads of a cluster, block after block, and of one for all that are not counted, the last.
thread_local std::vector<ThreadTrace> traces(1);
thread_local bool tracing = false;
// Whether the first and the last warp of the first block of a cluster count for all.
thread_local bool sampling = false;

// That of a thread, whose block's rank in the cluster is that of its place along x.
ThreadTrace& of_thread(const Here& here, u32 cluster) {
    if (!tracing) {
        return traces.back();
    }
    u32 thread = here.thread.x + here.threads.x * (here.thread.y + here.threads.y * here.thread.z);
    u32 threads = here.threads.x * here.threads.y * here.threads.z;
    u32 rank = here.block.x % cluster;
    if (sampling && (rank != 0 || (thread >= WARP && thread / WARP != (threads - 1) / WARP))) {
        return traces.back();
    }
    return traces[rank * threads + thread];
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
    // With a cache, samples are counted: of `blocks_of_row` blocks along x.
    Tracing(Counts* sum, const Listing* listing, Cache* cache, u32 blocks_of_row)
        : sum(sum), listing(listing), cache(cache), row(blocks_of_row) {
        tracing = sum != nullptr && listing != nullptr;
        sampling = cache != nullptr;
    }
    ~Tracing() {
        if (tracing) {
            add();
        }
        tracing = sampling = false;
        traces.resize(1);
    }

    void begin(u32 cluster, u32 threads_of_block) {
        blocks = cluster;
        threads = threads_of_block;
        if (tracing) {
            traces.resize((size_t)blocks * threads + 1);
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
        counts.blocks += sampling ? 1 : blocks;
        counts.threads += sampling ? threads : (u64)blocks * threads;
        for (u32 block = 0; block < (sampling ? 1 : blocks); block++) {
            const u32 step = sampling && threads > WARP ? (threads - 1) / WARP * WARP : WARP;
            for (u32 first = 0; first < threads; first += step) {
                u32 lanes = std::min(WARP, threads - first);
                warp(traces.data() + (size_t)block * threads + first, lanes, shared);
            }
        }
    }

private:
    void add() {
        const u64 blocks_for = sampling ? row : 1;
        // Of the warps of a block two at most are counted.
        const u32 warps = (threads + WARP - 1) / WARP;
        const u64 weight = sampling && warps > 2 ? blocks_for * warps / 2 : blocks_for;
        sum->launches++;
        sum->blocks += blocks_for * counts.blocks;
        sum->threads += blocks_for * counts.threads;
        for (u32 i = 0; i < CLASSES; i++) {
            sum->issued[i] += weight * counts.issued[i];
        }
        for (u32 i = 0; i < PIPES; i++) {
            sum->assembled[i] += weight * counts.assembled[i];
        }
        sum->global_bytes += weight * counts.global_bytes;
        sum->global_sectors += weight * counts.global_sectors;
        sum->missed_sectors += weight * counts.missed_sectors + written_back;
        sum->shared_passes += weight * counts.shared_passes;
        sum->shared_least += weight * counts.shared_least;
        sum->shared_ways = std::max(sum->shared_ways, counts.shared_ways);
    }

    // A warp issues an instruction as often as the thread of it that runs it most often.
    void warp(const ThreadTrace* lanes, u32 count, const Shared& shared) {
        for (size_t stretch = 0; stretch < listing->count; stretch++) {
            u64 runs = 0;
            for (u32 lane = 0; lane < count; lane++) {
                runs = std::max<u64>(runs, lanes[lane].stretches[stretch]);
            }
            for (u32 i = 0; i < CLASSES; i++) {
                counts.issued[i] += runs * listing->stretches[stretch].counts[i];
            }
            for (u32 i = 0; i < PIPES; i++) {
                counts.assembled[i] += runs * listing->stretches[stretch].assembled[i];
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
        u64* const end = std::unique(sectors, sectors + addresses.size());
        counts.global_sectors += end - sectors;
        counts.global_bytes += addresses.size() * site.bytes;
        for (u64* sector = sectors; cache != nullptr && sector != end; sector++) {
            u64 line = Cache::line_of(*sector * 32);
            if (line != last_line || site.writes) {
                last_line = line;
                if (!cache->reach(line, site.writes, site.once, written_back) && !site.writes) {
                    absent.insert(line);
                }
                last_missed = absent.count(line) != 0;
            }
            // What the launch itself has brought in is there.
            if (last_missed && !site.writes && brought.insert(*sector).second) {
                counts.missed_sectors++;
            }
        }
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
            counts.shared_passes += most;
            counts.shared_least += (words.size() + BANKS - 1) / BANKS;
            counts.shared_ways = std::max(counts.shared_ways, most);
        }
    }

    Counts* const sum;
    const Listing* const listing;
    Cache* const cache;
    const u32 row;
    Counts counts = {};
    u32 blocks = 0, threads = 0;
    // Lines that the cache had not when the launch came to them, and the sectors of them that it has asked for; what was
    // written back to make room.
    std::unordered_set<u64> absent, brought;
    u64 last_line = ~0ull, written_back = 0;
    bool last_missed = false;
    // Of the warp at hand: what came together at each access, and how often a thread has come to it.
    std::vector<std::vector<Together>> sites;
    std::vector<size_t> times;
};

}  // namespace
}  // namespace emulator
