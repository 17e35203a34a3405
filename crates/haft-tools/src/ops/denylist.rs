//! Commands that are refused before they start. The sandbox is the boundary; this only saves the caller a try. Commands
//! are parsed into words as a shell does, so that spacing, quotes and the order of flags make no difference.

/// Programs that start another program, given in their arguments.
const LAUNCHERS: &[&str] = &["command", "env", "exec", "nice", "nohup", "setsid", "time", "timeout", "xargs"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh"];
/// How many commands inside commands are parsed.
const MAX_NESTED_COMMANDS: usize = 64;
/// How many arguments of a launcher are taken for the program that it starts.
const MAX_LAUNCHER_ARGUMENTS: usize = 256;

/// What the command looks like, if it is on the denylist.
pub(crate) fn denied(command: &str) -> Option<&'static str> {
    if is_fork_bomb(command) {
        return Some("a fork bomb");
    }
    let mut nested = vec![command.to_lowercase()];
    for _ in 0..MAX_NESTED_COMMANDS {
        let command = nested.pop()?;
        for simple in parse(&command, &mut nested) {
            if let Some(reason) = check(&simple, &mut nested) {
                return Some(reason);
            }
        }
    }
    None
}

/// One command without operators.
#[derive(Debug, Default, PartialEq, Eq)]
struct SimpleCommand {
    words: Vec<String>,
    /// The files that output is redirected to.
    outputs: Vec<String>,
}

fn check(command: &SimpleCommand, nested: &mut Vec<String>) -> Option<&'static str> {
    if command.outputs.iter().any(|target| target.starts_with("/dev/sd")) {
        return Some("a raw write to a disk");
    }
    let assignments = command.words.iter().take_while(|word| is_assignment(word)).count();
    let words = &command.words[assignments..];
    if words.first().is_some_and(|first| LAUNCHERS.contains(&file_name(first))) {
        // Any of its arguments may be the program.
        let end = words.len().min(MAX_LAUNCHER_ARGUMENTS);
        return (1..end).find_map(|at| check_program(&words[at..], nested));
    }
    check_program(words, nested)
}

fn check_program(words: &[String], nested: &mut Vec<String>) -> Option<&'static str> {
    let [program, arguments @ ..] = words else { return None };
    let has = |wanted: &[&str]| arguments.iter().any(|word| wanted.contains(&word.as_str()));
    match file_name(program) {
        "sudo" => Some("more rights than the user gave (sudo)"),
        "shutdown" | "reboot" | "poweroff" => Some("a shutdown of the machine"),
        "systemctl" if has(&["shutdown", "reboot", "poweroff"]) => Some("a shutdown of the machine"),
        "dd" if arguments.iter().any(|word| word.starts_with("if=")) => Some("a raw copy to a disk (dd)"),
        "format" if arguments.iter().any(|word| word.starts_with("c:")) => Some("the formatting of a disk"),
        name if name == "mkfs" || name.starts_with("mkfs.") => Some("the formatting of a disk"),
        "rm" if has_flag(arguments, 'r', "--recursive")
            && has_flag(arguments, 'f', "--force")
            && targets_root(arguments) =>
        {
            Some("the removal of the whole file system")
        }
        "chmod" if has(&["777", "0777"]) && targets_root(arguments) => {
            Some("full access for everybody to the whole file system")
        }
        name if SHELLS.contains(&name) && nested.len() < MAX_NESTED_COMMANDS => {
            let script = arguments.iter().skip_while(|word| !(is_flags(word) && word.ends_with('c'))).nth(1);
            nested.extend(script.cloned());
            None
        }
        "eval" if nested.len() < MAX_NESTED_COMMANDS => {
            nested.push(arguments.join(" "));
            None
        }
        _ => None,
    }
}

fn file_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Whether a word is one or more short flags, such as `-rf`.
fn is_flags(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.len() > 1
}

fn has_flag(words: &[String], short: char, long: &str) -> bool {
    words.iter().any(|word| word == long || is_flags(word) && word.contains(short))
}

/// Whether one of the arguments is `/` or `/*`.
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
        let name = packed[..at].rsplit([';', '&', '|', '{', '}', ')']).next().unwrap_or_default();
        let name = name.strip_prefix("function").filter(|name| !name.is_empty()).unwrap_or(name);
        !name.is_empty() && packed[at + 3..].starts_with(&format!("{name}|{name}&}}"))
    })
}

/// Splits a command line into simple commands. The text of command substitutions is added to `nested`.
fn parse(command: &str, nested: &mut Vec<String>) -> Vec<SimpleCommand> {
    let mut parser = CommandParser::default();
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => parser.extend(&chars.by_ref().take_while(|c| *c != '\'').collect::<String>()),
            '"' => {
                parser.extend("");
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => parser.extend(&chars.next().map(String::from).unwrap_or_default()),
                        '`' => nested.push(chars.by_ref().take_while(|c| *c != '`').collect()),
                        '$' if chars.next_if_eq(&'(').is_some() => nested.push(until_closed(&mut chars)),
                        c => parser.push(c),
                    }
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => {}
                Some(c) => parser.push(c),
            },
            '`' => nested.push(chars.by_ref().take_while(|c| *c != '`').collect()),
            '$' if chars.next_if_eq(&'(').is_some() => nested.push(until_closed(&mut chars)),
            '#' if parser.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' => {
                parser.end_word();
                while chars.next_if(|c| matches!(c, '>' | '|' | '&')).is_some() {}
                parser.after_redirect = true;
            }
            ' ' | '\t' | '\r' | '<' => parser.end_word(),
            ';' | '|' | '&' | '\n' | '(' | ')' | '{' | '}' => parser.end_command(),
            c => parser.push(c),
        }
    }
    parser.end_command();
    parser.commands
}

/// The text up to the parenthesis that closes the one just read.
fn until_closed(chars: &mut impl Iterator<Item = char>) -> String {
    let mut depth = 1;
    chars
        .take_while(|c| {
            depth += match c {
                '(' => 1,
                ')' => -1,
                _ => 0,
            };
            depth > 0
        })
        .collect()
}

#[derive(Default)]
struct CommandParser {
    commands: Vec<SimpleCommand>,
    current: SimpleCommand,
    word: Option<String>,
    /// Whether the next word is a file that output is redirected to.
    after_redirect: bool,
}

impl CommandParser {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn extend(&mut self, text: &str) {
        self.word.get_or_insert_default().push_str(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let redirected = std::mem::take(&mut self.after_redirect);
        let words = if redirected { &mut self.current.outputs } else { &mut self.current.words };
        words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        self.after_redirect = false;
        let command = std::mem::take(&mut self.current);
        if command != SimpleCommand::default() {
            self.commands.push(command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_commands_are_refused_in_any_spelling() {
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
            assert!(denied(command).is_some(), "{command}");
        }
    }

    #[test]
    fn similar_commands_are_not_refused() {
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
            assert_eq!(denied(command), None, "{command}");
        }
    }

    #[test]
    fn deep_nesting_is_bounded() {
        assert_eq!(denied(&"$(".repeat(100_000)), None);
        assert_eq!(denied(&"env ".repeat(2_000)), None);
    }
}
