//! A server as somebody configured it: a table in `haft.toml`, an object in `.mcp.json`, a flag.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use haft_tool::Network;
use haft_tool::net::{Authority, Domains};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use url::Url;

use super::expand::expand;

/// Who configured a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The user, in their own settings.
    User(PathBuf),
    /// The project, in a file that came with it.
    Project(PathBuf),
    /// Whoever started this process, with a flag.
    Flag,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(path) | Self::Project(path) => write!(f, "{}", path.display()),
            Self::Flag => f.write_str("the command line"),
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// A process of its own, over its standard input and output.
    Process {
        /// The program and its arguments; no shell reads them.
        argv: Vec<String>,
        /// Variables that it gets.
        environment: Vec<(String, String)>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// An address.
    Http {
        /// Which.
        url: String,
        /// Headers that go with every request.
        headers: Vec<(String, String)>,
        /// Whether it is known to speak only the oldest form.
        sse: bool,
    },
}

/// What a server is granted beyond looking at the workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Grants {
    /// Whether it may write the workspace.
    pub writes: bool,
    /// What it may reach.
    pub network: Network,
    /// Whether nobody holds it.
    pub unheld: bool,
}

impl Grants {
    /// Whether what it does can leave this machine, or its scope.
    pub fn reaches(&self) -> bool {
        self.unheld || self.network != Network::None
    }
}

impl fmt::Display for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unheld {
            return f.write_str("no sandbox at all");
        }
        let files = if self.writes { "writes the workspace" } else { "only reads the workspace" };
        match &self.network {
            Network::None => write!(f, "{files}, no network"),
            Network::All => write!(f, "{files}, all of the network"),
            Network::Domains(list) => write!(f, "{files}, reaches {}", list.join(", ")),
        }
    }
}

/// A server as somebody configured it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it is called.
    pub name: String,
    /// How it is reached.
    pub way: Way,
    /// What it is granted.
    pub grants: Grants,
    /// How long one of its answers may take.
    pub timeout: Option<Duration>,
    /// The only tools of it that are offered, if not all are.
    pub only: Option<Vec<String>>,
    /// Who configured it.
    pub origin: Origin,
    /// What it may ask for: `roots`, `elicitation`, `sampling`. Nothing, unless the user says so.
    pub offers: Vec<String>,
    /// The settings of its authorization, as they are.
    pub oauth: Value,
    /// What was written, before anything was put in for variables: what consent is about.
    pub written: Value,
}

/// One entry as files have it. Names that others use for the same are taken, too.
#[derive(Debug, Deserialize)]
struct Raw {
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
    network: Option<Words>,
    #[serde(default)]
    sandbox: Option<String>,
    #[serde(default)]
    offers: Vec<String>,
    #[serde(default)]
    oauth: Value,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    One(String),
    Many(Vec<String>),
}

impl Words {
    fn network(self) -> Result<Network, String> {
        let words: Vec<String> = match self {
            Self::One(text) => text.split(',').map(|word| word.trim().to_owned()).collect(),
            Self::Many(words) => words,
        };
        let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => Ok(Network::None),
            [one] if one == "none" => Ok(Network::None),
            [one] if one == "all" => Ok(Network::All),
            list if list.iter().any(|word| word == "none" || word == "all") => {
                Err("network: none and all stand alone; or name domains".to_owned())
            }
            list => match Domains::parse(list) {
                Ok(_) => Ok(Network::Domains(words)),
                Err(error) => Err(format!("network: {}", error.message)),
            },
        }
    }
}

