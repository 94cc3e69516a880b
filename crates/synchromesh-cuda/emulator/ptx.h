// What PTX instructions compute, and what a thread of a translated entry has: its place, its counters, and its memory,
// with the checks of alignment and reach that a card makes; build/cpp.rs writes the calls.
#pragma once
#include <cfenv>
#include <type_traits>

#include "device.h"

// Without it, little is inlined where compilers optimise as quickly as they are asked to here.
#define PTX_INLINE inline __attribute__((always_inline))

typedef short i16;
typedef int i32;

namespace ptx {

template <class T>
using Word = std::make_unsigned_t<T>;
template <class T>
constexpr u32 BITS = 8 * sizeof(T);
typedef unsigned __int128 u128;
typedef __int128 i128;
// Holds the product of two T.
template <class T>
using Wide = std::conditional_t<std::is_signed_v<T>, i128, u128>;

template <class T>
PTX_INLINE T load(const char* from, u32 index) {
    T word;
    std::memcpy(&word, from + index * sizeof word, sizeof word);
    return word;
}
template <class T>
PTX_INLINE void store(char* to, u32 index, T word) {
    std::memcpy(to + index * sizeof word, &word, sizeof word);
}

class Thread {
public:
    const emulator::Here at = emulator::here;
    // The address of the parameter.
    const u64 arguments;
    u32* const counts;

    Thread(size_t stretches, const void* list, size_t bytes) : Thread(emulator::begin(stretches), list, bytes) {}

    PTX_INLINE char* global(u64 address, u32 bytes, u32 site) const { return access(address, address, bytes, site); }
    PTX_INLINE char* generic(u64 address, u32 bytes, u32 site) const { return access(address, address, bytes, site); }
    // Addresses of shared memory have 32 bits.
    PTX_INLINE char* shared(u64 address, u32 bytes, u32 site) const {
        if ((u32)address > at.shared_bytes || at.shared_bytes - (u32)address < bytes) {
            return emulator::out_of_bounds();
        }
        return access((u32)address, (u64)at.shared + (u32)address, bytes, site);
    }
    PTX_INLINE const char* param(u64 address, u32 bytes) const {
        u64 at = address - arguments;
        if (at > argument_bytes || argument_bytes - at < bytes) {
            return emulator::out_of_bounds();
        }
        return at % bytes == 0 ? (const char*)address : emulator::misaligned();
    }
    PTX_INLINE u64 generic_of_shared(u64 address) const { return (u64)at.shared + (u32)address; }
    u64 shared_of(u64 own, u32 rank) const { return (u64)emulator::shared_of((u64*)own, rank); }

private:
    Thread(emulator::Counters into, const void* list, size_t bytes)
        : arguments((u64)list), counts(into.stretches), accesses(into.accesses), argument_bytes(bytes) {}

    PTX_INLINE char* access(u64 address, u64 place, u32 bytes, u32 site) const {
        if (accesses != nullptr) {
            accesses->emplace_back(site, address);
        }
        return address % bytes == 0 ? (char*)place : emulator::misaligned();
    }

