//! Entries of the user's home that commands get a copy of: they may change it, and the change has no effect outside, except
//! that a renewed login is kept.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use haft_tool::Value;
use rustix::fs::{Dir, FileType, Mode, OFlags};

use super::registry_settings::write_file;

/// Of all entries together; the rest is not copied.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 << 20;
/// Directories deeper than this are not copied.
const MAX_DEPTH: usize = 16;

/// Largest login.
const MAX_LOGIN_BYTES: u64 = 1 << 20;
/// What differs in a renewed login.
const RENEWED_KEYS: &[&str] = &[
    "access",
    "accessToken",
    "access_token",
    "expires",
    "expiresAt",
    "expires_at",
    "expiry_date",
    "id_token",
    "last_refresh",
    "refresh",
    "refreshToken",
    "refreshTokenExpiresAt",
    "refresh_token",
];

/// The copies of one session.
pub(super) struct HomeCopies {
    real_home: PathBuf,
    /// The home of commands.
    home: PathBuf,
    /// Each login with its content when it was copied.
    logins: Vec<(PathBuf, Login)>,
}

/// A file with a JSON object.
#[derive(PartialEq)]
struct Login {
    content: Vec<u8>,
    value: Value,
}

impl HomeCopies {
    /// Copies `entries` and `logins` of the real home to the home of commands. What cannot be copied is left out.
    pub(super) fn make(real_home: &Path, home: &Path, entries: &[PathBuf], logins: &[PathBuf]) -> Self {
        if let Some(home) = open_directory(home) {
            let mut copier = HomeCopier { home, files: 0, bytes: 0 };
            for entry in entries.iter().chain(logins) {
                // The entry itself may be a link, often to a repository of the user's.
                if let Ok(source) = real_home.join(entry).canonicalize() {
                    let is_linked = source != real_home.join(entry);
                    copier.copy_from(&source, entry, is_linked);
                }
            }
        }
        let login = |login: &PathBuf| Some((login.clone(), read_users_login(&real_home.join(login))?));
        let logins = logins.iter().filter_map(login).collect();
        Self { real_home: real_home.to_owned(), home: home.to_owned(), logins }
    }

    /// Writes logins back that commands have renewed, and returns their paths: otherwise the user's own would be invalid,
    /// because services accept a token for renewal only once. Only tokens and their times may differ: other fields can make
    /// agents load settings from elsewhere.
    pub(super) fn keep_logins(&self) -> Vec<PathBuf> {
        let Some(home) = open_directory(&self.home) else { return Vec::new() };
        let mut kept = Vec::new();
        for (login, before) in &self.logins {
            let real = self.real_home.join(login);
            // What the user's own programs have renewed meanwhile is newer.
            if read_users_login(&real).as_ref() != Some(before) {
                continue;
            }
            let renewed = open_below(&home, login).and_then(read_login);
            let renewed = renewed.filter(|renewed| {
                renewed.value != before.value && is_renewed(&before.value, &renewed.value, false)
            });
            if let Some(renewed) = renewed
                && replace(&real, &renewed.content).is_some()
            {
                kept.push(real);
            }
        }
        kept
    }
}

/// Whether two values differ in tokens and their times only.
fn is_renewed(before: &Value, after: &Value, may_differ: bool) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before.iter().all(|(key, value)| {
                    let may_differ = RENEWED_KEYS.contains(&key.as_str());
                    after.get(key).is_some_and(|after| is_renewed(value, after, may_differ))
                })
        }
        (Value::String(_), Value::String(_)) | (Value::Number(_), Value::Number(_)) if may_differ => true,
        (before, after) => before == after,
    }
}

/// Replaces a file; links to its directory are the user's and stay.
fn replace(path: &Path, content: &[u8]) -> Option<()> {
    let directory = open_directory(&path.parent()?.canonicalize().ok()?)?;
    write_file(&directory, Path::new(path.file_name()?), content).ok()
}

fn open_directory(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).ok()
}

/// Opens what is below a directory, if no link is on the way.
fn open_below(directory: &OwnedFd, path: &Path) -> Option<OwnedFd> {
    let mut opened = rustix::io::fcntl_dupfd_cloexec(directory, 0).ok()?;
    for part in path.components() {
        let Component::Normal(name) = part else { return None };
        opened = open_entry(&opened, name)?;
    }
    Some(opened)
}

fn open_entry(directory: &OwnedFd, name: &OsStr) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).ok()
}

/// The user's login, if it is no link itself.
fn read_users_login(path: &Path) -> Option<Login> {
    let directory = open_directory(path.parent()?)?;
    open_entry(&directory, path.file_name()?).and_then(read_login)
}

fn read_login(file: OwnedFd) -> Option<Login> {
    let file = fs::File::from(file);
    let meta = file.metadata().ok().filter(|meta| meta.is_file() && meta.len() <= MAX_LOGIN_BYTES)?;
    let mut content = Vec::new();
    file.take(meta.len()).read_to_end(&mut content).ok()?;
    let value: Value = std::str::from_utf8(&content).ok()?.parse().ok()?;
    value.is_object().then_some(Login { content, value })
}

struct HomeCopier {
    home: OwnedFd,
    files: usize,
    bytes: u64,
}

