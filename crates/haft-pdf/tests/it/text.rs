//! The text of well-formed and of damaged files.

use haft_pdf::{Pdf, PdfError, PdfPage};

use crate::pdf_writer::{HELVETICA, PdfWriter, compressed_stream, numbered_pages, stream, text_lines};

fn page(file: &[u8], number: usize) -> Result<PdfPage, PdfError> {
    Pdf::open(file)?.page(number)
}

fn text(file: &[u8]) -> String {
    page(file, 1).unwrap().text
}

#[test]
fn xref_tables_xref_streams_and_no_xref_give_the_same_text() {
    let document = numbered_pages(12);
    for file in
        [document.to_bytes(), document.to_bytes_with_object_streams(), document.to_bytes_without_xref()]
    {
        let pdf = Pdf::open(&file).unwrap();
        assert_eq!(pdf.page_count(), 12);
        assert_eq!(pdf.page(7).unwrap().text, "This is page 7.\nIt has a second line.");
        assert_eq!(pdf.page(0), Err(PdfError::NoSuchPage));
        assert_eq!(pdf.page(13), Err(PdfError::NoSuchPage));
    }
}

#[test]
fn damaged_files_give_the_remaining_text() {
    let document = numbered_pages(30);
    let whole = document.to_bytes();
    let half = &whole[..whole.len() / 2];
    assert_eq!(text(half), "This is page 1.\nIt has a second line.");
    let modern = document.to_bytes_with_object_streams();
    assert_eq!(Pdf::open(&modern[..modern.len() - 40]).unwrap().page_count(), 30);
    let mut shifted = b"Received: from somewhere\r\n".to_vec();
    shifted.extend_from_slice(&whole);
    assert_eq!(page(&shifted, 30).unwrap().text, "This is page 30.\nIt has a second line.");
    let wrong = String::from_utf8_lossy(&whole).replace("%PDF-1.7\n", "%PDF-1.7\n%%%%%%%\n");
    assert!(Pdf::open(wrong.as_bytes()).is_ok(), "all offsets are wrong");
    assert_eq!(page(b"%PDF-1.4\nnothing else", 1), Err(PdfError::NoPages));
    assert_eq!(page(b"plain words", 1), Err(PdfError::NotPdf));
    assert_eq!(page(b"", 1), Err(PdfError::NotPdf));
}

#[test]
fn encrypted_file_opens_only_without_password() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/encrypted");
    for name in ["rc4-40", "rc4-128", "aes-128", "aes-256"] {
        let file = std::fs::read(folder.join(name).with_extension("pdf")).unwrap();
        assert_eq!(text(&file), "Sealed but open to all", "{name}");
    }
    for name in ["rc4-128-password", "aes-256-password"] {
        let file = std::fs::read(folder.join(name).with_extension("pdf")).unwrap();
        assert_eq!(page(&file, 1), Err(PdfError::NeedsPassword), "{name}");
    }
}

#[test]
fn columns_are_read_in_order_below_the_title() {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for line in 1..=12 {
        left.push(format!("left column, line {line}, some more words here"));
        right.push(format!("right column, line {line}, some more words here"));
    }
    // Some programs write across both columns, line by line.
    let mut content =
        String::from("BT /F 16 Tf 1 0 0 1 100 780 Tm (A title that goes across all of the page) Tj ET\n");
    for (row, (one, two)) in left.iter().zip(&right).enumerate() {
        let y = 700 - 14 * row;
        content += &format!("BT /F 10 Tf 1 0 0 1 50 {y} Tm ({one}) Tj 1 0 0 1 320 {y} Tm ({two}) Tj ET\n");
    }
    content += "BT /F 10 Tf 1 0 0 1 295 30 Tm (17) Tj ET\n";
    let read = text(&PdfWriter::with_pages(HELVETICA, &[content]).to_bytes());
    let expected = format!(
        "A title that goes across all of the page\n\n{}\n\n{}\n\n17",
        left.join("\n"),
        right.join("\n")
    );
    assert_eq!(read, expected);
}

#[test]
fn tables_are_read_row_by_row() {
    let mut content = String::new();
    for row in 0..8 {
        let y = 700 - 14 * row;
        for (column, cell) in ["name", "12.5", "kg"].iter().enumerate() {
            let x = 50 + 120 * column;
            content += &format!("BT /F 10 Tf 1 0 0 1 {x} {y} Tm ({cell}{row}) Tj ET\n");
        }
    }
    let read = text(&PdfWriter::with_pages(HELVETICA, &[content]).to_bytes());
    let rows: Vec<String> = (0..8).map(|row| format!("name{row}   12.5{row}   kg{row}")).collect();
    assert_eq!(read, rows.join("\n"));
}

#[test]
fn gaps_separate_words_and_kerning_does_not() {
    let content = "BT /F 10 Tf 72 700 Td [(W)80(or)-20(d)-300(two)] TJ ET";
    assert_eq!(text(&PdfWriter::with_pages(HELVETICA, &[content.to_owned()]).to_bytes()), "Word two");
}

