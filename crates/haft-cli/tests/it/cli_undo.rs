//! `haft undo` for people: what it takes, what it shows, conflicts, and previews of commands.

use serde_json::json;

use crate::fixture::cli::CliFixture;
use crate::fixture::terminal::Terminal;

fn write(cli: &CliFixture, name: &str, content: &str) {
    let ran = cli.call("Write", &json!({"file_path": cli.path(name), "content": content}));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A file with the contents 0 to 3, of which all but the first were written by calls 1 to 3, and another one by call 4.
fn four_calls() -> CliFixture {
    let cli = CliFixture::new();
    cli.write("a.txt", "0\n");
    for content in ["1\n", "2\n", "3\n"] {
        write(&cli, "a.txt", content);
    }
    write(&cli, "b.txt", "new\n");
    cli
}

#[test]
fn undo_takes_several_calls_the_last_ones_and_points_in_time() {
    for (arguments, content, has_other) in [
        (&["undo", "3", "4"][..], "2\n", false),
        (&["undo", "--last", "2"], "2\n", false),
        (&["undo", "-n", "99"], "0\n", false),
        (&["undo", "--to", "1"], "1\n", false),
        (&["undo", "--to", "3"], "3\n", false),
        (&["undo", "--since", "1h"], "0\n", false),
        (&["undo"], "3\n", false),
        (&["undo", "3"], "2\n", true),
    ] {
        let cli = four_calls();
        let ran = cli.haft(&[arguments, &["--yes"]].concat());
        assert_eq!(ran.code, 0, "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(cli.read("a.txt"), content, "{arguments:?}");
        assert_eq!(cli.path("b.txt").exists(), has_other, "{arguments:?}");
        assert_eq!(cli.haft(&["redo", "--yes"]).code, 0, "{arguments:?}");
        assert_eq!(
            (cli.read("a.txt").as_str(), cli.read("b.txt").as_str()),
            ("3\n", "new\n"),
            "{arguments:?}"
        );
    }
    let cli = four_calls();
    assert_eq!(cli.haft(&["undo", "--to", "4", "--yes"]).code, 1, "nothing came after it");
    assert_eq!(cli.haft(&["undo", "--to", "99", "--yes"]).code, 4);
    assert_eq!(cli.haft(&["undo", "--since", "2999-01-01", "--yes"]).code, 1);
    assert_eq!(cli.haft(&["undo", "2", "--last", "1"]).code, 2);
}

#[test]
fn undo_of_some_paths_leaves_the_rest_of_the_call_and_says_so() {
    let cli = CliFixture::new();
    std::fs::create_dir(cli.path("src")).unwrap();
    cli.write("src/a", "a\n");
    cli.write("b", "b\n");
    let ran = cli.haft(&["sandbox", "--", "sh", "-c", "echo 1 > src/a; echo 1 > b; echo 1 > src/new"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = cli.haft(&["undo", "1", "--yes", "--", "src"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("1 change of these calls outside the given paths will stay"),
        "{}",
        ran.stderr
    );
    assert_eq!((cli.read("src/a").as_str(), cli.read("b").as_str()), ("a\n", "1\n"));
    assert!(!cli.path("src/new").exists());
    // The call does not count as undone: the rest can be undone, and what was undone can be redone.
    let log = cli.haft(&["log"]).stdout;
    assert!(!log.contains("undone by") && log.contains("of 1, partly"), "{log}");
    assert_eq!(cli.haft(&["redo", "--yes"]).code, 0);
    assert_eq!(cli.read("src/a"), "1\n");
    assert_eq!(cli.haft(&["undo", "--yes", "--", "b"]).code, 0, "the last call that changed it");
    assert_eq!(cli.haft(&["undo", "1", "--yes"]).code, 0);
    assert_eq!((cli.read("src/a").as_str(), cli.read("b").as_str()), ("a\n", "b\n"));
    let none = cli.haft(&["undo", "1", "--yes", "--", "elsewhere"]);
    assert_eq!(none.code, 1, "{}", none.stderr);
}

#[test]
fn preview_begins_with_what_comes_back_and_counts_new_files() {
    let cli = CliFixture::new();
    for name in ["deleted", "overwritten"] {
        cli.write(name, "old\n");
    }
    let script = "rm deleted; echo new > overwritten; mkdir -p out/deep; for n in 1 2 3 4 5; do echo $n > out/$n; done; echo x > out/deep/x";
    assert_eq!(cli.haft(&["sandbox", "--", "sh", "-c", script]).code, 0);
    let shown = cli.haft(&["undo", "--dry-run"]).stdout;
    assert_eq!(
        shown,
        "create deleted\n@@ -0,0 +1 @@\n+old\nchange overwritten\n@@ -1 +1 @@\n-new\n+old\n\
         remove 6 new files and 2 new directories:\n  ./  1 deleted\n  out/  7 deleted\n"
    );
}

#[test]
fn conflict_names_the_file_and_the_call_that_changed_it() {
    let cli = CliFixture::new();
    cli.write("a.txt", "0\n");
    write(&cli, "a.txt", "1\n");
    write(&cli, "a.txt", "2\n");
    let ran = cli.haft(&["undo", "1", "--yes"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("conflict: a.txt has changed since the call, by call 2 (Write)"),
        "{}",
        ran.stdout
    );
    cli.write("a.txt", "by hand\n");
    let ran = cli.haft(&["undo", "2", "--yes"]);
    assert!(
        ran.stdout.contains("conflict: a.txt has changed since the call, outside Haft"),
        "{}",
        ran.stdout
    );
}

#[test]
fn merge_takes_back_the_call_and_keeps_what_changed_since_in_other_lines() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\ntwo\nthree\nfour\nfive\n");
    cli.call("Edit", &json!({"file_path": cli.path("a.txt"), "old_string": "one", "new_string": "1"}));
    cli.write("a.txt", "1\ntwo\nthree\nfour\nfive\nby hand\n");
    let refused = cli.haft(&["undo", "--yes"]);
    assert!(refused.code == 1 && refused.stderr.contains("--merge"), "{}", refused.stderr);
    assert_eq!(cli.read("a.txt"), "1\ntwo\nthree\nfour\nfive\nby hand\n");
    let merged = cli.haft(&["undo", "--yes", "--merge"]);
    assert_eq!(merged.code, 0, "{}{}", merged.stdout, merged.stderr);
    assert_eq!(cli.read("a.txt"), "one\ntwo\nthree\nfour\nfive\nby hand\n");
    assert_eq!(cli.haft(&["redo", "--yes"]).code, 0);
    assert_eq!(cli.read("a.txt"), "1\ntwo\nthree\nfour\nfive\nby hand\n");
    // The same line cannot be merged.
    cli.write("a.txt", "uno\ntwo\nthree\nfour\nfive\n");
    let refused = cli.haft(&["undo", "1", "--yes", "--merge"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("not everything can be merged"),
        "{}",
        refused.stderr
    );
    assert_eq!(cli.read("a.txt"), "uno\ntwo\nthree\nfour\nfive\n");
}

#[test]
fn terminal_is_asked_whether_to_merge() {
    let cli = CliFixture::new();
    cli.write("a.txt", "one\ntwo\nthree\n");
    cli.call("Edit", &json!({"file_path": cli.path("a.txt"), "old_string": "one", "new_string": "1"}));
    cli.write("a.txt", "1\ntwo\n3\n");
    for (answer, content) in [("n", "1\ntwo\n3\n"), ("y", "one\ntwo\n3\n")] {
        let mut terminal = Terminal::run(cli.command(&["undo"]));
        terminal.sees("Merge? [y/N]");
        terminal.types(answer);
        if answer == "y" {
            terminal.sees("Undo call 1? [y/N]");
            terminal.types("y");
        }
        terminal.ends();
        assert_eq!(cli.read("a.txt"), content);
    }
}

#[test]
fn previewed_command_is_kept_or_discarded_as_the_user_says() {
    for (answer, content) in [("n", "old\n"), ("y", "new\n")] {
        let cli = CliFixture::new();
        cli.write("a.txt", "old\n");
        let command = ["sandbox", "--preview", "--", "sh", "-c", "echo new > a.txt"];
        let mut terminal = Terminal::run(cli.command(&command));
        terminal.sees("+new");
        terminal.sees("Keep 1 change? [y/N]");
        terminal.types(answer);
        assert_eq!(terminal.ends().0, 0);
        assert_eq!(cli.read("a.txt"), content);
    }
    let cli = CliFixture::new();
    cli.write("a.txt", "old\n");
    let kept = cli.haft(&["sandbox", "--preview=keep", "--", "sh", "-c", "echo new > a.txt"]);
    assert!(kept.stdout.contains("+new"), "{}{}", kept.stdout, kept.stderr);
    assert_eq!(cli.read("a.txt"), "new\n");
    assert_eq!(cli.haft(&["undo", "--yes"]).code, 0, "what was kept is recorded");
    assert_eq!(cli.read("a.txt"), "old\n");
}

#[test]
fn housekeeping_removes_what_is_old_once_a_day_and_says_so() {
    let cli = CliFixture::new();
    let old = std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 200);
    let cache = tempfile::tempdir().unwrap();
    let read = |cli: &CliFixture| {
        let arguments = json!({"file_path": cli.path("none")}).to_string();
        let ran =
            cli.command(&["call", "Read", &arguments]).env("HAFT_CACHE", cache.path()).output().unwrap();
        String::from_utf8(ran.stderr).unwrap()
    };
    assert!(!read(&cli).contains("housekeeping"), "the first day begins now");
    let detached = cli.home().join("detached");
    let cached = cache.path().join("0123456789abcdef");
    std::fs::create_dir_all(cached.join("caches")).unwrap();
    std::fs::create_dir_all(&detached).unwrap();
    let (gone, stays) = (detached.join("1-4194303.txt"), detached.join("2-4194302.txt"));
    for file in [&gone, &stays] {
        std::fs::write(file, "output").unwrap();
    }
    let age = |path: &std::path::Path| std::fs::File::open(path).unwrap().set_modified(old).unwrap();
    age(&gone);
    age(&cached);
    age(&cli.home().join("housekeeping"));
    std::fs::write(cli.config(), "[ledger]\nhousekeeping = false\n").unwrap();
    assert!(!read(&cli).contains("housekeeping"), "it is off");
    std::fs::write(cli.config(), "[ledger]\nmax_age = \"90d\"\nmax_size = \"1G\"\n").unwrap();
    let said = read(&cli);
    assert!(
        said.contains("housekeeping removed the caches of 1 workspace")
            && said.contains("1 output of detached"),
        "{said}"
    );
    assert!(!gone.exists() && stays.exists() && !cached.exists());
    age(&stays);
    assert!(!read(&cli).contains("housekeeping"), "once a day");
    assert!(stays.exists());
}
