//! The scope as a Seatbelt profile, which restricts a command on macOS.
//!
//! The last matching rule counts, so grants come first, exceptions after them, and protected paths at the end. Seatbelt
//! cannot check the content of files, so git's configuration may not be written at all, and a new repository needs a
//! grant. It cannot tell whose port it is either, so a command without network may listen on this machine, but not
//! connect.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use haft_policy::{NAME_RULES, RunsWhen};
use haft_tool::{Network, Reads, Scope, ToolError};

use haft_policy::SECRET_TEMPLATES;

/// What every program needs on macOS.
const BASE: &str = r#"(version 1)
(deny default)

; Processes. Descendants have the same profile.
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow pseudo-tty)
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* (ipc-posix-name-prefix "apple."))
(allow mach-lookup
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
"#;
/// Directories of the system that programs read, where the scope restricts reading to the roots.
const SYSTEM_DIRECTORIES: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/opt",
    "/System",
    "/Library",
    "/Applications",
    "/dev",
    "/private/etc",
    "/private/var/db",
    "/private/var/select",
    "/nix",
];
/// Devices that every program may write.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/random", "/dev/urandom"];

/// Hooks, configurations and links in any repository, submodules and worktrees included. The `.git` itself must not be
/// moved either, because it could be replaced by one with other hooks.
const GUARDED_IN_GIT: &[&str] = &[
    r"/[.][Gg][Ii][Tt]$",
    r"/[.][Gg][Ii][Tt]/(.*/)?[Hh][Oo][Oo][Kk][Ss](/|$)",
    r"/[.][Gg][Ii][Tt]/(.*/)?[Cc][Oo][Nn][Ff][Ii][Gg]([.][Ww][Oo][Rr][Kk][Tt][Rr][Ee][Ee])?$",
    r"/[.][Gg][Ii][Tt]/(.*/)?([Cc][Oo][Mm][Mm][Oo][Nn][Dd][Ii][Rr]|[Gg][Ii][Tt][Dd][Ii][Rr])$",
];
/// Data in a repository: branches may have any name.
const GIT_DATA: &str = r"/[.]git/(refs|logs|objects)/";
/// Repositories in the data of a repository.
const NESTED_REPOSITORIES: &str = r"/[.]git/(.*/)?[.][Gg][Ii][Tt](/|$)";

/// What a profile is made of.
pub(super) struct SeatbeltProfile<'a> {
    pub(super) scope: &'a Scope,
    /// Paths that are not read.
    pub(super) secret_paths: &'a [PathBuf],
    /// Globs of names that are not read in any directory.
    pub(super) secret_names: &'a [String],
    /// The command's own directories.
    pub(super) private: &'a [PathBuf],
    /// The port of the proxy on this machine.
    pub(super) proxy: Option<u16>,
}

impl SeatbeltProfile<'_> {
    /// The profile in Seatbelt's language; an error if it cannot express a path.
    pub(super) fn build(&self) -> Result<String, ToolError> {
        let mut text = BASE.to_owned();
        self.add_reads(&mut text)?;
        self.add_writes(&mut text)?;
        if !self.scope.protected.is_empty() {
            text += "\n; Paths of Haft: never read or written.\n";
            add_rule(&mut text, "deny file-read* file-write*", &subpaths(&self.scope.protected)?);
        }
        add_network(&mut text, &self.scope.network, self.proxy);
        Ok(text)
    }

    fn add_reads(&self, text: &mut String) -> Result<(), ToolError> {
        *text += "\n; Reading.\n";
        match self.scope.reads {
            Reads::Everywhere => *text += "(allow file-read*)\n",
            Reads::Roots => {
                let mut places = subpaths(SYSTEM_DIRECTORIES)?;
                places.extend(subpaths(&self.scope.roots)?);
                places.extend(subpaths(&self.scope.grants)?);
                places.extend(subpaths(self.private)?);
                *text += "(allow file-read-metadata)\n";
                add_rule(text, "allow file-read*", &places);
            }
        }
        // The metadata of secrets stays readable, because programs check whether they exist.
        let deny = "deny file-read-data file-read-xattr";
        add_rule(text, deny, &subpaths(self.secret_paths)?);
        if !self.secret_names.is_empty() {
            let is_listed = |public: &&&str| self.secret_names.iter().any(|name| name == **public);
            let public: Vec<&&str> = SECRET_TEMPLATES.iter().filter(|public| !is_listed(public)).collect();
            let any = format!("(require-any {})", name_filters(self.secret_names)?);
            let except = if public.is_empty() {
                String::new()
            } else {
                format!(" (require-not (require-any {}))", name_filters(&public)?)
            };
            add_rule(text, deny, &[format!("(require-all {any}{except})")]);
        }
        Ok(())
    }

    fn add_writes(&self, text: &mut String) -> Result<(), ToolError> {
        let scope = self.scope;
        *text += "\n; Writing.\n";
        let mut places = Vec::new();
        if scope.writes {
            places.extend(subpaths(&scope.roots)?);
            places.extend(subpaths(&scope.grants)?);
        }
        places.extend(subpaths(self.private)?);
        for device in DEVICES {
            places.push(format!("(literal {})", quoted(Path::new(device))?));
        }
        add_rule(text, "allow file-write*", &places);
        let terminals = [r#"(literal "/dev/tty")"#.to_owned(), r#"(regex #"^/dev/ttys[0-9]+$")"#.to_owned()];
        add_rule(text, "allow file-ioctl", &terminals);
        if scope.writes {
            *text += "\n; Files that make programs run later.\n";
            let (guarded, exceptions) = (name_patterns(RunsWhen::Opened)?, name_patterns(RunsWhen::Never)?);
            let guarded =
                format!("(require-all (require-any {guarded}) (require-not (require-any {exceptions})))");
            add_rule(text, "deny file-write*", &[guarded]);
            let in_git: Vec<String> = GUARDED_IN_GIT.iter().map(|pattern| regex(pattern)).collect();
            let data =
                format!("(require-all {} (require-not {}))", regex(GIT_DATA), regex(NESTED_REPOSITORIES));
            let in_git = format!("(require-all (require-any {}) (require-not {data}))", in_git.join(" "));
            add_rule(text, "deny file-write*", &[in_git]);
            let granted = scope.unguarded.iter().filter(|path| scope.root_of(path).is_some());
            let granted = granted.map(|path| subpath(path)).collect::<Result<Vec<_>, _>>()?;
            add_rule(text, "allow file-write*", &granted);
        }
        add_rule(text, "deny file-write*", &subpaths(&scope.blocked)?);
        Ok(())
    }
}

