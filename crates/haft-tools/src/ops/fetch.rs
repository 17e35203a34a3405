//! A page of the web: asked for once, read as what it is.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8};
use haft_tool::{Cancel, Effect, HttpResponse, ToolError};
use url::Url;

use super::api::host_of;
use super::markdown::markdown;
use super::pdf;
use super::read::{MOST_IMAGE_BYTES, image_type};
use super::text;

/// How much Markdown is made of a page.
const MOST_MARKDOWN: usize = 2 << 20;
/// Where a page has to say its encoding.
const PRESCAN: usize = 1024;

/// What a page turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Words: Markdown if it was HTML, the first pages of a PDF, else what was sent.
    Text(String),
    Image {
        media_type: &'static str,
        data: String,
    },
}

/// Reads the address of a page; only those of the web are fetched.
pub(crate) fn address(text: &str) -> Result<Url, ToolError> {
    let wrong = |why: &str| ToolError::invalid_arguments(format!("url: {text:?} cannot be fetched: {why}"));
    let url = Url::parse(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it must start with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("leave out what stands before the @ of its host"));
    }
    Ok(url)
}

/// The effect of fetching it.
pub(crate) fn effect(url: &Url) -> Effect {
    Effect::Reach { host: host_of(url) }
}

/// What an answer holds.
pub(crate) fn read(response: &HttpResponse, cancel: &Cancel) -> Result<Page, ToolError> {
    let body = &response.body;
    let kind = media_type(response);
    if let Some(media_type) = image_type(body) {
        if response.total_bytes > MOST_IMAGE_BYTES || response.more {
            return Err(not_shown(response, media_type, "pictures of more than 5 MiB cannot be shown"));
        }
        return Ok(Page::Image { media_type, data: STANDARD.encode(body) });
    }
    if body.starts_with(b"%PDF-") {
        if response.total_bytes > body.len() as u64 || response.more {
            return Err(not_shown(response, "a PDF", "that is too long to be read from here"));
        }
        return Ok(Page::Text(pdf::read(body, None, &response.url, cancel)?.text));
    }
    let html = matches!(kind.as_str(), "text/html" | "application/xhtml+xml")
        || kind.is_empty() && looks_like_html(body);
    let Some(text) = decode(body, response.header("content-type"), html) else {
        let kind = if kind.is_empty() { "data of no known type" } else { &kind };
        return Err(not_shown(response, kind, "it is not text"));
    };
    if !html {
        return Ok(Page::Text(text));
    }
    let base = Url::parse(&response.url)
        .map_err(|error| ToolError::internal(format!("{}: {error}", response.url)))?;
    Ok(Page::Text(markdown(&text, &base, MOST_MARKDOWN)))
}

/// The words of an answer, whatever it is.
pub(crate) fn words(response: &HttpResponse) -> String {
    let kind = media_type(response);
    let html = kind.is_empty() || kind.contains("html");
    decode(&response.body, response.header("content-type"), html)
        .unwrap_or_else(|| String::from_utf8_lossy(&response.body).into_owned())
}

fn media_type(response: &HttpResponse) -> String {
    let header = response.header("content-type").unwrap_or_default();
    header.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn looks_like_html(body: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&body[..body.len().min(PRESCAN)]).trim_start().to_ascii_lowercase();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// The text of `bytes` by their mark, by the header, by what the page says of itself, or by what they look like.
fn decode(bytes: &[u8], content_type: Option<&str>, html: bool) -> Option<String> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return Some(encoding.decode_without_bom_handling(&bytes[mark..]).0.into_owned());
    }
    let said = content_type.and_then(charset).or_else(|| html.then(|| in_page(bytes)).flatten());
    if said.is_none() || said == Some(UTF_8) {
        // A page that was cut may end inside a character.
        match std::str::from_utf8(bytes) {
            Ok(text) => return (!text.contains('\0') || html).then(|| text.to_owned()),
            Err(error) if error.error_len().is_none() => {
                return Some(String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned());
            }
            Err(_) => {}
        }
    }
    match said {
        Some(encoding) => Some(encoding.decode_without_bom_handling(bytes).0.into_owned()),
        None => text::decode(bytes).map(|decoded| decoded.text),
    }
}

