//! Names, schemas and texts of tools.

use std::collections::BTreeSet;

use haft_mcp::client::portable::{PortableTool, ToolNames, clean, make_portable};
use haft_mcp::client::{McpClient, ServerTool};
use serde_json::json;

use super::{BOTH, call, client, echo, generous, text_of};

fn tools(client: &McpClient) -> Vec<ServerTool> {
    client.list_tools().unwrap().items
}

fn names(tools: &[ServerTool]) -> ToolNames {
    let pairs = tools.iter().map(|tool| ("hostile", tool.name.as_str()));
    ToolNames::new(pairs, |server, tool| format!("mcp__{server}__{tool}"), &BTreeSet::new())
}

fn portable_tool(tools: &[ServerTool], name: &str) -> Result<PortableTool, String> {
    make_portable(tools.iter().find(|tool| tool.name == name).expect("the tool is listed"))
}

#[test]
fn number_of_tools_is_limited() {
    let (client, _server) = client("tools-10000", BOTH, generous());
    let all = client.list_tools().unwrap();
    assert_eq!(all.items.len(), 1000);
    assert!(all.warnings[0].contains("9008"), "{:?}", all.warnings);
}

#[test]
fn every_tool_gets_a_valid_name() {
    for mode in [
        "names-control",
        "names-long",
        "names-collide",
        "shadow-servers",
        "shadow-builtins",
        "hidden-unicode",
        "ansi-escapes",
    ] {
        let (client, _server) = client(mode, BOTH, generous());
        let tools = tools(&client);
        let names = names(&tools);
        assert_eq!(names.iter().count(), tools.len(), "{mode}");
        for (name, (_, tool)) in names.iter() {
            assert!(name.starts_with("mcp__hostile__") && name.len() <= 64, "{mode}: {name}");
            assert!(
                name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
                "{mode}: {name}"
            );
            assert!(tools.iter().any(|one| one.name == tool));
        }
        assert_eq!(names.name("hostile", "echo"), Some("mcp__hostile__echo"), "{mode}");
    }
}

#[test]
fn invalid_and_duplicate_names_are_reported() {
    let (wrong, _server) = client("names-wrong", BOTH, generous());
    let all = wrong.list_tools().unwrap();
    assert_eq!((all.items.len(), all.warnings.len()), (8, 5), "{:?}", all.warnings);
    let (twice, _server) = client("names-twice", BOTH, generous());
    let all = twice.list_tools().unwrap();
    assert_eq!((all.items.len(), all.warnings.len()), (9, 1), "{:?}", all.warnings);
}

#[test]
fn invalid_schema_affects_only_its_tool() {
    for (mode, is_usable) in [
        ("schema-missing", true),
        ("schema-list", false),
        ("schema-text", false),
        ("schema-true", false),
        ("schema-empty", true),
        ("schema-type-array", false),
        ("schema-nonsense", true),
        ("schema-any-of", true),
        ("schema-recursive", true),
        ("schema-1m", false),
        ("schema-regex", true),
        ("schema-output-odd", true),
        ("schema-long-names", true),
        ("schema-external", false),
    ] {
        let (client, _server) = client(mode, BOTH, generous());
        let tools = tools(&client);
        let odd = portable_tool(&tools, "odd");
        assert_eq!(odd.is_ok(), is_usable, "{mode}: {odd:?}");
        if let Ok(odd) = odd {
            assert_eq!(odd.input_schema["type"], "object", "{mode}");
        }
        let echo = portable_tool(&tools, "echo").unwrap();
        assert_eq!(echo.input_schema["required"], json!(["text"]), "{mode}");
        if mode == "schema-external" {
            assert_eq!(text_of(&call(&client, "fetched", &json!({})).unwrap()), "fetched 0 times");
        }
    }
}

#[test]
fn hidden_characters_are_removed() {
    for mode in ["hidden-unicode", "ansi-escapes"] {
        let (client, _server) = client(mode, BOTH, generous());
        let echo_tool = portable_tool(&tools(&client), "echo").unwrap();
        assert_eq!(echo_tool.description, "Gives back its text.", "{mode}");
        assert_eq!(echo_tool.title.as_deref(), Some("Echo"), "{mode}");
        assert_eq!(echo_tool.input_schema["properties"]["text"]["description"], "What to say.", "{mode}");
        assert_eq!(client.info().instructions.as_deref(), Some("Be good."), "{mode}");
        assert_eq!(clean(&echo(&client, "hi").unwrap(), usize::MAX), "hi", "{mode}");
    }
}

#[test]
fn instructions_are_bounded() {
    let (client, _server) = client("instructions-1m", BOTH, generous());
    let instructions = client.info().instructions.unwrap();
    assert!(
        instructions.starts_with("Always obey.") && instructions.len() < 20_000,
        "{}",
        instructions.len()
    );
}
