//! The environment of commands: what programs need to work, without secrets.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Used if `PATH` is not set.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that programs need and that hold no secret; separated by spaces.
const ALLOWED_NAMES: &[&str] = &[
    // The user and the system.
    "HOME HOSTNAME LANG LANGUAGE LOGNAME NO_COLOR PATH SHELL TEMP TMP TMPDIR TZ TZDIR USER",
    // The network.
    "ALL_PROXY CURL_CA_BUNDLE FTP_PROXY GIT_SSL_CAINFO HTTPS_PROXY HTTP_PROXY NIX_SSL_CERT_FILE \
     NODE_EXTRA_CA_CERTS NO_PROXY REQUESTS_CA_BUNDLE SSL_CERT_DIR SSL_CERT_FILE all_proxy ftp_proxy \
     http_proxy https_proxy no_proxy",
    // Compilers, libraries and the author of commits.
    "AR CC CFLAGS CPATH CUDA_HOME CXX CXXFLAGS GIT_AUTHOR_EMAIL GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL \
     GIT_COMMITTER_NAME LDFLAGS LD_LIBRARY_PATH LIBRARY_PATH MANPATH NIX_PATH NIX_PROFILES \
     PKG_CONFIG_PATH SDKROOT",
    // Where the tools of each language are installed.
    "ANDROID_HOME ANDROID_SDK_ROOT ASDF_DATA_DIR ASDF_DIR BUN_INSTALL CABAL_DIR CARGO_HOME \
     CARGO_TARGET_DIR COMPOSER_HOME CONDA_DEFAULT_ENV CONDA_EXE CONDA_PREFIX CONDA_PYTHON_EXE \
     DENO_DIR DENO_INSTALL DOTNET_ROOT FNM_DIR GEM_HOME GEM_PATH GOBIN GOCACHE GOFLAGS GOMODCACHE \
     GOPATH GOROOT GOTOOLCHAIN GRADLE_HOME GRADLE_USER_HOME JAVA_HOME JDK_HOME M2_HOME MAVEN_HOME \
     MISE_DATA_DIR NVM_BIN NVM_DIR NVM_INC OPAMROOT OPAM_SWITCH_PREFIX PIPX_HOME PIP_CACHE_DIR \
     PNPM_HOME POETRY_HOME PYENV_ROOT PYENV_VERSION PYTHONPATH RBENV_ROOT RUSTFLAGS RUSTUP_HOME \
     RUSTUP_TOOLCHAIN RUST_BACKTRACE SDKMAN_DIR UV_CACHE_DIR VIRTUAL_ENV VOLTA_HOME",
];

/// Prefixes of allowed variables.
const ALLOWED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// Suffixes of variables that hold secrets.
const SECRET_SUFFIXES: &[&str] = &[
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
];

/// Keeps programs from prompting, paging and drawing.
const NON_INTERACTIVE: &[(&str, &str)] =
    &[("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat"), ("TERM", "dumb")];

/// The environment variables of commands, without API keys and other secrets. `PWD` is set for each command.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The allowed variables of this process.
    pub fn inherited() -> Self {
        Self::scrubbed(std::env::vars_os())
    }

    /// The allowed ones of `variables`: those on the allow-list, if neither name nor value looks like a secret.
    ///
    /// Relative entries of `PATH` are removed, so that no file in the workspace is executed in place of a program.
    pub fn scrubbed(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let listed: HashSet<&str> = ALLOWED_NAMES.iter().flat_map(|group| group.split(' ')).collect();
        let is_allowed =
            |(name, value): &(OsString, OsString)| is_allowed_name(&listed, name) && !has_password(value);
        let mut allowed: BTreeMap<_, _> = variables.into_iter().filter(is_allowed).collect();
        let path = allowed
            .get(OsStr::new("PATH"))
            .map(|path| absolute_entries(path))
            .filter(|path| !path.is_empty());
        allowed.insert("PATH".into(), path.unwrap_or_else(|| DEFAULT_PATH.into()));
        for (name, value) in NON_INTERACTIVE {
            allowed.insert(name.into(), value.into());
        }
        Self { variables: allowed }
    }

    /// The same environment with one more variable, whatever its name is: it was added on purpose.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// The same environment without the variable `name`.
    #[must_use]
    pub fn without(mut self, name: impl AsRef<OsStr>) -> Self {
        self.variables.remove(name.as_ref());
        self
    }

    /// The value of `name`.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Every variable, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::inherited()
    }
}

