//! The `gristmill` program: the standard jobs and nothing else.

fn main() -> std::process::ExitCode {
    gristmill::cli::main(gristmill::registry::Registry::standard())
}
