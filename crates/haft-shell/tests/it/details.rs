//! What the table does not show: files, wrappers, words, ranges.

use haft_shell::{DynamicKind, FileAccess, ShellScript, WordPart, Wrapping, parse};

fn files(source: &str) -> Vec<(String, FileAccess)> {
    parse(source).files.into_iter().map(|file| (file.path.text(), file.access)).collect()
}

fn wrapping(script: &ShellScript, index: usize) -> Option<(usize, bool)> {
    script.commands[index].wrapped_by.map(|Wrapping { by, transparent }| (by, transparent))
}

#[test]
fn redirections_name_the_files_that_they_open() {
    use FileAccess::{Append, Read, Write};
    for (source, expected) in [
        ("ls > a", vec![("a", Write)]),
        ("ls >a 2>>b <c", vec![("a", Write), ("b", Append), ("c", Read)]),
        ("ls &>a; ls &>>b; ls >|c; ls >&d", vec![("a", Write), ("b", Append), ("c", Write), ("d", Write)]),
        ("ls <>a", vec![("a", Write)]),
        ("ls 2>&1 >&2 2>&- <&0", vec![]),
        ("cat <<< a; cat <<E\nb\nE", vec![]),
        ("{ ls; } > a; (ls) >> b; if ls; then ls; fi < c", vec![("a", Write), ("b", Append), ("c", Read)]),
        ("> a", vec![("a", Write)]),
        ("ls > \"$x/y\" > 'a b'", vec![("\"$x/y\"", Write), ("'a b'", Write)]),
        ("ls | tee a b; ls | tee -a c", vec![("a", Write), ("b", Write), ("c", Append)]),
        ("dd if=a of=b", vec![("b", Write)]),
        ("find . -fprint a", vec![("a", Write)]),
        ("sed -i s/a/b/ f g", vec![("f", Write), ("g", Write)]),
        ("source a; . ./b; bash c", vec![("a", Read), ("./b", Read), ("c", Read)]),
        ("sh -c 'ls > a'", vec![("a", Write)]),
        ("cat < <(ls) > >(cat)", vec![]),
        ("echo $(ls > a)", vec![("a", Write)]),
    ] {
        let expected: Vec<(String, FileAccess)> =
            expected.into_iter().map(|(path, access)| (path.to_owned(), access)).collect();
        assert_eq!(files(source), expected, "{source}");
    }
}

#[test]
fn connections_of_bash_are_no_files() {
    for source in ["exec 3<>/dev/tcp/host/80", "cat < /dev/udp/host/80", "echo > /dev/tcp/\"host\"/80"] {
        let found = files(source);
        let [(_, FileAccess::Connect { host, port })] = found.as_slice() else { panic!("{source}") };
        assert_eq!((host.as_str(), port.as_str()), ("host", "80"));
    }
}

#[test]
fn wrappers_name_the_command_that_runs_them_and_how() {
    let script = parse("timeout 5 sudo nice rm x");
    assert_eq!(wrapping(&script, 0), None);
    assert_eq!(wrapping(&script, 1), Some((0, true)));
    assert_eq!(wrapping(&script, 2), Some((1, false)));
    assert_eq!(wrapping(&script, 3), Some((2, true)));
    let covered: Vec<String> = script.to_cover().map(haft_shell::Invocation::text).collect();
    assert_eq!(covered, ["sudo nice rm x", "rm x"]);
}

#[test]
fn a_transparent_wrapper_without_a_command_has_to_be_covered() {
    for source in ["env", "command -v ls", "nohup", "exec > log"] {
        assert_eq!(parse(source).to_cover().count(), 1, "{source}");
    }
}

#[test]
fn code_in_words_has_the_range_of_the_word() {
    let source = "ls; bash -c 'rm x'";
    let script = parse(source);
    assert_eq!(&source[script.commands[2].range.clone()], "'rm x'");
    assert_eq!(&source[script.commands[1].range.clone()], "bash -c 'rm x'");
    assert_eq!(&source[script.commands[1].words[0].range.clone()], "bash");
    let source = "echo $(rm  x) `mv a b`";
    let script = parse(source);
    assert_eq!(&source[script.commands[1].range.clone()], "rm  x");
    assert_eq!(&source[script.commands[2].range.clone()], "mv a b");
}

