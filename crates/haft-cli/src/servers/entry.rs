//! A configured server: a table in `haft.toml`, an object in `.mcp.json`, or a flag.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use haft_tool::Network;
use haft_tool::net::Authority;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::expand::expand;
use crate::config::NetworkWords;

/// Where a server was configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerOrigin {
    /// In the user's own settings.
    User(PathBuf),
    /// In a file that came with the project.
    Project(PathBuf),
    /// On the command line.
    Flag,
}

impl fmt::Display for ServerOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(path) | Self::Project(path) => write!(f, "{}", path.display()),
            Self::Flag => f.write_str("the command line"),
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerLocation {
    /// A process, over standard input and output.
    Process {
        /// The program and its arguments; no shell is involved.
        argv: Vec<String>,
        /// Additional environment variables.
        environment: Vec<(String, String)>,
        /// Its working directory.
        cwd: Option<PathBuf>,
    },
    /// An HTTP endpoint.
    Http {
        /// Its URL.
        url: String,
        /// Headers sent with every request.
        headers: Vec<(String, String)>,
        /// Whether it only speaks the HTTP+SSE transport.
        sse: bool,
    },
    /// Inside the program that drives this one.
    Host,
}

/// What a server may do besides reading the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerGrants {
    /// Whether it may write the workspace.
    pub writes: bool,
    /// The network it may use.
    pub network: Network,
    /// Whether it runs without a sandbox.
    pub unsandboxed: bool,
}

impl ServerGrants {
    /// Whether its effects can leave this machine or its scope.
    pub fn reaches(&self) -> bool {
        self.unsandboxed || self.network != Network::None
    }
}

impl fmt::Display for ServerGrants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unsandboxed {
            return f.write_str("runs without a sandbox");
        }
        let files = if self.writes { "writes the workspace" } else { "reads the workspace" };
        match &self.network {
            Network::None => write!(f, "{files}, no network"),
            Network::All => write!(f, "{files}, full network access"),
            Network::Domains(list) => write!(f, "{files}, reaches {}", list.join(", ")),
        }
    }
}

/// A configured server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub location: ServerLocation,
    /// What it may do.
    pub grants: ServerGrants,
    /// The timeout of one response.
    pub timeout: Option<Duration>,
    /// The tools that are offered, if not all.
    pub only: Option<Vec<String>>,
    /// Where it was configured.
    pub origin: ServerOrigin,
    /// The client features it may use: `roots`, `elicitation`, `sampling`. None by default.
    pub offers: Vec<String>,
    /// The OAuth settings as written.
    pub oauth: Value,
    /// The entry as written, before variables are expanded; consent covers this.
    pub written: Value,
    /// Whether it may reach the registry that its program downloads it from, this once.
    pub downloads: bool,
}

/// An entry as settings files hold it, with the field names of other programs as aliases.
#[derive(Debug, Deserialize)]
struct RawServerEntry {
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Map<String, Value>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default, alias = "httpUrl", alias = "serverUrl")]
    url: Option<String>,
    #[serde(default, rename = "type", alias = "transport")]
    kind: Option<String>,
    #[serde(default, alias = "http_headers")]
    headers: Map<String, Value>,
    /// In milliseconds, as `.mcp.json` has it.
    #[serde(default)]
    timeout: Option<u64>,
    #[serde(default)]
    disabled: bool,
    #[serde(default)]
    enabled: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<String>>,
    #[serde(default)]
    writes: bool,
    #[serde(default)]
    network: Option<NetworkWords>,
    #[serde(default)]
    sandbox: Option<String>,
    #[serde(default)]
    offers: Vec<String>,
    #[serde(default)]
    oauth: Value,
}

