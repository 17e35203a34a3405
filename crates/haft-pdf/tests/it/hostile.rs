//! Files made to cause endless work: they take a bounded amount and give an error or less text.

use std::cell::Cell;

use haft_pdf::{Pdf, PdfError, PdfOptions};

use crate::pdf_writer::{HELVETICA, PdfWriter, compressed_stream, stream, text_lines};

/// Reads up to 20 pages and returns the length of their text.
fn read(file: &[u8]) -> Result<usize, PdfError> {
    let pdf = Pdf::open(file)?;
    let mut length = 0;
    for number in 1..=pdf.page_count().min(20) {
        length += pdf.page(number)?.text.len();
    }
    Ok(length)
}

/// Returns a file with one page that has this content and, beside the font `F`, these resources.
fn with_content(content: &[u8], resources: &str, objects: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = PdfWriter::with_pages(HELVETICA, &[String::new()]);
    writer.objects[3] = compressed_stream(content, "");
    let pages = String::from_utf8(writer.objects[1].clone()).unwrap();
    writer.objects[1] = pages.replace("/Font<<", &format!("{resources}/Font<<")).into_bytes();
    for object in objects {
        writer.add(object);
    }
    writer.to_bytes()
}

#[test]
fn cyclic_page_trees_end() {
    let mut writer = PdfWriter::default();
    writer.add("<</Type/Catalog/Pages 2 0 R>>");
    writer.add("<</Type/Pages/Kids[2 0 R 3 0 R 2 0 R]/Parent 2 0 R>>");
    writer.add("<</Type/Pages/Kids[2 0 R]/Parent 2 0 R>>");
    assert_eq!(read(&writer.to_bytes()), Err(PdfError::NoPages));
}

#[test]
fn cyclic_references_end() {
    let mut writer = PdfWriter::with_pages(HELVETICA, &[text_lines(72, &["x"])]);
    writer.objects[2] = b"3 0 R".to_vec();
    writer.objects[3] = stream(b"BT /F 9 Tf (x) Tj", "/Length 4 0 R/Filter 4 0 R");
    assert!(read(&writer.to_bytes()).is_ok());
}

#[test]
fn exponential_forms_are_truncated() {
    // Each form draws the next ten times, which makes 10 to the power of 12 forms.
    let forms: Vec<Vec<u8>> = (7..=20)
        .map(|next| {
            let dict = format!("/Subtype/Form/Resources<</XObject<</X {next} 0 R>>>>");
            stream("/X Do ".repeat(10).as_bytes(), &dict)
        })
        .collect();
    let file = with_content("/X Do ".repeat(10).as_bytes(), "/XObject<</X 6 0 R>>", &forms);
    assert!(Pdf::open(&file).unwrap().page(1).unwrap().truncated);
}

#[test]
fn nesting_is_bounded() {
    for open in ["[", "<<", "<</A", "[<</A[", "("] {
        let deep = open.repeat(200_000);
        assert_eq!(read(format!("%PDF-1.7\n1 0 obj\n{deep}").as_bytes()), Err(PdfError::NoPages));
        assert!(read(&with_content(deep.as_bytes(), "", &[])).is_ok());
    }
}

#[test]
fn decompression_is_bounded() {
    // 100 MB of text in 100 kB.
    let content = b"(aaaaaaaaaaaaaaaa) Tj ".repeat(100_000_000 / 22);
    let file = with_content(&content, "", &[]);
    let page = Pdf::open(&file).unwrap().page(1).unwrap();
    assert!(page.text.len() < 3 << 20, "{}", page.text.len());
}

#[test]
fn impossible_xref_streams_are_ignored() {
    for index in ["/Size 99999999999", "/Index[0 4294967295]/Size 1", "/Size -1", "/Index[1 1 1]/Size 5"] {
        for widths in ["[1 8 8]", "[0 0 0]", "[1 0 0]", "[99999999 1 1]", "[]"] {
            let mut file = b"%PDF-1.7\n1 0 obj\n".to_vec();
            file.extend(compressed_stream(&[1; 4_096], &format!("/Type/XRef/Root 1 0 R/W{widths}{index}")));
            file.extend_from_slice(b"\nendobj\nstartxref\n9\n%%EOF");
            assert_eq!(read(&file), Err(PdfError::NoPages), "{index} {widths}");
        }
    }
}

