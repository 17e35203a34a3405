//! The part of TypeScript that published type definitions are written in, read into shapes.

use std::collections::BTreeMap;

use crate::schemas::shape::{array, literal, object, union};
use haft::{Value, json};

/// The shape of each exported interface, and the members of each exported union, by name.
pub(crate) fn exports(source: &str) -> BTreeMap<String, Value> {
    let mut reader = Reader { tokens: tokens(source), at: 0 };
    let mut found = BTreeMap::new();
    while reader.at < reader.tokens.len() {
        reader.expect("export");
        let kind = reader.next();
        let name = reader.next();
        let shape = match kind.as_str() {
            "interface" => reader.members(),
            "type" => {
                reader.expect("=");
                let shape = reader.union();
                reader.expect(";");
                shape
            }
            other => panic!("an export of an unknown kind: {other}"),
        };
        found.insert(name, shape);
    }
    found
}

/// Words, strings with their quotes, and single marks; comments and blanks are left out.
fn tokens(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            rest.find("*/").unwrap() + 2
        } else if first == '"' {
            rest[1..].find('"').unwrap() + 2
        } else if is_word(first) {
            rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        if !rest.starts_with("/*") {
            found.push(rest[..length].to_owned());
        }
        rest = rest[length..].trim_start();
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

struct Reader {
    tokens: Vec<String>,
    at: usize,
}

impl Reader {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", String::as_str)
    }

    fn next(&mut self) -> String {
        self.at += 1;
        self.tokens[self.at - 1].clone()
    }

    fn takes(&mut self, mark: &str) -> bool {
        let there = self.peek() == mark;
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, mark: &str) {
        assert_eq!(self.next(), mark, "at token {}", self.at);
    }

    fn union(&mut self) -> Value {
        self.takes("|");
        let mut options = vec![self.arrays()];
        while self.takes("|") {
            options.push(self.arrays());
        }
        union(options)
    }

    fn arrays(&mut self) -> Value {
        let mut shape = self.single();
        while self.takes("[") {
            self.expect("]");
            shape = array(&shape, None, None);
        }
        shape
    }

    fn single(&mut self) -> Value {
        if self.peek() == "{" {
            return self.members();
        }
        if self.takes("[") {
            return self.tuple();
        }
        let word = self.next();
        match word.strip_prefix('"') {
            Some(text) => literal(text.trim_end_matches('"')),
            None => json!(word),
        }
    }

    /// A tuple of one type, which is how a list with a length is written.
    fn tuple(&mut self) -> Value {
        let mut items = vec![self.union()];
        while self.takes(",") {
            items.push(self.union());
        }
        self.expect("]");
        assert!(items.iter().all(|item| *item == items[0]), "a tuple of different types");
        array(&items[0], Some(items.len() as u64), Some(items.len() as u64))
    }

    fn members(&mut self) -> Value {
        self.expect("{");
        let (mut fields, mut required, mut rest) = (BTreeMap::new(), Vec::new(), Value::Null);
        while !self.takes("}") {
            if self.takes("[") {
                while !self.takes("]") {
                    self.at += 1;
                }
                self.expect(":");
                rest = self.union();
            } else {
                let name = self.next().trim_matches('"').to_owned();
                if !self.takes("?") {
                    required.push(name.clone());
                }
                self.expect(":");
                fields.insert(name, self.union());
            }
            self.expect(";");
        }
        object(&fields, required, &rest)
    }
}
