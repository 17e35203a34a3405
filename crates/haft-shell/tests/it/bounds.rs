//! Input that is long, deep or both.

use haft_shell::{MAX_COMMANDS_COUNT, MAX_SOURCE_BYTES, ShellScript, UnclearReason, parse};

fn has(script: &ShellScript, reason: UnclearReason) -> bool {
    script.unclear.iter().any(|unclear| unclear.reason == reason)
}

#[test]
fn a_source_of_the_greatest_length_is_read_and_a_longer_one_is_not() {
    let longest = format!("echo {}", "a".repeat(MAX_SOURCE_BYTES - "echo ".len()));
    assert!(parse(&longest).is_read_only());
    let longer = longest + "a";
    let script = parse(&longer);
    assert!(has(&script, UnclearReason::TooLong) && !script.complete && script.commands.is_empty());
}

#[test]
fn long_sources_of_many_kinds_are_read() {
    let repeated = |piece: &str| piece.repeat((MAX_SOURCE_BYTES / 4) / piece.len());
    for source in [
        format!("echo {}", repeated("a ")),
        format!("echo {}", repeated("\"$a\" ")),
        format!("echo '{}'", repeated("a\n")),
        format!("cat <<'E'\n{}\nE\n", repeated("$(a\n")),
        format!("cat <<E\n{}\nE\n", repeated("$a\n")),
        format!("#{}", repeated("a")),
        repeated("x=1 "),
        format!("echo $((1{}))", repeated("+$a")),
        format!("a=({})", repeated("a ")),
        format!("for x in {}; do ls; done", repeated("a ")),
    ] {
        assert!(parse(&source).is_clear(), "{source:.40}");
    }
}

#[test]
fn a_hundred_commands_are_listed() {
    let source = (0..100).map(|number| format!("echo {number}")).collect::<Vec<_>>().join(" && ");
    let script = parse(&source);
    assert!(script.is_read_only());
    assert_eq!(script.commands.len(), 100);
    assert_eq!(script.commands[99].text(), "echo 99");
}

#[test]
fn more_commands_than_the_limit_are_unclear() {
    for piece in ["ls | ", "ls; ", "ls && ", "$(ls) ", "`ls` ", "f() { ls; }; "] {
        let script = parse(&(piece.repeat(10_000) + "ls"));
        assert!(has(&script, UnclearReason::TooManyCommands), "{piece}");
        assert!(script.commands.len() <= MAX_COMMANDS_COUNT, "{piece}");
    }
    let inside = parse(&format!("sh -c '{}'", "ls; ".repeat(10_000)));
    assert!(has(&inside, UnclearReason::TooManyCommands));
}

#[test]
fn deep_nesting_is_unclear_and_does_not_overflow_the_stack() {
    for piece in [
        "( ",
        "$(",
        "<(",
        "${a:-",
        "\"$(",
        "{ ",
        "if ",
        "while ",
        "until ",
        "! (",
        "case a in a) ",
        "a=(",
        "a[$(",
        "$((",
        "((",
        "f() { ",
        "function f { ",
        "coproc { ",
        "[[ ( ",
        "[[ $(",
        "cat <<E\n$(",
        "echo `",
        "for a in $(",
        "$((a[",
    ] {
        let script = parse(&piece.repeat(20_000));
        assert!(!script.is_clear(), "{piece}");
    }
}

#[test]
fn wrappers_in_wrappers_end_at_the_limit() {
    for piece in ["sudo ", "env ", "xargs ", "timeout 1 ", "find . -exec ", "command "] {
        let script = parse(&(piece.repeat(1_000) + "ls"));
        assert!(has(&script, UnclearReason::TooDeep), "{piece}");
    }
    let mut code = "ls".to_owned();
    for _ in 0..12 {
        code = format!("eval '{}'", code.replace('\'', "'\\''"));
    }
    assert_eq!(parse(&code).commands.len(), 13);
}

#[test]
fn text_that_is_read_again_and_again_is_cut() {
    // Each level is first tried as arithmetic and then read as commands.
    let source = format!("echo {}1{}", "$((".repeat(30), ") )".repeat(30));
    assert!(!parse(&source).is_clear());
    let mut source = "ls".to_owned();
    for _ in 0..10 {
        source = format!("echo `{}`", source.replace('\\', "\\\\").replace('`', "\\`"));
    }
    assert_eq!(parse(&source).commands.len(), 11);
}

#[test]
fn runs_of_one_character_are_survived() {
    for byte in 0..=0x7f_u8 {
        let character = char::from(byte).to_string();
        drop(parse(&character.repeat(20_000)));
        drop(parse(&format!("ls {}", character.repeat(2_000))));
    }
}

#[test]
fn text_that_the_second_reader_scans_often_is_survived() {
    // Characters of several bytes, because the parser gets the text in pieces.
    for piece in ["15\n\u{fffd}", "é`ls` ", "日\n", "a\u{fffd}`b`\n"] {
        let script = parse(&piece.repeat(700));
        assert!(!script.commands.is_empty(), "{piece}");
    }
}

#[test]
fn null_bytes_and_lone_carriage_returns_are_unclear() {
    for source in ["ls\0x", "\0", "ls 'a\0b'", "ls\r", "ls\r\nrm x", "cat <<E\n\0\nE"] {
        assert!(has(&parse(source), UnclearReason::MisleadingCharacter), "{source:?}");
    }
}

#[test]
fn invalid_escapes_are_survived() {
    for source in [
        "echo $'\\x'",
        "echo $'\\u'",
        "echo $'\\U110000'",
        "echo $'\\400'",
        "echo $'\\c'",
        "echo $'\\q'",
        "echo \\",
    ] {
        assert_eq!(parse(source).commands.len(), 1, "{source}");
    }
    assert_eq!(parse("$'r\\0'm x").commands[0].text(), "rm x");
    assert_eq!(parse("echo $'\\377'").commands.len(), 1);
}

#[test]
fn an_empty_source_is_clear() {
    for source in ["", " ", "\n\n", "# comment"] {
        let script = parse(source);
        assert!(script.is_read_only() && script.commands.is_empty(), "{source:?}");
    }
}
