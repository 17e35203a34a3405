//! E15 and E28: tools ask before they return secrets.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use haft::json;

use super::{call, denied, dialects, reads};
use crate::fixture::cli::RunOutput;
use crate::fixture::runtime::Directories;
use crate::fixture::settings::SettingsFixture;

/// Files of the workspace that are secret by their names.
const IN_WORKSPACE: [&str; 9] = [
    ".env",
    "sub/.env.production",
    "id_rsa",
    "deploy/id_ed25519",
    "cert.p12",
    "tls/privkey.pem",
    "app_private_key.pem",
    "terraform.tfstate",
    "vault.kdbx",
];

#[test]
fn e15_no_dialect_returns_secrets_of_the_workspace_without_a_question() {
    let directories = Directories::new();
    for secret in IN_WORKSPACE {
        let path = directories.path(secret);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "needle\n").unwrap();
    }
    symlink(".env", directories.path("link")).unwrap();
    symlink("sub", directories.path("folder")).unwrap();
    for (name, builder) in dialects(&directories) {
        let haft = builder.build().unwrap();
        for secret in IN_WORKSPACE.into_iter().chain(["link", "folder/.env.production"]) {
            for (tool, arguments) in reads(name, &directories.path(secret)) {
                let said = denied(&haft, tool, arguments);
                assert!(!said.contains("needle"), "{name} {secret}: {said}");
                assert!(said.contains("may hold secrets") && said.contains("--allowedTools"), "{said}");
            }
        }
    }
}

#[test]
fn e15_a_rule_or_a_flag_opens_one_secret_and_templates_are_open() {
    let directories = Directories::new();
    for name in [".env", ".env.local", ".env.example"] {
        std::fs::write(directories.path(name), "needle\n").unwrap();
    }
    let read = |name: &str| json!({"file_path": directories.path(name)});
    let ruled = directories.builder().allow("Read(.env)", "test").build().unwrap();
    let flagged = directories.builder().allow_read(".env").build().unwrap();
    for haft in [ruled, flagged] {
        assert!(call(&haft, "Read", read(".env")).output.as_text().contains("needle"));
        assert!(call(&haft, "Read", read(".env.example")).output.as_text().contains("needle"));
        denied(&haft, "Read", read(".env.local"));
    }
    let named = directories.builder().allow("Read", "test").build().unwrap();
    denied(&named, "Read", read(".env"));
    let bypass = directories.builder().permission_mode(haft::Mode::BypassPermissions).build().unwrap();
    denied(&bypass, "Read", read(".env"));
}

#[test]
fn e15_a_new_secret_may_be_written_but_not_read_back() {
    let directories = Directories::new();
    let haft = directories.builder().build().unwrap();
    let path = directories.path(".env");
    let written = call(&haft, "Write", json!({"file_path": path, "content": "needle\n"}));
    assert!(!written.output.is_error(), "{}", written.output.as_text());
    denied(&haft, "Edit", json!({"file_path": path, "old_string": "needl", "new_string": "x"}));
}

#[test]
fn e15_a_search_skips_secrets_and_says_so() {
    let directories = Directories::new();
    std::fs::write(directories.path("a.txt"), "needle\n").unwrap();
    let haft = directories.builder().build().unwrap();
    let grep = |pattern: &str| {
        let found = call(&haft, "Grep", json!({"pattern": pattern, "output_mode": "content"})).output;
        found.as_text()
    };
    assert_eq!(grep("needle"), "a.txt:1:needle\n");
    std::fs::write(directories.path(".env"), "KEY=needle\n").unwrap();
    let note = "\n[Not searched, because of possible secrets: .env]\n";
    assert_eq!(grep("needle"), format!("a.txt:1:needle\n{note}"));
    assert_eq!(grep("KEY=n"), grep("KEY=x"), "a search tells nothing about the content");
    let listed = call(&haft, "Glob", json!({"pattern": "**/*"})).output.as_text();
    assert!(listed.contains(".env"), "its name is no secret: {listed}");
}

