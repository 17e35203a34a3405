//! What of a page is not for reading: code, pictures made of code, forms, what is hidden, and the site's furniture.

use html5gum::StartTag;

/// Whether the words that come next are left out.
pub(super) struct Skip {
    narrow: bool,
    /// The element that is left out, and how many of its name are open.
    held: Option<(Vec<u8>, usize)>,
    /// How many elements are open that say that they are the content.
    content: usize,
}

/// Never for reading.
const NEVER: [&[u8]; 14] = [
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
/// The furniture of a site; outside of what it calls its content.
const FURNITURE: [&[u8]; 3] = [b"header", b"footer", b"aside"];
/// Where the content begins: nothing that was forgotten to be closed reaches further.
const CONTENT: [&[u8]; 2] = [b"main", b"article"];

impl Skip {
    pub(super) fn new(narrow: bool) -> Self {
        Self { narrow, held: None, content: 0 }
    }

    pub(super) fn is_on(&self) -> bool {
        self.held.is_some()
    }

    pub(super) fn in_picture(&self) -> bool {
        self.held.as_ref().is_some_and(|(name, _)| name == b"svg")
    }

    /// Hears of a start tag; says whether it is left out.
    pub(super) fn start(&mut self, tag: &StartTag<()>) -> bool {
        let name: &[u8] = &tag.name;
        let begins = CONTENT.contains(&name);
        if let Some((held, open)) = &mut self.held {
            let furniture = held == b"nav" || FURNITURE.contains(&held.as_slice());
            if !(furniture && (begins || name == b"h1" && held == b"nav")) {
                *open += usize::from(held.as_slice() == name && !tag.self_closing);
                return true;
            }
            self.held = None;
        }
        self.content += usize::from(begins);
        let furniture = self.narrow && (name == b"nav" || self.content == 0 && FURNITURE.contains(&name));
        if furniture || NEVER.contains(&name) || self.narrow && is_hidden(tag) {
            if !tag.self_closing {
                self.held = Some((name.to_vec(), 1));
            }
            return true;
        }
        false
    }

    /// Hears of an end tag; says whether it is left out.
    pub(super) fn end(&mut self, name: &[u8]) -> bool {
        if let Some((held, open)) = &mut self.held {
            if held.as_slice() == name {
                *open -= 1;
                if *open == 0 {
                    self.held = None;
                }
            }
            return true;
        }
        if CONTENT.contains(&name) {
            self.content = self.content.saturating_sub(1);
        }
        false
    }
}

/// Whether a page hides an element; only such as are always closed, or the rest of the page would be lost with it.
fn is_hidden(tag: &StartTag<()>) -> bool {
    let closed: [&[u8]; 6] = [b"div", b"span", b"section", b"ul", b"a", b"dialog"];
    let value = |name: &[u8]| tag.attributes.get(name).map(|value| value.value.to_ascii_lowercase());
    let no_display = |style: Vec<u8>| {
        let style: Vec<u8> = style.into_iter().filter(|byte| !byte.is_ascii_whitespace()).collect();
        style.windows(12).any(|some| some == b"display:none")
    };
    closed.contains(&tag.name.as_slice())
        && (tag.attributes.contains_key(&b"hidden"[..])
            || value(b"aria-hidden").is_some_and(|hidden| hidden == b"true")
            || value(b"style").is_some_and(no_display))
}
