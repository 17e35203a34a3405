//! `haft trust`: the user's consent to what a project's settings files allow, run and set.

use clap::Args;
use haft_ledger::Ledger;
use haft_tool::ToolError;

use super::args::WorkspaceArgs;
use super::exit::CliExit;
use super::screen::{self, GOOD, escape, styled};
use super::{CommandResult, terminal};
use crate::claude_settings::{ClaudeFiles, ProjectTrust, SettingsFlags, project_content, variable};

#[derive(Debug, Args)]
pub(super) struct ProjectTrustArgs {
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
    /// Take the consent back.
    #[arg(long)]
    revoke: bool,
    #[command(flatten)]
    workspace: WorkspaceArgs,
}

pub(super) fn run(args: &ProjectTrustArgs) -> CommandResult {
    let workspace = args.workspace.folder()?;
    let trust = project_trust(&workspace)?;
    if args.revoke {
        trust.revoke()?;
        screen::note("this project is not trusted any more");
        return Ok(CliExit::Done);
    }
    let files = ClaudeFiles::read(&workspace, &SettingsFlags::default(), &variable)?;
    screen::warnings(&files.warnings);
    let content = project_content(&files);
    if content.is_empty() {
        screen::note(
            "this project's settings allow nothing, run nothing and set nothing: there is nothing to trust",
        );
        return Ok(CliExit::Done);
    }
    if trust.covers(&content)? {
        screen::note("this project is trusted already. To take that back: haft trust --revoke");
        return Ok(CliExit::Done);
    }
    screen::note(&format!("The settings of {} do this:", escape(&workspace.display().to_string())));
    screen::out(&content.iter().map(|line| format!("  {}\n", escape(line))).collect::<String>());
    if !args.yes && !terminal::confirm_change("Trust them?") {
        return Ok(CliExit::Denied);
    }
    trust.consent(&content)?;
    screen::note(&styled(GOOD, "trusted. To take that back: haft trust --revoke"));
    Ok(CliExit::Done)
}

/// The consent for a project.
pub(super) fn project_trust(workspace: &std::path::Path) -> Result<ProjectTrust, ToolError> {
    let workspace = haft_files::real_named(workspace).unwrap_or_else(|_| workspace.to_owned());
    Ok(ProjectTrust::new(&Ledger::home_from_env()?, &workspace))
}
