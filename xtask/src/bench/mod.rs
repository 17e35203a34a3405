//! `cargo xtask bench`: Haft against its peers, in one run, alternating, medians.

mod commands;
mod files;
mod ledger;
mod mcp;
mod measure;
mod sample;
mod sandbox;
mod warm;

use std::process::Command;

use haft::{Builder, Runtime};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::Done;
use crate::peers::{FD, RIPGREP};
use measure::Table;

/// What the benches share.
pub(crate) struct Bench {
    pub(crate) haft: std::path::PathBuf,
    pub(crate) rg: std::path::PathBuf,
    pub(crate) fd: std::path::PathBuf,
    pub(crate) sample: sample::Sample,
    pub(crate) table: Table,
}

/// A workspace and a ledger for one measurement, on the disk that the sample is on.
pub(crate) struct Stage {
    pub(crate) folder: TempDir,
    home: TempDir,
}

impl Stage {
    pub(crate) fn new(bench: &Bench) -> Result<Self, String> {
        let make = || tempfile::tempdir_in(&bench.sample.scratch).map_err(|error| error.to_string());
        Ok(Self { folder: make()?, home: make()? })
    }

    pub(crate) fn runtime(&self, dress: impl FnOnce(Builder) -> Builder) -> Result<Runtime, String> {
        let builder = Runtime::builder().workspace(self.folder.path()).home(self.home.path());
        dress(builder).build().map_err(|error| error.to_string())
    }
}

/// One group of measurements.
type Part = fn(&mut Bench) -> Done;

pub(crate) fn run(names: &[String]) -> Done {
    if cfg!(debug_assertions) {
        // Half of the benches run in this very process, so it has to be as fast as what people use.
        let status = Command::new("cargo")
            .args(["run", "--quiet", "--release", "-p", "xtask", "--", "bench"])
            .args(names)
            .status();
        return match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(error.to_string()),
        };
    }
    let built = Command::new("cargo").args(["build", "--quiet", "--release", "-p", "haft-cli"]).status();
    if !built.is_ok_and(|status| status.success()) {
        return Err("haft does not build".to_owned());
    }
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no root")?;
    let mut bench = Bench {
        haft: root.join("target/release/haft"),
        rg: RIPGREP.find()?,
        fd: FD.find()?,
        sample: sample::Sample::make(&root.join("target/bench-sample"))?,
        table: Table::default(),
    };
    let parts: [(&str, Part); 8] = [
        ("grep", commands::grep),
        ("glob", commands::glob),
        ("start", commands::start),
        ("files", files::run),
        ("dispatch", warm::run),
        ("ledger", ledger::run),
        ("sandbox", sandbox::run),
        ("mcp", mcp::run),
    ];
    for (name, part) in parts {
        if names.is_empty() || names.iter().any(|wanted| wanted == name) {
            part(&mut bench)?;
        }
    }
    bench.table.print();
    let rows: Vec<Value> = bench.table.rows.iter().map(|row| json!(row)).collect();
    let path = root.join("target/bench.json");
    std::fs::write(&path, format!("{:#}\n", json!({"rows": rows}))).map_err(|error| error.to_string())?;
    println!("\nwritten to {}", path.display());
    Ok(())
}
