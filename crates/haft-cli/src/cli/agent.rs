//! `haft sandbox --agent`: what a whole agent needs in the sandbox, from the table in haft-policy.

use std::ffi::OsString;
use std::path::PathBuf;

use haft_policy::{AGENT_VARIABLES, AgentProfile};
use haft_tool::net::Authority;
use url::Url;

use super::args::ScopeArgs;

/// The flags that give an agent what it needs, besides those that the user gave. `network` is what the settings allow.
pub(super) fn with_agent(flags: &ScopeArgs, agent: &AgentProfile, network: Vec<String>) -> ScopeArgs {
    let mut flags = flags.clone();
    let mut words = flags.network.take().unwrap_or(network);
    if words != ["all"] {
        words.retain(|word| word != "none");
        words.extend(agent.hosts.iter().map(|host| (*host).to_owned()));
        words.extend(base_url_hosts(agent));
    }
    flags.network = Some(words);
    let names = agent.variables.iter().chain(AGENT_VARIABLES);
    let set = names.filter(|name| std::env::var_os(name).is_some()).map(|name| (*name).to_owned());
    flags.variables.splice(..0, set);
    let home = std::env::home_dir().unwrap_or_default();
    let installed = agent.installed.iter().filter(|entry| haft_files::id_of(&home.join(entry)).is_some());
    flags.show_home.extend(installed.map(PathBuf::from));
    flags
}

/// The hosts that the agent's variables name, such as a model server of the user's own.
pub(super) fn base_url_hosts(agent: &AgentProfile) -> Vec<String> {
    let urls = agent.base_urls.iter().filter_map(|name| std::env::var(name).ok());
    let hosts = urls.filter_map(|url| {
        let url = Url::parse(&url).ok()?;
        let (host, port) = (url.host_str()?.to_owned(), url.port_or_known_default()?);
        Some(Authority::parse(&format!("{host}:{port}")).ok()?.entries())
    });
    hosts.flatten().collect()
}

/// The command: the agent's program, unless the user named one.
pub(super) fn command(agent: &AgentProfile, given: &[OsString]) -> Vec<OsString> {
    if given.is_empty() { vec![agent.program.into()] } else { given.to_vec() }
}
