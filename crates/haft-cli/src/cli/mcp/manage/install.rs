//! `haft mcp install` and `uninstall`: Haft's entry in the settings of other programs.

use std::path::{Path, PathBuf};

use clap::Parser;
use haft_files::real_named;
use haft_tool::{ToolError, json};

use super::super::super::args::{Command, Haft};
use super::super::super::exit::CliExit;
use super::super::super::{CommandResult, screen};
use super::super::args::{self, EntryArgs};
use super::add::{check_name, usage};
use super::clients::{Client, ClientEntry, SettingsDirs};
use super::file_edit::{FileEdit, in_project};
use super::install_record::InstalledFile;
use crate::settings_edit::SettingsFormat;

pub(in super::super) fn install(args: &args::InstallArgs) -> CommandResult {
    check_name(&args.entry.name)?;
    if args.replace_builtin {
        args.client.check_replaceable()?;
    }
    let program = program()?;
    let start: Vec<String> = std::iter::once("mcp".to_owned()).chain(args.flags.iter().cloned()).collect();
    let tried = Haft::try_parse_from(std::iter::once("haft").chain(start.iter().map(String::as_str)));
    let tried = tried.map_err(|error| usage("after --", &error))?;
    if !matches!(tried.command, Command::Mcp(mcp) if mcp.action.is_none()) {
        return Err(ToolError::invalid_arguments("after --: only flags of `haft mcp` are allowed"));
    }
    let (client, name) = (args.client, args.entry.name.clone());
    let (is_project, replaces_builtin) = (args.entry.project, args.replace_builtin);
    let files = ClientFiles::find(client, &args.entry)?;
    let done = format!("Added {name} to {}. Restart the program to use it", files.settings.display());
    let settings = InstalledFile::open(&files.settings, &name, client.file_format())?;
    let (entry_name, same_name) = (name.clone(), name.clone());
    let entry_path = move |old: &str| Some(client.entry_path(old, &same_name));
    let edit_text = settings.install(entry_path, move |old| {
        let entry =
            ClientEntry { name: &entry_name, program: &program, args: &start, is_project, replaces_builtin };
        client.entry_changes(old, &entry)
    });
    let mut edits = vec![file_edit("mcp/install", &files.settings, &name, done, edit_text)];
    let mut records = vec![settings];
    if let Some(file) = files.permissions.filter(|_| replaces_builtin) {
        let permissions = permissions_record(&file, &name)?;
        let done = format!("Turned off the program's own tools in {}", file.display());
        let server = name.clone();
        let edit_text = permissions.install(|_| None, move |_| Client::permissions_changes(&server));
        edits.push(file_edit("mcp/install", &file, &name, done, edit_text));
        records.push(permissions);
    }
    let store = || records.iter().try_for_each(InstalledFile::store);
    let exit = FileEdit::run_all(edits, &args.entry.workspace, args.entry.how, store)?;
    if exit == CliExit::Done
        && !args.entry.how.dry_run
        && !replaces_builtin
        && client.check_replaceable().is_ok()
    {
        screen::note(
            "The program's own tools stay enabled, and Haft neither sees nor undoes what they do. To turn them off: \
                 --replace-builtin",
        );
    }
    Ok(exit)
}

pub(in super::super) fn uninstall(args: &args::UninstallArgs) -> CommandResult {
    let (client, name) = (args.client, args.entry.name.clone());
    let files = ClientFiles::find(client, &args.entry)?;
    let done = format!("Removed {name} from {}", files.settings.display());
    let settings = InstalledFile::open(&files.settings, &name, client.file_format())?;
    let entry = name.clone();
    let edit_text = settings.uninstall(move |old| Some(client.entry_path(old, &entry)));
    let mut edits = vec![file_edit("mcp/uninstall", &files.settings, &name, done, edit_text)];
    let mut records = vec![settings];
    if let Some(file) = files.permissions {
        let permissions = permissions_record(&file, &name)?;
        let done = format!("Restored {}", file.display());
        edits.push(file_edit("mcp/uninstall", &file, &name, done, permissions.uninstall(|_| None)));
        records.push(permissions);
    }
    let exit = FileEdit::run_all(edits, &args.entry.workspace, args.entry.how, || Ok(()))?;
    if exit == CliExit::Done && !args.entry.how.dry_run {
        records.iter().try_for_each(InstalledFile::forget)?;
    }
    Ok(exit)
}

/// The record of the file that turns the program's own tools off: Haft's tools are allowed there.
fn permissions_record(file: &Path, name: &str) -> Result<InstalledFile, ToolError> {
    let list = ["permissions", "allow"].map(str::to_owned).to_vec();
    Ok(InstalledFile::open(file, name, SettingsFormat::Json)?.with_mark(list, json!(format!("mcp__{name}"))))
}

fn file_edit(
    tool: &'static str,
    file: &Path,
    name: &str,
    done: String,
    edit_text: super::file_edit::EditText,
) -> FileEdit {
    let (file, entry, removes_empty) = (file.to_owned(), name.to_owned(), tool == "mcp/uninstall");
    FileEdit { tool, file, setting: None, entry, done, removes_empty, edit_text }
}

/// The settings files of a program.
struct ClientFiles {
    /// The file with its MCP servers.
    settings: PathBuf,
    /// The file that turns off its own tools, if that is another one.
    permissions: Option<PathBuf>,
}

impl ClientFiles {
    fn find(client: Client, at: &EntryArgs) -> Result<Self, ToolError> {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let dirs = SettingsDirs { var: &var, mac: cfg!(target_os = "macos") };
        let permissions = client.permissions_file(&dirs, at.project)?;
        if at.project {
            let in_project = |name: &str| in_project(&at.workspace, name);
            return Ok(Self {
                settings: in_project(&client.project_file(&at.workspace.folder()?)?)?,
                permissions: permissions.as_deref().and_then(Path::to_str).map(in_project).transpose()?,
            });
        }
        let permissions = permissions.as_deref().map(real_named).transpose()?;
        Ok(Self { settings: real_named(&client.file(&dirs)?)?, permissions })
    }
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
