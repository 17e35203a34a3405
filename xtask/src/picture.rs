//! `cargo xtask picture`: records a real terminal session and draws it as docs/undo.svg for the README.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use crate::Done;
use crate::workspace::{Workspace, root};

/// What the agent in the picture runs.
const AGENT: &str = "#!/bin/sh\n\
echo 'agent: cleaning up unused files'\n\
rm -rf src\n\
echo 'TODO: rewrite' > README.md\n\
echo 'agent: making myself at home'\n\
echo 'alias ls=true' >> /etc/bash.bashrc\n";

/// The commands as they are shown.
const COMMANDS: [&str; 4] = ["haft sandbox -- ./agent.sh", "ls", "haft undo --yes", "ls; cat README.md"];

const FONT_SIZE: usize = 14;
const LINE_HEIGHT: usize = 20;
const CHAR_WIDTH_TENTHS: usize = 84;
const MARGIN_PIXELS: usize = 16;
const TITLE_HEIGHT: usize = 34;

pub(crate) fn run() -> Done {
    let workspace = Workspace::load()?;
    let haft = workspace.build_haft("release")?;
    let file = root().join("docs/undo.svg");
    let lines = record(haft.parent().unwrap_or(&haft)).map_err(|error| format!("recording: {error}"))?;
    std::fs::write(&file, draw(&lines)).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("wrote {}", file.display());
    Ok(())
}

/// Runs the commands in a sample project and returns the lines of the terminal, with escape sequences.
fn record(programs: &Path) -> std::io::Result<Vec<String>> {
    let (project, home) = (tempfile::tempdir()?, tempfile::tempdir()?);
    std::fs::create_dir(project.path().join("src"))?;
    std::fs::write(project.path().join("src/main.rs"), "fn main() {}\n")?;
    std::fs::write(project.path().join("README.md"), "# My project\n")?;
    std::fs::write(project.path().join("agent.sh"), AGENT)?;
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let mut lines = Vec::new();
    for command in COMMANDS {
        lines.push(format!("\u{1b}[1;32m$\u{1b}[0m \u{1b}[1m{command}\u{1b}[0m"));
        let shell = format!("chmod +x agent.sh; {command}");
        let output = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {shell}")])
            .current_dir(project.path())
            .env("PATH", &path)
            .env("HAFT_HOME", home.path())
            .env("HAFT_CONFIG", home.path().join("haft.toml"))
            .env("CLICOLOR_FORCE", "1")
            .output()?;
        lines.extend(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned));
    }
    Ok(lines)
}

/// Draws the lines in a terminal window.
fn draw(lines: &[String]) -> String {
    let widest =
        lines.iter().map(|line| spans(line).iter().map(|(_, text)| text.chars().count()).sum()).max();
    let width = MARGIN_PIXELS * 2 + widest.unwrap_or(0) * CHAR_WIDTH_TENTHS / 10;
    let height = TITLE_HEIGHT + MARGIN_PIXELS + lines.len() * LINE_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"A terminal: an agent deletes files, haft undo restores them\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    for (place, colour) in [(20, "#ff5f56"), (40, "#ffbd2e"), (60, "#27c93f")] {
        let _ = writeln!(svg, "<circle cx=\"{place}\" cy=\"18\" r=\"6\" fill=\"{colour}\"/>");
    }
    let _ = writeln!(
        svg,
        "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"{FONT_SIZE}\" xml:space=\"preserve\">"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = TITLE_HEIGHT + (number + 1) * LINE_HEIGHT - 6;
        let _ = write!(svg, "<text x=\"{MARGIN_PIXELS}\" y=\"{y}\" fill=\"#d7dae0\">");
        for (style, text) in spans(line) {
            let _ = write!(svg, "<tspan{style}>{}</tspan>", escaped(&text));
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Splits a line at its SGR escape sequences; each part has the SVG attributes of its style.
fn spans(line: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let (mut style, mut rest) = (String::new(), line);
    while let Some(start) = rest.find("\u{1b}[") {
        if start > 0 {
            all.push((style.clone(), rest[..start].to_owned()));
        }
        let Some(end) = rest[start..].find('m') else { break };
        for code in rest[start + 2..start + end].split(';') {
            match code {
                "" | "0" => style.clear(),
                "1" => style.push_str(" font-weight=\"bold\""),
                "2" => style.push_str(" fill=\"#8a919e\""),
                "31" => style.push_str(" fill=\"#ff7b72\""),
                "32" => style.push_str(" fill=\"#7ee787\""),
                "33" => style.push_str(" fill=\"#e3b341\""),
                "36" => style.push_str(" fill=\"#76d9e6\""),
                _ => {}
            }
        }
        rest = &rest[start + end + 1..];
    }
    if !rest.is_empty() {
        all.push((style, rest.to_owned()));
    }
    all
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