/// Filters for the rows of the table of names.
fn name_patterns(when: RunsWhen) -> Result<String, ToolError> {
    let rules = NAME_RULES.iter().filter(|rule| rule.when == when);
    let filters = rules.map(|rule| {
        Ok(match rule.pattern.strip_suffix("/**") {
            Some(directory) => regex(&format!("/{}(/|$)", pattern(directory)?)),
            None => regex(&format!("/{}$", pattern(rule.pattern)?)),
        })
    });
    Ok(filters.collect::<Result<Vec<_>, ToolError>>()?.join(" "))
}

/// Filters for names that match one of `globs`.
fn name_filters<G: AsRef<str>>(globs: &[G]) -> Result<String, ToolError> {
    let one = |glob: &G| Ok(regex(&format!("/{}$", pattern(glob.as_ref())?)));
    Ok(globs.iter().map(one).collect::<Result<Vec<_>, ToolError>>()?.join(" "))
}

fn add_network(text: &mut String, network: &Network, proxy: Option<u16>) {
    *text += "\n; The network.\n";
    match network {
        Network::All => *text += "(allow network*)\n(allow system-socket)\n",
        // A command may serve on this machine.
        Network::None | Network::Domains(_) => {
            *text += "(allow network-bind (local ip \"localhost:*\"))\n(allow network-inbound (local ip \"localhost:*\"))\n";
            if let (Network::Domains(_), Some(port)) = (network, proxy) {
                let _ = writeln!(text, "(allow network-outbound (remote ip \"localhost:{port}\"))");
            }
        }
    }
    if *network == Network::All {
        *text += "(allow mach-lookup\n  (global-name \"com.apple.SystemConfiguration.configd\")\n  \
                  (global-name \"com.apple.dnssd.service\")\n  (global-name \"com.apple.trustd.agent\"))\n";
    }
}

/// Adds one rule with all `filters`. Without filters it would match everything, so none is added.
fn add_rule(text: &mut String, head: &str, filters: &[String]) {
    if !filters.is_empty() {
        let _ = writeln!(text, "({head}\n  {})", filters.join("\n  "));
    }
}

fn subpaths<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<String>, ToolError> {
    paths.iter().map(|path| subpath(path.as_ref())).collect()
}

fn subpath(path: &Path) -> Result<String, ToolError> {
    Ok(format!("(subpath {})", quoted(path)?))
}

