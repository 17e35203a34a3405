//! Elements of a page that are not converted: scripts, forms, hidden elements and boilerplate.

use html5gum::StartTag;

/// Tracks whether the current element is converted.
pub(super) struct ElementFilter {
    /// Whether boilerplate and hidden elements are skipped too.
    content_only: bool,
    /// The element being skipped, and how many elements of its name are open.
    skipped: Option<(Vec<u8>, usize)>,
    /// How many of [`CONTENT`] are open.
    open_content: usize,
}

/// Never converted.
const NEVER_CONVERTED: [&[u8]; 14] = [
    b"script",
    b"style",
    b"template",
    b"svg",
    b"math",
    b"canvas",
    b"iframe",
    b"object",
    b"select",
    b"textarea",
    b"button",
    b"datalist",
    b"noscript",
    b"audio",
];
/// Boilerplate outside of [`CONTENT`]; `nav` is boilerplate everywhere.
const BOILERPLATE: [&[u8]; 3] = [b"header", b"footer", b"aside"];
/// The content of a page. Ends boilerplate that was not closed.
const CONTENT: [&[u8]; 2] = [b"main", b"article"];

impl ElementFilter {
    pub(super) fn new(content_only: bool) -> Self {
        Self { content_only, skipped: None, open_content: 0 }
    }

    pub(super) fn is_skipping(&self) -> bool {
        self.skipped.is_some()
    }

    pub(super) fn in_svg(&self) -> bool {
        self.skipped.as_ref().is_some_and(|(name, _)| name == b"svg")
    }

    /// Processes a start tag; returns whether it is skipped.
    pub(super) fn skips_start(&mut self, tag: &StartTag<()>) -> bool {
        let name: &[u8] = &tag.name;
        let is_content = CONTENT.contains(&name);
        if let Some((skipped, open)) = &mut self.skipped {
            let boilerplate = skipped == b"nav" || BOILERPLATE.contains(&skipped.as_slice());
            if !(boilerplate && (is_content || name == b"h1" && skipped == b"nav")) {
                *open += usize::from(skipped.as_slice() == name && !tag.self_closing);
                return true;
            }
            self.skipped = None;
        }
        self.open_content += usize::from(is_content);
        let boilerplate = name == b"nav" || self.open_content == 0 && BOILERPLATE.contains(&name);
        if NEVER_CONVERTED.contains(&name) || self.content_only && (boilerplate || is_hidden(tag)) {
            if !tag.self_closing {
                self.skipped = Some((name.to_vec(), 1));
            }
            return true;
        }
        false
    }

    /// Processes an end tag; returns whether it is skipped.
    pub(super) fn skips_end(&mut self, name: &[u8]) -> bool {
        if let Some((skipped, open)) = &mut self.skipped {
            if skipped.as_slice() == name {
                *open -= 1;
                if *open == 0 {
                    self.skipped = None;
                }
            }
            return true;
        }
        if CONTENT.contains(&name) {
            self.open_content = self.open_content.saturating_sub(1);
        }
        false
    }
}

/// Whether an element is hidden. Only elements that are always closed count, lest the rest of the page be skipped.
fn is_hidden(tag: &StartTag<()>) -> bool {
    const HIDDEN_STYLE: &[u8] = b"display:none";
    let closed: [&[u8]; 6] = [b"div", b"span", b"section", b"ul", b"a", b"dialog"];
    let value = |name: &[u8]| tag.attributes.get(name).map(|value| value.value.to_ascii_lowercase());
    let is_display_none = |style: Vec<u8>| {
        let style: Vec<u8> = style.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
        style.windows(HIDDEN_STYLE.len()).any(|part| part == HIDDEN_STYLE)
    };
    closed.contains(&tag.name.as_slice())
        && (tag.attributes.contains_key(&b"hidden"[..])
            || value(b"aria-hidden").is_some_and(|hidden| hidden == b"true")
            || value(b"style").is_some_and(is_display_none))
}
