//! Single PTX instructions with what they compute, for tests of the translator; the build script makes an entry of each.
//!
//! A thread has the words a, b and c in `%rd1` to `%rd3`, their lower halves in `%r1` to `%r3`, the lowest quarters in
//! `%rs1` to `%rs3`, and as signed integers, rounded, in `%fd1` to `%fd3`; `%p1` is whether a is odd, `%p2` whether b is.
//! `%rd15` is the address of 16 bytes of its own in shared memory, `%rd13` that of a in device memory, `%rd11` and
//! `%rd12` are the arguments, PARAMETER is where they are. The result is what stands in `%rd10`, `%r10`, `%rs10`, `%fd10`
//! or `%p10`, and is compared as a word; of doubles without the sign of zero.

/// Instructions, and their result.
pub(crate) struct Case {
    pub(crate) ptx: &'static str,
    pub(crate) result: fn(u64, u64, u64) -> u64,
}

const fn case(ptx: &'static str, result: fn(u64, u64, u64) -> u64) -> Case {
    Case { ptx, result }
}

const fn low(x: u64) -> u64 {
    x & 0xffff_ffff
}
const fn signed(x: u64) -> i32 {
    x as u32 as i32
}
const fn wide(x: u64) -> u128 {
    x as u128
}

/// How a real becomes a double or an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}
use Rounding::{Down, Nearest, Up, Zero};

/// An integer as a double, in integers alone.
fn double(x: i128, rounding: Rounding) -> u64 {
    let (sign, size) = (x < 0, x.unsigned_abs());
    if size == 0 {
        return 0;
    }
    let bits = 128 - size.leading_zeros();
    let drop = bits.saturating_sub(53);
    let (kept, rest) = (size >> drop, size & ((1 << drop) - 1));
    let half = if drop == 0 { 0 } else { 1 << (drop - 1) };
    let up = match rounding {
        Nearest => drop > 0 && (rest > half || rest == half && kept & 1 == 1),
        Zero => false,
        Down => sign && rest > 0,
        Up => !sign && rest > 0,
    };
    let kept = (kept + u128::from(up)) as u64;
    // A double's exponent for its leading bit; what is carried out of 53 bits goes into it.
    let shift = 53 - bits.min(53);
    let exponent = u64::from(1023 + bits - 1);
    (u64::from(sign) << 63) | (((exponent - 1) << 52) + (kept << shift))
}
/// A signed word as an integer, rounded to a double.
fn of(x: u64) -> i128 {
    value(double(i128::from(x as i64), Nearest))
}
/// The integer that a double is.
fn value(bits: u64) -> i128 {
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1075;
    let kept = i128::from(bits & ((1 << 52) - 1) | 1 << 52);
    let size = match exponent {
        _ if bits << 1 == 0 => 0,
        0.. => kept << exponent,
        _ => kept >> -exponent,
    };
    if bits >> 63 == 1 { -size } else { size }
}
/// x / 2^6 in whole numbers, as far as words of so many bits hold it.
fn sixty_fourth(x: i128, rounding: Rounding, least: i128, most: i128) -> u64 {
    let (floor, rest) = (x.div_euclid(64), x.rem_euclid(64));
    let up = match rounding {
        Nearest => rest > 32 || rest == 32 && floor & 1 == 1,
        Zero => x < 0 && rest > 0,
        Down => false,
        Up => rest > 0,
    };
    (floor + i128::from(up)).clamp(least, most) as u64
}

