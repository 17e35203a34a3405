//! Real commands under Landlock alone, without the witness.
#![expect(unsafe_code, reason = "the tests prepare children as Haft does, between fork and exec")]

use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use tempfile::TempDir;

use super::privileges::drop_all_but;
use super::probe;
use super::ruleset::{FileGrants, LandlockRuleset, restrict_self};
use super::ruleset_cache::RulesetCache;
use crate::limits::CommandLimits;
use crate::status::LayerLevel;

/// A directory with secrets and other files.
struct Fixture {
    _directory: TempDir,
    path: PathBuf,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(directory.path()).unwrap();
        for folder in ["home/.ssh", "home/public/deep", "home/.config/gh", "work", "scratch"] {
            fs::create_dir_all(path.join(folder)).unwrap();
        }
        for file in [
            "home/.ssh/id",
            "home/public/deep/file",
            "home/notes",
            "home/.config/gh/token",
            "home/.config/ok",
            "work/a",
        ] {
            fs::write(path.join(file), "content\n").unwrap();
        }
        Self { _directory: directory, path }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Runs a shell command under `grants`.
    fn sh(&self, grants: &FileGrants<'_>, script: &str) -> Output {
        let ruleset = LandlockRuleset::new(grants).unwrap();
        self.under(&ruleset, script)
    }

    fn under(&self, ruleset: &LandlockRuleset, script: &str) -> Output {
        let fd = ruleset.as_raw_fd();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(&self.path).env("LC_ALL", "C");
        // Root's CAP_PERFMON alone would let a command read other processes' environments past Landlock.
        let confine = move || {
            drop_all_but(rustix::thread::CapabilitySet::empty())
                .and_then(|()| restrict_self(fd))
                .map_err(io::Error::from)
        };
        // SAFETY: both only make system calls.
        unsafe { command.pre_exec(confine) };
        command.output().unwrap()
    }

    fn secrets(&self) -> Vec<PathBuf> {
        vec![self.at("home/.ssh"), self.at("home/.config/gh/token"), self.at("home/.aws")]
    }
}

fn succeeds(output: &Output) -> bool {
    output.status.success()
}

#[test]
fn secrets_are_unreadable_and_their_neighbours_readable() {
    let fixture = Fixture::new();
    let secrets = fixture.secrets();
    let grants = FileGrants { unreadable: &secrets, ..FileGrants::default() };
    for path in [
        "home/public/deep/file",
        "home/notes",
        "home/.config/ok",
        "work/a",
        "/etc/passwd",
        "/proc/self/status",
    ] {
        let output = fixture.sh(&grants, &format!("cat {path}"));
        assert!(succeeds(&output), "{path}: {output:?}");
    }
    for path in ["home/.ssh/id", "home/public/../.ssh/id", "home/.config/gh/token"] {
        let output = fixture.sh(&grants, &format!("cat {path}"));
        assert!(
            !succeeds(&output) && String::from_utf8_lossy(&output.stderr).contains("Permission denied"),
            "{path}: {output:?}"
        );
    }
    // Names and metadata are not secret.
    assert!(succeeds(&fixture.sh(&grants, "ls -l home/.ssh home/.config/gh && test -e home/.ssh/id")));
}

#[test]
fn secret_created_later_is_unreadable() {
    let fixture = Fixture::new();
    let secrets = fixture.secrets();
    let ruleset =
        LandlockRuleset::new(&FileGrants { unreadable: &secrets, ..FileGrants::default() }).unwrap();
    fs::create_dir(fixture.at("home/.aws")).unwrap();
    fs::write(fixture.at("home/.aws/key"), "").unwrap();
    fs::write(fixture.at("home/new"), "").unwrap();
    fs::write(fixture.at("home/public/new"), "").unwrap();
    assert!(!succeeds(&fixture.under(&ruleset, "cat home/.aws/key")));
    assert!(!succeeds(&fixture.under(&ruleset, "cat home/new")));
    assert!(succeeds(&fixture.under(&ruleset, "cat home/public/new")));
}

#[test]
fn secrets_are_unreadable_through_links() {
    let fixture = Fixture::new();
    symlink("home", fixture.at("linked")).unwrap();
    symlink("../home/.ssh/id", fixture.at("work/link")).unwrap();
    fs::hard_link(fixture.at("home/.config/gh/token"), fixture.at("home/.config/alias")).unwrap();
    // A path through a link names the same secret.
    let secrets = [fixture.at("linked/.ssh"), fixture.at("home/.config/gh/token")];
    let grants = FileGrants { unreadable: &secrets, ..FileGrants::default() };
    for path in ["home/.ssh/id", "linked/.ssh/id", "work/link", "home/.config/gh/token", "home/.config/alias"]
    {
        assert!(!succeeds(&fixture.sh(&grants, &format!("cat {path}"))), "{path}");
    }
    assert!(succeeds(&fixture.sh(&grants, "cat linked/notes")));
}

