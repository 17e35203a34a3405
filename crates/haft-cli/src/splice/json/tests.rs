//! Documents of every layout: what is put in is there afterwards, what is taken out is gone, and all else is as it was.

use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Writes random documents, the same ones for the same seed.
struct Writer {
    seed: u64,
    newline: &'static str,
    step: &'static str,
    comments: bool,
    trailing: bool,
    text: String,
}

const NAMES: [&str; 7] = ["mcpServers", "haft", "a", "b", "é \\\" // not a comment", "c", "d"];

impl Writer {
    fn roll(&mut self, sides: u64) -> u64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % sides
    }

    fn document(seed: u64) -> String {
        let mut writer =
            Self { seed, newline: "\n", step: "  ", comments: false, trailing: false, text: String::new() };
        writer.newline = ["\n", "\n", "\r\n"][usize::try_from(writer.roll(3)).unwrap()];
        writer.step = ["  ", "    ", "\t", ""][usize::try_from(writer.roll(4)).unwrap()];
        (writer.comments, writer.trailing) = (writer.roll(2) == 0, writer.roll(3) == 0);
        if writer.roll(6) == 0 {
            writer.text.push('\u{feff}');
        }
        writer.gap(0, false);
        let lines = writer.roll(4) > 0;
        writer.object(1, lines);
        writer.gap(0, false);
        writer.text
    }

    /// Spaces, and comments if there are any.
    fn gap(&mut self, depth: usize, line: bool) {
        for _ in 0..self.roll(2) + u64::from(line) {
            if line || self.roll(6) == 0 {
                self.text.push_str(self.newline);
                self.text.push_str(&self.step.repeat(depth));
            } else if self.roll(3) == 0 {
                self.text.push_str([" ", "\t", "  "][usize::try_from(self.seed % 3).unwrap()]);
            }
            if self.comments && self.roll(3) == 0 {
                match self.roll(3) {
                    0 => self.text.push_str(&format!(" // \"x\": {{ é{}", self.newline)),
                    1 => self.text.push_str("/* , } */"),
                    _ => self.text.push_str(&format!("/*{} , */ ", self.newline)),
                }
            }
        }
    }

    fn object(&mut self, depth: usize, lines: bool) {
        self.text.push('{');
        let mut names = NAMES.to_vec();
        let count = self.roll(4);
        for number in 0..count {
            let name = names.remove(usize::try_from(self.roll(names.len() as u64)).unwrap());
            self.gap(depth, lines);
            self.text.push_str(&Value::from(name).to_string());
            self.gap(depth, false);
            self.text.push(':');
            self.gap(depth, false);
            self.value(depth, name);
            self.gap(depth, false);
            if number + 1 < count || self.trailing && self.roll(2) == 0 {
                self.text.push(',');
            }
        }
        self.gap(depth - 1, lines);
        self.text.push('}');
    }

    fn value(&mut self, depth: usize, name: &str) {
        let lines = self.roll(3) > 0;
        match self.roll(6) {
            _ if name == "mcpServers" && depth < 4 => self.object(depth + 1, lines),
            0 | 1 if depth < 4 => self.object(depth + 1, lines),
            2 if depth < 4 => {
                self.text.push('[');
                self.value(depth + 1, "");
                self.text.push(',');
                self.gap(depth, false);
                self.value(depth + 1, "");
                self.gap(depth, false);
                if self.trailing {
                    self.text.push(',');
                }
                self.text.push(']');
            }
            3 => self.text.push_str(r#""// \\ \" }{ /* \u00e9""#),
            4 => self.text.push_str("-1.50e3"),
            _ => self.text.push_str("null"),
        }
    }
}

/// What stays of the text between the edits.
fn rest(text: &str, edits: &[Edit]) -> String {
    let cuts: Vec<Edit> = edits.iter().map(|edit| Edit::cut(edit.at.clone())).collect();
    applied(text, &cuts)
}

