//! Undo of what a sandboxed command changed: moves, hard links, thousands of files, and after Haft was killed.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::fixture::cli::CliFixture;
use crate::fixture::wait_until;
use haft::json;

/// Everything in a tree with its mode, and its bytes or where it points.
fn tree(root: &Path) -> Vec<(PathBuf, u32, Vec<u8>)> {
    let (mut found, mut todo) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = todo.pop() {
        for path in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            let meta = path.symlink_metadata().unwrap();
            let bytes = if meta.is_symlink() {
                path.read_link().unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_dir() {
                todo.push(path.clone());
                Vec::new()
            } else if meta.is_file() {
                fs::read(&path).unwrap()
            } else {
                b"special".to_vec()
            };
            found.push((path, meta.permissions().mode(), bytes));
        }
    }
    found.sort();
    found
}

fn planted() -> CliFixture {
    let cli = CliFixture::new();
    for name in ["src/deep/a.txt", "src/deep/b.txt", "docs/c.txt"] {
        fs::create_dir_all(cli.path(name).parent().unwrap()).unwrap();
        cli.write(name, &format!("{name}\n"));
    }
    fs::hard_link(cli.path("docs/c.txt"), cli.path("docs/twin.txt")).unwrap();
    cli
}

/// Runs a command, takes it back, does it again and takes it back again.
fn there_and_back(cli: &CliFixture, command: &str) {
    let before = tree(cli.root());
    let ran = cli.call("Bash", &json!({"command": command}));
    assert_eq!(ran.code, 0, "{command}: {}{}", ran.stdout, ran.stderr);
    let after = tree(cli.root());
    assert!(after != before, "{command} changed nothing");
    for (word, left) in [("undo", &before), ("redo", &after), ("undo", &before)] {
        let ran = cli.haft(&[word, "--yes"]);
        assert_eq!(ran.code, 0, "{command}: {word}: {}{}", ran.stdout, ran.stderr);
        assert!(tree(cli.root()) == *left, "{command}: {word}");
    }
}

#[test]
fn moves_of_directories_with_changes_around_them_are_taken_back() {
    let cli = planted();
    for command in [
        "echo 1 >> src/deep/a.txt && mv src lib && echo 2 >> lib/deep/a.txt && rm lib/deep/b.txt",
        "mv src a && mv a b && mv b src2 && mkdir src && echo new > src/deep",
        "mv src/deep docs/deep && rm -rf src && mv docs src",
        "mkdir new && mv src new/src && mv docs new/src/docs && chmod 700 new/src && touch new/src/docs/x",
        "mv docs keep && mkdir docs && cp keep/c.txt docs/ && rm -rf keep",
    ] {
        there_and_back(&cli, command);
    }
    let ran = cli.call("Bash", &json!({"command": "mv src lib && echo x >> lib/deep/a.txt"}));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let show = cli.haft(&["show", "21"]).stdout;
    let preview = cli.haft(&["undo", "--dry-run"]).stdout;
    assert!(preview.contains("move back lib to src"), "{preview}\n{show}");
    cli.write("src", "in the way");
    let refused = cli.haft(&["undo", "--yes", "--force"]);
    assert_eq!((refused.code, cli.read("src").as_str()), (1, "in the way"), "{}", refused.stderr);
}

#[test]
fn a_file_changed_in_place_comes_back_under_all_its_names() {
    let cli = planted();
    let number = |name: &str| fs::metadata(cli.path(name)).unwrap().ino();
    there_and_back(&cli, "echo more >> docs/c.txt");
    assert_eq!(number("docs/c.txt"), number("docs/twin.txt"), "still one file");
    there_and_back(&cli, "ln docs/c.txt third && ln -s nowhere link && truncate -s 0 docs/c.txt");
    assert_eq!(number("docs/c.txt"), number("docs/twin.txt"), "still one file");
}

#[test]
fn what_was_written_under_a_name_that_went_comes_back_under_the_others_or_is_told() {
    let cli = planted();
    let number = |path: PathBuf| fs::metadata(path).unwrap().ino();
    there_and_back(&cli, "echo more >> docs/c.txt && rm docs/c.txt");
    assert_eq!(number(cli.path("docs/c.txt")), number(cli.path("docs/twin.txt")), "one file again");

    let outside = tempfile::tempdir_in(cli.root().parent().unwrap()).unwrap();
    let other = outside.path().join("other");
    fs::hard_link(cli.path("src/deep/a.txt"), &other).unwrap();
    let ran = cli.call("Bash", &json!({"command": "echo more >> src/deep/a.txt && rm src/deep/a.txt"}));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let show = cli.haft(&["show", "5"]).stdout;
    assert!(show.contains("a.txt had other names (hard links) outside the scope"), "{show}");
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert_eq!(cli.read("src/deep/a.txt"), "src/deep/a.txt\n");
    assert_eq!(fs::read_to_string(other).unwrap(), "src/deep/a.txt\n", "outside, nothing changed");
}

#[test]
fn a_special_file_that_a_command_made_goes() {
    let cli = planted();
    let before = tree(cli.root());
    let ran = cli.call("Bash", &json!({"command": "mkfifo docs/pipe"}));
    assert_eq!((ran.code, cli.path("docs/pipe").exists()), (0, true), "{}", ran.stderr);
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert!(tree(cli.root()) == before);
}

#[test]
fn thousands_of_files_are_told_in_a_few_lines_and_taken_back() {
    let cli = planted();
    fs::create_dir(cli.path("many")).unwrap();
    for n in 0..300 {
        cli.write(&format!("many/{n}"), &format!("old {n}\n"));
    }
    let before = tree(cli.root());
    let command =
        "for n in $(seq 0 299); do echo new > many/$n; done; mkdir made; cd made; touch $(seq 1 2000)";
    let ran = cli.call("Bash", &json!({"command": command}));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let show = cli.haft(&["show", "1"]);
    assert!(show.stdout.contains("many/  300 modified"), "{}", show.stdout);
    assert!(
        show.stdout.contains("made/  2000 created") && show.stdout.contains("./  1 created"),
        "{}",
        show.stdout
    );
    assert!(show.stdout.contains("2301 changes; haft show 1 --all lists them"), "{}", show.stdout);
    let all = cli.haft(&["show", "1", "--all"]).stdout;
    assert!(all.contains("modified many/299\n") && all.contains("created  made/2000\n"), "{all}");
    assert!(cli.haft(&["log"]).stdout.contains("2301 changed"));
    let preview = cli.haft(&["undo", "--dry-run"]).stdout;
    assert!(preview.contains("made/  2000 deleted"), "{preview}");
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0);
    assert!(tree(cli.root()) == before);
}

#[test]
fn a_command_whose_haft_is_killed_can_be_taken_back() {
    let cli = planted();
    let before = tree(cli.root());
    let command = "echo 1 >> src/deep/a.txt; mv src lib; echo 2 >> lib/deep/a.txt; mv docs/c.txt new.txt; echo 3 >> new.txt; \
                   mkdir -p made/deep; echo x > made/deep/x; touch ready; sleep 600";
    let mut child = cli.command(&["call", "Bash", &json!({"command": command}).to_string()]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until(|| cli.path("ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let log = cli.haft(&["log"]).stdout;
    assert!(log.contains("interrupted"), "{log}");
    let undo = cli.haft(&["undo", "--yes"]);
    assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
    assert!(tree(cli.root()) == before, "{}", undo.stdout);
    assert_eq!(fs::read_dir(cli.home().join("spool")).unwrap().count(), 0);
}
