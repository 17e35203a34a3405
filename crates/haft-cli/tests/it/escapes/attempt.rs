//! One attempt to get out: how it is run, and what must hold in the world afterwards.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::escapes::outside_process::OutsideProcess;
use crate::escapes::pids_limit::PidsLimit;
use crate::escapes::planted;
use crate::fixture::cli::RunOutput;
use crate::fixture::sandbox::{CANARY, OLDER_LANDLOCK_ABIS, SandboxFixture, User};
use crate::fixture::tree::{Tree, differences, walk};

/// What an attempt is run with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Program {
    /// Bash.
    Sh(&'static str),
    /// Python.
    Py(&'static str),
}

/// Where the same attempt, without a sandbox, does its harm: it shows that the attempt and the check are real.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Real {
    /// For everybody.
    Anyone,
    /// For root.
    Root,
    /// Not tried: it would harm the machine, or the kernel refuses it to everybody here.
    Untried,
}

/// One attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escape {
    pub(crate) name: &'static str,
    program: Program,
    flags: &'static [&'static str],
    code: i32,
    says: &'static str,
    real: Real,
    limits_pids: bool,
    harmless_in_namespaces: bool,
    stays_in_session: bool,
}

/// What the kernel offers to the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Isolation {
    namespaces: bool,
    /// The version of Landlock that is simulated.
    landlock_abi: Option<usize>,
}

impl Isolation {
    /// With and without namespaces, and for one of the users an older Landlock: which attempt has which of them depends on its
    /// index, so that all are tried and the time stays short. `EVERY_ABI=1` tries every attempt with each.
    fn all(user: User, index: usize) -> Vec<Self> {
        let mut all = vec![
            Self { namespaces: true, landlock_abi: None },
            Self { namespaces: false, landlock_abi: None },
        ];
        if std::env::var_os("EVERY_ABI").is_some() {
            let older =
                (1..=OLDER_LANDLOCK_ABIS).flat_map(|abi| [true, false].map(|namespaces| (abi, namespaces)));
            all.extend(older.map(|(abi, namespaces)| Self { namespaces, landlock_abi: Some(abi) }));
            return all;
        }
        let users = User::all();
        if users.get(index % users.len()) == Some(&user) {
            let turn = index / users.len();
            // Without namespaces more depends on Landlock.
            let namespaces = turn % 3 == 2;
            all.push(Self { namespaces, landlock_abi: Some(turn % OLDER_LANDLOCK_ABIS + 1) });
        }
        all
    }

    fn describe(self) -> String {
        let with = if self.namespaces { "with namespaces" } else { "without namespaces" };
        let abi = self.landlock_abi.map(|abi| format!(", Landlock {abi}")).unwrap_or_default();
        format!("{with}{abi}")
    }
}

/// How a program ends that came to its end.
const REACHED_THE_END: i32 = 7;

pub(crate) const fn sh(name: &'static str, script: &'static str) -> Escape {
    let program = Program::Sh(script);
    Escape {
        name,
        program,
        flags: &[],
        code: REACHED_THE_END,
        says: "",
        real: Real::Anyone,
        limits_pids: false,
        harmless_in_namespaces: false,
        stays_in_session: false,
    }
}

pub(crate) const fn py(name: &'static str, script: &'static str) -> Escape {
    Escape { program: Program::Py(script), ..sh(name, "") }
}

impl Escape {
    /// Without a sandbox it is not tried.
    pub(crate) const fn untried(mut self) -> Self {
        self.real = Real::Untried;
        self
    }

    /// Without a sandbox only root could do it.
    pub(crate) const fn as_root(mut self) -> Self {
        self.real = Real::Root;
        self
    }

