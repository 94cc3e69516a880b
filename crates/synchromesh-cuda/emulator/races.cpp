// Runs every kernel with barriers under a race detector, on arbitrary data; with arguments, without the barrier of that
// number those whose names end in that word, and with so many words of memory less than they touch: either must show. Built
// with SYNCHROMESH_EMULATOR_THREADS and -fsanitize=thread by `cargo xtask races`, with -fsanitize=address,undefined by
// `cargo xtask harden address`.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels.cpp"

static size_t skipped = 0;
static std::string wanted;

template <class T>
static Pack<T> pack(T last) {
    return {last};
}
template <class T, class U, class... Rest>
static Pack<T, U, Rest...> pack(T first, U second, Rest... rest) {
    return {first, pack(second, rest...)};
}

// Blocks of the clusters of the next launches.
static u32 cluster = 1;

// Launches a kernel by its arguments; ends the program if the emulator finds a fault.
template <class... Arguments>
static void launch(const char* name, u32 blocks, u32 threads, size_t shared, Arguments... arguments) {
    std::string kernel = name;
    if (kernel.size() < wanted.size() || kernel.compare(kernel.size() - wanted.size(), wanted.size(), wanted) != 0) {
        return;
    }
    Pack<Arguments...> list = pack(arguments...);
    size_t sizes[] = {sizeof(Arguments)...};
    u32 grid[] = {blocks, 1, 1}, block[] = {threads, 1, 1};
    const emulator::Manner manner = {emulator::SOURCES, 0, skipped, nullptr, nullptr};
    int fault = synchromesh_emulate(name, grid, block, cluster, shared, &list, sizeof list, sizes, sizeof...(Arguments),
                                    &manner);
    if (fault != 0) {
        std::printf("%s: fault %d\n", name, fault);
        std::exit(2);
    }
    std::printf("%s: %u blocks of %u threads, %u in a cluster\n", name, blocks, threads, cluster);
}

int main(int count, char** arguments) {
    skipped = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 0;
    wanted = count > 2 ? arguments[2] : "";
    const size_t missing = count > 3 ? std::strtoul(arguments[3], nullptr, 10) : 0;
    const u32 log_n = 10, n = 1u << log_n, terms = 3;
    const u64 q = (1ull << 50) - 27;
    Prime prime = {q, 16384, 0, 0, {1, 16384}, (double)q, 1 / (double)q, 0, 25, 0};
    std::vector<Pair> table(n, Pair{12345, 12345});
    std::vector<u64> data((2 * terms + 4) * n - missing, 1);
    Ring ring = {&prime, table.data(), table.data(), log_n, 0};
    Limbs limbs = {};
    Rows x = {data.data(), 1, 0, {0}}, y = {data.data(), 1, 0, {terms}}, out = {data.data(), 1, 0, {2 * terms}};
    Pass whole = {0, 10, 0, 0}, first = {0, 4, 6, 0}, last = {4, 6, 3, 0}, part = {2, 8, 0, 0};
    Addends addends = {{y, y, y}, 2, 5};
    DigitLimbs states = {{IN_COEFFICIENTS, IN_SLOTS, IN_COEFFICIENTS}};
    const u64* input = data.data();
    for (u64 in_doubles : {0, 1}) {
        prime.in_doubles = in_doubles;
        launch("ntt_forward_first", 1, 128, 8 * padded(n), ring, limbs, x, x, first);
        launch("ntt_forward_last", 1, 128, 8 * padded(n), ring, limbs, x, x, whole);
        launch("ntt_forward_sum", 1, 128, 8 * padded(n), ring, limbs, x, out, whole, addends);
        launch("ntt_inverse_last", 2, 64, 8 * padded(n / 2), ring, limbs, x, x, last);
        launch("ntt_inverse_first", 1, 128, 8 * padded(n), ring, limbs, x, x, first);
        launch("gadget_product", 2, 128, 8 * padded(n / 2), ring, limbs, out, x, y, y, states, input, last, terms, 0u);
    }
    auto list = pack(ring, limbs, x, out, whole);
    launch("ntt_forward_last_merged", 1, 128, 8 * padded(n), (const void*)&list, 1u);
    cluster = 4;
    for (u64 in_doubles : {0, 1}) {
        prime.in_doubles = in_doubles;
        launch("ntt_forward_cluster", 4, 32, 8 * padded(n / 4), ring, limbs, x, x, part);
        launch("ntt_forward_sum_cluster", 4, 32, 8 * padded(n / 4), ring, limbs, x, out, part, addends);
        launch("ntt_inverse_cluster", 4, 32, 8 * padded(n / 4), ring, limbs, x, x, part);
    }
    return 0;
}
