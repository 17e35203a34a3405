//! `haft man`: a manual page per command, generated from the definition of the command line.

use clap::Command;
use clap_mangen::Man;
use haft_tool::{ErrorKind, ToolError};

use super::args::ManArgs;
use super::exit::CliExit;
use super::{CommandResult, complete, screen};
use crate::config::VARIABLES;

/// What a section lists: a term and what it means.
type Entries = [(&'static str, &'static str)];

const EXIT_STATUS: &Entries = &[
    ("0", "Success."),
    ("1", "The call failed, or the output could not be written."),
    ("2", "Invalid arguments."),
    ("3", "Denied."),
    ("4", "Unknown tool, model or session."),
    ("124", "Timeout."),
    ("130", "Interrupted."),
];

const SANDBOX_EXIT_STATUS: &Entries = &[
    ("124", "The command took longer than --timeout."),
    ("125", "Haft itself failed: invalid arguments or settings, a denied call, no sandbox."),
    ("126", "The command was found but cannot be executed."),
    ("127", "The command was not found."),
    ("130", "Interrupted."),
    ("otherwise", "The exit code of the command; 128 plus the number of the signal that ended it."),
];

const ENVIRONMENT: &Entries = &[
    ("HAFT_HOME", "The directory of the ledger."),
    ("HAFT_CONFIG", "The user's settings file."),
    ("HAFT_CACHE", "The directory in which caches of sandboxed commands persist."),
    ("HAFT_LOG", "A filter such as debug; writes a trace to standard error."),
    ("NO_COLOR", "If set, output has no colours."),
];

const FILES: &Entries = &[
    (
        "~/.config/haft/haft.toml",
        "The user's settings, unless $HAFT_CONFIG or $XDG_CONFIG_HOME says otherwise.",
    ),
    (
        "haft.toml",
        "The project's settings. The nearest one in the current directory or above marks the workspace, else the nearest .git.",
    ),
    (".mcp.json", "The project's MCP servers, which are not started before the user trusts them."),
    ("~/.local/state/haft/", "The ledger, unless $HAFT_HOME or $XDG_STATE_HOME says otherwise."),
    ("~/.cache/haft/", "Caches of sandboxed commands, unless $HAFT_CACHE or $XDG_CACHE_HOME says otherwise."),
];

pub(super) fn run(args: &ManArgs) -> CommandResult {
    let mut command = complete::whole();
    command.build();
    for name in &args.command {
        let names: Vec<_> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
        command = command.find_subcommand(name).cloned().ok_or_else(|| {
            let known = if names.is_empty() {
                "it has none".to_owned()
            } else {
                format!("there are: {}", names.join(", "))
            };
            ToolError::new(ErrorKind::NotFound, format!("there is no command {name:?}; {known}"))
        })?;
    }
    let is_sandbox = args.command.first().is_some_and(|name| name == "sandbox");
    let mut page = Vec::new();
    render(command, if is_sandbox { SANDBOX_EXIT_STATUS } else { EXIT_STATUS }, &mut page)
        .map_err(|error| ToolError::io("write the manual page", &error))?;
    screen::result(&String::from_utf8_lossy(&page));
    Ok(CliExit::Done)
}

fn render(command: Command, exit_status: &Entries, page: &mut Vec<u8>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let (has_commands, has_notes) = (command.has_subcommands(), command.get_after_help().is_some());
    let man = Man::new(command).manual("Haft");
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if has_commands {
        man.render_subcommands_section(page)?;
    }
    if has_notes {
        man.render_extra_section(page)?;
    }
    section(page, "EXIT STATUS", exit_status);
    section(page, "ENVIRONMENT", ENVIRONMENT);
    for (variable, setting) in VARIABLES {
        entry(page, variable, &format!("Overrides the setting {setting}."));
    }
    section(page, "FILES", FILES);
    if name != "haft" {
        page.extend_from_slice(b".SH \"SEE ALSO\"\nhaft(1)\n");
    }
    Ok(())
}

fn section(page: &mut Vec<u8>, title: &str, entries: &Entries) {
    page.extend_from_slice(format!(".SH \"{title}\"\n").as_bytes());
    for (term, text) in entries {
        entry(page, term, text);
    }
}

fn entry(page: &mut Vec<u8>, term: &str, text: &str) {
    // A dot at the beginning of a line would be a request to the formatter.
    let plain = |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace('.', "\\&.");
    page.extend_from_slice(format!(".TP\n\\fB{}\\fR\n{}\n", plain(term), plain(text)).as_bytes());
}