    pub(crate) const fn with(mut self, flags: &'static [&'static str]) -> Self {
        self.flags = flags;
        self
    }

    /// Haft ends it with this code.
    pub(crate) const fn ends_with(mut self, code: i32) -> Self {
        self.code = code;
        self
    }

    /// Haft tells why.
    pub(crate) const fn says(mut self, words: &'static str) -> Self {
        self.says = words;
        self
    }

    /// It makes so many processes that the machine is kept from it.
    pub(crate) const fn limits_pids(mut self) -> Self {
        self.limits_pids = true;
        self
    }

    /// In namespaces it succeeds, and reaches nothing outside.
    pub(crate) const fn harmless_in_namespaces(mut self) -> Self {
        self.harmless_in_namespaces = true;
        self
    }

    /// Before Linux 6.12 it reaches other processes of the session in namespaces, and no others.
    pub(crate) const fn stays_in_session(mut self) -> Self {
        self.stays_in_session = true;
        self
    }

    fn script(&self, fixture: &SandboxFixture, outsider: &OutsideProcess) -> String {
        let mut script = String::new();
        for (name, path) in
            [("WORK", "work"), ("OUT", "outside"), ("LEDGER", "ledger"), ("USER_HOME", "home")]
        {
            writeln!(script, "export {name}='{}'", fixture.path(path).display()).unwrap();
        }
        writeln!(script, "export BIN='{}' {}", fixture.programs().display(), outsider.places).unwrap();
        // The reaper is the command's parent and Haft is the reaper's.
        script.push_str("export REAPER=$PPID HAFT=$(cut -d' ' -f4 /proc/$PPID/stat 2>/dev/null)\n");
        // In a pid namespace Haft has no number; its first process is the nearest to it.
        script.push_str("[ \"$HAFT\" != 0 ] || HAFT=1\n");
        script.push_str(PLANTING);
        match self.program {
            Program::Sh(text) => writeln!(script, "{text}").unwrap(),
            Program::Py(text) => {
                fixture.file("programs/attempt.py", &format!("{PRELUDE}{text}\n"));
                writeln!(script, "python3 -IS '{}'", fixture.path("programs/attempt.py").display()).unwrap();
            }
        }
        writeln!(script, "exit {REACHED_THE_END}").unwrap();
        script
    }

    /// Runs it and tells what harm it did.
    fn run(&self, user: User, held: Option<Isolation>) -> Vec<String> {
        let fixture = set(user);
        let outsider = OutsideProcess::start(&fixture);
        let script = self.script(&fixture, &outsider);
        let before = World::look(&fixture);
        // It goes last: until then all that is left behind can be seen.
        let pids_limit = (held.is_some() && self.limits_pids).then(PidsLimit::new);
        let ran = if let Some(isolation) = held {
            let mut flags = self.flags.to_vec();
            if !flags.contains(&"--timeout") {
                flags.extend(["--timeout", "60000"]);
            }
            let mut command = fixture.sandboxed(&flags, &script);
            command.env("HAFT_NAMESPACES", isolation.namespaces.to_string());
            if let Some(abi) = isolation.landlock_abi {
                command.env("HAFT_LANDLOCK_ABI", abi.to_string());
            }
            for name in [
                "OPENAI_API_KEY",
                "ANTHROPIC_API_KEY",
                "GITHUB_TOKEN",
                "AWS_SECRET_ACCESS_KEY",
                "LD_AUDIT_KEY",
            ] {
                command.env(name, CANARY);
            }
            command.env("https_proxy", format!("http://me:{CANARY}@127.0.0.1:9"));
            command.env("SSH_AUTH_SOCK", fixture.path("outside/stream.sock"));
            if let Some(pids_limit) = &pids_limit {
                pids_limit.hold(&mut command);
            }
            fixture.run(&mut command)
        } else {
            fixture.run(fixture.command("bash").args(["-c", &script]).env("OPENAI_API_KEY", CANARY))
        };
        let mut harm = self.judge(&ran, held.is_some());
        let left: Vec<_> = fixture.processes().into_iter().filter(|(id, _)| *id != outsider.id()).collect();
        harm.extend(left.into_iter().map(|(id, line)| format!("process {id} is left: {line}")));
        harm.extend(outsider.end());
        harm.extend(before.harm(&fixture));
        harm.extend(planted::found(&fixture));
        fixture.kill_processes();
        if !harm.is_empty() {
            harm.push(format!("exit {}; said: {}", ran.code, tail(&(ran.stdout + &ran.stderr))));
        }
        harm
    }

    fn judge(&self, ran: &RunOutput, held: bool) -> Vec<String> {
        let mut harm = Vec::new();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        if held && ran.code != self.code {
            harm.push(format!("it ended with {} instead of {}", ran.code, self.code));
        }
        if held && !said.contains(self.says) {
            harm.push(format!("it does not say {:?}", self.says));
        }
        if said.contains(CANARY) {
            harm.push("a secret was read".to_owned());
        }
        if said.contains("ESCAPED") {
            harm.push("it says that it escaped".to_owned());
        }
        if said.contains("command not found")
            || said.contains("no such attempt")
            || said.contains("SyntaxError")
        {
            harm.push("the attempt itself does not work".to_owned());
        }
        harm
    }
}

