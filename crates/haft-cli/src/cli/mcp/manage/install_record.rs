//! What `haft mcp install` has changed in a settings file, so that `uninstall` can take back exactly that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use haft_files::{PrivateFile, hash, read_named};
use haft_ledger::Ledger;
use haft_tool::{ErrorKind, ToolError, lock};
use serde::{Deserialize, Serialize};

use super::clients::starts_same_program;
use super::file_edit::EditText;
use crate::settings_edit::{SettingChange, SettingsFormat};

/// The largest record; it contains the previous text of the settings file.
const MAX_RECORD_BYTES: u64 = 128 << 20;

/// One file with Haft's changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct InstallRecord {
    /// The text without Haft's changes; `None` if there was no file.
    base: Option<String>,
    /// How many of the directories above the file did not exist.
    created_directories: usize,
    /// The texts that installations have made of `base`, the newest last: an undo may bring back each of them.
    states: Vec<InstallState>,
}

/// One text of a file and the entries in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct InstallState {
    /// The hash of the text; `None` if there is no file.
    text: Option<String>,
    /// The changes of each entry, by its name.
    entries: BTreeMap<String, Vec<SettingChange>>,
}

/// The record of one settings file, for changes of one entry.
pub(super) struct InstalledFile {
    file: PathBuf,
    name: String,
    format: SettingsFormat,
    store: PrivateFile,
    known: Option<InstallRecord>,
    /// The record that becomes valid with the change.
    next: Arc<Mutex<Option<InstallRecord>>>,
}

impl InstalledFile {
    pub(super) fn open(file: &Path, name: &str, format: SettingsFormat) -> Result<Self, ToolError> {
        let key = hash(file.as_os_str().as_encoded_bytes());
        let directory = Ledger::home_from_env()?.join("installed");
        let store = PrivateFile::new(directory, format!("{key}.json"), MAX_RECORD_BYTES);
        let known = store.read()?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let (file, name) = (file.to_owned(), name.to_owned());
        Ok(Self { file, name, format, store, known, next: Arc::default() })
    }

    /// The edit that makes the changes, which depend on the text and on the entry's changes so far. A change that sets the entry
    /// is the first one.
    pub(super) fn install(
        &self,
        changes: impl Fn(&str, &[SettingChange]) -> Vec<SettingChange> + Send + Sync + 'static,
    ) -> EditText {
        let (at, format, name, next) =
            (self.reader(), self.format, self.name.clone(), Arc::clone(&self.next));
        Box::new(move |now| {
            let mut record = at(now)?;
            let mut entries = record.entries().clone();
            let text = now.unwrap_or_default();
            let changes = changes(text, entries.get(&name).map_or(&[][..], Vec::as_slice));
            let new = format.apply(text, &changes).map_err(ToolError::failed)?;
            if now == Some(new.as_str()) {
                return Ok(Some(new));
            }
            if !entries.contains_key(&name)
                && let Some(SettingChange::Set { path, value }) = changes.first()
                && let Some(old) = format.find(text, path).map_err(ToolError::failed)?
                && starts_same_program(&old, value)
            {
                // Haft's own entry of an earlier installation, of which there is no record.
                record.remove_from_base(path, format)?;
            }
            entries.insert(name.clone(), changes);
            record.add_state(Some(&new), entries);
            *lock(&next) = Some(record);
            Ok(Some(new))
        })
    }

