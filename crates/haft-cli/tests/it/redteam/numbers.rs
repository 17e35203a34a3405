//! Each finding has tests that are named after its number.

use std::collections::BTreeSet;
use std::process::Command;

/// The findings are E1 to this one.
const LAST_FINDING: u32 = 46;

/// The names of the findings' tests that this program has, as its own list shows them: tests that are not compiled are missing.
fn listed_tests(options: &[&str]) -> Vec<String> {
    let mut list = Command::new(std::env::current_exe().unwrap());
    let listed = list.args(["redteam::", "--list", "--format", "terse"]).args(options).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let names = text.lines().filter_map(|line| line.strip_suffix(": test")?.rsplit("::").next());
    names.map(str::to_owned).collect()
}

/// The number of the finding that a test is about: `e3_…` and `e03_…` are those of E3.
fn finding(test: &str) -> Option<u32> {
    test.strip_prefix('e')?.split('_').next()?.parse().ok()
}

#[test]
fn each_finding_has_a_test_named_by_its_number() {
    let tested: BTreeSet<u32> = listed_tests(&[]).iter().filter_map(|name| finding(name)).collect();
    assert_eq!(tested, (1..=LAST_FINDING).collect());
    assert_eq!(listed_tests(&["--ignored"]), [] as [&str; 0]);
}
