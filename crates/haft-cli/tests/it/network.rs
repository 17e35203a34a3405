//! Commands without network: refused at once, asked about, allowed by presets and settings.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fixture::cli::{CliFixture, RunOutput};
use crate::fixture::terminal::Terminal;

/// Asks the proxy for a tunnel and prints its response.
const CONNECT: &str = r"
    exec 3<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}
    printf 'CONNECT registry.npmjs.invalid:443 HTTP/1.1\r\n\r\n' >&3
    head -1 <&3";
const REFUSAL: &str = "Refused: connect registry.npmjs.invalid:443: the network is not part of the scope; to allow it: \
                       --network registry.npmjs.invalid";

struct NetworkFixture {
    cli: CliFixture,
    user: TempDir,
}

impl NetworkFixture {
    fn new() -> Self {
        Self { cli: CliFixture::new(), user: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.cli.command(args);
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        command.env("HOME", self.user.path());
        command
    }

    fn sandbox(&self, flags: &[&str], script: &str) -> RunOutput {
        self.command(&[&["sandbox"], flags, &["--", "bash", "-c", script]].concat()).output().unwrap().into()
    }

    fn home_file(&self, name: &str, text: &str) {
        let path = self.user.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn home_text(&self, name: &str) -> String {
        fs::read_to_string(self.user.path().join(name)).unwrap()
    }
}

/// The port of a server on this machine that answers each connection with `hello`.
fn local_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let _ = client.write_all(b"hello\n");
        }
    });
    port
}

#[test]
fn refusal_names_the_host_and_the_flag_at_once() {
    for namespaces in ["true", "false"] {
        let fixture = NetworkFixture::new();
        let ran = fixture
            .command(&["sandbox", "--", "bash", "-c", CONNECT])
            .env("HAFT_NAMESPACES", namespaces)
            .output();
        let ran = RunOutput::from(ran.unwrap());
        let expected = "HTTP/1.1 403 Haft refused registry.npmjs.invalid:443: the network is not part of the scope; to \
                        allow it: --network registry.npmjs.invalid";
        assert_eq!(ran.stdout.trim_end(), expected, "{namespaces}: {}", ran.stderr);
        assert_eq!(ran.stderr.trim_end(), REFUSAL, "{namespaces}");
    }
}

