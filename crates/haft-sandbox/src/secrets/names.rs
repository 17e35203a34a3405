//! File names that are secret in every directory.

use std::ffi::OsStr;

use haft_policy::is_secret_name;

/// Secret file names; `*` matches any characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SecretNames(Vec<String>);

impl SecretNames {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self(names)
    }

    #[cfg(target_os = "macos")]
    pub(crate) fn globs(&self) -> &[String] {
        &self.0
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entry that makes a name secret.
    #[cfg(target_os = "linux")]
    pub(crate) fn matching(&self, name: &OsStr) -> Option<&str> {
        self.0.iter().map(String::as_str).find(|entry| is_secret_name(&[*entry], name))
    }

    /// Whether a file of this name is secret.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux uses it"))]
    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        is_secret_name(&self.0, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_public_unless_listed() {
        let names = SecretNames::new(vec![".env".into(), ".env.*".into()]);
        for secret in [".env", ".env.local", ".ENV.production", ".env.example.bak"] {
            assert!(names.matches(OsStr::new(secret)), "{secret}");
        }
        for public in [".env.example", ".env.sample", ".env.template", "env", ".envrc", "a.env"] {
            assert!(!names.matches(OsStr::new(public)), "{public}");
        }
        assert!(SecretNames::new(vec![".env.sample".into()]).matches(OsStr::new(".env.sample")));
    }
}