/// Where the member at `path` is, from its name to the end of its value.
fn member(plain: &Plain, path: &[&str]) -> std::ops::Range<usize> {
    let mut at = plain.root().unwrap();
    let mut range = 0..0;
    for name in path {
        let object = plain.object(at);
        let member = object.members.iter().find(|member| member.name == *name).unwrap();
        (range, at) = (member.start..member.value.end, member.value.start);
    }
    range
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_member_is_put_in_and_nothing_else_changes(seed in any::<u64>(), path in 0_usize..4) {
        let text = Writer::document(seed);
        let path: &[&str] = [&["mcpServers", "haft"][..], &["haft"], &["a", "b", "haft"], &["mcpServers"]][path];
        let value = json!({"command": "/x/haft", "args": ["mcp", "a \" b"], "env": {}});
        let plain = Plain::of(&text).unwrap();
        let mut meant = plain.value.clone().unwrap();
        if set(&mut meant, path, &value).is_err() {
            prop_assert!(put(&text, path, &value).is_err());
            return Ok(());
        }
        let new = put(&text, path, &value).unwrap();
        prop_assert_eq!(read(&new).unwrap(), Some(meant), "{}\n---\n{}", text, new);
        prop_assert_eq!(put(&new, path, &value).unwrap(), new.clone(), "twice is once");
        let edits = put_edits(&text, &plain, path, &value).unwrap();
        prop_assert_eq!(applied(&text, &edits), new.clone());
        let there = edits.iter().filter(|edit| !edit.at.is_empty()).count();
        prop_assert!(there <= 1 && (there == 0 || edits.len() == 1), "a value is replaced, or something comes in: {:?}", edits);
        prop_assert_eq!(new.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
        let bare = |text: &str| text.replace("\r\n", "").contains('\n');
        prop_assert!(bare(&text) || !text.contains('\n') || !bare(&new), "line ends stay of one kind");
    }

    #[test]
    fn a_member_is_taken_out_and_nothing_else_changes(seed in any::<u64>(), path in 0_usize..3) {
        let text = Writer::document(seed);
        let path: &[&str] = [&["mcpServers", "haft"][..], &["a"], &["mcpServers", "a"]][path];
        let plain = Plain::of(&text).unwrap();
        let before = plain.value.clone().unwrap();
        let there = path.iter().try_fold(&before, |value, name| value.get(*name)).is_some();
        let Some(new) = remove(&text, path).unwrap() else {
            prop_assert!(!there);
            return Ok(());
        };
        let after = read(&new).unwrap().unwrap();
        prop_assert!(path.iter().try_fold(&after, |value, name| value.get(*name)).is_none());
        let edits = remove_edits(&text, &plain, path).unwrap().unwrap();
        prop_assert_eq!(rest(&text, &edits), new.clone());
        // Besides the member itself only one comma and spaces go.
        let member = member(&plain, path);
        let mut beside = String::new();
        for at in edits.iter().flat_map(|edit| edit.at.clone()).filter(|at| !member.contains(at)) {
            beside.push(char::from(text.as_bytes()[at]));
        }
        prop_assert!(beside.chars().all(|c| c == ',' || c.is_ascii_whitespace()), "{:?}", beside);
        prop_assert!(beside.matches(',').count() <= 1);
        prop_assert_eq!(remove(&new, path).unwrap(), None);
    }

    #[test]
    fn any_text_at_all_is_read_or_refused(text in "[{}\\[\\],:\"/*\\\\ \na0é]{0,40}") {
        if let Ok(Some(value)) = read(&text) {
            let _ = put(&text, &["a", "b"], &json!(1)).map(|new| read(&new).unwrap());
            let _ = remove(&text, &["a"]).map(|new| new.map(|new| read(&new).unwrap()));
            drop(value);
        }
    }
}

#[test]
fn members_look_like_their_neighbours() {
    let value = json!({"command": "haft", "args": ["mcp"]});
    let done = |text: &str| put(text, &["mcpServers", "haft"], &value).unwrap();
    let texts = [
        "",
        "// nothing yet\n",
        "{}",
        "{\n}\n",
        "{\"a\":1}",
        "{\"mcpServers\": {}}",
        "{\n\t\"a\": 1 // one\n}\n",
        "{\n    \"a\": 1,\n    \"mcpServers\": {},\n    \"z\": 2\n}\n",
        "{\n  \"mcpServers\": {\n    \"x\": {\"command\": \"x\"}, // mine\n    // the end\n  },\n}\n",
        "{\n  \"mcpServers\": { \"x\": {\"command\": \"x\"} }\n}\n",
        "{\n  \"mcpServers\": {\n    \"haft\": {\n      \"command\": \"old\" // gone\n    },\n    \"x\": {}\n  }\n}\n",
    ];
    let shown = texts.map(|text| format!("{text}\n--->\n{}", done(text))).join("\n=======\n");
    insta::assert_snapshot!("json_layouts", shown);
}

#[test]
fn members_go_without_a_trace() {
    let value = json!({"command": "haft", "args": ["mcp"]});
    for text in [
        "{\n  \"mcpServers\": {\n    \"x\": {}\n  }\n}\n",
        "{\"mcpServers\":{\"x\":{}}}",
        "{\n\t\"mcpServers\": {\n\t\t// first\n\t\t\"x\": {}, // mine\n\t\t/* last */\n\t},\n}",
        "{\r\n  \"mcpServers\": {\r\n    \"x\": 1\r\n  }\r\n}\r\n",
    ] {
        let with = put(text, &["mcpServers", "haft"], &value).unwrap();
        assert_eq!(remove(&with, &["mcpServers", "haft"]).unwrap().as_deref(), Some(text), "{with}");
    }
}

#[test]
fn what_is_not_understood_is_refused() {
    let value = json!({});
    let put = |text: &str| put(text, &["mcpServers", "haft"], &value);
    for text in [
        "{",
        "[]",
        "\"x\"",
        "{\"a\":}",
        "{\"a\" 1}",
        "{,}",
        "{\"a\": [,]}",
        "{\"a\":1,,}",
        "{} {}",
        "{\"a\": 1 /* }",
        "{'a': 1}",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": null}",
        "{\"mcpServers\": {}, \"mcpServers\": {}}",
        "{\"mcpServers\": {\"haft\": 1, \"haft\": 2}}",
        "{\"a\": 1}, ",
    ] {
        assert!(put(text).is_err(), "{text}");
    }
    assert!(put(&format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000))).is_err());
    assert!(put("{\n  \"a\": ,\n}").is_err_and(|why| why.contains("line 2")));
}
