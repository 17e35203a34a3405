//! A throw-away world for one attempt: a workspace, a home, a ledger, and files and processes outside of the scope.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs::{self, File, Permissions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What stands in every secret and must never be seen in an output.
pub(crate) const CANARY: &str = "canary-7f3a91";
/// An ordinary user without any rights of its own.
const NOBODY: u32 = 65534;
/// How long a whole run may take before the test gives it up.
const PATIENCE: Duration = Duration::from_mins(4);
/// Directories of which a sandboxed command sees a private version.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// On whose behalf a test runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    /// Whoever runs the tests.
    Me,
    /// An ordinary user, when root runs the tests.
    Nobody,
}

impl User {
    /// Everybody that can be had here.
    pub(crate) fn all() -> &'static [User] {
        if User::is_root() { &[User::Me, User::Nobody] } else { &[User::Me] }
    }

    /// Whether root runs the tests.
    #[expect(unsafe_code, reason = "std does not tell who runs a program")]
    pub(crate) fn is_root() -> bool {
        // SAFETY: geteuid takes nothing and cannot fail.
        unsafe { libc::geteuid() == 0 }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            User::Me if User::is_root() => "as root",
            _ => "as an ordinary user",
        }
    }

    fn own(self, path: &Path) {
        if self == User::Nobody {
            chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    fn apply(self, command: &mut Command) {
        if self == User::Nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
    }
}

/// What came out of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The world of one attempt.
pub(crate) struct Stage {
    root: TempDir,
    pub(crate) user: User,
}

impl Stage {
    /// An empty workspace and all that lies around it.
    pub(crate) fn new(user: User) -> Self {
        let root = tempfile::Builder::new().prefix("haft-stage-").tempdir_in(base()).unwrap();
        fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        user.own(root.path());
        let stage = Self { root, user };
        for name in ["work", "outside", "home", "ledger", "logs"] {
            stage.dir(name);
        }
        stage.file(
            "home/.gitconfig",
            "[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n[maintenance]\n\tauto = false\n",
        );
        stage
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// What only this stage's name has in it, to find its processes by.
    pub(crate) fn mark(&self) -> String {
        self.root().file_name().unwrap().to_string_lossy().into_owned()
    }

    pub(crate) fn dir(&self, name: &str) {
        let mut path = self.root().to_owned();
        for part in Path::new(name).components() {
            path.push(part);
            if !path.is_dir() {
                fs::create_dir(&path).unwrap();
                self.user.own(&path);
            }
        }
    }

    pub(crate) fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        self.dir(Path::new(name).parent().unwrap().to_str().unwrap());
        fs::write(&path, text).unwrap();
        self.user.own(&path);
    }

    /// A file that only somebody else may read, where there is somebody else.
    pub(crate) fn foreign(&self, name: &str, text: &str) {
        if User::is_root() {
            self.file(name, text);
            fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
            let other = if self.user == User::Me { NOBODY } else { 0 };
            chown(self.path(name), Some(other), Some(other)).unwrap();
        }
    }

    /// A program run by the stage's user in the workspace, with nothing of the tests' own environment but the path.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["-s", "KILL", &PATIENCE.as_secs().to_string(), program]).current_dir(self.work());
        command.env_clear().env("PATH", search_path()).env("HOME", self.path("home")).env("LANG", "C.UTF-8");
        command.env("USER", "somebody").env("HAFT_HOME", self.path("ledger")).stdin(Stdio::null());
        self.user.apply(&mut command);
        command
    }

    /// The same without anything between it and the test.
    pub(crate) fn bare(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.work()).env_clear().env("PATH", search_path());
        command.env("HOME", self.path("home")).env("HAFT_HOME", self.path("ledger")).stdin(Stdio::null());
        self.user.apply(&mut command);
        command
    }

    /// Runs a command to its end. Its output goes to files, since what it leaves behind could hold a pipe open.
    pub(crate) fn run(&self, command: &mut Command) -> Ran {
        let logs = tempfile::tempdir_in(self.path("logs")).unwrap();
        let (out, err) = (logs.path().join("out"), logs.path().join("err"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        // Who opens /dev/stdout opens the file again.
        for path in [logs.path(), &out, &err] {
            self.user.own(path);
        }
        let status = command.status().unwrap();
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
        let code = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
        Ran { code: status.code().or(code).unwrap_or(-1), stdout: text(&out), stderr: text(&err) }
    }

    /// `haft sandbox FLAGS -- bash -c SCRIPT` in the workspace.
    pub(crate) fn sandboxed(&self, flags: &[&str], script: &str) -> Command {
        let mut command = self.command(&self.program());
        command.arg("sandbox").args(flags).args(["--", "bash", "-c", script]);
        command
    }

    /// Runs a script inside.
    pub(crate) fn inside(&self, script: &str) -> Ran {
        self.run(&mut self.sandboxed(&[], script))
    }

    /// Runs a script as the same user without a sandbox.
    pub(crate) fn unheld(&self, script: &str) -> Ran {
        self.run(self.command("bash").args(["-c", script]))
    }

    /// Runs Haft itself.
    pub(crate) fn haft(&self, args: &[&str]) -> Ran {
        self.run(self.command(&self.program()).args(args))
    }

    /// The path of the built program.
    pub(crate) fn program(&self) -> String {
        self.runnable(Path::new(env!("CARGO_BIN_EXE_haft"))).to_str().unwrap().to_owned()
    }

    /// The directory of the hostile programs.
    pub(crate) fn programs(&self) -> PathBuf {
        let mut folder = compiled().to_owned();
        for (name, _) in SOURCES {
            self.runnable(&compiled().join(name)).parent().unwrap().clone_into(&mut folder);
        }
        folder
    }

    /// A path by which the stage's user can run a built program, inside the sandbox too: the program's own path, or a link in
    /// the stage where a directory above it is private (root's home) or replaced in the sandbox (/tmp).
    fn runnable(&self, built: &Path) -> PathBuf {
        let enterable = |dir: &Path| dir.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
        let private = self.user == User::Nobody && !built.ancestors().skip(1).all(enterable);
        if !private && !TEMPORARY.iter().any(|dir| built.starts_with(dir)) {
            return built.to_owned();
        }
        let linked = self.path("bin").join(built.file_name().unwrap());
        if !linked.exists() {
            self.dir("bin");
            fs::hard_link(built, &linked).or_else(|_| fs::copy(built, &linked).map(drop)).unwrap();
        }
        linked
    }

    /// The processes of this stage: those that know its name or stand in it.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let mark = self.mark();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let line = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let environment = String::from_utf8_lossy(&read("environ")).into_owned();
            let at = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&read("stat")).into_owned();
            let ended = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
            if !ended && (line.contains(&mark) || environment.contains(&mark) || at.starts_with(self.root()))
            {
                found.push((id, line));
            }
        }
        found
    }

    /// Ends what an attempt without a sandbox has left behind.
    pub(crate) fn sweep(&self) {
        for (id, _) in self.processes() {
            Command::new("kill").args(["-KILL", &id.to_string()]).stderr(Stdio::null()).status().unwrap();
        }
    }
}

