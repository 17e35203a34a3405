//! What is read from PDFs of every make, and what hostile ones cannot do.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on has failed")]

mod hostile;
mod writer;

use haft_pdf::{Fault, Page, Pdf};
use writer::{HELVETICA, Writer, book, lines, packed, stream};

fn page(file: &[u8], number: usize) -> Result<Page, Fault> {
    Pdf::open(file, &|| false)?.page(number)
}

fn text(file: &[u8]) -> String {
    page(file, 1).unwrap().text
}

#[test]
fn every_way_to_store_objects_gives_the_same_text() {
    let book = book(12);
    for file in [book.file(), book.modern_file(), book.without_table()] {
        let pdf = Pdf::open(&file, &|| false).unwrap();
        assert_eq!(pdf.page_count(), 12);
        assert_eq!(pdf.page(7).unwrap().text, "This is page 7.\nIt has a second line.");
        assert_eq!(pdf.page(0), Err(Fault::NoSuchPage));
        assert_eq!(pdf.page(13), Err(Fault::NoSuchPage));
    }
}

#[test]
fn a_damaged_file_gives_what_is_left() {
    let book = book(30);
    let whole = book.file();
    let half = &whole[..whole.len() / 2];
    assert_eq!(text(half), "This is page 1.\nIt has a second line.");
    let modern = book.modern_file();
    assert_eq!(Pdf::open(&modern[..modern.len() - 40], &|| false).unwrap().page_count(), 30);
    let mut shifted = b"Received: from somewhere\r\n".to_vec();
    shifted.extend_from_slice(&whole);
    assert_eq!(page(&shifted, 30).unwrap().text, "This is page 30.\nIt has a second line.");
    let wrong = String::from_utf8_lossy(&book.file()).replace("%PDF-1.7\n", "%PDF-1.7\n%%%%%%%\n");
    assert!(Pdf::open(wrong.as_bytes(), &|| false).is_ok(), "every place in the table is wrong");
    assert_eq!(page(b"%PDF-1.4\nnothing else", 1), Err(Fault::Broken));
    assert_eq!(page(b"plain words", 1), Err(Fault::NotPdf));
    assert_eq!(page(b"", 1), Err(Fault::NotPdf));
}

#[test]
fn an_encrypted_file_opens_only_if_its_password_is_empty() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reads/sealed");
    for name in ["rc4-40", "rc4-128", "aes-128", "aes-256"] {
        let file = std::fs::read(folder.join(name).with_extension("pdf")).unwrap();
        assert_eq!(text(&file), "Sealed but open to all", "{name}");
    }
    for name in ["rc4-128-password", "aes-256-password"] {
        let file = std::fs::read(folder.join(name).with_extension("pdf")).unwrap();
        assert_eq!(page(&file, 1), Err(Fault::NeedsPassword), "{name}");
    }
}

#[test]
fn columns_are_read_one_after_the_other_below_what_spans_them() {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for line in 1..=12 {
        left.push(format!("left column, line {line}, some more words here"));
        right.push(format!("right column, line {line}, some more words here"));
    }
    let borrow = |lines: &[String]| lines.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let (left, right) = (borrow(&left), borrow(&right));
    // Written line by line across the page, as some programs do.
    let mut program =
        String::from("BT /F 16 Tf 1 0 0 1 100 780 Tm (A title that goes across all of the page) Tj ET\n");
    for (row, (one, two)) in left.iter().zip(&right).enumerate() {
        let y = 700 - 14 * row;
        program += &format!("BT /F 10 Tf 1 0 0 1 50 {y} Tm ({one}) Tj 1 0 0 1 320 {y} Tm ({two}) Tj ET\n");
    }
    program += "BT /F 10 Tf 1 0 0 1 295 30 Tm (17) Tj ET\n";
    let read = text(&Writer::document(HELVETICA, &[program]).file());
    let expected = format!(
        "A title that goes across all of the page\n\n{}\n\n{}\n\n17",
        left.join("\n"),
        right.join("\n")
    );
    assert_eq!(read, expected);
}

#[test]
fn a_table_is_read_row_by_row() {
    let mut program = String::new();
    for row in 0..8 {
        let y = 700 - 14 * row;
        for (column, cell) in ["name", "12.5", "kg"].iter().enumerate() {
            let x = 50 + 120 * column;
            program += &format!("BT /F 10 Tf 1 0 0 1 {x} {y} Tm ({cell}{row}) Tj ET\n");
        }
    }
    let read = text(&Writer::document(HELVETICA, &[program]).file());
    let rows: Vec<String> = (0..8).map(|row| format!("name{row}   12.5{row}   kg{row}")).collect();
    assert_eq!(read, rows.join("\n"));
}

