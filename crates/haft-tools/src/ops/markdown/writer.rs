//! Writes Markdown: spacing, lists, quotes, code, emphasis and links.

use super::tables::HtmlTable;

/// Deeper lists and quotes are not indented further.
const MAX_BLOCK_DEPTH: usize = 12;
/// Deeper emphasis is dropped.
const MAX_EMPHASIS_DEPTH: usize = 8;
const CODE_FENCE: &str = "```";

/// A quote or a list.
pub(super) enum MarkdownBlock {
    Quote,
    Bullets,
    /// The number of the next item.
    Numbers(u64),
}

/// White space before the next text; the widest request wins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spacing {
    None,
    Space,
    Line,
    Paragraph,
}

pub(super) struct MarkdownWriter {
    pub(super) out: String,
    max_bytes: usize,
    spacing: Spacing,
    blocks: Vec<MarkdownBlock>,
    /// How many blocks are open beyond [`MAX_BLOCK_DEPTH`].
    deeper: usize,
    /// The heading or item marker before the next text.
    marker: String,
    /// Delimiters of emphasis without text yet.
    pending_emphasis: Vec<&'static str>,
    open_emphasis: Vec<&'static str>,
    /// Where the open link starts, and its URL.
    link: Option<(usize, String)>,
    /// Where the open code block starts.
    code: Option<usize>,
    in_heading: bool,
    pub(super) tables: Vec<HtmlTable>,
}

impl MarkdownWriter {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self {
            out: String::new(),
            max_bytes,
            spacing: Spacing::None,
            blocks: Vec::new(),
            deeper: 0,
            marker: String::new(),
            pending_emphasis: Vec::new(),
            open_emphasis: Vec::new(),
            link: None,
            code: None,
            in_heading: false,
            tables: Vec::new(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.out.len() >= self.max_bytes
    }

    pub(super) fn line_break(&mut self) {
        self.space(Spacing::Line);
    }

    pub(super) fn paragraph_break(&mut self) {
        self.space(Spacing::Paragraph);
    }

    fn space(&mut self, spacing: Spacing) {
        if self.code.is_some() {
            return;
        }
        // Headings and table cells stay on one line.
        let spacing = if self.in_heading || self.in_cell() { Spacing::Space } else { spacing };
        self.spacing = self.spacing.max(spacing);
    }

    pub(super) fn text(&mut self, text: &str) {
        if self.code.is_some() {
            self.code_text(text);
            return;
        }
        let mut words = text.split_ascii_whitespace().peekable();
        if words.peek().is_none() || text.starts_with(|c: char| c.is_ascii_whitespace()) {
            self.space(Spacing::Space);
        }
        let in_cell = self.in_cell();
        let ends_in_space = text.ends_with(|c: char| c.is_ascii_whitespace());
        for (at, word) in words.enumerate() {
            if at > 0 {
                self.space(Spacing::Space);
            }
            self.flush_spacing();
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
            self.space(Spacing::Space);
        }
    }

