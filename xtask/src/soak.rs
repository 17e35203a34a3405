//! `cargo xtask soak`: hostile commands in one server for a long time, and ordinary calls beside them.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Done;
use crate::workspace::Workspace;

const DEFAULT_DURATION: Duration = Duration::from_mins(30);
/// Hostile commands that run at a time.
const HOSTILE_COUNT: usize = 8;
/// How long one of them may run.
const HOSTILE_TIMEOUT: Duration = Duration::from_secs(15);
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Calls before the hostile commands, to know how long a call takes by itself.
const QUIET_PROBE_COUNT: usize = 40;
/// How long a call may wait for hostile commands.
const ALLOWED_DELAY: Duration = Duration::from_millis(100);
/// A response that takes longer than this is a hang.
const HANG_TIMEOUT: Duration = Duration::from_mins(2);

/// What hostile commands do, each until its timeout, as Python programs.
const HOSTILE: [(&str, &str); 8] = [
    ("fork", "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"),
    (
        "connect",
        "import os, socket, threading\nname = 'backlog-%d' % os.getpid()\nlistener = socket.socket(socket.AF_UNIX); listener.bind(name); listener.listen(0)\n\
         def connect():\n  while True:\n    try: s = socket.socket(socket.AF_UNIX); s.connect(name)\n    except OSError: pass\n\
         threads = [threading.Thread(target=connect) for _ in range(50)]\n[t.start() for t in threads]",
    ),
    (
        "lease",
        "import fcntl, os\nname = 'lease-%d' % os.getpid()\nopen(name, 'w').close()\nfd = os.open(name, os.O_RDONLY)\n\
         while True:\n  try: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\n  except OSError: pass\n  os.close(os.open(name, os.O_WRONLY))",
    ),
    (
        "lock",
        "import fcntl, os\nfile = open('locked', 'a')\nfor _ in range(20):\n  if os.fork() == 0: break\n\
         while True:\n  fcntl.lockf(file, fcntl.LOCK_EX); file.write('x'); file.flush(); os.truncate('locked', 0); fcntl.lockf(file, fcntl.LOCK_UN)",
    ),
    (
        "pipe",
        "import os, threading\nname = 'pipe-%d' % os.getpid()\nos.mkfifo(name)\n\
         threads = [threading.Thread(target=lambda: open(name)) for _ in range(200)]\n[t.start() for t in threads]",
    ),
    (
        "map",
        "import mmap, os\nname = 'map-%d' % os.getpid()\nwhile True:\n  fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600); os.ftruncate(fd, 1 << 28)\n  \
         m = mmap.mmap(fd, 1 << 28)\n  for at in range(0, 1 << 28, 4096): m[at] = 1\n  m.close(); os.close(fd); os.unlink(name)",
    ),
    (
        "fill",
        "import os\nname = 'fill-%d' % os.getpid()\nblock = os.urandom(1 << 20)\nwhile True:\n  with open(name, 'wb') as f:\n    for _ in range(256): f.write(block)\n  \
         os.rename(name, name + '.old'); os.unlink(name + '.old')",
    ),
    (
        "names",
        "import os\nbase = 'names-%d' % os.getpid()\nos.mkdir(base)\nn = 0\nwhile True:\n  n += 1\n  d = '%s/%d' % (base, n % 500)\n  \
         try: os.mkdir(d); open(d + '/f', 'w').close(); os.rename(d, d + 'x'); os.chmod(d + 'x/f', 0o600)\n  except OSError: os.system('rm -rf ' + base + '/*')",
    ),
];

