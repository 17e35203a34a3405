//! Exporting sessions.

use std::os::unix::fs::{PermissionsExt, symlink};

use haft_compat::transcripts::read_claude_transcript;
use serde_json::{Value, json};

use super::{json_lines, run, scripted, text};
use crate::fixture::cli::CliFixture;

/// What a page must not be able to do with it.
const HOSTILE: &str =
    "</pre></script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&<!--]]> \u{202e}\u{1b}[2J";

#[test]
fn a_run_is_exported_in_every_form() {
    let cli = CliFixture::new();
    let session = run(&cli, "Make tea.", "echo poured", "It is ready.");
    let lines = json_lines(&cli.haft(&["sessions", "export", "--format", "jsonl"]));
    let kinds: Vec<&str> = lines.iter().map(|line| text(&line["type"])).collect();
    assert_eq!(kinds, ["session", "user", "reasoning", "call", "result", "assistant"]);
    assert_eq!((text(&lines[0]["session"]), text(&lines[0]["source"])), (session.as_str(), "haft"));
    assert!(text(&lines[4]["text"]).contains("poured") && lines[4]["receipt"].is_i64(), "{}", lines[4]);

    let document = cli.haft(&["sessions", "export", &session, "--format", "json"]);
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    assert_eq!(document["entries"].as_array().unwrap().as_slice(), &lines[1..]);
    assert_eq!(document["session"]["workspace"], cli.root().canonicalize().unwrap().to_str().unwrap());

    let file = cli.path("run.md");
    let written = cli.haft(&["sessions", "export", "-o", file.to_str().unwrap()]);
    assert_eq!((written.code, written.stdout.as_str()), (0, ""), "{}", written.stderr);
    let markdown = cli.read("run.md");
    assert!(markdown.starts_with(&format!("# Session {session}\n")), "{markdown}");
    assert!(markdown.contains("\n> Make tea.\n") && markdown.contains("\n> It is ready.\n"), "{markdown}");
    let shown = cli.haft(&["sessions", "show", &session]);
    assert_eq!((shown.code, shown.stdout), (0, markdown));
    assert_eq!(cli.haft(&["sessions", "export", "nosuchsession"]).code, 4);
}

#[test]
fn calls_without_a_run_are_exported_too() {
    let cli = CliFixture::new();
    cli.call("Bash", &json!({"command": "echo tea"}));
    let lines = json_lines(&cli.haft(&["sessions", "export", "--format", "jsonl"]));
    let kinds: Vec<&str> = lines.iter().map(|line| text(&line["type"])).collect();
    assert_eq!(kinds, ["session", "call", "result"]);
}

#[test]
fn a_page_has_no_scripts_and_no_requests_and_hostile_text_stays_text() {
    let cli = CliFixture::new();
    let call = json!({"calls": [{"name": "<b>Bash</b>", "arguments": {"command": HOSTILE, "description": HOSTILE}}]});
    scripted(&cli, &[call, json!({ "text": HOSTILE })], &["-p", HOSTILE]);
    let page = cli.haft(&["sessions", "export", "--format", "html"]).stdout;
    let policy = "default-src 'none'; style-src 'sha256-";
    assert!(
        page.contains(policy) && page.contains("img-src data:; base-uri 'none'; form-action 'none'"),
        "{page}"
    );
    for tag in
        ["<script", "<img", "<!--", "<b>", "<link", "<iframe", "javascript:", "http:", "https:", "url("]
    {
        assert!(!page.contains(tag), "{tag}: {page}");
    }
    assert!(!page.contains(['\u{202e}', '\u{1b}']), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(page.contains("<details class=\"call\"><summary>Call: &lt;b&gt;Bash&lt;/b&gt;"), "{page}");
    // The hash in the policy is that of the one style.
    let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
    let digest = ring::digest::digest(&ring::digest::SHA256, style.as_bytes());
    let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, digest);
    assert!(page.contains(&format!("'sha256-{hash}'")), "{page}");
    assert_eq!(page.matches("<style>").count(), 1);
}

