//! `haft mcp install` and `uninstall`: Haft's own entry in the settings of other programs.

use std::path::{Path, PathBuf};

use clap::Parser;
use haft_files::real_named;
use haft_tool::ToolError;

use super::super::super::Done;
use super::super::super::args::{Command, Haft};
use super::super::args::{self, EntryAt};
use super::add::{named, usage};
use super::clients::{Client, Places};
use super::rewrite::{Rewrite, in_project};

pub(in super::super) fn install(args: &args::Install) -> Done {
    named(&args.entry.name)?;
    let program = program()?;
    let start: Vec<String> = std::iter::once("mcp".to_owned()).chain(args.flags.iter().cloned()).collect();
    let tried = Haft::try_parse_from(std::iter::once("haft").chain(start.iter().map(String::as_str)));
    let tried = tried.map_err(|error| usage("the flags behind --", &error))?;
    if !matches!(tried.command, Command::Mcp(mcp) if mcp.action.is_none()) {
        return Err(ToolError::invalid_arguments(
            "the flags behind --: only flags of `haft mcp` belong there",
        ));
    }
    let file = file(args.client, &args.entry)?;
    let (client, name) = (args.client, args.entry.name.clone());
    let done = format!("Put {name} into {}; start the program anew to see it", file.display());
    let splice = Box::new(move |old: Option<&str>| {
        let new = client.installed(old.unwrap_or_default(), &name, &program, &start);
        new.map(Some).map_err(ToolError::failed)
    });
    let entry = args.entry.name.clone();
    let rewrite = Rewrite { tool: "mcp/install", file, setting: None, entry, done, splice };
    rewrite.run(&args.entry.workspace, args.entry.how)
}

pub(in super::super) fn uninstall(args: &args::Uninstall) -> Done {
    let file = file(args.client, &args.entry)?;
    let (client, name) = (args.client, args.entry.name.clone());
    let done = format!("Took {name} out of {}", file.display());
    let splice = Box::new(move |old: Option<&str>| {
        client.uninstalled(old.unwrap_or_default(), &name).map_err(ToolError::failed)
    });
    let entry = args.entry.name.clone();
    let rewrite = Rewrite { tool: "mcp/uninstall", file, setting: None, entry, done, splice };
    rewrite.run(&args.entry.workspace, args.entry.how)
}

fn file(client: Client, at: &EntryAt) -> Result<PathBuf, ToolError> {
    if at.project {
        return in_project(&at.workspace, &client.project_file(&at.workspace.folder()?)?);
    }
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    real_named(&client.file(&Places { var: &var, mac: cfg!(target_os = "macos") })?)
}

/// How this program is started again: where the shell finds it, if that leads here, since that name outlives an update.
fn program() -> Result<String, ToolError> {
    let here = std::env::current_exe().map_err(|error| ToolError::io("find this program", &error))?;
    let real = real_named(&here)?;
    let name = here.file_name().unwrap_or_default();
    let leads_here = |path: &PathBuf| path.is_absolute() && real_named(path).is_ok_and(|found| found == real);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join(name)).find(leads_here);
    let found = found.as_deref().unwrap_or(&here);
    Path::to_str(found).map(str::to_owned).ok_or_else(|| {
        ToolError::failed(format!("{} is not UTF-8, which no settings can hold", found.display()))
    })
}
