//! Matching a rule against a shell command.
//!
//! This is a courtesy for prompts, never a boundary. It errs to the safe side twice: an allowing rule matches only a
//! command whose every part is plain words, a denying rule matches if any part might be meant.

use crate::wildcard::wildcard;

/// The simple commands of `command`, or `None` if it holds anything this reader does not fully understand.
fn plain_parts(command: &str) -> Option<Vec<String>> {
    let mut parts = vec![String::new()];
    let mut chars = command.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let part = parts.last_mut()?;
                part.push(c);
                loop {
                    let inner = chars.next()?;
                    if c == '"' && matches!(inner, '$' | '`' | '\\') {
                        return None;
                    }
                    part.push(inner);
                    if inner == c {
                        break;
                    }
                }
            }
            ';' | '|' | '&' | '\n' => {
                if !parts.last().is_some_and(String::is_empty) {
                    parts.push(String::new());
                }
            }
            '$' | '`' | '\\' | '<' | '>' | '(' | ')' | '{' | '}' | '#' | '!' | '\r' => return None,
            c => parts.last_mut()?.push(c),
        }
    }
    let parts: Vec<String> = parts.iter().map(|part| words(part)).filter(|part| !part.is_empty()).collect();
    (!parts.is_empty()).then_some(parts)
}

/// Single spaces between words, so that spacing does not fool a rule.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether an allowing rule covers all of `command`.
pub(crate) fn covers(pattern: &str, command: &str) -> bool {
    plain_parts(command).is_some_and(|parts| parts.iter().all(|part| matches(pattern, part)))
}

/// Whether a denying or asking rule may be meant by any part of `command`.
pub(crate) fn touches(pattern: &str, command: &str) -> bool {
    command
        .split([';', '|', '&', '\n', '\r', '(', ')', '{', '}', '`', '$', '<', '>'])
        .map(words)
        .chain(std::iter::once(words(command)))
        .any(|part| matches(pattern, &part))
}

/// `prefix:*` matches the prefix and what follows a space; `*` anywhere spans anything; a trailing ` *` is optional.
fn matches(pattern: &str, command: &str) -> bool {
    if let Some(prefix) = pattern.strip_suffix(":*") {
        let prefix = words(prefix);
        return command == prefix || command.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with(' '));
    }
    let pattern = words(pattern);
    if pattern.strip_suffix(" *").is_some_and(|short| !short.contains('*') && short == command) {
        return true;
    }
    wildcard(&pattern, command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowing_rule_covers_only_plain_commands() {
        assert!(covers("git log:*", "git log -n 1"));
        assert!(covers("git *", "git   status"));
        assert!(covers("git *", "git"));
        assert!(covers("git commit:*", "git commit -m 'a; b'"));
        assert!(!covers("git log:*", "git logs"));
        assert!(!covers("git *", "git log; rm x"));
        assert!(covers("*", "git log && rm x"));
        assert!(!covers("git *", "git log $(rm x)"));
        assert!(!covers("git *", "git log \"`rm x`\""));
        assert!(!covers("git *", "git log > x"));
        assert!(!covers("git *", "git 'unterminated"));
        assert!(!covers("git *", ""));
    }

    #[test]
    fn a_denying_rule_sees_every_part() {
        assert!(touches("rm:*", "ls && rm -rf x"));
        assert!(touches("rm *", "echo $(rm x)"));
        assert!(touches("rm *", "ls\nrm  x"));
        assert!(!touches("rm *", "firm x"));
    }
}