/// A path as a string literal of the profile.
fn quoted(path: &Path) -> Result<String, ToolError> {
    let text = path.to_str().filter(|text| path.is_absolute() && !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| {
        ToolError::invalid_path(format!(
            "{} cannot be in a scope: it is relative, not UTF-8 or has control characters. \
             Rename it or remove it from the scope",
            path.to_string_lossy().escape_debug()
        ))
    })?;
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

fn regex(pattern: &str) -> String {
    format!("(regex #\"{pattern}\")")
}

/// A glob for a name as a regular expression. File names on macOS are usually case-insensitive.
fn pattern(glob: &str) -> Result<String, ToolError> {
    let mut pattern = String::new();
    let mut rest = glob.chars();
    while let Some(char) = rest.next() {
        match char {
            '*' => pattern += "[^/]*",
            '?' => pattern += "[^/]",
            '\\' => pattern += &any_case(rest.next().map(String::from).unwrap_or_default().as_str()),
            '[' if rest.as_str().contains(']') => {
                let (inside, after) = rest.as_str().split_once(']').unwrap_or_default();
                let (not, inside) = match inside.strip_prefix(['!', '^']) {
                    Some(inside) => ("^", inside),
                    None => ("", inside),
                };
                if inside.is_empty()
                    || inside.contains(['"', '\\', '[', '^'])
                    || inside.chars().any(char::is_control)
                {
                    return Err(unusable(glob));
                }
                let _ = write!(pattern, "[{not}{}{}]", inside.to_lowercase(), inside.to_uppercase());
                rest = after.chars();
            }
            // It would end the literal.
            '"' => return Err(unusable(glob)),
            char if char.is_control() => return Err(unusable(glob)),
            char => pattern += &any_case(char.encode_utf8(&mut [0; 4])),
        }
    }
    Ok(pattern)
}

fn unusable(glob: &str) -> ToolError {
    ToolError::invalid_arguments(format!(
        "The secret {glob:?} has characters that a sandbox profile cannot express. Use * or ? instead"
    ))
}

/// A regular expression that matches `text` in any case.
fn any_case(text: &str) -> String {
    let one = |char: char| match char {
        'a'..='z' | 'A'..='Z' => format!("[{}{}]", char.to_ascii_uppercase(), char.to_ascii_lowercase()),
        '0'..='9' | '_' | '-' | ' ' | '/' => char.to_string(),
        char if !char.is_ascii() => char.to_string(),
        '^' => "\\^".to_owned(),
        '\\' => "\\\\".to_owned(),
        char => format!("[{char}]"),
    };
    text.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secrets::{PathResolver, locate_secrets};

    fn scope() -> Scope {
        Scope { writes: true, secrets: haft_policy::default_secrets(), ..Scope::of("/Users/u/project") }
    }

    fn build(scope: &Scope, proxy: Option<u16>) -> Result<String, ToolError> {
        let home = Some(Path::new("/Users/u"));
        let (secret_paths, secret_names) = locate_secrets(&scope.secrets, home, &mut PathResolver::default());
        SeatbeltProfile {
            scope,
            secret_paths: &secret_paths,
            secret_names: &secret_names,
            private: &["/private/tmp/haft-1".into()],
            proxy,
        }
        .build()
    }

    fn profile(scope: &Scope) -> String {
        build(scope, Some(4711)).unwrap()
    }

    #[test]
    fn workspace_is_writable_and_secrets_are_unreadable() {
        let mut scope = scope();
        scope.protected = vec!["/Users/u/.local/share/haft".into()];
        scope.blocked = vec!["/Users/u/project/vendor".into()];
        scope.unguarded = vec!["/Users/u/project/.vscode".into(), "/elsewhere/.idea".into()];
        insta::assert_snapshot!(profile(&scope));
    }

    #[test]
    fn scope_without_writes_has_private_directories_only() {
        let mut scope = Scope::of("/Users/u/project");
        scope.reads = Reads::Roots;
        scope.secrets = Vec::new();
        scope.network = Network::All;
        insta::assert_snapshot!(profile(&scope));
    }

    #[test]
    fn listed_domains_are_reached_through_the_proxy_only() {
        let mut scope = scope();
        scope.network = Network::Domains(vec!["example.com".into()]);
        let text = profile(&scope);
        assert!(text.contains("(allow network-outbound (remote ip \"localhost:4711\"))"), "{text}");
        assert!(!text.contains("(allow network*)"));
        let none = build(&scope, None).unwrap();
        assert!(!none.contains("network-outbound"), "{none}");
    }

    #[test]
    fn paths_are_quoted() {
        let mut scope = scope();
        scope.roots.push("/Users/u/a \"b\\) (allow default)".into());
        assert!(profile(&scope).contains(r#"(subpath "/Users/u/a \"b\\) (allow default)")"#));
        for bad in ["/a\nb", "/a\u{7f}", "relative"] {
            scope.blocked = vec![bad.into()];
            assert!(build(&scope, None).is_err(), "{bad:?}");
        }
        scope.blocked.clear();
        for bad in ["a\"b", "a\nb", "[\"]"] {
            scope.secrets = vec![bad.into()];
            assert!(build(&scope, None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn globs_become_regular_expressions() {
        assert_eq!(pattern(".env.*").unwrap(), "[.][Ee][Nn][Vv][.][^/]*");
        assert_eq!(pattern("k?[!a-c]").unwrap(), "[Kk][^/][^a-cA-C]");
        assert_eq!(pattern(r"a\*").unwrap(), "[Aa][*]");
    }
}