impl Entry {
    /// Reads one entry; nothing if it is switched off. `var` looks up the variables that it names.
    pub fn read(
        name: &str,
        written: &Value,
        origin: Origin,
        var: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, String> {
        let raw: Raw = serde_json::from_value(written.clone())
            .map_err(|error| format!("the server {name:?} of {origin}: {error}"))?;
        if raw.disabled || raw.enabled == Some(false) {
            return Ok(None);
        }
        let bad = |why: &str| format!("the server {name:?} of {origin} is left out: {why}");
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(bad("its name must have 1 to 64 characters, none of them a control character"));
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
        let way = match (raw.command.as_deref().filter(|command| !command.is_empty()), &raw.url) {
            (Some(command), _) if !matches!(kind, "http" | "sse" | "streamable-http") => {
                let mut argv = vec![fill(command)?];
                for argument in &raw.args {
                    argv.push(fill(argument)?);
                }
                let cwd = raw.cwd.as_deref().map(&fill).transpose()?.map(PathBuf::from);
                Way::Process { argv, environment: pairs(&raw.env)?, cwd }
            }
            (_, Some(url)) => {
                let url = fill(url)?;
                authority(&url).map_err(|why| bad(&format!("{url:?} {why}")))?;
                Way::Http { url, headers: pairs(&raw.headers)?, sse: kind == "sse" }
            }
            _ => return Err(bad("it has neither a command nor a url")),
        };
        // What comes with a project grants itself nothing.
        let grants = match origin {
            Origin::Project(_) => Grants::default(),
            _ => Grants {
                writes: raw.writes,
                network: raw.network.map_or(Ok(Network::None), Words::network).map_err(|why| bad(&why))?,
                unheld: match raw.sandbox.as_deref() {
                    None | Some("on") => false,
                    Some("off") => true,
                    Some(other) => return Err(bad(&format!("sandbox is \"on\" or \"off\", not {other:?}"))),
                },
            },
        };
        Ok(Some(Self {
            name: name.to_owned(),
            way,
            grants,
            timeout: raw.timeout.map(Duration::from_millis),
            only: raw.tools,
            offers: if matches!(origin, Origin::Project(_)) { Vec::new() } else { raw.offers },
            origin,
            oauth: raw.oauth,
            written: written.clone(),
        }))
    }

    /// Whether its user must say yes before it is used.
    pub fn needs_consent(&self) -> bool {
        matches!(self.origin, Origin::Project(_))
    }

    /// What it is, in one line.
    pub fn line(&self) -> String {
        match &self.way {
            Way::Process { argv, .. } => argv.join(" "),
            Way::Http { url, .. } => url.clone(),
        }
    }

    /// The host that it is reached at, if it is no process.
    pub fn host(&self) -> Option<String> {
        match &self.way {
            Way::Http { url, .. } => authority(url).ok()?.entries().into_iter().next(),
            Way::Process { .. } => None,
        }
    }

    /// Whether what it does can leave this machine, or its scope.
    pub fn reaches(&self) -> bool {
        matches!(self.way, Way::Http { .. }) || self.grants.reaches()
    }
}

/// The place that an address names.
fn authority(url: &str) -> Result<Authority, String> {
    let url = Url::parse(url).map_err(|error| format!("is no address: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("is no http address".to_owned());
    }
    let host = url.host_str().unwrap_or_default();
    let named = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Authority::parse(&named).map_err(|why| format!("names no host: {why}"))
}

/// All entries of a table or of a file's `mcpServers`, by name; and what is wrong with the others.
pub fn entries(
    all: &Map<String, Value>,
    origin: &Origin,
    var: &dyn Fn(&str) -> Option<String>,
) -> (Vec<Entry>, Vec<String>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (name, written) in all {
        match Entry::read(name, written, origin.clone(), var) {
            Ok(Some(entry)) => good.push(entry),
            Ok(None) => {}
            Err(why) => bad.push(why),
        }
    }
    (good, bad)
}

/// The servers of a `.mcp.json`; `place` says where the bytes come from.
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

    fn read(written: &Value, origin: Origin) -> Result<Option<Entry>, String> {
        let var = |name: &str| (name == "HOST").then(|| "example.org".to_owned());
        Entry::read("x", written, origin, &var)
    }

    fn mine(written: &Value) -> Result<Option<Entry>, String> {
        read(written, Origin::User("/h/haft.toml".into()))
    }

    #[test]
    fn a_command_counts_before_a_url_unless_the_type_says_otherwise() {
        let both = json!({"command": "c", "args": ["a b", "$(x)"], "url": "https://${HOST}/mcp"});
        let way = mine(&both).unwrap().unwrap().way;
        let read = matches!(&way, Way::Process { argv, .. } if argv == &["c", "a b", "$(x)"]);
        assert!(read, "no shell reads them: {way:?}");
        let mut http = both;
        http["type"] = json!("http");
        let entry = mine(&http).unwrap().unwrap();
        assert_eq!(entry.line(), "https://example.org/mcp");
        assert_eq!(entry.host().as_deref(), Some("example.org"));
        assert!(mine(&json!({"url": "file:///etc/passwd"})).is_err());
        assert!(mine(&json!({"args": ["x"]})).is_err_and(|why| why.contains("neither")));
        assert!(mine(&json!({"command": "c", "env": {"A": "${MISSING}"}})).is_err());
        assert_eq!(mine(&json!({"enabled": false})), Ok(None), "what is off need not be whole");
    }

    #[test]
    fn a_project_grants_itself_nothing() {
        let greedy = json!({"command": "c", "writes": true, "network": "all", "sandbox": "off"});
        let project = read(&greedy, Origin::Project("/w/.mcp.json".into())).unwrap().unwrap();
        assert_eq!(project.grants, Grants::default());
        assert!(project.needs_consent() && !project.reaches());
        let own = mine(&greedy).unwrap().unwrap();
        assert!(own.grants.unheld && own.grants.writes && !own.needs_consent());
    }

    #[test]
    fn a_grant_that_is_not_understood_is_none() {
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
    fn a_file_that_is_none_says_so() {
        let servers = |text: &str| mcp_json(text.as_bytes(), "f");
        assert_eq!(servers("\u{feff}{\"mcpServers\": {\"a\": {}}}").unwrap().len(), 1);
        assert_eq!(servers("{}"), Ok(Map::new()));
        for bad in ["", "[]", "{\"mcpServers\": []}", "{\"mcpServers\": {", &"[".repeat(100_000)] {
            assert!(servers(bad).is_err_and(|why| why.starts_with("f: ")), "{bad:.20}");
        }
    }
}
