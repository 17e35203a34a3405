//! The table of commands, and bash.

use std::io::Write;
use std::process::{Command, Stdio};

/// One line of the table.
pub(crate) struct TableRow {
    pub(crate) line: usize,
    pub(crate) verdict: String,
    pub(crate) source: String,
    pub(crate) commands: Vec<String>,
}

/// The table in `commands.txt`, whose first lines explain it.
pub(crate) fn table() -> Vec<TableRow> {
    let lines = include_str!("commands.txt").lines().enumerate();
    let rows = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    rows.map(|(index, line)| {
        let (verdict, rest) = line.split_once("  ").unwrap();
        let (source, commands) = match rest.trim_start().rsplit_once(" ==>") {
            Some((source, commands)) => {
                let commands = commands.split(" ;; ").map(str::trim).filter(|command| !command.is_empty());
                (source, commands.map(decode).collect())
            }
            None => (rest.trim_start(), vec![decode(rest.trim_start())]),
        };
        TableRow { line: index + 1, verdict: verdict.to_owned(), source: decode(source), commands }
    })
    .collect()
}

/// The text with its line breaks, tabs and characters by number.
fn decode(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<U+") {
        let (number, after) = after.split_once('>').unwrap();
        decoded.push_str(before);
        decoded.push(char::from_u32(u32::from_str_radix(number, 16).unwrap()).unwrap());
        rest = after;
    }
    decoded.push_str(rest);
    decoded.replace('⏎', "\n").replace('⇥', "\t")
}

/// Whether `bash -n` accepts a script. It reports some errors without failing.
pub(crate) fn bash_accepts(source: &str) -> bool {
    let mut bash = Command::new("bash")
        .arg("-n")
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // bash may end before it has read everything.
    let _ = bash.stdin.take().unwrap().write_all(source.as_bytes());
    let output = bash.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    output.status.success() && messages.lines().all(|line| line.contains("warning"))
}
