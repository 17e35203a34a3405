//! Names of types and constants.

use std::collections::BTreeMap;

use super::Settings;
use super::Violation;

pub(super) const DUPLICATE_TYPES: &str = "duplicate-types";
pub(super) const VAGUE_CONSTANTS: &str = "vague-constants";
pub(super) const CONSTANTS_WITHOUT_UNIT: &str = "constants-without-unit";

const NUMBERS: [&str; 12] =
    ["u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "isize", "f64"];

/// Where each type name is defined.
#[derive(Default)]
pub(super) struct TypeNames(BTreeMap<String, Vec<String>>);

impl TypeNames {
    /// Notes the types that a file defines.
    pub(super) fn add(&mut self, path: &str, code: &str) {
        for (number, line) in code.lines().enumerate() {
            if let Some(name) = type_name(line) {
                self.0.entry(name.to_owned()).or_default().push(format!("{path}:{}", number + 1));
            }
        }
    }

    /// Every definition of a name that is defined more than once. A type for Linux and its counterpart for macOS are one.
    pub(super) fn duplicates(self, settings: &Settings) -> Vec<Violation> {
        let mut found = Vec::new();
        for (name, places) in self.0 {
            let on = |platform: &str| places.iter().filter(|place| place.contains(platform)).count();
            let counterparts = on("/linux/").min(on("/macos/"));
            if places.len() - counterparts > 1 && !settings.shared_type_names.contains(&name) {
                let violation = |place| Violation { check: DUPLICATE_TYPES, item: name.clone(), place };
                found.extend(places.into_iter().map(violation));
            }
        }
        found
    }
}

/// The name of the type that a line defines. Associated types are none: an indented alias has to be public.
fn type_name(line: &str) -> Option<&str> {
    let declaration = without_visibility(line.trim_start());
    let declaration = declaration.strip_prefix("unsafe ").unwrap_or(declaration);
    let (keyword, rest) = declaration.split_once(' ')?;
    let is_associated =
        keyword == "type" && line.starts_with("    ") && !line.trim_start().starts_with("pub");
    let defines = matches!(keyword, "struct" | "enum" | "trait" | "type" | "union") && !is_associated;
    let name = rest.split(|char| !super::source::is_word(char)).next().unwrap_or_default();
    (defines && name.starts_with(char::is_uppercase)).then_some(name)
}

/// Constants whose name does not say what they bound.
pub(super) fn constants(path: &str, code: &str, settings: &Settings) -> Vec<Violation> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let Some((name, kind, value)) = constant(line) else { continue };
        let check = if settings.is_vague(name) {
            VAGUE_CONSTANTS
        } else if NUMBERS.contains(&kind) && !is_code(value) && !settings.has_unit(name) {
            CONSTANTS_WITHOUT_UNIT
        } else {
            continue;
        };
        found.push(Violation { check, item: name.to_owned(), place: format!("{path}:{}", number + 1) });
    }
    found
}

/// The name, the type and the value of the constant that a line defines.
fn constant(line: &str) -> Option<(&str, &str, &str)> {
    let declaration = without_visibility(line.trim_start());
    let declaration = declaration.strip_prefix("const ").or_else(|| declaration.strip_prefix("static "))?;
    let (name, rest) = declaration.split_once(':')?;
    let (kind, value) = rest.split_once('=').unwrap_or((rest, ""));
    let is_constant =
        name.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_');
    is_constant.then(|| (name, kind.trim(), value.trim()))
}

/// Whether a number is a code, a mode or a mask, which has no unit.
fn is_code(value: &str) -> bool {
    value.starts_with('-') || ["0x", "0o", "0b"].iter().any(|prefix| value.starts_with(prefix))
}

fn without_visibility(declaration: &str) -> &str {
    let Some(rest) = declaration.strip_prefix("pub") else { return declaration };
    let rest = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest);
    rest.trim_start()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_type_is_found() {
        for line in [
            "struct A;",
            "pub(crate) enum A {",
            "pub unsafe trait A<T> {",
            "type A = u8;",
            "    pub type A<'a> =",
            "    struct A(",
        ] {
            assert_eq!(type_name(line), Some("A"), "{line}");
        }
        for line in ["    type A = u8;", "let struct_a = 1;", "impl A {", "typed A"] {
            assert_eq!(type_name(line), None, "{line}");
        }
    }

    #[test]
    fn a_type_may_have_one_definition_per_platform() {
        let settings = Settings::default();
        let places = |paths: &[&str]| {
            let mut names = TypeNames::default();
            for path in paths {
                names.add(path, "struct A;\n");
            }
            names.duplicates(&settings).len()
        };
        assert_eq!(places(&["a.rs"]), 0);
        assert_eq!(places(&["a.rs", "b.rs"]), 2);
        assert_eq!(places(&["x/linux/a.rs", "x/macos/a.rs"]), 0);
        assert_eq!(places(&["x/linux/a.rs", "x/macos/a.rs", "b.rs"]), 3);
    }

    #[test]
    fn a_numeric_constant_names_its_unit() {
        let settings = Settings {
            unit_words: vec!["BYTES".to_owned()],
            vague_constants: vec!["MOST".to_owned()],
            ..Settings::default()
        };
        let checks =
            |line: &str| constants("a.rs", line, &settings).iter().map(|it| it.check).collect::<Vec<_>>();
        assert_eq!(checks("const LINE_BYTES: usize = 1;"), [""; 0]);
        assert_eq!(checks("pub(crate) const LINE: usize = 1;"), [CONSTANTS_WITHOUT_UNIT]);
        assert_eq!(checks("const LINE: &str = \"\";"), [""; 0]);
        assert_eq!(checks("const LINE: i64 = -32_700;"), [""; 0]);
        assert_eq!(checks("const MOST: Duration = X;"), [VAGUE_CONSTANTS]);
        assert_eq!(checks("static MOST_LINES: usize = 1;"), [VAGUE_CONSTANTS]);
        assert_eq!(checks("const fn line(a: u8) {"), [""; 0]);
    }
}
