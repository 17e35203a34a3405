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
mod dist;
mod library;
mod machine;
mod mutants;
mod peers;
mod picture;
mod process;
mod soak;
mod targets;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test            every check and every test; says first what this machine lacks and what will be installed
cargo xtask test --quick    format, tidy, lints and the fast tests; installs nothing, needs no network
cargo xtask tidy            only the rules that no other tool checks
cargo xtask targets [TARGET…]
                            whether the workspace compiles for each supported target
cargo xtask bench [PART…]   measure against ripgrep, fd, cat, bubblewrap and MCP's reference server; prints a table, writes
                            target/bench.json; parts: grep glob start files ledger sandbox mcp
                            agent serve
cargo xtask bench --against PATH
                            measure against another build of haft
cargo xtask conformance [server|client] [--scenario NAME]
                            MCP's official suite, both sides, every scored scenario of 2025-11-25 and 2026-07-28
cargo xtask dist [--run] [TARGET…]
                            build the program as it is shipped: fat LTO, glibc 2.28, no local paths; --run tries it out
cargo xtask mutants [ROW…]  break what rows of the statement table say, one at a time; the rows' tests must notice
cargo xtask peers           install the programs that tests compare with, and print the variables that name them:
                            eval \"$(cargo xtask peers)\" before running one of these tests by hand
cargo xtask picture [--haft PATH]
                            a new user's first hour as a script in tmux, every outcome checked; draws docs/undo.svg
cargo xtask soak [MINUTES] [--haft PATH]  eight hostile commands at a time in one server, and ordinary calls beside them (30 minutes)";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (task, rest) = args.split_first().map_or(("", &[][..]), |(task, rest)| (task.as_str(), rest));
    let done = match task {
        "test" => test::run(rest),
        "tidy" => tidy::run(),
        "targets" => targets::run(rest),
        "conformance" => conformance::run(rest),
        "bench" => bench::run(rest),
        "dist" => dist::run(rest),
        "mutants" => mutants::run(rest),
        "peers" => peers::print_variables(),
        "picture" => picture::run(rest),
        "soak" => soak::run(rest),
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

/// The result of every task; the text says what failed.
type Done = Result<(), String>;
