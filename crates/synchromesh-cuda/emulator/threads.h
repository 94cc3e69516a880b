// Threads of a cluster as threads of the host, for a race detector: slow, and in whatever order they come.
#pragma once
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "launch.h"

namespace emulator {
namespace {

// A barrier for the threads of a block or a cluster, which says when some of them ended while others wait.
class Meeting {
public:
    explicit Meeting(u32 threads) : expected(threads) {}

    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        size_t round = rounds;
        if (++waiting == expected) {
            open();
        } else {
            changed.wait(lock, [&] { return rounds != round; });
        }
    }

    void leave() {
        std::unique_lock<std::mutex> lock(mutex);
        expected--;
        diverged = diverged || waiting != 0;
        if (waiting == expected && waiting != 0) {
            open();
        }
    }

    bool has_diverged() const { return diverged; }

private:
    void open() {
        waiting = 0;
        rounds++;
        changed.notify_all();
    }

    std::mutex mutex;
    std::condition_variable changed;
    u32 expected, waiting = 0;
    size_t rounds = 0;
    bool diverged = false;
};
// The barriers of this thread: of its block, and of its cluster.
thread_local Meeting* meetings[2] = {nullptr, nullptr};
thread_local size_t barriers = 0;

// Runs the blocks of a cluster, whose threads may wait for each other.
Fault run_cluster(const std::vector<Here>& blocks, const u32* block, Order&, Order&) {
    CurrentLaunch launch = current_launch;
    Meeting all(launch.threads * (u32)blocks.size());
    std::vector<std::unique_ptr<Meeting>> own;
    std::vector<std::thread> team;
    for (const Here& place : blocks) {
        own.push_back(std::make_unique<Meeting>(launch.threads));
        Meeting* mine = own.back().get();
        for (u32 t = 0; t < launch.threads; t++) {
            team.emplace_back([&, mine, t] {
                current_launch = launch;
                here = place;
                here.thread = index_of(t, block);
                meetings[0] = mine;
                meetings[1] = &all;
                barriers = 0;
                launch.kernel->run(launch.arguments);
                mine->leave();
                all.leave();
            });
        }
    }
    for (std::thread& member : team) {
        member.join();
    }
    bool diverged = all.has_diverged();
    for (const auto& mine : own) {
        diverged = diverged || mine->has_diverged();
    }
    return diverged ? DIVERGED : NONE;
}

// Waits for all threads of the block or of the cluster, but at the barrier that is left out.
void wait(bool of_cluster) {
    if (++barriers != current_launch.skipped) {
        meetings[of_cluster]->wait();
    }
}

// Nobody asks here: who reaches too early or too late is found by fibers.
bool within_reach(u32) { return true; }

}  // namespace
}  // namespace emulator