fn tail(text: &str) -> &str {
    let start = text.len().saturating_sub(1200);
    text.get(start..).unwrap_or(text)
}

const PRELUDE: &str = "import os, sys, socket, struct, ctypes, errno, stat, time, threading, mmap, fcntl\n\
libc = ctypes.CDLL(None, use_errno=True)\n\
WORK, OUT, USER_HOME, LEDGER = (os.environ[name] for name in ('WORK', 'OUT', 'USER_HOME', 'LEDGER'))\n\
VICTIM, TCP, UDP = (int(os.environ[name]) for name in ('VICTIM', 'TCP', 'UDP'))\n\
def tried(act, *args, **more):\n    \
    try:\n        return act(*args, **more)\n    \
    except OSError as error:\n        print(getattr(act, '__name__', act), error)\n";

/// Programs for git to run, and a key that names one; each leaves a trace outside.
const PLANTING: &str = "plant() { printf '#!/bin/sh\\ntouch %s/pwned\\n' $OUT > $1; chmod +x $1; }\n\
plant_hooks() { mkdir -p $1; plant $1/pre-commit; }\n\
plant_key() { printf '[core]\\n\\tfsmonitor = touch %s/pwned #\\n' $OUT > $1; }\n";

/// The fixture for attempts: secrets, settings, a repository, and files outside that all belong to the user.
fn set(user: User) -> SandboxFixture {
    let fixture = SandboxFixture::new(user);
    // It makes its ledger only where nothing else lies.
    fixture.haft(&["log"]);
    for (name, text) in [
        ("work/notes.txt", "mine\n"),
        ("work/sub/inner.txt", "mine\n"),
        ("work/.mcp.json", "{}\n"),
        ("work/.claude/settings.json", "{}\n"),
        ("work/.envrc", "true\n"),
        ("work/pkg/.vscode/tasks.json", "{}\n"),
        ("outside/victim.txt", "outside\n"),
        ("outside/folder/victim.txt", "outside\n"),
        ("outside/program.sh", "#!/bin/sh\ntrue\n"),
        ("home/.bashrc", "true\n"),
        ("home/.profile", "true\n"),
        ("home/.cargo/config.toml", "\n"),
    ] {
        fixture.file(name, text);
    }
    for name in
        ["outside/empty", "home/.cache", "home/.local/bin", "home/.config/autostart", "home/.cargo/bin"]
    {
        fixture.dir(name);
    }
    for name in [
        "work/.env",
        "work/sub/.env.local",
        "work/.env.production",
        "outside/held",
        "home/.ssh/id_rsa",
        "home/.aws/credentials",
        "home/.netrc",
        "home/.config/gh/hosts.yml",
        "home/.npmrc",
        "home/.rye/credentials",
        "home/.rye/config.toml",
        "home/.local/share/uv/credentials/credentials.toml",
        "home/.stack/upload/credentials.json",
        "home/.cabal/config",
        "home/.dotnet/corefx/cryptography/x509stores/my/0123.pfx",
        "home/.opam/plugins/opam-publish/me.token",
        "ledger/private",
    ] {
        fixture.file(name, &format!("KEY={CANARY}\n"));
    }
    fixture.foreign("outside/foreign", &format!("KEY={CANARY}\n"));
    let set = fixture.unsandboxed(
        "git init -q && git add notes.txt && git commit -qm one && printf '#!/bin/sh\\n' > .git/hooks/pre-push && \
         chmod +x .git/hooks/pre-push",
    );
    assert_eq!(set.code, 0, "{}", set.stderr);
    fixture
}

/// What an escape could change.
struct World {
    outside: Tree,
    home: Tree,
    kernel: Vec<Option<String>>,
    mounts: Vec<String>,
}

