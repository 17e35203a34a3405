//! Judges the remotes of git directories. If one is in a directory of the session, `git push` would run hooks there, which
//! commands write without a judgement.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use haft_policy::Guard;
use haft_tool::Node;

use super::git::{CONFIGS, UNREADABLE};
use super::named::{is_link, top_of};
use super::named_by_git::user_configs;
use super::{GuardedContent, Judge, MAX_LINKS, Violation, content_now, names_in, node_now, read_now};
use crate::git_config::GitRemotes;
use crate::session::is_in_scratch;

/// Directories of a git directory whose files name remotes.
pub(super) const REMOTE_DIRECTORIES: [&str; 2] = ["remotes", "branches"];
/// What git appends to the path of a repository.
const SUFFIXES: [&str; 4] = ["", "/.git", ".git", ".git/.git"];
/// Why a remote is refused if it is not known where it leads.
const UNCERTAIN: &str = "may lead to a directory of the session, whose hooks git would run";
/// How a file begins that leads to a git directory.
const POINTER_START: &[u8] = b"gitdir:";

impl Judge<'_> {
    /// Why a remote that the configuration at `path` names is a violation, if one is.
    pub(super) fn remote_in_config(&self, path: &Path, bytes: &[u8]) -> Option<String> {
        self.session_remote(path.parent()?, GitRemotes::of_config(bytes))
    }

    /// Judges the files of a git directory that name remotes, in the format before configurations.
    pub(super) fn remote_files(
        &self,
        directory: &Path,
        former: Option<&Path>,
        violations: &mut Vec<Violation>,
    ) {
        let is_new_link = |path: &Path, former: Option<PathBuf>| {
            is_link(path) && former.is_none_or(|former| self.node_before(&former) != node_now(path))
        };
        for folder in REMOTE_DIRECTORIES {
            let (folder, former) = (directory.join(folder), former.map(|former| former.join(folder)));
            if node_now(&folder) == Node::Absent {
                continue;
            }
            let names = match names_in(&folder) {
                _ if is_new_link(&folder, former.clone()) => Err("a link"),
                Ok(names) => Ok(names),
                Err(_) => Err(UNREADABLE),
            };
            let names = match names {
                Ok(names) => names,
                Err(reason) => {
                    self.add(folder, Guard::GitConfig, reason.to_owned(), violations);
                    continue;
                }
            };
            for name in names {
                let path = folder.join(&name);
                let detail = match content_now(&path) {
                    _ if is_new_link(&path, former.as_ref().map(|former| former.join(&name))) => {
                        Some("a link".to_owned())
                    }
                    GuardedContent::Bytes(bytes) => {
                        self.session_remote(directory, GitRemotes::of_file(&bytes))
                    }
                    GuardedContent::Unreadable => Some(UNREADABLE.to_owned()),
                    GuardedContent::Absent => None,
                };
                if let Some(detail) = detail {
                    self.add(path, Guard::GitConfig, detail, violations);
                }
            }
        }
    }

    /// Why one of these remotes of a git directory is a violation, if one is.
    fn session_remote(&self, directory: &Path, remotes: GitRemotes) -> Option<String> {
        let configs = CONFIGS.iter().map(|name| directory.join(name)).chain(user_configs());
        let configs = configs.filter_map(|config| read_now(&config));
        let rewrites: Vec<_> = configs.flat_map(|bytes| GitRemotes::of_config(&bytes).rewrites).collect();
        let top = top_of(directory);
        remotes.rewritten(&rewrites).into_iter().find_map(|url| {
            let local = local_path(&url)?;
            let reason = match local.first() {
                // Git expands the name of another user, too.
                Some(b'~') => UNCERTAIN,
                _ => self.leads_to_session(&top.join(OsStr::from_bytes(&local)))?,
            };
            Some(format!("'{}' {reason}", String::from_utf8_lossy(&url).escape_debug()))
        })
    }

    /// Why a remote at this path is a violation, if it is one.
    fn leads_to_session(&self, path: &Path) -> Option<&'static str> {
        const IN_SESSION: &str = "is a directory of the session, whose hooks git would run";
        let is_session = |path: &Path| (self.is_session_directory)(path) || is_in_scratch(path);
        if is_session(path) {
            return Some(IN_SESSION);
        }
        SUFFIXES.iter().find_map(|suffix| {
            let mut suffixed = path.as_os_str().to_owned();
            suffixed.push(suffix);
            match resolved_by_kernel(Path::new(&suffixed)) {
                None => Some(UNCERTAIN),
                Some(real) if is_session(&real) => Some(IN_SESSION),
                // Only a file with the name `.git` is judged by what it leads to.
                Some(real) if !real.ends_with(".git") => {
                    let is_pointer = read_now(&real).is_some_and(|bytes| bytes.starts_with(POINTER_START));
                    is_pointer.then_some("leads to another git directory")
                }
                Some(_) => None,
            }
        })
    }
}

/// The path of a URL, if git takes it for a directory on this machine.
fn local_path(url: &[u8]) -> Option<Vec<u8>> {
    if let Some(rest) = url.strip_prefix(b"file://") {
        let rest = percent_decoded(rest);
        let start = rest.iter().position(|&byte| byte == b'/')?;
        return Some(rest[start..].to_vec());
    }
    let colon = url.iter().position(|&byte| byte == b':');
    let slash = url.iter().position(|&byte| byte == b'/').unwrap_or(url.len());
    // `host:path` is a machine, `scheme://` a protocol.
    let is_local = colon.is_none_or(|colon| colon > slash);
    is_local.then(|| match (url.strip_prefix(b"~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => [home.as_bytes(), b"/", rest].concat(),
        _ => url.to_vec(),
    })
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).filter(|_| *first == b'%').and_then(|code| std::str::from_utf8(code).ok());
        if let Some(byte) = code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            decoded.push(byte);
            rest = &tail[2..];
        } else {
            decoded.push(*first);
            rest = tail;
        }
    }
    decoded
}

/// Where the kernel would find an absolute path, also if its end does not exist yet; `None` if that is not certain: below
/// `/proc` links lead into other namespaces, and a directory that is missing before a `..` may become a link.
fn resolved_by_kernel(path: &Path) -> Option<PathBuf> {
    let parts = |path: &Path| path.components().map(|part| part.as_os_str().to_owned()).collect::<Vec<_>>();
    // Git ends a path at a NUL, some parsers also at a line end.
    if path.as_os_str().as_bytes().iter().any(u8::is_ascii_control) {
        return None;
    }
    let mut todo: VecDeque<OsString> = parts(path).into();
    let (mut real, mut is_missing, mut links) = (PathBuf::from("/"), false, 0);
    while let Some(part) = todo.pop_front() {
        match Path::new(&part).components().next()? {
            Component::RootDir => real = PathBuf::from("/"),
            Component::ParentDir if is_missing => return None,
            Component::ParentDir => drop(real.pop()),
            Component::Normal(name) => {
                real.push(name);
                match std::fs::read_link(&real) {
                    Ok(target) => {
                        links += 1;
                        real.pop();
                        if links > MAX_LINKS {
                            return None;
                        }
                        parts(&target).into_iter().rev().for_each(|part| todo.push_front(part));
                    }
                    Err(_) => is_missing |= std::fs::symlink_metadata(&real).is_err(),
                }
            }
            _ => {}
        }
        if real == Path::new("/proc") {
            return None;
        }
    }
    Some(real)
}
