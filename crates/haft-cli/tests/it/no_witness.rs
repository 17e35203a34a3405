//! Without a witness a command is restricted all the same, and its changes are found by comparing before and after.
//! Inside another sandbox of Haft there can be no second witness.

use std::fs;
use std::process::Command;

use crate::fixture::haft_program;

#[test]
fn changes_found_by_comparing_are_undone_and_receipt_names_the_missing_witness() {
    let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = |name: &str| folder.path().join(name);
    for name in ["old", "gone", "kept"] {
        fs::write(file(name), "1\n").unwrap();
    }
    // A copy in the workspace, because the sandbox hides a build below /tmp.
    let (haft, inner) = (haft_program(), file("haft"));
    fs::copy(&haft, &inner).unwrap();
    let inner = inner.display();
    let script = format!(
        "export HAFT_HOME=$TMPDIR/inner
        {inner} sandbox -- sh -c 'echo a > new; echo b >> old; rm gone; mkdir d; echo c > d/c; ! echo x > /etc/haft-zz'
        {inner} show 1; {inner} undo 1 --yes"
    );
    let done = Command::new(&haft)
        .args(["sandbox", "--workspace", folder.path().to_str().unwrap(), "--", "bash", "-c", &script])
        .current_dir(folder.path())
        .env("HAFT_HOME", home.path().join("haft"))
        .env("HAFT_CACHE", home.path().join("cache"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    let all = format!("{text}\n{}", String::from_utf8_lossy(&done.stderr));
    assert!(text.contains("no witness: guarded names are not protected"), "{all}");
    assert!(text.contains("reversible  yes"), "{all}");
    assert!(!fs::exists("/etc/haft-zz").unwrap(), "{all}");
    assert!(!file("new").exists() && !file("d").exists(), "{all}");
    for name in ["old", "gone", "kept"] {
        assert_eq!(fs::read_to_string(file(name)).unwrap(), "1\n", "{all}");
    }
}