/// The encoding that a `charset=` names.
fn charset(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let value = lower.split("charset").nth(1)?.trim_start().strip_prefix('=')?.trim_start();
    let value = value.trim_start_matches(['"', '\'']);
    let end = value
        .find(|c: char| matches!(c, '"' | '\'' | ';' | '>' | '/') || c.is_whitespace())
        .unwrap_or(value.len());
    Encoding::for_label(&value.as_bytes()[..end])
}

fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(PRESCAN)]).to_ascii_lowercase();
    start.split("<meta").skip(1).find_map(|tag| charset(tag.split('>').next().unwrap_or_default()))
}

fn not_shown(response: &HttpResponse, kind: &str, why: &str) -> ToolError {
    let HttpResponse { url, total_bytes, more, .. } = response;
    let at_least = if *more { "at least " } else { "" };
    ToolError::failed(format!(
        "{url} is {kind} of {at_least}{total_bytes} bytes: {why}; to keep it as a file, download it with a shell command"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(content_type: &str, body: &[u8]) -> HttpResponse {
        HttpResponse {
            status: 200,
            status_text: "OK".to_owned(),
            url: "https://example.com/a/".to_owned(),
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            body: body.to_vec(),
            total_bytes: body.len() as u64,
            more: false,
            redirect: None,
        }
    }

    #[track_caller]
    fn reads_as(content_type: &str, body: &[u8], text: &str) {
        assert_eq!(read(&response(content_type, body), &Cancel::new()).unwrap(), Page::Text(text.to_owned()));
    }

    #[test]
    fn each_type_is_read_as_what_it_is() {
        reads_as("text/html", b"<h1>a</h1><a href=b>c</a>", "# a\n\n[c](https://example.com/a/b)");
        reads_as("", b"<!DOCTYPE html><p>a", "a");
        reads_as("application/json", b"{\"a\": 1}", "{\"a\": 1}");
        reads_as("text/plain", b"<b>not HTML</b>", "<b>not HTML</b>");
        reads_as("application/octet-stream", b"plain words\n", "plain words\n");
        let png = read(&response("text/html", b"\x89PNG\r\n\x1a\n..."), &Cancel::new()).unwrap();
        assert!(matches!(png, Page::Image { media_type: "image/png", .. }));
        let broken = read(&response("application/pdf", b"%PDF-1.7 ..."), &Cancel::new()).unwrap_err();
        assert!(broken.message.contains("https://example.com/a/"), "{}", broken.message);
        let zip =
            read(&response("application/zip", b"PK\x03\x04\0\0\0\x01\x02\x03"), &Cancel::new()).unwrap_err();
        assert!(zip.message.contains("application/zip of 10 bytes"), "{}", zip.message);
    }

    #[test]
    fn the_encoding_is_the_marks_the_headers_the_pages_or_a_guess_in_this_order() {
        reads_as("text/plain; charset=ISO-8859-1", b"gr\xfc\xdfe", "grüße");
        reads_as("text/plain; Charset=\"windows-1251\"", b"\xcf\xf0\xe8", "При");
        reads_as("text/plain; charset=latin1", b"\xef\xbb\xbf\xc3\xbc", "ü");
        reads_as("text/plain; charset=utf-8", b"\xff\xfea\0", "a");
        reads_as("text/html", b"<meta charset=shift_jis><p>\x82\xb1\x82\xf1", "こん");
        let meta = b"<META http-equiv=content-type content='text/html; charset=euc-kr'><p>\xb0\xa1";
        reads_as("text/html", meta, "가");
        reads_as("text/html; charset=utf-8", b"<meta charset=latin1><p>\xc3\xbc", "ü");
        reads_as("text/html; charset=nonsense", "<p>ü".as_bytes(), "ü");
        reads_as("text/plain", b"gr\xfc\xdfe aus K\xf6ln, sch\xf6n", "grüße aus Köln, schön");
        reads_as("text/plain", b"cut \xc3", "cut ");
    }

    #[test]
    fn only_the_web_is_fetched() {
        assert_eq!(
            effect(&address("HTTP://0x7f.1:8080/x").unwrap()),
            Effect::Reach { host: "127.0.0.1:8080".to_owned() }
        );
        for wrong in ["ftp://a.example/", "file:///etc/passwd", "example.com", "http://a@b.example/", ""] {
            assert!(address(wrong).unwrap_err().message.starts_with("url: "), "{wrong}");
        }
    }
}
