//! The environment a command sees: what programs need to work, and no secrets.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where programs are looked for when the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Variables that programs need to find their parts, and that hold no secret; separated by spaces.
const NAMES: &[&str] = &[
    // The user and the system.
    "HOME HOSTNAME LANG LANGUAGE LOGNAME NO_COLOR PATH SHELL TEMP TMP TMPDIR TZ TZDIR USER",
    // The network.
    "ALL_PROXY CURL_CA_BUNDLE FTP_PROXY GIT_SSL_CAINFO HTTPS_PROXY HTTP_PROXY NIX_SSL_CERT_FILE \
     NODE_EXTRA_CA_CERTS NO_PROXY REQUESTS_CA_BUNDLE SSL_CERT_DIR SSL_CERT_FILE all_proxy ftp_proxy \
     http_proxy https_proxy no_proxy",
    // Compilers, libraries and who a commit is from.
    "AR CC CFLAGS CPATH CUDA_HOME CXX CXXFLAGS GIT_AUTHOR_EMAIL GIT_AUTHOR_NAME GIT_COMMITTER_EMAIL \
     GIT_COMMITTER_NAME LDFLAGS LD_LIBRARY_PATH LIBRARY_PATH MANPATH NIX_PATH NIX_PROFILES \
     PKG_CONFIG_PATH SDKROOT",
    // Where each language keeps its tools.
    "ANDROID_HOME ANDROID_SDK_ROOT ASDF_DATA_DIR ASDF_DIR BUN_INSTALL CABAL_DIR CARGO_HOME \
     CARGO_TARGET_DIR COMPOSER_HOME CONDA_DEFAULT_ENV CONDA_EXE CONDA_PREFIX CONDA_PYTHON_EXE \
     DENO_DIR DENO_INSTALL DOTNET_ROOT FNM_DIR GEM_HOME GEM_PATH GOBIN GOCACHE GOFLAGS GOMODCACHE \
     GOPATH GOROOT GOTOOLCHAIN GRADLE_HOME GRADLE_USER_HOME JAVA_HOME JDK_HOME M2_HOME MAVEN_HOME \
     MISE_DATA_DIR NVM_BIN NVM_DIR NVM_INC OPAMROOT OPAM_SWITCH_PREFIX PIPX_HOME PIP_CACHE_DIR \
     PNPM_HOME POETRY_HOME PYENV_ROOT PYENV_VERSION PYTHONPATH RBENV_ROOT RUSTFLAGS RUSTUP_HOME \
     RUSTUP_TOOLCHAIN RUST_BACKTRACE SDKMAN_DIR UV_CACHE_DIR VIRTUAL_ENV VOLTA_HOME",
];

/// Whole families of such variables.
const FAMILIES: &[&str] = &["LC_", "XDG_"];

/// How the name of a secret ends.
const SECRETS: &[&str] = &[
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

/// What keeps programs from waiting for a person, or drawing for one.
const QUIET: &[(&str, &str)] =
    &[("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("PAGER", "cat"), ("TERM", "dumb")];

/// The variables a command gets. API keys and other secrets of Haft's own environment are not among them.
///
/// `PWD` is set for each command on its own.
#[derive(Clone, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// What may pass of Haft's own environment.
    pub fn inherited() -> Self {
        Self::scrubbed(std::env::vars_os())
    }

    /// What may pass of `variables`: those on the allow-list, if neither name nor value looks like a secret.
    ///
    /// `PATH` loses its relative entries, so that no file of the workspace stands in for a program.
    pub fn scrubbed(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let listed: HashSet<&str> = NAMES.iter().flat_map(|group| group.split(' ')).collect();
        let passes = |(name, value): &(OsString, OsString)| may_pass(&listed, name) && !has_password(value);
        let mut passed: BTreeMap<_, _> = variables.into_iter().filter(passes).collect();
        let path =
            passed.get(OsStr::new("PATH")).map(|path| absolute_entries(path)).filter(|path| !path.is_empty());
        passed.insert("PATH".into(), path.unwrap_or_else(|| DEFAULT_PATH.into()));
        for (name, value) in QUIET {
            passed.insert(name.into(), value.into());
        }
        Self { variables: passed }
    }

    /// The same environment with one more variable, whatever its name is: somebody asked for it.
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

    /// The value of `name`, if commands get it.
    pub fn get(&self, name: impl AsRef<OsStr>) -> Option<&OsStr> {
        self.variables.get(name.as_ref()).map(OsString::as_os_str)
    }

    /// Every variable, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self::inherited()
    }
}

/// Only names: a value may have been added on purpose and still be nobody's business.
impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.variables.keys()).finish()
    }
}

fn may_pass(listed: &HashSet<&str>, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let listed = listed.contains(name) || FAMILIES.iter().any(|family| name.starts_with(family));
    let upper = name.to_ascii_uppercase();
    listed && !SECRETS.iter().any(|ending| upper.ends_with(ending))
}

/// Whether the value is a URL with a password in it, as proxies' addresses sometimes are.
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
    fn only_what_programs_need_passes_and_never_a_secret() {
        let environment = scrub(&[
            ("OPENAI_API_KEY", "x"),
            ("ANTHROPIC_API_KEY", "x"),
            ("AWS_SECRET_ACCESS_KEY", "x"),
            ("GITHUB_TOKEN", "x"),
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
    fn a_variable_that_somebody_adds_passes_whatever_its_name_is() {
        let environment = scrub(&[]).with("DEPLOY_TOKEN", "t").with("TERM", "xterm").without("PAGER");
        assert_eq!(environment.get("DEPLOY_TOKEN"), Some(OsStr::new("t")));
        assert_eq!(environment.get("TERM"), Some(OsStr::new("xterm")));
        assert_eq!(environment.get("PAGER"), None);
        assert!(!format!("{environment:?}").contains("\"t\""), "values are not shown");
    }

    #[test]
    fn nothing_waits_for_a_person() {
        let environment = scrub(&[("TERM", "xterm-256color"), ("PAGER", "less"), ("GIT_PAGER", "delta")]);
        for (name, value) in
            [("TERM", "dumb"), ("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")]
        {
            assert_eq!(environment.get(name), Some(OsStr::new(value)), "{name}");
        }
    }

    #[test]
    fn path_has_only_absolute_entries_and_is_never_missing() {
        let path = |path| scrub(path).get("PATH").map(OsStr::to_owned);
        assert_eq!(path(&[("PATH", ":/a:.:b/c::/d:")]), Some("/a:/d".into()));
        assert_eq!(path(&[("PATH", ".:")]), Some(DEFAULT_PATH.into()));
        assert_eq!(path(&[]), Some(DEFAULT_PATH.into()));
    }

    #[test]
    fn a_proxy_passes_unless_its_address_holds_a_password() {
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
