//! `haft mcp install` and `uninstall`: Haft's entry in the settings of other programs.

use std::path::{Path, PathBuf};

use clap::Parser;
use haft_files::real_named;
use haft_tool::ToolError;

use super::super::super::CommandResult;
use super::super::super::args::{Command, Haft};
use super::super::args::{self, EntryArgs};
use super::add::{check_name, usage};
use super::clients::{Client, SettingsDirs};
use super::file_edit::{FileEdit, in_project};

pub(in super::super) fn install(args: &args::InstallArgs) -> CommandResult {
    check_name(&args.entry.name)?;
    let program = program()?;
    let start: Vec<String> = std::iter::once("mcp".to_owned()).chain(args.flags.iter().cloned()).collect();
    let tried = Haft::try_parse_from(std::iter::once("haft").chain(start.iter().map(String::as_str)));
    let tried = tried.map_err(|error| usage("after --", &error))?;
    if !matches!(tried.command, Command::Mcp(mcp) if mcp.action.is_none()) {
        return Err(ToolError::invalid_arguments("after --: only flags of `haft mcp` are allowed"));
    }
    let file = file(args.client, &args.entry)?;
    let (client, name) = (args.client, args.entry.name.clone());
    let done = format!("Added {name} to {}. Restart the program to use it", file.display());
    let edit_text = Box::new(move |old: Option<&str>| {
        let new = client.installed(old.unwrap_or_default(), &name, &program, &start);
        new.map(Some).map_err(ToolError::failed)
    });
    let entry = args.entry.name.clone();
    let edit = FileEdit { tool: "mcp/install", file, setting: None, entry, done, edit_text };
    edit.run(&args.entry.workspace, args.entry.how)
}

pub(in super::super) fn uninstall(args: &args::UninstallArgs) -> CommandResult {
    let file = file(args.client, &args.entry)?;
    let (client, name) = (args.client, args.entry.name.clone());
    let done = format!("Removed {name} from {}", file.display());
    let edit_text = Box::new(move |old: Option<&str>| {
        client.uninstalled(old.unwrap_or_default(), &name).map_err(ToolError::failed)
    });
    let entry = args.entry.name.clone();
    let edit = FileEdit { tool: "mcp/uninstall", file, setting: None, entry, done, edit_text };
    edit.run(&args.entry.workspace, args.entry.how)
}

fn file(client: Client, at: &EntryArgs) -> Result<PathBuf, ToolError> {
    if at.project {
        return in_project(&at.workspace, &client.project_file(&at.workspace.folder()?)?);
    }
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    real_named(&client.file(&SettingsDirs { var: &var, mac: cfg!(target_os = "macos") })?)
}

/// The path of this program: its name on PATH if that leads here, because that survives an update.
fn program() -> Result<String, ToolError> {
    let here = std::env::current_exe().map_err(|error| ToolError::io("find this program", &error))?;
    let real = real_named(&here)?;
    let name = here.file_name().unwrap_or_default();
    let leads_here = |path: &PathBuf| path.is_absolute() && real_named(path).is_ok_and(|found| found == real);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(leads_here);
    let found = found.as_deref().unwrap_or(&here);
    Path::to_str(found).map(str::to_owned).ok_or_else(|| {
        ToolError::failed(format!("{} is not UTF-8 and cannot be written to settings", found.display()))
    })
}