impl ServerEntry {
    /// Parses one entry; `None` if it is disabled. `var` looks up the variables it names.
    pub fn read(
        name: &str,
        written: &Value,
        origin: ServerOrigin,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let raw: RawServerEntry = serde_json::from_value(written.clone())
            .map_err(|error| format!("the server {name:?} of {origin}: {error}"))?;
        if raw.disabled || raw.enabled == Some(false) {
            return Ok(None);
        }
        let bad = |why: &str| format!("the server {name:?} of {origin} is ignored: {why}");
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(bad("its name must have 1 to 64 characters and no control characters"));
        }
        let fill = |text: &str| expand(text, var).map_err(|why| bad(&why));
        let pairs = |map: &Map<String, Value>| {
            map.iter()
                .map(|(key, value)| {
                    let text = match value {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    Ok((key.clone(), fill(&text)?))
                })
                .collect::<Result<Vec<_>, String>>()
        };
        let kind = raw.kind.as_deref().unwrap_or_default();
        let is_of_host = kind == "sdk";
        if is_of_host && origin != ServerOrigin::Flag {
            return Err(bad("a server inside the program that drives Haft is named on the command line"));
        }
        let location = match (raw.command.as_deref().filter(|command| !command.is_empty()), &raw.url) {
            (Some(command), _) if !matches!(kind, "http" | "sse" | "streamable-http") => {
                let mut argv = vec![fill(command)?];
                for argument in &raw.args {
                    argv.push(fill(argument)?);
                }
                let cwd = raw.cwd.as_deref().map(&fill).transpose()?.map(PathBuf::from);
                ServerLocation::Process { argv, environment: pairs(&raw.env)?, cwd }
            }
            (_, Some(url)) => {
                let url = fill(url)?;
                authority(&url).map_err(|why| bad(&format!("{url:?} {why}")))?;
                ServerLocation::Http { url, headers: pairs(&raw.headers)?, sse: kind == "sse" }
            }
            _ if is_of_host => ServerLocation::Host,
            _ => return Err(bad("it has neither a command nor a url")),
        };
        // An entry of a project cannot grant itself anything.
        let grants = match origin {
            ServerOrigin::Project(_) => ServerGrants::default(),
            _ => ServerGrants {
                writes: raw.writes,
                network: match &raw.network {
                    Some(words) => words.network().map_err(|error| bad(&error.message))?,
                    None => Network::None,
                },
                unsandboxed: match raw.sandbox.as_deref() {
                    None | Some("on") => false,
                    Some("off") => true,
                    Some(other) => return Err(bad(&format!("sandbox is \"on\" or \"off\", not {other:?}"))),
                },
            },
        };
        Ok(Some(Self {
            name: name.to_owned(),
            location,
            grants,
            timeout: raw.timeout.map(Duration::from_millis),
            only: raw.tools,
            offers: if matches!(origin, ServerOrigin::Project(_)) { Vec::new() } else { raw.offers },
            origin,
            oauth: raw.oauth,
            written: written.clone(),
            downloads: false,
        }))
    }

    /// Whether the user must consent before it is used.
    pub fn needs_consent(&self) -> bool {
        matches!(self.origin, ServerOrigin::Project(_))
    }

    /// The command line or URL.
    pub fn line(&self) -> String {
        match &self.location {
            ServerLocation::Process { argv, .. } => argv.join(" "),
            ServerLocation::Http { url, .. } => url.clone(),
            ServerLocation::Host => "inside the program that drives Haft".to_owned(),
        }
    }

    /// The host of an HTTP server.
    pub fn host(&self) -> Option<String> {
        match &self.location {
            ServerLocation::Http { url, .. } => authority(url).ok()?.entries().into_iter().next(),
            ServerLocation::Process { .. } | ServerLocation::Host => None,
        }
    }

    /// Whether its effects can leave this machine or its scope.
    pub fn reaches(&self) -> bool {
        !matches!(self.location, ServerLocation::Process { .. }) || self.grants.reaches()
    }
}

