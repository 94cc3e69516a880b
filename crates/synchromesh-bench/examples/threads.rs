//! One thread against several: `threads [K] [WORDS]`, the tasks whose names hold the words.

use synchromesh_bench::scaling::measure;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let threads = args.first().map_or(Ok(2), |text| text.parse())?;
    let report = measure(threads, args.get(1).map_or("", String::as_str), |_| ())?;
    #[expect(clippy::print_stdout, reason = "the result of a command")]
    for row in &report.tasks {
        println!("{:.2} ms, {:.2} ms, ratio {:.2}: {}", row.one_ms, row.several_ms, row.ratio, row.task);
    }
    Ok(())
}