    std::vector<std::pair<u32, u64>>* const accesses;
    const size_t argument_bytes;
};

template <class T>
PTX_INLINE T add(T a, T b) {
    return (T)(Word<T>)((Word<T>)a + (Word<T>)b);
}
template <class T>
PTX_INLINE T sub(T a, T b) {
    return (T)(Word<T>)((Word<T>)a - (Word<T>)b);
}
template <class T>
PTX_INLINE T neg(T a) {
    return sub<T>(0, a);
}
// Without a rounding: to nearest.
PTX_INLINE double add(double a, double b) { return a + b; }
PTX_INLINE double sub(double a, double b) { return a - b; }
PTX_INLINE double neg(double a) { return -a; }

template <class T>
PTX_INLINE T mul_lo(T a, T b) {
    return (T)(Word<T>)((u128)(Wide<T>)a * (u128)(Wide<T>)b);
}
template <class T>
PTX_INLINE T mul_hi(T a, T b) {
    return (T)((Wide<T>)a * (Wide<T>)b >> BITS<T>);
}
template <class T>
PTX_INLINE T mad_lo(T a, T b, T c) {
    return add<T>(mul_lo<T>(a, b), c);
}
template <class T>
PTX_INLINE T mad_hi(T a, T b, T c) {
    return add<T>(mul_hi<T>(a, b), c);
}
PTX_INLINE u32 mul_wide(u16 a, u16 b) { return (u32)a * b; }
PTX_INLINE i32 mul_wide(i16 a, i16 b) { return (i32)a * b; }
PTX_INLINE u64 mul_wide(u32 a, u32 b) { return (u64)a * b; }
PTX_INLINE i64 mul_wide(i32 a, i32 b) { return (i64)a * b; }
template <class T, class W>
PTX_INLINE W mad_wide(T a, T b, W c) {
    return add<W>(mul_wide(a, b), c);
}
// a + b, with the carry before if `takes`; the carry out is left if `gives`.
template <class T>
PTX_INLINE T sum(T a, T b, bool takes, bool gives, bool& carry) {
    u128 all = (u128)a + b + (takes && carry ? 1 : 0);
    carry = gives ? (all >> BITS<T>) != 0 : carry;
    return (T)all;
}
// The same of a - b, with borrows.
template <class T>
PTX_INLINE T difference(T a, T b, bool takes, bool gives, bool& carry) {
    u128 all = (u128)a - b - (takes && carry ? 1 : 0);
    carry = gives ? (all >> BITS<T> & 1) != 0 : carry;
    return (T)all;
}
// What division by zero gives is not said: here, all ones and the dividend.
template <class T>
PTX_INLINE T div(T a, T b) {
    return b == 0 ? (T)~(T)0 : (T)((Wide<T>)a / (Wide<T>)b);
}
template <class T>
PTX_INLINE T rem(T a, T b) {
    return b == 0 ? a : (T)((Wide<T>)a % (Wide<T>)b);
}
template <class T>
PTX_INLINE T min(T a, T b) {
    return a < b ? a : b;
}
template <class T>
PTX_INLINE T max(T a, T b) {
    return a < b ? b : a;
}
template <class T>
PTX_INLINE T and_of(T a, T b) {
    return a & b;
}
template <class T>
PTX_INLINE T or_of(T a, T b) {
    return a | b;
}
template <class T>
PTX_INLINE T xor_of(T a, T b) {
    return a ^ b;
}
template <class T>
PTX_INLINE T not_of(T a) {
    return (T)~a;
}
PTX_INLINE bool not_of(bool a) { return !a; }

// Shifts by the width or more leave nothing, or the sign.
template <class T>
PTX_INLINE T shl(T a, u32 by) {
    return by >= BITS<T> ? 0 : (T)(a << by);
}
template <class T>
PTX_INLINE T shr(T a, u32 by) {
    return by >= BITS<T> ? (a < 0 ? (T)-1 : 0) : (T)(a >> by);
}
// The upper word of (b, a) shifted to the left, or the lower one of it shifted to the right.
// Byte i of the result is the byte of b a that the i-th four bits of `select` say, or its sign eight times.
PTX_INLINE u32 prmt(u32 a, u32 b, u32 select) {
    u32 bytes = 0;
    for (u32 i = 0; i < 4; i++) {
        u32 from = select >> 4 * i, byte = (u32)(((u64)b << 32 | a) >> 8 * (from & 7)) & 0xff;
        bytes |= ((from & 8) == 0 ? byte : byte >> 7 != 0 ? 0xff : 0) << 8 * i;
    }
    return bytes;
}
PTX_INLINE u32 shf_l(u32 a, u32 b, u32 by) { return (u32)(((u64)b << 32 | a) << (by & 31) >> 32); }
PTX_INLINE u32 shf_r(u32 a, u32 b, u32 by) { return (u32)(((u64)b << 32 | a) >> (by & 31)); }
PTX_INLINE u32 brev(u32 a) { return reverse_bits(a); }
PTX_INLINE u64 brev(u64 a) { return (u64)reverse_bits((u32)a) << 32 | reverse_bits((u32)(a >> 32)); }
// The low `length` bits of a at `from` in b.
template <class T>
PTX_INLINE T bfi(T a, T b, u32 from, u32 length) {
    from &= 255;
    length &= 255;
    T ones = length >= BITS<T> ? (T)~(T)0 : (T)(((T)1 << length) - 1);
    return (b & ~shl<T>(ones, from)) | shl<T>(a & ones, from);
}
template <class T>
PTX_INLINE T selp(T a, T b, bool first) {
    return first ? a : b;
}

template <class T>
PTX_INLINE bool is_eq(T a, T b) {
    return a == b;
}
// Of doubles, false where one is no number.
template <class T>
PTX_INLINE bool is_ne(T a, T b) {
    return a < b || a > b;
}
template <class T>
PTX_INLINE bool is_lt(T a, T b) {
    return a < b;
}
template <class T>
PTX_INLINE bool is_le(T a, T b) {
    return a <= b;
}
template <class T>
PTX_INLINE bool is_gt(T a, T b) {
    return a > b;
}
template <class T>
PTX_INLINE bool is_ge(T a, T b) {
    return a >= b;
}
// True where one is no number.
PTX_INLINE bool is_equ(double a, double b) { return !is_ne(a, b); }
PTX_INLINE bool is_neu(double a, double b) { return !(a == b); }
PTX_INLINE bool is_ltu(double a, double b) { return !(a >= b); }
PTX_INLINE bool is_leu(double a, double b) { return !(a > b); }
PTX_INLINE bool is_gtu(double a, double b) { return !(a <= b); }
PTX_INLINE bool is_geu(double a, double b) { return !(a < b); }

PTX_INLINE double add_rn(double a, double b) { return a + b; }
PTX_INLINE double sub_rn(double a, double b) { return a - b; }
PTX_INLINE double mul_rn(double a, double b) { return a * b; }
PTX_INLINE double fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
// Other roundings, of which transforms have none: slow.
template <class Operation>
__attribute__((noinline)) double rounded(int mode, Operation operation) {
    const int before = std::fegetround();
    std::fesetround(mode);
    volatile double result = operation();
    std::fesetround(before);
    return result;
}
#define PTX_ROUNDED(suffix, mode)                                                                          \
    inline double add_##suffix(double a, double b) {                                                       \
        volatile double x = a, y = b;                                                                      \
        return rounded(mode, [&] { return x + y; });                                                       \
    }                                                                                                      \
    inline double sub_##suffix(double a, double b) { return add_##suffix(a, -b); }                         \
    inline double mul_##suffix(double a, double b) {                                                       \
        volatile double x = a, y = b;                                                                      \
        return rounded(mode, [&] { return x * y; });                                                       \
    }                                                                                                      \
    inline double fma_##suffix(double a, double b, double c) {                                             \
        volatile double x = a, y = b, z = c;                                                               \
        return rounded(mode, [&] { return std::fma(x, y, z); });                                           \
    }
