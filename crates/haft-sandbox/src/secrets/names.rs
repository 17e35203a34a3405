//! File names that are secret in every directory.

use std::ffi::OsStr;
use std::sync::Arc;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};

/// Templates of secret files, which are not secret: they list which secrets a program needs.
pub(crate) const PUBLIC_NAMES: &[&str] = &[".env.example", ".env.sample", ".env.template"];

/// Globs of secret file names: `*`, `?` and `[a-z]`.
#[derive(Debug, Clone, Default)]
pub(crate) struct SecretNames {
    globs: Vec<String>,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux uses it"))]
    matcher: Arc<GlobSet>,
}

impl PartialEq for SecretNames {
    fn eq(&self, other: &Self) -> bool {
        self.globs == other.globs
    }
}

impl SecretNames {
    pub(crate) fn new(globs: Vec<String>) -> Self {
        let mut builder = GlobSetBuilder::new();
        for glob in globs.iter().filter_map(|glob| compile(glob)) {
            builder.add(glob);
        }
        // Each glob was compiled before, so the set is valid.
        let matcher = builder.build().unwrap_or_default();
        Self { globs, matcher: Arc::new(matcher) }
    }

    #[cfg(target_os = "macos")]
    pub(crate) fn globs(&self) -> &[String] {
        &self.globs
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    /// Whether a file of this name is secret.
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux uses it"))]
    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        let is_listed = || self.globs.iter().any(|glob| name == glob.as_str());
        let is_public = PUBLIC_NAMES.iter().any(|public| name == *public);
        if is_public { is_listed() } else { self.matcher.is_match(name) }
    }
}

/// A glob for a file name. A glob with invalid syntax matches itself.
pub(super) fn compile(glob: &str) -> Option<Glob> {
    let build = |glob: &str| GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    build(glob).or_else(|_| build(&globset::escape(glob))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_work_as_in_a_shell() {
        let matches =
            |glob: &str, name: &str| SecretNames::new(vec![glob.to_owned()]).matches(OsStr::new(name));
        let yes = [
            ("*", "anything"),
            (".env*", ".env"),
            ("*.pem", "a.b.pem"),
            ("a*b*c", "aXbXbYc"),
            ("id_?sa", "id_rsa"),
            ("[a-c]x", "bx"),
            ("[!a]x", "bx"),
            ("[", "["),
            ("\\*", "*"),
        ];
        for (glob, name) in yes {
            assert!(matches(glob, name), "{glob} {name}");
        }
        let no =
            [("a", ""), (".env", ".env2"), ("*.pem", "pem"), ("[a-c]x", "dx"), ("[!a]x", "ax"), ("\\*", "a")];
        for (glob, name) in no {
            assert!(!matches(glob, name), "{glob} {name}");
        }
    }

    #[test]
    fn templates_are_public_unless_listed() {
        let names = SecretNames::new(vec![".env".into(), ".env.*".into()]);
        for secret in [".env", ".env.local", ".env.production", ".env.example.bak"] {
            assert!(names.matches(OsStr::new(secret)), "{secret}");
        }
        for public in [".env.example", ".env.sample", ".env.template", "env", ".envrc", "a.env"] {
            assert!(!names.matches(OsStr::new(public)), "{public}");
        }
        assert!(SecretNames::new(vec![".env.sample".into()]).matches(OsStr::new(".env.sample")));
    }
}
