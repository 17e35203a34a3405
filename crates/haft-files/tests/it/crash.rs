//! A killed process leaves the old file or the new one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use haft_tool::Files;

use crate::fixture::{Fixture, is_temporary};

const PLACE: &str = "HAFT_TEST_CRASH_PLACE";
const KILLS: usize = 200;

fn contents() -> [Vec<u8>; 2] {
    [b"one\n".repeat(50_000), b"the other\n".repeat(3_000)]
}

/// Updates one file until it is killed. Started as a process by the test below; does nothing by itself.
#[test]
fn victim() {
    let Some(base) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let mut fixture = Fixture::new();
    fixture.scope.workspace = base.clone();
    fixture.scope.roots = vec![base.clone()];
    let (files, file, contents) = (fixture.files(), base.join("file"), contents());
    for content in contents.iter().cycle() {
        files.update(&file, &mut |_| Ok(content.clone())).unwrap();
        println!("updated");
    }
}

#[test]
fn killed_writer_leaves_the_old_or_the_new_content() {
    let fixture = Fixture::new();
    let file = fixture.put("ws/file", &contents()[0]);
    let mut leftovers = 0;
    for _ in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::victim", "--nocapture"])
            .env(PLACE, fixture.ws(""))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let started = lines.by_ref().any(|line| line.unwrap().ends_with("updated"));
        assert!(started, "the victim ended by itself: {:?}", child.wait());
        let mut random = [0];
        getrandom::fill(&mut random).unwrap();
        for _ in 0..random[0] {
            assert!(contents().contains(&fs::read(&file).unwrap()), "torn while it was written");
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(contents().contains(&fs::read(&file).unwrap()), "torn by the kill");
        let temps: Vec<PathBuf> =
            fixture.names("ws").iter().filter(|name| *name != "file").map(|name| fixture.ws(name)).collect();
        for temp in &temps {
            let name = temp.file_name().unwrap().to_str().unwrap();
            assert!(is_temporary(name), "left behind: {name}");
        }
        leftovers += temps.len();
        haft_files::remove_leftovers(&temps);
        assert_eq!(fixture.names("ws"), ["file"], "what is left behind can be removed");
    }
    assert!(leftovers > 0, "{KILLS} kills never hit a write, so this test has shown nothing");
}
