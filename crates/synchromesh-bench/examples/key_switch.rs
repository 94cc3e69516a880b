//! Times a hybrid rotation key switch: `key_switch LOG_N LOG_Q OMEGA [WIDTH]`.

use synchromesh_bench::device::Device;
use synchromesh_bench::key_switch::{Chain, Method, measure, rotation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<u32> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [log_n, log_q, omega, ref rest @ ..] = args[..] else { return Err("LOG_N LOG_Q OMEGA [WIDTH]".into()) };
    let chain = Chain::Equal { log_q, log_p: None, width: rest.first().copied() };
    let report = measure(&rotation(log_n, chain, Method::Hybrid { omega: omega as usize }), Device::Cpu, None)?;
    #[expect(clippy::print_stdout, reason = "the result of a command")]
    {
        println!("{report:#?}");
    }
    Ok(())
}
