//! Finds out what sandboxes commands on macOS.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::confine::SANDBOX_EXEC;
use crate::status::{Layer, LayerLevel, SandboxStatus};

/// Allows everything but writing files.
const READ_ONLY_PROFILE: &str = "(version 1)(allow default)(deny file-write*)";

/// Tries every layer of the sandbox.
pub fn probe() -> SandboxStatus {
    SandboxStatus {
        layers: vec![seatbelt(), comparison(), process_group()],
        kernel: kernel_version(),
        is_root: rustix::process::getuid().is_root(),
        container: None,
    }
}

/// Tries whether Seatbelt keeps a program from writing a file.
fn seatbelt() -> Layer {
    let file = std::env::temp_dir().join(format!(".haft-probe-{}", std::process::id()));
    let touch = |program: &mut Command| {
        program.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        program.status().map(|status| status.success())
    };
    let restricted = touch(Command::new(SANDBOX_EXEC).args(["-p", READ_ONLY_PROFILE, "/usr/bin/touch"]));
    let was_written = file.exists();
    let _ = fs::remove_file(&file);
    let reason = match restricted {
        Ok(false) if !was_written => None,
        Ok(_) => Some("a file could be written in spite of it".to_owned()),
        Err(error) => Some(format!("{SANDBOX_EXEC}: {error}")),
    };
    Layer {
        name: "Seatbelt",
        provides: "restricts files, the network and signals",
        remedy: reason.as_ref().map(|_| "start Haft outside of other sandboxes".to_owned()),
        level: reason.map_or(LayerLevel::Full, |reason| LayerLevel::None { reason }),
    }
}

fn comparison() -> Layer {
    let can_clone = can_clone_files(&std::env::temp_dir());
    let mut missing = vec![
        "telling changes of a command from those of other programs at the same time".to_owned(),
        "recording changes outside of the workspace".to_owned(),
    ];
    if !can_clone {
        missing.push("keeping the previous content of large files".to_owned());
    }
    Layer {
        name: "comparison",
        provides: "changes of commands are found by comparing the workspace before and after",
        level: LayerLevel::Partial { missing },
        remedy: (!can_clone).then(|| "keep Haft's files on an APFS volume".to_owned()),
    }
}

fn process_group() -> Layer {
    Layer {
        name: "process group",
        provides: "the processes of a command end with it",
        level: LayerLevel::Partial {
            missing: vec!["ending processes that leave the command's process group".to_owned()],
        },
        remedy: None,
    }
}

/// Whether the file system of a directory can clone files.
fn can_clone_files(directory: &Path) -> bool {
    use rustix::fs::{CWD, CloneFlags, fclonefileat};
    let source = directory.join(format!(".haft-clone-{}", std::process::id()));
    let target = source.with_extension("copy");
    let cloned = fs::File::create(&source)
        .is_ok_and(|file| fclonefileat(&file, CWD, &target, CloneFlags::empty()).is_ok());
    for file in [&source, &target] {
        let _ = fs::remove_file(file);
    }
    cloned
}

fn kernel_version() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}
