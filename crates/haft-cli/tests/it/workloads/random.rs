//! Scripts of random steps on few names: undone, redone and undone again.

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::tree::{Tree, differences, timeless};
use crate::fixture::wait_until;

const SCRIPTS: u64 = 200;
/// Few, so that steps meet: files where folders were, links to what goes, folders moved into each other.
const NAMES: [&str; 13] = ["a", "b", "c", "d", "e", "x/a", "x/b", "x/y/a", "x/y", "x", "z", "z/a", "z/q"];

/// The same numbers on every machine.
struct TestRng(u64);

impl TestRng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.below(NAMES.len())]
    }

    fn step(&mut self) -> String {
        let (kind, a, b, number) = (self.below(23), self.name(), self.name(), self.below(10));
        match kind {
            0 => format!("echo {number} > {a}"),
            1 => format!("echo {number} >> {a}"),
            2 => format!("rm {a}"),
            3 => format!("rm -rf {a}"),
            4 | 5 => format!("mv {a} {b}"),
            6 => format!("mv -T {a} {b}"),
            7 => format!("ln {a} {b}"),
            8 => format!("ln -f {a} {b}"),
            9 => format!("ln -s {a} {b}"),
            10 => format!("mkdir -p {a}"),
            11 => format!("mkdir {a}"),
            12 => format!("chmod {} {a}", ["600", "644", "755", "700", "400"][number / 2]),
            13 => format!("cp -a {a} {b}"),
            14 => format!("cp -al {a} {b}"),
            15 => format!("truncate -s {} {a}", number * 700),
            16 => format!("sed -i s/{number}/2/ {a}"),
            17 => format!("rmdir {a}"),
            18 => format!("exec {}>> {a}", 5 + number % 2),
            19 => format!("echo late >&{}", 5 + number % 2),
            20 => format!("head -c 40000 /dev/zero > {a}"),
            21 => format!("mv -T {a} t; mv -T {b} {a}; mv -T t {b}"),
            _ => format!("touch {a}"),
        }
    }

    fn script(&mut self, most: usize) -> String {
        self.steps(most) + "true"
    }

    fn steps(&mut self, most: usize) -> String {
        let steps = 1 + self.below(most);
        (0..steps).map(|_| self.step() + " 2>/dev/null\n").collect()
    }
}

/// Which names are one file is brought back, but not in every tangle of moves done again.
fn apart(mut tree: Tree) -> Tree {
    tree.values_mut().for_each(crate::fixture::tree::TreeEntry::forget_names);
    tree
}

/// A workspace in which anything may stand, and how it came to be.
fn set(rng: &mut TestRng) -> (SandboxFixture, String) {
    let fixture = SandboxFixture::new(User::Current);
    let before = format!("mkdir -p x/y z; echo 1 > a; echo 2 > x/b\n{}", rng.script(25));
    fixture.unsandboxed(&before);
    (fixture, before)
}

#[test]
fn whatever_a_killed_haft_leaves_is_taken_back() {
    let mut failures = String::new();
    for seed in 0..SCRIPTS / 2 {
        let mut rng = TestRng(seed);
        let (fixture, before) = set(&mut rng);
        let first = apart(timeless(&fixture.work(), &[]));
        let script = rng.steps(14) + "touch .ready; sleep 600";
        let mut haft = fixture.bare(&fixture.program());
        let mut haft = haft.args(["sandbox", "--", "bash", "-c", &script]).spawn().unwrap();
        wait_until(|| fixture.work().join(".ready").exists());
        haft.kill().unwrap();
        haft.wait().unwrap();
        wait_until(|| fixture.processes().is_empty());
        let undo = fixture.haft(&["undo", "--yes"]);
        let wrong = differences(&first, &apart(timeless(&fixture.work(), &[])));
        if undo.code != 0 || !wrong.is_empty() {
            let said = undo.stderr;
            failures.push_str(&format!(
                "seed {seed}: {wrong:?}\n{said}--- before\n{before}\n--- inside\n{script}\n\n"
            ));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn whatever_a_command_did_is_taken_back() {
    let mut failures = String::new();
    for seed in 0..SCRIPTS {
        let mut rng = TestRng(seed);
        let (fixture, before) = set(&mut rng);
        let script = rng.script(14);
        let look = || timeless(&fixture.work(), &[]);
        let first = look();
        fixture.inside(&script);
        let then = look();
        if differences(&first, &then).is_empty() {
            continue;
        }
        for (word, left) in [("undo", &first), ("redo", &then), ("undo", &first)] {
            let ran = fixture.haft(&[word, "--yes"]);
            let wrong = differences(&apart(left.clone()), &apart(look()));
            if ran.code != 0 || !wrong.is_empty() {
                let said = ran.stderr;
                failures.push_str(&format!(
                    "seed {seed}, {word}: {wrong:?}\n{said}--- before\n{before}\n--- inside\n{script}\n\n"
                ));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
