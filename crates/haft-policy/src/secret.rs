//! Which files hold secrets.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use haft_tool::{Scope, lies_in};

use crate::tables::SECRET_TEMPLATES;
use crate::wildcard::wildcard;

/// The secrets of a scope, in a form that is cheap to match.
#[derive(Debug)]
pub struct Secrets<'s> {
    /// Names that are secret anywhere; `*` matches any characters.
    names: Vec<&'s str>,
    /// Paths that are secret with everything below: a directory and the rest.
    paths: Vec<(&'s Path, &'s str)>,
}

impl<'s> Secrets<'s> {
    /// All secrets of the scope.
    pub fn of(scope: &'s Scope) -> Self {
        Self::only(scope, |_, _| true)
    }

    /// The secrets that lie below `directory`.
    pub fn below(scope: &'s Scope, directory: &Path) -> Self {
        Self::only(scope, |base, rest| lies_in(&base.join(rest), directory))
    }

    fn only(scope: &'s Scope, keep: impl Fn(&Path, &str) -> bool) -> Self {
        let (mut names, mut paths) = (Vec::new(), Vec::new());
        for secret in &scope.secrets {
            if let Some(rest) = secret.strip_prefix("~/") {
                let in_homes = scope.homes.iter().map(|home| (home.as_path(), rest));
                paths.extend(in_homes.filter(|(base, rest)| keep(base, rest)));
            } else if let Some(rest) = secret.strip_prefix('/') {
                paths.extend(Some((Path::new("/"), rest)).filter(|(base, rest)| keep(base, rest)));
            } else {
                names.push(secret.as_str());
            }
        }
        Self { names, paths }
    }

    /// The paths among them, absolute.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        self.paths.iter().map(|(base, rest)| base.join(rest))
    }

    /// Whether the file or directory at `path` is one of them, or lies in one.
    pub fn contain(&self, path: &Path) -> bool {
        let has_secret_name = || path.file_name().is_some_and(|name| self.is_secret_name(name));
        self.contain_directory(path) || has_secret_name()
    }

    /// Whether the directory at `path` is one of them, or lies in one. Names are names of files only.
    pub fn contain_directory(&self, path: &Path) -> bool {
        let path = path.as_os_str().as_bytes();
        self.paths.iter().any(|(base, rest)| {
            let base = base.as_os_str().as_bytes();
            let below = path.strip_prefix(base.strip_suffix(b"/").unwrap_or(base));
            let Some(below) = below.and_then(|below| below.strip_prefix(b"/")) else { return false };
            below.strip_prefix(rest.as_bytes()).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
    }

    fn is_secret_name(&self, name: &OsStr) -> bool {
        is_secret_name(&self.names, name)
    }
}

/// Whether a file of this name is secret anywhere, by a list of names; `*` matches any characters.
pub fn is_secret_name<T: AsRef<str>>(names: &[T], name: &OsStr) -> bool {
    // Some file systems ignore case. A name that is not UTF-8 differs from all listed ones.
    let Some(name) = name.to_str() else { return false };
    let has_capitals = name.bytes().any(|byte| byte.is_ascii_uppercase());
    let name = if has_capitals { Cow::Owned(name.to_ascii_lowercase()) } else { Cow::Borrowed(name) };
    if SECRET_TEMPLATES.contains(&&*name) {
        return names.iter().any(|listed| listed.as_ref() == name);
    }
    names.iter().any(|glob| wildcard(glob.as_ref(), &name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_secrets;

    #[test]
    fn keys_tokens_and_credentials_are_secret() {
        let homes = vec!["/home/u".into(), "/data/u".into()];
        let scope = Scope { secrets: default_secrets(), homes, ..Scope::of("/w") };
        let secrets = Secrets::of(&scope);
        for path in [
            "/w/.env",
            "/w/sub/.ENV.local",
            "/w/keys/id_rsa",
            "/w/id_ed25519",
            "/w/cert.p12",
            "/w/tls/privkey.pem",
            "/w/terraform.tfstate",
            "/w/terraform.tfstate.backup",
            "/home/u/.ssh/config",
            "/data/u/.ssh/id_rsa",
            "/home/u/.pgpass",
            "/home/u/.vault-token",
            "/home/u/.claude.json",
            "/home/u/.config/sops/age/keys.txt",
            "/home/u/.m2/settings.xml",
            "/home/u/.gradle/gradle.properties",
            "/home/u/.config/rclone/rclone.conf",
            "/home/u/.bash_history",
            "/home/u/.bitcoin/wallet.dat",
            "/home/u/.local/share/opencode/auth.json",
            "/etc/shadow",
            "/etc/ssh/ssh_host_rsa_key",
        ] {
            assert!(secrets.contain(Path::new(path)), "{path}");
        }
        for path in [
            "/w/.env.example",
            "/w/env",
            "/w/.envrc",
            "/w/id_rsa.pub",
            "/w/cacert.pem",
            "/w/.npmrc",
            "/home/u/.sshx",
            "/home/u/.m2/repository/x.jar",
            "/etc/passwd",
            "/etc/ssh/ssh_host_rsa_key.pub",
            "/home/other/.ssh-notes",
        ] {
            assert!(!secrets.contain(Path::new(path)), "{path}");
        }
        assert!(!secrets.contain_directory(Path::new("/w/.env")), "a virtual environment may be called that");
        assert!(Secrets::below(&scope, Path::new("/w")).paths.is_empty());
    }
}
