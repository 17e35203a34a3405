//! Sessions, calls, changes, differences, contents and rules, as the API returns them.

use haft_ledger::{EventLog as _, Expected, Ledger, NewSession};
use serde_json::{Value, json};

use crate::fixture::cli::CliFixture;
use crate::fixture::serve::{ACT, ServeFixture, ServeProcess};
use crate::fixture::stdio_client::ServedClient;

/// A picture of one pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";

/// More matches than were once examined.
const MANY_MATCHES: usize = 600;

/// Makes calls in one session.
pub(super) fn session_with(cli: &CliFixture, flags: &[&str], calls: &[(&str, Value)]) {
    let mut client = ServedClient::start(cli.command(&[&["mcp"], flags].concat()));
    client.initialize(&json!({}));
    for (tool, arguments) in calls {
        client.call(tool, arguments);
    }
}

pub(super) fn bash(command: impl AsRef<str>) -> (&'static str, Value) {
    ("Bash", json!({ "command": command.as_ref() }))
}

/// The values of one field of a list.
pub(super) fn all<'a>(list: &'a Value, field: &str) -> Vec<&'a Value> {
    list.as_array().unwrap().iter().map(|entry| &entry[field]).collect()
}

/// A session with calls of all kinds: one that is denied by a rule, one that fails, one with a long output, one that reads.
pub(super) fn history(fixture: &ServeFixture) {
    let cli = &fixture.cli;
    std::fs::write(cli.config(), "[permissions]\ndeny = [\n  \"Bash(rm *)\",\n]\n").unwrap();
    std::fs::write(cli.path("pixel.png"), PNG).unwrap();
    let edit = json!({"file_path": cli.path("a.txt"), "old_string": "two", "new_string": "TWO"});
    session_with(
        cli,
        &[],
        &[
            bash(
                "printf 'one\\ntwo\\nthree\\n' > a.txt; printf 'x' > 'odd name'; mkdir d; cp pixel.png copy.png",
            ),
            ("Read", json!({"file_path": cli.path("a.txt")})),
            ("Edit", edit),
            bash("rm a.txt"),
            bash("echo to-stdout; echo needle >&2; exit 3"),
            bash("seq 1 40000"),
            bash("mv a.txt d/b.txt && chmod 600 d/b.txt && ln -s b.txt d/link"),
        ],
    );
}

