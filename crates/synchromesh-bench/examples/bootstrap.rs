//! `bootstrap LOG_N LOG_SCALE PRECISION LEVELS BABY_STEPS THREADS ROUNDS SLOTS`: what `bench bootstrap` measures, without the
//! command line; 0 for levels, baby steps or slots leaves them open.

use synchromesh::plan::bootstrap::BootstrapRequest;
use synchromesh_bench::bootstrap::measure;
use synchromesh_bench::device::Device;
use synchromesh_ring::Threads;
use synchromesh_rlwe::Security;

#[expect(clippy::print_stdout, reason = "an example")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers: Vec<usize> = std::env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let at = |i: usize, default: usize| numbers.get(i).copied().unwrap_or(default);
    let open = |i: usize| Some(at(i, 0)).filter(|&number| number > 0);
    let log_n = at(0, 12) as u32;
    let insecure = log_n < 15;
    let request = BootstrapRequest {
        levels: if insecure { Some(at(3, 3)) } else { open(3) },
        slots: open(7),
        baby_steps: open(4),
        rounds: at(6, 1) as u32,
        security: if insecure { Security::Insecure } else { Security::Bits128 },
        ..BootstrapRequest::new(log_n, at(1, 40) as u32, at(2, 15) as u32)
    };
    Threads::settle(at(5, 1))?;
    let report = measure(&request, 3, Device::Cpu, |what| println!("{what}"))?;
    println!("{report:#?}");
    Ok(())
}
