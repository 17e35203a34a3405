//! ToolNames under which the tools of several servers are offered at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sha2::{Digest as _, Sha256};

/// The longest name that every provider takes.
const LONGEST: usize = 64;
/// How many digits of a hash keep two names apart; more are taken where these do not.
const DIGITS: [usize; 4] = [10, 16, 32, 48];

/// Which name stands for which tool of which server. ToolNames are never taken apart to find that out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolNames {
    tools: BTreeMap<String, (String, String)>,
    names: HashMap<(String, String), String>,
}

impl ToolNames {
    /// ToolNames for these tools, each given as server and tool. `wanted` says what one would be called if everything were
    /// allowed, for example `mcp__server__tool`; `taken` are names that none of them may have.
    ///
    /// What comes out depends on what goes in and not on its order: tools that would get the same name all get another.
    pub fn new<'a>(
        tools: impl IntoIterator<Item = (&'a str, &'a str)>,
        wanted: impl Fn(&str, &str) -> String,
        taken: &BTreeSet<String>,
    ) -> Self {
        let all: BTreeSet<(&str, &str)> = tools.into_iter().collect();
        let mut groups: BTreeMap<String, Vec<(&str, &str)>> = BTreeMap::new();
        let mut hashed = Vec::new();
        for (server, tool) in all {
            let fit = fit(&wanted(server, tool));
            // A name that looks like a shortened one could be made to be another's.
            if fit.len() > LONGEST || looks_hashed(&fit) || taken.contains(&fit) {
                hashed.push((fit, (server, tool)));
            } else {
                groups.entry(fit).or_default().push((server, tool));
            }
        }
        let mut given = Self::default();
        for (fit, group) in groups {
            match group.as_slice() {
                [only] => given.give(fit, *only),
                several => hashed.extend(several.iter().map(|one| (fit.clone(), *one))),
            }
        }
        given.give_hashed(hashed, taken);
        given
    }

    /// Gives names with hashes in them, with more digits where fewer would be the same.
    fn give_hashed(&mut self, mut left: Vec<(String, (&str, &str))>, taken: &BTreeSet<String>) {
        for digits in DIGITS {
            let mut groups: BTreeMap<String, Vec<_>> = BTreeMap::new();
            for (fit, one) in left.drain(..) {
                groups.entry(shorten(&fit, one, digits)).or_default().push((fit, one));
            }
            for (name, group) in groups {
                match group.as_slice() {
                    [(_, only)] if !taken.contains(&name) && !self.tools.contains_key(&name) => {
                        self.give(name, *only);
                    }
                    _ => left.extend(group),
                }
            }
        }
        // Whatever is left has the same 192 bits as another; it goes without a name.
    }

    fn give(&mut self, name: String, (server, tool): (&str, &str)) {
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

/// `name` with nothing in it but what every provider takes.
fn fit(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    let fitted: String = name.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect();
    match fitted.chars().next() {
        Some(first) if first.is_ascii_alphabetic() || first == '_' => fitted,
        _ => format!("_{fitted}"),
    }
}

/// Whether it ends like a shortened name: an underscore and many hexadecimal digits.
fn looks_hashed(name: &str) -> bool {
    let digits = name.bytes().rev().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
    digits >= DIGITS[0] && name.len() > digits && name.as_bytes()[name.len() - digits - 1] == b'_'
}

fn shorten(fit: &str, (server, tool): (&str, &str), digits: usize) -> String {
    let mut hash = Sha256::new();
    for part in [server, tool] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let room = LONGEST - 1 - digits;
    // All of it is ASCII.
    format!("{}_{}", &fit[..fit.len().min(room)], &hash[..digits])
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
    fn a_plain_name_stays_as_it_is_and_leads_back() {
        let names = names(&[("git", "log"), ("git", "show-all")]);
        assert_eq!(names.name("git", "log"), Some("mcp__git__log"));
        assert_eq!(names.tool("mcp__git__show-all"), Some(("git", "show-all")));
        assert_eq!(names.tool("mcp__git__other"), None);
        assert_eq!(names.iter().count(), 2);
    }

    #[test]
    fn long_names_stay_apart_and_recognisable() {
        let (one, two) = ("n".repeat(200), format!("{}m", "n".repeat(199)));
        let names = names(&[("s", &one), ("s", &two)]);
        let (one, two) = (names.name("s", &one).unwrap(), names.name("s", &two).unwrap());
        assert!(one != two && one.len() == 64 && one.starts_with("mcp__s__nnn"), "{one} {two}");
    }

    #[test]
    fn nobody_gets_a_name_that_could_be_anothers() {
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
    fn a_name_made_to_look_like_a_shortened_one_is_shortened_itself() {
        let long = "n".repeat(100);
        let victim = names(&[("s", &long)]).name("s", &long).unwrap().to_owned();
        let thief = victim.strip_prefix("mcp__s__").unwrap();
        let both = names(&[("s", &long), ("s", thief)]);
        assert_eq!(both.tool(&victim), Some(("s", long.as_str())));
        assert_ne!(both.name("s", thief), Some(victim.as_str()));
    }

    proptest! {
        #[test]
        fn every_tool_has_one_name_that_every_provider_takes_whatever_the_order(
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
