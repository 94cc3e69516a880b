// Threads of a cluster as fibers that take turns: each runs until a barrier or its end, in a chosen order.
#pragma once
#include <csetjmp>
#include <memory>
#include <vector>

#include <ucontext.h>

#include "launch.h"

namespace emulator {
namespace {

const size_t STACK = 64 * 1024;

// Where a thread is, or the threads of a block.
enum Place { READY, FOR_BLOCK, FOR_CLUSTER, ENDED };

struct Fiber {
    std::unique_ptr<char[]> stack;
    jmp_buf at;
    bool started = false;
    Place place = ENDED;
    size_t barriers = 0;
};

// A block of the cluster that runs.
struct Block {
    Here here;
    Place place;
    bool started;
};

// The fibers of this thread of the host, block after block.
struct Turns {
    std::vector<std::unique_ptr<Fiber>> fibers;
    std::vector<Block> blocks;
    jmp_buf scheduler;
    ucontext_t home;
    Fiber* current = nullptr;
};
thread_local Turns turns;

__attribute__((noinline)) void yield() {
    Fiber* fiber = turns.current;
    if (_setjmp(fiber->at) == 0) {
        _longjmp(turns.scheduler, 1);
    }
}

// A fiber's life: one thread of one block after the other.
void live() {
    for (;;) {
        current_launch.kernel->run(current_launch.arguments);
        turns.current->place = ENDED;
        yield();
    }
}

__attribute__((noinline)) void resume(Fiber& fiber) {
    turns.current = &fiber;
    if (_setjmp(turns.scheduler) != 0) {
        return;
    }
    if (fiber.started) {
        _longjmp(fiber.at, 1);
    }
    fiber.started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = STACK;
    context.uc_link = &turns.home;
    makecontext(&context, live, 0);
    setcontext(&context);
}

// Runs the threads of a block that are ready, each to a barrier or its end; those that waited for the block alone are
// ready again once all do.
void advance(u32 rank, const u32* block, Order& order) {
    Block& team = turns.blocks[rank];
    const std::unique_ptr<Fiber>* fibers = turns.fibers.data() + rank * current_launch.threads;
    team.started = true;
    here = team.here;
    u32 ended = 0, for_block = 0, for_cluster = 0;
    for (u32 t : order.next()) {
        Fiber& fiber = *fibers[t];
        if (fiber.place == READY) {
            here.thread = index_of(t, block);
            resume(fiber);
        }
        ended += fiber.place == ENDED ? 1 : 0;
        for_block += fiber.place == FOR_BLOCK ? 1 : 0;
        for_cluster += fiber.place == FOR_CLUSTER ? 1 : 0;
    }
    // Some threads ended while others wait for them, or wait elsewhere.
    if ((ended != 0) + (for_block != 0) + (for_cluster != 0) > 1) {
        current_launch.fault = DIVERGED;
    }
    for (u32 t = 0; t < current_launch.threads && for_block != 0; t++) {
        fibers[t]->place = fibers[t]->place == FOR_BLOCK ? READY : fibers[t]->place;
    }
    team.place = for_block != 0 ? READY : for_cluster != 0 ? FOR_CLUSTER : ENDED;
}

// Lets the blocks that wait for the cluster go on; whether there are any.
bool meet() {
    u32 waiting = 0;
    for (Block& team : turns.blocks) {
        if (team.place == FOR_CLUSTER) {
            waiting++;
            team.place = READY;
        }
    }
    if (waiting != 0 && waiting != turns.blocks.size()) {
        current_launch.fault = DIVERGED;
    }
    for (size_t t = 0; t < current_launch.threads * turns.blocks.size() && waiting != 0; t++) {
        Place& place = turns.fibers[t]->place;
        place = place == FOR_CLUSTER ? READY : place;
    }
    return waiting != 0;
}

// Runs the blocks of a cluster, whose threads may wait for each other.
Fault run_cluster(const std::vector<Here>& blocks, const u32* block, Order& team, Order& within) {
    size_t threads = blocks.size() * current_launch.threads;
    while (turns.fibers.size() < threads) {
        turns.fibers.push_back(std::make_unique<Fiber>());
        turns.fibers.back()->stack.reset(new char[STACK]);
    }
    for (size_t t = 0; t < threads; t++) {
        turns.fibers[t]->place = READY;
        turns.fibers[t]->barriers = 0;
    }
    turns.blocks.clear();
    for (const Here& place : blocks) {
        turns.blocks.push_back({place, READY, false});
    }
    do {
        // The first block that can go on does, and another choice is made.
        for (bool moved = true; moved;) {
            moved = false;
            for (u32 rank : team.next()) {
                if (!moved && turns.blocks[rank].place == READY) {
                    advance(rank, block, within);
                    moved = true;
                }
            }
        }
    } while (meet());
    return current_launch.fault;
}

// Waits for all threads of the block or of the cluster, but at the barrier that is left out.
void wait(bool of_cluster) {
    if (++turns.current->barriers != current_launch.skipped) {
        turns.current->place = of_cluster ? FOR_CLUSTER : FOR_BLOCK;
        yield();
    }
}

// Whether a block of the cluster runs, so that its shared memory is there.
bool within_reach(u32 rank) { return turns.blocks[rank].started && turns.blocks[rank].place != ENDED; }

}  // namespace
}  // namespace emulator
