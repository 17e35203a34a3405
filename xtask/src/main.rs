//! `cargo xtask`: everything that is done to Haft rather than by it.
#![allow(
    missing_docs,
    reason = "a program for the people who build Haft; its help text is its documentation"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program that talks to the person who runs it"
)]
#![allow(clippy::disallowed_methods, reason = "it builds, measures and checks the project itself")]

mod bench;
mod conformance;
mod order;
mod peers;
mod picture;
mod tests;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test            check format, lints, licences and tidiness, then run every test (installs what they need)
cargo xtask tidy            only the rules that no other tool checks
cargo xtask bench [NAME…]   measure against ripgrep, fd and cat; prints a table, writes target/bench.json
                            names: grep glob files start dispatch ledger sandbox mcp
cargo xtask conformance [server|client] [--scenario NAME]
                            MCP's official suite, both sides, every scored scenario of 2025-11-25 and 2026-07-28
cargo xtask order           write down which functions run, for the linker (needs valgrind); after a new compiler, or when
                            a bench shows that the program takes more memory than it did
cargo xtask peers           install the programs that tests of MCP need, and print the variables that name them:
                            eval \"$(cargo xtask peers)\" before running one of these tests by hand
cargo xtask picture         record a real session and draw it as docs/undo.svg";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let done = match args.next().as_deref() {
        Some("test") => tests::run(),
        Some("tidy") => tidy::run(),
        Some("conformance") => conformance::run(&args.collect::<Vec<_>>()),
        Some("bench") => bench::run(&args.collect::<Vec<_>>()),
        Some("order") => order::run(),
        Some("peers") => peers::mcp::tell(),
        Some("picture") => picture::run(),
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What every task gives back; the text says what failed.
type Done = Result<(), String>;
