//! Takes the values of an object by name and notes what is wrong, unknown or not implemented.

use std::str::FromStr;

use super::document::{Located, Member, Tree};
use super::error::SettingsProblem;
use super::keys::{OtherKey, status_of};

/// What is collected while a file is read.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) problems: Vec<SettingsProblem>,
    pub(super) other_keys: Vec<OtherKey>,
}

impl Findings {
    /// Notes a problem with the value at `place`.
    pub(super) fn problem<T>(&mut self, key: &str, place: &Located<T>, restricts: Restricts, why: String) {
        let (line, column) = (place.line, place.column);
        let loses_restriction = matches!(restricts, Restricts::Yes);
        self.problems.push(SettingsProblem { key: key.to_owned(), line, column, why, loses_restriction });
    }
}

/// Whether a value restricts what calls may do, so that losing it is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restricts {
    Yes,
    No,
}

/// An object whose members are taken one by one. [`finish`](Self::finish) reports those that are left.
pub(super) struct ObjectReader<'a> {
    path: String,
    members: Vec<Member>,
    findings: &'a mut Findings,
}

impl<'a> ObjectReader<'a> {
    /// Reads `value`, which the key `path` has. Anything but an object is a problem and reads like an empty one.
    pub(super) fn new(
        path: &str,
        value: Located<Tree>,
        restricts: Restricts,
        findings: &'a mut Findings,
    ) -> Self {
        let members = match value.value {
            Tree::Object(members) => members,
            Tree::Null => Vec::new(),
            ref other => {
                findings.problem(path, &value, restricts, expected("an object", other));
                Vec::new()
            }
        };
        Self { path: path.to_owned(), members, findings }
    }

    /// The value of a member. `null` counts as absent.
    pub(super) fn take(&mut self, name: &str) -> Option<Located<Tree>> {
        let at = self.members.iter().position(|member| member.name.value == name)?;
        Some(self.members.remove(at).value).filter(|value| value.value != Tree::Null)
    }

    /// The full name of a member.
    pub(super) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Where problems are noted.
    pub(super) fn findings(&mut self) -> &mut Findings {
        self.findings
    }

    /// Notes a problem with the member `name`.
    pub(super) fn problem<T>(&mut self, name: &str, place: &Located<T>, restricts: Restricts, why: String) {
        let key = self.key(name);
        self.findings.problem(&key, place, restricts, why);
    }

    /// A boolean.
    pub(super) fn bool(&mut self, name: &str, restricts: Restricts) -> Option<Located<bool>> {
        let value = self.take(name)?;
        let Tree::Bool(flag) = value.value else {
            self.problem(name, &value, restricts, expected("a boolean", &value.value));
            return None;
        };
        Some(value.with(flag))
    }

    /// A number.
    pub(super) fn number(&mut self, name: &str, restricts: Restricts) -> Option<Located<f64>> {
        let value = self.take(name)?;
        match value.value {
            Tree::Number(number) if number.is_finite() => Some(value.with(number)),
            ref other => {
                self.problem(name, &value, restricts, expected("a number", other));
                None
            }
        }
    }

    /// A string.
    pub(super) fn text(&mut self, name: &str, restricts: Restricts) -> Option<Located<String>> {
        let value = self.take(name)?;
        match value.value {
            Tree::Text(text) => Some(Located { value: text, line: value.line, column: value.column }),
            ref other => {
                self.problem(name, &value, restricts, expected("a string", other));
                None
            }
        }
    }

    /// A string with a meaning of its own.
    pub(super) fn word<T: FromStr<Err = String>>(
        &mut self,
        name: &str,
        restricts: Restricts,
    ) -> Option<Located<T>> {
        let text = self.text(name, restricts)?;
        match text.value.parse() {
            Ok(word) => Some(text.with(word)),
            Err(why) => {
                self.problem(name, &text, restricts, why);
                None
            }
        }
    }

    /// A list, element by element; `None` if there is none.
    pub(super) fn list(&mut self, name: &str, restricts: Restricts) -> Option<Vec<Located<Tree>>> {
        let value = self.take(name)?;
        match value.value {
            Tree::List(elements) => Some(elements),
            ref other => {
                self.problem(name, &value, restricts, expected("a list", other));
                None
            }
        }
    }

    /// A list of strings; `None` if there is none. Other elements are problems.
    pub(super) fn texts(&mut self, name: &str, restricts: Restricts) -> Option<Vec<Located<String>>> {
        let elements = self.list(name, restricts)?;
        let mut texts = Vec::with_capacity(elements.len());
        for element in elements {
            match element.value {
                Tree::Text(text) => {
                    texts.push(Located { value: text, line: element.line, column: element.column });
                }
                ref other => self.problem(name, &element, restricts, expected("a string", other)),
            }
        }
        Some(texts)
    }

    /// An object in this one.
    pub(super) fn object(&mut self, name: &str, restricts: Restricts) -> Option<ObjectReader<'_>> {
        let value = self.take(name)?;
        let key = self.key(name);
        Some(ObjectReader::new(&key, value, restricts, self.findings))
    }

    /// All members that are left, in their order.
    pub(super) fn rest(&mut self) -> Vec<Member> {
        std::mem::take(&mut self.members)
    }

    /// Reports the members that were not taken.
    pub(super) fn finish(mut self) {
        for Member { name, value } in self.rest() {
            if value.value == Tree::Null {
                continue;
            }
            let key = self.key(&name.value);
            let status = status_of(&key, &value.value);
            self.findings.other_keys.push(OtherKey {
                name: key,
                line: name.line,
                column: name.column,
                status,
            });
        }
    }
}

/// "must be a list, not a string".
pub(super) fn expected(what: &str, found: &Tree) -> String {
    format!("must be {what}, not {}", found.kind())
}
