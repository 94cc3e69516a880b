// Threads of a block as threads of the host, for a race detector: slow, and in whatever order they come.
#pragma once
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "launch.h"

namespace emulator {
namespace {

// A barrier for the threads of a block, which says when some of them ended while others wait.
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
thread_local Meeting* meeting = nullptr;
thread_local size_t barriers = 0;

// Runs the threads of one block that may wait for each other.
Fault run_block(u32 threads, const u32* block, Order&) {
    Meeting shared(threads);
    CurrentLaunch launch = current_launch;
    Here base = here;
    std::vector<std::thread> team;
    for (u32 t = 0; t < threads; t++) {
        team.emplace_back([&, t] {
            current_launch = launch;
            here = base;
            here.thread = index_of(t, block);
            meeting = &shared;
            barriers = 0;
            launch.kernel->run(launch.arguments);
            shared.leave();
        });
    }
    for (std::thread& member : team) {
        member.join();
    }
    return shared.has_diverged() ? DIVERGED : NONE;
}

// Waits for all threads of the block but at the barrier that is left out.
void wait() {
    if (++barriers != current_launch.skipped) {
        meeting->wait();
    }
}

}  // namespace
}  // namespace emulator
