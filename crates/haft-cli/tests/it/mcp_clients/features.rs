//! What everybody does with Haft: look at its tools, call them, read what they changed and what was too long to show. All of
//! it is in the ledger, and can be undone.

use serde_json::{Value, json};

use crate::fixture::mcp::McpFixture;
use crate::fixture::peer_client::{ClientRun, PeerClient, text};
use crate::mcp_clients::every_client;

every_client!(tour);

/// More than fit on one page.
const FILES: usize = 130;
const LAST: &str = "20000";

fn tour(client: PeerClient, transport: Transport) {
    let fixture = furnished();
    let run = client.run(&fixture, transport, &[], None, &steps(&fixture));
    tools(&fixture, &run);
    files(&fixture, &run);
    mistakes(&run);
    resources(&fixture, client, &run);
    prompts(&run);
    is_recorded_and_taken_back(&fixture);
}

fn furnished() -> McpFixture {
    let fixture = McpFixture::new();
    fixture.cli.write("letter.txt", "Dear Ann,\n");
    fixture.cli.write("old.txt", "old\n");
    std::fs::create_dir_all(fixture.path("many")).unwrap();
    for at in 0..FILES {
        fixture.cli.write(&format!("many/{at:03}.txt"), "");
    }
    std::fs::create_dir_all(fixture.path(".claude/skills/greet")).unwrap();
    let skill = "---\nname: greet\ndescription: Greets a person.\n---\nSay hello to $ARGUMENTS.\n";
    fixture.cli.write(".claude/skills/greet/SKILL.md", skill);
    fixture
}

fn steps(fixture: &McpFixture) -> Value {
    let letter = fixture.path("letter.txt");
    json!([
        {"list": "tools"},
        {"call": "Read", "arguments": {"file_path": letter}},
        {"call": "Write", "arguments": {"file_path": letter, "content": "Dear Bob,\n"}},
        {"call": "Bash", "arguments": {"command": "rm old.txt; echo new > new.txt; echo made"}},
        {"call": "Nonsense"},
        {"call": "Read", "arguments": {"file": letter}},
        {"call": "Read", "arguments": {"file_path": fixture.path("nowhere.txt")}},
        {"list": "resources"},
        {"read": format!("file://{letter}")},
        {"read": format!("file://{letter}.missing")},
        {"list": "prompts"},
        {"prompt": "greet", "arguments": {"arguments": "Ann"}},
        {"prompt": "insult"},
        {"call": "Bash", "arguments": {"command": format!("seq 1 {LAST}")}},
        {"read": {"link_of": 13}},
    ])
}

fn tools(fixture: &McpFixture, run: &ClientRun) {
    let items = run.steps[0]["items"].as_array().unwrap();
    let names: Vec<&str> = items.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let shown: Value = serde_json::from_str(&fixture.haft(&["tools", "--format", "mcp"])).unwrap();
    let shown = shown["tools"].as_array().or(shown.as_array()).unwrap();
    let mut known: Vec<&str> = shown.iter().filter_map(|tool| tool["name"].as_str()).collect();
    known.retain(|name| !matches!(*name, "TodoWrite" | "Agent" | "ExitPlanMode" | "Config"));
    known.retain(|name| {
        !matches!(*name, "WebSearch" | "AskUserQuestion" | "ListMcpResources" | "ReadMcpResource")
    });
    assert_eq!(
        names, known,
        "all that can work, in the one order, and the ledger's tools are not among them"
    );
    let hints = |at: usize| &items[at]["annotations"];
    assert_eq!((&hints(0)["readOnlyHint"], &hints(1)["readOnlyHint"]), (&json!(true), &json!(false)));
    assert!(items.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
}

fn files(fixture: &McpFixture, run: &ClientRun) {
    let [read, wrote, ran] = [&run.steps[1], &run.steps[2], &run.steps[3]];
    assert!(text(read).contains("Dear Ann,"), "{read}");
    assert_eq!(read["_meta"]["haft/facts"]["file"]["numLines"], 1, "{read}");
    assert!(text(wrote).contains("letter.txt"), "{wrote}");
    assert_eq!(text(ran), "made\n", "{ran}");
    assert_eq!(ran["_meta"]["haft/facts"]["exitCode"], 0, "{ran}");
    assert_eq!(fixture.cli.read("letter.txt"), "Dear Bob,\n");
    assert_eq!(fixture.cli.read("new.txt"), "new\n");
    assert!(!fixture.has("old.txt"));
}

fn mistakes(run: &ClientRun) {
    let [unknown, wrong, missing] = [&run.steps[4], &run.steps[5], &run.steps[6]];
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("Nonsense"), "{unknown}");
    assert!(wrong["isError"] == true && text(wrong).contains("did you mean file_path?"), "{wrong}");
    assert!(missing["isError"] == true && text(missing).contains("nowhere.txt"), "{missing}");
}

