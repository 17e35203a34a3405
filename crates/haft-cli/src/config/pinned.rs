//! Whether a server that runs from a package registry names a version.

use haft_tool::Value;

/// The program and the package of an entry that names no version; `None` if it names one or runs no package.
pub(super) fn unpinned(written: &Value) -> Option<(&str, &str)> {
    let command = written["command"].as_str()?;
    let program = command.rsplit(['/', '\\']).next().unwrap_or(command);
    let args: Vec<&str> = written["args"].as_array()?.iter().filter_map(Value::as_str).collect();
    let (package, is_pinned) = match program {
        "npx" | "bunx" | "pnpx" => {
            let package = package(&args, &["-p", "--package"], &[])?;
            (package, npm_version(package))
        }
        "uvx" => {
            let package =
                package(&args, &["--from"], &["-p", "--python", "-w", "--with", "--index-url", "--index"])?;
            (package, python_version(package))
        }
        _ => return None,
    };
    (!is_pinned && !is_path(package)).then_some((program, package))
}

/// The argument that names the package: after one of `naming`, else the first that is not a flag.
fn package<'a>(args: &[&'a str], naming: &[&str], valued: &[&str]) -> Option<&'a str> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.split_once('=') {
            Some((flag, value)) if naming.contains(&flag) => return Some(value),
            _ if naming.contains(arg) => return args.next().copied(),
            _ if valued.contains(arg) => drop(args.next()),
            _ if arg.starts_with('-') => {}
            _ => return Some(arg),
        }
    }
    None
}

/// `name@1.2.3`, also with a scope before it.
fn npm_version(package: &str) -> bool {
    let name = package.strip_prefix('@').unwrap_or(package);
    name.split_once('@').is_some_and(|(_, version)| is_version(version))
}

/// `name==1.2.3` or `name@1.2.3`.
fn python_version(package: &str) -> bool {
    let version = package.split_once("==").or_else(|| package.split_once('@'));
    version.is_some_and(|(_, version)| is_version(version))
}

fn is_version(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || ".+-!".contains(c))
}

fn is_path(package: &str) -> bool {
    package.starts_with(['.', '/', '~']) || package.contains("://")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_without_a_version_is_found() {
        let package = |command: &str, args: &[&str]| {
            let written = json!({"command": command, "args": args});
            unpinned(&written).map(|(_, package)| package.to_owned())
        };
        for (command, args) in [
            ("npx", &["-y", "@x/server@1.2.3"][..]),
            ("npx", &["--package=server@1.0.0-rc.1", "run"]),
            ("npx", &["./local"]),
            ("uvx", &["server==1.2"]),
            ("uvx", &["--from", "server@1.2", "run"]),
            ("uvx", &["--from", "git+https://x.org/y", "run"]),
            ("node", &["server.js"]),
            ("npx", &["-y"]),
        ] {
            assert_eq!(package(command, args), None, "{command} {args:?}");
        }
        for (command, args, name) in [
            ("npx", &["-y", "@x/server"][..], "@x/server"),
            ("/usr/bin/npx", &["server@latest", "a@1.0"], "server@latest"),
            ("npx", &["-p", "server@^1.2", "run"], "server@^1.2"),
            ("uvx", &["--python", "3.12", "server"], "server"),
            ("uvx", &["--with", "x==1", "server>=1"], "server>=1"),
        ] {
            assert_eq!(package(command, args).as_deref(), Some(name), "{command} {args:?}");
        }
    }
}
