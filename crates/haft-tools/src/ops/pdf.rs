//! The text of the pages of a PDF, with a heading for each.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_pdf::{Pdf, PdfError, PdfOptions, PdfPage};
use haft_tool::{Cancel, Content, ErrorKind, ToolError};

use super::read::PdfPages;

/// How many pages one call reads.
const MAX_PAGES: usize = 20;
/// How many scanned pages are shown as images.
const MAX_SCANS: usize = 5;
const MAX_SCAN_BYTES: usize = 5 << 20;

/// Reads the pages of `range` (`"3"`, `"1-5"`, `"2,4-6"`), else the first ones. `name` is the document's name in messages.
pub(crate) fn read(
    bytes: &[u8],
    range: Option<&str>,
    name: &str,
    cancel: &Cancel,
) -> Result<PdfPages, ToolError> {
    let is_cancelled = || cancel.is_cancelled();
    let explain = |error| explain(error, name);
    let options = PdfOptions { is_cancelled: &is_cancelled, ..PdfOptions::default() };
    let pdf = Pdf::open_with(bytes, options).map_err(explain)?;
    let total = pdf.page_count();
    let numbers = match range {
        Some(range) => parse_range(range, total, name)?,
        None => (1..=total.min(MAX_PAGES)).collect(),
    };
    let mut pages = PdfPages { text: String::new(), scans: Vec::new(), numbers, total };
    for number in pages.numbers.clone() {
        let page = pdf.page(number).map_err(explain)?;
        if !pages.text.is_empty() {
            pages.text.push('\n');
        }
        let _ = writeln!(pages.text, "--- page {number} of {total} ---");
        pages.add(page);
    }
    if range.is_none() && total > MAX_PAGES {
        let next = format!("{}-{}", MAX_PAGES + 1, total.min(2 * MAX_PAGES));
        let _ = writeln!(pages.text, "\n(pages 1 to {MAX_PAGES} of {total}; read on with pages \"{next}\")");
    }
    Ok(pages)
}

impl PdfPages {
    fn add(&mut self, page: PdfPage) {
        let PdfPage { text, image_count, scan, unreadable, truncated, .. } = page;
        if !text.is_empty() {
            self.text.push_str(&text);
            self.text.push('\n');
        }
        let note = if unreadable {
            "the fonts of this page do not map to characters".to_owned()
        } else if truncated {
            "the rest of this page is too long to read".to_owned()
        } else if !text.is_empty() {
            return;
        } else if let Some(scan) = scan.filter(|scan| scan.len() <= MAX_SCAN_BYTES) {
            if self.scans.len() < MAX_SCANS {
                let data = STANDARD.encode(scan);
                self.scans.push(Content::Image { media_type: "image/jpeg".to_owned(), data });
                format!("no text: the page is a scan, shown as image {}", self.scans.len())
            } else {
                "no text: the page is a scan; ask for fewer pages to see it".to_owned()
            }
        } else if image_count > 0 {
            let images =
                if image_count == 1 { "1 image".to_owned() } else { format!("{image_count} images") };
            format!("no text: the page has {images}, perhaps a scan")
        } else {
            "the page is empty".to_owned()
        };
        let _ = writeln!(self.text, "({note})");
    }
}

/// Parses page numbers and ranges into page numbers, each once, in the order given.
fn parse_range(range: &str, total: usize, name: &str) -> Result<Vec<usize>, ToolError> {
    let invalid = |why: String| ToolError::invalid_arguments(format!("pages: {why}"));
    let number = |text: &str| {
        let text = text.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let expected = "expected page numbers like \"3\", \"1-5\" or \"2,4-6\"";
            return Err(invalid(format!("{expected}, got {range:?}")));
        }
        Ok(text.parse().unwrap_or(usize::MAX))
    };
    let mut numbers = Vec::new();
    for part in range.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(invalid(format!("{} runs backwards; write {last}-{first}", part.trim())));
        }
        if first == 0 || last > total {
            let count = if total == 1 { "1 page".to_owned() } else { format!("{total} pages, 1 to {total}") };
            return Err(invalid(format!("{name} has {count}; {} is not among them", part.trim())));
        }
        for page in first..=last {
            if !numbers.contains(&page) {
                numbers.push(page);
            }
            if numbers.len() > MAX_PAGES {
                let message = format!("{range} is more than the {MAX_PAGES} pages that one call reads");
                return Err(invalid(format!("{message}; ask for fewer")));
            }
        }
    }
    Ok(numbers)
}

fn explain(error: PdfError, name: &str) -> ToolError {
    match error {
        PdfError::Cancelled => {
            ToolError::new(ErrorKind::Interrupted, format!("reading {name} was cancelled"))
        }
        PdfError::NeedsPassword => ToolError::failed(format!(
            "{name} is encrypted and opens only with a password; ask the user for a copy without one"
        )),
        PdfError::UnsupportedEncryption => ToolError::failed(format!(
            "{name} is encrypted with an unsupported method; ask the user for a copy without encryption"
        )),
        PdfError::NotPdf => ToolError::failed(format!("{name} is not a PDF in spite of its name")),
        PdfError::NoPages => {
            ToolError::failed(format!("{name} is a broken PDF without any page that can be found"))
        }
        PdfError::NoSuchPage => ToolError::invalid_arguments(format!("{name} has no such page")),
        PdfError::LimitExceeded => {
            ToolError::failed(format!("{name} takes too much work to read; it is broken or malicious"))
        }
        other => ToolError::failed(format!("{name} cannot be read: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_range_has_numbers_and_ranges() {
        for (range, expected) in [
            ("3", vec![3]),
            ("1-5", vec![1, 2, 3, 4, 5]),
            ("2,4-6", vec![2, 4, 5, 6]),
            (" 6 , 1 - 2,2", vec![6, 1, 2]),
            ("11-30", (11..=30).collect()),
        ] {
            assert_eq!(parse_range(range, 30, "x.pdf").unwrap(), expected, "{range}");
        }
    }

    #[test]
    fn invalid_page_range_says_why() {
        for (range, message) in [
            ("", "pages: expected page numbers"),
            ("a", "pages: expected page numbers"),
            ("1-", "pages: expected page numbers"),
            ("-1", "pages: expected page numbers"),
            ("+1", "pages: expected page numbers"),
            ("5-3", "pages: 5-3 runs backwards; write 3-5"),
            ("0", "pages: x.pdf has 30 pages, 1 to 30; 0 is not among them"),
            ("29-31", "pages: x.pdf has 30 pages, 1 to 30; 29-31 is not among them"),
            ("99999999999999999999999", "pages: x.pdf has 30 pages, 1 to 30; 99999999999999999999999 is not"),
            ("1-21", "pages: 1-21 is more than the 20 pages that one call reads"),
        ] {
            let error = parse_range(range, 30, "x.pdf").unwrap_err();
            assert!(error.message.starts_with(message), "{range}: {error}");
            assert_eq!(error.kind, ErrorKind::InvalidArguments);
        }
    }
}