#[test]
fn unreadable_program_cannot_be_executed() {
    let fixture = Fixture::new();
    fs::copy("/bin/sh", fixture.at("work/sh")).unwrap();
    let secrets = [fixture.at("work")];
    assert!(succeeds(&fixture.sh(&FileGrants::default(), "work/sh -c true")));
    // The kernel opens a program for reading, too; so a tree that holds programs has to be granted.
    assert!(!succeeds(
        &fixture.sh(&FileGrants { unreadable: &secrets, ..FileGrants::default() }, "work/sh -c true")
    ));
}

#[test]
fn every_landlock_version_restricts_reads_and_writes() {
    let fixture = Fixture::new();
    let secrets = fixture.secrets();
    for abi in [1, 2, 3, 4, 5, 6, 7, 99] {
        let ruleset =
            LandlockRuleset::with_abi(abi, &FileGrants { unreadable: &secrets, ..FileGrants::default() })
                .unwrap();
        assert!(succeeds(&fixture.under(&ruleset, "cat home/notes")), "{abi}");
        for script in ["cat home/.ssh/id", "echo x >> work/a", "mv work/a work/b", "mv work/a home/a"] {
            assert!(!succeeds(&fixture.under(&ruleset, script)), "{abi}: {script}");
        }
    }
}

#[test]
fn nothing_is_writable_without_grants() {
    let fixture = Fixture::new();
    let before = listing(&fixture);
    for script in [
        "echo x > work/a",
        "echo x >> work/a",
        "echo x > work/new",
        "mkdir work/d",
        "rm work/a",
        "rmdir home/public/deep || rmdir scratch",
        "mv work/a work/b",
        "mv work/a home/b",
        "ln work/a work/hard",
        "ln -s a work/soft",
        "mkfifo work/pipe",
        "truncate -s 1 work/a",
        "cp work/a home/b",
        "dd if=/dev/null of=work/a conv=notrunc",
        "echo x > /dev/shm/haft-landlock-test",
        "echo 0 > /proc/self/oom_score_adj",
    ] {
        assert!(!succeeds(&fixture.sh(&FileGrants::default(), script)), "{script}");
    }
    assert_eq!(listing(&fixture), before);
    assert!(!Path::new("/dev/shm/haft-landlock-test").exists());
}

