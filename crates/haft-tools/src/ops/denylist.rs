//! Commands that are refused with a friendly word before they start. The sandbox is the boundary; this only saves the
//! caller a try. Words are read as a shell reads them, so that spacing, quotes and the order of flags change nothing.

/// Programs that only start another one, given behind them.
const STARTERS: &[&str] = &["command", "env", "exec", "nice", "nohup", "setsid", "time", "timeout", "xargs"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
/// How deep commands inside commands are looked at.
const MOST_DEPTH: usize = 8;

/// Why the command is not started, if it is not.
pub(crate) fn refusal(command: &str) -> Option<&'static str> {
    if is_fork_bomb(command) {
        return Some("a fork bomb");
    }
    looked_at(&command.to_lowercase(), MOST_DEPTH)
}

fn looked_at(command: &str, depth: usize) -> Option<&'static str> {
    let depth = depth.checked_sub(1)?;
    let parts = parts(command);
    let inner = parts.inner.iter().find_map(|inner| looked_at(inner, depth));
    inner.or_else(|| parts.commands.iter().find_map(|simple| judged(simple, depth)))
}

/// One simple command and its redirections.
#[derive(Debug, Default, PartialEq, Eq)]
struct Simple {
    words: Vec<String>,
    /// Where its output goes.
    outputs: Vec<String>,
}

fn judged(simple: &Simple, depth: usize) -> Option<&'static str> {
    if simple.outputs.iter().any(|target| target.starts_with("/dev/sd")) {
        return Some("a raw write to a disk");
    }
    // `NAME=value` in front is not the program.
    let mut words = simple.words.as_slice();
    while let [first, rest @ ..] = words
        && is_assignment(first)
    {
        words = rest;
    }
    let name = |word: &str| word.rsplit('/').next().is_some_and(|name| STARTERS.contains(&name));
    if words.first().is_some_and(|first| name(first)) {
        // What a starter's own arguments are is not known, so each word might be the program.
        return (1..words.len()).find_map(|at| program(&words[at..], depth));
    }
    program(words, depth)
}

/// Judges a program by its name and its arguments.
fn program(words: &[String], depth: usize) -> Option<&'static str> {
    let [program, rest @ ..] = words else { return None };
    let program = program.rsplit('/').next().unwrap_or(program);
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.as_str()));
    match program {
        "sudo" => Some("more rights than the user gave (sudo)"),
        "shutdown" | "reboot" | "poweroff" => Some("the end of the whole machine"),
        "systemctl" if has(&["shutdown", "reboot", "poweroff"]) => Some("the end of the whole machine"),
        "dd" if rest.iter().any(|word| word.starts_with("if=")) => Some("a raw copy to a disk (dd)"),
        "format" if rest.iter().any(|word| word.starts_with("c:")) => Some("the formatting of a disk"),
        program if program == "mkfs" || program.starts_with("mkfs.") => Some("the formatting of a disk"),
        "rm" if flag(rest, 'r', "recursive") && flag(rest, 'f', "force") && targets_root(rest) => {
            Some("the removal of the whole file system")
        }
        "chmod" if has(&["777", "0777"]) && targets_root(rest) => {
            Some("every right for everybody on the whole file system")
        }
        program if SHELLS.contains(&program) => {
            let script = rest.iter().skip_while(|word| !(is_flags(word) && word.ends_with('c'))).nth(1)?;
            looked_at(script, depth)
        }
        "eval" => looked_at(&rest.join(" "), depth),
        _ => None,
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

fn is_flags(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.len() > 1
}

fn flag(words: &[String], short: char, long: &str) -> bool {
    let long = format!("--{long}");
    words.iter().any(|word| *word == long || is_flags(word) && word.contains(short))
}

/// Whether one of the arguments is the root of the file system, or everything in it.
fn targets_root(words: &[String]) -> bool {
    words.iter().filter(|word| word.starts_with('/')).any(|word| {
        let mut names = word.split('/').filter(|name| !matches!(*name, "" | "." | ".."));
        matches!((names.next(), names.next()), (None, _) | (Some("*"), None))
    })
}

/// `:(){ :|:& };:` under any name and with any spacing.
fn is_fork_bomb(command: &str) -> bool {
    let packed: String = command.chars().filter(|c| !c.is_whitespace()).collect();
    packed.match_indices("(){").any(|(at, _)| {
        let name = packed[..at].rsplit([';', '&', '|', '\n']).next().unwrap_or_default();
        let name = name.strip_prefix("function").filter(|name| !name.is_empty()).unwrap_or(name);
        !name.is_empty() && packed[at + 3..].starts_with(&format!("{name}|{name}&}}"))
    })
}

/// The simple commands of a line, and the commands inside them.
#[derive(Debug, Default)]
struct Parts {
    commands: Vec<Simple>,
    inner: Vec<String>,
}

/// Reads a line as a shell would, as far as words, quotes, redirections and substitutions go.
fn parts(command: &str) -> Parts {
    let mut reader = Reader { parts: Parts::default(), simple: Simple::default(), word: None, output: false };
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => reader.extend(&chars.by_ref().take_while(|c| *c != '\'').collect::<String>()),
            '"' => {
                reader.extend("");
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => reader.extend(&chars.next().map(String::from).unwrap_or_default()),
                        '`' => reader.parts.inner.push(chars.by_ref().take_while(|c| *c != '`').collect()),
                        '$' if chars.next_if_eq(&'(').is_some() => {
                            reader.parts.inner.push(until_closed(&mut chars));
                        }
                        c => reader.extend(c.encode_utf8(&mut [0; 4])),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => reader.extend(c.encode_utf8(&mut [0; 4])),
            },
            '`' => reader.parts.inner.push(chars.by_ref().take_while(|c| *c != '`').collect()),
            '$' if chars.next_if_eq(&'(').is_some() => reader.parts.inner.push(until_closed(&mut chars)),
            '#' if reader.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' => {
                reader.end_word();
                while chars.next_if(|c| matches!(c, '>' | '|' | '&')).is_some() {}
                reader.output = true;
            }
            ' ' | '\t' | '\r' | '<' => reader.end_word(),
            ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' => reader.end_command(),
            c => reader.extend(c.encode_utf8(&mut [0; 4])),
        }
    }
    reader.end_command();
    reader.parts
}

