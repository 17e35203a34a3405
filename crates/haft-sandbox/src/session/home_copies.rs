//! Entries of the user's home that commands get a copy of: they may change it, and the change has no effect outside, except
//! that a renewed login is kept.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use haft_tool::Value;
use rustix::fs::{Mode, OFlags};

use super::registry_settings::write_file;

/// Of all entries together; the rest is not copied.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 << 20;
/// Directories deeper than this are not copied.
const MAX_DEPTH: usize = 16;

/// Largest login.
const MAX_LOGIN_BYTES: u64 = 1 << 20;

/// The copies of one session.
pub(super) struct HomeCopies {
    real_home: PathBuf,
    /// The home of commands.
    home: PathBuf,
    /// Each login with its content when it was copied; `None` if there was none.
    logins: Vec<(PathBuf, Option<Vec<u8>>)>,
}

impl HomeCopies {
    /// Copies `entries` and `logins` of the real home to the home of commands. What cannot be copied is left out.
    pub(super) fn make(real_home: &Path, home: &Path, entries: &[PathBuf], logins: &[PathBuf]) -> Self {
        if let Some(home) = open_directory(home) {
            let mut copier = HomeCopier { home, files: 0, bytes: 0 };
            for entry in entries.iter().chain(logins) {
                copier.copy(&real_home.join(entry), entry, 0);
            }
        }
        let logins = logins.iter().map(|login| (login.clone(), read_login(&real_home.join(login)))).collect();
        Self { real_home: real_home.to_owned(), home: home.to_owned(), logins }
    }

    /// Writes logins back that commands have renewed: otherwise the user's own would be invalid, because services accept a
    /// token for renewal only once. Logins are JSON, which nothing executes.
    pub(super) fn keep_logins(&self) {
        let Some(real_home) = open_directory(&self.real_home) else { return };
        for (login, before) in &self.logins {
            let (real, inside) = (self.real_home.join(login), self.home.join(login));
            let is_link = fs::symlink_metadata(&real).is_ok_and(|meta| meta.is_symlink());
            // What the user's own programs have renewed meanwhile is newer.
            if is_link || read_login(&real) != *before {
                continue;
            }
            if let Some(renewed) = read_login(&inside).filter(|renewed| before.as_ref() != Some(renewed)) {
                let _ = write_file(&real_home, login, &renewed);
            }
        }
    }
}

fn open_directory(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// A file with a JSON object.
fn read_login(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MAX_LOGIN_BYTES)?;
    let mut content = Vec::new();
    file.take(meta.len()).read_to_end(&mut content).ok()?;
    let value: Value = std::str::from_utf8(&content).ok()?.parse().ok()?;
    value.is_object().then_some(content)
}

struct HomeCopier {
    home: OwnedFd,
    files: usize,
    bytes: u64,
}

impl HomeCopier {
    fn copy(&mut self, source: &Path, path: &Path, depth: usize) {
        // Links are followed: settings are often links to a repository of the user's.
        let Ok(meta) = fs::metadata(source) else { return };
        if meta.is_dir() && depth < MAX_DEPTH {
            for entry in fs::read_dir(source).into_iter().flatten().flatten() {
                self.copy(&entry.path(), &path.join(entry.file_name()), depth + 1);
            }
        } else if meta.is_file() && self.files < MAX_FILES && self.bytes + meta.len() <= MAX_BYTES {
            self.files += 1;
            self.bytes += meta.len();
            let mut content = Vec::new();
            let file = fs::File::open(source).map(|file| file.take(meta.len()));
            if file.and_then(|mut file| file.read_to_end(&mut content)).is_ok() {
                let _ = write_file(&self.home, path, &content);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_and_directories_are_copied_and_links_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["real/.agent/skills/one", "dotfiles", "home"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("real/.agent/skills/one/SKILL.md"), "skill").unwrap();
        fs::write(at("dotfiles/settings.json"), "{}").unwrap();
        symlink(at("dotfiles/settings.json"), at("real/.agent/settings.json")).unwrap();
        symlink(at("real/.agent"), at("real/.agent/skills/loop")).unwrap();
        HomeCopies::make(
            &at("real"),
            &at("home"),
            &[".agent/settings.json".into(), ".agent/skills".into(), ".agent/missing".into()],
            &[],
        );
        let read = |name: &str| fs::read_to_string(at("home").join(name)).unwrap();
        assert_eq!(read(".agent/settings.json"), "{}");
        assert_eq!(read(".agent/skills/one/SKILL.md"), "skill");
        assert!(fs::symlink_metadata(at("home/.agent/settings.json")).unwrap().is_file());
        assert!(!at("home/.agent/missing").exists());
    }

    #[test]
    fn renewed_login_is_written_back_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["real", "home"] {
            fs::create_dir(at(name)).unwrap();
        }
        let logins = ["renewed", "newer", "broken", "first"].map(PathBuf::from);
        for name in ["renewed", "newer", "broken", "settings"] {
            fs::write(at("real").join(name), r#"{"token": 1}"#).unwrap();
        }
        let copies = HomeCopies::make(&at("real"), &at("home"), &["settings".into()], &logins);
        for name in ["renewed", "newer", "first", "settings"] {
            fs::write(at("home").join(name), r#"{"token": 2}"#).unwrap();
        }
        fs::write(at("home/broken"), "#!/bin/sh").unwrap();
        fs::write(at("real/newer"), r#"{"token": 3}"#).unwrap();
        copies.keep_logins();
        let read = |name: &str| fs::read_to_string(at("real").join(name)).unwrap();
        assert_eq!(read("renewed"), r#"{"token": 2}"#);
        assert_eq!(read("first"), r#"{"token": 2}"#);
        assert_eq!(read("newer"), r#"{"token": 3}"#);
        assert_eq!(read("broken"), r#"{"token": 1}"#);
        assert_eq!(read("settings"), r#"{"token": 1}"#);
    }
}
