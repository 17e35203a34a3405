//! Checks the content of git's own files: configurations that name programs, and links to other git directories.
//!
//! Git follows a repository's configuration whenever anyone works in that repository, so a sandboxed command could use
//! it to run a program later, outside of the sandbox.

#[cfg(test)]
mod against_git;
#[cfg(test)]
mod fuzz;
mod keys;
mod link;
mod parse;
mod remotes;
#[cfg(test)]
mod tests;
mod words;

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub(crate) use remotes::GitRemotes;

/// Longer names and values are shortened in messages.
const MAX_SHOWN_BYTES: usize = 160;

/// The number of a section's name, and the name of a key in it.
type ConfigKey<'a> = (usize, &'a [u8]);
/// A value; git allows keys without one.
type ConfigValue<'a> = Option<&'a [u8]>;

/// Keys in `new` that make git run a program and that `old` did not have with the same value, each as
/// `core.fsmonitor = ./evil`. Relative paths are relative to the configuration at `path`.
pub(crate) fn new_programs(path: &Path, old: &[u8], new: &[u8]) -> Vec<String> {
    if old == new {
        return Vec::new();
    }
    let (old, new) = (parse::parse(old), parse::parse(new));
    let mut names = HashMap::new();
    let had = ConfigValues::new(&old, &mut names);
    let has = ConfigValues::new(&new, &mut names);
    let mut found = Vec::new();
    for key in &has.order {
        let Some((section, values)) = has.values.get(key) else { continue };
        let runs = |value: &ConfigValue<'_>| keys::runs_program(path, section, key.1, *value);
        if values.iter().any(runs) {
            let before = had.values.get(key).map_or(&[][..], |(_, values)| values);
            found.extend(added(before, values, runs).iter().map(|value| describe(section, key.1, *value)));
        }
    }
    // Git uses everything above the first line that it cannot parse.
    found.extend(new.error_line.map(|line| format!("line {line} is not valid in a git configuration")));
    found
}

/// Paths that a configuration names.
#[derive(Debug, Default)]
pub(crate) struct NamedPaths {
    /// Other configurations.
    pub(crate) includes: Vec<Vec<u8>>,
    /// The directory of hooks.
    pub(crate) hooks: Option<Vec<u8>>,
    /// The directory whose hooks and configuration new repositories get.
    pub(crate) template: Option<Vec<u8>>,
    /// The working tree.
    pub(crate) worktree: Option<Vec<u8>>,
    /// Programs and scripts, which git runs by itself.
    pub(crate) programs: Vec<Vec<u8>>,
}

/// The paths that the configuration at `path` names, as they are written.
pub(crate) fn named_paths(path: &Path, bytes: &[u8]) -> NamedPaths {
    let config = parse::parse(bytes);
    let mut named = NamedPaths::default();
    for entry in &config.entries {
        let Some(value) = entry.value.as_ref().filter(|value| !value.is_empty()) else { continue };
        let section = &config.sections[entry.section];
        match (section.section(), entry.key.as_slice()) {
            (b"include" | b"includeif", b"path") => named.includes.push(value.clone()),
            (b"core", b"hookspath") => named.hooks = Some(value.clone()),
            (b"init", b"templatedir") => named.template = Some(value.clone()),
            (b"core", b"worktree") => named.worktree = Some(value.clone()),
            // An alias runs when the user asks for it.
            (b"alias", _) => {}
            (_, key) if keys::runs_program(path, section, key, Some(value)) => {
                named.programs.extend(words::paths_in(value));
            }
            _ => {}
        }
    }
    named
}

/// The values of one key that run programs and did not before, without duplicates.
fn added<'a>(
    old: &[ConfigValue<'a>],
    new: &[ConfigValue<'a>],
    runs: impl Fn(&ConfigValue<'a>) -> bool,
) -> Vec<ConfigValue<'a>> {
    let had: HashSet<_> = old.iter().collect();
    let has: HashSet<_> = new.iter().collect();
    // The last value wins and an empty one resets a list: a program that was overridden must not become active because
    // a harmless value after it was removed or moved.
    let left = old.iter().filter(|value| has.contains(value) || !runs(value));
    let same_order = left.eq(new.iter().filter(|value| had.contains(value)));
    let mut listed = HashSet::new();
    new.iter()
        .filter(|value| runs(value) && !(same_order && had.contains(value)) && listed.insert(**value))
        .copied()
        .collect()
}

/// The values of a configuration by key.
struct ConfigValues<'a> {
    values: HashMap<ConfigKey<'a>, (&'a parse::ConfigSection, Vec<ConfigValue<'a>>)>,
    /// The keys in the order of their first appearance.
    order: Vec<ConfigKey<'a>>,
}

impl<'a> ConfigValues<'a> {
    /// `names` numbers the names of sections, so that a long one is hashed once and not for each of its keys.
    fn new(config: &'a parse::GitConfig, names: &mut HashMap<&'a [u8], usize>) -> Self {
        let mut numbers = Vec::with_capacity(config.sections.len());
        for section in &config.sections {
            let next = names.len();
            numbers.push(*names.entry(section.name.as_slice()).or_insert(next));
        }
        let mut all = Self { values: HashMap::new(), order: Vec::new() };
        for entry in &config.entries {
            let key = (numbers[entry.section], entry.key.as_slice());
            let (_, values) = all.values.entry(key).or_insert_with(|| {
                all.order.push(key);
                (&config.sections[entry.section], Vec::new())
            });
            values.push(entry.value.as_deref());
        }
        all
    }
}

fn describe(section: &parse::ConfigSection, key: &[u8], value: ConfigValue<'_>) -> String {
    let name = format!("{}.{}", clip(&section.name), clip(key));
    match value {
        Some(value) => format!("{name} = {}", clip(value)),
        None => name,
    }
}

/// Bytes as one short printable line.
fn clip(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SHOWN_BYTES)]);
    let mut line = String::new();
    for char in text.chars() {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    if bytes.len() > MAX_SHOWN_BYTES {
        line.push('…');
    }
    line
}
