//! Comparison with git itself: what git writes passes, and the parser accepts what git accepts.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "the tests run git, and fail where something is unexpected"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{new_programs, parse};

fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .args(["-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env_remove("GIT_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn files_written_by_git_pass() {
    let kept = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(kept.path()).unwrap();
    git(&dir, &["init", "-q", "a"]);
    let (a, b) = (dir.join("a"), dir.join("b"));
    git(&a, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(&a, &["remote", "add", "up", "https://a.b/c.git"]);
    git(&a, &["config", "branch.autoSetupRebase", "always"]);
    git(&a, &["checkout", "-q", "-b", "topic", "--track"]);
    git(&dir, &["clone", "-q", "--bare", "a", "c.git"]);
    git(&dir, &["clone", "-q", "a", "b"]);
    git(&b, &["submodule", "--quiet", "add", "../a", "deep/sub"]);
    git(&b, &["worktree", "add", "-q", "../tree"]);
    git(&b, &["sparse-checkout", "init"]);
    for config in ["a/.git/config", "b/.git/config", "b/.git/config.worktree", "c.git/config"] {
        let bytes = fs::read(dir.join(config)).unwrap();
        assert_eq!(new_programs(Path::new(".git/config"), b"", &bytes), [""; 0], "{config}");
    }
    let module = b.join(".git/modules/deep/sub/config");
    let bytes = fs::read(&module).unwrap();
    assert_eq!(new_programs(&module, b"", &bytes), [""; 0]);
    assert_eq!(
        new_programs(Path::new(".git/config"), b"", &bytes).len(),
        1,
        "from another place the same path leads elsewhere"
    );
}

/// Old versions of git turn tabs within a value to spaces.
fn without_tabs(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| if matches!(byte, b'\t' | b'\r') { b' ' } else { *byte }).collect()
}

/// The entries according to git and to the parser, in git's output format, each with whether the file is valid.
fn listed(bytes: &[u8], path: &Path) -> ((bool, Vec<u8>), (bool, Vec<u8>)) {
    fs::write(path, bytes).unwrap();
    let output = Command::new("git").args(["config", "--list", "-z", "--file"]).arg(path).output().unwrap();
    let ours = parse::parse(bytes);
    let mut list = Vec::new();
    for entry in &ours.entries {
        let section = &ours.sections[entry.section];
        list.extend(&section.name);
        list.extend((entry.section > 0).then_some(b'.'));
        list.extend(&entry.key);
        if let Some(value) = &entry.value {
            list.push(b'\n');
            list.extend(value);
        }
        list.push(0);
    }
    (
        (output.status.success(), without_tabs(&output.stdout)),
        (ours.error_line.is_none(), without_tabs(&list)),
    )
}

/// Tokens of the format in any order.
fn random_tokens() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[u8]] = &[
        b"[",
        b"]",
        b"\"",
        b"\\",
        b"\n",
        b"\r\n",
        b"\r",
        b" ",
        b"\t",
        b"=",
        b"#",
        b";",
        b".",
        b"-",
        b"core",
        b"B",
        b"7",
        b"\\n",
        b"\\t",
        b"\\b",
        b"\\\"",
        b"\\\\",
        b"\\\n",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\x0b",
        b"[core]\n",
        b"[a \"b\"]",
        b"\nkey = ",
        b"!x",
    ];
    prop::collection::vec(prop::sample::select(pieces), 0..24).prop_map(|parts| parts.concat())
}

/// Configurations that are mostly valid.
fn plausible_config() -> impl Strategy<Value = Vec<u8>> {
    let header =
        "(\\[[a-zA-Z0-9.-]{1,6}\\]|\\[[a-zA-Z.-]{0,4}[ \t]{1,2}\"([a-z A-Z.;#=\\]]|\\\\[\"\\\\a])*\"\\])";
    let value = "( |\t|[a-z]|\"[a-z #;\t]*\"|\\\\[ntb\"\\\\]|\\\\\r?\n|[\r\\[!=é])*([#;][a-z\" \\\\]*)?";
    let entry = format!("[ \t]*[a-zA-Z][a-zA-Z0-9-]{{0,5}}[ \t]*(={value})?\r?\n");
    let text = format!("(\u{feff})?({entry}){{0,1}}(({header})[ \t]*(\r?\n)?({entry}){{0,4}}){{0,4}}");
    prop::string::string_regex(&text).unwrap().prop_map(String::into_bytes)
}

#[test]
fn parser_agrees_with_git() {
    let kept = tempfile::tempdir().unwrap();
    let path = kept.path().join("config");
    let mut valid = 0;
    let mut runner =
        TestRunner::new(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) });
    let checked =
        runner.run(&prop_oneof![random_tokens(), plausible_config(), plausible_config()], |bytes| {
            let (git, ours) = listed(&bytes, &path);
            prop_assert_eq!(&git, &ours, "{:?}", String::from_utf8_lossy(&bytes));
            Ok(())
        });
    checked.unwrap();
    let mut runner = TestRunner::deterministic();
    for _ in 0..50 {
        let bytes = plausible_config().new_tree(&mut runner).unwrap().current();
        valid += usize::from(parse::parse(&bytes).error_line.is_none());
    }
    assert!(valid > 25, "only {valid} of 50 are valid: the comparison would be empty");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn any_bytes_are_accepted_as_input(
        old in prop::collection::vec(any::<u8>(), 0..200), new in random_tokens(), name in "[a-z./]{0,12}",
    ) {
        for (old, new) in [(&old, &new), (&new, &old)] {
            new_programs(Path::new(&name), old, new);
            super::named_paths(Path::new("/w/.git/config"), new);
            prop_assert!(new_programs(Path::new(&name), new, new).is_empty());
        }
    }
}
