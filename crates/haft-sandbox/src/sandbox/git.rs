//! What may be left behind in git's own files: a configuration without new programs, links that lead to guarded names.
//!
//! Git obeys a repository's configuration whenever anyone works in that repository, so a command inside the sandbox
//! could have its program started later, outside. Here bytes are judged; who reads and writes them is elsewhere.

#[cfg(test)]
mod against_git;
#[cfg(test)]
mod fuzz;
mod keys;
mod link;
mod parse;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::path::Path;

pub(crate) use link::leads_astray;

/// How much of a name or a value is shown.
const SHOWN: usize = 160;

/// A key: the number of its section's name, and its own name.
type Key<'a> = (usize, &'a [u8]);
/// A value as git has it: a key may stand without one.
type Value<'a> = Option<&'a [u8]>;

/// [`programs_in`] for a repository's own configuration.
#[cfg(test)]
fn new_programs(old: &[u8], new: &[u8]) -> Vec<String> {
    programs_in(Path::new(".git/config"), old, new)
}

/// Keys in `new` that make git run a program and that `old` did not have with the same value, each as
/// `core.fsmonitor = ./evil`. Where the configuration lies decides what its relative paths mean.
pub(crate) fn programs_in(place: &Path, old: &[u8], new: &[u8]) -> Vec<String> {
    if old == new {
        return Vec::new();
    }
    let (old, new) = (parse::parse(old), parse::parse(new));
    let mut names = HashMap::new();
    let had = Values::of(&old, &mut names);
    let has = Values::of(&new, &mut names);
    let mut found = Vec::new();
    for key in &has.order {
        let Some((section, values)) = has.values.get(key) else { continue };
        let runs = |value: &Value<'_>| keys::runs(place, section, key.1, *value);
        if values.iter().any(runs) {
            let before = had.values.get(key).map_or(&[][..], |(_, values)| values);
            found.extend(added(before, values, runs).iter().map(|value| show(section, key.1, *value)));
        }
    }
    // Git obeys what stands above the line it cannot read.
    found.extend(new.broken.map(|line| format!("line {line} cannot be read as git's configuration")));
    found
}

/// The values of one key that run programs and did not before, each once.
fn added<'a>(old: &[Value<'a>], new: &[Value<'a>], runs: impl Fn(&Value<'a>) -> bool) -> Vec<Value<'a>> {
    let had: HashSet<_> = old.iter().collect();
    let has: HashSet<_> = new.iter().collect();
    // The last value wins and an empty one resets a list: a program that lay dormant must not wake because a harmless
    // value behind it went away or changed places.
    let left = old.iter().filter(|value| has.contains(value) || !runs(value));
    let undisturbed = left.eq(new.iter().filter(|value| had.contains(value)));
    let mut told = HashSet::new();
    new.iter()
        .filter(|value| runs(value) && !(undisturbed && had.contains(value)) && told.insert(**value))
        .copied()
        .collect()
}

/// A configuration by key.
struct Values<'a> {
    values: HashMap<Key<'a>, (&'a parse::Section, Vec<Value<'a>>)>,
    /// The keys as they first appear.
    order: Vec<Key<'a>>,
}

impl<'a> Values<'a> {
    /// `names` numbers the sections' names, so that a long one is looked at once and not for each of its keys.
    fn of(config: &'a parse::Config, names: &mut HashMap<&'a [u8], usize>) -> Self {
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

fn show(section: &parse::Section, key: &[u8], value: Value<'_>) -> String {
    let name = format!("{}.{}", clip(&section.name), clip(key));
    match value {
        Some(value) => format!("{name} = {}", clip(value)),
        None => name,
    }
}

/// Bytes as one short line.
fn clip(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let mut line = String::new();
    for char in text.chars() {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    if bytes.len() > SHOWN {
        line.push('…');
    }
    line
}