#[test]
fn glyph_names_and_single_byte_encodings_become_characters() {
    let font = "<</Type/Font/Subtype/Type1/BaseFont/X/Encoding<</Differences[1/ff/fi/ffi/alpha/uni20AC/summation/Zcaron]>>>>";
    let content = text_lines(72, &["\\001 \\002 \\003 \\004 \\005 \\006 \\007 \\250x'"]);
    let file = PdfWriter::with_pages(font, &[content]).to_bytes();
    assert_eq!(text(&file), "ff fi ffi α € ∑ Ž ¤x’");
    let mac = HELVETICA.replace("WinAnsi", "MacRoman");
    assert_eq!(text(&PdfWriter::with_pages(&mac, &[text_lines(72, &["\\212\\237"])]).to_bytes()), "äü");
    let symbol = "<</Type/Font/Subtype/Type1/BaseFont/Symbol>>";
    assert_eq!(text(&PdfWriter::with_pages(symbol, &[text_lines(72, &["abg"])]).to_bytes()), "αβγ");
}

#[test]
fn chinese_japanese_and_korean_encodings_become_characters() {
    let font = |encoding: &str, more: &str| {
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/{encoding}{more}/DescendantFonts[<</DW 1000>>]>>"
        )
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = |font: &str, bytes: &[u8]| {
        let content = format!("BT /F 12 Tf 72 700 Td <{}> Tj ET", hex(bytes));
        text(&PdfWriter::with_pages(font, &[content]).to_bytes())
    };
    let utf16: Vec<u8> = "日本語𠮷".encode_utf16().flat_map(u16::to_be_bytes).collect();
    assert_eq!(shown(&font("UniJIS-UTF16-H", ""), &utf16), "日本語𠮷");
    assert_eq!(shown(&font("90ms-RKSJ-H", ""), &encoding_rs::SHIFT_JIS.encode("日本ｱa").0), "日本ｱa");
    assert_eq!(shown(&font("GBK-EUC-H", ""), &encoding_rs::GBK.encode("你好").0), "你好");
    assert_eq!(shown(&font("ETen-B5-H", ""), &encoding_rs::BIG5.encode("繁體").0), "繁體");
    assert_eq!(shown(&font("KSCms-UHC-H", ""), &encoding_rs::EUC_KR.encode("한국").0), "한국");

    let map = "1 begincodespacerange <0000> <ffff> endcodespacerange
        1 beginbfchar <0007> <65e5672c> endbfchar
        2 beginbfrange <0010> <0012> <8a9e> <0020> <0021> [<0041> <D842DFB7>] endbfrange";
    let mut writer = PdfWriter::with_pages(
        &font("Identity-H", "/ToUnicode 6 0 R"),
        &["BT /F 12 Tf 72 700 Td <00070010001200200021> Tj ET".to_owned()],
    );
    assert_eq!(writer.add(compressed_stream(map.as_bytes(), "")), 6);
    assert_eq!(text(&writer.to_bytes()), "日本語誠A𠮷");
}

#[test]
fn forms_rotated_text_actual_text_and_fields_are_read() {
    let mut writer = PdfWriter::with_pages(HELVETICA, &[]);
    let form = writer.add(stream(
        b"BT /F 10 Tf 50 600 Td (inside a form) Tj ET",
        "/Type/XObject/Subtype/Form/Resources<</Font<</F 3 0 R>>>>",
    ));
    let look = writer.add(stream(
        b"BT /F 10 Tf 2 2 Td (a filled field) Tj ET",
        "/Subtype/Form/BBox[0 0 100 20]/Resources<</Font<</F 3 0 R>>>>",
    ));
    // Text that runs up the page comes after the main text.
    let content = format!(
        "/X{form} Do q 0 1 -1 0 700 40 cm BT /F 10 Tf (turned) Tj ET Q
         /Span<</ActualText(whole)>>BDC BT /F 10 Tf 50 500 Td (pieces) Tj ET EMC"
    );
    let content = writer.add(compressed_stream(content.as_bytes(), ""));
    let page = writer.add(format!(
        "<</Type/Page/Parent 2 0 R/Contents {content} 0 R/Annots[<</Subtype/Widget/Rect[50 400 90 420]/AP<</N {look} 0 R>>>>]
         /Resources<</Font<</F 3 0 R>>/XObject<</X{form} {form} 0 R>>>>>>"
    ));
    writer.objects[1] = format!("<</Type/Pages/Kids[{page} 0 R]/Count 1>>").into_bytes();
    assert_eq!(text(&writer.to_bytes()), "inside a form\n\nwhole\n\na filled field\n\nturned");
}

#[test]
fn page_without_text_reports_images_and_scan() {
    let mut writer = PdfWriter::with_pages(HELVETICA, &[String::new(), "/P Do".to_owned()]);
    let picture = writer.add(stream(b"\xff\xd8\xff jpeg", "/Subtype/Image/Filter/DCTDecode"));
    let pages = String::from_utf8(writer.objects[1].clone()).unwrap();
    writer.objects[1] =
        pages.replace("/Font<<", &format!("/XObject<</P {picture} 0 R>>/Font<<")).into_bytes();
    let file = writer.to_bytes();
    assert_eq!(page(&file, 1).unwrap(), PdfPage::default());
    let scan = page(&file, 2).unwrap();
    assert_eq!((scan.text.as_str(), scan.image_count), ("", 1));
    assert_eq!(scan.scan.as_deref(), Some(&b"\xff\xd8\xff jpeg"[..]));
}

#[test]
fn font_without_characters_makes_page_unreadable() {
    let font = "<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<<>>]>>";
    let read = page(&PdfWriter::with_pages(font, &["BT /F 9 Tf <00010002> Tj ET".to_owned()]).to_bytes(), 1)
        .unwrap();
    assert!(read.unreadable, "{read:?}");
}
