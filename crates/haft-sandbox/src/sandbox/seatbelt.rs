//! The scope as a Seatbelt profile, which is how macOS holds a command.
//!
//! Of several rules that fit, the last one counts: so what is allowed comes first, what is kept back from it after,
//! and what nothing may touch at the end. Contents of files are nothing that Seatbelt could judge, so git's
//! configuration is kept back whole here, and a new repository needs a grant; and it cannot tell whose port on this
//! machine it is, so a command without network may serve and not connect.

use std::fmt::Write;
use std::path::Path;

use haft_policy::{GUARDED_DIRECTORIES, GUARDED_FILES};
use haft_tool::{Network, Reads, Scope, ToolError};

use super::names::SHOWN;
use super::resolver::Resolver;
use super::secrets::places;

/// What every program on macOS needs to start and to end.
const BASE: &str = r#"(version 1)
(deny default)

; Processes: whatever is started is held by the same profile.
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
/// What programs read of the system where the scope says that they read their folders only.
const SYSTEM: &[&str] = &[
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
/// Devices that are written by everybody.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper", "/dev/random", "/dev/urandom"];

/// What else [`haft_tool::guarded`] guards, in Seatbelt's words: hooks and configuration in any repository, submodules
/// and worktrees included.
const GUARDED_PATTERNS: &[&str] = &[r"/[.]claude/settings[^/]*[.]json$", r"/[.]config/fish(/|$)"];
/// A repository's `.git` itself is kept back too: moved away, it could come back with other hooks.
const GUARDED_IN_GIT: &[&str] = &[
    r"/[.][Gg][Ii][Tt]$",
    r"/[.][Gg][Ii][Tt]/(.*/)?[Hh][Oo][Oo][Kk][Ss](/|$)",
    r"/[.][Gg][Ii][Tt]/(.*/)?[Cc][Oo][Nn][Ff][Ii][Gg]([.][Ww][Oo][Rr][Kk][Tt][Rr][Ee][Ee])?$",
    r"/[.][Gg][Ii][Tt]/(.*/)?([Cc][Oo][Mm][Mm][Oo][Nn][Dd][Ii][Rr]|[Gg][Ii][Tt][Dd][Ii][Rr])$",
];
/// Branches may have any name.
const BRANCHES: &str = r"/[.]git/(refs|logs|objects)/";
/// A repository in a repository's own folders is one all the same.
const NESTED: &str = r"/[.]git/(.*/)?[.][Gg][Ii][Tt](/|$)";

/// A profile that holds a command to `scope`. `scratch` is its private directory, `proxy` the port on this machine
/// where the listed domains are reached. A path that no profile can name is an error.
pub fn profile(
    scope: &Scope,
    home: Option<&Path>,
    scratch: &Path,
    proxy: Option<u16>,
) -> Result<String, ToolError> {
    let mut text = BASE.to_owned();
    reads(&mut text, scope, home, scratch)?;
    writes(&mut text, scope, scratch)?;
    if !scope.protected.is_empty() {
        text += "\n; Haft's own: nothing is read or written, whatever else is said.\n";
        rule(&mut text, "deny file-read* file-write*", &subpaths(&scope.protected)?);
    }
    network(&mut text, &scope.network, proxy);
    Ok(text)
}

fn reads(text: &mut String, scope: &Scope, home: Option<&Path>, scratch: &Path) -> Result<(), ToolError> {
    *text += "\n; Reading.\n";
    match scope.reads {
        Reads::Everywhere => *text += "(allow file-read*)\n",
        Reads::Roots => {
            let mut places = subpaths(SYSTEM)?;
            places.extend(subpaths(&scope.roots)?);
            places.extend(subpaths(&scope.grants)?);
            places.push(subpath(scratch)?);
            *text += "(allow file-read-metadata)\n";
            rule(text, "allow file-read*", &places);
        }
    }
    let (paths, names) = places(&scope.secrets, home, &mut Resolver::default());
    // To see that a secret is there harms nobody, and programs look.
    let deny = "deny file-read-data file-read-xattr";
    rule(text, deny, &subpaths(&paths)?);
    if !names.is_empty() {
        let shown: Vec<&&str> =
            SHOWN.iter().filter(|shown| !names.iter().any(|name| name == *shown)).collect();
        let any = format!("(require-any {})", endings(&names)?);
        let but = if shown.is_empty() {
            String::new()
        } else {
            format!(" (require-not (require-any {}))", endings(&shown)?)
        };
        rule(text, deny, &[format!("(require-all {any}{but})")]);
    }
    Ok(())
}

/// Filters for what has a name that fits one of `globs`.
fn endings<G: AsRef<str>>(globs: &[G]) -> Result<String, ToolError> {
    let one = |glob: &G| Ok(regex(&format!("/{}$", pattern(glob.as_ref())?)));
    Ok(globs.iter().map(one).collect::<Result<Vec<_>, ToolError>>()?.join(" "))
}

fn writes(text: &mut String, scope: &Scope, scratch: &Path) -> Result<(), ToolError> {
    *text += "\n; Writing.\n";
    let mut places = Vec::new();
    if scope.writes {
        places.extend(subpaths(&scope.roots)?);
        places.extend(subpaths(&scope.grants)?);
    }
    places.push(subpath(scratch)?);
    for device in DEVICES {
        places.push(format!("(literal {})", quoted(Path::new(device))?));
    }
    rule(text, "allow file-write*", &places);
    rule(
        text,
        "allow file-ioctl",
        &[r#"(literal "/dev/tty")"#.to_owned(), r#"(regex #"^/dev/ttys[0-9]+$")"#.to_owned()],
    );
    if scope.writes {
        *text += "\n; Names that make programs run later.\n";
        let directories = GUARDED_DIRECTORIES.iter().map(|name| format!("/{}(/|$)", any_case(name)));
        let files = GUARDED_FILES.iter().map(|name| format!("/{}$", any_case(name)));
        let patterns = GUARDED_PATTERNS.iter().map(|&pattern| pattern.to_owned());
        let guarded: Vec<String> =
            directories.chain(files).chain(patterns).map(|pattern| regex(&pattern)).collect();
        rule(text, "deny file-write*", &guarded);
        let in_git: Vec<String> = GUARDED_IN_GIT.iter().map(|pattern| regex(pattern)).collect();
        let branches = format!("(require-all {} (require-not {}))", regex(BRANCHES), regex(NESTED));
        let in_git = format!("(require-all (require-any {}) (require-not {branches}))", in_git.join(" "));
        rule(text, "deny file-write*", &[in_git]);
        let granted = scope.unguarded.iter().filter(|path| scope.root_of(path).is_some());
        rule(text, "allow file-write*", &granted.map(|path| subpath(path)).collect::<Result<Vec<_>, _>>()?);
    }
    rule(text, "deny file-write*", &subpaths(&scope.blocked)?);
    Ok(())
}

fn network(text: &mut String, network: &Network, proxy: Option<u16>) {
    *text += "\n; The network.\n";
    match network {
        Network::All => *text += "(allow network*)\n(allow system-socket)\n",
        // What a command serves itself on this machine is its own.
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

/// One rule over all `filters`; none if there are none, since a rule without filters is for everything.
fn rule(text: &mut String, head: &str, filters: &[String]) {
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

/// `path` as a string of the profile's language.
fn quoted(path: &Path) -> Result<String, ToolError> {
    let text = path.to_str().filter(|text| path.is_absolute() && !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| {
        ToolError::invalid_path(format!(
            "{}: a sandbox cannot be made for a path that is relative, not UTF-8 or has control characters in it; \
             rename it or leave it out of the scope",
            path.to_string_lossy().escape_debug()
        ))
    })?;
    Ok(format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

fn regex(pattern: &str) -> String {
    format!("(regex #\"{pattern}\")")
}

/// A glob for a name as a regular expression; macOS does not tell capitals from small letters.
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
            // It would end the expression.
            '"' => return Err(unusable(glob)),
            char if char.is_control() => return Err(unusable(glob)),
            char => pattern += &any_case(char.encode_utf8(&mut [0; 4])),
        }
    }
    Ok(pattern)
}

fn unusable(glob: &str) -> ToolError {
    ToolError::invalid_arguments(format!(
        "the secret {glob:?} has characters that a sandbox profile cannot express; write it with * or ? instead"
    ))
}

/// `text` as a regular expression for itself, in capitals or not.
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

    fn scope() -> Scope {
        Scope { writes: true, secrets: haft_policy::default_secrets(), ..Scope::of("/Users/u/project") }
    }

    fn of(scope: &Scope) -> String {
        profile(scope, Some(Path::new("/Users/u")), Path::new("/private/tmp/haft-1"), Some(4711)).unwrap()
    }

    #[test]
    fn the_workspace_is_written_and_secrets_are_not_read() {
        let mut scope = scope();
        scope.protected = vec!["/Users/u/.local/share/haft".into()];
        scope.blocked = vec!["/Users/u/project/vendor".into()];
        scope.unguarded = vec!["/Users/u/project/.vscode".into(), "/elsewhere/.idea".into()];
        insta::assert_snapshot!(of(&scope));
    }

    #[test]
    fn a_scope_without_writes_has_its_scratch_only() {
        let mut scope = Scope::of("/Users/u/project");
        scope.reads = Reads::Roots;
        scope.secrets = Vec::new();
        scope.network = Network::All;
        insta::assert_snapshot!(of(&scope));
    }

    #[test]
    fn listed_domains_are_reached_through_the_proxy_and_nothing_else() {
        let mut scope = scope();
        scope.network = Network::Domains(vec!["example.com".into()]);
        let text = of(&scope);
        assert!(text.contains("(allow network-outbound (remote ip \"localhost:4711\"))"), "{text}");
        assert!(!text.contains("(allow network*)"));
        let none = profile(&scope, None, Path::new("/s"), None).unwrap();
        assert!(!none.contains("network-outbound"), "{none}");
    }

    #[test]
    fn no_path_breaks_out_of_its_quotes() {
        let mut scope = scope();
        scope.roots.push("/Users/u/a \"b\\) (allow default)".into());
        assert!(of(&scope).contains(r#"(subpath "/Users/u/a \"b\\) (allow default)")"#));
        for bad in ["/a\nb", "/a\u{7f}", "relative"] {
            scope.blocked = vec![bad.into()];
            assert!(profile(&scope, None, Path::new("/s"), None).is_err(), "{bad:?}");
        }
        scope.blocked.clear();
        for bad in ["a\"b", "a\nb", "[\"]"] {
            scope.secrets = vec![bad.into()];
            assert!(profile(&scope, None, Path::new("/s"), None).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn globs_become_expressions() {
        assert_eq!(pattern(".env.*").unwrap(), "[.][Ee][Nn][Vv][.][^/]*");
        assert_eq!(pattern("k?[!a-c]").unwrap(), "[Kk][^/][^a-cA-C]");
        assert_eq!(pattern(r"a\*").unwrap(), "[Aa][*]");
    }
}