#[test]
fn no_text_in_an_export_as_markdown_looks_like_a_heading_of_it() {
    let cli = CliFixture::new();
    let hostile = "x\n## 9. User\n\n````\n## 10. User\n";
    let call =
        json!({"calls": [{"name": "Bash", "arguments": {"command": format!("cat <<'E'\n{hostile}\nE")}}]});
    scripted(&cli, &[call, json!({ "text": hostile })], &["-p", hostile]);
    let markdown = cli.haft(&["sessions", "export"]).stdout;
    let mut fence: Option<&str> = None;
    let mut headings = Vec::new();
    for line in markdown.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => fence = Some(line),
            None if line.starts_with('#') => headings.push(line.rsplit(". ").next().unwrap()),
            None => {}
        }
    }
    let expected = ["User", "Call: Bash", "Result: Bash", "Model"];
    assert_eq!(
        headings[1..].iter().map(|heading| heading.split(" (").next().unwrap()).collect::<Vec<_>>(),
        expected
    );
    assert_eq!(fence, None);
}

#[test]
fn an_export_for_claude_code_is_a_transcript_of_its_own_form() {
    let cli = CliFixture::new();
    let session = run(&cli, "Make tea.", "echo poured", "It is ready.");
    let output = cli.haft(&["sessions", "export", &session, "--format", "claude"]);
    let transcript = read_claude_transcript(output.stdout.as_bytes());
    assert_eq!((transcript.invalid_lines, transcript.skipped_lines, transcript.messages().len()), (0, 0, 4));
    assert_eq!(transcript.workspace.as_deref(), cli.root().canonicalize().unwrap().to_str());
    let id = transcript.session;
    assert!(
        output.stderr.contains(&format!("{id}.jsonl")) && output.stderr.contains("claude --resume"),
        "{}",
        output.stderr
    );
    let again = cli.haft(&["sessions", "export", &session, "--format", "claude"]);
    assert_eq!(again.stdout, output.stdout, "the same session has the same id");
    let folder = cli.path("out");
    std::fs::create_dir(&folder).unwrap();
    cli.haft(&["sessions", "export", &session, "--format", "claude", "-o", folder.to_str().unwrap()]);
    assert_eq!(cli.read(&format!("out/{id}.jsonl")), output.stdout);
}

#[test]
fn quoted_text_in_an_export_as_markdown_stays_quoted_and_inert() {
    let cli = CliFixture::new();
    let hostile = "a\r# HEADING\r\n<img src=x> \\<b> \\\\<i> ![x](http://h/y) \u{1b}[2J\u{202e}\n  ```html\n<kept>\n   ```\n<u>";
    scripted(&cli, &[json!({ "text": hostile })], &["-p", "Go"]);
    let file = cli.path("run.md");
    assert_eq!(cli.haft(&["sessions", "export", "-o", file.to_str().unwrap()]).code, 0);
    let markdown = cli.read("run.md");
    let expected = "> a\n> # HEADING\n> \\<img src=x> \\<b> \\\\\\<i> !\\[x](http://h/y) \\u{1b}[2J\\u{202e}\n\
        > ```html\n> <kept>\n> ```\n> \\<u>\n";
    assert!(markdown.contains(expected), "{markdown}");
    assert!(!markdown.contains(['\r', '\u{1b}', '\u{202e}']), "{markdown:?}");
}

#[test]
fn an_export_into_a_file_is_private_and_follows_no_link() {
    let cli = CliFixture::new();
    run(&cli, "Make tea.", "echo poured", "It is ready.");
    let export = |name: &str| cli.haft(&["sessions", "export", "-o", cli.path(name).to_str().unwrap()]);
    cli.write("old.md", &"x".repeat(100_000));
    std::fs::set_permissions(cli.path("old.md"), PermissionsExt::from_mode(0o644)).unwrap();
    assert_eq!(export("old.md").code, 0);
    assert_eq!(cli.path("old.md").metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!cli.read("old.md").contains("xxx"));
    cli.write("other.md", "kept");
    symlink(cli.path("other.md"), cli.path("link.md")).unwrap();
    let refused = export("link.md");
    assert!(refused.code != 0 && refused.stderr.contains("is a symbolic link"), "{}", refused.stderr);
    assert_eq!(cli.read("other.md"), "kept");
    let made = std::process::Command::new("mkfifo").arg(cli.path("fifo")).status().unwrap();
    assert!(made.success());
    let refused = export("fifo");
    assert!(refused.code != 0 && refused.stderr.contains("is no regular file"), "{}", refused.stderr);
}
