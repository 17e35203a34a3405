//! Programs that download a server from a registry before they run it, such as npx and uvx.

use haft_tool::Network;

/// A program that downloads what it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackageRunner {
    /// The words that start a command line of it.
    words: &'static [&'static str],
    /// The network preset with its registry.
    pub(crate) preset: &'static str,
    /// The variable that makes it run what it has downloaded before.
    offline: (&'static str, &'static str),
}

const NPM_OFFLINE: (&str, &str) = ("npm_config_prefer_offline", "true");
const UV_OFFLINE: (&str, &str) = ("UV_OFFLINE", "1");

const RUNNERS: &[PackageRunner] = &[
    PackageRunner { words: &["npx"], preset: "npm", offline: NPM_OFFLINE },
    PackageRunner { words: &["npm", "exec"], preset: "npm", offline: NPM_OFFLINE },
    PackageRunner { words: &["pnpm", "dlx"], preset: "npm", offline: NPM_OFFLINE },
    PackageRunner { words: &["bunx"], preset: "npm", offline: NPM_OFFLINE },
    PackageRunner { words: &["uvx"], preset: "pypi", offline: UV_OFFLINE },
    PackageRunner { words: &["uv", "tool", "run"], preset: "pypi", offline: UV_OFFLINE },
];

impl PackageRunner {
    /// The runner of a command line.
    pub(crate) fn of(argv: &[String]) -> Option<&'static Self> {
        let name = argv.first()?.rsplit('/').next()?;
        RUNNERS.iter().find(|runner| {
            runner.words.len() <= argv.len()
                && runner.words[0] == name
                && runner.words[1..].iter().zip(&argv[1..]).all(|(word, given)| word == given)
        })
    }

    /// What it needs to download, besides `network`.
    pub(crate) fn download_network(&self, network: &Network) -> Network {
        match network {
            Network::All => Network::All,
            Network::None => Network::Domains(vec![self.preset.to_owned()]),
            Network::Domains(list) => {
                Network::Domains(list.iter().cloned().chain([self.preset.to_owned()]).collect())
            }
        }
    }

    /// The variable that makes it use what it has downloaded, unless `environment` sets it.
    pub(crate) fn offline(&self, environment: &[(String, String)]) -> Option<(String, String)> {
        let (name, value) = self.offline;
        let is_set = environment.iter().any(|(known, _)| known == name);
        (!is_set).then(|| (name.to_owned(), value.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runners_are_recognised_by_their_words() {
        let of = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            PackageRunner::of(&argv).map(|runner| runner.preset)
        };
        assert_eq!(of("npx -y server@1.0.0"), Some("npm"));
        assert_eq!(of("/usr/bin/uvx server==1.0"), Some("pypi"));
        assert_eq!(of("uv tool run server"), Some("pypi"));
        assert_eq!(of("uv run server.py"), None);
        assert_eq!(of("node server.js"), None);
    }
}
