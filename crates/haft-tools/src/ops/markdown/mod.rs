//! HTML as Markdown for models: what a reader would read, without scripts, styles and the furniture of the site.
//!
//! The page is read token by token and never held as a tree, so neither its depth nor its size can cost more than they
//! are worth.

mod skip;
mod tables;
mod writer;

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};
use url::Url;

use skip::Skip;
use writer::{Block, Writer};

/// Less than this many bytes mean that a page keeps its words where furniture usually stands.
const TOO_LITTLE: usize = 20;

/// `html` as Markdown of at most about `most` bytes; links are resolved against `base`.
pub(crate) fn markdown(html: &str, base: &Url, most: usize) -> String {
    let (mut text, title) = convert(html, base, most, true);
    if text.len() < TOO_LITTLE {
        let (wide, _) = convert(html, base, most, false);
        if wide.len() > text.len() * 2 {
            text = wide;
        }
    }
    match title {
        Some(title) => format!("# {title}\n\n{text}").trim_end().to_owned(),
        None => text,
    }
}

/// The text of a page, and its title if no heading stands for it.
fn convert(html: &str, base: &Url, most: usize, narrow: bool) -> (String, Option<String>) {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = Page {
        writer: Writer::new(most),
        skip: Skip::new(narrow),
        base: base.clone(),
        title: None,
        in_title: false,
        has_heading: false,
    };
    for token in Tokenizer::new_with_emitter(html, emitter) {
        let Ok(token) = token;
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

struct Page {
    writer: Writer,
    skip: Skip,
    base: Url,
    title: Option<String>,
    in_title: bool,
    has_heading: bool,
}

impl Page {
    fn start(&mut self, tag: &StartTag<()>) {
        let name: &[u8] = &tag.name;
        if name == b"title" {
            self.in_title = self.title.is_none() && !self.skip.in_picture();
            return;
        }
        if name == b"base" {
            if let Some(base) = attribute(tag, b"href").and_then(|href| self.base.join(&href).ok()) {
                self.base = base;
            }
            return;
        }
        if self.skip.start(tag) {
            return;
        }
        let writer = &mut self.writer;
        match name {
            b"br" => writer.line(),
            b"hr" => writer.rule(),
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => {
                self.has_heading |= name == b"h1";
                writer.heading(usize::from(name[1] - b'0'));
            }
            b"p" => writer.paragraph(),
            b"blockquote" => writer.open(Block::Quote),
            b"ul" | b"menu" => writer.open(Block::Bullets),
            b"ol" => {
                let first = attribute(tag, b"start").and_then(|start| start.parse().ok()).unwrap_or(1);
                writer.open(Block::Numbers(first));
            }
            b"li" => writer.item(),
            b"dd" => {
                writer.line();
                writer.mark(": ");
            }
            b"pre" => writer.start_code(&language(tag)),
            b"code" | b"kbd" | b"samp" | b"tt" => {
                let in_block = writer.name_code(&language(tag));
                if !in_block {
                    writer.emphasis("`");
                }
            }
            b"strong" | b"b" => writer.emphasis("**"),
            b"em" | b"i" => writer.emphasis("*"),
            b"del" | b"s" | b"strike" => writer.emphasis("~~"),
            b"a" => {
                writer.end_link();
                if let Some(url) = attribute(tag, b"href").and_then(|href| link(&self.base, &href)) {
                    writer.start_link(url);
                }
            }
            b"img" => {
                let alt = attribute(tag, b"alt").unwrap_or_default();
                let url = attribute(tag, b"src").and_then(|src| link(&self.base, &src));
                writer.image(&alt, url.as_deref());
            }
            b"table" => writer.start_table(),
            b"tr" => writer.start_row(),
            b"td" | b"th" => writer.start_cell(),
            name if is_block(name) => writer.line(),
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8]) {
        if name == b"title" {
            self.in_title = false;
            return;
        }
        if self.skip.end(name) {
            return;
        }
        let writer = &mut self.writer;
        match name {
            b"h1" | b"h2" | b"h3" | b"h4" | b"h5" | b"h6" => writer.end_heading(),
            b"p" => writer.paragraph(),
            b"blockquote" | b"ul" | b"menu" | b"ol" => writer.close(name == b"blockquote"),
            b"pre" => writer.end_code(),
            b"code" | b"kbd" | b"samp" | b"tt" => writer.end_emphasis("`"),
            b"strong" | b"b" => writer.end_emphasis("**"),
            b"em" | b"i" => writer.end_emphasis("*"),
            b"del" | b"s" | b"strike" => writer.end_emphasis("~~"),
            b"a" => writer.end_link(),
            b"table" => writer.end_table(),
            b"tr" => writer.end_row(),
            b"td" | b"th" => writer.end_cell(),
            name if is_block(name) => writer.line(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if !self.skip.is_on() {
            self.writer.text(text);
        }
    }

    fn finish(self) -> (String, Option<String>) {
        let title = self.title.map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
        (self.writer.finish(), title.filter(|title| !title.is_empty() && !self.has_heading))
    }
}

/// Where a link leads; nothing if it leads nowhere else.
fn link(base: &Url, href: &str) -> Option<String> {
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

/// The language that a block of code says it is in.
fn language(tag: &StartTag<()>) -> String {
    let class = attribute(tag, b"class").unwrap_or_default();
    let named = class.split_whitespace().find_map(|class| {
        class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")).map(str::to_owned)
    });
    named.filter(|name| name.len() < 30).unwrap_or_default()
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
