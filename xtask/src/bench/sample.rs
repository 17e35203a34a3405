//! What the benches work on: 30,000 files of words and one file of 500 MB, the same on every machine.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub(crate) struct Sample {
    pub(crate) tree: PathBuf,
    pub(crate) big: PathBuf,
    pub(crate) scratch: PathBuf,
}

const FILES: usize = 30_000;
const BIG_BYTES: usize = 500_000_000;
const WORDS: [&str; 8] = ["function", "return", "struct", "Sherlock", "import", "unsafe", "TODO", "match"];
const ENDINGS: [&str; 6] = ["rs", "py", "ts", "md", "txt", "c"];

impl Sample {
    /// Makes the sample, unless an earlier run has.
    pub(crate) fn make(root: &Path) -> Result<Self, String> {
        let sample =
            Self { tree: root.join("tree"), big: root.join("big.txt"), scratch: root.join("scratch") };
        let done = root.join("complete");
        if !done.is_file() {
            println!("making the sample in {} …", root.display());
            sample.fill().map_err(|error| format!("the sample: {error}"))?;
            std::fs::write(done, "").map_err(|error| error.to_string())?;
        }
        std::fs::create_dir_all(&sample.scratch).map_err(|error| error.to_string())?;
        Ok(sample)
    }

    fn fill(&self) -> std::io::Result<()> {
        let mut dice = Dice(7);
        for directory in 0..FILES / 100 {
            let path = self.tree.join(format!("d{}/e{directory}", directory % 20));
            std::fs::create_dir_all(&path)?;
            for file in 0..100 {
                let ending = ENDINGS[dice.roll(ENDINGS.len())];
                let mut text = String::new();
                for _ in 0..10 + dice.roll(70) {
                    sentence(&mut text, &mut dice);
                }
                if dice.roll(100) == 0 {
                    text.push_str("the needle_in_haystack is here\n");
                }
                std::fs::write(path.join(format!("f{file}.{ending}")), text)?;
            }
        }
        let mut block = String::new();
        while block.len() < 1_000_000 {
            sentence(&mut block, &mut dice);
        }
        let mut big = BufWriter::new(File::create(&self.big)?);
        for number in 0..BIG_BYTES / block.len() {
            big.write_all(block.as_bytes())?;
            if number % 50 == 49 {
                big.write_all(b"the needle_in_haystack is here\n")?;
            }
        }
        big.flush()
    }
}

fn sentence(text: &mut String, dice: &mut Dice) {
    for _ in 0..2 + dice.roll(10) {
        if dice.roll(400) == 0 {
            text.push_str(WORDS[dice.roll(WORDS.len())]);
        } else {
            let _ = write!(text, "w{:04}", dice.roll(3_000));
        }
        text.push(' ');
    }
    text.push('\n');
}

/// A small generator whose numbers are the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap_or(0)
    }
}
