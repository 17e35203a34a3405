//! The arguments of a tool as a person types them: JSON, a file, standard input, or `NAME=VALUE` words.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use haft_files::{read_bounded, read_named};
use haft_runtime::Runtime;
use haft_tool::{AnyTool, Arguments, Definition, ToolError, Value, json};
use serde_json::Map;

use super::duration;

/// Largest arguments. A call that needs more should name a file.
const MAX_ARGUMENT_BYTES: u64 = 64 << 20;

/// Arguments as typed.
pub(super) enum TypedArguments {
    /// One JSON text, which the tool's schema checks.
    Json(Arguments),
    /// Words, which only the tool's schema gives types to.
    Words(Vec<String>),
}

/// What is known of the tool that the words are for.
pub(super) struct ArgumentTypes {
    tool: String,
    schema: Value,
    formats: Vec<(String, String)>,
}

impl ArgumentTypes {
    pub(super) fn of(tool: &dyn AnyTool) -> Self {
        let formats = tool.argument_formats();
        Self { formats, ..Self::from(tool.definition()) }
    }

    /// Those of a tool of a runtime.
    pub(super) fn in_runtime(tool: &str, runtime: &Runtime) -> Option<Self> {
        let definition = runtime.definitions().into_iter().find(|known| known.name == tool)?;
        Some(Self { formats: runtime.argument_formats(tool), ..Self::from(definition) })
    }

    /// For a tool that is not known here: each value is JSON if it can be, else text.
    pub(super) fn unknown(tool: &str) -> Self {
        Self { tool: tool.to_owned(), schema: Value::Null, formats: Vec::new() }
    }

    /// The name in the schema: `-C` for `C`, because a word that begins with a dash is a flag of Haft's own.
    fn full_name(&self, name: &str) -> String {
        let properties = &self.schema["properties"];
        let dashed = format!("-{name}");
        if properties.get(name).is_none() && properties.get(&dashed).is_some() {
            dashed
        } else {
            name.to_owned()
        }
    }

    /// Whether the argument is text, so that `5` and `true` stay words.
    fn is_text(&self, name: &str) -> bool {
        let kind = &self.schema["properties"][name]["type"];
        kind == "string" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "string"))
    }

    fn format(&self, name: &str) -> Option<&str> {
        self.formats.iter().find(|(field, _)| field == name).map(|(_, format)| format.as_str())
    }

    fn required(&self) -> impl Iterator<Item = &str> {
        self.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
    }
}

impl From<Definition> for ArgumentTypes {
    fn from(definition: Definition) -> Self {
        Self { tool: definition.name, schema: definition.input_schema, formats: Vec::new() }
    }
}

impl TypedArguments {
    /// Reads what the words name: nothing is `{}`, `-` is standard input, `@FILE` a file.
    pub(super) fn read(words: Vec<OsString>) -> Result<Self, ToolError> {
        let words = words.into_iter().map(utf8).collect::<Result<Vec<_>, _>>()?;
        let json = match words.as_slice() {
            [] => "{}".to_owned(),
            [only] if only == "-" || only.starts_with('@') => named_text(only)?,
            [only] if only.trim_start().starts_with(['{', '[', '"']) || only.trim().is_empty() => {
                only.clone()
            }
            _ => return Ok(Self::Words(words)),
        };
        Ok(Self::Json(Arguments::from(json)))
    }
}

/// The arguments of tools are JSON, which cannot have other bytes.
fn utf8(word: OsString) -> Result<String, ToolError> {
    word.into_string().map_err(|word| {
        let shown = word.as_encoded_bytes().escape_ascii();
        ToolError::invalid_arguments(format!(
            "the argument {shown} is not UTF-8, which the arguments of tools have to be. Rename the file, or use \
             `haft sandbox` with a command"
        ))
    })
}

/// The arguments that `NAME=VALUE` words stand for.
pub(super) fn from_words(words: &[String], types: &ArgumentTypes) -> Result<Arguments, ToolError> {
    let mut arguments = Map::new();
    for word in words {
        let Some((name, text)) = pair(word) else { return Err(what_to_type(words, types)) };
        let name = types.full_name(name);
        let text = if text.starts_with('@') { named_text(text)? } else { text.to_owned() };
        if arguments.insert(name.clone(), typed(types, &name, text)?).is_some() {
            return Err(ToolError::invalid_arguments(format!("{name} is given twice")));
        }
    }
    Ok(Arguments::from(Value::Object(arguments)))
}

