//! The tokens of a server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use haft_files::{PrivateFile, real_named};
use haft_ledger::Ledger;
use haft_server::{Role, RoleToken};
use haft_tool::{ToolError, hex, lies_in};
use sha2::{Digest as _, Sha256};

use super::DIRECTORY;

const MAX_FILE_BYTES: u64 = 64 << 10;
/// A shorter token could be guessed.
const MIN_TOKEN_CHARS: usize = 20;
const TOKEN_BYTES: usize = 32;
const HOST_NAME_CHARS: usize = 12;

/// The tokens in the file, or else new ones.
pub(super) fn tokens(
    file: Option<&Path>,
    address: SocketAddr,
    read_only: bool,
) -> Result<Vec<RoleToken>, ToolError> {
    let mut tokens = match file {
        Some(file) => read(file)?,
        None if !address.ip().is_loopback() => {
            return Err(ToolError::invalid_arguments(format!(
                "{address} can be reached from other machines. Name a file with tokens: --token-file FILE. Put a proxy with TLS in \
                 front of the server, because the tokens are sent with each request."
            )));
        }
        None => Role::ALL
            .iter()
            .map(|role| Ok(RoleToken { role: *role, secret: new_secret()? }))
            .collect::<Result<_, ToolError>>()?,
    };
    if read_only {
        tokens.retain(|token| token.role == Role::View);
        if tokens.is_empty() {
            return Err(ToolError::invalid_arguments("the token file has no token with the role view"));
        }
    }
    Ok(tokens)
}

fn new_secret() -> Result<String, ToolError> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| ToolError::internal(format!("no randomness: {error}")))?;
    Ok(hex(&bytes))
}

/// A name of this machine that only servers with these tokens have. It stays the same after a restart with them, so that open
/// pages continue. Most browsers resolve all names below `localhost` to the machine; for others, `127.0.0.1` is accepted too.
pub(super) fn host_name(tokens: &[RoleToken]) -> String {
    let mut hash = Sha256::new_with_prefix("host name of haft serve");
    for token in tokens {
        hash.update(token.secret.as_bytes());
    }
    let digest: [u8; 32] = hash.finalize().into();
    format!("haft-{}.localhost", &hex(&digest)[..HOST_NAME_CHARS])
}

/// Where a token file belongs: no tool and no command can read Haft's home.
fn token_directory() -> Result<PathBuf, ToolError> {
    Ok(Ledger::home_from_env()?.join(DIRECTORY))
}

fn is_hidden_from_agents(directory: &Path) -> Result<bool, ToolError> {
    let home = Ledger::home_from_env()?;
    let home = real_named(&home).unwrap_or(home);
    Ok(lies_in(directory, &home))
}

fn read(path: &Path) -> Result<Vec<RoleToken>, ToolError> {
    let invalid = |why: &str| ToolError::invalid_arguments(format!("{}: {why}", path.display()));
    let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| invalid("name a file"))?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let real = real_named(directory).map_err(|_| invalid("there is no such file"))?;
    if !is_hidden_from_agents(&real)? {
        return Err(invalid(&format!(
            "agents can read it there and could answer their own questions with its tokens. Move it to {}",
            token_directory()?.display()
        )));
    }
    let bytes = PrivateFile::new(directory, name, MAX_FILE_BYTES).read()?;
    let bytes = bytes.ok_or_else(|| invalid("there is no such file"))?;
    let text = String::from_utf8(bytes).map_err(|_| invalid("it is not text"))?;
    let mut tokens = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = |why: &str| invalid(&format!("line {}: {why}", number + 1));
        let (role, secret) = line.split_once(char::is_whitespace).ok_or_else(|| at("write ROLE TOKEN"))?;
        let role = Role::named(role).ok_or_else(|| at("the role is view, approve, act or proxy"))?;
        let secret = secret.trim();
        // It is put into the URL without encoding.
        if !secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)) {
            return Err(at("a token has letters, digits, and -._~ only"));
        }
        if secret.len() < MIN_TOKEN_CHARS {
            return Err(at(&format!(
                "a token has at least {MIN_TOKEN_CHARS} characters; make one: openssl rand -hex 32"
            )));
        }
        tokens.push(RoleToken { role, secret: secret.to_owned() });
    }
    if tokens.is_empty() {
        return Err(invalid("it has no token"));
    }
    Ok(tokens)
}