/// The host and port of a URL.
fn authority(url: &str) -> Result<Authority, String> {
    let url = Url::parse(url).map_err(|error| format!("is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("is not an http URL".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Authority::parse(&named).map_err(|why| format!("has no valid host: {why}"))
}

/// Parses the `mcpServers` of a `.mcp.json`; `place` names the file in errors.
pub fn mcp_json(bytes: &[u8], place: &str) -> Result<Map<String, Value>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let value: Value = serde_json::from_slice(bytes).map_err(|error| format!("{place}: {error}"))?;
    let Value::Object(mut file) = value else {
        return Err(format!("{place}: expected an object with mcpServers"));
    };
    match file.remove("mcpServers") {
        Some(Value::Object(all)) => Ok(all),
        None => Ok(Map::new()),
        Some(_) => Err(format!("{place}: mcpServers must be an object")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(written: &Value, origin: ServerOrigin) -> Result<Option<ServerEntry>, String> {
        let var = |name: &str| (name == "HOST").then(|| "example.org".to_owned());
        ServerEntry::read("x", written, origin, &var)
    }

    fn mine(written: &Value) -> Result<Option<ServerEntry>, String> {
        read(written, ServerOrigin::User("/h/haft.toml".into()))
    }

    #[test]
    fn command_wins_over_url_unless_type_is_http() {
        let both = json!({"command": "c", "args": ["a b", "$(x)"], "url": "https://${HOST}/mcp"});
        let location = mine(&both).unwrap().unwrap().location;
        let read = matches!(&location, ServerLocation::Process { argv, .. } if argv == &["c", "a b", "$(x)"]);
        assert!(read, "arguments are not split by a shell: {location:?}");
        let mut http = both;
        http["type"] = json!("http");
        let entry = mine(&http).unwrap().unwrap();
        assert_eq!(entry.line(), "https://example.org/mcp");
        assert_eq!(entry.host().as_deref(), Some("example.org"));
        assert!(mine(&json!({"url": "file:///etc/passwd"})).is_err());
        assert!(mine(&json!({"args": ["x"]})).is_err_and(|why| why.contains("neither")));
        assert!(mine(&json!({"command": "c", "env": {"A": "${MISSING}"}})).is_err());
        assert_eq!(mine(&json!({"enabled": false})), Ok(None), "a disabled entry may be incomplete");
    }

    #[test]
    fn project_entry_cannot_grant_itself_anything() {
        let greedy = json!({"command": "c", "writes": true, "network": "all", "sandbox": "off"});
        let project = read(&greedy, ServerOrigin::Project("/w/.mcp.json".into())).unwrap().unwrap();
        assert_eq!(project.grants, ServerGrants::default());
        assert!(project.needs_consent() && !project.reaches());
        let own = mine(&greedy).unwrap().unwrap();
        assert!(own.grants.unsandboxed && own.grants.writes && !own.needs_consent());
    }

    #[test]
    fn invalid_grant_is_an_error() {
        let network = |words: Value| {
            mine(&json!({"command": "c", "network": words})).map(|e| e.unwrap().grants.network)
        };
        assert_eq!(network(json!("none")), Ok(Network::None));
        assert_eq!(
            network(json!("a.org, *.b.org")),
            Ok(Network::Domains(vec!["a.org".into(), "*.b.org".into()]))
        );
        assert!(network(json!(["all", "a.org"])).is_err());
        assert!(network(json!("http://a.org/x?")).is_err());
        assert!(mine(&json!({"command": "c", "sandbox": "of"})).is_err_and(|why| why.contains("\"of\"")));
    }

    #[test]
    fn invalid_file_is_an_error_with_its_name() {
        let servers = |text: &str| mcp_json(text.as_bytes(), "f");
        assert_eq!(servers("\u{feff}{\"mcpServers\": {\"a\": {}}}").unwrap().len(), 1);
        assert_eq!(servers("{}"), Ok(Map::new()));
        for bad in ["", "[]", "{\"mcpServers\": []}", "{\"mcpServers\": {", &"[".repeat(100_000)] {
            assert!(servers(bad).is_err_and(|why| why.starts_with("f: ")), "{bad:.20}");
        }
    }
}