pub(crate) fn run(args: &[String]) -> Done {
    let (minutes, haft) = match args {
        [rest @ .., flag, path] if flag == "--haft" => (rest, PathBuf::from(path)),
        rest => (rest, Workspace::load()?.build_haft("release")?),
    };
    let duration = match minutes {
        [] => DEFAULT_DURATION,
        [minutes] => {
            let minutes: u64 =
                minutes.parse().map_err(|_| format!("{minutes} is not a number of minutes"))?;
            Duration::from_mins(minutes)
        }
        _ => return Err("soak takes a number of minutes and --haft PATH".to_owned()),
    };
    let text = |error: std::io::Error| error.to_string();
    // Not below /tmp, of which commands have a private one.
    let place = tempfile::Builder::new().prefix("haft-soak-").tempdir_in("/var/lib").map_err(text)?;
    let (workspace, home) = (place.path().join("work"), place.path().join("ledger"));
    for dir in [&workspace, &home] {
        std::fs::create_dir(dir).map_err(text)?;
    }
    std::fs::write(workspace.join("file.txt"), "content\n").map_err(text)?;
    let mounts = mount_count()?;

    let mut server = Server::start(&haft, &workspace, &home)?;
    let mut quiet = Delays::default();
    for round in 0..QUIET_PROBE_COUNT {
        quiet.probe(&mut server, round, &workspace)?;
    }
    quiet.print("by themselves");
    let mut computing = Delays::default();
    {
        let _programs = ComputingPrograms::start()?;
        for round in 0..QUIET_PROBE_COUNT {
            computing.probe(&mut server, round, &workspace)?;
        }
    }
    computing.print(&format!("beside {HOSTILE_COUNT} programs that only compute"));
    let delays = soak(&mut server, &workspace, duration)?;
    let memory = server.memory();
    server.stop()?;
    delays.print(&format!("beside {} hostile commands", server.started));
    println!("memory of the server: {memory}");
    nothing_is_left(place.path(), mounts)
}

/// As many programs as there are hostile commands, each in a session of its own, without Haft: they show how long calls wait
/// for the processor alone.
struct ComputingPrograms(Vec<Child>);

impl ComputingPrograms {
    fn start() -> Result<Self, String> {
        let mut programs = Self(Vec::new());
        for _ in 0..HOSTILE_COUNT {
            let program = Command::new("setsid").args(["sh", "-c", "while :; do :; done"]).spawn();
            programs.0.push(program.map_err(|error| format!("start setsid: {error}"))?);
        }
        Ok(programs)
    }
}