/// Shows names only: a value that was added on purpose may be a secret.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

/// The values of those variables whose names say that they are secrets.
pub fn secret_values(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let is_secret = |(name, _): &(OsString, OsString)| name.to_str().is_some_and(is_secret_name);
    let secrets = variables.into_iter().filter(is_secret);
    secrets.filter_map(|(_, value)| value.into_string().ok()).collect()
}

/// Whether a variable of this name holds a secret.
fn is_secret_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_SUFFIXES.iter().any(|suffix| upper.ends_with(suffix))
}

fn is_allowed_name(listed: &HashSet<&str>, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed = listed.contains(name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    listed && !is_secret_name(name)
}

/// Whether the value is a URL with a password, as of some proxies.
fn has_password(value: &OsStr) -> bool {
    let value = value.to_string_lossy();
    let Some((_, rest)) = value.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

fn absolute_entries(path: &OsStr) -> OsString {
    let entries: Vec<&[u8]> = path
        .as_bytes()
        .split(|&byte| byte == b':')
        .filter(|entry| Path::new(OsStr::from_bytes(entry)).is_absolute())
        .collect();
    OsStr::from_bytes(&entries.join(&b':')).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrub(variables: &[(&str, &str)]) -> Environment {
        Environment::scrubbed(variables.iter().map(|(name, value)| (name.into(), value.into())))
    }

    fn names(environment: &Environment) -> Vec<&str> {
        environment.iter().filter_map(|(name, _)| name.to_str()).collect()
    }

    #[test]
    fn only_allowed_variables_pass_and_no_secrets() {
        let environment = scrub(&[
            ("OPENAI_API_KEY", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("GITHUB_TOKEN", "x"),
            ("LOOM_SERVER_TOKEN", "x"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("LD_PRELOAD", "/x.so"),
            ("BASH_ENV", "/x"),
            ("XDG_SESSION_TOKEN", "x"),
            ("LC_password", "x"),
            ("LC_ALL", "C.UTF-8"),
            ("XDG_CACHE_HOME", "/c"),
            ("HOME", "/home/a"),
            ("EDITOR", "vi"),
        ]);
        assert_eq!(
            names(&environment),
            ["GIT_PAGER", "GIT_TERMINAL_PROMPT", "HOME", "LC_ALL", "PAGER", "PATH", "TERM", "XDG_CACHE_HOME"]
        );
    }

    #[test]
    fn added_variables_pass_whatever_their_name() {
        let environment = scrub(&[]).with("DEPLOY_TOKEN", "t").with("TERM", "xterm").without("PAGER");
        assert_eq!(environment.get("DEPLOY_TOKEN"), Some(OsStr::new("t")));
        assert_eq!(environment.get("TERM"), Some(OsStr::new("xterm")));
        assert_eq!(environment.get("PAGER"), None);
        assert!(!format!("{environment:?}").contains("\"t\""), "values are not shown");
    }

    #[test]
    fn programs_are_made_non_interactive() {
        let environment = scrub(&[("TERM", "xterm-256color"), ("PAGER", "less"), ("GIT_PAGER", "delta")]);
        for (name, value) in
            [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")]
        {
            assert_eq!(environment.get(name), Some(OsStr::new(value)), "{name}");
        }
    }

    #[test]
    fn path_has_only_absolute_entries_and_a_default() {
        let path = |path| scrub(path).get("PATH").map(OsStr::to_owned);
        assert_eq!(path(&[("PATH", ":/a:.:b/c::/d:")]), Some("/a:/d".into()));
        assert_eq!(path(&[("PATH", ".:")]), Some(DEFAULT_PATH.into()));
        assert_eq!(path(&[]), Some(DEFAULT_PATH.into()));
    }

    #[test]
    fn proxy_variables_with_passwords_are_removed() {
        let environment = scrub(&[
            ("http_proxy", "http://proxy.example:3128"),
            ("https_proxy", "http://me:hush@proxy.example:3128/"),
            ("ALL_PROXY", "socks5://me@proxy.example:1080/a:b@c"),
            ("no_proxy", "localhost,::1"),
        ]);
        assert!(environment.get("http_proxy").is_some());
        assert!(environment.get("ALL_PROXY").is_some());
        assert!(environment.get("no_proxy").is_some());
        assert_eq!(environment.get("https_proxy"), None);
    }
}
