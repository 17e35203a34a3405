//! `haft mcp install` and `uninstall`: Haft's entry in the settings of other programs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser;
use haft_files::real_named;
use haft_tool::ToolError;

use super::super::super::args::{Command, Haft};
use super::super::super::exit::CliExit;
use super::super::super::{CommandResult, screen};
use super::super::args::{self, EntryArgs};
use super::add::{check_name, usage};
use super::clients::{Client, ClientEntry, SettingsDirs};
use super::file_edit::{EditText, FileEdit, in_project, read_settings};
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
    let entry_name = name.clone();
    let edit_text = settings.install(move |old, so_far| {
        // What was turned off stays off until `uninstall`.
        let replaces_builtin = replaces_builtin || so_far.len() > 1;
        let entry =
            ClientEntry { name: &entry_name, program: &program, args: &start, is_project, replaces_builtin };
        client.entry_changes(old, &entry)
    });
    let mut edits = vec![file_edit("mcp/install", &files.settings, &name, done, edit_text)];
    let mut records = vec![settings];
    if let Some(file) = files.permissions.as_ref().filter(|_| replaces_builtin) {
        let permissions = InstalledFile::open(file, &name, SettingsFormat::Json)?;
        let done = format!("Turned off the program's own tools in {}", file.display());
        let server = name.clone();
        let edit_text = permissions.install(move |_, _| client.permissions_changes(&server));
        edits.push(file_edit("mcp/install", file, &name, done, edit_text));
        records.push(permissions);
    }
    let store = || records.iter().try_for_each(InstalledFile::store);
    let exit = FileEdit::run_all(edits, &args.entry.workspace, args.entry.how, store)?;
    let exit = exit.unwrap_or(CliExit::Done);
    if exit == CliExit::Done && !args.entry.how.dry_run && client.check_replaceable().is_ok() {
        if files.has_builtin_tools(client)? {
            screen::note(
                "The program's own tools stay enabled, and Haft neither sees nor undoes what they do. To turn them off: \
                 --replace-builtin",
            );
        } else {
            if !replaces_builtin {
                screen::note("The program's own file and shell tools are turned off already.");
            }
            client.remaining_tools().into_iter().for_each(screen::note);
        }
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
    let edit = file_edit("mcp/uninstall", &files.settings, &name, done, edit_text);
    let mut edits = vec![FileEdit { directories: settings.created_directories(), ..edit }];
    let mut records = vec![settings];
    if let Some(file) = files.permissions {
        let permissions = InstalledFile::open(&file, &name, SettingsFormat::Json)?;
        let done = format!("Took back the permissions of {name} in {}", file.display());
        let edit = file_edit("mcp/uninstall", &file, &name, done, permissions.uninstall(|_| None));
        edits.push(FileEdit { directories: permissions.created_directories(), ..edit });
        records.push(permissions);
    }
    let store = || records.iter().try_for_each(InstalledFile::store);
    let exit = FileEdit::run_all(edits, &args.entry.workspace, args.entry.how, store)?;
    let replacing: BTreeSet<String> = records.iter().flat_map(InstalledFile::replacing).collect();
    match exit {
        None => note_other_entry(args),
        Some(CliExit::Done) if !replacing.is_empty() => {
            let others = replacing.into_iter().collect::<Vec<_>>().join(", ");
            screen::note(&format!("The program's own tools stay turned off for {others}."));
        }
        Some(_) => {}
    }
    Ok(exit.unwrap_or(CliExit::Done))
}

/// Says where an entry of that name is, if it is in the other settings: the project's or the user's.
fn note_other_entry(args: &args::UninstallArgs) {
    let (client, is_project) = (args.client, !args.entry.project);
    let Ok(files) = ClientFiles::find_in(client, &args.entry, is_project) else { return };
    let Ok(Some(bytes)) = read_settings(&files.settings) else { return };
    let text = String::from_utf8_lossy(&bytes);
    let path = client.entry_path(&text, &args.entry.name);
    if matches!(client.file_format().find(&text, &path), Ok(Some(_))) {
        let flag = if is_project { "with --project" } else { "without --project" };
        let (name, file) = (&args.entry.name, files.settings.display());
        screen::note(&format!("There is an entry {name} in {file}. To remove it: the same command {flag}"));
    }
}

fn file_edit(tool: &'static str, file: &Path, name: &str, done: String, edit_text: EditText) -> FileEdit {
    let (file, entry) = (file.to_owned(), name.to_owned());
    FileEdit { tool, file, setting: None, entry, done, directories: Vec::new(), edit_text }
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
        Self::find_in(client, at, at.project)
    }

    fn find_in(client: Client, at: &EntryArgs, is_project: bool) -> Result<Self, ToolError> {
        let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let dirs = SettingsDirs { var: &var, mac: cfg!(target_os = "macos") };
        let permissions = client.permissions_file(&dirs, is_project)?;
        if is_project {
            let in_project = |name: &str| in_project(&at.workspace, name);
            return Ok(Self {
                settings: in_project(&client.project_file(&at.workspace.folder()?)?)?,
                permissions: permissions.as_deref().and_then(Path::to_str).map(in_project).transpose()?,
            });
        }
        let permissions = permissions.as_deref().map(real_named).transpose()?;
        Ok(Self { settings: real_named(&client.file(&dirs)?)?, permissions })
    }

    /// Whether the settings leave on any of the program's own tools.
    fn has_builtin_tools(&self, client: Client) -> Result<bool, ToolError> {
        let file = self.permissions.as_ref().unwrap_or(&self.settings);
        let text = read_settings(file)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let without = client.file_format().apply(&text, &client.builtin_changes());
        Ok(without.ok().as_deref() != Some(&*text))
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
