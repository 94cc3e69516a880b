//! The PTX that cards are given: what single instructions compute, what is not translated, and planted faults, each of which
//! a law finds.

use std::ffi::{CStr, CString};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::runs::say;
use synchromesh_cuda::Transforms;
use synchromesh_cuda::{Argument, Arguments, Counts, Cuda, Device, DeviceError, Emulated, Kernels, Launch, Order};
use synchromesh_ring::Cpu;
use synchromesh_testing::laws;
use synchromesh_testing::random::SplitMix;
use synchromesh_testing::toy::sets;

#[path = "../../build/cpp.rs"]
mod cpp;
#[path = "../../build/instructions.rs"]
#[allow(dead_code, reason = "the build script makes the entries")]
mod instructions;
#[path = "../../build/ptx.rs"]
mod ptx;

use instructions::CASES;

const ORDERS: [Order; 3] = [Order::Ascending, Order::Descending, Order::Shuffled(11)];
const THREADS: usize = 512;

/// Runs a case's entry, one thread for each three words.
fn run(device: &Emulated, index: usize, operands: &[[u64; 4]]) -> Result<Vec<u64>, DeviceError> {
    let threads = operands.len();
    let mut results = vec![0; threads];
    let name = CString::new(format!("instructions_{index}")).expect("a name");
    let launch = Launch { grid: [1, 1, 1], cluster: 1, threads: threads as u32, shared: 16 * threads as u32 };
    let [to, from] = [8, 32].map(|bytes| device.allocate(bytes * threads).expect("memory"));
    // SAFETY: both buffers are as long as the entry takes them to be.
    let done = unsafe {
        device.write(operands.as_flattened(), from)?;
        let done = device.launch(&name, launch, &Arguments::new(&[Argument::new(&to), Argument::new(&from)]));
        device.read(to, &mut results)?;
        device.free(to, 8 * threads);
        device.free(from, 32 * threads);
        done
    };
    done.map(|()| results)
}

/// Triples of words where instructions have edges, and random ones of all sizes.
fn operands() -> Vec<[u64; 4]> {
    let edges = [0, 1, 2, 0x7fff_ffff, 1 << 31, 0xffff_ffff, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX];
    let mut random = SplitMix::new(17);
    (0..THREADS)
        .map(|i| {
            let mut word = |j: usize| match (i + j) % 3 {
                0 => edges[i / 3 * (7 + 2 * j) % edges.len()],
                // Small ones come near to each other, and to the ends of shifts.
                1 => random.word() >> (random.word() % 64),
                _ => random.word(),
            };
            [word(0), word(1), word(2), 0]
        })
        .collect()
}

