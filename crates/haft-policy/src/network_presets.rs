//! Names for the hosts that package managers need, as in `--network npm,pypi`.

use std::collections::BTreeMap;

/// Each preset with its hosts, written as in a list of domains.
pub const NETWORK_PRESETS: &[(&str, &[&str])] = &[
    ("npm", &["registry.npmjs.org", "registry.yarnpkg.com", "repo.yarnpkg.com", "nodejs.org"]),
    ("pypi", &["pypi.org", "files.pythonhosted.org"]),
    ("crates", &["crates.io", "index.crates.io", "static.crates.io"]),
    ("go", &["proxy.golang.org", "sum.golang.org"]),
    ("debian", &["deb.debian.org", "security.debian.org", "ftp.debian.org"]),
    ("ubuntu", &["archive.ubuntu.com", "*.archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"]),
    (
        "github",
        &[
            "github.com",
            "api.github.com",
            "codeload.github.com",
            "uploads.github.com",
            "*.githubusercontent.com",
        ],
    ),
];

/// The presets of [`NETWORK_PRESETS`] and those that the user added.
#[derive(Debug, Clone, Default)]
pub struct NetworkPresets {
    more: BTreeMap<String, Vec<String>>,
}

impl NetworkPresets {
    /// The presets with more hosts: those of a known name are added to it.
    pub fn with(more: impl IntoIterator<Item = (String, Vec<String>)>) -> Self {
        let mut presets = Self::default();
        for (name, hosts) in more {
            presets.more.entry(name).or_default().extend(hosts);
        }
        presets
    }

    /// The words with each name of a preset replaced by its hosts. A word with a dot or a colon is a host.
    pub fn expand<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut list: Vec<String> = Vec::new();
        for word in words {
            let hosts = self.hosts(word);
            let hosts = if hosts.is_empty() { vec![word.to_owned()] } else { hosts };
            list.extend(hosts);
        }
        let mut seen = std::collections::BTreeSet::new();
        list.retain(|host| seen.insert(host.clone()));
        list
    }

    /// The names of all presets.
    pub fn names(&self) -> Vec<&str> {
        let own = self.more.keys().map(String::as_str);
        let known = NETWORK_PRESETS.iter().map(|(name, _)| *name);
        known.clone().chain(own.filter(|own| !known.clone().any(|name| name == *own))).collect()
    }

    fn hosts(&self, name: &str) -> Vec<String> {
        let known =
            NETWORK_PRESETS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, hosts)| *hosts);
        let more = self.more.get(name).into_iter().flatten();
        known.iter().map(|host| (*host).to_owned()).chain(more.cloned()).collect()
    }
}

/// The preset that contains a host, for hints.
pub fn preset_of_host(host: &str) -> Option<&'static str> {
    let covers = |entry: &str| match entry.strip_prefix("*.") {
        Some(below) => host.strip_suffix(below).is_some_and(|label| label.ends_with('.')),
        None => entry == host,
    };
    let preset = NETWORK_PRESETS.iter().find(|(_, hosts)| hosts.iter().any(|entry| covers(entry)));
    preset.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_tool::net::Domains;

    #[test]
    fn every_host_of_a_preset_can_be_listed() {
        for (name, hosts) in NETWORK_PRESETS {
            let list: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            assert!(Domains::parse(&list).is_ok() && !hosts.is_empty(), "{name}");
            assert!(
                hosts.iter().all(|host| preset_of_host(&host.replace('*', "any")) == Some(*name)),
                "{name}"
            );
        }
        assert_eq!(preset_of_host("evil-github.com"), None);
        assert_eq!(preset_of_host("githubusercontent.com"), None);
    }

    #[test]
    fn words_become_hosts_and_presets_can_be_extended() {
        let more = [
            ("npm".to_owned(), vec!["npm.corp".to_owned()]),
            ("ours".to_owned(), vec!["a.corp:8080".to_owned()]),
        ];
        let presets = NetworkPresets::with(more);
        let list = presets.expand(["pypi", "example.com", "ours", "npm", "pypi"]);
        assert_eq!(list[..4], ["pypi.org", "files.pythonhosted.org", "example.com", "a.corp:8080"]);
        assert!(list.contains(&"registry.npmjs.org".to_owned()) && list.contains(&"npm.corp".to_owned()));
        assert_eq!(list.iter().filter(|host| *host == "pypi.org").count(), 1);
        assert_eq!(NetworkPresets::default().expand(["ours"]), ["ours"]);
        assert!(presets.names().ends_with(&["github", "ours"]));
    }
}
