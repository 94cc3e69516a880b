// What PTX instructions compute, and what a thread of a translated entry has: its place, its counters, and its memory,
// with the checks of alignment and reach that a card makes; build/cpp.rs writes the calls.
#pragma once
#include <cfenv>
#include <type_traits>

#include "device.h"

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
T load(const char* from, u32 index) {
    T word;
    std::memcpy(&word, from + index * sizeof word, sizeof word);
    return word;
}
template <class T>
void store(char* to, u32 index, T word) {
    std::memcpy(to + index * sizeof word, &word, sizeof word);
}

class Thread {
public:
    const emulator::Here at = emulator::here;
    // The address of the parameter.
    const u64 arguments;
    u32* const counts;

    Thread(size_t stretches, const void* list, size_t bytes)
        : arguments((u64)list), counts(emulator::begin(stretches)), traced(emulator::traced()), argument_bytes(bytes) {}

    char* global(u64 address, u32 bytes, u32 site) const { return access(address, address, bytes, site); }
    char* generic(u64 address, u32 bytes, u32 site) const { return access(address, address, bytes, site); }
    // Addresses of shared memory have 32 bits.
    char* shared(u64 address, u32 bytes, u32 site) const {
        if ((u32)address > at.shared_bytes || at.shared_bytes - (u32)address < bytes) {
            return emulator::out_of_bounds();
        }
        return access((u32)address, (u64)at.shared + (u32)address, bytes, site);
    }
    const char* param(u64 address, u32 bytes) const {
        u64 at = address - arguments;
        if (at > argument_bytes || argument_bytes - at < bytes) {
            return emulator::out_of_bounds();
        }
        return at % bytes == 0 ? (const char*)address : emulator::misaligned();
    }
    u64 generic_of_shared(u64 address) const { return (u64)at.shared + (u32)address; }
    u64 shared_of(u64 own, u32 rank) const { return (u64)emulator::shared_of((u64*)own, rank); }

private:
    char* access(u64 address, u64 place, u32 bytes, u32 site) const {
        if (traced) {
            emulator::touch(site, address);
        }
        return address % bytes == 0 ? (char*)place : emulator::misaligned();
    }

    const bool traced;
    const size_t argument_bytes;
};

template <class T>
T add(T a, T b) {
    return (T)(Word<T>)((Word<T>)a + (Word<T>)b);
}
template <class T>
T sub(T a, T b) {
    return (T)(Word<T>)((Word<T>)a - (Word<T>)b);
}
template <class T>
T neg(T a) {
    return sub<T>(0, a);
}
// Without a rounding: to nearest.
inline double add(double a, double b) { return a + b; }
inline double sub(double a, double b) { return a - b; }
inline double neg(double a) { return -a; }

template <class T>
T mul_lo(T a, T b) {
    return (T)(Word<T>)((u128)(Wide<T>)a * (u128)(Wide<T>)b);
}
template <class T>
T mul_hi(T a, T b) {
    return (T)((Wide<T>)a * (Wide<T>)b >> BITS<T>);
}
template <class T>
T mad_lo(T a, T b, T c) {
    return add<T>(mul_lo<T>(a, b), c);
}
template <class T>
T mad_hi(T a, T b, T c) {
    return add<T>(mul_hi<T>(a, b), c);
}
inline u32 mul_wide(u16 a, u16 b) { return (u32)a * b; }
inline i32 mul_wide(i16 a, i16 b) { return (i32)a * b; }
inline u64 mul_wide(u32 a, u32 b) { return (u64)a * b; }
inline i64 mul_wide(i32 a, i32 b) { return (i64)a * b; }
template <class T, class W>
W mad_wide(T a, T b, W c) {
    return add<W>(mul_wide(a, b), c);
}
// a + b, with the carry before if `takes`; the carry out is left if `gives`.
template <class T>
T sum(T a, T b, bool takes, bool gives, bool& carry) {
    u128 all = (u128)a + b + (takes && carry ? 1 : 0);
    carry = gives ? (all >> BITS<T>) != 0 : carry;
    return (T)all;
}
// The same of a - b, with borrows.
template <class T>
T difference(T a, T b, bool takes, bool gives, bool& carry) {
    u128 all = (u128)a - b - (takes && carry ? 1 : 0);
    carry = gives ? (all >> BITS<T> & 1) != 0 : carry;
    return (T)all;
}
// What division by zero gives is not said: here, all ones and the dividend.
template <class T>
T div(T a, T b) {
    return b == 0 ? (T)~(T)0 : (T)((Wide<T>)a / (Wide<T>)b);
}
template <class T>
T rem(T a, T b) {
    return b == 0 ? a : (T)((Wide<T>)a % (Wide<T>)b);
}
template <class T>
T min(T a, T b) {
    return a < b ? a : b;
}
template <class T>
T max(T a, T b) {
    return a < b ? b : a;
}
template <class T>
T and_of(T a, T b) {
    return a & b;
}
template <class T>
T or_of(T a, T b) {
    return a | b;
}
template <class T>
T xor_of(T a, T b) {
    return a ^ b;
}
template <class T>
T not_of(T a) {
    return (T)~a;
}
inline bool not_of(bool a) { return !a; }

