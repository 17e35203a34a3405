//! How to reach running servers: a file for each, which is locked while its server runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_files::{FileLockGuard, PrivateFile, names_in, write_private};
use haft_server::{Role, RoleToken};
use haft_tool::{Cancel, ToolError, now_ms};
use serde::{Deserialize, Serialize};

const MAX_FILE_BYTES: u64 = 16 << 10;
/// How many servers' files are read.
const MAX_FILES: usize = 100_000;
/// The lock that a server holds while it runs.
const RUNNING: &str = "running";
/// The page that redirects a browser to the URL with its token.
const LINK: &str = "open.html";

/// The contents of a server's file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunningServerFile {
    pid: u32,
    started_at: u64,
    /// The address without a token, for programs.
    url: String,
    /// The address of the page, for browsers.
    page: String,
    tokens: Vec<StoredToken>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredToken {
    role: String,
    token: String,
}

/// The file of this process, with its lock.
pub(super) struct LockedServerFile {
    file: PrivateFile,
    guard: FileLockGuard,
}

impl RunningServerFile {
    /// `hosts` are the names by which other machines reach the server; the page's URL has the first one, if there is one.
    pub(super) fn new(
        address: SocketAddr,
        own_name: Option<&str>,
        hosts: &[String],
        tokens: &[RoleToken],
    ) -> Self {
        let tokens = tokens
            .iter()
            .map(|token| StoredToken { role: token.role.name().to_owned(), token: token.secret.clone() });
        // Programs that read the file run on this machine.
        let host = if address.ip().is_unspecified() {
            format!("127.0.0.1:{}", address.port())
        } else {
            address.to_string()
        };
        Self {
            pid: std::process::id(),
            started_at: now_ms(),
            url: format!("http://{host}/"),
            page: match (hosts.first(), own_name) {
                (Some(name), _) => page_at(name),
                (None, Some(name)) => format!("http://{name}:{}/", address.port()),
                (None, None) => format!("http://{host}/"),
            },
            tokens: tokens.collect(),
        }
    }

    /// The URL with the token of a role, or else of the highest role below it.
    pub(super) fn url(&self, role: Role) -> Option<String> {
        // A token for the proxies cannot open the page, and is the only one that agents should get.
        let is_allowed = |is: Role| is <= role && (is == Role::Proxy) == (role == Role::Proxy);
        let allowed = self.tokens.iter().filter(|token| Role::named(&token.role).is_some_and(is_allowed));
        let token = allowed.max_by_key(|token| Role::named(&token.role))?;
        let base = if role == Role::Proxy { &self.url } else { &self.page };
        Some(format!("{base}#token={}", token.token))
    }
}

/// The page's URL at a host name. A name without a port is that of a proxy with TLS, because browsers reach the server itself
/// only by its port.
fn page_at(host: &str) -> String {
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    format!("{}://{host}/", if has_port { "http" } else { "https" })
}

fn file(directory: &Path, name: &str) -> PrivateFile {
    PrivateFile::new(directory, name, MAX_FILE_BYTES)
}

fn try_lock(file: &PrivateFile) -> Result<FileLockGuard, ToolError> {
    file.lock(RUNNING, Duration::ZERO, &Cancel::new())
}

/// Removes the files of servers that have ended, and takes one for this process.
pub(super) fn begin(directory: &Path) -> Result<LockedServerFile, ToolError> {
    for name in state_files(directory) {
        let file = file(directory, &name);
        if let Ok(guard) = try_lock(&file) {
            file.remove(RUNNING, guard)?;
        }
    }
    let file = file(directory, &format!("{}.json", std::process::id()));
    let guard = try_lock(&file)?;
    Ok(LockedServerFile { file, guard })
}

fn state_files(directory: &Path) -> Vec<String> {
    let names = names_in(directory, MAX_FILES).into_iter();
    let names = names.filter_map(|name| name.to_str().map(str::to_owned));
    names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "json")).collect()
}

impl LockedServerFile {
    pub(super) fn write(&self, state: &RunningServerFile) -> Result<(), ToolError> {
        let bytes = serde_json::to_vec(state)?;
        self.file.update(|_| Ok(((), Some(bytes))))
    }

    /// Removes the file. If that fails, the next server does it.
    pub(super) fn end(self) {
        let _ = self.file.remove(RUNNING, self.guard);
    }
}

/// The running server that was started last.
pub(super) fn newest(directory: &Path) -> Result<Option<RunningServerFile>, ToolError> {
    let mut newest: Option<RunningServerFile> = None;
    for name in state_files(directory) {
        let file = file(directory, &name);
        if try_lock(&file).is_ok() {
            // Its server has ended.
            continue;
        }
        let state: Option<RunningServerFile> =
            file.read()?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        newest = newest.into_iter().chain(state).max_by_key(|state| state.started_at);
    }
    Ok(newest)
}

/// Writes a page that redirects to the URL.
pub(super) fn write_link(directory: &Path, url: &str) -> Result<PathBuf, ToolError> {
    let path = directory.join(LINK);
    // The URL has no characters that are special in HTML.
    let page =
        format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>Haft</title>\n");
    write_private(&path, page.as_bytes())?;
    Ok(path)
}
