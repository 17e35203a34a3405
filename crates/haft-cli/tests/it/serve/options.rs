//! How the server is started: addresses, tokens, what is printed.

use std::path::Path;

use crate::fixture::cli::RunOutput;
use crate::fixture::serve::{ACT, ReservedPort, ServeFixture, ServeProcess, VIEW};
use crate::fixture::wait_until;

fn token_of(url: &str) -> String {
    url.split_once("#token=").unwrap().1.to_owned()
}

fn with_tokens(fixture: &ServeFixture, text: &str, more: &[&str]) -> RunOutput {
    let path = fixture.write_private("other-tokens", text);
    fixture.cli.haft(&[&["serve", "--token-file", path.to_str().unwrap()], more].concat())
}

#[test]
fn other_machines_need_a_token_file() {
    let fixture = ServeFixture::new();
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = fixture.cli.haft(&["serve", "--listen", address]);
        assert_eq!(refused.code, 2, "{}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains("--token-file"), "{}", refused.stderr);
        assert!(refused.stdout.is_empty());
    }
    let tokens = fixture.token_file();
    let flags = ["serve", "--listen", "0.0.0.0:0", "--token-file", tokens.to_str().unwrap()];
    let server = ServeProcess::start(fixture.cli.command(&flags));
    // A name of its own, so that nothing that another server left in the browser reaches the page.
    let page = server.url.split_once("/#token=").unwrap().0;
    assert!(
        page.starts_with("http://haft-") && page.ends_with(&format!(".localhost:{}", server.port)),
        "{page}"
    );
    let name = page.strip_prefix("http://").unwrap();
    assert_eq!(server.raw("GET", "/", &[&format!("Host: {name}")], b"").status, 200);
    assert_eq!(server.get("/meta")["role"], "act");
    // Listening on every address does not mean answering to every name.
    assert_eq!(server.raw("GET", "/", &[&format!("Host: haft.example:{}", server.port)], b"").status, 403);
}

#[test]
fn a_name_that_is_allowed_is_answered() {
    let fixture = ServeFixture::new();
    let tokens = fixture.token_file();
    let flags = ["serve", "--token-file", tokens.to_str().unwrap(), "--allow-host", "haft.example.com"];
    let server = ServeProcess::start(fixture.cli.command(&flags));
    // A phone cannot reach the server by any other name.
    assert_eq!(server.url, format!("https://haft.example.com/#token={ACT}"));
    let url = fixture.cli.haft(&["serve", "--url", "--role", "view"]);
    assert_eq!(url.stdout.trim(), format!("https://haft.example.com/#token={VIEW}"));
    let token = format!("Authorization: Bearer {ACT}");
    let asked = |host: &str, origin: &str| {
        let (host, origin) = (format!("Host: {host}"), format!("Origin: {origin}"));
        server.raw("GET", "/api/v1/meta", &[&token, &host, &origin], b"").status
    };
    assert_eq!(asked("haft.example.com", "https://haft.example.com"), 200);
    assert_eq!(asked("haft.example.com", "https://evil.example.com"), 403);
    assert_eq!(asked("evil.haft.example.com", "https://haft.example.com"), 403);
}

#[test]
fn the_url_has_the_first_allowed_host_with_its_port() {
    let fixture = ServeFixture::new();
    let tokens = fixture.token_file();
    let allowed = ["--allow-host", "192.0.2.7:7878", "--allow-host", "haft.example.com"];
    let flags = [&["serve", "--token-file", tokens.to_str().unwrap()], &allowed[..]].concat();
    let server = ServeProcess::start(fixture.cli.command(&flags));
    assert_eq!(server.url, format!("http://192.0.2.7:7878/#token={ACT}"));
}