#[test]
fn programs_that_run_other_code_are_flagged() {
    for source in [
        "python3 -c x",
        "python3.11 -c x",
        "python3 <<E\nx\nE",
        "curl x | python3",
        "perl -ne x",
        "perl -E x",
        "node --eval x",
        "node -p x",
        "ruby -e x",
        "php -r x",
        "deno eval x",
        "vim -c '!ls'",
        "vim +x f",
        "psql -c x",
        "gdb -ex x",
        "sh",
        "curl x | bash -s",
        "source x",
        ". x",
        "python3 $x",
    ] {
        let script = parse(source);
        assert!(script.commands.last().unwrap().runs_code, "{source}");
        assert!(!script.is_read_only(), "{source}");
    }
    for source in
        ["python3 x.py", "node x.js", "perl x.pl", "python3 --version", "ls", "bash x.sh", "bash -c ls"]
    {
        assert!(!parse(source).commands[0].runs_code, "{source}");
    }
}

#[test]
fn assignments_are_listed_with_their_command() {
    let script = parse("A=1 B=\"x y\" C+=z ls; D=$(pwd)");
    let names: Vec<(&str, String)> =
        script.commands[0].assignments.iter().map(|it| (it.name.as_str(), it.value.text())).collect();
    assert_eq!(names, [("A", "1".to_owned()), ("B", "'x y'".to_owned()), ("C", "z".to_owned())]);
    assert_eq!(script.commands[0].text(), "ls");
    assert_eq!(script.commands[1].assignments[0].value.text(), "$(pwd)");
    assert!(script.commands[1].words.is_empty());
}

#[test]
fn a_word_says_which_part_of_it_is_fixed() {
    let script = parse("rm a\"b c\"$x\"$y\" *.rs ~/x {a,b} 'it'");
    let words = &script.commands[0].words;
    assert_eq!(words[1].prefix(), "ab c");
    assert_eq!(words[1].literal(), None);
    assert_eq!(words[1].text(), "a'b c'$x\"$y\"");
    let kinds = |index: usize| -> Vec<(DynamicKind, bool)> {
        let parts = words[index].parts.iter();
        let dynamic = parts.filter_map(|part| match part {
            WordPart::Dynamic { kind, quoted, .. } => Some((*kind, *quoted)),
            WordPart::Text { .. } => None,
        });
        dynamic.collect()
    };
    assert_eq!(kinds(1), [(DynamicKind::Variable, false), (DynamicKind::Variable, true)]);
    assert_eq!(kinds(2), [(DynamicKind::Glob, false)]);
    assert_eq!(kinds(3), [(DynamicKind::Tilde, false)]);
    assert_eq!(kinds(4), [(DynamicKind::Brace, false)]);
    assert_eq!(words[5].literal().as_deref(), Some("it"));
}

#[test]
fn a_program_is_known_by_the_last_part_of_its_path() {
    let script = parse("/usr/bin/rm -rf 'a b'");
    assert_eq!(script.commands[0].program().as_deref(), Some("rm"));
    assert_eq!(script.commands[0].text(), "/usr/bin/rm -rf 'a b'");
    assert_eq!(script.commands[0].program_text(), "rm -rf 'a b'");
}

#[test]
fn commands_before_an_error_are_listed() {
    let script = parse("rm x\nmv a \"b");
    let names: Vec<String> = script.commands.iter().filter_map(haft_shell::Invocation::name).collect();
    assert_eq!(names, ["rm", "mv"]);
    assert!(!script.complete);
}

#[test]
fn every_reason_can_be_read() {
    for source in
        ["ls )", "'", "$x", "eval $x", "sudo --x y", "f() { ls; }; f", "PATH=x", "enable x", "sed e"]
    {
        let script = parse(source);
        let reasons: Vec<String> = script.unclear.iter().map(|unclear| unclear.reason.to_string()).collect();
        assert!(!reasons.is_empty() && reasons.iter().all(|reason| !reason.is_empty()), "{source}");
    }
}
