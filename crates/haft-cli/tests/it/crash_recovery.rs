//! A kill -9 at any moment of a call loses nothing: the file holds the old or the new bytes, and undo brings back the old.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::fixture::cli::CliFixture;
use crate::fixture::random::TestRng;
use haft::{Effect, Receipt, ReceiptState, Value, json};
use tempfile::TempDir;

const ROUNDS: usize = 200;
const SIZES: [usize; 4] = [1 << 10, 64 << 10, 1 << 20, 4 << 20];
/// The stretch of text that an edit replaces.
const MARK: &str = "<the one fixture>";

impl TestRng {
    /// Lines of text, about so many bytes.
    fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 32);
        while text.len() < bytes {
            text.push_str(&format!("{:08x} grün {:08x}\n", self.below(1 << 31), self.below(1 << 31)));
        }
        text
    }
}

/// A workspace with a ledger, and a fixture for arguments.
struct CrashFixture {
    cli: CliFixture,
    workspace: PathBuf,
    arguments: TempDir,
}

impl CrashFixture {
    fn new() -> Self {
        let cli = CliFixture::new();
        let workspace = cli.root().canonicalize().unwrap();
        Self { cli, workspace, arguments: tempfile::tempdir().unwrap() }
    }

    fn start(&self, round: &Round) -> Child {
        let file = self.arguments.path().join("arguments.json");
        fs::write(&file, round.arguments.to_string()).unwrap();
        let mut command = self.cli.command(&["call", round.tool, &format!("@{}", file.display())]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The receipt of the call that was to write `target`, as the ledger tells it.
    fn receipt_of(&self, target: &Path) -> Option<Receipt> {
        let log = self.cli.haft(&["log", "--json", "-n", "3"]);
        assert_eq!(log.code, 0, "haft log: {}", log.stderr);
        let mut receipts = log.stdout.lines().map(|line| serde_json::from_str::<Receipt>(line).unwrap());
        receipts.find(|receipt| receipt.effects.contains(&Effect::Write { path: target.to_owned() }))
    }
}

/// One call and what stands at its target before and after it.
struct Round {
    tool: &'static str,
    target: PathBuf,
    arguments: Value,
    old: Option<String>,
    new: String,
}

impl Round {
    /// The call of this number; half of them write, half edit, and some write where nothing is yet.
    fn new(number: usize, size: usize, rng: &mut TestRng, workspace: &Path) -> Self {
        let edits = number.is_multiple_of(2);
        if !edits && number % 10 == 1 {
            let target = workspace.join(format!("made-{number}/below/file.txt"));
            let new = rng.text(size);
            let arguments = json!({"file_path": target, "content": new});
            return Self { tool: "Write", target, arguments, old: None, new };
        }
        let target = workspace.join(format!("{number}.txt"));
        let (head, tail) = (rng.text(size / 2), rng.text(size / 2));
        let old = format!("{head}{MARK}{tail}");
        let (tool, new, arguments) = if edits {
            let text = rng.text(100);
            let arguments = json!({"file_path": target, "old_string": MARK, "new_string": text});
            ("Edit", format!("{head}{text}{tail}"), arguments)
        } else {
            let new = rng.text(size);
            let arguments = json!({"file_path": target, "content": new});
            ("Write", new, arguments)
        };
        fs::write(&target, &old).unwrap();
        Self { tool, target, arguments, old: Some(old), new }
    }

    fn now(&self) -> Option<String> {
        match fs::read_to_string(&self.target) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => panic!("{}: {error}", self.target.display()),
        }
    }

    /// Whether there is a directory now where there was none.
    fn made_a_directory(&self) -> bool {
        self.old.is_none() && self.target.ancestors().nth(2).is_some_and(Path::exists)
    }
}

/// Where the kill found the call.
#[derive(Debug, Default)]
struct Hits {
    before: usize,
    during_with_old: usize,
    during_with_new: usize,
    after: usize,
}

#[test]
fn a_kill_at_any_moment_leaves_the_old_or_the_new_file_and_undo_brings_back_the_old() {
    let fixture = CrashFixture::new();
    let mut rng = TestRng(9);
    // How long a call takes, by size and tool. It decides only where the kills fall, never whether the test passes.
    let mut lasts = [[Duration::ZERO; 2]; SIZES.len()];
    for (size, lasts) in SIZES.iter().zip(&mut lasts) {
        for (tool, lasts) in lasts.iter_mut().enumerate() {
            let round = Round::new(1_000_002 + tool, *size, &mut rng, &fixture.workspace);
            let start = Instant::now();
            assert!(fixture.start(&round).wait().unwrap().success());
            *lasts = start.elapsed();
            assert!(round.now().as_ref() == Some(&round.new), "{} without a kill", round.tool);
            fs::remove_file(&round.target).unwrap();
        }
    }

    let mut hits = Hits::default();
    for number in 0..ROUNDS {
        let class = rng.below(SIZES.len());
        let round = Round::new(number, SIZES[class], &mut rng, &fixture.workspace);
        let lasts = &mut lasts[class][number % 2];
        let delay = *lasts * u32::try_from(rng.below(1_000)).unwrap() / 1_000;
        let mut child = fixture.start(&round);
        // One in four is killed when the new bytes are there but not yet in their fixture, the others at any time.
        if [1, 4].contains(&(number % 8)) {
            while leftovers(&fixture.workspace).is_empty() && child.try_wait().unwrap().is_none() {}
        } else {
            std::thread::sleep(delay);
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let told =
            format!("round {number}: {} of {} bytes, killed after about {delay:?}", round.tool, SIZES[class]);
        let now = round.now();
        let is_new = now.as_ref() == Some(&round.new);
        assert!(is_new || now == round.old, "{told}: neither the old nor the new file");
        let receipt = fixture.receipt_of(&round.target);
        assert_eq!(leftovers(&fixture.workspace), Vec::<PathBuf>::new(), "{told}");
        let Some(receipt) = receipt else {
            assert!(!is_new && !round.made_a_directory(), "{told}: changed without a receipt");
            hits.before += 1;
            // The machine is slower than it was: let the next kills come later.
            *lasts = *lasts * 21 / 20;
            continue;
        };
        match receipt.state {
            ReceiptState::Interrupted if is_new => hits.during_with_new += 1,
            ReceiptState::Interrupted => hits.during_with_old += 1,
            ReceiptState::Completed => {
                assert!(is_new, "{told}: completed, but the old file");
                hits.after += 1;
                *lasts = *lasts * 20 / 21;
            }
            other => panic!("{told}: the receipt says {other:?}"),
        }
        if receipt.changes.is_empty() {
            assert!(!is_new && !round.made_a_directory(), "{told}: changed, and the receipt does not say so");
            continue;
        }
        let undo = fixture.cli.haft(&["undo", "--yes"]);
        assert_eq!(undo.code, 0, "{told}: haft undo: {}", undo.stderr);
        assert!(round.now() == round.old, "{told}: undo did not bring back the old file");
        assert!(!round.made_a_directory(), "{told}: undo left a directory that was not there");
        assert_eq!(leftovers(&fixture.workspace), Vec::<PathBuf>::new(), "{told}: after undo");
    }
    println!("{hits:?}");
    let during = hits.during_with_old + hits.during_with_new;
    assert_eq!(hits.before + during + hits.after, ROUNDS);
    assert!(
        during >= 10 && during + hits.after >= ROUNDS / 10,
        "too few kills came while anything happened: {hits:?}"
    );
    assert_eq!(running(&fixture.workspace), Vec::<String>::new());
}

/// Temporary files that are there now.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    // A call may be at work here, so an entry may be gone by now.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(leftovers(&entry.path()));
        } else if name.starts_with(".haft-") {
            found.push(entry.path());
        }
    }
    found
}

/// The processes that still work in the workspace.
fn running(workspace: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let there = |path: &Path| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(workspace));
    processes
        .map(|entry| entry.path())
        .filter(|path| there(path))
        .map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default())
        .collect()
}