#[test]
fn refused_writes_and_reads_are_told_at_once_and_once() {
    for namespaces in ["true", "false"] {
        let fixture = NetworkFixture::new();
        fixture.cli.write(".env", "KEY=1\n");
        // It goes on when the refusal was shown.
        let script = "for i in 1 2 3; do echo x > /etc/haft-test; cat .env; done; read -r line; echo $line";
        let mut command = fixture.command(&["sandbox", "--timeout", "60s", "--", "bash", "-c", script]);
        command.env("HAFT_NAMESPACES", namespaces).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut haft = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(haft.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("Refused: read") {
            assert!(errors.read_line(&mut said).unwrap() > 0, "{namespaces}: {said}");
        }
        haft.stdin.take().unwrap().write_all(b"went on\n").unwrap();
        errors.read_to_string(&mut said).unwrap();
        assert_eq!(String::from_utf8(haft.wait_with_output().unwrap().stdout).unwrap(), "went on\n");
        for refusal in ["Refused: write /etc/haft-test: ", "Refused: read "] {
            assert_eq!(said.matches(refusal).count(), 1, "{namespaces}: {said}");
        }
    }
}

#[test]
fn every_client_is_told_of_the_proxy() {
    let fixture = NetworkFixture::new();
    let names =
        "HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy npm_config_https_proxy PIP_PROXY";
    let ran = fixture.sandbox(&[], &format!("for name in {names}; do echo ${{!name}}; done | sort -u"));
    assert!(ran.stdout.starts_with("http://127.0.0.1:") && ran.stdout.lines().count() == 1, "{}", ran.stdout);
    let ran = fixture.sandbox(&["--network", "all"], "echo [$HTTPS_PROXY]");
    assert_eq!(ran.stdout, "[]\n", "{}", ran.stderr);
}

#[test]
fn clients_without_a_proxy_fail_at_once() {
    let fixture = NetworkFixture::new();
    let ran = fixture.sandbox(&[], "exec 3<>/dev/tcp/192.0.2.1/443; echo status $?");
    assert!(ran.stderr.contains("Refused: connect 192.0.2.1:443: the network is not part"), "{}", ran.stderr);
    let ran = fixture.sandbox(&[], "getent hosts registry.npmjs.invalid; echo status $?");
    assert_eq!(ran.stdout, "status 2\n", "{}", ran.stderr);
}

#[test]
fn presets_contain_the_registries_of_the_users_settings_and_can_be_extended() {
    let fixture = NetworkFixture::new();
    let port = local_server();
    let read = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3");
    assert_eq!(fixture.sandbox(&["--network", "npm"], &read).stdout, "");
    fixture.home_file(".npmrc", &format!("registry=http://127.0.0.1:{port}/\n"));
    assert_eq!(fixture.sandbox(&["--network", "pypi"], &read).stdout, "");
    let ran = fixture.sandbox(&["--network", "npm"], &read);
    assert_eq!(ran.stdout, "hello\n", "{}", ran.stderr);
    let mut command = fixture.command(&["sandbox", "--network", "npm", "--", "bash", "-c", &read]);
    let ran = RunOutput::from(command.env("HAFT_NAMESPACES", "false").output().unwrap());
    assert_eq!(ran.stdout, "hello\n", "{}", ran.stderr);

    fixture.home_file(".npmrc", "");
    let settings =
        format!("[network]\nallow = [\"ours\"]\n[network.presets]\nours = [\"127.0.0.1:{port}\"]\n");
    fs::write(fixture.cli.config(), settings).unwrap();
    let ran = fixture.sandbox(&[], &read);
    assert_eq!(ran.stdout, "hello\n", "{}", ran.stderr);
    let shown = fixture.cli.haft(&["config", "show", "network"]).stdout;
    assert!(
        shown.contains("network.allow = [\"ours\"]") && shown.contains("network.presets.ours"),
        "{shown}"
    );
    assert_eq!(fixture.sandbox(&["--network", "none"], &read).stdout, "");
    let ran = fixture.sandbox(&["--network", "pypy"], "true");
    assert!(ran.stderr.contains("pypy is taken for a host. Did you mean the preset pypi?"), "{}", ran.stderr);
}

#[test]
fn answer_at_the_terminal_holds_for_the_command_or_the_project() {
    let fixture = NetworkFixture::new();
    let ask =
        || Terminal::run(fixture.command(&["sandbox", "--", "bash", "-c", &format!("{CONNECT}\n{CONNECT}")]));

    let mut terminal = ask();
    let question = terminal.text_up_to("Allow it? [o/s/a/n] ");
    assert!(question.contains("wants to reach registry.npmjs.invalid:443"), "{question}");
    assert!(question.contains(&fixture.cli.config().display().to_string()), "{question}");
    terminal.types("n");
    let (_, said) = terminal.ends();
    assert_eq!(said.matches("HTTP/1.1 403 ").count(), 2, "asked once: {said}");

    // The name cannot be resolved, so that an allowed connection fails with another status.
    let mut terminal = ask();
    terminal.sees("Allow it? [o/s/a/n] ");
    terminal.types("a");
    let (_, said) = terminal.ends();
    assert_eq!(said.matches("HTTP/1.1 502 ").count(), 2, "{said}");
    let settings = fs::read_to_string(fixture.cli.config()).unwrap();
    let project = fixture.cli.root().canonicalize().unwrap();
    let expected = format!("[projects.\"{}\"]\nnetwork = [\"registry.npmjs.invalid\"]\n", project.display());
    assert_eq!(settings, expected);

    let (_, said) = ask().ends();
    assert!(said.contains("HTTP/1.1 502 ") && !said.contains("Allow it?"), "{said}");
    let other = NetworkFixture::new();
    fs::write(other.cli.config(), settings).unwrap();
    assert!(other.sandbox(&[], CONNECT).stdout.contains("HTTP/1.1 403 "), "another project");
}

#[test]
fn d1_command_cannot_answer_a_question_and_is_stopped_meanwhile() {
    let fixture = NetworkFixture::new();
    // With these modes a report of the terminal that has the letter would be the answer.
    let script = format!("stty eol a kill 0; (while :; do echo x >> count; done) &\n{CONNECT}; kill $!");
    let mut terminal = Terminal::run(fixture.command(&["sandbox", "--", "bash", "-c", &script]));
    terminal.sees("Allow it? [o/s/a/n] ");
    let count = || fs::metadata(fixture.cli.path("count")).map_or(0, |meta| meta.len());
    let before = count();
    terminal.press("00a");
    terminal.sees("00a");
    assert_eq!(count(), before, "the command runs while a question is open");
    terminal.types("n");
    let (_, said) = terminal.ends();
    assert!(said.contains("HTTP/1.1 403 ") && !fixture.cli.config().exists(), "{said}");
}

#[test]
fn command_at_the_terminal_gets_its_input_back_after_a_question() {
    let fixture = NetworkFixture::new();
    let script = format!("{CONNECT}\nread -p 'name? ' name; echo \"it is $name\"");
    let mut terminal = Terminal::run(fixture.command(&["sandbox", "--", "bash", "-c", &script]));
    terminal.sees("Allow it? [o/s/a/n] ");
    terminal.types("n");
    terminal.sees("name? ");
    terminal.types("haft");
    terminal.sees("it is haft");
    assert_eq!(terminal.ends().0, 0);
}

#[test]
fn clients_user_is_asked_over_mcp() {
    let fixture = NetworkFixture::new();
    let mut haft = fixture.command(&["mcp"]);
    let mut haft = haft.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(haft.stdout.take().unwrap()).lines();
    let mut input = haft.stdin.take().unwrap();
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let mut next = move |is_wanted: &dyn Fn(&Value) -> bool| loop {
        let line = lines.next().unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if is_wanted(&message) {
            return message;
        }
    };
    let info = json!({"name": "test", "version": "1"});
    let params =
        json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": info});
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    next(&|message| message["id"] == 1);
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let call = |id: u32| {
        let params = json!({
            "name": "Bash", "arguments": {"command": CONNECT}, "_meta": {"progressToken": format!("p{id}")},
        });
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    send(call(2));
    let question = next(&|message| message["method"] == "elicitation/create");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("wants to reach registry.npmjs.invalid:443"), "{message}");
    assert!(
        message.contains("HTTPS_PROXY") && !message.contains("trap"),
        "the command as it was given: {message}"
    );
    let choices = &question["params"]["requestedSchema"]["properties"]["allow"]["enum"];
    assert_eq!(*choices, json!(["once", "session", "always", "no"]));

    // While the question is open, other calls are answered.
    send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "Bash", "arguments": {"command": "echo not blocked"},
    }}));
    let other = next(&|message| message["id"] == 3);
    assert!(other["result"].to_string().contains("not blocked"), "{other}");

    let answer = |allow: &str| json!({"action": "accept", "content": {"allow": allow}});
    send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer("no")}));
    let progress = next(&|message| message["method"] == "notifications/progress");
    assert!(progress["params"]["message"].as_str().unwrap().starts_with(REFUSAL), "{progress}");
    let result = next(&|message| message["id"] == 2)["result"].to_string();
    assert!(result.contains("403 Haft refused"), "{result}");

    send(call(4));
    let question = next(&|message| message["method"] == "elicitation/create");
    send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer("session")}));
    assert!(next(&|message| message["id"] == 4)["result"].to_string().contains("HTTP/1.1 502"));
    send(call(5));
    let message = next(&|message| message["id"] == 5 || message["method"] == "elicitation/create");
    assert!(
        message["result"].to_string().contains("HTTP/1.1 502"),
        "asked again in the same session: {message}"
    );
    drop(input);
    haft.wait().unwrap();
}