/// Where stages are set up: not below the folders for temporary files, which commands have for themselves, and not in
/// this project, to which cargo would add what the workloads make.
fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        if User::is_root() {
            return PathBuf::from("/opt");
        }
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_dir());
        home.unwrap_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")))
    })
}

/// Where programs are found: the toolchain itself first, so that none of its launchers looks into a home.
pub(crate) fn search_path() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let root = Command::new("rustc").args(["--print", "sysroot"]).output();
        let root =
            root.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
        format!("{root}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    })
}

/// The directory where the hostile programs are compiled, once.
fn compiled() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        // Another source is another folder, so that what is there need not be compiled again.
        let mut hasher = DefaultHasher::new();
        SOURCES.hash(&mut hasher);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("programs-{:x}", hasher.finish()));
        fs::create_dir_all(&folder).unwrap();
        for (name, source) in SOURCES {
            let (built, new) = (folder.join(name), folder.join(format!("{name}.{}", std::process::id())));
            if built.exists() {
                continue;
            }
            let mut compiler = Command::new("cc");
            compiler.args(["-x", "c", "-O1", "-w", "-pthread", "-o"]).arg(&new).arg("-");
            let mut child = compiler.stdin(Stdio::piped()).spawn().unwrap();
            child.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success(), "cc cannot compile {name}.c");
            // Another run of the tests may be using the old one.
            fs::rename(new, built).unwrap();
        }
        folder
    })
}

const SOURCES: [(&str, &str); 4] = [
    ("outsider", include_str!("programs/outsider.c")),
    ("calls", include_str!("programs/calls.c")),
    ("race", include_str!("programs/race.c")),
    ("flood", include_str!("programs/flood.c")),
];

/// Waits for something that will happen; gives up where it never does.
pub(crate) fn until(happened: impl Fn() -> bool) {
    let start = Instant::now();
    while !happened() {
        assert!(start.elapsed() < PATIENCE, "it did not happen");
        std::thread::yield_now();
    }
}