fn listing(fixture: &Fixture) -> String {
    let output = Command::new("find").arg(&fixture.path).args(["-printf", "%p %y %s %l\n"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn granted_directories_are_writable() {
    let fixture = Fixture::new();
    let (write, scratch) = ([fixture.at("work")], [fixture.at("scratch")]);
    let grants = FileGrants { writable: &write, private: &scratch, ..FileGrants::default() };
    let script = "echo y > work/a && mkdir work/d && mv work/a work/d/b && ln work/d/b work/c && rm -r work/d \
                  && cp /bin/sh scratch/sh && mv scratch/sh scratch/sh2 && scratch/sh2 -c 'cat work/c' && truncate -s 0 work/c";
    let output = fixture.sh(&grants, script);
    assert!(succeeds(&output), "{output:?}");
    assert!(!succeeds(&fixture.sh(&grants, "echo x > home/notes")));
    assert!(!succeeds(&fixture.sh(&grants, "mv work/c home/c")));
    let gone = [fixture.at("gone")];
    assert!(LandlockRuleset::new(&FileGrants { private: &gone, ..FileGrants::default() }).is_err());
}

#[test]
fn only_listed_devices_are_usable() {
    let fixture = Fixture::new();
    let devices = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/not-there"].map(PathBuf::from);
    let grants = FileGrants { devices: &devices, ..FileGrants::default() };
    let output = fixture
        .sh(&grants, "echo x > /dev/null && cat /dev/null && head -c 4 /dev/zero && head -c 4 /dev/urandom");
    assert!(succeeds(&output), "{output:?}");
    assert!(!succeeds(&fixture.sh(&grants, "head -c 1 /dev/full")));
    assert!(!succeeds(&fixture.sh(&grants, "true > /dev/ptmx")));
    assert!(succeeds(&fixture.sh(&grants, "ls /dev /dev/pts")));
    // A directory among the devices gives no right to what is in it.
    let folder = [fixture.at("work")];
    assert!(!succeeds(
        &fixture.sh(&FileGrants { devices: &folder, ..FileGrants::default() }, "echo x > work/a")
    ));
}

#[test]
fn signals_to_other_processes_are_refused() {
    let fixture = Fixture::new();
    let mut outside = Command::new("sleep").arg("600").spawn().unwrap();
    let output = fixture.sh(&FileGrants::default(), &format!("kill -9 {} || kill -0 $PPID", outside.id()));
    assert!(!succeeds(&output), "{output:?}");
    assert!(succeeds(&fixture.sh(&FileGrants::default(), "sleep 600 & kill $!")));
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[test]
fn proc_files_of_other_processes_are_unreadable() {
    let fixture = Fixture::new();
    let own = std::process::id();
    for file in ["environ", "mem", "root/etc/passwd", "cwd/Cargo.toml", "maps"] {
        let output = fixture.sh(&FileGrants::default(), &format!("cat /proc/{own}/{file}"));
        assert!(!succeeds(&output), "{file}: {output:?}");
    }
}

#[test]
fn abstract_sockets_of_others_are_unreachable() {
    let fixture = Fixture::new();
    let name = format!("haft-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let ruleset = LandlockRuleset::new(&FileGrants::default()).unwrap();
    let fd = ruleset.as_raw_fd();
    let tried = |confined: bool| {
        let mut command = Command::new("/bin/true");
        let address = address.clone();
        command.current_dir(&fixture.path);
        let prepare = move || {
            if confined {
                restrict_self(fd)?;
            }
            std::os::unix::net::UnixStream::connect_addr(&address).map(drop)
        };
        // SAFETY: system calls only; no error that would allocate is made.
        unsafe { command.pre_exec(prepare) };
        command.status()
    };
    assert!(tried(false).unwrap().success());
    assert_eq!(tried(true).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn tcp_needs_a_grant() {
    let fixture = Fixture::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let script = format!("bash -c '{script}'");
    assert!(!succeeds(&fixture.sh(&FileGrants::default(), &script)));
    assert!(succeeds(&fixture.sh(&FileGrants { tcp: true, ..FileGrants::default() }, &script)));
}

#[test]
fn ruleset_is_cached_until_directories_change() {
    let fixture = Fixture::new();
    let secrets = fixture.secrets();
    let grants = FileGrants { unreadable: &secrets, tcp: true, ..FileGrants::default() };
    let rulesets = RulesetCache::default();
    // A directory that has just changed may change again with the same timestamp, so nothing is cached at first. Other
    // programs also create files in the temporary directory.
    let kept = (0..5_000).find_map(|_| {
        let first = rulesets.get(&grants).unwrap();
        fs::write(fixture.at("home/public/unseen"), "").unwrap();
        let second = rulesets.get(&grants).unwrap();
        fs::remove_file(fixture.at("home/public/unseen")).unwrap();
        Arc::ptr_eq(&first, &second).then_some(second)
    });
    let kept = kept.unwrap();
    fs::write(fixture.at("home/new"), "").unwrap();
    let rebuilt = rulesets.get(&grants).unwrap();
    assert!(!Arc::ptr_eq(&kept, &rebuilt));
    assert!(succeeds(&fixture.under(&rebuilt, "cat home/new")));
    let other = FileGrants { tcp: false, ..grants };
    assert!(!Arc::ptr_eq(&rebuilt, &rulesets.get(&other).unwrap()));
}

#[test]
fn privileges_are_dropped() {
    let mut command = Command::new("cat");
    command.arg("/proc/self/status");
    // SAFETY: system calls only.
    unsafe {
        command.pre_exec(|| drop_all_but(rustix::thread::CapabilitySet::empty()).map_err(io::Error::from))
    };
    let status = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let line =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned();
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        assert_eq!(line(set), "0000000000000000", "{set}");
    }
    assert_eq!(line("NoNewPrivs:"), "1");
    if rustix::process::getuid().is_root() {
        assert_eq!(line("CapBnd:"), "0000000000000000");
    }
}

#[test]
fn limits_are_never_raised() {
    let limits = CommandLimits { memory_bytes: 64 << 20, file_bytes: 4096, processes: 1 << 14 };
    let run = |script: &str| {
        let mut command = Command::new("/bin/bash");
        command.args(["-c", script]);
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(move || {
                limits.apply().and_then(|()| CommandLimits::default().apply()).map_err(io::Error::from)
            })
        };
        command.output().unwrap()
    };
    let output = run("ulimit -Hc; ulimit -Hf; ulimit -Hd");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n4\n65536\n");
    assert!(!succeeds(&run("x=$(head -c 200M /dev/zero | tr '\\0' x)")));
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = run(&format!("exec head -c 8192 /dev/zero > {}", file.path().display()));
    assert_eq!(output.status.signal(), Some(libc::SIGXFSZ), "{output:?}");
}

#[test]
fn probe_finds_landlock_and_leaves_no_files() {
    let status = probe();
    assert!(!matches!(status.layers[0].level, LayerLevel::None { .. }), "{:#?}", status.layers);
    assert!(!status.kernel.is_empty());
    for layer in &status.layers {
        assert_eq!(layer.remedy.is_some(), layer.level != LayerLevel::Full, "{layer}");
    }
    let prefix = format!(".haft-probe-{}-", std::process::id());
    let left = fs::read_dir(std::env::temp_dir()).unwrap().filter_map(Result::ok);
    assert!(!left.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(&prefix)));
}