impl Drop for ComputingPrograms {
    fn drop(&mut self) {
        for program in &mut self.0 {
            // Without a terminal setsid does not fork, so this is the shell.
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn soak(server: &mut Server, workspace: &Path, duration: Duration) -> Result<Delays, String> {
    let start = Instant::now();
    let mut delays = Delays::default();
    let mut reported = start;
    for round in 0.. {
        if start.elapsed() > duration {
            break;
        }
        while server.hostile.len() < HOSTILE_COUNT {
            server.start_hostile()?;
        }
        let next = Instant::now() + PROBE_INTERVAL;
        delays.probe(server, round, workspace)?;
        server.wait_until(next)?;
        if reported.elapsed() > Duration::from_mins(1) {
            reported = Instant::now();
            let (seconds, started) = (start.elapsed().as_secs(), server.started);
            delays.print(&format!(
                "after {seconds} s and {started} hostile commands, memory {}",
                server.memory()
            ));
        }
    }
    Ok(delays)
}

/// How long calls took.
#[derive(Default)]
struct Delays {
    reads: Vec<Duration>,
    commands: Vec<Duration>,
}

impl Delays {
    /// Makes a call and waits for its response: a read or a command, in turn.
    fn probe(&mut self, server: &mut Server, round: usize, workspace: &Path) -> Done {
        let start = Instant::now();
        let (times, id) = if round.is_multiple_of(2) {
            (&mut self.reads, server.call("Read", &json!({"file_path": workspace.join("file.txt")}))?)
        } else {
            (&mut self.commands, server.call("Bash", &json!({"command": "true"}))?)
        };
        server.wait_for(id)?;
        times.push(start.elapsed());
        Ok(())
    }

    fn print(&self, when: &str) {
        println!("{when}:");
        for (kind, times) in [("Read", &self.reads), ("Bash", &self.commands)] {
            let mut sorted = times.clone();
            sorted.sort();
            let at = |percent: usize| {
                let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
                sorted.get(index).copied().unwrap_or_default().as_secs_f64() * 1e3
            };
            let over = sorted.iter().filter(|time| **time > ALLOWED_DELAY).count();
            println!(
                "  {} calls of {kind}: median {:.1} ms, 99 of 100 within {:.1} ms, slowest {:.1} ms, {over} over {} ms",
                sorted.len(),
                at(50),
                at(99),
                at(100),
                ALLOWED_DELAY.as_millis(),
            );
        }
    }
}

/// A server with many calls under way.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    responses: Receiver<Value>,
    /// The hostile commands that run, by the id of their calls.
    hostile: HashMap<u64, &'static str>,
    started: usize,
    last_id: u64,
}

impl Server {
    fn start(haft: &Path, workspace: &Path, home: &Path) -> Result<Self, String> {
        let mut command = Command::new(haft);
        command
            .arg("mcp")
            .current_dir(workspace)
            .env("HAFT_HOME", home)
            .env("HAFT_CONFIG", home.join("none"));
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| error.to_string())?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("a child without a pipe")?);
        let (sender, responses) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                if message.get("id").is_some() && sender.send(message).is_err() {
                    return;
                }
            }
        });
        let hostile = HashMap::new();
        let mut server = Self { child, input, responses, hostile, started: 0, last_id: 0 };
        let id = server.request(
            "initialize",
            &json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}),
        )?;
        server.wait_for(id)?;
        Ok(server)
    }

    fn request(&mut self, method: &str, params: &Value) -> Result<u64, String> {
        self.last_id += 1;
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        let input = self.input.as_mut().ok_or("the input is closed")?;
        writeln!(input, "{message}").map_err(|error| format!("the server ended: {error}"))?;
        Ok(self.last_id)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<u64, String> {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn start_hostile(&mut self) -> Done {
        let (name, program) = HOSTILE[self.started % HOSTILE.len()];
        self.started += 1;
        let command = format!("python3 - <<'END'\n{program}\nEND\n");
        let timeout = HOSTILE_TIMEOUT.as_millis();
        let id = self.call("Bash", &json!({"command": command, "timeout": timeout}))?;
        self.hostile.insert(id, name);
        Ok(())
    }

    /// Waits for the response of a call that must succeed.
    fn wait_for(&mut self, id: u64) -> Done {
        loop {
            let message = self.responses.recv_timeout(HANG_TIMEOUT).map_err(|error| match error {
                RecvTimeoutError::Timeout => format!("no response in {} s", HANG_TIMEOUT.as_secs()),
                RecvTimeoutError::Disconnected => "the server ended".to_owned(),
            })?;
            if message["id"] == id {
                let failed = message.get("error").is_some() || message["result"]["isError"] == true;
                return if failed { Err(format!("a call failed: {message}")) } else { Ok(()) };
            }
            self.finish_hostile(&message);
        }
    }

    fn wait_until(&mut self, time: Instant) -> Done {
        while let Some(rest) = time.checked_duration_since(Instant::now()) {
            match self.responses.recv_timeout(rest) {
                Ok(message) => self.finish_hostile(&message),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err("the server ended".to_owned()),
            }
        }
        Ok(())
    }

    fn finish_hostile(&mut self, message: &Value) {
        if let Some(id) = message["id"].as_u64() {
            self.hostile.remove(&id);
        }
    }

    /// Waits for the hostile commands, then for the server's end.
    fn stop(&mut self) -> Done {
        while !self.hostile.is_empty() {
            let message = self.responses.recv_timeout(HANG_TIMEOUT);
            let message =
                message.map_err(|_| format!("commands that never ended: {:?}", self.hostile.values()))?;
            self.finish_hostile(&message);
        }
        self.input = None;
        let status = self.child.wait().map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("the server ended with {status}")) }
    }

    fn memory(&self) -> String {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.unwrap_or("unknown").trim().to_owned()
    }
}

fn mount_count() -> Result<usize, String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    Ok(mounts.lines().count())
}

/// Fails if processes or mounts are left.
fn nothing_is_left(place: &Path, mounts_before: usize) -> Done {
    let mut left = Vec::new();
    for entry in std::fs::read_dir("/proc").map_err(|error| error.to_string())?.flatten() {
        let in_place = std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(place));
        if in_place {
            left.push(std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default());
        }
    }
    let mounts = mount_count()?;
    if left.is_empty() && mounts == mounts_before {
        println!("no process and no mount is left");
        return Ok(());
    }
    Err(format!("left behind: {left:?}, {mounts} mounts instead of {mounts_before}"))
}
