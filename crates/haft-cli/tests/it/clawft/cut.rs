//! Results of at most 64 KB, which stay JSON.

use haft::json;

use crate::clawft::clawft;

const MOST: usize = 65_536;

#[tokio::test]
async fn a_long_string_keeps_its_beginning_and_tells_its_size() {
    let clawft = clawft();
    for size in [70_000, 10_000_000] {
        clawft.file("long", "a\n".repeat(size / 2));
        let output = clawft.call("read_file", json!({"path": "long"})).await.output;
        assert!(output.as_text().len() <= MOST && output.as_text().len() > MOST - 10);
        let content =
            clawft.value("read_file", json!({"path": "long"})).await["content"].as_str().unwrap().to_owned();
        let suffix = format!("... [truncated, original size: {size} bytes]");
        assert!(
            content.starts_with("a\na\n") && content.ends_with(&suffix),
            "{}",
            &content[content.len() - 60..]
        );
    }
    clawft.file("fits", "x".repeat(MOST - r#"{"content":""}"#.len()));
    assert_eq!(clawft.text("read_file", json!({"path": "fits"})).await.len(), MOST);
}

#[tokio::test]
async fn what_a_command_wrote_is_cut_and_the_ledger_keeps_it() {
    let clawft = clawft();
    let result = clawft.call("exec_shell", json!({"command": "seq 1 100000; echo done >&2"})).await;
    assert!(result.output.as_text().len() <= MOST);
    let done: haft::Value = serde_json::from_str(&result.output.as_text()).unwrap();
    let stdout = done["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("1\n2\n") && stdout.ends_with("... [truncated, original size: 588895 bytes]"));
    assert_eq!(
        (&done["exit_code"], &done["stderr"]),
        (&json!(0), &json!("done\n")),
        "what is small stays whole"
    );
    assert!(result.receipt.full_output.is_some());
}

#[tokio::test]
async fn more_than_was_kept_of_a_stream_still_counts() {
    let clawft = clawft();
    let done =
        clawft.value("exec_shell", json!({"command": "head -c 20000000 /dev/zero | tr '\\0' x"})).await;
    assert!(done["stdout"].as_str().unwrap().ends_with("x... [truncated, original size: 20000000 bytes]"));
}

#[tokio::test]
async fn a_timeout_keeps_its_output_within_the_limit() {
    let clawft = clawft();
    let arguments = json!({"command": "yes", "timeout": 1});
    let output = clawft.call("exec_shell", arguments).await.output;
    assert_eq!(output.error_kind, Some(haft::ErrorKind::Timeout));
    assert!(output.structured.unwrap().to_string().len() <= MOST);
}
