//! Mutated files, content streams, fonts and filters: reading them gives text or an error within the bounds.

use std::cell::Cell;

use haft_pdf::{Pdf, PdfOptions};
use proptest::prelude::*;

use crate::pdf_writer::{HELVETICA, PdfWriter, compressed_stream, numbered_pages, stream, text_lines};

const MAX_STEPS: u64 = 500_000;
/// Steps between two calls of `is_cancelled`, at least.
const STEPS_PER_CHECK: u64 = 4_096;
/// More than the text that a page may have.
const MAX_TEXT_BYTES: usize = 3 << 20;

/// Reads all pages and asserts that the work and the output are bounded.
fn read(file: &[u8]) {
    let checks = Cell::new(0);
    let is_cancelled = || {
        checks.set(checks.get() + 1);
        false
    };
    let options = PdfOptions { max_steps: MAX_STEPS, is_cancelled: &is_cancelled, ..PdfOptions::default() };
    if let Ok(pdf) = Pdf::open_with(file, options) {
        for number in 1..=pdf.page_count().min(20) {
            if let Ok(page) = pdf.page(number) {
                assert!(page.text.len() < MAX_TEXT_BYTES, "{}", page.text.len());
            }
        }
    }
    assert!(checks.get() <= MAX_STEPS / STEPS_PER_CHECK, "{} checks", checks.get());
}

#[test]
fn mutated_files_are_read_or_refused() {
    let small = numbered_pages(2);
    let mut plain = PdfWriter::with_pages(HELVETICA, &[String::new()]);
    plain.objects[3] = stream(text_lines(72, &["one", "two"]).as_bytes(), "");
    let mut composite = PdfWriter::with_pages(
        "<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</W[1[500 600]3 9 700]>>]>>",
        &["BT /F 9 Tf <000100020003> Tj ET".to_owned()],
    );
    composite.add(stream(b"1 beginbfrange <0001> <0009> <4e00> endbfrange", ""));
    let encrypted = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/encrypted");
    let seeds = [
        small.to_bytes(),
        small.to_bytes_with_object_streams(),
        small.to_bytes_without_xref(),
        plain.to_bytes(),
        composite.to_bytes(),
        std::fs::read(encrypted.join("aes-256.pdf")).unwrap(),
        std::fs::read(encrypted.join("rc4-128.pdf")).unwrap(),
    ];
    haft_fuzz::check(&seeds.each_ref().map(Vec::as_slice), read);
}

#[test]
fn mutated_content_streams_are_interpreted() {
    let seeds: [&[u8]; 4] = [
        b"q 1 0 0 1 72 700 cm BT /F 10 Tf 14 TL (one) Tj T* (two) ' 1 2 (three) \" ET Q",
        b"BT /F 10 Tf 0 1 -1 0 50 50 Tm 3 Tc 2 Tw 80 Tz 5 Ts [(W) 80 (or) -300 <64>] TJ 10 -14 TD (x) Tj ET",
        b"/Span <</ActualText (whole)>> BDC BT /F 9 Tf (part) Tj ET EMC /X Do /Artifact BMC EMC",
        b"BI /W 2 /H 2 /BPC 8 /CS /G ID \x00\xff\x80EI\x01 EI BT /F 9 Tf (after) Tj ET",
    ];
    haft_fuzz::check(&seeds, |content| {
        let mut writer = PdfWriter::with_pages(HELVETICA, &[String::new()]);
        writer.objects[3] = stream(content, "");
        let pages = String::from_utf8(writer.objects[1].clone()).unwrap();
        writer.objects[1] = pages.replace("/Font<<", "/XObject<</X 4 0 R>>/Font<<").into_bytes();
        read(&writer.to_bytes());
    });
}

#[test]
fn mutated_character_maps_are_read() {
    let seeds: [&[u8]; 3] = [
        b"/WMode 1 def 1 begincodespacerange <00> <7f> <8000> <ffff> endcodespacerange",
        b"1 beginbfchar <41> <0042> endbfchar 1 beginbfrange <10> <20> <D842DFB7> <21> <23> [<0041> <0042>] endbfrange",
        b"1 begincidrange <0000> <ffff> 5 endcidrange 1 begincidchar <41> 7 endcidchar",
    ];
    haft_fuzz::check(&seeds, |map| {
        let font = "<</Type/Font/Subtype/Type0/Encoding 6 0 R/ToUnicode 6 0 R/DescendantFonts[<</DW 500>>]>>";
        let mut writer = PdfWriter::with_pages(font, &["BT /F 9 Tf (AB\\020\\022\\377) Tj ET".to_owned()]);
        writer.add(stream(map, ""));
        read(&writer.to_bytes());
    });
}