    /// The edit that takes them back; without a record it removes the entry at `entry`.
    pub(super) fn uninstall(
        &self,
        entry: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> EditText {
        let (at, format, name, next) =
            (self.reader(), self.format, self.name.clone(), Arc::clone(&self.next));
        Box::new(move |now| {
            let Some(text) = now else { return Ok(None) };
            let mut record = at(now)?;
            let mut entries = record.entries().clone();
            let new = match (entries.remove(&name), entry(text)) {
                (Some(_), _) if entries.is_empty() => record.base.clone(),
                (Some(changes), _) => {
                    let kept: Vec<SettingChange> = entries.values().flatten().cloned().collect();
                    let base = record.base.as_deref().unwrap_or_default();
                    Some(format.revert(text, &changes, base, &kept).map_err(ToolError::failed)?)
                }
                (None, Some(path)) => match format.remove(text, &path).map_err(ToolError::failed)? {
                    Some(new) => {
                        record.remove_from_base(&path, format)?;
                        Some(new)
                    }
                    None => return Ok(Some(text.to_owned())),
                },
                (None, None) => return Ok(Some(text.to_owned())),
            };
            record.add_state(new.as_deref(), entries);
            *lock(&next) = Some(record);
            Ok(new)
        })
    }

    /// Stores what is about to be done. Until that has happened, the text says which state is in effect.
    pub(super) fn store(&self) -> Result<(), ToolError> {
        let Some(record) = lock(&self.next).clone() else { return Ok(()) };
        // A new ledger is not made beside other files.
        drop(Ledger::open(Ledger::home_from_env()?)?);
        self.store.update(|_| Ok(((), Some(serde_json::to_vec(&record)?))))
    }

    /// The directories that were created with the file, the innermost first.
    pub(super) fn created_directories(&self) -> Vec<PathBuf> {
        let count = self.known.as_ref().map_or(0, |known| known.created_directories);
        self.file.ancestors().skip(1).take(count).map(Path::to_owned).collect()
    }

    /// The entries that, after the change, turn off the program's own tools: those with more than one change.
    pub(super) fn replacing(&self) -> Vec<String> {
        let next = lock(&self.next);
        let entries = next.iter().flat_map(InstallRecord::entries);
        entries.filter(|(_, changes)| changes.len() > 1).map(|(name, _)| name.clone()).collect()
    }

    /// Returns the record for the text that the file has now.
    fn reader(&self) -> impl Fn(Option<&str>) -> Result<InstallRecord, ToolError> + use<> {
        let (known, file, format) = (self.known.clone(), self.file.clone(), self.format);
        move |now| match &known {
            Some(known) => known.at(now, &file, format),
            None => Ok(InstallRecord::new(now.map(str::to_owned), &file)),
        }
    }
}

impl InstallRecord {
    /// A record without entries.
    fn new(base: Option<String>, file: &Path) -> Self {
        let is_missing = |directory: &&Path| {
            read_named(directory, 0).is_err_and(|error| error.kind == ErrorKind::FileNotFound)
        };
        let created_directories = match base {
            Some(_) => 0,
            None => file.ancestors().skip(1).take_while(is_missing).count(),
        };
        let states = vec![InstallState { text: text_hash(base.as_deref()), entries: BTreeMap::new() }];
        Self { base, created_directories, states }
    }

    /// The entries of the newest state.
    fn entries(&self) -> &BTreeMap<String, Vec<SettingChange>> {
        const NONE: &BTreeMap<String, Vec<SettingChange>> = &BTreeMap::new();
        self.states.last().map_or(NONE, |state| &state.entries)
    }

    fn add_state(&mut self, text: Option<&str>, entries: BTreeMap<String, Vec<SettingChange>>) {
        let text = text_hash(text);
        self.states.retain(|state| state.text != text);
        self.states.push(InstallState { text, entries });
    }

    /// The same with the text `now` as the newest state. If it is not a known one, others have changed the file: what they
    /// changed becomes part of the base.
    fn at(&self, now: Option<&str>, file: &Path, format: SettingsFormat) -> Result<Self, ToolError> {
        let hash = text_hash(now);
        if let Some(state) = self.states.iter().find(|state| state.text == hash) {
            let mut record = self.clone();
            record.add_state(now, state.entries.clone());
            return Ok(record);
        }
        let (text, old_base) = (now.unwrap_or_default(), self.base.as_deref().unwrap_or_default());
        let mut entries = BTreeMap::new();
        for (name, changes) in self.entries() {
            // Changes that were undone by other means are not in effect.
            if now.is_some() && format.has_any(text, changes, old_base).map_err(ToolError::failed)? {
                entries.insert(name.clone(), changes.clone());
            }
        }
        if entries.is_empty() {
            return Ok(Self::new(now.map(str::to_owned), file));
        }
        let all: Vec<SettingChange> = entries.values().flatten().cloned().collect();
        let base = format.revert(text, &all, old_base, &[]).map_err(ToolError::failed)?;
        let is_empty = matches!(base.split_whitespace().collect::<String>().as_str(), "" | "{}");
        let base = Some(base).filter(|_| !is_empty || self.base.is_some());
        let mut record = Self { created_directories: self.created_directories, ..Self::new(base, file) };
        record.add_state(now, entries);
        Ok(record)
    }

    /// Removes a value from the base. The texts known so far are not made of this one.
    fn remove_from_base(&mut self, path: &[String], format: SettingsFormat) -> Result<(), ToolError> {
        let base = self.base.as_deref().unwrap_or_default();
        if let Some(without) = format.remove(base, path).map_err(ToolError::failed)? {
            self.states = vec![InstallState { text: text_hash(Some(&without)), entries: BTreeMap::new() }];
            self.base = Some(without);
        }
        Ok(())
    }
}

fn text_hash(text: Option<&str>) -> Option<String> {
    text.map(|text| hash(text.as_bytes()).clone())
}
