// Threads of a block as fibers that take turns: each runs until a barrier or its end, in a chosen order.
#pragma once
#include <csetjmp>
#include <memory>
#include <vector>

#include <ucontext.h>

#include "launch.h"

namespace emulator {
namespace {

const size_t STACK = 64 * 1024;

struct Fiber {
    std::unique_ptr<char[]> stack;
    jmp_buf at;
    bool started = false;
    bool done = true;
    size_t barriers = 0;
};

// The fibers of this thread of the host.
struct Turns {
    std::vector<std::unique_ptr<Fiber>> fibers;
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
        turns.current->done = true;
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

// Runs the threads of one block that may wait for each other.
Fault run_block(u32 threads, const u32* block, Order& order) {
    while (turns.fibers.size() < threads) {
        turns.fibers.push_back(std::make_unique<Fiber>());
        turns.fibers.back()->stack.reset(new char[STACK]);
    }
    for (u32 t = 0; t < threads; t++) {
        turns.fibers[t]->done = false;
        turns.fibers[t]->barriers = 0;
    }
    for (u32 live = threads; live > 0;) {
        u32 ended = 0;
        for (u32 t : order.next()) {
            Fiber& fiber = *turns.fibers[t];
            if (!fiber.done) {
                here.thread = index_of(t, block);
                resume(fiber);
                ended += fiber.done ? 1 : 0;
            }
        }
        // Some threads ended while others wait for them.
        if (ended != 0 && ended != live) {
            current_launch.fault = DIVERGED;
        }
        live -= ended;
    }
    return current_launch.fault;
}

// Waits for all threads of the block but at the barrier that is left out.
void wait() {
    if (++turns.current->barriers != current_launch.skipped) {
        yield();
    }
}

}  // namespace
}  // namespace emulator
