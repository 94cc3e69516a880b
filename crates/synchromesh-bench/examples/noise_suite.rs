//! Measures the errors of every operation and writes docs/noise: `noise_suite [OUT [LOG_N:KEYS ...]]`.

use synchromesh_bench::noise::{SIZES, write_report};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let out = args.next().unwrap_or_else(|| "docs/noise".to_owned());
    let mut sizes = Vec::new();
    for arg in args {
        let (log_n, keys) = arg.split_once(':').ok_or("a size is LOG_N:KEYS")?;
        sizes.push((log_n.parse::<u32>()?, keys.parse::<usize>()?));
    }
    write_report(out.as_ref(), if sizes.is_empty() { &SIZES } else { &sizes })
}
