//! The parameters of every tool: names, types, which are required, and the ranges that are shown.

use haft::{Registry, Settings, Value, dialects};

/// Each tool's parameters in a row: `name:type`, with `*` if it is required.
fn parameters(dialect: &str) -> Vec<String> {
    let dialect = dialects::by_name(dialect, &Settings::default()).unwrap();
    let line = |tool: haft::Definition| format!("{} {}", tool.name, fields(&tool.input_schema));
    Registry::of(&dialect).definitions().into_iter().map(line).collect()
}

fn fields(schema: &Value) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let each = schema["properties"].as_object().into_iter().flatten().map(|(name, field)| {
        let star = if required.contains(&name.as_str()) { "*" } else { "" };
        format!("{name}{star}:{}", kind(field))
    });
    each.collect::<Vec<_>>().join(" ")
}

fn kind(schema: &Value) -> String {
    if let Some(texts) = schema["enum"].as_array() {
        return texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|");
    }
    if let Some(options) = schema["anyOf"].as_array() {
        return options.iter().map(kind).collect::<Vec<_>>().join("|");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("[{}]", kind(&schema["items"])),
        Value::String(name) if name == "object" && schema["additionalProperties"].is_object() => {
            format!("{{*:{}}}", kind(&schema["additionalProperties"]))
        }
        Value::String(name) if name == "object" => format!("{{{}}}", fields(schema)),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|"),
        _ => "any".to_owned(),
    }
}

#[test]
fn omega_has_the_documented_parameters() {
    let expected = [
        "bash command*:string",
        "read file_path*:string",
        "write file_path*:string content*:string",
        "edit file_path*:string old_string*:string new_string*:string",
    ];
    assert_eq!(parameters("omega"), expected);
}

#[test]
fn loom_has_the_documented_parameters() {
    let expected = [
        "read_file path*:string max_bytes:integer",
        "list_files root:string max_results:integer",
        "edit_file path*:string edits*:[{old_str*:string new_str*:string replace_all:boolean}]",
        "oracle query*:string model:string max_tokens:integer temperature:number system_prompt:string",
        "bash command*:string cwd:string timeout_secs:integer",
        "web_search query*:string max_results:integer",
    ];
    assert_eq!(parameters("loom"), expected);
}

#[test]
fn loom_shows_its_ranges() {
    let dialect = dialects::by_name("loom", &Settings::default()).unwrap();
    let tools = Registry::of(&dialect).definitions();
    let range = |tool: &str, field: &str| {
        let tool = tools.iter().find(|one| one.name == tool).unwrap();
        let schema = &tool.input_schema["properties"][field];
        (schema["minimum"].as_f64(), schema["maximum"].as_f64())
    };
    assert_eq!(range("oracle", "max_tokens"), (Some(16.0), Some(4096.0)));
    assert_eq!(range("oracle", "temperature"), (Some(0.0), Some(2.0)));
    assert_eq!(range("bash", "timeout_secs"), (Some(1.0), Some(300.0)));
    assert_eq!(range("web_search", "max_results"), (Some(1.0), Some(10.0)));
}

#[test]
fn clawft_has_the_documented_parameters() {
    let expected = [
        "read_file path*:string",
        "write_file path*:string content*:string",
        "edit_file path*:string old_text*:string new_text*:string",
        "list_directory path*:string",
        "exec_shell command*:string timeout:number",
        "memory_read query:string",
        "memory_write content*:string mode:append|overwrite",
        "web_search query*:string num_results:integer",
        "web_fetch url*:string method:string headers:{*:string}",
        "spawn command*:string args:[string] description:string timeout:number",
        "message channel*:string chat_id*:string content*:string",
    ];
    assert_eq!(parameters("clawft"), expected);
}

#[test]
fn claude_has_the_documented_parameters() {
    let lines = parameters("claude");
    let has = |tool: &str, documented: &str| {
        let line = lines.iter().find(|line| line.split(' ').next() == Some(tool));
        let line = line.unwrap_or_else(|| panic!("there is no {tool}"));
        let fields: Vec<&str> = split(&line[tool.len() + 1..]);
        for field in split(documented) {
            assert!(fields.contains(&field), "{tool} has no {field}: {line}");
        }
    };
    has("Bash", "command*:string timeout:integer description:string run_in_background:boolean");
    has("Read", "file_path*:string offset:integer limit:integer pages:string");
    has("Write", "file_path*:string content*:string");
    has("Edit", "file_path*:string old_string*:string new_string*:string replace_all:boolean");
    has("Glob", "pattern*:string path:string");
    has("Grep", "pattern*:string path:string glob:string output_mode:content|files_with_matches|count");
    has("Grep", "-B:integer -A:integer -C:integer -n:boolean -i:boolean type:string");
    has("Grep", "head_limit:integer offset:integer multiline:boolean");
    has(
        "Agent",
        "description*:string prompt*:string subagent_type*:string model:sonnet|opus|haiku resume:string",
    );
    has("Agent", "run_in_background:boolean max_turns:integer name:string team_name:string");
    has("Agent", "mode:acceptEdits|bypassPermissions|default|delegate|dontAsk|plan");
    has("WebSearch", "query*:string allowed_domains:[string] blocked_domains:[string]");
    has("WebFetch", "url*:string prompt*:string");
    has("TodoWrite", "todos*:[{content*:string status*:pending|in_progress|completed activeForm*:string}]");
    let options = "options*:[{label*:string description*:string}]";
    let question = format!("{{question*:string header*:string {options} multiSelect*:boolean}}");
    has("AskUserQuestion", &format!("questions*:[{question}] answers:{{*:string}}"));
    has("Config", "setting*:string value:string|boolean|number");
}

/// The fields of one level: blanks inside brackets do not part them.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = text.split(|letter: char| {
        depth += i32::from("[{".contains(letter)) - i32::from("]}".contains(letter));
        letter == ' ' && depth == 0
    });
    parts.collect()
}
