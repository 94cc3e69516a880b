//! `bench threads`: how much faster several threads are than one.

use crate::error::Error;
use crate::output::{Report, say};
use clap::Args;
use synchromesh_bench::scaling::measure;

/// Parameters of `bench threads`.
#[derive(Args, Debug)]
pub(in crate::commands) struct ScalingBench {
    /// Threads that one thread is compared with.
    #[arg(long, value_name = "K", default_value_t = 2, value_parser = clap::value_parser!(u32).range(2..=1024))]
    threads: u32,
    /// Measure only tasks whose names hold this.
    #[arg(long, value_name = "WORDS", default_value = "")]
    task: String,
}

impl ScalingBench {
    pub(in crate::commands) fn run(&self) -> Result<Report, Error> {
        let report = measure(self.threads as usize, &self.task, |words| say(&format!("{words}\n")))?;
        Report::new(&report)
    }
}