#[test]
fn numbers_beyond_all_types_are_survived() {
    let font = "<</Type/Font/Subtype/Type1/FirstChar 9e9/Widths[1]/Encoding<</Differences[99999999999999999999/A/B]>>>>";
    let content = text_lines(72, &["AB"]);
    assert!(read(&PdfWriter::with_pages(font, &[content]).to_bytes()).is_ok());
}

/// Small pieces of a page that each refer to something large: without a price for the large thing, a page costs their product.
#[test]
fn repeated_use_of_something_large_is_bounded() {
    const LARGE: usize = 2 << 20;
    let many = |operators: &str| operators.repeat(100_000).into_bytes();

    // The declared length of a form ends before a long string.
    let form = format!("<</Subtype/Form/Length 9>>\nstream\n\nendstream({}", "x".repeat(LARGE)).into_bytes();
    read(&with_content(&many("/X Do "), "/XObject<</X 6 0 R>>", &[form])).unwrap();

    // One byte, decoded as the beginning of a long row.
    let params = "/Subtype/Form/DecodeParms<</Predictor 15/Columns 25000000/BitsPerComponent 1>>";
    let form = compressed_stream(b"\x02", params);
    read(&with_content(&many("/X Do "), "/XObject<</X 6 0 R>>", &[form])).unwrap();

    // A long text for marked content that shows nothing.
    let properties = format!("<</ActualText({})>>", "x".repeat(LARGE)).into_bytes();
    read(&with_content(&many("/P /M BDC EMC "), "/Properties<</M 6 0 R>>", &[properties])).unwrap();

    // Ranges of codes that none of the codes is in.
    let map = "1 begincodespacerange <00000001> <00000001> endcodespacerange ".repeat(LARGE / 64);
    let font = "<</Type/Font/Subtype/Type0/Encoding 6 0 R/DescendantFonts[<<>>]>>";
    let content = format!("BT /F 9 Tf <{}> Tj", "41".repeat(100_000));
    let mut writer = PdfWriter::with_pages(font, &[content]);
    writer.add(compressed_stream(map.as_bytes(), ""));
    read(&writer.to_bytes()).unwrap();

    // An object number of many digits before many names that objects are searched for by.
    let file = format!("%PDF-1.7\n{}1 0 obj {}", "0".repeat(LARGE), "/XRef ".repeat(100_000));
    assert_eq!(read(file.as_bytes()), Err(PdfError::NoPages));
}

#[test]
fn cancelled_read_ends() {
    let file = with_content(&b"q Q ".repeat(200_000), "", &[]);
    let calls = Cell::new(0);
    let is_cancelled = || {
        calls.set(calls.get() + 1);
        calls.get() > 3
    };
    let options = PdfOptions { is_cancelled: &is_cancelled, ..PdfOptions::default() };
    let pdf = Pdf::open_with(&file, options).unwrap();
    assert_eq!(pdf.page(1), Err(PdfError::Cancelled));
}

#[test]
fn limits_are_those_of_the_caller() {
    let file = with_content(&b"q Q ".repeat(20_000), "", &[]);
    let steps = PdfOptions { max_steps: 10_000, ..PdfOptions::default() };
    assert!(Pdf::open_with(&file, steps).unwrap().page(1).unwrap().truncated);
    let bytes = PdfOptions { max_decoded_bytes: 10_000, ..PdfOptions::default() };
    assert!(Pdf::open_with(&file, bytes).unwrap().page(1).unwrap().truncated);
    assert!(!Pdf::open(&file).unwrap().page(1).unwrap().truncated);
    let none = PdfOptions { max_steps: 1, ..PdfOptions::default() };
    assert_eq!(Pdf::open_with(&file, none).err(), Some(PdfError::LimitExceeded));
}
