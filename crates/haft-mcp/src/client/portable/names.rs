//! Unique names for the tools of several servers.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest as _, Sha256};

/// The longest name that every provider accepts.
const MAX_NAME_BYTES: usize = 64;
/// Digits of a hash in a name; more are used on a collision.
const HASH_DIGITS: [usize; 4] = [10, 16, 32, 48];

/// Maps names to tools and back. Names are looked up, never parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames {
    tools: BTreeMap<String, (String, String)>,
    names: HashMap<(String, String), String>,
}

impl ToolNames {
    /// Names for these tools, given as server and tool. `preferred` makes the preferred name, for example
    /// `mcp__server__tool`; `taken` are names that must not be used.
    ///
    /// The result does not depend on the order: tools with the same preferred name all get another one.
    pub fn new<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a str)>,
        preferred: impl Fn(&str, &str) -> String,
        taken: &BTreeSet<String>,
    ) -> Self {
        let all: BTreeSet<(&str, &str)> = tools.into_iter().collect();
        let mut groups: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
        let mut hashed = Vec::new();
        for (server, tool) in all {
            let sanitized = sanitize(&preferred(server, tool));
            // A name that looks hashed could be chosen to collide with another tool's.
            if sanitized.len() > MAX_NAME_BYTES || looks_hashed(&sanitized) || taken.contains(&sanitized) {
                hashed.push((sanitized, (server, tool)));
            } else {
                groups.entry(sanitized).or_default().push((server, tool));
            }
        }
        let mut names = Self::default();
        for (sanitized, group) in groups {
            match group.as_slice() {
                [only] => names.assign(sanitized, *only),
                several => hashed.extend(several.iter().map(|one| (sanitized.clone(), *one))),
            }
        }
        names.assign_hashed(hashed, taken);
        names
    }

    /// Assigns names with a hash, with more digits on a collision.
    fn assign_hashed(&mut self, mut left: Vec<(String, (&str, &str))>, taken: &BTreeSet<String>) {
        for digits in HASH_DIGITS {
            let mut groups: BTreeMap<String, Vec<_>> = BTreeMap::new();
            for (sanitized, one) in left.drain(..) {
                groups.entry(shorten(&sanitized, one, digits)).or_default().push((sanitized, one));
            }
            for (name, group) in groups {
                match group.as_slice() {
                    [(_, only)] if !taken.contains(&name) && !self.tools.contains_key(&name) => {
                        self.assign(name, *only);
                    }
                    _ => left.extend(group),
                }
            }
        }
        // What is left collides in 192 bits and gets no name.
    }

    fn assign(&mut self, name: String, (server, tool): (&str, &str)) {
        let tool = (server.to_owned(), tool.to_owned());
        self.names.insert(tool.clone(), name.clone());
        self.tools.insert(name, tool);
    }

    /// The name of a tool.
    pub fn name(&self, server: &str, tool: &str) -> Option<&str> {
        self.names.get(&(server.to_owned(), tool.to_owned())).map(String::as_str)
    }

    /// The server and the tool that a name stands for.
    pub fn tool(&self, name: &str) -> Option<(&str, &str)> {
        self.tools.get(name).map(|(server, tool)| (server.as_str(), tool.as_str()))
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, (&str, &str))> {
        self.tools.iter().map(|(name, (server, tool))| (name.as_str(), (server.as_str(), tool.as_str())))
    }
}

/// Replaces characters that some provider does not accept.
fn sanitize(name: &str) -> String {
    let is_accepted = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let sanitized: String =
        name.chars().map(|letter| if is_accepted(letter) { letter } else { '_' }).collect();
    match sanitized.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => sanitized,
        _ => format!("_{sanitized}"),
    }
}

/// Whether it ends like a name with a hash: an underscore and many hexadecimal digits.
fn looks_hashed(name: &str) -> bool {
    let digits = name.bytes().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
    digits >= HASH_DIGITS[0] && name.len() > digits && name.as_bytes()[name.len() - digits - 1] == b'_'
}

fn shorten(sanitized: &str, (server, tool): (&str, &str), digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in [server, tool] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let room = MAX_NAME_BYTES - 1 - digits;
    // Both are ASCII.
    format!("{}_{}", &sanitized[..sanitized.len().min(room)], &hash[..digits])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(tools: &[(&str, &str)]) -> ToolNames {
        let taken = BTreeSet::from(["Read".to_owned(), "mcp__s__taken".to_owned()]);
        ToolNames::new(tools.iter().copied(), |server, tool| format!("mcp__{server}__{tool}"), &taken)
    }

    #[test]
    fn valid_name_is_kept_and_found() {
        let names = names(&[("git", "log"), ("git", "show-all")]);
        assert_eq!(names.name("git", "log"), Some("mcp__git__log"));
        assert_eq!(names.tool("mcp__git__show-all"), Some(("git", "show-all")));
        assert_eq!(names.tool("mcp__git__other"), None);
        assert_eq!(names.iter().count(), 2);
    }

    #[test]
    fn long_names_are_shortened_and_differ() {
        let (one, two) = ("n".repeat(200), format!("{}m", "n".repeat(199)));
        let names = names(&[("s", &one), ("s", &two)]);
        let (one, two) = (names.name("s", &one).unwrap(), names.name("s", &two).unwrap());
        assert!(one != two && one.len() == 64 && one.starts_with("mcp__s__nnn"), "{one} {two}");
    }

    #[test]
    fn colliding_names_are_all_hashed() {
        let tools = [("a", "b__c"), ("a__b", "c"), ("s", "x.y"), ("s", "x_y"), ("s", "taken")];
        let names = names(&tools);
        for (server, tool) in tools {
            let name = names.name(server, tool).unwrap();
            assert!(looks_hashed(name), "{name}");
            assert_eq!(names.tool(name), Some((server, tool)));
        }
        assert_eq!(names.tool("mcp__a__b__c"), None);
        assert_eq!(names.tool("mcp__s__taken"), None);
    }

    #[test]
    fn name_that_looks_hashed_is_hashed() {
        let long = "n".repeat(100);
        let original = names(&[("s", &long)]).name("s", &long).unwrap().to_owned();
        let imitation = original.strip_prefix("mcp__s__").unwrap();
        let both = names(&[("s", &long), ("s", imitation)]);
        assert_eq!(both.tool(&original), Some(("s", long.as_str())));
        assert_ne!(both.name("s", imitation), Some(original.as_str()));
    }

    proptest! {
        #[test]
        fn every_tool_has_a_valid_unique_name_in_any_order(
            tools in proptest::collection::btree_set(("[a-z._ü]{0,3}", "([a-c._ /é-]{0,4}|[a-f0-9_]{60,70})"), 0..20),
            seed in any::<u64>(),
        ) {
            let mut order: Vec<(&str, &str)> = tools.iter().map(|(s, t)| (s.as_str(), t.as_str())).collect();
            let first = names(&order);
            order.sort_by_key(|(s, t)| {
                let mixed = s.bytes().chain(t.bytes()).fold(seed, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte));
                (mixed, *s, *t)
            });
            prop_assert_eq!(&names(&order), &first);
            prop_assert_eq!(first.iter().count(), tools.len());
            for (server, tool) in &tools {
                let name = first.name(server, tool).unwrap();
                prop_assert!((1..=64).contains(&name.len()));
                prop_assert!(name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
                prop_assert_eq!(first.tool(name), Some((server.as_str(), tool.as_str())));
            }
        }
    }
}
