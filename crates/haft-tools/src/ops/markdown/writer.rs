//! Writing Markdown piece by piece: spaces, lines, lists, quotes, code, emphasis and links.

use super::tables::Table;

/// Deeper lists and quotes than these are written as if they were not as deep.
const DEEPEST: usize = 12;
/// More emphasis at one place means nothing.
const MOST_EMPHASIS: usize = 8;

/// What holds lines.
pub(super) enum Block {
    Quote,
    Bullets,
    /// The number of the next item.
    Numbers(u64),
}

/// Space that the next words need before them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
    Paragraph,
}

pub(super) struct Writer {
    pub(super) out: String,
    most: usize,
    gap: Gap,
    blocks: Vec<Block>,
    /// How many blocks are open beyond the deepest.
    deeper: usize,
    /// What stands before the next words: a heading's or an item's mark.
    mark: String,
    /// Emphasis that has begun and has no words yet, and the one that has.
    waiting: Vec<&'static str>,
    open: Vec<&'static str>,
    /// Where the words of a link begin, and where it leads.
    link: Option<(usize, String)>,
    /// Where a block of code begins.
    code: Option<usize>,
    in_heading: bool,
    pub(super) tables: Vec<Table>,
}

impl Writer {
    pub(super) fn new(most: usize) -> Self {
        Self {
            out: String::new(),
            most,
            gap: Gap::None,
            blocks: Vec::new(),
            deeper: 0,
            mark: String::new(),
            waiting: Vec::new(),
            open: Vec::new(),
            link: None,
            code: None,
            in_heading: false,
            tables: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.most
    }

    pub(super) fn line(&mut self) {
        self.ask(Gap::Line);
    }

    pub(super) fn paragraph(&mut self) {
        self.ask(Gap::Paragraph);
    }

    fn ask(&mut self, gap: Gap) {
        if self.code.is_some() {
            return;
        }
        // What must stay on one line has only spaces.
        let gap = if self.in_heading || self.in_cell() { Gap::Space } else { gap };
        self.gap = self.gap.max(gap);
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.code.is_some() {
            self.verbatim(text);
            return;
        }
        let mut words = text.split_ascii_whitespace().peekable();
        if words.peek().is_none() || text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.ask(Gap::Space);
        }
        let in_cell = self.in_cell();
        let ends_in_space = text.ends_with(|c: char| c.is_ascii_whitespace());
        for (at, word) in words.enumerate() {
            if at > 0 {
                self.ask(Gap::Space);
            }
            self.before_words();
            if in_cell && word.contains('|') {
                self.out.push_str(&word.replace('|', "\\|"));
            } else {
                self.out.push_str(word);
            }
            if self.is_full() {
                return;
            }
        }
        if ends_in_space {
            self.ask(Gap::Space);
        }
    }

    /// Puts down what has to stand before the next words.
    pub(super) fn before_words(&mut self) {
        let gap = std::mem::replace(&mut self.gap, Gap::None);
        if self.out.is_empty() {
            self.prefix(!self.mark.is_empty());
        } else {
            match gap {
                Gap::None => {}
                Gap::Space if self.out.ends_with([' ', '\n']) => {}
                Gap::Space => self.out.push(' '),
                Gap::Line => self.new_line(),
                Gap::Paragraph => {
                    self.new_line();
                    self.out.truncate(self.out.trim_end_matches(' ').len());
                    self.new_line();
                }
            }
        }
        let mark = std::mem::take(&mut self.mark);
        self.out.push_str(&mark);
        for emphasis in std::mem::take(&mut self.waiting) {
            self.out.push_str(emphasis);
            self.open.push(emphasis);
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.prefix(!self.mark.is_empty());
    }

    /// The quotes and indents that every line of the open blocks begins with; an item's mark stands in its own indent.
    fn prefix(&mut self, marked: bool) {
        let lists = self.blocks.iter().filter(|block| !matches!(block, Block::Quote)).count();
        let mut left = lists;
        for block in &self.blocks {
            if matches!(block, Block::Quote) {
                self.out.push_str("> ");
                continue;
            }
            left -= 1;
            if left > 0 || !marked {
                self.out.push_str("  ");
            }
        }
    }

    pub(super) fn mark(&mut self, mark: &str) {
        if !self.in_cell() {
            mark.clone_into(&mut self.mark);
        }
    }

    pub(super) fn open(&mut self, block: Block) {
        self.ask(if self.blocks.is_empty() { Gap::Paragraph } else { Gap::Line });
        if self.blocks.len() < DEEPEST {
            self.blocks.push(block);
        } else {
            self.deeper += 1;
        }
    }

    pub(super) fn close(&mut self, quote: bool) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(at) = self.blocks.iter().rposition(|block| matches!(block, Block::Quote) == quote)
        {
            self.blocks.truncate(at);
        }
        self.mark.clear();
        self.ask(if self.blocks.is_empty() { Gap::Paragraph } else { Gap::Line });
    }

