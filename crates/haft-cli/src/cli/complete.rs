//! `haft completion` and `haft man`: generated from the definition of the command line.

use clap::{Command, CommandFactory};
use haft_tool::ToolError;

use super::args::{CompletionArgs, Haft};
use super::exit::CliExit;
use super::{CommandResult, screen};

pub(super) fn completion(args: &CompletionArgs) -> CliExit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut whole(), "haft", &mut script);
    screen::result(&String::from_utf8_lossy(&script));
    CliExit::Done
}

pub(super) fn man() -> CommandResult {
    let mut page = Vec::new();
    let failed = |error: std::io::Error| ToolError::io("write the manual page", &error);
    let mut command = whole();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut page).map_err(failed)?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        clap_mangen::Man::new(sub.clone()).render(&mut page).map_err(failed)?;
    }
    screen::result(&String::from_utf8_lossy(&page));
    Ok(CliExit::Done)
}

/// The command line with the flags of every command; normally only those of the typed command are built.
fn whole() -> Command {
    Haft::command().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        let mut command = command.bin_name(format!("haft {name}")).display_name(format!("haft-{name}"));
        command.build();
        command
    })
}
