//! The `synchromesh` command.

fn main() -> std::process::ExitCode {
    synchromesh_cli::commands::run(std::env::args_os())
}
