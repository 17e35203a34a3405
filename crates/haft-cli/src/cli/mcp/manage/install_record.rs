//! What `haft mcp install` has changed in a settings file, so that `uninstall` can take back exactly that.

use std::path::Path;
use std::sync::{Arc, Mutex};

use haft_files::{PrivateFile, hash};
use haft_ledger::Ledger;
use haft_tool::{ToolError, Value, lock};
use serde::{Deserialize, Serialize};

use super::file_edit::EditText;
use crate::settings_edit::{RevertStep, SettingChange, SettingsFormat};

/// The largest record; it contains the previous text of the settings file.
const MAX_RECORD_BYTES: u64 = 128 << 20;

/// One file with Haft's changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct InstallRecord {
    /// The text before the change; `None` if there was no file.
    before: Option<String>,
    /// The hash of the text after the change.
    after: String,
    steps: Vec<RevertStep>,
}

/// The record of one settings file and one entry in it.
pub(super) struct InstalledFile {
    store: PrivateFile,
    format: SettingsFormat,
    known: Option<InstallRecord>,
    /// A value in a list that is there as long as the change is in effect.
    mark: Option<(Vec<String>, Value)>,
    /// The record that becomes valid with the change.
    next: Arc<Mutex<Option<InstallRecord>>>,
}

impl InstalledFile {
    pub(super) fn open(file: &Path, name: &str, format: SettingsFormat) -> Result<Self, ToolError> {
        let key = hash(format!("{name}\0{}", file.display()).as_bytes());
        let directory = Ledger::home_from_env()?.join("installed");
        let store = PrivateFile::new(directory, format!("{key}.json"), MAX_RECORD_BYTES);
        let known = store.read()?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Ok(Self { store, format, known, mark: None, next: Arc::default() })
    }

    /// The same with a value in a list, by which it is known whether the change is in effect.
    pub(super) fn with_mark(self, list: Vec<String>, value: Value) -> Self {
        Self { mark: Some((list, value)), ..self }
    }

    /// Whether the change is in effect, as far as the mark shows: it may have been undone by other means.
    fn is_in_effect(mark: Option<&(Vec<String>, Value)>, text: &str, format: SettingsFormat) -> bool {
        mark.is_none_or(|(list, value)| {
            let found = format.find(text, list).ok().flatten();
            found.as_ref().and_then(Value::as_array).is_some_and(|list| list.contains(value))
        })
    }

    /// The edit that makes these changes, on the text without earlier ones. The first one sets the entry at `entry`, if any.
    pub(super) fn install(
        &self,
        entry: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
        changes: impl Fn(&str) -> Vec<SettingChange> + Send + Sync + 'static,
    ) -> EditText {
        let (known, format, next) = (self.known.clone(), self.format, Arc::clone(&self.next));
        let mark = self.mark.clone();
        Box::new(move |old| {
            let is_in_effect = Self::is_in_effect(mark.as_ref(), old.unwrap_or_default(), format);
            let before = match known.as_ref().filter(|_| is_in_effect) {
                Some(known) => known.reverted(old, format)?,
                None => old.map(str::to_owned),
            };
            let text = before.as_deref().unwrap_or_default();
            let (new, mut steps) = format.apply(text, &changes(text)).map_err(ToolError::failed)?;
            let before = match (&known, entry(text)) {
                // An entry without a record is from an earlier version, or written by hand.
                (None, Some(entry)) => match format.remove(text, &entry).map_err(ToolError::failed)? {
                    Some(without) => {
                        steps.iter_mut().take(1).for_each(RevertStep::forget_old);
                        Some(without)
                    }
                    None => before,
                },
                _ => before,
            };
            let after = hash(new.as_bytes()).clone();
            *lock(&next) = Some(InstallRecord { before, after, steps });
            Ok(Some(new))
        })
    }

    /// The edit that takes them back; without a record it removes the entry at `entry`. An empty text means that the file goes.
    pub(super) fn uninstall(
        &self,
        entry: impl Fn(&str) -> Option<Vec<String>> + Send + Sync + 'static,
    ) -> EditText {
        let (known, format, mark) = (self.known.clone(), self.format, self.mark.clone());
        Box::new(move |old| {
            let Some(text) = old else { return Ok(None) };
            if !Self::is_in_effect(mark.as_ref(), text, format) {
                return Ok(None);
            }
            let entry = entry(text);
            match (&known, entry) {
                (Some(known), entry) => {
                    // Without the entry the change was reverted by other means.
                    if entry.is_some_and(|entry| !matches!(format.find(text, &entry), Ok(Some(_)))) {
                        return Ok(None);
                    }
                    Ok(Some(known.reverted(old, format)?.unwrap_or_default()))
                }
                (None, Some(entry)) => format.remove(text, &entry).map_err(ToolError::failed),
                (None, None) => Ok(None),
            }
        })
    }

    /// Stores what is about to be installed. Until that has happened, the entry or the mark is missing, and the record has no
    /// effect.
    pub(super) fn store(&self) -> Result<(), ToolError> {
        // A new ledger is not made beside other files.
        drop(Ledger::open(Ledger::home_from_env()?)?);
        let record = lock(&self.next).clone();
        self.store.update(|_| Ok(((), Some(serde_json::to_vec(&record)?))))
    }

    /// Forgets what was installed.
    pub(super) fn forget(&self) -> Result<(), ToolError> {
        self.store.update(|old| Ok(((), old.map(|_| b"null".to_vec()))))
    }
}

impl InstallRecord {
    /// The text without Haft's changes: the one before them if nothing else has changed since. `None` if there was no file.
    fn reverted(&self, now: Option<&str>, format: SettingsFormat) -> Result<Option<String>, ToolError> {
        let Some(now) = now else { return Ok(None) };
        if hash(now.as_bytes()).clone() == self.after {
            return Ok(self.before.clone());
        }
        let text = format.revert(now, &self.steps).map_err(ToolError::failed)?;
        let is_empty = matches!(text.trim(), "" | "{}");
        Ok(Some(text).filter(|_| !(is_empty && self.before.is_none())))
    }
}