#[test]
fn calls_are_listed_newest_first_filtered_and_in_pages() {
    let fixture = ServeFixture::new();
    history(&fixture);
    let server = fixture.serve();
    let sessions = server.get("/sessions");
    let id = sessions["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(sessions["sessions"][0]["calls"], 7);
    assert_eq!(sessions["sessions"][0]["entry_point"], "mcp");
    assert_eq!(sessions["next"], Value::Null);
    let list = format!("/sessions/{id}/calls");
    let ids = |query: &str| -> Vec<i64> {
        let list = server.get(&format!("{list}{query}"));
        all(&list["calls"], "id").into_iter().map(|id| id.as_i64().unwrap()).collect()
    };
    assert_eq!(ids(""), [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!(ids("?tool=Read"), [2]);
    assert_eq!(ids("?changed=1"), [7, 3, 1]);
    assert_eq!(ids("?failed=1"), [5, 4]);
    assert_eq!(ids("?text=NEEDLE"), [5]);
    assert_eq!(ids("?text=%25"), Vec::<i64>::new());
    assert_eq!(ids("?text=seq&tool=Bash"), [6]);
    let mut seen = Vec::new();
    let mut before = String::new();
    loop {
        let page = server.get(&format!("{list}?limit=3{before}"));
        seen.extend(all(&page["calls"], "id").into_iter().map(|id| id.as_i64().unwrap()));
        let Some(next) = page["next"].as_i64() else { break };
        before = format!("&before={next}");
    }
    assert_eq!(seen, [7, 6, 5, 4, 3, 2, 1]);
    assert_eq!((ids("?after=0"), ids("?after=5")), (vec![1, 2, 3, 4, 5, 6, 7], vec![6, 7]));
    assert_eq!(ids("?after=1&failed=1"), [4, 5]);
    let first = server.get(&format!("{list}?after=0&limit=3"));
    assert_eq!(
        (all(&first["calls"], "id"), &first["next"]),
        (vec![&json!(1), &json!(2), &json!(3)], &json!(3))
    );
    assert_eq!(server.get(&format!("{list}?after=3&limit=4"))["calls"][3]["id"], 7);
    let newest_first = server.get(&list);
    let by_id = |id: usize| &newest_first["calls"][7 - id];
    assert_eq!((&by_id(4)["state"], &by_id(4)["about"]), (&json!("denied"), &json!("rm a.txt")));
    assert_eq!((&by_id(5)["state"], &by_id(5)["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((&by_id(1)["change_count"], &by_id(1)["reversible"]), (&json!(4), &json!("yes")));
    assert!(by_id(1)["duration_us"].as_u64() > Some(0));
    // The same calls in the list of all sessions, and of the folder.
    assert_eq!(server.get("/calls")["calls"], server.get(&list)["calls"]);
    let here = format!("/calls?workspace={}", fixture.workspace());
    assert_eq!(server.get(&here)["calls"], server.get(&list)["calls"]);
    assert_eq!(server.get("/calls?workspace=/nonexistent")["calls"], json!([]));
}

#[test]
fn sessions_are_found_by_what_is_in_them() {
    let fixture = ServeFixture::new();
    history(&fixture);
    fixture.cli.call("Bash", &json!({"command": "echo other"}));
    fixture.cli.call("Bash", &json!({"command": "echo third"}));
    let server = fixture.serve();
    let found = |query: &str| server.get(&format!("/sessions{query}"))["sessions"].as_array().unwrap().len();
    assert_eq!((found(""), found("?q=needle"), found("?q=OTHER"), found("?q=nowhere-at-all")), (3, 1, 1, 0));
    assert_eq!(found(&format!("?workspace={}", fixture.workspace())), 3);
    assert_eq!(found("?workspace=/nonexistent"), 0);
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/sessions?limit=1{before}"));
        seen.extend(all(&page["sessions"], "id").into_iter().cloned());
        let Some(next) = page["next"].as_str() else { break };
        before = format!("&before={next}");
    }
    assert_eq!(
        seen,
        all(&server.get("/sessions")["sessions"], "id").into_iter().cloned().collect::<Vec<_>>()
    );
    let id = seen[0].as_str().unwrap();
    assert_eq!(server.get(&format!("/sessions/{id}"))["session"]["id"], id);
    // The beginning of an id is not an id.
    assert_eq!(server.api(ACT, "GET", &format!("/sessions/{}", &id[..4]), None).status, 404);
}

/// Many calls and messages of one session do not hide the others.
#[test]
fn sessions_are_found_behind_many_matches_of_newer_ones() {
    let fixture = ServeFixture::new();
    fixture.cli.call("Bash", &json!({"command": "echo needle"}));
    let ledger = Ledger::open(fixture.cli.home()).unwrap();
    let new = NewSession {
        workspace: fixture.cli.root().canonicalize().unwrap(),
        dialect: "claude".to_owned(),
        entry_point: "test".to_owned(),
    };
    let said = |session: &str, text: &str| {
        let event = json!({"event": "hook_message", "hook": "Stop", "text": text});
        ledger.append(session, Expected::Any, &event).unwrap();
    };
    let early = ledger.start_session(&new).unwrap();
    said(&early, "a needle");
    let busy = ledger.start_session(&new).unwrap();
    for number in 0..MANY_MATCHES {
        said(&busy, &format!("needle {number}"));
    }
    let reads: Vec<_> =
        (0..MANY_MATCHES).map(|_| ("Read", json!({"file_path": fixture.cli.path("needle")}))).collect();
    session_with(&fixture.cli, &[], &reads);
    let server = fixture.serve();
    let found = server.get("/sessions?q=needle");
    assert_eq!((found["sessions"].as_array().unwrap().len(), &found["next"]), (4, &Value::Null));
    let first = server.get("/sessions?q=needle&limit=3");
    let rest = server.get(&format!("/sessions?q=needle&limit=3&before={}", first["next"].as_str().unwrap()));
    let both =
        [first["sessions"].as_array().unwrap().as_slice(), rest["sessions"].as_array().unwrap()].concat();
    assert_eq!(json!(both), found["sessions"]);
}

#[test]
fn a_call_says_what_was_decided_by_which_line_and_what_came_of_it() {
    let fixture = ServeFixture::new();
    history(&fixture);
    let server = fixture.serve();
    let denied = server.get("/calls/4");
    assert_eq!(denied["decision"]["verdict"], "deny");
    let (rule, line) =
        (denied["decision"]["rule"].as_str().unwrap(), format!("{}:3", fixture.cli.config().display()));
    assert!(rule.contains("Bash(rm *)") && rule.contains(&line), "{rule}");
    assert!(denied["error"].as_str().is_some_and(|error| !error.is_empty()), "{denied}");
    let edited = server.get("/calls/3");
    assert_eq!(edited["input"]["new_string"], "TWO");
    assert_eq!(edited["changes"]["total"], 1);
    let failed = server.get("/calls/5");
    let result = failed["result"].as_str().unwrap();
    assert!(result.contains("to-stdout") && result.contains("needle"), "{result}");
    assert!(failed["enforcement"].is_string(), "{failed}");
    let first = server.get("/calls/1");
    assert_eq!(all(&first["changes"]["changes"], "path"), ["a.txt", "copy.png", "d", "odd name"]);
    let part = server.get("/calls/1/changes?offset=1&limit=2");
    assert_eq!(all(&part["changes"], "path"), ["copy.png", "d"]);
    assert_eq!((&part["total"], &part["next"]), (&json!(4), &json!(3)));
    assert_eq!(all(&server.get("/calls/1/changes?path=ODD")["changes"], "path"), ["odd name"]);
    let moved = server.get("/calls/7");
    let moved = moved["changes"]["changes"].as_array().unwrap();
    let of_file = moved.iter().find(|change| change["moved_to"] == "d/b.txt");
    let is_told = of_file.is_some_and(|change| change["path"] == "a.txt" && change["after"]["mode"] == "600");
    let as_two = moved.iter().any(|change| change["path"] == "d/b.txt" && change["after"]["mode"] == "600");
    assert!(is_told || as_two, "{moved:?}");
    let link = moved.iter().find(|change| change["path"] == "d/link").unwrap();
    assert_eq!((&link["after"]["kind"], &link["after"]["target"]), (&json!("link"), &json!("b.txt")));
}

#[test]
fn the_whole_output_comes_in_parts_that_fit_together() {
    let fixture = ServeFixture::new();
    history(&fixture);
    // Characters of several bytes lie across the boundaries of the parts.
    fixture
        .cli
        .call("Bash", &json!({"command": "printf 'a'; for i in $(seq 40000); do printf '€€€€'; done"}));
    let server = fixture.serve();
    assert!(server.get("/calls/6")["full_output"].is_string());
    let whole = |call: usize| {
        let (mut text, mut from, mut parts) = (String::new(), 0, 0);
        loop {
            let answer = server.api(ACT, "GET", &format!("/calls/{call}/output?from={from}"), None);
            if answer.status == 404 {
                return (text, parts);
            }
            let part = answer.json();
            assert_eq!(part["from"], from);
            text += part["text"].as_str().unwrap();
            from = part["next"].as_u64().unwrap();
            parts += 1;
        }
    };
    let numbers: String = (1..=40_000).map(|number| format!("{number}\n")).collect();
    assert!(whole(6).0 == numbers, "the numbers are not complete");
    let (euros, parts) = whole(8);
    assert!(euros.trim_end() == format!("a{}", "€".repeat(160_000)) && parts > 1, "{} {parts}", euros.len());
}

fn change_of(server: &ServeProcess, call: usize, path: &str) -> Value {
    let changes = server.get(&format!("/calls/{call}/changes"));
    changes["changes"].as_array().unwrap().iter().find(|change| change["path"] == path).unwrap().clone()
}

fn diff(server: &ServeProcess, workspace: &str, change: &Value) -> Value {
    let hash = |side: &str| change[side]["hash"].as_str().unwrap_or_default().to_owned();
    let path = change["path"].as_str().unwrap().replace(' ', "%20");
    server.get(&format!(
        "/diff?path={path}&before={}&after={}&workspace={workspace}",
        hash("before"),
        hash("after")
    ))
}

#[test]
fn differences_are_of_lines_and_pictures_are_shown_as_such() {
    let fixture = ServeFixture::new();
    history(&fixture);
    let server = fixture.serve();
    let workspace = fixture.workspace();
    let edited = diff(&server, &workspace, &change_of(&server, 3, "a.txt"));
    assert_eq!((&edited["kind"], &edited["changes"]["added"]), (&json!("text"), &json!(1)));
    let lines = edited["changes"]["hunks"][0]["lines"].as_array().unwrap();
    let texts: Vec<&str> = lines.iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["one", "two", "TWO", "three"]);
    let picture = change_of(&server, 1, "copy.png");
    assert_eq!(
        diff(&server, &workspace, &picture),
        json!({"kind": "image", "before": null, "after": "image/png"})
    );
    let blob = |hash: &str| server.api(ACT, "GET", &format!("/blobs/{hash}"), None);
    let shown = blob(picture["after"]["hash"].as_str().unwrap());
    assert_eq!((shown.header("content-type"), shown.body.as_slice()), (Some("image/png"), PNG));
    let text = blob(change_of(&server, 3, "a.txt")["after"]["hash"].as_str().unwrap());
    assert_eq!(text.header("content-type"), Some("application/octet-stream"));
    assert_eq!(
        (text.header("content-disposition"), text.body.as_slice()),
        (Some("attachment"), &b"one\nTWO\nthree\n"[..])
    );
    assert_eq!(blob(&"0".repeat(64)).status, 404);
}

/// SVG images can contain scripts, and HTML stays HTML whatever its file is called.
#[test]
fn contents_that_browsers_would_run_are_bytes() {
    let fixture = ServeFixture::new();
    let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"/>";
    fixture.cli.write("in.svg", svg);
    let both = format!("{}<script>alert(1)</script>", String::from_utf8_lossy(&PNG[..8]));
    std::fs::write(fixture.cli.path("in.png"), both).unwrap();
    fixture
        .cli
        .call("Bash", &json!({"command": "cp in.svg a.svg; cp in.png b.png; head -c 5000 /dev/urandom > c"}));
    let server = fixture.serve();
    for path in ["a.svg", "b.png", "c"] {
        let hash = change_of(&server, 1, path)["after"]["hash"].as_str().unwrap().to_owned();
        let answer = server.api(ACT, "GET", &format!("/blobs/{hash}"), None);
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"), "{path}");
        assert_eq!(answer.header("content-disposition"), Some("attachment"));
    }
}

#[test]
fn files_have_each_path_once_with_the_calls_that_changed_it() {
    let fixture = ServeFixture::new();
    history(&fixture);
    let server = fixture.serve();
    let workspace = fixture.workspace();
    let files = |query: &str| server.get(&format!("/files?workspace={workspace}{query}"));
    let all_files = files("");
    let paths = all(&all_files["changes"]["changes"], "path");
    assert_eq!(paths, ["copy.png", "d", "d/b.txt", "d/link", "odd name"], "{all_files}");
    let file = &all_files["changes"]["changes"][2];
    assert_eq!((&file["what"], &file["calls"]), (&json!("created"), &json!([7])));
    assert_eq!(all_files["calls"], 3);
    let earlier = files("&until=3");
    assert_eq!(all(&earlier["changes"]["changes"], "path"), ["a.txt", "copy.png", "d", "odd name"]);
    assert_eq!(earlier["changes"]["changes"][0]["calls"], json!([3, 1]));
    assert_eq!(files("&path=ODD")["changes"]["total"], 1);
    let session = server.get("/sessions")["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/files?session={session}"))["changes"], all_files["changes"]);
    let part = files("&limit=2&offset=2");
    assert_eq!(all(&part["changes"]["changes"], "path"), ["d/b.txt", "d/link"]);
    assert_eq!(part["changes"]["next"], 4);
}

#[test]
#[cfg(target_os = "linux")]
fn names_that_are_no_text_lead_back_to_their_files() {
    let fixture = ServeFixture::new();
    fixture.cli.call(
        "Bash",
        &json!({"command": "printf one > $'a\\xff\\n<b>.txt'; printf two > $'\\u202egpj.exe'"}),
    );
    let server = fixture.serve();
    let changes = server.get("/calls/1/changes")["changes"].as_array().unwrap().clone();
    assert_eq!(changes.len(), 2);
    let paths: Vec<String> =
        all(&json!(changes), "path").iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    let what = json!({"calls": [1]});
    let plan = server.post("/undo/preview", &json!({"what": what, "paths": paths}));
    assert_eq!((&plan["changes"]["total"], &plan["left_out"]), (&json!(2), &json!(0)));
    server.post("/undo", &json!({"what": what, "paths": paths, "plan": plan["plan"]}));
    assert_eq!(std::fs::read_dir(fixture.cli.root()).unwrap().count(), 0);
}

#[test]
fn rules_are_listed_added_removed_and_explained() {
    let fixture = ServeFixture::new();
    history(&fixture);
    let server = fixture.serve();
    let workspace = fixture.workspace();
    let rules = || server.get(&format!("/rules?workspace={workspace}"))["rules"].as_array().unwrap().clone();
    let own = rules();
    assert_eq!(own.len(), 1, "{own:?}");
    let expected = json!({"verdict": "deny", "text": "Bash(rm *)", "is_removable": true, "matched": 1, "last_matched": 4,
                          "origin": format!("{}:3", fixture.cli.config().display())});
    assert_eq!(own[0], expected);
    let explain = |command: &str| {
        server.post(
            "/rules/explain",
            &json!({"workspace": workspace, "tool": "Bash", "input": {"command": command}}),
        )
    };
    let denied = explain("rm -r d");
    assert_eq!(denied["verdict"], "deny");
    assert!(denied["rule"].as_str().unwrap().contains("Bash(rm *)"), "{denied}");
    assert!(
        denied["effects"].as_array().unwrap().iter().any(|line| line.as_str().unwrap().contains("rm -r d")),
        "{denied}"
    );
    let change =
        |verdict: &str, text: &str| json!({"workspace": workspace, "verdict": verdict, "text": text});
    let added = server.post("/rules", &change("ask", "Bash(git push *)"));
    assert_eq!(
        (&added["rule"], added["file"].as_str()),
        (&json!("Bash(git push *)"), fixture.cli.config().to_str())
    );
    assert_eq!(explain("git push origin")["verdict"], "ask");
    assert_eq!(rules().len(), 2);
    server.post("/rules/remove", &change("deny", "Bash(rm *)"));
    assert_ne!(explain("rm -r d")["verdict"], "deny");
    for (verdict, text) in [("maybe", "Bash"), ("allow", ""), ("allow", "Bash(("), ("allow", "a\nb = 1")] {
        server.refused(400, "/rules", &change(verdict, text));
    }
    let project = json!({"workspace": workspace, "verdict": "allow", "text": "Read", "place": "project"});
    server.refused(400, "/rules", &project);
    let gone = server.api(ACT, "POST", "/rules/remove", Some(&change("deny", "Bash(never written)")));
    assert!(matches!(gone.status, 400 | 404), "{}", gone.text());
    let settings = std::fs::read_to_string(fixture.cli.config()).unwrap();
    assert!(settings.contains("git push") && !settings.contains("rm *"), "{settings}");
}

#[test]
fn a_call_counts_for_the_rule_that_decided_it_only() {
    let fixture = ServeFixture::new();
    // Both the text and the line number of the first rule are prefixes of the other's.
    let lines = "\n".repeat(25);
    let settings = format!("[permissions]\nallow = [\n  \"Bash\",\n]\n{lines}deny = [\"Bash(rm *)\"]\n");
    std::fs::write(fixture.cli.config(), settings).unwrap();
    fixture.cli.call("Bash", &json!({"command": "rm a"}));
    let rules = fixture.serve().get(&format!("/rules?workspace={}", fixture.workspace()));
    let matched: Vec<String> = rules["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| {
            let origin = rule["origin"].as_str().unwrap();
            format!(
                "{} {} {}",
                rule["text"].as_str().unwrap(),
                origin.rsplit(':').next().unwrap(),
                rule["matched"]
            )
        })
        .collect();
    assert_eq!(matched, ["Bash 3 0", "Bash(rm *) 30 1"]);
}

#[test]
fn tools_are_those_of_each_dialect() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    for (dialect, tool) in [("claude", "Bash"), ("loom", "read_file")] {
        let list = server.get(&format!("/tools?dialect={dialect}"));
        assert_eq!(list["dialect"], dialect);
        let found = list["tools"].as_array().unwrap().iter().find(|entry| entry["name"] == tool);
        assert_eq!(found.unwrap()["input_schema"]["type"], "object", "{dialect}");
    }
    assert_eq!(server.get("/tools")["dialect"], "claude");
}
