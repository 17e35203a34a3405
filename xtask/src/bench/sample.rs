//! The files that benches search: 30,000 small ones and one of 500 MB, the same on every machine.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

pub(super) struct Sample {
    pub(super) tree: PathBuf,
    pub(super) big: PathBuf,
    pub(super) scratch: PathBuf,
}

const FILE_COUNT: usize = 30_000;
const BIG_BYTES: usize = 500_000_000;
const WORDS: [&str; 8] = ["function", "return", "struct", "Sherlock", "import", "unsafe", "TODO", "match"];
const ENDINGS: [&str; 6] = ["rs", "py", "ts", "md", "txt", "c"];

impl Sample {
    /// Creates the sample, unless an earlier run has.
    pub(super) fn make(root: &Path) -> Result<Self, String> {
        let sample =
            Self { tree: root.join("tree"), big: root.join("big.txt"), scratch: root.join("scratch") };
        let done = root.join("complete");
        if !done.is_file() {
            println!("creating the sample in {} …", root.display());
            sample.fill().map_err(|error| format!("the sample: {error}"))?;
            std::fs::write(done, "").map_err(|error| error.to_string())?;
        }
        std::fs::create_dir_all(&sample.scratch).map_err(|error| error.to_string())?;
        Ok(sample)
    }

    fn fill(&self) -> std::io::Result<()> {
        let mut random = Random(7);
        for directory in 0..FILE_COUNT / 100 {
            let path = self.tree.join(format!("d{}/e{directory}", directory % 20));
            std::fs::create_dir_all(&path)?;
            for file in 0..100 {
                let ending = ENDINGS[random.below(ENDINGS.len())];
                let mut text = String::new();
                for _ in 0..10 + random.below(70) {
                    sentence(&mut text, &mut random);
                }
                if random.below(100) == 0 {
                    text.push_str("the needle_in_haystack is here\n");
                }
                std::fs::write(path.join(format!("f{file}.{ending}")), text)?;
            }
        }
        let mut block = String::new();
        while block.len() < 1_000_000 {
            sentence(&mut block, &mut random);
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

fn sentence(text: &mut String, random: &mut Random) {
    for _ in 0..2 + random.below(10) {
        if random.below(400) == 0 {
            text.push_str(WORDS[random.below(WORDS.len())]);
        } else {
            let _ = write!(text, "w{:04}", random.below(3_000));
        }
        text.push(' ');
    }
    text.push('\n');
}

/// A generator whose numbers are the same everywhere (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or(0)
    }
}
