//! The workspace where no flag names one: the project of the current directory.

use std::path::Path;

use crate::fixture::cli::{CliFixture, RunOutput};
use serde_json::Value;

fn haft_in(cli: &CliFixture, directory: &Path, args: &[&str]) -> RunOutput {
    cli.command(args).current_dir(directory).env("HOME", cli.root()).output().unwrap().into()
}

#[test]
fn log_undo_rules_and_settings_are_the_same_in_every_subdirectory() {
    let cli = CliFixture::new();
    let top = cli.path("project");
    let below = top.join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(top.join("haft.toml"), "[permissions]\ndeny = [\"Write(secret.txt)\"]\n").unwrap();
    let ran = haft_in(&cli, &below, &["call", "Write", "file_path=x.txt", "content=x"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(below.join("x.txt").exists(), "typed paths start in the current directory");
    assert_eq!(haft_in(&cli, &below, &["call", "Write", "file_path=../secret.txt", "content=x"]).code, 3);
    for directory in [&below, &top] {
        assert!(haft_in(&cli, directory, &["log"]).stdout.contains("a/b/x.txt"));
    }
    let pwd = haft_in(&cli, &below, &["call", "Bash", "command=pwd"]);
    assert!(pwd.stdout.ends_with("/project/a/b\n"), "{}", pwd.stdout);
    let pwd = haft_in(&cli, &below, &["sandbox", "sh", "-c", "pwd; touch ../../at-the-top"]);
    assert!(pwd.stdout.ends_with("/project/a/b\n"), "{}", pwd.stdout);
    assert!(top.join("at-the-top").exists(), "the whole project is the workspace");
    assert_eq!(haft_in(&cli, &below, &["undo", "--yes"]).code, 0);
    assert!(!top.join("at-the-top").exists());
}

#[test]
fn a_settings_file_marks_a_project_before_a_repository_does() {
    let cli = CliFixture::new();
    let top = cli.path("project");
    std::fs::create_dir_all(top.join("nested/.git")).unwrap();
    let workspace = |directory: &Path| {
        let ran = haft_in(&cli, directory, &["call", "Bash", "command=true", "--json"]);
        let value: Value = serde_json::from_str(&ran.stdout).unwrap();
        value["receipt"]["workspace"].as_str().unwrap().to_owned()
    };
    assert!(workspace(&top.join("nested")).ends_with("/project/nested"));
    std::fs::write(top.join("haft.toml"), "").unwrap();
    assert!(workspace(&top.join("nested")).ends_with("/project"));
}

#[test]
fn a_home_with_a_repository_does_not_become_the_workspace() {
    let cli = CliFixture::new();
    let below = cli.path("some/where");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::create_dir(cli.path(".git")).unwrap();
    let ran = haft_in(&cli, &below, &["call", "Bash", "command=echo x > ../outside"]);
    assert!(ran.stderr.contains(".git is not taken as the top of the project"), "{}", ran.stderr);
    assert!(!cli.path("some/outside").exists(), "only the current directory may be written");
}

#[test]
fn doctor_fails_where_calls_would_fail() {
    let cli = CliFixture::new();
    let ran = cli.haft(&["doctor"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let above = cli.home().parent().unwrap();
    let ran = haft_in(&cli, above, &["doctor", "--workspace", cli.home().to_str().unwrap()]);
    assert!(ran.code == 1 && ran.stdout.contains("lies inside"), "{}", ran.stdout);
    cli.write("haft.toml", "[permissions]\ndeny = [\"NoSuchTool\"]\n");
    let ran = cli.haft(&["doctor"]);
    assert!(ran.code == 1 && ran.stdout.contains("names no tool"), "{}", ran.stdout);
    cli.write("haft.toml", "not toml");
    let ran = cli.haft(&["doctor"]);
    assert!(ran.code == 1 && ran.stdout.contains("correct the file"), "{}", ran.stdout);
    assert_eq!(cli.haft(&["call", "Bash", "command=true"]).code, 2);
}