PTX_ROUNDED(rz, FE_TOWARDZERO)
PTX_ROUNDED(rm, FE_DOWNWARD)
PTX_ROUNDED(rp, FE_UPWARD)
#undef PTX_ROUNDED

// An integer in a double to an integer type: what is beyond is its end, what is no number 2^(bits - 1).
template <class T>
PTX_INLINE T saturated(double x) {
    const double least = std::is_signed_v<T> ? -std::ldexp(1.0, BITS<T> - 1) : 0.0;
    const double end = std::ldexp(1.0, std::is_signed_v<T> ? BITS<T> - 1 : BITS<T>);
    const Word<T> top = (Word<T>)1 << (BITS<T> - 1);
    if (std::isnan(x)) {
        return (T)top;
    }
    const Word<T> most = std::is_signed_v<T> ? top - 1 : (Word<T>)~(Word<T>)0;
    return x >= end ? (T)most : x < least ? (T)(std::is_signed_v<T> ? top : 0) : (T)x;
}
template <class T>
PTX_INLINE T rni(double x) {
    return saturated<T>(std::nearbyint(x));
}
template <class T>
PTX_INLINE T rzi(double x) {
    return saturated<T>(std::trunc(x));
}
template <class T>
PTX_INLINE T rmi(double x) {
    return saturated<T>(std::floor(x));
}
template <class T>
PTX_INLINE T rpi(double x) {
    return saturated<T>(std::ceil(x));
}

}  // namespace ptx
