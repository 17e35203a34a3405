//! A thousand sandboxed commands, eight at a time, leave nothing behind. Its own binary, because it counts the descriptors
//! and children of its process, which other tests would change.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on has failed")]
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;

use haft::{Runtime, json};

fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// How many descriptors this process has, its children, and the mounts in `temp`.
fn standing(temp: &str) -> (usize, String, Vec<String>) {
    let fds = fs::read_dir("/proc/self/fd").unwrap().count();
    let children: String = fs::read_dir("/proc/self/task")
        .unwrap()
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default())
        .collect();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mounts.lines().filter(|mount| mount.contains(temp)).map(str::to_owned).collect();
    (fds, children, mounts)
}

#[test]
fn a_thousand_commands_eight_at_a_time_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = tempfile::tempdir().unwrap();
    let cache = tempfile::tempdir().unwrap();
    let temp = format!("/tmp/haft-{}", our_uid());
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let haft = Runtime::builder()
        .workspace(folder.path())
        .home(home.path())
        .cache(cache.path())
        .dialect(haft::claude())
        .build()
        .unwrap();
    let run = |from: usize, to: usize| {
        tokio.block_on(async {
            let mut all = Vec::new();
            for lane in 0..8 {
                let haft = haft.clone();
                all.push(tokio::spawn(async move {
                    for number in (from..to).filter(|number| number % 8 == lane) {
                        let command = format!(
                            "(setsid sleep 600 &); echo {number} > f{number}; cat f{number}; rm f{number}"
                        );
                        let result = haft.call("Bash", json!({"command": command})).await;
                        let text = result.output.as_text();
                        assert_eq!(text.lines().next(), Some(number.to_string().as_str()), "{text}");
                    }
                }));
            }
            for lane in all {
                lane.await.unwrap();
            }
        });
    };
    // The first few open the ledger and start threads that stay.
    run(0, 64);
    let (fds, children, mounts) = standing(&temp);
    run(64, 1064);
    let after = standing(&temp);
    // Eight calls at a time may need more connections to the ledger than the first few did; a leak would be a thousand.
    assert!(after.0 <= fds + 40, "descriptors: {fds} before, {} after", after.0);
    // The first process of the session's namespaces stays.
    assert_eq!(after.1, children, "children are left");
    assert_eq!(after.2, mounts, "mounts are left");
    assert_eq!(names(folder.path().to_str().unwrap()), BTreeSet::new(), "files are left");
    tokio.block_on(haft.shutdown());
    assert_eq!(standing(&temp).1.trim(), "", "the namespaces are left");
    let mine = format!("{}-", std::process::id());
    assert!(
        !names(&temp).iter().any(|name| name.starts_with(&mine)),
        "a private directory is left in {temp}"
    );
}

fn our_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid()
}
