//! The small files that tell git where the rest of its directory is.

use super::clip;

/// Names below a `.git` that hold data, where no name is guarded.
const DATA: &[&[u8]] = &[b"objects", b"refs", b"logs"];

/// Why a `.git` file, `commondir` or `gitdir` with these bytes leads git to where names are not guarded, if it does.
/// `name` may be the whole path: then it is also asked whether `../..` means a `.git` from there.
pub(crate) fn leads_astray(name: &str, bytes: &[u8]) -> Option<String> {
    let line = line(bytes);
    let place: Vec<&[u8]> = parts(name.as_bytes());
    let astray = match place.last().copied() {
        // An empty one leads nowhere: git is about to fill it, or will refuse it.
        _ if bytes.is_empty() => false,
        Some(b".git") => !line.strip_prefix(b"gitdir: ").is_some_and(is_git_dir),
        Some(b"commondir") if line == b"../.." => !is_worktree(&place),
        Some(b"commondir" | b"gitdir") => !ends_in_git(line),
        _ => true,
    };
    astray.then(|| format!("it leads to '{}', where git's configuration is not guarded", clip(line)))
}

/// Whether a path is that of a worktree's or a submodule's directory below a `.git`.
pub(super) fn is_git_dir(path: &[u8]) -> bool {
    let parts = parts(path);
    let below =
        parts.windows(2).position(|pair| pair[0] == b".git" && matches!(pair[1], b"worktrees" | b"modules"));
    below.is_some_and(|at| parts.len() > at + 2 && parts[at + 2..].iter().all(|part| is_plain(part)))
        && !holds_control(path)
}

/// Whether a path ends in `.git`, and not among the data of another one.
fn ends_in_git(path: &[u8]) -> bool {
    let parts = parts(path);
    let first = parts.iter().position(|part| *part == b".git");
    first.is_some_and(|at| parts[at..].iter().all(|part| is_plain(part)))
        && parts.last().is_some_and(|last| *last == b".git")
        && parts.len() > 1
        && !holds_control(path)
}

/// Whether a `commondir` is where git keeps one: two below a `.git` or a submodule's directory in it. Of a bare name
/// that cannot be said.
fn is_worktree(place: &[&[u8]]) -> bool {
    match place {
        [_] => true,
        [above @ .., b"worktrees", _, _] => {
            let git = above.iter().position(|part| *part == b".git");
            git.is_some_and(|at| above[at..].iter().all(|part| is_plain(part)))
        }
        _ => false,
    }
}

/// A name that goes down, and not into data.
fn is_plain(part: &[u8]) -> bool {
    part != b".." && !DATA.contains(&part)
}

fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect()
}

/// Some readers end a path there, others do not.
fn holds_control(path: &[u8]) -> bool {
    path.iter().any(u8::is_ascii_control)
}

/// The content without the ends of its line.
fn line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    &bytes[..end.map_or(0, |at| at + 1)]
}
