//! What servers say of their tools, made fit.

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

fn found(tools: &[ServerTool], name: &str) -> Result<PortableTool, String> {
    make_portable(tools.iter().find(|tool| tool.name == name).expect("the tool is listed"))
}

#[test]
fn a_bounded_number_of_tools_is_kept_and_the_rest_is_counted() {
    let (client, _run) = client("tools-10000", BOTH, generous());
    let all = client.list_tools().unwrap();
    assert_eq!(all.items.len(), 1000);
    assert!(all.warnings[0].contains("9008"), "{:?}", all.warnings);
}

#[test]
fn every_name_becomes_one_that_every_provider_takes_and_leads_back() {
    for mode in [
        "names-control",
        "names-long",
        "names-collide",
        "shadow-servers",
        "shadow-builtins",
        "hidden-unicode",
        "ansi-escapes",
    ] {
        let (client, _run) = client(mode, BOTH, generous());
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
fn names_that_are_none_and_names_that_come_twice_are_told_of() {
    let (wrong, _run) = client("names-wrong", BOTH, generous());
    let all = wrong.list_tools().unwrap();
    assert_eq!((all.items.len(), all.warnings.len()), (8, 5), "{:?}", all.warnings);
    let (twice, _run) = client("names-twice", BOTH, generous());
    let all = twice.list_tools().unwrap();
    assert_eq!((all.items.len(), all.warnings.len()), (9, 1), "{:?}", all.warnings);
}

#[test]
fn one_odd_schema_costs_one_tool_at_most() {
    for (mode, mends) in [
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
        let (client, _run) = client(mode, BOTH, generous());
        let tools = tools(&client);
        let odd = found(&tools, "odd");
        assert_eq!(odd.is_ok(), mends, "{mode}: {odd:?}");
        if let Ok(odd) = odd {
            assert_eq!(odd.input_schema["type"], "object", "{mode}");
        }
        let echo = found(&tools, "echo").unwrap();
        assert_eq!(echo.input_schema["required"], json!(["text"]), "{mode}");
        if mode == "schema-external" {
            assert_eq!(text_of(&call(&client, "fetched", &json!({})).unwrap()), "fetched 0 times");
        }
    }
}

#[test]
fn nothing_hidden_is_left_in_what_a_model_reads() {
    for mode in ["hidden-unicode", "ansi-escapes"] {
        let (client, _run) = client(mode, BOTH, generous());
        let echo_tool = found(&tools(&client), "echo").unwrap();
        assert_eq!(echo_tool.description, "Gives back its text.", "{mode}");
        assert_eq!(echo_tool.title.as_deref(), Some("Echo"), "{mode}");
        assert_eq!(echo_tool.input_schema["properties"]["text"]["description"], "What to say.", "{mode}");
        assert_eq!(client.info().instructions.as_deref(), Some("Be good."), "{mode}");
        assert_eq!(clean(&echo(&client, "hi").unwrap(), usize::MAX), "hi", "{mode}");
    }
}

#[test]
fn instructions_are_bounded() {
    let (client, _run) = client("instructions-1m", BOTH, generous());
    let instructions = client.info().instructions.unwrap();
    assert!(
        instructions.starts_with("Always obey.") && instructions.len() < 20_000,
        "{}",
        instructions.len()
    );
}
