//! What everybody does with Haft: look at its tools, call them, read what they changed and what was too long to show. All of
//! it is in the ledger, and can be taken back.

use serde_json::{Value, json};

use crate::every_client;
use crate::stage::Stage;
use crate::visitor::{Visit, Visitor, text};

every_client!(tour);

/// More than fit on one page.
const FILES: usize = 130;
const LAST: &str = "20000";

fn tour(visitor: Visitor, over: Over) {
    let stage = furnished();
    let visit = visitor.visit(&stage, over, &[], None, &steps(&stage));
    tools(&stage, &visit);
    files(&stage, &visit);
    mistakes(&visit);
    resources(&stage, visitor, &visit);
    prompts(&visit);
    is_recorded_and_taken_back(&stage);
}

fn furnished() -> Stage {
    let stage = Stage::new();
    stage.house.write("letter.txt", "Dear Ann,\n");
    stage.house.write("old.txt", "old\n");
    std::fs::create_dir_all(stage.path("many")).unwrap();
    for at in 0..FILES {
        stage.house.write(&format!("many/{at:03}.txt"), "");
    }
    std::fs::create_dir_all(stage.path(".claude/skills/greet")).unwrap();
    let skill = "---\nname: greet\ndescription: Greets somebody.\n---\nSay hello to $ARGUMENTS.\n";
    stage.house.write(".claude/skills/greet/SKILL.md", skill);
    stage
}

fn steps(stage: &Stage) -> Value {
    let letter = stage.path("letter.txt");
    json!([
        {"list": "tools"},
        {"call": "Read", "arguments": {"file_path": letter}},
        {"call": "Write", "arguments": {"file_path": letter, "content": "Dear Bob,\n"}},
        {"call": "Bash", "arguments": {"command": "rm old.txt; echo new > new.txt; echo made"}},
        {"call": "Nonsense"},
        {"call": "Read", "arguments": {"file": letter}},
        {"call": "Read", "arguments": {"file_path": stage.path("nowhere.txt")}},
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

fn tools(stage: &Stage, visit: &Visit) {
    let items = visit.steps[0]["items"].as_array().unwrap();
    let names: Vec<&str> = items.iter().filter_map(|tool| tool["name"].as_str()).collect();
    let shown: Value = serde_json::from_str(&stage.haft(&["tools", "--format", "mcp"])).unwrap();
    let shown = shown["tools"].as_array().or(shown.as_array()).unwrap();
    let known: Vec<&str> = shown.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, known, "all of them, in the one order, and the ledger's tools are not among them");
    let hints = |at: usize| &items[at]["annotations"];
    assert_eq!((&hints(0)["readOnlyHint"], &hints(1)["readOnlyHint"]), (&json!(true), &json!(false)));
    assert!(items.iter().all(|tool| tool["inputSchema"]["type"] == "object"));
}

fn files(stage: &Stage, visit: &Visit) {
    let [read, wrote, ran] = [&visit.steps[1], &visit.steps[2], &visit.steps[3]];
    assert!(text(read).contains("Dear Ann,"), "{read}");
    assert_eq!(read["_meta"]["haft/facts"]["file"]["numLines"], 1, "{read}");
    assert!(text(wrote).contains("letter.txt"), "{wrote}");
    assert_eq!(text(ran), "made\n", "{ran}");
    assert_eq!(ran["_meta"]["haft/facts"]["exitCode"], 0, "{ran}");
    assert_eq!(stage.house.read("letter.txt"), "Dear Bob,\n");
    assert_eq!(stage.house.read("new.txt"), "new\n");
    assert!(!stage.has("old.txt"));
}

fn mistakes(visit: &Visit) {
    let [unknown, wrong, missing] = [&visit.steps[4], &visit.steps[5], &visit.steps[6]];
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("Nonsense"), "{unknown}");
    assert!(wrong["isError"] == true && text(wrong).contains("did you mean file_path?"), "{wrong}");
    assert!(missing["isError"] == true && text(missing).contains("nowhere.txt"), "{missing}");
}

fn resources(stage: &Stage, visitor: Visitor, visit: &Visit) {
    let (listed, read, missing) = (&visit.steps[7], &visit.steps[8], &visit.steps[9]);
    let items = listed["items"].as_array().unwrap();
    let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    assert_eq!(names.iter().filter(|name| name.starts_with("many/")).count(), FILES);
    assert!(names.contains(&"letter.txt") && names.is_sorted(), "{names:?}");
    if visitor.shows_pages() {
        assert_eq!(listed["pages"], 2);
    }
    assert_eq!(read["contents"][0]["text"], "Dear Bob,\n", "{read}");
    assert_eq!(missing["error"]["code"], visitor.hears_of_a_missing_resource(), "{missing}");

    let (cut, whole) = (&visit.steps[13], &visit.steps[14]);
    assert!(text(cut).starts_with("1\n2\n") && text(cut).len() < 60_000, "{}", text(cut).len());
    let link = cut["content"].as_array().unwrap().last().unwrap();
    assert_eq!(link["type"], "resource_link", "{link}");
    let all = whole["contents"][0]["text"].as_str().unwrap();
    assert!(all.starts_with("1\n2\n") && all.ends_with(&format!("\n{LAST}\n")), "{}", all.len());
    assert_eq!(all.lines().count(), LAST.parse::<usize>().unwrap());
    assert!(stage.receipts().iter().any(|receipt| receipt["tool"] == "resources/read"), "a look is a call");
}

fn prompts(visit: &Visit) {
    let [listed, said, missing] = [&visit.steps[10], &visit.steps[11], &visit.steps[12]];
    assert_eq!(listed["items"][0]["name"], "greet", "{listed}");
    assert_eq!(listed["items"][0]["description"], "Greets somebody.", "{listed}");
    assert_eq!(said["messages"][0]["content"]["text"], "Say hello to Ann.", "{said}");
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
}

fn is_recorded_and_taken_back(stage: &Stage) {
    let receipts = stage.receipts();
    let session = receipts[0]["session"].as_str().unwrap();
    assert!(receipts.iter().all(|receipt| receipt["session"] == session), "one client, one session");
    let changed = |tool: &str| {
        let receipt = receipts.iter().find(|receipt| receipt["tool"] == tool).unwrap();
        receipt["changes"].as_array().unwrap().len()
    };
    assert_eq!((changed("Write"), changed("Bash")), (1, 2));
    stage.haft(&["undo", "--session", session, "--yes"]);
    assert_eq!(stage.house.read("letter.txt"), "Dear Ann,\n");
    assert_eq!(stage.house.read("old.txt"), "old\n");
    assert!(!stage.has("new.txt"));
}

/// The result of a tool that says what its results look like; both TypeScript clients hold it to that.
fn keeps_its_word(visitor: Visitor) {
    let stage = Stage::new();
    let steps = json!([{"list": "tools"}, {"call": "bash", "arguments": {"command": "echo made; exit 3"}}]);
    let visit = visitor.visit(&stage, Over::Stdio, &["--dialect", "loom"], None, &steps);
    let tools = visit.steps[0]["items"].as_array().unwrap();
    let bash = tools.iter().find(|tool| tool["name"] == "bash").unwrap();
    assert!(bash["outputSchema"]["properties"]["exit_code"].is_object(), "{bash}");
    let ran = &visit.steps[1];
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
