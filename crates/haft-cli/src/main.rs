//! The `haft` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    haft_cli::main()
}
