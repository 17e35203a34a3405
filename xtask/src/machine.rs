//! What the tests need from the machine: what is missing is named, and installed, before anything else happens.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use crate::peers::NEXTEST;
use crate::process::{on_path, output, run};
use crate::{Done, peers};

/// A program that comes from the system's packages.
#[derive(Clone, Copy)]
pub(crate) struct SystemProgram {
    program: &'static str,
    /// The Debian package that has it.
    package: &'static str,
    purpose: &'static str,
    /// Arguments with which the program must succeed; none if it is enough that it is there.
    probe: &'static [&'static str],
}

pub(crate) const BUBBLEWRAP: SystemProgram = SystemProgram {
    program: "bwrap",
    package: "bubblewrap",
    purpose: "the sandbox to compare with",
    probe: &[],
};

const ALWAYS: [SystemProgram; 3] = [
    SystemProgram {
        program: "cc",
        package: "build-essential",
        purpose: "SQLite, zstd and the escape tests",
        probe: &[],
    },
    SystemProgram { program: "git", package: "git", purpose: "the tests of repositories", probe: &[] },
    SystemProgram {
        program: "python3",
        package: "python3",
        purpose: "the tests' servers and scripts",
        probe: &[],
    },
];

/// Only the full test run needs these.
const FOR_PEERS: [SystemProgram; 4] = [
    SystemProgram {
        program: "chromium",
        package: "chromium",
        purpose: "the tests of the page of `haft serve`",
        probe: &[],
    },
    SystemProgram { program: "npm", package: "npm", purpose: "MCP's programs for Node.js", probe: &[] },
    SystemProgram {
        program: "python3",
        package: "python3-venv",
        purpose: "MCP's programs for Python",
        probe: &["-c", "import ensurepip, venv"],
    },
    SystemProgram { program: "tar", package: "tar", purpose: "published type definitions", probe: &[] },
];

/// Programs that must work in the sandbox as they do outside. Tests leave out what is missing.
const FOR_WORKLOADS: [SystemProgram; 6] = [
    in_sandbox("rsync", "rsync"),
    in_sandbox("tmux", "tmux"),
    in_sandbox("screen", "screen"),
    in_sandbox("gdb", "gdb"),
    in_sandbox("valgrind", "valgrind"),
    in_sandbox("psql", "postgresql"),
];

const fn in_sandbox(program: &'static str, package: &'static str) -> SystemProgram {
    SystemProgram { program, package, purpose: "the tests of programs in the sandbox", probe: &[] }
}

/// Says what is missing for the full test run, then installs the system packages among it.
pub(crate) fn prepare() -> Done {
    let missing: Vec<SystemProgram> =
        ALWAYS.into_iter().chain(FOR_PEERS).chain(FOR_WORKLOADS).filter(|program| !program.works()).collect();
    let later = peers::missing();
    if missing.is_empty() && later.is_empty() {
        println!("    everything is installed");
    }
    for program in &missing {
        println!("    {program}");
    }
    for peer in later {
        println!("    will be installed in {}: {peer}", peers::cache().display());
    }
    install(&missing)
}

/// Fails if something is missing for the quick test run, which installs nothing.
pub(crate) fn prepare_quick() -> Done {
    NEXTEST.require()?;
    let missing = ALWAYS.iter().filter(|program| !program.works()).map(ToString::to_string);
    let missing: Vec<String> = missing.collect();
    if missing.is_empty() { Ok(()) } else { Err(missing.join("; ")) }
}

impl fmt::Display for SystemProgram {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "missing: {} for {} (package {})", self.program, self.purpose, self.package)
    }
}

impl SystemProgram {
    /// The program's path, after installing it if this machine allows that.
    pub(crate) fn find(self) -> Result<PathBuf, String> {
        if !self.works() {
            println!("{self}");
            install(&[self])?;
        }
        on_path(self.program).ok_or_else(|| format!("{} is not on the PATH", self.program))
    }

    fn works(self) -> bool {
        let succeeds =
            || output(Command::new(self.program).args(self.probe)).is_ok_and(|it| it.status.success());
        on_path(self.program).is_some() && (self.probe.is_empty() || succeeds())
    }
}

/// Installs system packages where that needs no password: as root, with apt-get.
fn install(missing: &[SystemProgram]) -> Done {
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|program| program.package).collect();
    let listed = packages.join(" ");
    if !rustix::process::geteuid().is_root() || on_path("apt-get").is_none() {
        return Err(format!("install these packages, then start again: {listed}"));
    }
    println!("    installing system packages: apt-get install {listed}");
    run(Command::new("apt-get").args(["update", "-qq"]))?;
    run(Command::new("apt-get").args(["install", "-y", "-qq"]).args(packages))
}
