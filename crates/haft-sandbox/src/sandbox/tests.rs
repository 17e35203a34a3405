//! Real commands under Landlock, without the supervisor above it: this is what holds when all else fails.
#![expect(unsafe_code, reason = "the tests prepare children as Haft does, between fork and exec")]
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

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

use super::{Grants, Level, Limits, Resolver, Ruleset, Rulesets, apply, drop_all, probe, restrict};

/// A place with a secret, its neighbours, and what else the tests need.
struct Place {
    _kept: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let kept = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(kept.path()).unwrap();
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
        Self { _kept: kept, path }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    /// Runs a shell command under `grants`.
    fn sh(&self, grants: &Grants<'_>, script: &str) -> Output {
        let ruleset = Ruleset::build(grants, &mut Resolver::default()).unwrap();
        self.under(&ruleset, script)
    }

    fn under(&self, ruleset: &Ruleset, script: &str) -> Output {
        let fd = ruleset.as_raw_fd();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(&self.path).env("LC_ALL", "C");
        // Root's CAP_PERFMON alone would let a command read other processes' environments past Landlock.
        let confine = move || drop_all().and_then(|()| restrict(fd)).map_err(io::Error::from);
        // SAFETY: both only make system calls.
        unsafe { command.pre_exec(confine) };
        command.output().unwrap()
    }

    fn unread(&self) -> Vec<PathBuf> {
        vec![self.at("home/.ssh"), self.at("home/.config/gh/token"), self.at("home/.aws")]
    }
}

fn good(output: &Output) -> bool {
    output.status.success()
}

#[test]
fn what_is_unread_cannot_be_read_and_all_beside_it_can() {
    let place = Place::new();
    let unread = place.unread();
    let grants = Grants { unread: &unread, ..Grants::default() };
    for path in [
        "home/public/deep/file",
        "home/notes",
        "home/.config/ok",
        "work/a",
        "/etc/passwd",
        "/proc/self/status",
    ] {
        let output = place.sh(&grants, &format!("cat {path}"));
        assert!(good(&output), "{path}: {output:?}");
    }
    for path in ["home/.ssh/id", "home/public/../.ssh/id", "home/.config/gh/token"] {
        let output = place.sh(&grants, &format!("cat {path}"));
        assert!(
            !good(&output) && String::from_utf8_lossy(&output.stderr).contains("Permission denied"),
            "{path}: {output:?}"
        );
    }
    // Names may be seen; it is contents that are secret.
    assert!(good(&place.sh(&grants, "ls -l home/.ssh home/.config/gh && test -e home/.ssh/id")));
}

#[test]
fn a_secret_that_comes_later_is_not_read_either() {
    let place = Place::new();
    let unread = place.unread();
    let ruleset =
        Ruleset::build(&Grants { unread: &unread, ..Grants::default() }, &mut Resolver::default()).unwrap();
    fs::create_dir(place.at("home/.aws")).unwrap();
    fs::write(place.at("home/.aws/key"), "").unwrap();
    fs::write(place.at("home/new"), "").unwrap();
    fs::write(place.at("home/public/new"), "").unwrap();
    assert!(!good(&place.under(&ruleset, "cat home/.aws/key")));
    assert!(!good(&place.under(&ruleset, "cat home/new")));
    assert!(good(&place.under(&ruleset, "cat home/public/new")));
}

#[test]
fn links_lead_to_no_secret() {
    let place = Place::new();
    symlink("home", place.at("linked")).unwrap();
    symlink("../home/.ssh/id", place.at("work/link")).unwrap();
    fs::hard_link(place.at("home/.config/gh/token"), place.at("home/.config/alias")).unwrap();
    // Named over a link, it is the same secret.
    let unread = [place.at("linked/.ssh"), place.at("home/.config/gh/token")];
    let grants = Grants { unread: &unread, ..Grants::default() };
    for path in ["home/.ssh/id", "linked/.ssh/id", "work/link", "home/.config/gh/token", "home/.config/alias"]
    {
        assert!(!good(&place.sh(&grants, &format!("cat {path}"))), "{path}");
    }
    assert!(good(&place.sh(&grants, "cat linked/notes")));
}

