//! Converts HTML to Markdown: the content of a page, without scripts, styles and navigation.
//!
//! The page is converted token by token and no tree is built, so deep nesting costs neither stack nor memory.

mod filter;
mod reader;
mod tables;
mod writer;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use url::Url;

use filter::ElementFilter;
use reader::{Interrupted, InterruptingReader};
use writer::{MarkdownBlock, MarkdownWriter};

/// A page with less content than this has it where boilerplate usually is, and is converted with it.
const MIN_CONTENT_BYTES: usize = 20;
/// A longer class name is not a language.
const MAX_LANGUAGE_BYTES: usize = 30;

/// Converts `html` to Markdown of about `max_bytes` at most; links are resolved against `base`.
pub(crate) fn markdown(html: &str, base: &Url, max_bytes: usize) -> String {
    let (mut text, title) = convert(html, base, max_bytes, true);
    if text.len() < MIN_CONTENT_BYTES {
        let (complete, _) = convert(html, base, max_bytes, false);
        if complete.len() > text.len() * 2 {
            text = complete;
        }
    }
    match title {
        Some(title) => format!("# {title}\n\n{text}").trim_end().to_owned(),
        None => text,
    }
}

/// The text of a page, and its title if there is no top-level heading.
fn convert(html: &str, base: &Url, max_bytes: usize, content_only: bool) -> (String, Option<String>) {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = HtmlConverter {
        writer: MarkdownWriter::new(max_bytes),
        filter: ElementFilter::new(content_only),
        base: base.clone(),
        title: None,
        in_title: false,
        has_heading: false,
    };
    for token in Tokenizer::new_with_emitter(InterruptingReader::new(html), emitter) {
        let token = match token {
            Ok(token) => token,
            Err(Interrupted) => continue,
        };
        match token {
            Token::StartTag(tag) => page.start(&tag),
            Token::EndTag(tag) => page.end(&tag.name),
            Token::String(text) => page.text(&String::from_utf8_lossy(&text.value)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
        if page.writer.is_full() {
            break;
        }
    }
    page.finish()
}

struct HtmlConverter {
    writer: MarkdownWriter,
    filter: ElementFilter,
    base: Url,
    title: Option<String>,
    in_title: bool,
    has_heading: bool,
}

impl HtmlConverter {
    fn start(&mut self, tag: &StartTag<()>) {
        let name: &[u8] = &tag.name;
        if name == b"title" {
            self.in_title = self.title.is_none() && !self.filter.in_svg();
            return;
        }
        if name == b"base" {
            if let Some(base) = attribute(tag, b"href").and_then(|href| self.base.join(&href).ok()) {
                self.base = base;
            }
            return;
        }
        if self.filter.skips_start(tag) {
            return;
        }
        let writer = &mut self.writer;
        match name {
            b"br" => writer.line_break(),
            b"hr" => writer.horizontal_rule(),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.has_heading |= name == b"h1";
                writer.start_heading(usize::from(name[1] - b'0'));
            }
            b"p" => writer.paragraph_break(),
            b"blockquote" => writer.open_block(MarkdownBlock::Quote),
            b"ul" | b"menu" => writer.open_block(MarkdownBlock::Bullets),
            b"ol" => {
                let first = attribute(tag, b"start").and_then(|start| start.parse().ok()).unwrap_or(1);
                writer.open_block(MarkdownBlock::Numbers(first));
            }
            b"li" => writer.start_item(),
            b"dd" => {
                writer.line_break();
                writer.set_marker(": ");
            }
            b"pre" => writer.start_code(&language(tag)),
            b"code" | b"kbd" | b"samp" | b"tt" => {
                let in_block = writer.set_code_language(&language(tag));
                if !in_block {
                    writer.start_emphasis("`");
                }
            }
            b"strong" | b"b" => writer.start_emphasis("**"),
            b"em" | b"i" => writer.start_emphasis("*"),
            b"del" | b"s" | b"strike" => writer.start_emphasis("~~"),
            b"a" => {
                writer.end_link();
                if let Some(url) = attribute(tag, b"href").and_then(|href| link_url(&self.base, &href)) {
                    writer.start_link(url);
                }
            }
            b"img" => {
                let alt = attribute(tag, b"alt").unwrap_or_default();
                let url = attribute(tag, b"src").and_then(|src| link_url(&self.base, &src));
                writer.image(&alt, url.as_deref());
            }
            b"table" => writer.start_table(),
            b"tr" => writer.start_row(),
            b"td" | b"th" => writer.start_cell(),
            name if is_block(name) => writer.line_break(),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        if name == b"title" {
            self.in_title = false;
            return;
        }
        if self.filter.skips_end(name) {
            return;
        }
        let writer = &mut self.writer;
        match name {
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => writer.end_heading(),
            b"p" => writer.paragraph_break(),
            b"blockquote" | b"ul" | b"menu" | b"ol" => writer.close_block(name == b"blockquote"),
            b"pre" => writer.end_code(),
            b"code" | b"kbd" | b"samp" | b"tt" => writer.end_emphasis("`"),
            b"strong" | b"b" => writer.end_emphasis("**"),
            b"em" | b"i" => writer.end_emphasis("*"),
            b"del" | b"s" | b"strike" => writer.end_emphasis("~~"),
            b"a" => writer.end_link(),
            b"table" => writer.end_table(),
            b"tr" => writer.end_row(),
            b"td" | b"th" => writer.end_cell(),
            name if is_block(name) => writer.line_break(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if !self.filter.is_skipping() {
            self.writer.text(text);
        }
    }

    fn finish(self) -> (String, Option<String>) {
        let title = self.title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        (self.writer.finish(), title.filter(|title| !title.is_empty() && !self.has_heading))
    }
}

/// The absolute URL of a link; `None` for a place on the same page or another scheme.
fn link_url(base: &Url, href: &str) -> Option<String> {
    let href = href.trim();
    if href.is_empty() || href.starts_with('#') {
        return None;
    }
    let url = base.join(href).ok()?;
    matches!(url.scheme(), "http" | "https" | "mailto" | "ftp").then(|| url.to_string())
}

fn attribute(tag: &StartTag<()>, name: &[u8]) -> Option<String> {
    tag.attributes.get(name).map(|value| String::from_utf8_lossy(&value.value).into_owned())
}

/// The language that the class of a code block names.
fn language(tag: &StartTag<()>) -> String {
    let class = attribute(tag, b"class").unwrap_or_default();
    let named = class.split_whitespace().find_map(|class| {
        class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")).map(str::to_owned)
    });
    named.filter(|name| name.len() < MAX_LANGUAGE_BYTES).unwrap_or_default()
}

fn is_block(name: &[u8]) -> bool {
    matches!(
        name,
        b"address"
            | b"article"
            | b"aside"
            | b"body"
            | b"caption"
            | b"center"
            | b"details"
            | b"dialog"
            | b"div"
            | b"dl"
            | b"dt"
            | b"fieldset"
            | b"figcaption"
            | b"figure"
            | b"footer"
            | b"form"
            | b"header"
            | b"hgroup"
            | b"html"
            | b"legend"
            | b"main"
            | b"nav"
            | b"option"
            | b"search"
            | b"section"
            | b"summary"
            | b"tbody"
            | b"tfoot"
            | b"thead"
    )
}

#[cfg(test)]
mod tests;
