//! The witness: sees a sandboxed process tree's mutating system calls before they take effect, does those that the
//! scope allows on the program's behalf, and keeps what stood there before.
//!
//! A program in the sandbox has no right to write anything by itself (Landlock). It asks the kernel as always; the
//! kernel asks the witness; the witness reads the program's words once, finds the place, checks it, keeps the
//! before-image, acts, and hands over the result. What it checked is what it acts on, so no other thread of the
//! program can put something else in between.
//!
//! What lives where: `filter` says which calls come here, `notify` speaks with the kernel, `target` reads the
//! program, `paths` and `places` find and judge, `acts` act, `recorder`, `image` and `twins` remember, `census` counts.

mod acts;
mod audit;
mod census;
mod denials;
mod filter;
mod image;
mod notify;
mod paths;
mod places;
mod recorder;
mod rights;
mod supervisor;
mod survey;
mod target;
mod twins;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use haft_tool::{Change, Denial, ToolError};

use census::Census;
pub(crate) use census::Verdict;
pub(crate) use denials::Denials;
pub(crate) use filter::{Plan, program};
use notify::Listener;
use paths::Dirs;
pub(crate) use places::{Places, Shared};
use recorder::Recorder;
use supervisor::Supervisor;
use target::Umasks;

use haft_tool::Record;

/// What a command may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    None,
    /// The proxy on this machine that lets listed domains through.
    Proxy(SocketAddr),
    All,
}

/// What the witness of a command needs to know.
pub(crate) struct Setting {
    pub(crate) places: Places,
    pub(crate) reach: Reach,
    pub(crate) journal: Arc<dyn Record>,
    /// The process below which all of the command's are found.
    pub(crate) keeper: i32,
    pub(crate) verdict: Verdict,
    /// Ends the command.
    pub(crate) end: Box<dyn Fn() + Send>,
    /// Whether the command has Haft's own streams.
    pub(crate) inherits: bool,
    /// Says that nobody waits for what is left.
    pub(crate) stop: Arc<AtomicBool>,
}

/// What the witness saw.
pub(crate) struct Seen {
    pub(crate) changes: Vec<Change>,
    pub(crate) losses: Vec<String>,
    pub(crate) denials: Vec<Denial>,
}

/// What stands at a path now, with the hash of its bytes.
pub(crate) fn look_at(path: &std::path::Path) -> Option<haft_tool::Node> {
    let parent = path.parent()?;
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let dir = rustix::fs::open(parent, flags, rustix::fs::Mode::empty()).ok()?;
    image::look(&dir, path.file_name()?).ok().map(|image| image.node)
}

/// The witness of one command, at work.
pub(crate) struct Witness(JoinHandle<Result<Seen, ToolError>>);

impl Witness {
    /// Starts to answer. `listener` comes from the command's own process, which may die before it has one.
    pub(crate) fn start(
        listener: impl FnOnce() -> Option<OwnedFd> + Send + 'static,
        setting: Setting,
    ) -> Result<Self, ToolError> {
        let work = move || watch(listener(), setting);
        let thread = std::thread::Builder::new().name("haft-witness".to_owned()).stack_size(512 * 1024);
        let thread = thread.spawn(work);
        thread
            .map(Self)
            .map_err(|error| ToolError::io("no thread can be started to watch the command", &error))
    }

    /// What was seen, once no process is left.
    pub(crate) fn finish(self) -> Result<Seen, ToolError> {
        self.0.join().unwrap_or_else(|_| Err(ToolError::internal("the witness broke down")))
    }
}

fn watch(listener: Option<OwnedFd>, setting: Setting) -> Result<Seen, ToolError> {
    let recorder = Recorder::new(setting.journal);
    let shared = Arc::clone(&setting.places.shared);
    let Some(listener) = listener else {
        return Ok(Seen { changes: Vec::new(), losses: Vec::new(), denials: Vec::new() });
    };
    // The umask belongs to the whole process unless a thread takes a copy; this one has to change it for each call.
    own_umask();
    let mut supervisor = Supervisor {
        listener: Arc::new(Listener::new(listener)),
        places: setting.places,
        recorder,
        denials: Denials::default(),
        dirs: Dirs::default(),
        umasks: Umasks::default(),
        umask: None,
        rights: rights::Rights::now(),
        census: Census::new(setting.keeper, setting.verdict, setting.end),
        network: setting.reach,
        ports: Vec::new(),
        terminals: Vec::new(),
        inherits: setting.inherits,
        stop: setting.stop,
    };
    supervisor.run();
    shared.serve_no_more(&supervisor.ports);
    let Supervisor { recorder, mut denials, places, .. } = supervisor;
    let (mut changes, losses) = recorder.finish(&places.scope.roots)?;
    audit::audit(&mut changes, &places.scope, &mut denials);
    Ok(Seen { changes, losses, denials: denials.into_list() })
}

/// Gives this thread a umask of its own.
#[expect(unsafe_code, reason = "unshare has no safe wrapper")]
fn own_umask() {
    // SAFETY: only this thread's idea of umask and working directory is split off; Haft never relies on the latter.
    unsafe { libc::unshare(libc::CLONE_FS) };
}
