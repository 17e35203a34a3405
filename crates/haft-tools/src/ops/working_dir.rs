//! The working directory of a session's shell, which lasts from one command to the next.
//!
//! A command is run with an `EXIT` trap that reports the final directory. A command that replaces the trap or the shell
//! (`exec`) reports nothing, and the directory stays as it was. As with all notes, only a command that succeeds changes it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use haft_tool::{
    Capture, FileKind, Finished, ToolError, WORKING_DIRECTORY_NOTE as NOTE, World, json, path_from_text,
    path_to_text,
};

/// Merges the output streams and reports the directory on standard error. `set +x` and `2>/dev/null` keep the trap out of a
/// trace. It is on the first line of the command, so that line numbers in messages of the shell stay right.
const TRAP: &str = r"exec 199>&2 2>&1; trap '{ set +x; builtin pwd -P; } >&199 2>/dev/null' EXIT; ";

/// The directory for the next command; `None` is the one in which commands of the session start.
pub(crate) fn current(world: &dyn World) -> Result<Option<PathBuf>, ToolError> {
    let note = world.note(NOTE)?;
    let path = note.as_ref().and_then(|note| note.as_str()).map(path_from_text);
    let is_usable = |path: &PathBuf| {
        path.starts_with(&world.planning().workspace)
            && world.files().kind(path).is_ok_and(|kind| kind == FileKind::Dir)
    };
    Ok(path.filter(is_usable))
}

/// The command, reporting its directory.
pub(crate) fn reporting(command: &str) -> String {
    format!("{TRAP}{command}")
}

/// Takes the report from standard error. Anything else there, such as a syntax error in the first line, is output.
pub(crate) fn take_report(done: &mut Finished) -> Option<PathBuf> {
    let Capture { mut head, tail, total } = std::mem::take(&mut done.stderr);
    let is_report =
        head.starts_with(b"/") && head.iter().position(|byte| *byte == b'\n') == Some(head.len() - 1);
    if is_report && tail.is_empty() {
        head.pop();
        return Some(PathBuf::from(OsString::from_vec(head)));
    }
    let stdout = &mut done.stdout;
    let end = if stdout.tail.is_empty() { &mut stdout.head } else { &mut stdout.tail };
    end.extend(head);
    end.extend(tail);
    stdout.total += total;
    None
}

/// Keeps the directory for the next command. Outside of the workspace it is reset, which the returned message says.
pub(crate) fn keep(world: &dyn World, old: Option<&Path>, new: &Path) -> Option<String> {
    let workspace = &world.planning().workspace;
    let inside = new.starts_with(workspace);
    let kept = if inside { new } else { workspace };
    if kept != old.unwrap_or(&world.planning().cwd) {
        world.set_note(NOTE, json!(path_to_text(kept)));
    }
    (!inside).then(|| format!("Shell cwd was reset to {}", workspace.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haft_tool::Exit;

    use super::*;

    fn report(stderr: &str) -> (Option<PathBuf>, String) {
        let capture = |text: &str| Capture { head: text.into(), tail: Vec::new(), total: text.len() as u64 };
        let mut done = Finished {
            exit: Exit::Code(0),
            stdout: capture("out\n"),
            stderr: capture(stderr),
            elapsed: Duration::ZERO,
            left_behind: 0,
            denials: Vec::new(),
            exhausted: None,
            runs_on_build: Vec::new(),
            previewed: None,
        };
        (take_report(&mut done), done.stdout.into_text().head)
    }

    #[test]
    fn report_is_one_absolute_path() {
        assert_eq!(report("/w/a b\n"), (Some("/w/a b".into()), "out\n".to_owned()));
        assert_eq!(report(""), (None, "out\n".to_owned()));
    }

    #[test]
    fn other_text_on_standard_error_is_output() {
        for text in ["bash: syntax error\n", "/w", "/w\n/x\n", "\n"] {
            assert_eq!(report(text), (None, format!("out\n{text}")));
        }
    }
}