/// Without a desktop, the opener is the browser itself and keeps running.
#[test]
#[cfg(target_os = "linux")]
fn a_browser_that_stays_open_keeps_no_one_waiting_and_gets_no_ctrl_c() {
    use std::os::unix::fs::PermissionsExt as _;
    let fixture = ServeFixture::new();
    let (programs, noted) = (fixture.cli.path("programs"), fixture.cli.path("opened"));
    std::fs::create_dir_all(&programs).unwrap();
    let opener = programs.join("xdg-open");
    let script = format!(
        "#!/bin/sh\nps -o pgid= -p $$ > {0}.new && mv {0}.new {0}\nexec sleep 1000\n",
        noted.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = fixture.cli.command(&["serve", "--open"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    let server = ServeProcess::start(command);
    wait_until(|| noted.exists());
    // The server does not wait for the browser, so it can be ended.
    server.ends();
    let group = std::fs::read_to_string(&noted).unwrap().trim().to_owned();
    // The browser leads a process group of its own, and still runs.
    let ended = std::process::Command::new("kill").arg(&group).status().unwrap();
    assert!(ended.success(), "{group}");
}

#[test]
fn token_files_with_mistakes_are_refused_with_the_line() {
    let fixture = ServeFixture::new();
    for (text, said) in [
        ("", "has no token"),
        ("# nothing\n\n", "has no token"),
        ("act short\n", "line 1: a token has at least"),
        (
            "view 0123456789abcdefghij\nroot 0123456789abcdefghij\n",
            "line 2: the role is view, approve, act or proxy",
        ),
        ("0123456789abcdefghij\n", "line 1: write ROLE TOKEN"),
        ("act 0123456789 abcdefghij\n", "line 1: a token has letters"),
        ("act 0123456789#abcdefghij\n", "line 1: a token has letters"),
    ] {
        let refused = with_tokens(&fixture, text, &[]);
        assert_eq!(refused.code, 2, "{text:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{text:?}: {}", refused.stderr);
    }
    let missing = fixture.cli.haft(&["serve", "--token-file", "/nonexistent/tokens"]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);
    // An agent could read it there, and answer its own questions.
    let readable = fixture.cli.root().join("tokens");
    std::fs::write(&readable, format!("act {ACT}\n")).unwrap();
    let readable = fixture.cli.haft(&["serve", "--token-file", readable.to_str().unwrap()]);
    assert_eq!(readable.code, 2);
    assert!(readable.stderr.contains("agents can read it"), "{}", readable.stderr);
    let only_act = with_tokens(&fixture, &format!("act {ACT}\n"), &["--read-only"]);
    assert_eq!(only_act.code, 2);
    assert!(only_act.stderr.contains("role view"), "{}", only_act.stderr);
}

#[test]
fn read_only_accepts_only_tokens_that_look() {
    let fixture = ServeFixture::new();
    let tokens = fixture.token_file();
    let flags = ["serve", "--read-only", "--token-file", tokens.to_str().unwrap()];
    let server = ServeProcess::start(fixture.cli.command(&flags));
    assert_eq!(token_of(&server.url), VIEW);
    assert_eq!(server.api(VIEW, "GET", "/meta", None).json()["role"], "view");
    assert_eq!(server.api(ACT, "GET", "/meta", None).status, 401);
}

#[test]
fn the_url_of_the_server_that_runs_is_printed_for_each_role() {
    let fixture = ServeFixture::new();
    let url = |role: &str| fixture.cli.haft(&["serve", "--url", "--role", role]);
    assert_ne!(url("act").code, 0);
    // Without a token file, the tokens are new.
    let port = ReservedPort::new();
    let listen = port.number.to_string();
    let first = ServeProcess::start(fixture.cli.command(&["serve", "--listen", &listen]));
    assert_eq!(url("act").stdout.trim(), first.url);
    let mut tokens = Vec::new();
    for role in ["view", "approve", "act"] {
        let token = token_of(url(role).stdout.trim());
        assert!(token.len() == 64, "{token}");
        assert_eq!(first.api(&token, "GET", "/meta", None).json()["role"], role);
        tokens.push(token);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 3);
    assert_private(&fixture.cli.home().join("serve"));
    first.kill();
    let nothing = url("act");
    assert!(nothing.code != 0 && nothing.stderr.contains("no server is running"), "{}", nothing.stderr);
    // The next server cleans up, and the newest one counts.
    let second = ServeProcess::start(fixture.cli.command(&["serve", "--listen", &listen]));
    assert_eq!(second.port, port.number);
    assert_ne!(token_of(&second.url), tokens[2]);
    assert_eq!(url("act").stdout.trim(), second.url);
    assert_eq!(state_files(&fixture), 1);
    second.ends();
    assert_eq!(state_files(&fixture), 0);
}

fn state_files(fixture: &ServeFixture) -> usize {
    let names = std::fs::read_dir(fixture.cli.home().join("serve")).unwrap().flatten();
    names.filter(|entry| entry.path().extension().is_some_and(|ending| ending == "json")).count()
}

/// Only the user can read what is in the folder.
fn assert_private(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    for path in files.chain([folder.to_owned()]) {
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}: {mode:o}", path.display());
    }
}