/// All of them.
pub(crate) const CASES: &[Case] = &[
    case("mov.u64 %rd10, %rd1;", |a, _, _| a),
    case("mov.u32 %r10, %r1;", |a, _, _| low(a)),
    case("mov.b64 %rd10, %fd1;", |a, _, _| double(i128::from(a as i64), Nearest)),
    case("mov.f64 %fd10, 0dC000000000000000;", |_, _, _| (-2f64).to_bits()),
    case("mov.u32 %r10, -3;", |_, _, _| low(-3i64 as u64)),
    case("mov.pred %p10, %p1;", |a, _, _| a & 1),
    case("add.s64 %rd10, %rd1, %rd2;", |a, b, _| a.wrapping_add(b)),
    case("add.s32 %r10, %r1, -5;", |a, _, _| low(a.wrapping_sub(5))),
    case("sub.s64 %rd10, %rd1, %rd2;", |a, b, _| a.wrapping_sub(b)),
    case("sub.s32 %r10, %r1, %r2;", |a, b, _| low(a.wrapping_sub(b))),
    case("add.cc.u64 %rd20, %rd1, %rd2; addc.u64 %rd10, %rd3, 0;", |a, b, c| {
        c.wrapping_add(u64::from(a.overflowing_add(b).1))
    }),
    case("add.cc.u32 %r20, %r1, %r2; addc.cc.u32 %r21, %r3, %r1; addc.u32 %r10, %r2, %r2;", |a, b, c| {
        let first = (low(a) + low(b)) >> 32;
        low(2 * low(b) + ((low(c) + low(a) + first) >> 32))
    }),
    // What has no `.cc` leaves the carry as it is.
    case(
        "add.cc.u64 %rd20, %rd1, %rd2; add.s64 %rd21, %rd1, %rd1; addc.u64 %rd22, %rd1, %rd1; addc.u64 %rd10, %rd3, %rd3;",
        |a, b, c| c.wrapping_add(c).wrapping_add(u64::from(a.overflowing_add(b).1)),
    ),
    case("sub.cc.u64 %rd20, %rd1, %rd2; subc.u64 %rd10, %rd3, 0;", |a, b, c| c.wrapping_sub(u64::from(a < b))),
    case("sub.cc.u32 %r20, %r1, %r2; subc.cc.u32 %r21, %r3, 0; subc.u32 %r10, 0, 0;", |a, b, c| {
        low((u64::from(low(c) < u64::from(low(a) < low(b)))).wrapping_neg())
    }),
    case("mad.lo.cc.u64 %rd20, %rd1, %rd2, %rd3; madc.hi.u64 %rd10, %rd1, %rd2, 7;", |a, b, c| {
        ((wide(a) * wide(b) + wide(c)) >> 64).wrapping_add(7) as u64
    }),
    case("mad.lo.cc.u32 %r20, %r1, %r2, %r3; madc.hi.cc.u32 %r21, %r1, %r2, %r1; addc.u32 %r10, 0, 0;", |a, b, c| {
        let (a, b, c) = (wide(low(a)), wide(low(b)), wide(low(c)));
        ((a * b + c + (a << 32)) >> 64) as u64
    }),
    case("mul.lo.s64 %rd10, %rd1, %rd2;", |a, b, _| a.wrapping_mul(b)),
    case("mul.lo.s32 %r10, %r1, %r2;", |a, b, _| low(a.wrapping_mul(b))),
    case("mul.lo.u16 %rs10, %rs1, %rs2;", |a, b, _| a.wrapping_mul(b) & 0xffff),
    case("mul.hi.u64 %rd10, %rd1, %rd2;", |a, b, _| ((wide(a) * wide(b)) >> 64) as u64),
    case("mul.hi.s64 %rd10, %rd1, %rd2;", |a, b, _| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64),
    case("mul.hi.u32 %r10, %r1, %r2;", |a, b, _| (low(a) * low(b)) >> 32),
    case("mul.wide.u32 %rd10, %r1, %r2;", |a, b, _| low(a) * low(b)),
    case("mul.wide.s32 %rd10, %r1, %r2;", |a, b, _| (i64::from(signed(a)) * i64::from(signed(b))) as u64),
    case("mul.wide.u16 %r10, %rs1, %rs2;", |a, b, _| (a & 0xffff) * (b & 0xffff)),
    case("mad.lo.s64 %rd10, %rd1, %rd2, %rd3;", |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
    case("mad.lo.s32 %r10, %r1, %r2, %r3;", |a, b, c| low(a.wrapping_mul(b).wrapping_add(c))),
    case("mad.hi.u64 %rd10, %rd1, %rd2, %rd3;", |a, b, c| (((wide(a) * wide(b)) >> 64) as u64).wrapping_add(c)),
    case("mad.wide.u32 %rd10, %r1, %r2, %rd3;", |a, b, c| (low(a) * low(b)).wrapping_add(c)),
    case("or.b32 %r20, %r2, 1; div.u32 %r10, %r1, %r20;", |a, b, _| low(a) / (low(b) | 1)),
    case("or.b32 %r20, %r2, 1; rem.u32 %r10, %r1, %r20;", |a, b, _| low(a) % (low(b) | 1)),
    case("or.b64 %rd20, %rd2, 1; div.s64 %rd10, %rd1, %rd20;", |a, b, _| {
        (a as i64).wrapping_div((b | 1) as i64) as u64
    }),
    case("min.u32 %r10, %r1, %r2;", |a, b, _| low(a).min(low(b))),
    case("max.u32 %r10, %r1, %r2;", |a, b, _| low(a).max(low(b))),
    case("min.s32 %r10, %r1, %r2;", |a, b, _| low(signed(a).min(signed(b)) as u64)),
    case("neg.s64 %rd10, %rd1;", |a, _, _| a.wrapping_neg()),
    case("neg.s32 %r10, %r1;", |a, _, _| low(a.wrapping_neg())),
    case("and.b64 %rd10, %rd1, %rd2;", |a, b, _| a & b),
    case("or.b32 %r10, %r1, %r2;", |a, b, _| low(a | b)),
    case("xor.b64 %rd10, %rd1, -2;", |a, _, _| a ^ -2i64 as u64),
    case("not.b32 %r10, %r1;", |a, _, _| low(!a)),
    case("and.pred %p10, %p1, %p2;", |a, b, _| a & b & 1),
    case("or.pred %p10, %p1, %p2;", |a, b, _| (a | b) & 1),
    case("xor.pred %p10, %p1, %p2;", |a, b, _| (a ^ b) & 1),
    case("not.pred %p10, %p1;", |a, _, _| !a & 1),
    case("and.b32 %r20, %r2, 63; shl.b32 %r10, %r1, %r20;", |a, b, _| low(a << (b & 63)) * u64::from(b & 63 < 32)),
    case("and.b32 %r20, %r2, 127; shl.b64 %rd10, %rd1, %r20;", |a, b, _| (wide(a) << (b & 63) << (b & 64)) as u64),
    case("and.b32 %r20, %r2, 63; shr.u32 %r10, %r1, %r20;", |a, b, _| low(a) >> (b & 63)),
    case("and.b32 %r20, %r2, 127; shr.u64 %rd10, %rd1, %r20;", |a, b, _| (wide(a) >> (b & 127)) as u64),
    case("and.b32 %r20, %r2, 63; shr.s32 %r10, %r1, %r20;", |a, b, _| low((i64::from(signed(a)) >> (b & 63)) as u64)),
    case("and.b32 %r20, %r2, 127; shr.s64 %rd10, %rd1, %r20;", |a, b, _| (i128::from(a as i64) >> (b & 127)) as u64),
    case("shf.l.wrap.b32 %r10, %r1, %r2, %r3;", |a, b, c| (low(b) << 32 | low(a)) << (c & 31) >> 32),
    case("shf.r.wrap.b32 %r10, %r1, %r2, %r3;", |a, b, c| low((low(b) << 32 | low(a)) >> (c & 31))),
    // Bytes 4, 0, 1 and 2 of b a, from the lowest on.
    case("prmt.b32 %r10, %r1, %r2, 8452;", |a, b, _| b & 0xff | low(a) << 8 & 0xffff_ff00),
    // A selector's fourth bit is for the sign of its byte, eight times.
    case("prmt.b32 %r10, %r1, %r2, 30587;", |a, b, _| {
        let sign = if a >> 31 & 1 == 1 { 0xff } else { 0 };
        let top = low(b) >> 24;
        sign | top << 8 | top << 16 | top << 24
    }),
    case("brev.b32 %r10, %r1;", |a, _, _| u64::from((a as u32).reverse_bits())),
    case("brev.b64 %rd10, %rd1;", |a, _, _| a.reverse_bits()),
    case("bfi.b64 %rd10, %rd1, %rd2, 32, 32;", |a, b, _| low(b) | a << 32),
    case("bfi.b64 %rd10, %rd1, %rd2, 5, 9;", |a, b, _| b & !(0x1ff << 5) | (a & 0x1ff) << 5),
    case("bfi.b32 %r10, %r1, %r2, 24, 16;", |a, b, _| low(b) & 0xff_ffff | low(a << 24)),
    case("bfi.b64 %rd10, %rd1, %rd2, 0, 64;", |a, _, _| a),
    case("setp.eq.s64 %p10, %rd1, %rd2;", |a, b, _| u64::from(a == b)),
    case("setp.ne.s16 %p10, %rs1, -1;", |a, _, _| u64::from(a & 0xffff != 0xffff)),
    case("setp.eq.b32 %p10, %r1, %r2;", |a, b, _| u64::from(low(a) == low(b))),
    case("setp.lt.u64 %p10, %rd1, %rd2;", |a, b, _| u64::from(a < b)),
    case("setp.lt.s64 %p10, %rd1, %rd2;", |a, b, _| u64::from((a as i64) < b as i64)),
    case("setp.le.u32 %p10, %r1, %r2;", |a, b, _| u64::from(low(a) <= low(b))),
    case("setp.gt.s32 %p10, %r1, %r2;", |a, b, _| u64::from(signed(a) > signed(b))),
    case("setp.ge.u32 %p10, %r1, %r2;", |a, b, _| u64::from(low(a) >= low(b))),
    case("setp.lt.f64 %p10, %fd1, %fd2;", |a, b, _| u64::from(of(a) < of(b))),
    case("setp.geu.f64 %p10, %fd1, %fd2;", |a, b, _| u64::from(of(a) >= of(b))),
    case("setp.ge.f64 %p10, %fd1, 0d7FF8000000000000;", |_, _, _| 0),
    case("setp.geu.f64 %p10, %fd1, 0d7FF8000000000000;", |_, _, _| 1),
    case("setp.ne.f64 %p10, %fd1, 0d7FF8000000000000;", |_, _, _| 0),
    case("setp.neu.f64 %p10, %fd1, 0d7FF8000000000000;", |_, _, _| 1),
    case("setp.equ.f64 %p10, %fd1, 0d7FF8000000000000;", |_, _, _| 1),
    case("selp.b64 %rd10, %rd1, %rd2, %p1;", |a, b, _| if a & 1 == 1 { a } else { b }),
    case("selp.f64 %fd10, %fd1, %fd2, %p2;", |a, b, _| double(of(if b & 1 == 1 { a } else { b }), Nearest)),
    case("cvt.u64.u32 %rd10, %r1;", |a, _, _| low(a)),
    case("cvt.s64.s32 %rd10, %r1;", |a, _, _| i64::from(signed(a)) as u64),
    case("cvt.u32.u64 %r10, %rd1;", |a, _, _| low(a)),
    case("cvt.u32.u16 %r10, %rs1;", |a, _, _| a & 0xffff),
    case("cvt.s32.s16 %r10, %rs1;", |a, _, _| low(i64::from(a as i16) as u64)),
    case("cvt.rn.f64.u64 %fd10, %rd1;", |a, _, _| double(i128::from(a), Nearest)),
    case("cvt.rn.f64.s64 %fd10, %rd1;", |a, _, _| double(i128::from(a as i64), Nearest)),
    case("mul.rn.f64 %fd20, %fd1, 0d3F90000000000000; cvt.rmi.u64.f64 %rd10, %fd20;", |a, _, _| {
        sixty_fourth(of(a), Down, 0, i128::from(u64::MAX))
    }),
    case("mul.rn.f64 %fd20, %fd1, 0d3F90000000000000; cvt.rni.u64.f64 %rd10, %fd20;", |a, _, _| {
        sixty_fourth(of(a), Nearest, 0, i128::from(u64::MAX))
    }),
    case("mul.rn.f64 %fd20, %fd1, 0d3F90000000000000; cvt.rzi.s64.f64 %rd10, %fd20;", |a, _, _| {
        sixty_fourth(of(a), Zero, i128::from(i64::MIN), i128::from(i64::MAX))
    }),
    case("mul.rn.f64 %fd20, %fd1, 0d3F90000000000000; cvt.rpi.s32.f64 %r10, %fd20;", |a, _, _| {
        low(sixty_fourth(of(a), Up, i128::from(i32::MIN), i128::from(i32::MAX)))
    }),
    case("add.rn.f64 %fd10, %fd1, %fd2;", |a, b, _| double(of(a) + of(b), Nearest)),
    case("add.f64 %fd10, %fd1, %fd2;", |a, b, _| double(of(a) + of(b), Nearest)),
    case("add.rz.f64 %fd10, %fd1, %fd2;", |a, b, _| double(of(a) + of(b), Zero)),
    case("sub.rm.f64 %fd10, %fd1, %fd2;", |a, b, _| double(of(a) - of(b), Down)),
    case("sub.rp.f64 %fd10, %fd1, %fd2;", |a, b, _| double(of(a) - of(b), Up)),
    case("mul.rn.f64 %fd10, %fd1, %fd2;", |a, b, _| product([a, b], 0, Nearest)),
    case("mul.rz.f64 %fd10, %fd1, %fd2;", |a, b, _| product([a, b], 0, Zero)),
    case("mul.rp.f64 %fd10, %fd1, %fd2;", |a, b, _| product([a, b], 0, Up)),
    case("fma.rn.f64 %fd10, %fd1, %fd2, %fd3;", |a, b, c| product([a, b], of(c), Nearest)),
    case("fma.rz.f64 %fd10, %fd1, %fd2, %fd3;", |a, b, c| product([a, b], of(c), Zero)),
    case("fma.rm.f64 %fd10, %fd1, %fd2, %fd3;", |a, b, c| product([a, b], of(c), Down)),
    case("neg.f64 %fd10, %fd1;", |a, _, _| double(-of(a), Nearest)),
    // Memory.
    case("st.shared.u64 [%rd15], %rd1; ld.shared.u32 %r10, [%rd15+4];", |a, _, _| a >> 32),
    case("st.shared.v2.u32 [%rd15+8], {%r1, %r2}; ld.shared.u64 %rd10, [%rd15+8];", |a, b, _| low(b) << 32 | low(a)),
    case("st.shared.v2.u64 [%rd15], {%rd1, %rd2}; ld.shared.v2.u64 {%rd20, %rd10}, [%rd15];", |_, b, _| b),
    case("st.shared.v4.u32 [%rd15], {%r1, %r2, %r3, %r1}; ld.shared.u64 %rd10, [%rd15+8];", |a, _, c| {
        low(a) << 32 | low(c)
    }),
    case("st.shared.u64 [%rd15], %rd1; st.shared.u16 [%rd15+2], %rs2; ld.shared.u64 %rd10, [%rd15];", |a, b, _| {
        a & !0xffff_0000 | (b & 0xffff) << 16
    }),
    case("st.shared.f64 [%rd15], %fd1; ld.shared.u64 %rd10, [%rd15];", |a, _, _| double(of(a), Nearest)),
    case("st.shared.u64 [%rd15], %rd1; add.s64 %rd20, %rd15, 8; ld.shared.u64 %rd10, [%rd20+-8];", |a, _, _| a),
    case("ld.global.v2.f64 {%fd20, %fd21}, [%rd13]; mov.b64 %rd10, %fd21;", |_, b, _| b),
    case("ld.global.u32 %rd10, [%rd13+20];", |_, _, c| c >> 32),
    case("ld.global.s32 %rd10, [%rd13];", |a, _, _| i64::from(signed(a)) as u64),
    case("ld.global.u16 %rs10, [%rd13+10];", |_, b, _| b >> 16 & 0xffff),
    case("st.global.v2.u64 [%rd13], {%rd3, %rd1}; ld.u64 %rd10, [%rd13];", |_, _, c| c),
    case("cvta.shared.u64 %rd20, %rd15; st.u64 [%rd20], %rd1; ld.shared.u64 %rd10, [%rd15];", |a, _, _| a),
    case("mov.b64 %rd20, PARAMETER; ld.param.u64 %rd21, [%rd20+8]; sub.s64 %rd10, %rd21, %rd12;", |_, _, _| 0),
    case(
        "ld.param.v2.u32 {%r20, %r21}, [PARAMETER]; shr.u64 %rd20, %rd11, 32; cvt.u32.u64 %r20, %rd20; \
          sub.s32 %r10, %r21, %r20;",
        |_, _, _| 0,
    ),
    // Control.
    case("mov.u64 %rd10, %rd1; @%p1 bra $done; mov.u64 %rd10, %rd2; $done:", |a, b, _| if a & 1 == 1 { a } else { b }),
    case(
        "mov.u64 %rd10, %rd1; @!%p1 add.s64 %rd10, %rd10, %rd2;",
        |a, b, _| {
            if a & 1 == 1 { a } else { a.wrapping_add(b) }
        },
    ),
    case(
        "mov.u64 %rd10, 0; and.b64 %rd20, %rd1, 15; $again: setp.eq.s64 %p3, %rd20, 0; @%p3 bra $done; \
          add.s64 %rd10, %rd10, %rd2; add.s64 %rd20, %rd20, -1; bra.uni $again; $done:",
        |a, b, _| b.wrapping_mul(a & 15),
    ),
    // Twice, so that the second store of a thread does not overtake the first load of another.
    case(
        "xor.b64 %rd20, %rd15, 16; st.shared.u64 [%rd15], %rd1; bar.sync 0; ld.shared.u64 %rd21, [%rd20]; bar.sync 0; \
          st.shared.u64 [%rd15], %rd21; bar.sync 0; ld.shared.u64 %rd10, [%rd20];",
        |a, _, _| a,
    ),
];

/// a b + c.
fn product([a, b]: [u64; 2], c: i128, rounding: Rounding) -> u64 {
    double(of(a) * of(b) + c, rounding)
}

/// An entry that does a case's instructions, `index` its number.
pub(crate) fn entry(index: usize, case: &Case) -> String {
    let name = format!("instructions_{index}");
    let result = ["%r10", "%rs10", "%fd10", "%p10"].into_iter().find(|register| case.ptx.contains(register));
    let result = match result {
        Some("%r10") => "cvt.u64.u32 %rd10, %r10;",
        Some("%rs10") => "cvt.u64.u16 %rd10, %rs10;",
        Some("%fd10") => "add.rn.f64 %fd10, %fd10, 0d0000000000000000;\nmov.b64 %rd10, %fd10;",
        Some(_) => "selp.u64 %rd10, 1, 0, %p10;",
        None => "",
    };
    let lines = case.ptx.replace("; ", ";\n").replace(": ", ":\n").replace("PARAMETER", &format!("{name}_param_0"));
    format!(
        ".visible .entry {name}(\n.param .align 8 .b8 {name}_param_0[16]\n)\n.maxntid 1024, 1, 1\n{{\n\
         .reg .pred %p<32>;\n.reg .b16 %rs<32>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<32>;\n.reg .f64 %fd<32>;\n\
         ld.param.u64 %rd11, [{name}_param_0];\nld.param.u64 %rd12, [{name}_param_0+8];\n\
         mov.u32 %r11, %tid.x;\nmul.wide.u32 %rd13, %r11, 32;\nadd.s64 %rd13, %rd12, %rd13;\n\
         mul.wide.u32 %rd15, %r11, 16;\nmov.u64 %rd14, dev_shared;\nadd.s64 %rd15, %rd14, %rd15;\n\
         mul.wide.u32 %rd14, %r11, 8;\nadd.s64 %rd14, %rd11, %rd14;\n\
         ld.global.v2.u64 {{%rd1, %rd2}}, [%rd13];\nld.global.u64 %rd3, [%rd13+16];\n{}\
         and.b64 %rd31, %rd1, 1;\nsetp.eq.s64 %p1, %rd31, 1;\nand.b64 %rd31, %rd2, 1;\nsetp.eq.s64 %p2, %rd31, 1;\n\
         {lines}\n{result}\nst.global.u64 [%rd14], %rd10;\nret;\n}}\n",
        [1, 2, 3]
            .map(|i| {
                format!("cvt.u32.u64 %r{i}, %rd{i};\ncvt.u16.u64 %rs{i}, %rd{i};\ncvt.rn.f64.s64 %fd{i}, %rd{i};\n")
            })
            .concat(),
    )
}
