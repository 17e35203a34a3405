//! Paths of git directories that a configuration names.

/// Names below a `.git` that hold data, where no name is guarded.
const DATA_NAMES: &[&[u8]] = &[b"objects", b"refs", b"logs"];

/// Whether a path is that of a worktree's or a submodule's directory below a `.git`.
pub(super) fn is_git_dir(path: &[u8]) -> bool {
    let parts = parts(path);
    let below =
        parts.windows(2).position(|pair| pair[0] == b".git" && matches!(pair[1], b"worktrees" | b"modules"));
    below.is_some_and(|at| parts.len() > at + 2 && parts[at + 2..].iter().all(|part| is_plain(part)))
        && !has_control_characters(path)
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
