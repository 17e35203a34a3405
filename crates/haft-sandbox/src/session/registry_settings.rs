//! The user's settings of package registries, for commands: without credentials, so that a private registry is not
//! bypassed and its tokens stay with the user.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use haft_files::temp_name;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::redact::without_credentials;

/// Files in the home.
const FILES: &[&str] = &[
    ".bunfig.toml",
    ".cargo/config",
    ".cargo/config.toml",
    ".config/go/env",
    ".config/pip/pip.conf",
    ".config/pnpm/rc",
    ".config/uv/uv.toml",
    ".npmrc",
    ".pip/pip.conf",
    ".yarnrc",
    ".yarnrc.yml",
];
/// Larger files are not copied.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Copies the settings of the real home to a home of commands. What cannot be copied is left out.
pub(crate) fn copy_registry_settings(real_home: &Path, home: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(home) = rustix::fs::open(home, flags, Mode::empty()) else { return };
    for name in FILES {
        copy_settings(&real_home.join(name), &home, Path::new(name));
    }
}

/// Copies one file to a path below a directory.
pub(super) fn copy_settings(source: &Path, directory: &OwnedFd, path: &Path) {
    if let Some(text) = read_text(source) {
        let _ = write_file(directory, path, without_credentials(&text).as_bytes());
    }
}

fn read_text(path: &Path) -> Option<String> {
    let file = fs::File::open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Writes a file below a directory that commands may write: links that they made are replaced, not followed.
fn write_file(home: &OwnedFd, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut directory = rustix::io::fcntl_dupfd_cloexec(home, 0)?;
    for name in path.parent().into_iter().flatten() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || rustix::fs::openat(&directory, name, flags, Mode::empty());
        let create = || rustix::fs::mkdirat(&directory, name, Mode::RWXU).and_then(|()| open());
        directory = match open() {
            Err(Errno::NOENT) => create()?,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
                create()?
            }
            opened => opened?,
        };
    }
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    if let Ok(known) = rustix::fs::openat(&directory, name, flags, Mode::empty()) {
        let mut text = Vec::new();
        fs::File::from(known).take(MAX_FILE_BYTES + 1).read_to_end(&mut text)?;
        if text == content {
            return Ok(());
        }
    }
    let temp = temp_name()?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&directory, &temp, flags, Mode::RUSR | Mode::WUSR)?;
    let written = fs::File::from(file).write_all(content);
    let renamed = written.and_then(|()| Ok(rustix::fs::renameat(&directory, &temp, &directory, name)?));
    renamed.inspect_err(|_| {
        let _ = rustix::fs::unlinkat(&directory, &temp, AtFlags::empty());
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_in_the_home_of_commands_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["real/.config/pip", "home", "outside"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("real/.npmrc"), "registry=https://me:pw@npm.example/\n").unwrap();
        fs::write(at("real/.config/pip/pip.conf"), "[global]\nindex-url = https://pip.example/\n").unwrap();
        fs::write(at("outside/file"), "kept").unwrap();
        symlink(at("outside"), at("home/.config")).unwrap();
        symlink(at("outside/file"), at("home/.npmrc")).unwrap();
        copy_registry_settings(&at("real"), &at("home"));
        let read = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!(read("home/.npmrc"), "registry=https://npm.example/\n");
        assert_eq!(read("home/.config/pip/pip.conf"), "[global]\nindex-url = https://pip.example/\n");
        assert_eq!(read("outside/file"), "kept");
        assert_eq!(fs::read_dir(at("outside")).unwrap().count(), 1);
    }
}