/// Returns a TrueType font that has nothing but a `cmap` with subtables of the formats 4 and 12.
fn truetype_font() -> Vec<u8> {
    let mut font = [&[0, 1, 0, 0, 0, 1][..], &[0; 6], b"cmap", &[0; 4], &[0, 0, 0, 28, 0, 0, 0, 96]].concat();
    font.extend([0, 0, 0, 2, 0, 3, 0, 1, 0, 0, 0, 20, 0, 3, 0, 10, 0, 0, 0, 52]);
    let format_4: [u16; 16] = [4, 32, 0, 4, 0, 0, 0, 0x42, 0xffff, 0, 0x41, 0xffff, 0xffc0, 1, 0, 0];
    font.extend(format_4.iter().flat_map(|number| number.to_be_bytes()));
    let format_12: [u32; 7] = [12 << 16, 28, 0, 1, 0x1f600, 0x1f602, 3];
    font.extend(format_12.iter().flat_map(|number| number.to_be_bytes()));
    font
}

fn with_font_file(font_file: &[u8]) -> Vec<u8> {
    let font = "<</Type/Font/Subtype/Type0/Encoding/Identity-H/DescendantFonts[<</FontDescriptor<</FontFile2 6 0 R>>>>]>>";
    let content = "BT /F 9 Tf <00010002000300040005> Tj ET".to_owned();
    let mut writer = PdfWriter::with_pages(font, &[content]);
    writer.add(stream(font_file, ""));
    writer.to_bytes()
}

#[test]
fn mutated_truetype_fonts_are_read() {
    let font = truetype_font();
    let file = with_font_file(&font);
    assert_eq!(Pdf::open(&file).unwrap().page(1).unwrap().text, "AB😀😁😂");
    haft_fuzz::check(&[&font], |font| read(&with_font_file(font)));
}

#[test]
fn mutated_type1_fonts_are_read() {
    let seed = b"%!PS-AdobeFont-1.0\n/Encoding 256 array\ndup 65 /A put\ndup 66 /f_f_i put\nreadonly def\ncurrentfile eexec";
    haft_fuzz::check(&[seed], |font_file| {
        let font = "<</Type/Font/Subtype/Type1/FontDescriptor<</FontFile 6 0 R>>>>";
        let mut writer = PdfWriter::with_pages(font, &["BT /F 9 Tf (ABC) Tj ET".to_owned()]);
        writer.add(stream(font_file, ""));
        read(&writer.to_bytes());
    });
}

#[test]
fn mutated_filter_input_is_decoded() {
    let flate = compressed_stream(b"BT /F 9 Tf (flate) Tj ET", "");
    let seeds: [&[u8]; 4] = [
        b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01",
        b"<~87cURD]i,\"Ebo80z~>",
        b"\x02abc\xfed\x80",
        &flate[flate.windows(7).position(|bytes| bytes == b"stream\n").unwrap() + 7..],
    ];
    for filter in ["LZWDecode", "ASCII85Decode", "RunLengthDecode", "FlateDecode", "ASCIIHexDecode"] {
        for params in
            ["", "/DecodeParms<</Predictor 2/Columns 3>>", "/DecodeParms<</Predictor 15/Columns 4/Colors 3>>"]
        {
            haft_fuzz::check(&seeds, |bytes| {
                let mut writer = PdfWriter::with_pages(HELVETICA, &[String::new()]);
                writer.objects[3] = stream(bytes, &format!("/Filter[/{filter}]{params}"));
                read(&writer.to_bytes());
            });
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: haft_fuzz::cases(),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_operators_are_interpreted(content in prop::collection::vec(
        prop_oneof![
            prop::sample::select(vec![
                "q", "Q", "BT", "ET", "Tj", "TJ", "'", "\"", "Td", "TD", "Tm", "T*", "Tf", "cm", "Do", "BI", "ID", "EI",
                "BDC", "EMC", "Tz", "Tc", "Tw", "TL", "/F", "(ab)", "[(a) -9e9 (b)]", "<</ActualText(x)>>", "1e308",
            ]).prop_map(str::to_owned),
            any::<f32>().prop_map(|number| format!("{number:?}")),
            (-9999..9999_i32).prop_map(|number| number.to_string()),
        ],
        0..200,
    )) {
        read(&PdfWriter::with_pages(HELVETICA, &[content.join(" ")]).to_bytes());
    }
}
