//! Commands that are refused before they start. The sandbox is the boundary; this only saves the caller a try. Commands
//! are parsed into words as a shell does, so that spacing, quotes and the order of flags make no difference.

/// Programs that start another program, given in their arguments.
const LAUNCHERS: &[&str] = &[
    "builtin", "busybox", "chroot", "chrt", "command", "env", "exec", "flock", "ionice", "nice", "nohup",
    "nsenter", "parallel", "script", "setarch", "setpriv", "setsid", "stdbuf", "strace", "taskset", "time",
    "timeout", "unshare", "watch", "xargs",
];
/// Flags of `find` that are followed by a program.
const FIND_PROGRAM_FLAGS: &[&str] = &["-exec", "-execdir", "-ok", "-okdir"];
/// Words of the shell's grammar that are followed by a command.
const KEYWORDS: &[&str] = &["!", "coproc", "do", "elif", "else", "if", "then", "until", "while"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// `<<<` precedes a text that is the input.
const HERE_STRING_SIGN_COUNT: usize = 3;
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
        let commands = parse(&command, &mut nested);
        // A shell that is given no script reads one from a pipe or a file that is made in the same line.
        if commands.iter().any(SimpleCommand::reads_a_script) {
            let written = commands.iter().filter_map(SimpleCommand::written_text);
            nested.extend(written.take(MAX_NESTED_COMMANDS));
        }
        for simple in &commands {
            if let Some(reason) = check(simple, &mut nested) {
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
    /// The texts that are its input.
    here_strings: Vec<String>,
}

impl SimpleCommand {
    /// The words from the program on, without what may precede it.
    fn program_words(&self) -> &[String] {
        let before = |word: &&String| is_assignment(word) || KEYWORDS.contains(&word.as_str());
        &self.words[self.words.iter().take_while(before).count()..]
    }

    fn program(&self) -> &str {
        self.program_words().first().map_or("", |first| file_name(first))
    }

    /// The text that it writes, if it is a program that writes its arguments.
    fn written_text(&self) -> Option<String> {
        let arguments = self.program_words().get(1..)?.iter().skip_while(|word| word.starts_with('-'));
        let format_words = match self.program() {
            "echo" => 0,
            "printf" => 1,
            _ => return None,
        };
        Some(arguments.skip(format_words).cloned().collect::<Vec<_>>().join(" "))
    }

    /// Whether it is a shell that runs what it reads, or a shell's command that runs a file.
    fn reads_a_script(&self) -> bool {
        let is_option = |word: &String| word.starts_with('-') && !(is_flags(word) && word.ends_with('c'));
        let has_script = || !self.program_words().iter().skip(1).all(is_option);
        matches!(self.program(), "." | "source") || SHELLS.contains(&self.program()) && !has_script()
    }
}

fn check(command: &SimpleCommand, nested: &mut Vec<String>) -> Option<&'static str> {
    if command.outputs.iter().any(|target| target.starts_with("/dev/sd")) {
        return Some("a raw write to a disk");
    }
    if command.reads_a_script() {
        nested.extend(command.here_strings.iter().take(MAX_NESTED_COMMANDS).cloned());
    }
    let words = command.program_words();
    let end = words.len().min(MAX_LAUNCHER_ARGUMENTS);
    if LAUNCHERS.contains(&command.program()) {
        // Any of its arguments may be the program, or a whole command.
        let texts = words[..end].iter().filter(|word| word.contains(char::is_whitespace));
        nested.extend(texts.take(MAX_NESTED_COMMANDS.saturating_sub(nested.len())).cloned());
        return (1..end).find_map(|at| check_program(&words[at..], nested));
    }
    if command.program() == "find" {
        let is_flag = |at: &usize| FIND_PROGRAM_FLAGS.contains(&words[*at].as_str());
        return (1..end).filter(is_flag).find_map(|at| check_program(&words[at + 1..], nested));
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
            // `$'text'` and `$"text"` are quotes, too.
            '$' if matches!(chars.peek(), Some('\'' | '"')) => {}
            '#' if parser.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' => {
                parser.end_word();
                while chars.next_if(|c| matches!(c, '>' | '|' | '&')).is_some() {}
                parser.after_redirect = true;
            }
            '<' => {
                parser.end_word();
                let mut signs = 1;
                while chars.next_if_eq(&'<').is_some() {
                    signs += 1;
                }
                parser.after_here_string = signs == HERE_STRING_SIGN_COUNT;
            }
            ' ' | '\t' | '\r' => parser.end_word(),
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
    /// Whether the next word is the input.
    after_here_string: bool,
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
        let (redirected, is_input) =
            (std::mem::take(&mut self.after_redirect), std::mem::take(&mut self.after_here_string));
        let words = match (redirected, is_input) {
            (true, _) => &mut self.current.outputs,
            (_, true) => &mut self.current.here_strings,
            _ => &mut self.current.words,
        };
        words.push(word);
    }

    fn end_command(&mut self) {
        self.end_word();
        (self.after_redirect, self.after_here_string) = (false, false);
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
            "if true; then sudo ls; fi",
            "for x in a; do sudo ls; done",
            "while sudo ls; do :; done",
            "until ! sudo ls; do :; done",
            "if false; then :; elif sudo ls; then :; else sudo ls; fi",
            "! sudo ls",
            "A=1 ! B=2 sudo ls",
            "coproc sudo ls",
            "time sudo ls",
            "command sudo ls",
            "builtin command sudo ls",
            "nohup sudo ls &",
            "stdbuf -o0 sudo ls",
            "env -S 'sudo ls'",
            "watch 'sudo ls'",
            "find . -name x -exec sudo rm {} \\;",
            "find . -execdir sh -c 'sudo ls' \\;",
            "ls | xargs -I{} sudo rm {}",
            "ls | xargs -n1 sh -c 'sudo ls'",
            "bash <<< 'sudo ls'",
            "bash<<<'sudo ls'",
            "bash -s <<<\"sudo ls\"",
            "bash <<EOF\nsudo ls\nEOF",
            "echo -e 'sudo ls' | sh",
            "printf '%s' 'rm -rf /' | bash -",
            "bash <(echo 'sudo ls')",
            ". <(echo sudo ls)",
            "cat <(sudo ls)",
            "diff <(sudo cat a) b",
            "$'sudo' ls",
            "x=$(sudo ls)",
            "x=`sudo ls`",
            "echo \"${x:-$(sudo ls)}\"",
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
            "echo do sudo",
            "echo then sudo | cat",
            "find . -name sudo",
            "find . -name shutdown -exec grep -l reboot {} \\;",
            "cat <<< 'sudo ls'",
            "echo sudo > note.txt",
            "echo sudo ls; bash script.sh",
            "if true; then echo sudo; fi",
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
