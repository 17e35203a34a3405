//! The text of a PDF: some pages, with a heading each.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use haft_pdf::{Pdf, PdfError, PdfOptions, PdfPage};
use haft_tool::{Cancel, Content, ErrorKind, ToolError};

/// How many pages one call reads.
pub(crate) const MOST_PAGES: usize = 20;
/// How many scanned pages are shown as pictures, and how large each may be.
const MOST_SCANS: usize = 5;
const MOST_SCAN_BYTES: usize = 5 << 20;

/// Some pages of a document.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) text: String,
    /// Pages that are nothing but a picture.
    pub(crate) scans: Vec<Content>,
    pub(crate) numbers: Vec<usize>,
    pub(crate) total: usize,
}

/// Reads the pages that `wanted` names (`"3"`, `"1-5"`, `"2,4-6"`), or else the first ones. `what` is what messages call the
/// document.
pub(crate) fn read(
    bytes: &[u8],
    wanted: Option<&str>,
    what: &str,
    cancel: &Cancel,
) -> Result<Pages, ToolError> {
    let is_cancelled = || cancel.is_cancelled();
    let explain = |error| explain(error, what);
    let options = PdfOptions { is_cancelled: &is_cancelled, ..PdfOptions::default() };
    let pdf = Pdf::open_with(bytes, options).map_err(explain)?;
    let total = pdf.page_count();
    let numbers = match wanted {
        Some(wanted) => numbers(wanted, total, what)?,
        None => (1..=total.min(MOST_PAGES)).collect(),
    };
    let mut pages = Pages { text: String::new(), scans: Vec::new(), numbers, total };
    for number in pages.numbers.clone() {
        let page = pdf.page(number).map_err(explain)?;
        if !pages.text.is_empty() {
            pages.text.push('\n');
        }
        let _ = writeln!(pages.text, "--- page {number} of {total} ---");
        show(page, &mut pages);
    }
    if wanted.is_none() && total > MOST_PAGES {
        let next = format!("{}-{}", MOST_PAGES + 1, total.min(2 * MOST_PAGES));
        let _ = writeln!(pages.text, "\n(pages 1 to {MOST_PAGES} of {total}; read on with pages \"{next}\")");
    }
    Ok(pages)
}

fn show(page: PdfPage, pages: &mut Pages) {
    let PdfPage { text, image_count, scan, unreadable, truncated, .. } = page;
    if !text.is_empty() {
        pages.text.push_str(&text);
        pages.text.push('\n');
    }
    let note = if unreadable {
        "the fonts of this page do not say which characters they show".to_owned()
    } else if truncated {
        "the rest of this page is too much to read".to_owned()
    } else if !text.is_empty() {
        return;
    } else if let Some(scan) = scan.filter(|scan| scan.len() <= MOST_SCAN_BYTES) {
        if pages.scans.len() < MOST_SCANS {
            pages
                .scans
                .push(Content::Image { media_type: "image/jpeg".to_owned(), data: STANDARD.encode(scan) });
            format!("no text: the page is a scan, shown as picture {}", pages.scans.len())
        } else {
            "no text: the page is a scan; ask for fewer pages to see it".to_owned()
        }
    } else if image_count > 0 {
        let images = if image_count == 1 { "1 image".to_owned() } else { format!("{image_count} images") };
        format!("no text: the page has {images}, perhaps a scan")
    } else {
        "the page is empty".to_owned()
    };
    let _ = writeln!(pages.text, "({note})");
}

/// The page numbers of a list of pages and ranges, each once, in the order given.
fn numbers(wanted: &str, total: usize, what: &str) -> Result<Vec<usize>, ToolError> {
    let wrong = |why: String| ToolError::invalid_arguments(format!("pages: {why}"));
    let number = |text: &str| {
        let text = text.trim();
        let malformed =
            || wrong(format!("expected page numbers like \"3\", \"1-5\" or \"2,4-6\", got {wanted:?}"));
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if plain { Ok(text.parse().unwrap_or(usize::MAX)) } else { Err(malformed()) }
    };
    let mut all = Vec::new();
    for part in wanted.split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last {
            return Err(wrong(format!("{} runs backwards; write {last}-{first}", part.trim())));
        }
        if first == 0 || last > total {
            let are = if total == 1 { "1 page".to_owned() } else { format!("{total} pages, 1 to {total}") };
            return Err(wrong(format!("{what} has {are}; {} is not among them", part.trim())));
        }
        for page in first..=last {
            if !all.contains(&page) {
                all.push(page);
            }
            if all.len() > MOST_PAGES {
                return Err(wrong(format!(
                    "{wanted} are more than the {MOST_PAGES} pages that one call reads"
                )));
            }
        }
    }
    Ok(all)
}

fn explain(error: PdfError, what: &str) -> ToolError {
    match error {
        PdfError::Cancelled => {
            ToolError::new(ErrorKind::Interrupted, format!("reading {what} was cancelled"))
        }
        PdfError::NeedsPassword => ToolError::failed(format!(
            "{what} is encrypted and opens only with a password; ask the user for a copy without one"
        )),
        PdfError::UnsupportedEncryption => {
            ToolError::failed(format!("{what} is encrypted in a way that Haft does not know"))
        }
        PdfError::NotPdf => ToolError::failed(format!("{what} is not a PDF, whatever its name says")),
        PdfError::NoPages => ToolError::failed(format!("{what} is a broken PDF: no page can be found in it")),
        PdfError::NoSuchPage => ToolError::invalid_arguments(format!("{what} has no such page")),
        PdfError::LimitExceeded => ToolError::failed(format!(
            "{what} would take more work to read than any ordinary PDF; it is broken or hostile"
        )),
        other => ToolError::failed(format!("{what} cannot be read: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_named_one_by_one_and_in_ranges() {
        for (wanted, expected) in [
            ("3", vec![3]),
            ("1-5", vec![1, 2, 3, 4, 5]),
            ("2,4-6", vec![2, 4, 5, 6]),
            (" 6 , 1 - 2,2", vec![6, 1, 2]),
            ("11-30", (11..=30).collect()),
        ] {
            assert_eq!(numbers(wanted, 30, "x.pdf").unwrap(), expected, "{wanted}");
        }
    }

    #[test]
    fn wrong_pages_are_told_apart() {
        for (wanted, told) in [
            ("", "pages: expected page numbers"),
            ("a", "pages: expected page numbers"),
            ("1-", "pages: expected page numbers"),
            ("-1", "pages: expected page numbers"),
            ("+1", "pages: expected page numbers"),
            ("5-3", "pages: 5-3 runs backwards; write 3-5"),
            ("0", "pages: x.pdf has 30 pages, 1 to 30; 0 is not among them"),
            ("29-31", "pages: x.pdf has 30 pages, 1 to 30; 29-31 is not among them"),
            ("99999999999999999999999", "pages: x.pdf has 30 pages, 1 to 30; 99999999999999999999999 is not"),
            ("1-21", "pages: 1-21 are more than the 20 pages that one call reads"),
        ] {
            let error = numbers(wanted, 30, "x.pdf").unwrap_err();
            assert!(error.message.starts_with(told), "{wanted}: {error}");
            assert_eq!(error.kind, ErrorKind::InvalidArguments);
        }
    }
}