    pub(super) fn item(&mut self) {
        self.ask(Gap::Line);
        let mark = match self.blocks.last_mut() {
            Some(Block::Numbers(next)) => {
                *next = next.wrapping_add(1);
                format!("{}. ", next.wrapping_sub(1))
            }
            _ => "- ".to_owned(),
        };
        self.mark(&mark);
    }

    pub(super) fn heading(&mut self, level: usize) {
        self.ask(Gap::Paragraph);
        if !self.in_cell() {
            self.mark = format!("{} ", "#".repeat(level));
            self.in_heading = true;
        }
    }

    pub(super) fn end_heading(&mut self) {
        self.in_heading = false;
        self.mark.clear();
        self.ask(Gap::Paragraph);
    }

    pub(super) fn rule(&mut self) {
        self.ask(Gap::Paragraph);
        if !self.in_cell() {
            self.before_words();
            self.out.push_str("---");
            self.ask(Gap::Paragraph);
        }
    }

    pub(super) fn emphasis(&mut self, sign: &'static str) {
        if self.code.is_none() && self.waiting.len() + self.open.len() < MOST_EMPHASIS {
            self.waiting.push(sign);
        }
    }

    pub(super) fn end_emphasis(&mut self, sign: &'static str) {
        if let Some(at) = self.waiting.iter().rposition(|waiting| *waiting == sign) {
            self.waiting.remove(at);
        } else if let Some(at) = self.open.iter().rposition(|open| *open == sign) {
            self.open.remove(at);
            self.out.push_str(sign);
        }
    }

    pub(super) fn start_link(&mut self, url: String) {
        if self.code.is_none() {
            self.link = Some((usize::MAX, url));
            self.before_link();
        }
    }

    /// The bracket stands directly before the link's first word, so the space before it is put down now.
    fn before_link(&mut self) {
        self.before_words();
        if let Some((start, _)) = &mut self.link {
            *start = self.out.len();
            self.out.push('[');
        }
    }

    pub(super) fn end_link(&mut self) {
        let Some((start, url)) = self.link.take() else { return };
        let words = self.out[start + 1..].trim();
        if words.is_empty() {
            self.out.truncate(start);
            return;
        }
        // A link of several lines is none in Markdown.
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        self.out.truncate(start);
        if words == url {
            self.out.push_str(&url);
        } else {
            self.out.push_str(&format!("[{words}]({url})"));
        }
    }

    pub(super) fn image(&mut self, alt: &str, url: Option<&str>) {
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() || self.code.is_some() {
            return;
        }
        self.before_words();
        match url {
            Some(url) => self.out.push_str(&format!("![{alt}]({url})")),
            None => self.out.push_str(&alt),
        }
    }

    pub(super) fn start_code(&mut self, language: &str) {
        if self.in_cell() || self.code.is_some() {
            return;
        }
        self.ask(Gap::Paragraph);
        self.before_words();
        self.code = Some(self.out.len());
        self.out.push_str("```");
        self.out.push_str(language);
    }

    /// Gives the block of code that has just begun a language; says whether there is a block of code at all.
    pub(super) fn name_code(&mut self, language: &str) -> bool {
        if let Some(start) = self.code
            && &self.out[start..] == "```"
        {
            self.out.push_str(language);
        }
        self.code.is_some()
    }

    fn verbatim(&mut self, text: &str) {
        let Some(start) = self.code else { return };
        let text =
            if self.out[start..].contains('\n') { text } else { text.strip_prefix('\n').unwrap_or(text) };
        if text.is_empty() {
            return;
        }
        if !self.out[start..].contains('\n') {
            self.new_line();
        }
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                self.new_line();
            }
            self.out.push_str(line.trim_end_matches('\r'));
            if self.is_full() {
                return;
            }
        }
    }

    pub(super) fn end_code(&mut self) {
        let Some(start) = self.code.take() else { return };
        self.out.truncate(self.out.trim_end().len());
        let longest = self.out[start + 3..].split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let more = "`".repeat((longest + 1).saturating_sub(3));
        self.out.insert_str(start, &more);
        self.new_line();
        self.out.push_str("```");
        self.out.push_str(&more);
        self.ask(Gap::Paragraph);
    }

    pub(super) fn finish(mut self) -> String {
        self.end_link();
        self.end_code();
        while !self.tables.is_empty() {
            self.end_table();
        }
        let end = self.out.trim_end().len();
        self.out.truncate(end);
        self.out
    }
}