// Shifts by the width or more leave nothing, or the sign.
template <class T>
T shl(T a, u32 by) {
    return by >= BITS<T> ? 0 : (T)(a << by);
}
template <class T>
T shr(T a, u32 by) {
    return by >= BITS<T> ? (a < 0 ? (T)-1 : 0) : (T)(a >> by);
}
// The upper word of (b, a) shifted to the left, or the lower one of it shifted to the right.
inline u32 shf_l(u32 a, u32 b, u32 by) { return (u32)(((u64)b << 32 | a) << (by & 31) >> 32); }
inline u32 shf_r(u32 a, u32 b, u32 by) { return (u32)(((u64)b << 32 | a) >> (by & 31)); }
inline u32 brev(u32 a) { return reverse_bits(a); }
inline u64 brev(u64 a) { return (u64)reverse_bits((u32)a) << 32 | reverse_bits((u32)(a >> 32)); }
// The low `length` bits of a at `from` in b.
template <class T>
T bfi(T a, T b, u32 from, u32 length) {
    from &= 255;
    length &= 255;
    T ones = length >= BITS<T> ? (T)~(T)0 : (T)(((T)1 << length) - 1);
    return (b & ~shl<T>(ones, from)) | shl<T>(a & ones, from);
}
template <class T>
T selp(T a, T b, bool first) {
    return first ? a : b;
}

template <class T>
bool is_eq(T a, T b) {
    return a == b;
}
// Of doubles, false where one is no number.
template <class T>
bool is_ne(T a, T b) {
    return a < b || a > b;
}
template <class T>
bool is_lt(T a, T b) {
    return a < b;
}
template <class T>
bool is_le(T a, T b) {
    return a <= b;
}
template <class T>
bool is_gt(T a, T b) {
    return a > b;
}
template <class T>
bool is_ge(T a, T b) {
    return a >= b;
}
// True where one is no number.
inline bool is_equ(double a, double b) { return !is_ne(a, b); }
inline bool is_neu(double a, double b) { return !(a == b); }
inline bool is_ltu(double a, double b) { return !(a >= b); }
inline bool is_leu(double a, double b) { return !(a > b); }
inline bool is_gtu(double a, double b) { return !(a <= b); }
inline bool is_geu(double a, double b) { return !(a < b); }

inline double add_rn(double a, double b) { return a + b; }
inline double sub_rn(double a, double b) { return a - b; }
inline double mul_rn(double a, double b) { return a * b; }
inline double fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
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
T saturated(double x) {
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
T rni(double x) {
    return saturated<T>(std::nearbyint(x));
}
template <class T>
T rzi(double x) {
    return saturated<T>(std::trunc(x));
}
template <class T>
T rmi(double x) {
    return saturated<T>(std::floor(x));
}
template <class T>
T rpi(double x) {
    return saturated<T>(std::ceil(x));
}

}  // namespace ptx
