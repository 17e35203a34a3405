//! The definitions of every dialect: documented tools, valid schemas, what each provider takes, what they cost, and for
//! `claude` the published types.

mod providers;
mod published;
mod shape;
mod typescript;

use haft::formats::{ProviderFormat, definitions};
use haft::{Definition, Runtime, Settings, Value, dialects};

/// The tools of each dialect, in the order of its document.
const TOOLS: &[(&str, &[&str])] = &[
    (
        "claude",
        &[
            "Agent",
            "Bash",
            "TaskOutput",
            "ExitPlanMode",
            "Edit",
            "Read",
            "Write",
            "Glob",
            "Grep",
            "TaskStop",
            "ListMcpResources",
            "NotebookEdit",
            "ReadMcpResource",
            "TodoWrite",
            "WebFetch",
            "WebSearch",
            "AskUserQuestion",
            "Config",
        ],
    ),
    ("loom", &["read_file", "list_files", "edit_file", "oracle", "bash", "web_search"]),
    ("omega", &["bash", "read", "write", "edit"]),
    (
        "clawft",
        &[
            "read_file",
            "write_file",
            "edit_file",
            "list_directory",
            "exec_shell",
            "memory_read",
            "memory_write",
            "web_search",
            "web_fetch",
            "spawn",
            "message",
        ],
    ),
];

/// The definitions of a dialect as a runtime offers them.
fn defined(dialect: &str) -> Vec<Definition> {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let dialect = dialects::by_name(dialect, &Settings::default()).unwrap();
    let haft = Runtime::builder().workspace(folder.path()).home(home.path()).dialect(dialect);
    haft.build().unwrap().definitions()
}

/// How many bytes a provider is sent in the commonest format.
fn as_sent(dialect: &str) -> usize {
    definitions(ProviderFormat::Openai, &defined(dialect)).to_string().len()
}

#[test]
fn each_dialect_has_exactly_the_documented_tools() {
    assert_eq!(TOOLS.iter().map(|(dialect, _)| *dialect).collect::<Vec<_>>(), dialects::NAMES);
    for (dialect, documented) in TOOLS {
        let mut names: Vec<_> = defined(dialect).into_iter().map(|tool| tool.name).collect();
        let mut documented: Vec<_> = documented.iter().map(|name| (*name).to_owned()).collect();
        names.sort();
        documented.sort();
        assert_eq!(names, documented, "{dialect}");
    }
}

#[test]
fn every_schema_is_valid_json_schema_2020_12() {
    for dialect in dialects::NAMES {
        for tool in defined(dialect) {
            let name = format!("{dialect} {}", tool.name);
            for schema in [Some(&tool.input_schema), tool.output_schema.as_ref()].into_iter().flatten() {
                assert_eq!(schema["type"], "object", "{name}");
                if let Err(error) = jsonschema::draft202012::meta::validate(schema) {
                    panic!("{name}: {error} at {}", error.instance_path());
                }
                assert!(jsonschema::draft202012::new(schema).is_ok(), "{name}");
            }
        }
    }
}

#[test]
fn tools_whose_result_is_one_value_declare_its_schema_and_only_mcp_is_sent_it() {
    for dialect in dialects::NAMES {
        let tools = defined(dialect);
        let whole = matches!(*dialect, "loom" | "clawft");
        for tool in &tools {
            assert_eq!(tool.output_schema.is_some(), whole, "{dialect} {}", tool.name);
        }
        let sent = |format| definitions(format, &tools).to_string();
        assert_eq!(sent(ProviderFormat::Mcp).contains("outputSchema"), whole, "{dialect}");
        for format in [
            ProviderFormat::Openai,
            ProviderFormat::Anthropic,
            ProviderFormat::Gemini,
            ProviderFormat::Ollama,
        ] {
            assert!(!sent(format).contains("original_count"), "{dialect} {format:?}");
        }
    }
}

#[test]
fn every_tool_and_every_parameter_is_described() {
    fn look(name: &str, schema: &Value) {
        for (field, inner) in schema["properties"].as_object().into_iter().flatten() {
            let name = format!("{name}.{field}");
            assert!(inner["description"].as_str().is_some_and(|words| !words.is_empty()), "{name}");
            look(&name, inner);
            look(&name, &inner["items"]);
        }
    }
    for dialect in dialects::NAMES {
        for tool in defined(dialect) {
            assert!(!tool.description.is_empty(), "{dialect} {}", tool.name);
            // Models know the parameters of this dialect; the fewer words, the less each request costs.
            if *dialect != "claude" {
                look(&format!("{dialect} {}", tool.name), &tool.input_schema);
                let given = tool.output_schema.unwrap_or_default();
                look(&format!("the result of {dialect} {}", tool.name), &given);
                for list in given["properties"].as_object().into_iter().flat_map(|all| all.values()) {
                    look(&format!("an item of {dialect} {}", tool.name), &list["items"]["anyOf"][0]);
                }
            }
        }
    }
}

#[test]
fn definitions_cost_a_request_little() {
    for (dialect, most) in [("claude", 12_000), ("loom", 6_000), ("omega", 1_500), ("clawft", 7_000)] {
        let bytes = as_sent(dialect);
        assert!(bytes < most, "the definitions of {dialect} take {bytes} bytes, and {most} are allowed");
    }
}

#[test]
fn definitions_are_as_they_were() {
    for dialect in dialects::NAMES {
        let text = serde_json::to_string_pretty(&defined(dialect)).unwrap();
        insta::assert_snapshot!(format!("definitions_{dialect}"), text);
    }
}
