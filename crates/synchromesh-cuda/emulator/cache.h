// A card's second-level cache in lines of 512 KiB, one limb at N = 2^16: what was not used for longest leaves first, and what
// is to be used once before that.
#pragma once
#include <cstddef>
#include <list>
#include <unordered_map>

#include "device.h"

namespace emulator {

class Cache {
public:
    static const u64 LINE = 1 << 19;
    static u64 line_of(u64 address) { return address / LINE; }

    explicit Cache(size_t bytes) : most(bytes / LINE) {}

    // Uses a line; whether it was there. Adds the sectors that are written back to make room for it.
    bool reach(u64 line, bool writes, bool once, u64& written_back) {
        auto found = lines.find(line);
        const bool there = found != lines.end();
        if (there) {
            uses.splice(once ? uses.end() : uses.begin(), uses, found->second.use);
        } else if (once) {
            uses.push_back(line);
            found = lines.emplace(line, Line{std::prev(uses.end()), false}).first;
        } else {
            uses.push_front(line);
            found = lines.emplace(line, Line{uses.begin(), false}).first;
        }
        found->second.written |= writes;
        while (uses.size() > most) {
            auto oldest = lines.find(uses.back());
            written_back += oldest->second.written ? LINE / 32 : 0;
            lines.erase(oldest);
            uses.pop_back();
        }
        return there;
    }

private:
    struct Line {
        std::list<u64>::iterator use;
        bool written;
    };
    const size_t most;
    // The last used first.
    std::list<u64> uses;
    std::unordered_map<u64, Line> lines;
};

}  // namespace emulator