#[test]
fn no_question_is_asked_where_the_mode_forbids_it() {
    let fixture = NetworkFixture::new();
    let arguments = json!({"command": CONNECT}).to_string();
    let args = ["call", "Bash", &arguments, "--permission-mode", "bypassPermissions"];
    let (_, said) = Terminal::run(fixture.command(&args)).ends();
    assert!(said.contains("HTTP/1.1 403 ") && !said.contains("Allow it?"), "{said}");
}

#[test]
fn server_that_cannot_start_fails_with_its_errors_and_the_refusals() {
    let fixture = NetworkFixture::new();
    fixture
        .cli
        .write("server.sh", &format!("{CONNECT} >&2; echo 'cannot download myself' >&2; exec sleep 1000"));
    let entry = json!({"command": "bash", "args": ["server.sh"]});
    let config = json!({"mcpServers": {"stuck": entry}}).to_string();
    let ran = fixture.command(&["mcp", "test", "stuck", "--mcp-config", &config]).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(!ran.status.success());
    let (refusal, _) = REFUSAL.split_once("--network").unwrap();
    let refusal =
        format!("{refusal}network = [\"registry.npmjs.invalid\"] for the server stuck in the command line");
    assert!(said.contains("cannot download myself") && said.contains(&refusal), "{said}");
}

#[test]
fn agent_gets_copies_of_its_settings_and_keeps_a_renewed_login() {
    for namespaces in ["true", "false"] {
        let fixture = NetworkFixture::new();
        let port = local_server();
        fixture.home_file(".claude.json", r#"{"user": 1}"#);
        fixture.home_file(".claude/.credentials.json", r#"{"refreshToken": 1}"#);
        fixture.home_file(".claude/history.jsonl", "not needed");
        fixture.home_file(".codex/auth.json", "other login");
        let agent = format!(
            "#!/bin/bash\ncat ~/.claude.json ~/.claude/.credentials.json\ncat ~/.claude/history.jsonl ~/.codex/auth.json\n\
             echo '{{\"mcpServers\": 1}}' > ~/.claude.json\necho '{{\"refreshToken\": 2}}' > ~/.claude/.credentials.json\n\
             echo \"key $ANTHROPIC_API_KEY\"\nexec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3\necho changed > file\n"
        );
        fixture.home_file("bin/claude", &agent);
        let program = fixture.user.path().join("bin/claude");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = fixture.command(&["sandbox", "--agent", "claude"]);
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("ANTHROPIC_API_KEY", "k1").env("HAFT_NAMESPACES", namespaces);
        command.env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"));
        let ran = RunOutput::from(command.output().unwrap());
        let expected = "{\"user\": 1}{\"refreshToken\": 1}key k1\nhello\n";
        assert_eq!(ran.stdout, expected, "{namespaces}: {}", ran.stderr);
        assert_eq!(fixture.home_text(".claude.json"), r#"{"user": 1}"#, "settings stay");
        assert_eq!(
            fixture.home_text(".claude/.credentials.json"),
            "{\"refreshToken\": 2}\n",
            "a renewed login is kept"
        );
        assert_eq!(fixture.cli.read("file"), "changed\n");
        let undone = fixture.cli.haft(&["undo", "--yes"]);
        assert!(undone.code == 0 && !fixture.cli.path("file").exists(), "{}", undone.stderr);
    }
}
