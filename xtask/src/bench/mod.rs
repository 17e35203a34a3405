//! `cargo xtask bench`: Haft against its peers, or against another build of itself, in one run, alternating, medians.

mod against;
mod agent;
mod commands;
mod files;
mod ledger;
mod mcp;
mod measure;
mod sample;
mod sandbox;
mod serve;
mod session;

use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Done;
use crate::workspace::Workspace;
use measure::Table;
use session::{McpSession, haft_mcp};

/// What the parts share.
pub(crate) struct Bench {
    haft: PathBuf,
    sample: sample::Sample,
    /// A directory on disk, for ledgers.
    homes: PathBuf,
    table: Table,
}

/// A workspace and a ledger for one measurement.
struct Place {
    workspace: TempDir,
    home: TempDir,
}

/// One group of measurements.
type Part = (&'static str, fn(&mut Bench) -> Done);

const PARTS: [Part; 9] = [
    ("grep", commands::grep),
    ("glob", commands::glob),
    ("start", commands::start),
    ("files", files::run),
    ("ledger", ledger::run),
    ("sandbox", sandbox::run),
    ("mcp", mcp::run),
    ("agent", agent::run),
    ("serve", serve::run),
];

/// The command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct BenchArgs {
    against: Option<PathBuf>,
    /// The program to measure, in place of a new build.
    haft: Option<PathBuf>,
    parts: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Done {
    let args = BenchArgs::parse(args)?;
    let workspace = Workspace::load()?;
    let haft = match &args.haft {
        Some(haft) => std::path::absolute(haft).map_err(|error| error.to_string())?,
        None => workspace.build_haft("dist")?,
    };
    let homes = workspace.built("bench-homes");
    std::fs::create_dir_all(&homes).map_err(|error| format!("{}: {error}", homes.display()))?;
    let mut bench = Bench {
        haft,
        sample: sample::Sample::make(&workspace.built("bench-sample"))?,
        homes,
        table: Table::default(),
    };
    if let Some(other) = &args.against {
        against::run(&mut bench, other)?;
    } else {
        for (name, part) in PARTS {
            if args.parts.is_empty() || args.parts.iter().any(|wanted| wanted == name) {
                part(&mut bench)?;
            }
        }
    }
    bench.table.print();
    let rows: Vec<Value> = bench.table.rows.iter().map(|row| json!(row)).collect();
    let path = workspace.built("bench.json");
    std::fs::write(&path, format!("{:#}\n", json!({"rows": rows}))).map_err(|error| error.to_string())?;
    println!("\nwritten to {}", path.display());
    Ok(())
}

impl BenchArgs {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut parsed = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            if arg == "--against" || arg == "--haft" {
                let path = args.next().ok_or_else(|| format!("{arg} needs the path of a haft binary"))?;
                let path = PathBuf::from(path);
                if !path.is_file() {
                    return Err(format!("{} is not a file", path.display()));
                }
                *(if arg == "--haft" { &mut parsed.haft } else { &mut parsed.against }) = Some(path);
            } else if PARTS.iter().any(|(name, _)| name == arg) {
                parsed.parts.push(arg.clone());
            } else {
                let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
                return Err(format!("bench has no part {arg}; there are {}", names.join(", ")));
            }
        }
        if parsed.against.is_some() && !parsed.parts.is_empty() {
            return Err("--against measures its own cases; name no parts".to_owned());
        }
        Ok(parsed)
    }
}

impl Bench {
    /// A workspace on the disk of the sample.
    fn place(&self) -> Result<Place, String> {
        self.place_in(&self.sample.scratch)
    }

    /// A workspace in memory, where there is such a file system: a disk's own speed would hide Haft's.
    fn place_in_memory(&self) -> Result<Place, String> {
        let memory = std::path::Path::new("/dev/shm");
        self.place_in(if memory.is_dir() { memory } else { &self.sample.scratch })
    }

    fn place_in(&self, base: &std::path::Path) -> Result<Place, String> {
        let make = |base| tempfile::tempdir_in(base).map_err(|error| error.to_string());
        Ok(Place { workspace: make(base)?, home: make(&self.homes)? })
    }
}

impl Place {
    fn serve(&self, haft: &std::path::Path) -> Result<McpSession, String> {
        McpSession::start(&mut haft_mcp(haft, self.home.path(), self.workspace.path()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_another_build_are_named_on_the_command_line() {
        let parse =
            |args: &[&str]| BenchArgs::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>());
        assert_eq!(parse(&[]).unwrap(), BenchArgs::default());
        assert_eq!(parse(&["grep", "mcp"]).unwrap().parts, ["grep", "mcp"]);
        assert!(parse(&["greb"]).unwrap_err().contains("greb"));
        let program = std::env::current_exe().unwrap();
        let program = program.to_str().unwrap();
        assert_eq!(parse(&["--against", program]).unwrap().against.unwrap().to_str(), Some(program));
        assert!(parse(&["--against", program, "grep"]).is_err());
        assert!(parse(&["--against", "/nonexistent"]).is_err());
        assert!(parse(&["--against"]).is_err());
    }
}
