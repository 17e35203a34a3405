//! The front matter of Markdown files: TOML, or the part of YAML that such files use.

use std::path::Path;

use haft_files::{read_named, real_named};
use haft_tool::lies_in;
use toml_edit::{DocumentMut, Item, Value as TomlValue};

/// The fields at the beginning of a file, and the text below them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontMatter {
    /// Names and values; a value that is not a list has one element.
    fields: Vec<(String, Vec<String>)>,
    /// The text below.
    pub body: String,
}

impl FrontMatter {
    /// Reads the file at `path`. One of a project must lie within it, links followed: a project must not show what is elsewhere.
    pub(crate) fn of_file(path: &Path, project: Option<&Path>, max_bytes: u64) -> Result<Self, String> {
        let text = Self::text_of_file(path, project, max_bytes)?;
        Self::read(&text).ok_or_else(|| "it has no front matter".to_owned())
    }

    /// The same, but a file without front matter is all body.
    pub(crate) fn of_any_file(path: &Path, project: Option<&Path>, max_bytes: u64) -> Result<Self, String> {
        let text = Self::text_of_file(path, project, max_bytes)?;
        Ok(Self::read(&text).unwrap_or_else(|| Self { fields: Vec::new(), body: text.trim().to_owned() }))
    }

    fn text_of_file(path: &Path, project: Option<&Path>, max_bytes: u64) -> Result<String, String> {
        let real = real_named(path).map_err(|error| error.to_string())?;
        let is_outside = |project: &Path| real_named(project).map_or(true, |top| !lies_in(&real, &top));
        if project.is_some_and(is_outside) {
            return Err("it lies outside the project".to_owned());
        }
        let bytes = read_named(&real, max_bytes).map_err(|error| error.message)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Reads a text; `None` if it has no front matter.
    pub fn read(text: &str) -> Option<Self> {
        let (front, body) = front_matter(text)?;
        let fields =
            front.parse::<DocumentMut>().map_or_else(|_| yaml_fields(front), |toml| toml_fields(&toml));
        Some(Self { fields, body: body.trim().to_owned() })
    }

    /// The value of a field as one text; the last one counts.
    pub fn text(&self, name: &str) -> Option<String> {
        self.values(name).map(|values| values.join(", ")).filter(|text| !text.is_empty())
    }

    /// The elements of a field: of a list, or of a text that commas separate.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        let elements = self.values(name)?.iter().flat_map(|value| value.split(','));
        Some(
            elements.map(|element| element.trim().to_owned()).filter(|element| !element.is_empty()).collect(),
        )
    }

    fn values(&self, name: &str) -> Option<&[String]> {
        self.fields.iter().rev().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }
}

/// Splits a text into the front matter between the first two `---` or `+++` lines and the rest.
pub fn front_matter(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| matches!(line.trim_end(), "---" | "+++"))?;
    let mut at = first.len();
    for line in lines {
        if line.trim_end() == first.trim_end() {
            return Some((text.get(first.len()..at)?, text.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn toml_fields(document: &DocumentMut) -> Vec<(String, Vec<String>)> {
    let text = |value: &TomlValue| match value {
        TomlValue::String(text) => Some(text.value().clone()),
        TomlValue::Integer(number) => Some(number.value().to_string()),
        TomlValue::Boolean(flag) => Some(flag.value().to_string()),
        _ => None,
    };
    let values = |item: &Item| match item.as_value()? {
        TomlValue::Array(elements) => Some(elements.iter().filter_map(text).collect()),
        value => text(value).map(|text| vec![text]),
    };
    document.iter().filter_map(|(name, item)| Some((name.to_owned(), values(item)?))).collect()
}

fn yaml_fields(front: &str) -> Vec<(String, Vec<String>)> {
    let mut fields: Vec<(String, Vec<String>)> = Vec::new();
    let mut lines = front.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with([' ', '\t', '#', '-']) {
            continue;
        }
        let Some((name, value)) = line.split_once(':') else { continue };
        let mut below = Vec::new();
        while let Some(line) =
            lines.next_if(|line| line.starts_with([' ', '\t', '-']) || line.trim().is_empty())
        {
            below.push(line.trim());
        }
        let value = value.trim();
        let values = match value {
            "" | ">" | ">-" | "|" | "|-" | ">+" | "|+" => {
                let items: Option<Vec<String>> = below
                    .iter()
                    .filter(|line| !line.is_empty())
                    .map(|line| line.strip_prefix('-').map(unquoted))
                    .collect();
                match items.filter(|items| value.is_empty() && !items.is_empty()) {
                    Some(items) => items,
                    None => vec![below.join(" ").trim().to_owned()],
                }
            }
            list if list.starts_with('[') && list.ends_with(']') => {
                let inner = list.trim_start_matches('[').trim_end_matches(']');
                inner.split(',').map(unquoted).filter(|item| !item.is_empty()).collect()
            }
            text => vec![unquoted(text)],
        };
        fields.push((name.trim().to_owned(), values));
    }
    fields
}

/// Removes the quotes of a value.
fn unquoted(value: &str) -> String {
    let value = value.trim();
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)));
    inner.unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_and_toml_say_the_same() {
        let yaml = "---\nname: \"pdf\"\ndescription: >\n  Read PDFs:\n  all of them\ntriggers:\n  - pdf file\n  - 'paper'\ntools: [Read, Grep]\nn: 3\n---\n\nBody.\n";
        let toml = "+++\nname = \"pdf\"\ndescription = \"Read PDFs: all of them\"\ntriggers = [\"pdf file\", \"paper\"]\ntools = \"Read, Grep\"\nn = 3\n+++\nBody.";
        for text in [yaml, toml, &yaml.replace('\n', "\r\n")] {
            let front = FrontMatter::read(text).unwrap();
            assert_eq!(front.text("name").as_deref(), Some("pdf"), "{text}");
            assert_eq!(front.text("description").as_deref(), Some("Read PDFs: all of them"), "{text}");
            assert_eq!(front.list("triggers").unwrap(), ["pdf file", "paper"], "{text}");
            assert_eq!(front.list("tools").unwrap(), ["Read", "Grep"], "{text}");
            assert_eq!((front.text("n").as_deref(), front.body.as_str()), (Some("3"), "Body."), "{text}");
            assert_eq!(front.list("other"), None);
        }
        for none in ["", "---", "---\nname: x\n", "text\n---\nname: x\n---\n", "---\nname: x\n+++\n"] {
            assert_eq!(FrontMatter::read(none), None, "{none:?}");
        }
    }
}
