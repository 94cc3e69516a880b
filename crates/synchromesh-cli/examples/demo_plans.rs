//! Searches the demo's plans anew and prints where they go: `cargo run -p synchromesh-cli --example demo_plans`.

use synchromesh_cli::demo::descriptions;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for description in descriptions() {
        let path = format!("{}/data/plans/{}.json", env!("CARGO_MANIFEST_DIR"), description.scheme.name());
        let start = std::time::Instant::now();
        let plan = description.plan()?;
        std::fs::write(&path, plan.to_json()? + "\n")?;
        println!("{path}: {:.2} s", start.elapsed().as_secs_f64());
        plan.explain.iter().for_each(|line| println!("  {line}"));
    }
    Ok(())
}