fn resources(fixture: &McpFixture, client: PeerClient, run: &ClientRun) {
    let (listed, read, missing) = (&run.steps[7], &run.steps[8], &run.steps[9]);
    let items = listed["items"].as_array().unwrap();
    let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("many/")).count(), FILES);
    assert!(names.contains(&"letter.txt") && names.is_sorted(), "{names:?}");
    if client.returns_pages() {
        assert_eq!(listed["pages"], 2);
    }
    assert_eq!(read["contents"][0]["text"], "Dear Bob,\n", "{read}");
    assert_eq!(missing["error"]["code"], client.missing_resource_code(), "{missing}");

    let (cut, whole) = (&run.steps[13], &run.steps[14]);
    assert!(text(cut).starts_with("1\n2\n") && text(cut).len() < 60_000, "{}", text(cut).len());
    let link = cut["content"].as_array().unwrap().last().unwrap();
    assert_eq!(link["type"], "resource_link", "{link}");
    let all = whole["contents"][0]["text"].as_str().unwrap();
    assert!(all.starts_with("1\n2\n") && all.ends_with(&format!("\n{LAST}\n")), "{}", all.len());
    assert_eq!(all.lines().count(), LAST.parse::<usize>().unwrap());
    assert!(fixture.receipts().iter().any(|receipt| receipt["tool"] == "resources/read"), "a look is a call");
}

fn prompts(run: &ClientRun) {
    let [listed, said, missing] = [&run.steps[10], &run.steps[11], &run.steps[12]];
    assert_eq!(listed["items"][0]["name"], "greet", "{listed}");
    assert_eq!(listed["items"][0]["description"], "Greets a person.", "{listed}");
    assert_eq!(said["messages"][0]["content"]["text"], "Say hello to Ann.", "{said}");
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
}

fn is_recorded_and_taken_back(fixture: &McpFixture) {
    let receipts = fixture.receipts();
    let session = receipts[0]["session"].as_str().unwrap();
    assert!(receipts.iter().all(|receipt| receipt["session"] == session), "one client, one session");
    let changed = |tool: &str| {
        let receipt = receipts.iter().find(|receipt| receipt["tool"] == tool).unwrap();
        receipt["changes"].as_array().unwrap().len()
    };
    assert_eq!((changed("Write"), changed("Bash")), (1, 2));
    fixture.haft(&["undo", "--session", session, "--yes"]);
    assert_eq!(fixture.cli.read("letter.txt"), "Dear Ann,\n");
    assert_eq!(fixture.cli.read("old.txt"), "old\n");
    assert!(!fixture.has("new.txt"));
}

/// The result of a tool that says what its results look like; both TypeScript clients hold it to that.
fn keeps_its_word(client: PeerClient) {
    let fixture = McpFixture::new();
    let steps = json!([{"list": "tools"}, {"call": "bash", "arguments": {"command": "echo made; exit 3"}}]);
    let run = client.run(&fixture, Transport::Stdio, &["--dialect", "loom"], None, &steps);
    let tools = run.steps[0]["items"].as_array().unwrap();
    let bash = tools.iter().find(|tool| tool["name"] == "bash").unwrap();
    assert!(bash["outputSchema"]["properties"]["exit_code"].is_object(), "{bash}");
    let ran = &run.steps[1];
    assert_eq!(ran["structuredContent"]["exit_code"], 3, "{ran}");
}

#[test]
fn a_result_is_what_its_tool_says_for_the_old_client() {
    keeps_its_word(TYPESCRIPT_1);
}

#[test]
fn a_result_is_what_its_tool_says_for_the_new_client() {
    keeps_its_word(TYPESCRIPT_2);
}
