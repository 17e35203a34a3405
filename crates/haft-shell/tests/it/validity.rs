//! Agreement with bash: what it accepts, and what it runs.

use std::fs;
use std::process::{Command, Stdio};

use crate::fixture::{bash_accepts, table};

/// Mutations of the table that bash is asked about; `HAFT_FUZZ_CASES` raises it.
const MIN_MUTATIONS_COUNT: u32 = 300;

/// Scripts whose commands are names of two letters that do not exist.
const SCRIPTS: [&str; 45] = [
    "aa; bb && cc || dd & ee | ff",
    "aa $(bb `cc`) \"${x:-$(dd)}\" <(ee)",
    "aa <<E\n$(bb) ${y:-`cc`}\nE\ndd",
    "aa <<-\"E\" | bb\n$(cc)\n\tE\ndd",
    "aa <<A; bb <<B\n$(cc)\nA\n$(dd)\nB\nee",
    "aa <<E\"F\"\n$(xx)\nEF\nbb",
    "aa <<E\nE\\\nE\nE\nbb",
    "aa <<E\n\\$(xx) \\\\$(bb)\nE\ncc",
    "x=$(aa <<E\nbb\nE\n); cc",
    "case a in (a) aa;; b) xx; esac; cc",
    "case b in a) xx;; $(aa; echo b)) bb;& c) cc;; esac",
    "[[ $(aa) == b || -n `bb` ]] && cc; dd",
    "[[ a =~ ^(a|$(bb))$ ]] && cc",
    "f() { aa; bb; }; f; cc",
    "function f { aa; } ; f",
    "f() ( aa; ) ; f",
    "(( $(aa; echo 1) )) && bb",
    "aa $((1 + $(bb; echo 1))) $[2 + `cc; echo 1`]",
    "aa $((bb) | cc)",
    "eval 'aa; bb'; cc",
    "eval aa '$(bb)'",
    "trap 'aa' EXIT; bb",
    "{ aa; bb; } | cc",
    "(aa; (bb)) ; ( (cc) )",
    "aa &>/dev/null; bb 2>&1 |& cc",
    "if aa; then xx; elif bb; then xx; else cc; fi",
    "for i in $(aa) 2; do bb $i; done",
    "for ((i=0; i<2; i++)); do aa; done",
    "a[$(aa; echo 1)]=$(bb); cc",
    "a=(x $(aa) `bb`); cc ${a[$(dd; echo 0)]}",
    "aa \"a\\\"$(bb)\\\"\" '$(xx)' $'a\\'b$(xx)'; cc",
    "aa \\\n bb; c\\\nc",
    "aa # $(xx)\nbb #cc",
    "! aa; ! time bb",
    "echo ${x/$(aa)/\"$(bb)\"}${y:-\"a}b\"}; cc",
    "aa ${x:-\"}\"$(bb)}",
    "aa ${x:-'$(xx)'}; bb",
    "coproc aa; bb; wait",
    "time -p aa | bb",
    "aa `bb \"\\`cc\\`\"`",
    "x=1 aa; y=$(bb) cc",
    "aa > /dev/null < <(bb); cc",
    "aa;{ bb;};(cc)|dd&ee",
    "command aa; builtin echo x; \\bb; c\"\"c; $'\\144d'",
    "aa <<< $(bb); cc <<< \"`dd`\"",
];

#[test]
fn every_command_of_the_table_is_valid_where_bash_accepts_it() {
    for row in table() {
        let is_accepted = bash_accepts(&row.source);
        let expected = match row.verdict.as_str() {
            "refused" => {
                assert!(is_accepted, "commands.txt:{}: bash refuses it as well: {:?}", row.line, row.source);
                false
            }
            _ => is_accepted,
        };
        let complete = haft_shell::parse(&row.source).complete;
        assert_eq!(complete, expected, "commands.txt:{}: {:?}", row.line, row.source);
    }
}

#[test]
fn nothing_that_bash_refuses_is_clear() {
    let sources: Vec<String> = table().into_iter().map(|row| row.source).collect();
    let tokens: Vec<&str> = sources.iter().flat_map(|source| tokens(source)).collect();
    let mut random = Random(7);
    for _ in 0..haft_fuzz::cases().max(MIN_MUTATIONS_COUNT) {
        let mut mutated = tokens_of_one(&sources, &mut random);
        for _ in 0..=random.below(2) {
            mutate(&mut mutated, &tokens, &mut random);
        }
        let source = mutated.concat();
        let script = haft_shell::parse(&source);
        assert!(!script.is_clear() || bash_accepts(&source), "bash refuses {source:?}");
    }
}

#[test]
fn commands_that_bash_runs_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    for source in SCRIPTS {
        let script = haft_shell::parse(source);
        let listed: Vec<String> = script.commands.iter().filter_map(haft_shell::Invocation::name).collect();
        let run = names_that_bash_runs(source, directory.path());
        assert!(!run.is_empty(), "{source:?} runs nothing");
        for name in run {
            assert!(listed.contains(&name), "{source:?} runs {name}; listed are {listed:?}");
        }
    }
}

/// Runs a script without any program, and returns the names that bash looked for.
fn names_that_bash_runs(source: &str, directory: &std::path::Path) -> Vec<String> {
    let (log, startup) = (directory.join("log"), directory.join("startup"));
    let handler =
        format!("PATH=/nonexistent\ncommand_not_found_handle() {{ echo \"$1\" >> '{}'; }}\n", log.display());
    fs::write(&startup, handler).unwrap();
    fs::write(&log, "").unwrap();
    Command::new("bash")
        .args(["-c", source])
        .current_dir(directory)
        .env("BASH_ENV", &startup)
        .stdin(Stdio::null())
        // This waits until the pipes are closed, which commands in the background hold as well.
        .output()
        .unwrap();
    fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect()
}

/// Words, spaces and single signs.
fn tokens(source: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let end =
            if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        tokens.push(&rest[..end]);
        rest = &rest[end..];
    }
    tokens
}

fn tokens_of_one<'a>(sources: &'a [String], random: &mut Random) -> Vec<&'a str> {
    loop {
        let tokens = tokens(&sources[random.below(sources.len())]);
        if !tokens.is_empty() {
            return tokens;
        }
    }
}

fn mutate<'a>(mutated: &mut Vec<&'a str>, tokens: &[&'a str], random: &mut Random) {
    if mutated.is_empty() {
        return;
    }
    let (at, other) = (random.below(mutated.len()), random.below(mutated.len()));
    let token = tokens[random.below(tokens.len())];
    match random.below(5) {
        0 => drop(mutated.remove(at)),
        1 => mutated.insert(at, token),
        2 => mutated[at] = token,
        3 => mutated.insert(at, mutated[at]),
        _ => mutated.swap(at, other),
    }
}

/// Numbers that are the same in each run, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}