/// The content of `@FILE`; of standard input for `-` and `@-`.
fn named_text(name: &str) -> Result<String, ToolError> {
    let bytes = match name.strip_prefix('@').unwrap_or(name) {
        "-" => read_bounded(std::io::stdin().lock(), MAX_ARGUMENT_BYTES)
            .map_err(|error| ToolError::io("read standard input", &error))?
            .ok_or_else(|| {
                ToolError::invalid_arguments(format!(
                    "the arguments on standard input exceed the limit of {MAX_ARGUMENT_BYTES} bytes"
                ))
            })?,
        path => read_named(Path::new(path), MAX_ARGUMENT_BYTES)
            .map_err(|error| ToolError::invalid_arguments(format!("the arguments: {}", error.message)))?,
    };
    String::from_utf8(bytes).map_err(|error| {
        ToolError::invalid_arguments(format!("the arguments are not UTF-8: {}", error.utf8_error()))
    })
}

/// The two sides of `NAME=VALUE`.
fn pair(word: &str) -> Option<(&str, &str)> {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    word.split_once('=').filter(|(name, _)| !name.is_empty() && name.chars().all(is_name_char))
}

/// The value that the text stands for. A text that does not fit stays one, and the schema's check reports it.
fn typed(types: &ArgumentTypes, name: &str, text: String) -> Result<Value, ToolError> {
    let is_plain_number = text.bytes().all(|byte| byte.is_ascii_digit());
    match types.format(name) {
        Some("path") => return absolute(&text).map(Value::String),
        Some(unit @ ("milliseconds" | "seconds")) if !is_plain_number => {
            if let Ok(ms) = duration::milliseconds(&text) {
                return Ok(match unit {
                    "seconds" if ms % 1_000 == 0 => json!(ms / 1_000),
                    "seconds" => json!(std::time::Duration::from_millis(ms).as_secs_f64()),
                    _ => json!(ms),
                });
            }
        }
        _ => {}
    }
    Ok(match serde_json::from_str(&text) {
        Ok(value) if !types.is_text(name) => value,
        _ => Value::String(text),
    })
}

/// The path as an absolute one, from the current directory. `~` is the home, because not every shell expands it after `=`.
fn absolute(text: &str) -> Result<String, ToolError> {
    if text.is_empty() {
        return Ok(String::new());
    }
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let path = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let home = home().ok_or_else(|| ToolError::invalid_path("~: HOME is not set"))?;
            home.join(rest.trim_start_matches('/'))
        }
        _ => std::path::absolute(text).map_err(|error| ToolError::io(text, &error))?,
    };
    path.into_os_string()
        .into_string()
        .map_err(|path| ToolError::invalid_path(format!("{}: the path is not UTF-8", path.to_string_lossy())))
}

/// The error for words without a name: the line that was probably meant.
fn what_to_type(words: &[String], types: &ArgumentTypes) -> ToolError {
    let tool = &types.tool;
    let (pairs, others): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| pair(word).is_some());
    let is_given = |name: &str| pairs.iter().any(|word| pair(word).is_some_and(|(given, _)| given == name));
    let mut missing = types.required().filter(|name| !is_given(name));
    let bare = others.iter().map(|word| word.as_str()).collect::<Vec<_>>().join(" ");
    let (first, rest) = (missing.next(), missing.map(|name| format!(" {name}=…")).collect::<String>());
    let Some(first) = first else {
        return ToolError::invalid_arguments(format!(
            "{bare:?} is not an argument. Type NAME=VALUE or one JSON object; `haft tools {tool}` lists the names"
        ));
    };
    let given: String = pairs.iter().map(|word| format!(" {}", shell_word(word))).collect();
    ToolError::invalid_arguments(format!(
        "{bare:?} is not an argument. Arguments are NAME=VALUE or one JSON object. Did you mean:\n  \
         haft call {tool} {first}={}{given}{rest}\n`haft tools {tool}` lists the names.",
        shell_word(&bare)
    ))
}

/// The word as a shell needs it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
