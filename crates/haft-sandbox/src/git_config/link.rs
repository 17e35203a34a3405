//! The files that lead git to the rest of its directory: `.git` files, `commondir` and `gitdir`.

use super::clip;

/// Names below a `.git` that hold data, where no name is guarded.
const DATA_NAMES: &[&[u8]] = &[b"objects", b"refs", b"logs"];

/// Why a `.git` file, `commondir` or `gitdir` with these bytes leads git to a directory whose files are not guarded, if it
/// does. If `name` is the whole path, it is also checked whether `../..` leads to a `.git`.
pub(crate) fn unguarded_target(name: &str, bytes: &[u8]) -> Option<String> {
    let line = line(bytes);
    let path: Vec<&[u8]> = parts(name.as_bytes());
    let is_unguarded = match path.last().copied() {
        // Git is about to fill an empty one, or will refuse it.
        _ if bytes.is_empty() => false,
        Some(b".git") => !line.strip_prefix(b"gitdir: ").is_some_and(is_git_dir),
        Some(b"commondir") if line == b"../.." => !is_in_worktree(&path),
        Some(b"commondir" | b"gitdir") => !ends_in_git(line),
        _ => true,
    };
    is_unguarded.then(|| format!("it leads to '{}', where git's configuration is not protected", clip(line)))
}

/// Whether a path is that of a worktree's or a submodule's directory below a `.git`.
pub(super) fn is_git_dir(path: &[u8]) -> bool {
    let parts = parts(path);
    let below =
        parts.windows(2).position(|pair| pair[0] == b".git" && matches!(pair[1], b"worktrees" | b"modules"));
    below.is_some_and(|at| parts.len() > at + 2 && parts[at + 2..].iter().all(|part| is_plain(part)))
        && !has_control_characters(path)
}

/// Whether a path ends in `.git`, and not below the data of another one.
fn ends_in_git(path: &[u8]) -> bool {
    let parts = parts(path);
    let first = parts.iter().position(|part| *part == b".git");
    first.is_some_and(|at| parts[at..].iter().all(|part| is_plain(part)))
        && parts.last().is_some_and(|last| *last == b".git")
        && parts.len() > 1
        && !has_control_characters(path)
}

/// Whether a `commondir` is in the place where git creates one: below `worktrees` in a `.git` or in a submodule's
/// directory. Unknown for a name without a directory.
fn is_in_worktree(path: &[&[u8]]) -> bool {
    match path {
        [_] => true,
        [above @ .., b"worktrees", _, _] => {
            let git = above.iter().position(|part| *part == b".git");
            git.is_some_and(|at| above[at..].iter().all(|part| is_plain(part)))
        }
        _ => false,
    }
}

/// A name that leads neither up nor into data.
fn is_plain(part: &[u8]) -> bool {
    part != b".." && !DATA_NAMES.contains(&part)
}

fn parts(path: &[u8]) -> Vec<&[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".").collect()
}

/// Some parsers end a path at them, others do not.
fn has_control_characters(path: &[u8]) -> bool {
    path.iter().any(u8::is_ascii_control)
}

/// The content without trailing line ends.
fn line(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'));
    &bytes[..end.map_or(0, |at| at + 1)]
}