impl HomeCopier {
    fn copy_from(&mut self, source: &Path, path: &Path, is_linked: bool) {
        let (Some(parent), Some(name)) = (source.parent().and_then(open_directory), source.file_name())
        else {
            return;
        };
        if let Some(opened) = open_entry(&parent, name) {
            self.copy(opened, source, path, is_linked, 0);
        }
    }

    /// Copies what is `opened`, which is at `source`. One link is followed on the way to a file: what it leads to may be a
    /// place that commands write, where links are not the user's.
    fn copy(&mut self, opened: OwnedFd, source: &Path, path: &Path, is_linked: bool, depth: usize) {
        let Ok(stat) = rustix::fs::fstat(&opened) else { return };
        let size = u64::try_from(stat.st_size).unwrap_or(u64::MAX);
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if depth < MAX_DEPTH => {
                let Ok(list) = Dir::read_from(&opened) else { return };
                for entry in list.flatten() {
                    let name = OsStr::from_bytes(entry.file_name().to_bytes());
                    if name == "." || name == ".." {
                        continue;
                    }
                    let (source, path) = (source.join(name), path.join(name));
                    match open_entry(&opened, name) {
                        Some(below) => self.copy(below, &source, &path, is_linked, depth + 1),
                        None if is_linked => {}
                        None => {
                            if let Ok(target) = source.canonicalize() {
                                self.copy_from(&target, &path, true);
                            }
                        }
                    }
                }
            }
            FileType::RegularFile
                if self.files < MAX_FILES && self.bytes.saturating_add(size) <= MAX_BYTES =>
            {
                self.files += 1;
                self.bytes += size;
                let mut content = Vec::new();
                if fs::File::from(opened).take(size).read_to_end(&mut content).is_ok() {
                    let _ = write_file(&self.home, path, &content);
                }
            }
            _ => {}
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
    fn d7_links_in_a_linked_directory_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["real/.agent", "real/.ssh", "work/skills/one", "home"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("real/.ssh/key"), "key").unwrap();
        fs::write(at("work/skills/one/SKILL.md"), "skill").unwrap();
        symlink(at("work/skills"), at("real/.agent/skills")).unwrap();
        symlink(at("real/.ssh/key"), at("work/skills/key.md")).unwrap();
        symlink(at("real/.ssh"), at("work/skills/two")).unwrap();
        HomeCopies::make(&at("real"), &at("home"), &[".agent/skills".into()], &[]);
        assert!(at("home/.agent/skills/one/SKILL.md").exists());
        assert!(!at("home/.agent/skills/key.md").exists() && !at("home/.agent/skills/two").exists());
    }

    #[test]
    fn d4_d5_d6_only_tokens_are_written_back_and_links_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["real/.other", "dotfiles/codex", "home"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        symlink(at("dotfiles/codex"), at("real/.codex")).unwrap();
        let before = r#"{"a": {"type": "oauth", "refresh": "1", "expires": 1}}"#;
        let login = [PathBuf::from(".codex/auth.json")];
        let written = |inside: &dyn Fn(), expected: &str| {
            fs::write(at("dotfiles/codex/auth.json"), before).unwrap();
            let _ = fs::remove_dir_all(at("home/.codex"));
            let copies = HomeCopies::make(&at("real"), &at("home"), &[], &login);
            inside();
            copies.keep_logins();
            assert_eq!(fs::read_to_string(at("real/.codex/auth.json")).unwrap(), expected);
            assert!(fs::symlink_metadata(at("real/.codex")).unwrap().is_symlink());
        };
        let renewed = r#"{"a": {"type": "oauth", "refresh": "2", "expires": 2}}"#;
        written(&|| fs::write(at("home/.codex/auth.json"), renewed).unwrap(), renewed);
        for other in [
            r#"{"a": {"type": "wellknown", "refresh": "2", "expires": 2}}"#,
            r#"{"a": {"type": "oauth", "refresh": "2", "expires": 2}, "b": {"type": "wellknown"}}"#,
            r#"{"a": {"type": "oauth", "refresh": {"x": 1}, "expires": 2}}"#,
        ] {
            written(&|| fs::write(at("home/.codex/auth.json"), other).unwrap(), before);
        }
        fs::write(at("real/.other/auth.json"), renewed).unwrap();
        let link = || {
            fs::remove_dir_all(at("home/.codex")).unwrap();
            symlink(at("real/.other"), at("home/.codex")).unwrap();
        };
        written(&link, before);
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
            fs::write(at("real").join(name), r#"{"refresh_token": 1}"#).unwrap();
        }
        let copies = HomeCopies::make(&at("real"), &at("home"), &["settings".into()], &logins);
        for name in ["renewed", "newer", "first", "settings"] {
            fs::write(at("home").join(name), r#"{"refresh_token": 2}"#).unwrap();
        }
        fs::write(at("home/broken"), "#!/bin/sh").unwrap();
        fs::write(at("real/newer"), r#"{"refresh_token": 3}"#).unwrap();
        copies.keep_logins();
        let read = |name: &str| fs::read_to_string(at("real").join(name)).unwrap();
        assert_eq!(read("renewed"), r#"{"refresh_token": 2}"#);
        assert!(!at("real/first").exists(), "there was no login");
        assert_eq!(read("newer"), r#"{"refresh_token": 3}"#);
        assert_eq!(read("broken"), r#"{"refresh_token": 1}"#);
        assert_eq!(read("settings"), r#"{"refresh_token": 1}"#);
    }
}