    /// Writes the spacing, the marker and the emphasis before the next text.
    pub(super) fn flush_spacing(&mut self) {
        let spacing = std::mem::replace(&mut self.spacing, Spacing::None);
        if self.out.is_empty() {
            self.prefix(!self.marker.is_empty());
        } else {
            match spacing {
                Spacing::None => {}
                Spacing::Space if self.out.ends_with([' ', '\n']) => {}
                Spacing::Space => self.out.push(' '),
                Spacing::Line => self.new_line(),
                Spacing::Paragraph => {
                    self.new_line();
                    self.out.truncate(self.out.trim_end_matches(' ').len());
                    self.new_line();
                }
            }
        }
        let marker = std::mem::take(&mut self.marker);
        self.out.push_str(&marker);
        for emphasis in std::mem::take(&mut self.pending_emphasis) {
            self.out.push_str(emphasis);
            self.open_emphasis.push(emphasis);
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.prefix(!self.marker.is_empty());
    }

    /// Writes the quote marks and indentation of the open blocks. An item's marker takes the place of its indentation.
    fn prefix(&mut self, has_marker: bool) {
        let lists = self.blocks.iter().filter(|block| !matches!(block, MarkdownBlock::Quote)).count();
        let mut left = lists;
        for block in &self.blocks {
            if matches!(block, MarkdownBlock::Quote) {
                self.out.push_str("> ");
                continue;
            }
            left -= 1;
            if left > 0 || !has_marker {
                self.out.push_str("  ");
            }
        }
    }

    pub(super) fn set_marker(&mut self, marker: &str) {
        if !self.in_cell() {
            marker.clone_into(&mut self.marker);
        }
    }

    pub(super) fn open_block(&mut self, block: MarkdownBlock) {
        self.space(if self.blocks.is_empty() { Spacing::Paragraph } else { Spacing::Line });
        if self.blocks.len() < MAX_BLOCK_DEPTH {
            self.blocks.push(block);
        } else {
            self.deeper += 1;
        }
    }

    pub(super) fn close_block(&mut self, quote: bool) {
        if self.deeper > 0 {
            self.deeper -= 1;
        } else if let Some(at) =
            self.blocks.iter().rposition(|block| matches!(block, MarkdownBlock::Quote) == quote)
        {
            self.blocks.truncate(at);
        }
        self.marker.clear();
        self.space(if self.blocks.is_empty() { Spacing::Paragraph } else { Spacing::Line });
    }

    pub(super) fn start_item(&mut self) {
        self.space(Spacing::Line);
        let marker = match self.blocks.last_mut() {
            Some(MarkdownBlock::Numbers(next)) => {
                *next = next.wrapping_add(1);
                format!("{}. ", next.wrapping_sub(1))
            }
            _ => "- ".to_owned(),
        };
        self.set_marker(&marker);
    }

    pub(super) fn start_heading(&mut self, level: usize) {
        self.space(Spacing::Paragraph);
        if !self.in_cell() {
            self.marker = format!("{} ", "#".repeat(level));
            self.in_heading = true;
        }
    }

    pub(super) fn end_heading(&mut self) {
        self.in_heading = false;
        self.marker.clear();
        self.space(Spacing::Paragraph);
    }

    pub(super) fn horizontal_rule(&mut self) {
        self.space(Spacing::Paragraph);
        if !self.in_cell() {
            self.flush_spacing();
            self.out.push_str("---");
            self.space(Spacing::Paragraph);
        }
    }

    pub(super) fn start_emphasis(&mut self, delimiter: &'static str) {
        if self.code.is_none() && self.pending_emphasis.len() + self.open_emphasis.len() < MAX_EMPHASIS_DEPTH
        {
            self.pending_emphasis.push(delimiter);
        }
    }

    pub(super) fn end_emphasis(&mut self, delimiter: &'static str) {
        if let Some(at) = self.pending_emphasis.iter().rposition(|pending| *pending == delimiter) {
            self.pending_emphasis.remove(at);
        } else if let Some(at) = self.open_emphasis.iter().rposition(|open| *open == delimiter) {
            self.open_emphasis.remove(at);
            self.out.push_str(delimiter);
        }
    }

    pub(super) fn start_link(&mut self, url: String) {
        if self.code.is_none() {
            // The spacing goes before the bracket.
            self.flush_spacing();
            self.link = Some((self.out.len(), url));
            self.out.push('[');
        }
    }

    pub(super) fn end_link(&mut self) {
        let Some((start, url)) = self.link.take() else { return };
        // The text of a link must be on one line.
        let text = self.out[start + 1..].split_whitespace().collect::<Vec<_>>().join(" ");
        self.out.truncate(start);
        if text == url {
            self.out.push_str(&url);
        } else if !text.is_empty() {
            self.out.push_str(&format!("[{text}]({url})"));
        }
    }

    pub(super) fn image(&mut self, alt: &str, url: Option<&str>) {
        let alt = alt.split_whitespace().collect::<Vec<_>>().join(" ");
        if alt.is_empty() || self.code.is_some() {
            return;
        }
        self.flush_spacing();
        match url {
            Some(url) => self.out.push_str(&format!("![{alt}]({url})")),
            None => self.out.push_str(&alt),
        }
    }

    pub(super) fn start_code(&mut self, language: &str) {
        if self.in_cell() || self.code.is_some() {
            return;
        }
        // The text of a link cannot contain a block.
        self.end_link();
        self.space(Spacing::Paragraph);
        self.flush_spacing();
        self.code = Some(self.out.len());
        self.out.push_str(CODE_FENCE);
        self.out.push_str(language);
    }

    /// Sets the language of a code block that has just been opened. Returns whether a code block is open.
    pub(super) fn set_code_language(&mut self, language: &str) -> bool {
        if let Some(start) = self.code
            && &self.out[start..] == CODE_FENCE
        {
            self.out.push_str(language);
        }
        self.code.is_some()
    }

    fn code_text(&mut self, text: &str) {
        let Some(start) = self.code else { return };
        let is_first = !self.out[start..].contains('\n');
        let text = text.strip_prefix('\n').filter(|_| is_first).unwrap_or(text);
        if text.is_empty() {
            return;
        }
        if is_first {
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
        // The fence must be longer than any run of backticks in the code.
        let code = &self.out[start + CODE_FENCE.len()..];
        let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let extra = "`".repeat((longest + 1).saturating_sub(CODE_FENCE.len()));
        self.out.insert_str(start, &extra);
        self.new_line();
        self.out.push_str(CODE_FENCE);
        self.out.push_str(&extra);
        self.space(Spacing::Paragraph);
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