#[test]
fn words_are_parted_by_gaps_and_joined_over_kerning() {
    let program = "BT /F 10 Tf 72 700 Td [(W)80(or)-20(d)-300(two)] TJ ET";
    assert_eq!(text(&Writer::document(HELVETICA, &[program.to_owned()]).file()), "Word two");
}

#[test]
fn glyph_names_and_old_encodings_become_characters() {
    let font = "<</Type/Font/Subtype/Type1/BaseFont/X/Encoding<</Differences[1/ff/fi/ffi/alpha/uni20AC/summation/Zcaron]>>>>";
    let program = lines(72, &["\\001 \\002 \\003 \\004 \\005 \\006 \\007 \\250x'"]);
    let file = Writer::document(font, &[program]).file();
    assert_eq!(text(&file), "ff fi ffi α € ∑ Ž ¤x’");
    let mac = HELVETICA.replace("WinAnsi", "MacRoman");
    assert_eq!(text(&Writer::document(&mac, &[lines(72, &["\\212\\237"])]).file()), "äü");
    let symbol = "<</Type/Font/Subtype/Type1/BaseFont/Symbol>>";
    assert_eq!(text(&Writer::document(symbol, &[lines(72, &["abg"])]).file()), "αβγ");
}

#[test]
fn chinese_japanese_and_korean_are_read_by_any_of_their_encodings() {
    let font = |encoding: &str, more: &str| {
        format!(
            "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/{encoding}{more}/DescendantFonts[<</DW 1000>>]>>"
        )
    };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = |font: &str, bytes: &[u8]| {
        let program = format!("BT /F 12 Tf 72 700 Td <{}> Tj ET", hex(bytes));
        text(&Writer::document(font, &[program]).file())
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
    let mut writer = Writer::document(
        &font("Identity-H", "/ToUnicode 6 0 R"),
        &["BT /F 12 Tf 72 700 Td <00070010001200200021> Tj ET".to_owned()],
    );
    assert_eq!(writer.add(packed(map.as_bytes(), "")), 6);
    assert_eq!(text(&writer.file()), "日本語誠A𠮷");
}

#[test]
fn forms_rotation_marked_text_and_fields_are_read() {
    let mut writer = Writer::document(HELVETICA, &[]);
    let form = writer.add(stream(
        b"BT /F 10 Tf 50 600 Td (inside a form) Tj ET",
        "/Type/XObject/Subtype/Form/Resources<</Font<</F 3 0 R>>>>",
    ));
    let look = writer.add(stream(
        b"BT /F 10 Tf 2 2 Td (a filled field) Tj ET",
        "/Subtype/Form/BBox[0 0 100 20]/Resources<</Font<</F 3 0 R>>>>",
    ));
    // On a page turned by 90 degrees, text that runs up stands upright.
    let program = format!(
        "/X{form} Do q 0 1 -1 0 700 40 cm BT /F 10 Tf (turned) Tj ET Q
         /Span<</ActualText(whole)>>BDC BT /F 10 Tf 50 500 Td (pieces) Tj ET EMC"
    );
    let content = writer.add(packed(program.as_bytes(), ""));
    let page = writer.add(format!(
        "<</Type/Page/Parent 2 0 R/Contents {content} 0 R/Annots[<</Subtype/Widget/Rect[50 400 90 420]/AP<</N {look} 0 R>>>>]
         /Resources<</Font<</F 3 0 R>>/XObject<</X{form} {form} 0 R>>>>>>"
    ));
    writer.objects[1] = format!("<</Type/Pages/Kids[{page} 0 R]/Count 1>>").into_bytes();
    assert_eq!(text(&writer.file()), "inside a form\n\nwhole\n\na filled field\n\nturned");
}

#[test]
fn a_page_without_text_says_what_it_shows() {
    let mut writer = Writer::document(HELVETICA, &[String::new(), "/P Do".to_owned()]);
    let picture = writer.add(stream(b"\xff\xd8\xff jpeg", "/Subtype/Image/Filter/DCTDecode"));
    let pages = String::from_utf8(writer.objects[1].clone()).unwrap();
    writer.objects[1] =
        pages.replace("/Font<<", &format!("/XObject<</P {picture} 0 R>>/Font<<")).into_bytes();
    let file = writer.file();
    assert_eq!(page(&file, 1).unwrap(), Page::default());
    let scan = page(&file, 2).unwrap();
    assert_eq!((scan.text.as_str(), scan.pictures), ("", 1));
    assert_eq!(scan.scan.as_deref(), Some(&b"\xff\xd8\xff jpeg"[..]));
}

#[test]
fn a_font_that_tells_nothing_makes_a_page_unreadable() {
    let font = "<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<<>>]>>";
    let read = page(&Writer::document(font, &["BT /F 9 Tf <00010002> Tj ET".to_owned()]).file(), 1).unwrap();
    assert!(read.unreadable, "{read:?}");
}