/// Reads a file as the user with this home.
fn read(fixture: &SettingsFixture, tool: &str, path: &PathBuf) -> RunOutput {
    let arguments = if tool == "Read" {
        json!({"file_path": path})
    } else {
        json!({"pattern": "needle", "path": path, "output_mode": "content"})
    };
    fixture.haft(&["call", tool, &arguments.to_string()])
}

#[test]
fn e28_credentials_in_the_home_are_secret() {
    let fixture = SettingsFixture::new();
    for name in [
        ".ssh/id_rsa",
        ".ssh/config",
        ".pgpass",
        ".vault-token",
        ".terraform.d/credentials.tfrc.json",
        ".claude.json",
        ".config/sops/age/keys.txt",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".config/rclone/rclone.conf",
        ".s3cfg",
        ".oci/config",
        ".fly/config.yml",
        ".vercel/auth.json",
        ".local/share/opencode/auth.json",
        ".config/github-copilot/hosts.json",
        ".bash_history",
        ".zsh_history",
        ".python_history",
        ".bitcoin/wallet.dat",
        ".aws/credentials",
        ".my.cnf",
        ".kube/config",
    ] {
        let path = fixture.plant(name, "needle\n");
        for tool in ["Read", "Grep"] {
            let ran = read(&fixture, tool, &path);
            assert_eq!(ran.code, 3, "{tool} {name}: {}{}", ran.stdout, ran.stderr);
            assert!(!ran.stdout.contains("needle\n"), "{tool} {name}");
        }
        let directory = path.parent().unwrap().to_owned();
        let ran = read(&fixture, "Grep", &directory);
        assert!(!ran.stdout.contains(":needle"), "{name}: {}", ran.stdout);
    }
    let ssh = fixture.at_home(".ssh");
    for arguments in
        [json!({"pattern": "*", "path": ssh}), json!({"pattern": format!("{}/*", ssh.display())})]
    {
        let ran = fixture.haft(&["call", "Glob", &arguments.to_string()]);
        assert_eq!(ran.code, 3, "{}", ran.stdout);
    }
    let open = fixture.plant("notes.txt", "needle\n");
    assert_eq!(read(&fixture, "Read", &open).code, 0);
}

#[test]
fn e28_the_home_is_recognised_by_another_name() {
    let fixture = SettingsFixture::new();
    fixture.plant(".ssh/id_custom", "needle\n");
    let elsewhere = tempfile::tempdir().unwrap();
    let other = elsewhere.path().join("by-link");
    symlink(fixture.at_home(""), &other).unwrap();
    let ran = read(&fixture, "Read", &other.join(".ssh/id_custom"));
    assert_eq!(ran.code, 3, "{}", ran.stdout);
    let ran = read(&fixture, "Grep", &other);
    assert!(!ran.stdout.contains(":needle"), "{}", ran.stdout);
}

#[test]
fn e28_a_secret_that_is_kept_elsewhere_and_linked_is_secret_there() {
    let fixture = SettingsFixture::new();
    let kept = fixture.plant("dotfiles/aws/credentials", "needle\n");
    let config = fixture.plant("dotfiles/config/gh/hosts.yml", "needle\n");
    let open = fixture.plant("dotfiles/notes", "needle\n");
    symlink("dotfiles/aws", fixture.at_home(".aws")).unwrap();
    symlink("dotfiles/config", fixture.at_home(".config")).unwrap();
    for path in [kept, config] {
        let ran = read(&fixture, "Read", &path);
        assert_eq!(ran.code, 3, "{}", ran.stdout);
    }
    assert_eq!(read(&fixture, "Read", &open).code, 0);
}

#[test]
fn e15_password_hashes_of_the_system_are_secret() {
    let fixture = SettingsFixture::new();
    for path in ["/etc/shadow", "/etc/gshadow"] {
        let ran = read(&fixture, "Read", &path.into());
        assert_eq!(ran.code, 3, "{path}: {}", ran.stdout);
        assert!(ran.stdout.contains("may hold secrets"), "{path}: {}", ran.stdout);
        let ran = fixture.cli.haft(&["sandbox", "cat", path]);
        assert!(ran.code == 1 && ran.stderr.contains("Permission denied"), "{path}: {}", ran.stderr);
    }
}
