//! The user's settings of package registries, for commands: without credentials, so that a private registry is not
//! bypassed and its tokens stay with the user.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use haft_files::{read_regular, temp_name};
use haft_tool::net::{Peer, entry_for, split_port};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::redact::without_credentials;

/// Files in the home, and the network preset that the registries in them belong to.
const FILES: &[(&str, &str)] = &[
    (".bunfig.toml", "npm"),
    (".cargo/config", "crates"),
    (".cargo/config.toml", "crates"),
    (".config/go/env", "go"),
    (".config/pip/pip.conf", "pypi"),
    (".config/pnpm/rc", "npm"),
    (".config/uv/uv.toml", "pypi"),
    (".npmrc", "npm"),
    (".pip/pip.conf", "pypi"),
    (".yarnrc", "npm"),
    (".yarnrc.yml", "npm"),
];
/// Larger files are not copied.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Copies the settings of the real home to a home of commands. What cannot be copied is left out.
pub(crate) fn copy_registry_settings(real_home: &Path, home: &Path) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(home) = rustix::fs::open(home, flags, Mode::empty()) else { return };
    for (name, _) in FILES {
        copy_settings(&real_home.join(name), &home, Path::new(name));
    }
}

/// The hosts of the registries that the user's own settings name, each with its network preset.
pub fn registry_hosts(real_home: &Path) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    for (name, preset) in FILES {
        let text = read_text(&real_home.join(name)).unwrap_or_default();
        let mut of_proxy = false;
        for line in text.lines().filter(|line| !line.trim_start().starts_with(['#', ';'])) {
            // The values of a list can be on lines of their own.
            if let Some((key, _)) = line.split_once(['=', ' ']).filter(|_| !line.starts_with([' ', '\t'])) {
                of_proxy = key.to_ascii_lowercase().contains("proxy") && *preset != "go";
            }
            if !of_proxy {
                found.extend(hosts_of_urls(line).map(|host| (*preset, host)));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// The entries of a list of domains for the URLs in a text.
fn hosts_of_urls(text: &str) -> impl Iterator<Item = String> {
    text.match_indices("://").filter_map(|(at, _)| {
        let scheme = &text[..at];
        let port = match () {
            () if scheme.ends_with("https") => 443,
            () if scheme.ends_with("http") => 80,
            () => return None,
        };
        let rest = &text[at + "://".len()..];
        let end = rest.find(['/', '"', '\'', ',', '|', '?', '#', ' ', '\t']).unwrap_or(rest.len());
        let authority = rest[..end].rsplit('@').next()?.as_bytes();
        let (host, given) = split_port(authority)?;
        let host = Peer::parse(host).ok().filter(|host| !host.is_localhost())?;
        Some(entry_for(&host, given.unwrap_or(port)))
    })
}

/// Copies one file to a path below a directory.
pub(super) fn copy_settings(source: &Path, directory: &OwnedFd, path: &Path) {
    if let Some(text) = read_text(source) {
        let _ = write_file(directory, path, without_credentials(&text).as_bytes());
    }
}

fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(read_regular(path, MAX_FILE_BYTES).ok()?).ok()
}

/// Writes a file below a directory that commands may write: links that they made are replaced, not followed.
pub(super) fn write_file(home: &OwnedFd, path: &Path, content: &[u8]) -> io::Result<()> {
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
    fn hosts_of_registries_belong_to_their_preset() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            ".npmrc",
            "# registry=https://old.example/\nregistry=https://me:pw@npm.example/path/\n@corp:registry=http://10.0.0.5:4873\n\
             proxy=http://proxy.example:3128\nhttps-proxy = http://proxy.example:3128\n",
        );
        write(
            ".config/pip/pip.conf",
            "[global]\nindex-url = https://pip.example/simple\nextra-index-url =\n    https://a.example/simple\n    https://b.example:8443/\nproxy = http://proxy.example:3128\n",
        );
        write(
            ".cargo/config.toml",
            "[source.mirror]\nregistry = \"sparse+https://cargo.example/index/\"\n[http]\nproxy = \"http://proxy.example\"\n",
        );
        write(".config/go/env", "GOPROXY=https://go.example,direct\n");
        let found = registry_hosts(home.path());
        let found: Vec<String> = found.iter().map(|(preset, host)| format!("{preset} {host}")).collect();
        assert_eq!(
            found,
            [
                "crates cargo.example",
                "go go.example",
                "npm 10.0.0.5:4873",
                "npm npm.example",
                "pypi a.example",
                "pypi b.example:8443",
                "pypi pip.example",
            ]
        );
    }

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