#[test]
fn what_cannot_be_read_cannot_be_executed_either() {
    let place = Place::new();
    fs::copy("/bin/sh", place.at("work/sh")).unwrap();
    let unread = [place.at("work")];
    assert!(good(&place.sh(&Grants::default(), "work/sh -c true")));
    // The kernel opens a program for reading, too; so a tree that holds programs has to be granted.
    assert!(!good(&place.sh(&Grants { unread: &unread, ..Grants::default() }, "work/sh -c true")));
}

#[test]
fn every_version_of_landlock_is_used_for_what_it_has() {
    let place = Place::new();
    let unread = place.unread();
    for abi in [1, 2, 3, 4, 5, 6, 7, 99] {
        let ruleset = Ruleset::of_version(
            abi,
            &Grants { unread: &unread, ..Grants::default() },
            &mut Resolver::default(),
        )
        .unwrap();
        assert!(good(&place.under(&ruleset, "cat home/notes")), "{abi}");
        for script in ["cat home/.ssh/id", "echo x >> work/a", "mv work/a work/b", "mv work/a home/a"] {
            assert!(!good(&place.under(&ruleset, script)), "{abi}: {script}");
        }
    }
}

#[test]
fn nothing_can_be_changed_anywhere() {
    let place = Place::new();
    let before = listing(&place);
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
        assert!(!good(&place.sh(&Grants::default(), script)), "{script}");
    }
    assert_eq!(listing(&place), before);
    assert!(!Path::new("/dev/shm/haft-landlock-test").exists());
}

