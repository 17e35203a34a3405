//! Undo and redo by the API: what is shown is what is done.

use serde_json::{Value, json};

use super::content::{all, bash, session_with};
use crate::fixture::serve::{ServeFixture, ServeProcess};
use crate::fixture::tree::{differences, timeless};
use crate::fixture::wait_until;

fn preview(server: &ServeProcess, what: &Value) -> Value {
    server.post("/undo/preview", &json!({ "what": what }))
}

/// Undoes what a preview showed.
fn perform(server: &ServeProcess, what: &Value, plan: &Value) -> Value {
    server.post("/undo", &json!({"what": what, "plan": plan["plan"]}))
}

#[test]
fn an_undo_and_its_redo_restore_the_tree() {
    let fixture = ServeFixture::new();
    let tree = || timeless(fixture.cli.root(), &[]);
    fixture.cli.write("a.txt", "one\n");
    fixture.cli.write("gone.txt", "here\n");
    let before = tree();
    session_with(
        &fixture.cli,
        &[],
        &[
            bash("echo two >> a.txt; mkdir -p d/e; echo x > d/e/f"),
            bash("mv a.txt d/; rm gone.txt; chmod 700 d"),
        ],
    );
    let after = tree();
    let server = fixture.serve();
    let session = server.get("/sessions")["sessions"][0]["id"].clone();
    let what = json!({ "session": session });
    let plan = preview(&server, &what);
    assert_eq!(all(&plan["calls"], "id"), [2, 1]);
    assert_eq!((&plan["conflicts"], &plan["blocked"]), (&json!([]), &json!([])));
    // A preview changes nothing.
    assert!(differences(&after, &tree()).is_empty());
    let done = perform(&server, &what, &plan);
    assert!(done["message"].as_str().unwrap().contains("Restored"), "{done}");
    assert_eq!(differences(&before, &tree()), Vec::<String>::new());
    let receipt = server.get(&format!("/calls/{}", done["call"]));
    assert_eq!(receipt["summary"]["undoes"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/calls/1")["summary"]["undone_by"], done["call"]);
    let redo = json!({"redo": fixture.workspace()});
    perform(&server, &redo, &preview(&server, &redo));
    assert_eq!(differences(&after, &tree()), Vec::<String>::new());
    assert_eq!(server.get("/calls/1")["summary"]["undone_by"], Value::Null);
}

#[test]
fn what_has_changed_since_the_preview_is_not_undone_unseen() {
    let fixture = ServeFixture::new();
    session_with(&fixture.cli, &[], &[bash("echo one > a.txt; echo one > b.txt")]);
    let server = fixture.serve();
    let what = json!({"calls": [1]});
    let plan = preview(&server, &what);
    fixture.cli.write("a.txt", "mine\n");
    let refused = server.refused(409, "/undo", &json!({"what": what, "plan": plan["plan"]}));
    let newer = &refused.json()["error"]["details"];
    assert_eq!(newer["conflicts"][0]["path"], "a.txt");
    assert_ne!(newer["plan"], plan["plan"]);
    assert_eq!(fixture.cli.read("a.txt"), "mine\n");
    // Conflicting paths are left alone unless they are to be overwritten.
    let with_conflict = server.refused(409, "/undo", &json!({"what": what, "plan": newer["plan"]}));
    assert_eq!(fixture.cli.read("a.txt"), "mine\n", "{}", with_conflict.text());
    server.post("/undo", &json!({"what": what, "plan": newer["plan"], "force": true}));
    assert!(!fixture.cli.path("a.txt").exists() && !fixture.cli.path("b.txt").exists());
    for (wrong, status) in [
        (json!({"what": what}), 400),
        // It is already undone.
        (json!({"what": what, "plan": "0"}), 404),
        (json!({"what": {}, "plan": "0"}), 400),
        (json!({"what": {"calls": []}, "plan": "0"}), 400),
        (json!({"what": {"calls": [1], "session": "x"}, "plan": "0"}), 400),
        (json!({"what": {"calls": [99]}, "plan": "0"}), 404),
        (json!({"what": {"session": "nowhere"}, "plan": "0"}), 404),
        (json!({"what": {"redo": "relative"}, "plan": "0"}), 400),
    ] {
        server.refused(status, "/undo", &wrong);
    }
}

#[test]
fn single_paths_and_everything_from_a_call_on_can_be_undone() {
    let fixture = ServeFixture::new();
    session_with(
        &fixture.cli,
        &[],
        &[
            bash("echo one > a.txt; echo one > b.txt"),
            bash("echo two > a.txt; echo two > b.txt"),
            bash("echo three > a.txt"),
        ],
    );
    let server = fixture.serve();
    let from = json!({"from": 2});
    let plan = preview(&server, &from);
    assert_eq!(all(&plan["calls"], "id"), [3, 2]);
    let part = json!({"what": from, "paths": ["b.txt"]});
    let plan = server.post("/undo/preview", &part);
    assert_eq!(all(&plan["changes"]["changes"], "path"), ["b.txt"]);
    assert!(plan["left_out"].as_u64() > Some(0), "{plan}");
    server.post("/undo", &json!({"what": from, "paths": ["b.txt"], "plan": plan["plan"]}));
    assert_eq!(
        (fixture.cli.read("a.txt").as_str(), fixture.cli.read("b.txt").as_str()),
        ("three\n", "one\n")
    );
    let newest = json!({"calls": [3]});
    perform(&server, &newest, &preview(&server, &newest));
    assert_eq!(fixture.cli.read("a.txt"), "two\n");
}

#[test]
fn what_people_changed_since_is_merged_if_that_is_wanted() {
    let fixture = ServeFixture::new();
    fixture.cli.write("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    session_with(&fixture.cli, &[], &[bash("sed -i s/2/two/ a.txt")]);
    fixture.cli.write("a.txt", "1\ntwo\n3\n4\n5\n6\n7\n8\nnine\n");
    let server = fixture.serve();
    let request = json!({"what": {"calls": [1]}, "merge": true});
    let plan = server.post("/undo/preview", &request);
    assert_eq!(plan["conflicts"], json!([]));
    let merged = &plan["merged"][0];
    assert_eq!((&merged["path"], &merged["changes"]["added"]), (&json!("a.txt"), &json!(1)));
    let lines = merged["changes"]["hunks"][0]["lines"].as_array().unwrap();
    let changed = lines.iter().filter(|line| line["tag"] != " ");
    let changed: Vec<_> = changed.map(|line| (line["tag"].as_str(), line["text"].as_str())).collect();
    assert_eq!(changed, [(Some("-"), Some("two")), (Some("+"), Some("2"))]);
    server.post("/undo", &json!({"what": {"calls": [1]}, "merge": true, "plan": plan["plan"]}));
    assert_eq!(fixture.cli.read("a.txt"), "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
}

#[test]
fn a_preview_writes_nothing_and_an_undo_recovers_first() {
    let fixture = ServeFixture::new();
    session_with(&fixture.cli, &[], &[bash("echo one > a.txt")]);
    let command = json!({"command": "echo two > b.txt; sleep 1000"}).to_string();
    let mut child = fixture.cli.command(&["call", "Bash", &command]).spawn().unwrap();
    wait_until(|| fixture.cli.path("b.txt").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let server = fixture.serve();
    let state = || server.get("/calls/2")["summary"]["state"].as_str().unwrap().to_owned();
    let what = json!({"calls": [1]});
    let plan = preview(&server, &what);
    // The preview, which needs only the role View, changed nothing.
    assert_eq!(state(), "running");
    perform(&server, &what, &plan);
    assert_eq!(state(), "interrupted");
}

#[test]
fn two_undos_at_once_do_not_both_succeed() {
    let fixture = ServeFixture::new();
    session_with(&fixture.cli, &[], &[bash("echo one > a.txt")]);
    let server = fixture.serve();
    let what = json!({"calls": [1]});
    let plan = preview(&server, &what);
    let request = json!({"what": what, "plan": plan["plan"]});
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let ask = || server.api(crate::fixture::serve::ACT, "POST", "/undo", Some(&request)).status;
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(!fixture.cli.path("a.txt").exists());
}

/// Undoes a call except for some paths.
fn perform_except(server: &ServeProcess, what: &Value, except: &[&str]) -> Value {
    let plan = server.post("/undo/preview", &json!({"what": what, "except": except}));
    assert_eq!(plan["conflicts"], json!([]), "{plan}");
    server.post("/undo", &json!({"what": what, "except": except, "plan": plan["plan"]}))
}

#[test]
fn what_is_left_out_of_an_undo_stays_with_the_directories_around_it() {
    let fixture = ServeFixture::new();
    let cli = &fixture.cli;
    for (directory, name) in [("old", "a"), ("old", "b"), ("moved", "c")] {
        std::fs::create_dir_all(cli.path(directory)).unwrap();
        cli.write(&format!("{directory}/{name}"), &format!("{name}\n"));
    }
    session_with(
        cli,
        &[],
        &[bash("mkdir -p new/in; echo x > new/in/x; echo y > new/y; rm -r old; mv moved there; echo d > d")],
    );
    let server = fixture.serve();
    let what = json!({"calls": [1]});
    let inside_a_move = json!({"what": what, "except": ["there/c"]});
    assert!(
        server.refused(400, "/undo/preview", &inside_a_move).text().contains("was moved with its directory")
    );
    perform_except(&server, &what, &["new/in/x", "old/a", "there"]);
    assert_eq!(cli.read("new/in/x"), "x\n");
    assert!(!cli.path("new/y").exists() && !cli.path("d").exists());
    assert_eq!((cli.path("old/a").exists(), cli.read("old/b").as_str()), (false, "b\n"));
    assert_eq!((cli.path("moved").exists(), cli.read("there/c").as_str()), (false, "c\n"));
}

#[test]
fn a_point_in_time_counts_undos_and_redos_after_it() {
    let fixture = ServeFixture::new();
    let cli = &fixture.cli;
    session_with(cli, &["--session", "work"], &[bash("echo 1 > a"), bash("echo 2 > b"), bash("echo 3 > c")]);
    let server = fixture.serve();
    let files = || ["a", "b", "c"].map(|name| cli.path(name).exists());
    // 4 undoes 1 and 3: only the first of them is before the point in time.
    let both = json!({"calls": [1, 3]});
    assert_eq!(perform(&server, &both, &preview(&server, &both))["call"], 4);
    assert_eq!(files(), [false, true, false]);
    let from = json!({"from": 3});
    let plan = preview(&server, &from);
    assert_eq!(all(&plan["calls"], "id"), [4, 3]);
    perform(&server, &from, &plan);
    assert_eq!(files(), [true, true, false]);
    // 5 was that undo. Before 2, only the first file was there.
    let from = json!({"from": 2});
    perform(&server, &from, &preview(&server, &from));
    assert_eq!(files(), [true, false, false]);
    let redo = json!({"from": 6});
    perform(&server, &redo, &preview(&server, &redo));
    assert_eq!(files(), [true, true, false]);
}

#[test]
fn a_point_in_time_of_a_session_leaves_other_sessions_alone() {
    let fixture = ServeFixture::new();
    let cli = &fixture.cli;
    for (session, name) in [("one", "a"), ("two", "b"), ("one", "c"), ("two", "d")] {
        session_with(cli, &["--session", session], &[bash(format!("echo x > {name}"))]);
    }
    let server = fixture.serve();
    let session = server.get("/calls/1")["summary"]["session"].clone();
    let what = json!({"from": 3, "session": session});
    assert_eq!(all(&preview(&server, &what)["calls"], "id"), [3]);
    perform(&server, &what, &preview(&server, &what));
    assert_eq!(["a", "b", "c", "d"].map(|name| cli.path(name).exists()), [true, true, false, true]);
    server.refused(400, "/undo/preview", &json!({"what": {"from": 1, "calls": [1]}}));
    server.refused(404, "/undo/preview", &json!({"what": {"from": 99}}));
}