/// What stands before the parenthesis that closes the one just opened.
fn until_closed(chars: &mut impl Iterator<Item = char>) -> String {
    let mut open = 1;
    chars
        .take_while(|c| {
            open += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            open > 0
        })
        .collect()
}

struct Reader {
    parts: Parts,
    simple: Simple,
    word: Option<String>,
    /// Whether the next word is where output goes.
    output: bool,
}

impl Reader {
    fn extend(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let list =
            if std::mem::take(&mut self.output) { &mut self.simple.outputs } else { &mut self.simple.words };
        list.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.output = false;
        let simple = std::mem::take(&mut self.simple);
        if simple != Simple::default() {
            self.parts.commands.push(simple);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_entry_of_the_list_is_refused_however_it_is_written() {
        for command in [
            "rm -rf /",
            "rm -r -f /",
            "rm  -fr   /",
            "RM -RF /",
            "rm -f --recursive -- //",
            "rm --force --recursive /*",
            "rm -rf /tmp/.. /./",
            "cd x && rm -rf /",
            "r\\m -rf '/'",
            "true; \"rm\" -rf /",
            "echo $(rm -rf /)",
            "echo \"`rm -rf /`\"",
            "sh -c 'rm -rf /'",
            "bash -lc \"cd /; rm -rf /\"",
            "FOO=1 env BAR=2 rm -rf /",
            "/bin/rm -rf /",
            "find . | xargs rm -rf /",
            "(rm -rf /)",
            "sudo ls",
            "ls; sudo\tls",
            "mkfs /dev/sda1",
            "mkfs.ext4 /dev/sda1",
            "dd if=/dev/zero of=/dev/sda",
            "dd bs=1M if=x",
            ":(){ :|:& };:",
            "bomb () { bomb|bomb & }; bomb",
            "chmod 777 /",
            "chmod -R 0777 /",
            "echo x > /dev/sda",
            "echo x>>/dev/sdb1",
            "cat x >| '/dev/sda'",
            "shutdown -h now",
            "/sbin/reboot",
            "poweroff",
            "systemctl reboot",
            "nohup poweroff &",
            "format c:",
            "FORMAT C: /q",
            "eval 'rm -rf /'",
        ] {
            assert!(refusal(command).is_some(), "{command}");
        }
    }

    #[test]
    fn what_only_looks_like_it_runs() {
        for command in [
            "",
            "rm -rf /tmp/x",
            "rm -rf ./build /tmp/x",
            "rm -r /",
            "rm -rf target",
            "grep shutdown file",
            "grep -r 'rm -rf /' .",
            "echo rm -rf / is bad",
            "echo 'sudo make me a sandwich'",
            "git commit -m 'reboot: shutdown path'",
            "cat reboot.log # poweroff",
            "chmod 777 /tmp/x",
            "chmod 755 /",
            "echo x > /dev/null",
            "dd --help",
            "cargo build --format c",
            "f() { echo x; }; f",
            "pseudo ls",
            "env | sort",
            "'unclosed",
            "$(",
            "${x",
        ] {
            assert_eq!(refusal(command), None, "{command}");
        }
    }

    #[test]
    fn deep_nesting_ends() {
        assert_eq!(refusal(&"$(".repeat(100_000)), None);
        assert_eq!(refusal(&"env ".repeat(2_000)), None);
    }
}
