//! Measures this machine and writes its profile: `tune FILE [quick]`.

use synchromesh_bench::tune::{Plan, measure};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("FILE")?;
    let plan = if args.next().is_some() { Plan::quick() } else { Plan::full() };
    let start = std::time::Instant::now();
    let profile = measure(&plan, synchromesh_bench::device::Device::Cpu, |_| {})?;
    std::fs::write(&file, profile.to_json()?)?;
    #[expect(clippy::print_stdout, reason = "the result of a command")]
    {
        println!(
            "{} entries in {:.1} s; {:?}",
            profile.entries.len(),
            start.elapsed().as_secs_f64(),
            profile.streaming
        );
    }
    Ok(())
}