/// Caches that a command may fill.
const CACHES: &[&str] = &[".cache", ".npm", ".cargo/registry", ".cargo/git"];
const OWN_MOUNTS: &[&str] = &["/", "/dev", "/dev/shm", "/proc", "/sys", "/tmp"];
const KERNEL: &[&str] = &[
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/domainname",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/vm/overcommit_memory",
    "/etc/passwd",
];

impl World {
    fn look(fixture: &SandboxFixture) -> Self {
        let kernel = KERNEL.iter().map(|path| fs::read_to_string(path).ok()).collect();
        Self {
            outside: walk(&fixture.path("outside"), &[]),
            home: walk(&fixture.path("home"), CACHES),
            kernel,
            mounts: mounts_in(&fixture.path("")),
        }
    }

    fn harm(&self, fixture: &SandboxFixture) -> Vec<String> {
        let now = World::look(fixture);
        let mut harm = Vec::new();
        harm.extend(
            differences(&self.outside, &now.outside).into_iter().map(|line| format!("outside: {line}")),
        );
        harm.extend(differences(&self.home, &now.home).into_iter().map(|line| format!("home: {line}")));
        for (path, (old, new)) in KERNEL.iter().zip(self.kernel.iter().zip(&now.kernel)) {
            if old != new {
                harm.push(format!("{path} is another"));
            }
        }
        if self.mounts != now.mounts {
            harm.push(format!("mounted: {:?}", now.mounts));
        }
        let private = fs::read_to_string(fixture.path("ledger/private")).unwrap_or_default();
        if !private.contains(CANARY) {
            harm.push("the ledger was written".to_owned());
        }
        harm
    }
}

/// The machine's own mounts and those that concern the directory. Others come and go, such as those of containers.
fn mounts_in(directory: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let directory = directory.to_str().unwrap().trim_end_matches('/');
    let is_own = |line: &str| line.split(' ').nth(1).is_some_and(|point| OWN_MOUNTS.contains(&point));
    mounts.lines().filter(|line| line.contains(directory) || is_own(line)).map(str::to_owned).collect()
}

/// Every attempt of a class, by everybody: none may do harm.
pub(crate) fn nothing_escapes(class: &str, table: &[Escape]) {
    for user in User::all() {
        nothing_escapes_from(*user, class, table);
    }
}

/// Every attempt of a class, by one user.
pub(crate) fn nothing_escapes_from(user: User, class: &str, table: &[Escape]) {
    let mut failures = String::new();
    for (index, escape) in table.iter().enumerate().filter(|(_, escape)| is_wanted(escape.name)) {
        for isolation in Isolation::all(user, index) {
            let reaches_session = isolation.landlock_abi.is_some() && escape.stays_in_session;
            if isolation.namespaces && (escape.harmless_in_namespaces || reaches_session) {
                continue;
            }
            for line in escape.run(user, Some(isolation)) {
                let (name, user, isolation) = (escape.name, user.word(), isolation.describe());
                writeln!(failures, "{class}, {name} ({user}, {isolation}): {line}").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// How often an attempt without a sandbox is repeated until it does harm.
const REAL_ATTEMPTS: usize = 5;

/// The same attempts without a sandbox: each must do its harm, or it proves nothing.
pub(crate) fn they_are_real(class: &str, table: &[Escape]) {
    let mut failures = String::new();
    for escape in table.iter().filter(|escape| is_wanted(escape.name)) {
        let tried = match escape.real {
            Real::Anyone => true,
            Real::Root => User::is_root(),
            Real::Untried => false,
        };
        // Repeated, because a process that has just been forked may not be recognizable yet.
        let does_harm = || (0..REAL_ATTEMPTS).any(|_| !escape.run(User::Current, None).is_empty());
        if tried && !does_harm() {
            writeln!(failures, "{class}, {}: it does no harm without a sandbox either", escape.name).unwrap();
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// For a look at one attempt: `ESCAPE=name cargo test --test escapes`.
fn is_wanted(name: &str) -> bool {
    std::env::var("ESCAPE").is_ok_and(|wanted| wanted == name) || std::env::var("ESCAPE").is_err()
}