#[test]
fn every_instruction_computes_what_is_said_of_it() {
    let operands = operands();
    let mut wrong = Vec::new();
    for order in ORDERS {
        let device = Emulated::new(order).with_kernels(Kernels::Ptx);
        for (index, case) in CASES.iter().enumerate() {
            let results = run(&device, index, &operands).unwrap_or_else(|error| panic!("{}: {error}", case.ptx));
            let expected = operands.iter().map(|[a, b, c, _]| (case.result)(*a, *b, *c));
            let differ = operands.iter().zip(results.into_iter().zip(expected)).find(|(_, (have, want))| have != want);
            wrong.extend(differ.map(|([a, b, c, _], (have, want))| {
                format!("{order:?}: {} on {a:#x}, {b:#x}, {c:#x}: {have:#x} and not {want:#x}", case.ptx)
            }));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    say(&format!("{} instructions and sequences of them on {THREADS} triples of words", CASES.len()));
}

/// The number of a case by how it begins.
fn case(begin: &str) -> usize {
    CASES.iter().position(|case| case.ptx.starts_with(begin)).expect("a case")
}

#[test]
fn what_a_warp_does_is_counted() {
    let operands = operands();
    let device = Emulated::new(Order::Descending).with_kernels(Kernels::Ptx).counting();
    let count = |begin| {
        run(&device, case(begin), &operands[..64]).expect("a run");
        device.take_counts()[&format!("instructions_{}", case(begin))]
    };
    // Two warps. A thread stores 8 bytes every 16, so that half of the banks have two words each, and loads 4 bytes of them,
    // from a quarter of the banks four words each.
    let shared = count("st.shared.u64 [%rd15], %rd1; ld.shared.u32 %r10, [%rd15+4]");
    assert_eq!((shared.launches, shared.blocks, shared.threads, shared.shared), (1, 1, 64, 4));
    assert_eq!((shared.shared_passes, shared.shared_least, shared.shared_ways), (2 * (2 * 2 + 4), 2 * (2 + 1), 4));
    // 16 and 8 bytes every 32, and 8 stored every 8: a sector of four threads' words is one.
    assert_eq!((shared.global, shared.global_bytes), (6, 64 * (16 + 8 + 8)));
    assert_eq!(shared.global_sectors, 2 * (32 + 32 + 8));
    // Every thread of a warp goes on as long as its slowest does.
    let again = count("mov.u64 %rd10, 0; and.b64 %rd20, %rd1, 15;");
    let slowest: u64 = operands[..64].chunks(32).map(|warp| warp.iter().map(|x| x[0] & 15).max().unwrap_or(0)).sum();
    assert_eq!(again.integer64 - count("mov.u64 %rd10, %rd1").integer64, 2 + 2 * slowest);
    let barriers = count("xor.b64 %rd20, %rd15, 16;");
    assert_eq!((barriers.barrier, barriers.shared), (6, 8));
    assert_eq!(barriers.values().len(), Counts::NAMES.len());
}

/// Why a body is not translated.
fn refusal(line: &str) -> String {
    let entry = instructions::entry(0, &instructions::Case { ptx: "", result: |_, _, _| 0 });
    let text =
        format!(".extern .shared .align 16 .b8 dev_shared[];\n{}", entry.replace("ret;", &format!("{line}\nret;")));
    let done = ptx::read(&text).and_then(|unit| cpp::translate(&unit, 0, &cpp::Assembled::new()));
    done.err().unwrap_or_else(|| panic!("`{line}` is translated")).to_string()
}

#[test]
fn what_is_not_known_is_refused_by_name() {
    for (line, word) in [
        ("add.sat.s32 %r1, %r2, %r3;", "`add.sat.s32`"),
        ("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "`shfl.sync.bfly.b32`"),
        ("mul.f64 %fd1, %fd2, %fd3;", "`mul.f64`"),
        ("mul.rn.ftz.f64 %fd1, %fd2, %fd3;", "`mul.rn.ftz.f64`"),
        ("add.rn.f32 %f1, %f2, %f3;", "`add.rn.f32`"),
        ("ld.global.nc.u64 %rd1, [%rd2];", "modifier"),
        ("ld.local.u64 %rd1, [%rd2];", "modifier"),
        ("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd2];", "loaded"),
        ("ld.global.v2.u64 {%rd1}, [%rd2];", "number of registers"),
        ("ld.global.u128 %rd1, [%rd2];", "`u128`"),
        ("st.param.u64 [%rd1], %rd2;", "parameter"),
        ("add.s64 %rd1, %r2, %rd3;", "another width"),
        ("add.s32 %r1, %r2, 4294967296;", "does not hold"),
        ("mov.u32 %r1, %laneid;", "not declared"),
        ("mov.u32 %r1, %clusterid.x;", "%clusterid.x"),
        ("mov.u32 %r99, 1;", "%r99"),
        ("mov.u64 %rd1, elsewhere;", "elsewhere"),
        ("setp.ltu.s32 %p1, %r1, %r2;", "comparison"),
        ("bar.sync 1;", "`bar.sync`"),
        ("bar.sync 0, 64;", "`bar.sync`"),
        ("barrier.cluster.arrive.release;", "arriving"),
        ("bra $nowhere;", "nowhere"),
        ("cvt.rn.u64.f64 %rd1, %fd1;", "conversion"),
        ("@%r1 bra $done;", "no predicate"),
        (".local .align 8 .b8 stack[16];", "another form"),
        ("add.s64 %rd1, %rd2, (%rd3);", "another form"),
    ] {
        let refused = refusal(line);
        assert!(refused.contains(word) && refused.contains("instructions_0"), "{line}: {refused}");
    }
}

/// The first law that finds something wrong, in transforms of integers and of doubles, of two passes and of clusters.
fn broken_law(kernels: Kernels) -> Option<&'static str> {
    let broken = |law: &dyn Fn()| catch_unwind(AssertUnwindSafe(law)).is_err();
    for (set, order) in sets().iter().filter(|set| set.q.len() + set.p.len() > 1).zip([ORDERS[2], ORDERS[1]]) {
        let ring = laws::ring(set);
        let cpu = Cpu::open(Arc::clone(&ring)).expect("a CPU");
        let integers = Emulated::new(order).with_kernels(kernels);
        let doubles = integers.clone().with_fast_doubles();
        for device in [integers, doubles.clone(), doubles.with_clusters()] {
            let device = Cuda::new(Arc::clone(&ring), device, None).expect("a device");
            let device = device.with_transforms(Transforms::Clusters { log_points: 7 });
            if broken(&|| assert_ne!(laws::same_bits(&cpu, &device, 4), 0)) {
                return Some("every device gives the same bits");
            }
            let list = laws::list::<Cuda<Emulated>>();
            if let Some((name, _)) = list.iter().find(|(_, law)| broken(&|| law(&device, 1))) {
                return Some(name);
            }
        }
    }
    None
}

#[test]
fn every_planted_fault_is_found_by_a_law() {
    assert_eq!(broken_law(Kernels::Ptx), None, "the PTX as it is");
    let faults = Emulated::faults();
    assert!(faults.len() >= 10);
    let mut missed: Vec<&CStr> = Vec::new();
    for (number, fault) in faults.iter().enumerate() {
        match broken_law(Kernels::Faulty(number as u16)) {
            Some(law) => say(&format!("{}: it is not so that {law}", fault.to_string_lossy())),
            None => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "faults that no law finds: {missed:?}");
}

#[test]
fn what_an_assembler_made_is_read_stretch_by_stretch() {
    let head = "kernel,stretch,all";
    let read =
        cpp::assembled(&format!("{head}\none,0,5,1,2,0,1\none,1,7,0,0,3,0\ntwo,0,1,0,0,0,0\n")).expect("a record");
    assert_eq!(read["one"], [[5, 1, 2, 0, 1], [7, 0, 0, 3, 0]]);
    assert_eq!(read["two"].len(), 1);
    // A stretch that is left out, a number that lacks, and what is no number.
    for row in ["one,1,5,1,2,0,1", "one,0,5,1,2,0", "one,0,5,1,2,0,x"] {
        assert_eq!(cpp::assembled(&format!("{head}\n{row}\n")), None, "{row}");
    }
}
