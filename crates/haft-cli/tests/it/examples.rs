//! Every example in the README, the docs and the help texts runs as it is printed.
//!
//! The examples of one page or help text run one after the other, in a sample project, at a terminal where every question is
//! answered with yes.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;

/// How many calls the sample project has behind it: examples name calls by number.
const EARLIER_CALLS: usize = 30;

/// Examples that are not run, by how they begin, and why. Keep it short.
const NOT_RUN: &[(&str, &str)] = &[
    ("haft exec", "needs a model"),
    ("haft sessions export --from", "needs a transcript of another agent"),
    ("cargo ", "builds Haft itself"),
    ("haft    ", "is a session, which waits for messages"),
    ("haft -p '", "needs a model"),
    ("haft -p --continue", "needs a model"),
    ("haft run --model", "needs a model"),
    ("git diff | haft -p", "needs a model"),
    ("haft undo --run", "needs a run"),
    ("claude ", "needs Claude Code"),
    ("source <(haft completion zsh)", "needs zsh"),
    ("haft completion fish | source", "needs fish"),
    ("haft sandbox --network ", "needs a network"),
    ("haft sandbox -- npm install", "needs a network"),
    ("haft sandbox --agent ", "needs an agent and its login"),
    ("haft mcp --", "serves until it is stopped"),
    ("haft mcp   ", "serves until it is stopped"),
    ("HAFT_MCP_TOKEN=… haft mcp --http", "serves until it is stopped"),
    ("haft gateway ", "serves until it is stopped"),
    ("haft serve --open", "serves until it is stopped"),
    ("haft serve --listen", "serves until it is stopped"),
    ("haft serve --url", "needs a server that runs"),
    ("env $(haft serve --url", "needs a server that runs"),
    ("haft mcp add git ", "needs uvx and a network"),
    ("haft mcp add files ", "needs npx and a network"),
    ("haft mcp get git", "needs the server git"),
    ("haft mcp test git", "needs the server git"),
    ("haft mcp call git ", "needs the server git"),
    ("haft mcp remove git", "needs the server git"),
    ("haft mcp login docs", "needs a server with a login"),
    ("haft mcp trust tests", "needs a project with a server"),
];

#[test]
fn every_example_of_the_documentation_runs_as_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md"), root.join("crates/haft-cli/README.md")];
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    pages.extend(
        docs.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "md")),
    );
    let mut count = 0;
    for page in pages {
        let examples = console_commands(&std::fs::read_to_string(&page).unwrap());
        count += examples.len();
        run_all(&page.display().to_string(), &examples);
    }
    assert!(count > 20, "only {count} examples were found");
}

#[test]
fn every_example_of_the_help_runs_as_printed() {
    let cli = CliFixture::new();
    let mut commands = vec![Vec::new()];
    let mut count = 0;
    while let Some(command) = commands.pop() {
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.push("--help");
        let help = cli.haft(&words).stdout;
        for name in subcommands(&help) {
            commands.push(command.iter().cloned().chain([name]).collect());
        }
        let examples = help_examples(&help);
        count += examples.len();
        run_all(&format!("haft {}", command.join(" ")), &examples);
    }
    assert!(count > 15, "only {count} examples were found");
}

#[test]
fn no_reason_for_not_running_an_example_is_out_of_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = String::new();
    for place in ["README.md", "docs", "crates/haft-cli/README.md", "crates/haft-cli/src/cli"] {
        append_texts(&root.join(place), &mut all);
    }
    for (beginning, reason) in NOT_RUN {
        assert!(all.contains(beginning), "no example begins with {beginning:?} ({reason})");
    }
}

fn append_texts(path: &Path, all: &mut String) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            append_texts(&entry.unwrap().path(), all);
        }
    } else if let Ok(text) = std::fs::read_to_string(path) {
        all.push_str(&text);
    }
}

/// The lines after `$ ` in blocks of the language `console`.
fn console_commands(page: &str) -> Vec<String> {
    let (mut commands, mut inside) = (Vec::new(), false);
    for line in page.lines() {
        match line.trim_start().strip_prefix("```") {
            Some(language) => inside = !inside && language == "console",
            None if inside => commands.extend(line.strip_prefix("$ ").map(str::to_owned)),
            None => {}
        }
    }
    commands
}

/// The indented lines below `Example:`, `Examples:` and other headings that introduce commands.
fn help_examples(help: &str) -> Vec<String> {
    let notes =
        help.lines().skip_while(|line| !line.starts_with("Example") && !line.starts_with("To use it"));
    let indented = notes.skip(1).take_while(|line| line.starts_with("  "));
    indented.map(|line| line.trim().to_owned()).collect()
}

fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn run_all(origin: &str, examples: &[String]) {
    let is_run = |example: &&String| !NOT_RUN.iter().any(|(beginning, _)| example.starts_with(beginning));
    let run: Vec<_> = examples.iter().filter(is_run).collect();
    if run.is_empty() {
        return;
    }
    let mut project = SampleProject::new();
    for example in run {
        // What one of them has undone another one cannot.
        if example.starts_with("haft undo") {
            project = SampleProject::new();
        }
        let (code, text) = project.run(example);
        assert_eq!(code, 0, "{origin}: $ {example}\n{text}");
    }
}

/// A project with what the examples name.
struct SampleProject {
    cli: CliFixture,
    home: tempfile::TempDir,
}

impl SampleProject {
    fn new() -> Self {
        let (cli, home) = (CliFixture::new(), tempfile::tempdir().unwrap());
        std::fs::create_dir(cli.path("src")).unwrap();
        cli.write("src/main.rs", "// TODO: say more\nfn main() {\n    println!(\"hello\");\n}\n");
        cli.write("notes.txt", "tea\n");
        cli.write("cases.txt", "allow Bash(git status)\n");
        cli.write("Makefile", "test:\n\t@echo tested\n");
        for script in ["migrate.sh", "suspicious.sh", "agent.sh"] {
            cli.write(script, "#!/bin/sh\necho done\n");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(cli.path(script), mode).unwrap();
        }
        std::fs::create_dir(home.path().join("bin")).unwrap();
        std::os::unix::fs::symlink(crate::fixture::haft_program(), home.path().join("bin/haft")).unwrap();
        let project = Self { cli, home };
        for number in 1..=EARLIER_CALLS {
            // The calls and the session that examples name.
            let path = match number {
                24 => "src/added.rs".to_owned(),
                26 => "src/main.rs".to_owned(),
                _ => format!("earlier-{number}.txt"),
            };
            let session: &[&str] = if number == 28 { &["--session", "review"] } else { &[] };
            let (path, content) =
                (format!("file_path={path}"), format!("content=fn main() {{}} // {number}"));
            let call = [&["call"], session, &["Write", &path, &content]].concat();
            let done = project.cli.haft(&call);
            assert_eq!(done.code, 0, "{}", done.stderr);
        }
        project
    }

    fn run(&self, example: &str) -> (i32, String) {
        let mut path = vec![self.home.path().join("bin")];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let mut command = Command::new("bash");
        command
            .args(["-c", example])
            .current_dir(self.cli.root())
            .env("PATH", std::env::join_paths(path).unwrap());
        command
            .env("HOME", self.home.path())
            .env("HAFT_HOME", self.cli.home())
            .env("HAFT_CONFIG", self.config());
        command.env("PAGER", "cat");
        let mut terminal = Terminal::run(command);
        // Typed ahead, for whatever is asked.
        terminal.press("y\ny\ny\n");
        terminal.ends()
    }

    fn config(&self) -> PathBuf {
        self.cli.config()
    }
}