fn listing(place: &Place) -> String {
    let output = Command::new("find").arg(&place.path).args(["-printf", "%p %y %s %l\n"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_granted_for_writing_is_written() {
    let place = Place::new();
    let (write, scratch) = ([place.at("work")], [place.at("scratch")]);
    let grants = Grants { write: &write, scratch: &scratch, ..Grants::default() };
    let script = "echo y > work/a && mkdir work/d && mv work/a work/d/b && ln work/d/b work/c && rm -r work/d \
                  && cp /bin/sh scratch/sh && mv scratch/sh scratch/sh2 && scratch/sh2 -c 'cat work/c' && truncate -s 0 work/c";
    let output = place.sh(&grants, script);
    assert!(good(&output), "{output:?}");
    assert!(!good(&place.sh(&grants, "echo x > home/notes")));
    assert!(!good(&place.sh(&grants, "mv work/c home/c")));
    let gone = [place.at("gone")];
    assert!(
        Ruleset::build(&Grants { scratch: &gone, ..Grants::default() }, &mut Resolver::default()).is_err()
    );
}

#[test]
fn listed_devices_work_and_no_others() {
    let place = Place::new();
    let devices = ["/dev/null", "/dev/zero", "/dev/urandom", "/dev/not-there"].map(PathBuf::from);
    let grants = Grants { devices: &devices, ..Grants::default() };
    let output = place
        .sh(&grants, "echo x > /dev/null && cat /dev/null && head -c 4 /dev/zero && head -c 4 /dev/urandom");
    assert!(good(&output), "{output:?}");
    assert!(!good(&place.sh(&grants, "head -c 1 /dev/full")));
    assert!(!good(&place.sh(&grants, "true > /dev/ptmx")));
    assert!(good(&place.sh(&grants, "ls /dev /dev/pts")));
    // A directory among the devices gives no right to what is in it.
    let folder = [place.at("work")];
    assert!(!good(&place.sh(&Grants { devices: &folder, ..Grants::default() }, "echo x > work/a")));
}

#[test]
fn signals_stay_inside() {
    let place = Place::new();
    let mut outside = Command::new("sleep").arg("600").spawn().unwrap();
    let output = place.sh(&Grants::default(), &format!("kill -9 {} || kill -0 $PPID", outside.id()));
    assert!(!good(&output), "{output:?}");
    assert!(good(&place.sh(&Grants::default(), "sleep 600 & kill $!")));
    outside.kill().unwrap();
    outside.wait().unwrap();
}

#[test]
fn other_processes_are_not_looked_into() {
    let place = Place::new();
    let own = std::process::id();
    for file in ["environ", "mem", "root/etc/passwd", "cwd/Cargo.toml", "maps"] {
        let output = place.sh(&Grants::default(), &format!("cat /proc/{own}/{file}"));
        assert!(!good(&output), "{file}: {output:?}");
    }
}

#[test]
fn abstract_sockets_outside_are_not_reached() {
    let place = Place::new();
    let name = format!("haft-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let ruleset = Ruleset::build(&Grants::default(), &mut Resolver::default()).unwrap();
    let fd = ruleset.as_raw_fd();
    let tried = |confined: bool| {
        let mut command = Command::new("/bin/true");
        let address = address.clone();
        command.current_dir(&place.path);
        let prepare = move || {
            if confined {
                restrict(fd)?;
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
fn ports_are_held_unless_others_hold_them() {
    let place = Place::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    let script = format!("bash -c '{script}'");
    assert!(!good(&place.sh(&Grants::default(), &script)));
    assert!(good(&place.sh(&Grants { tcp: true, ..Grants::default() }, &script)));
}

#[test]
fn a_ruleset_is_kept_until_the_directories_change() {
    let place = Place::new();
    let unread = place.unread();
    let grants = Grants { unread: &unread, tcp: true, ..Grants::default() };
    let rulesets = Rulesets::default();
    // A directory that was changed just now may change again with the same time on it, so nothing is kept at first;
    // and others make their own things in the folder of all temporary files.
    let kept = (0..5_000).find_map(|_| {
        let first = rulesets.get(&grants, &mut Resolver::default()).unwrap();
        fs::write(place.at("home/public/unseen"), "").unwrap();
        let second = rulesets.get(&grants, &mut Resolver::default()).unwrap();
        fs::remove_file(place.at("home/public/unseen")).unwrap();
        Arc::ptr_eq(&first, &second).then_some(second)
    });
    let kept = kept.unwrap();
    fs::write(place.at("home/new"), "").unwrap();
    let anew = rulesets.get(&grants, &mut Resolver::default()).unwrap();
    assert!(!Arc::ptr_eq(&kept, &anew));
    assert!(good(&place.under(&anew, "cat home/new")));
    let other = Grants { tcp: false, ..grants };
    assert!(!Arc::ptr_eq(&anew, &rulesets.get(&other, &mut Resolver::default()).unwrap()));
}

#[test]
fn privileges_are_given_up_for_good() {
    let mut command = Command::new("cat");
    command.arg("/proc/self/status");
    // SAFETY: system calls only.
    unsafe { command.pre_exec(|| drop_all().map_err(io::Error::from)) };
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
fn limits_are_lowered_and_never_raised() {
    let limits = Limits { memory: 64 << 20, file_size: 4096, files: 64, processes: 1 << 14 };
    let run = |script: &str| {
        let mut command = Command::new("/bin/bash");
        command.args(["-c", script]);
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(move || {
                apply(&limits).and_then(|()| apply(&Limits::default())).map_err(io::Error::from)
            })
        };
        command.output().unwrap()
    };
    let output = run("ulimit -Hc; ulimit -Hn; ulimit -Sn; ulimit -Hf; ulimit -Hd");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n64\n64\n4\n65536\n");
    assert!(!good(&run("x=$(head -c 200M /dev/zero | tr '\\0' x)")));
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = run(&format!("exec head -c 8192 /dev/zero > {}", file.path().display()));
    assert_eq!(output.status.signal(), Some(libc::SIGXFSZ), "{output:?}");
}

#[test]
fn a_probe_finds_what_the_tests_use_and_leaves_nothing_behind() {
    let status = probe();
    let lines: Vec<String> = status.layers().iter().map(ToString::to_string).collect();
    assert!(!matches!(status.landlock.level, Level::None { .. }), "{lines:#?}");
    assert!(status.landlock_abi > 0 && !status.kernel.is_empty());
    for layer in status.layers() {
        assert_eq!(layer.remedy.is_some(), layer.level != Level::Full, "{layer}");
    }
    let prefix = format!(".haft-probe-{}-", std::process::id());
    let left = fs::read_dir(std::env::temp_dir()).unwrap().filter_map(Result::ok);
    assert!(!left.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with(&prefix)));
}
