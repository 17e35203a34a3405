//! Files that were made to harm, or that chance made so: they cost a bounded amount of work and give less text.

use std::cell::Cell;

use haft_pdf::{Fault, Pdf};
use proptest::prelude::*;

use crate::writer::{HELVETICA, Writer, book, lines, packed, stream};

/// Reads everything there is, as `Read` would at most.
fn read(file: &[u8]) -> Result<usize, Fault> {
    let pdf = Pdf::open(file, &|| false)?;
    let mut length = 0;
    for number in 1..=pdf.page_count().min(20) {
        length += pdf.page(number)?.text.len();
    }
    Ok(length)
}

fn with_content(content: &[u8]) -> Vec<u8> {
    let mut writer = Writer::document(HELVETICA, &[String::new()]);
    writer.objects[3] = packed(content, "");
    writer.file()
}

#[test]
fn trees_and_forms_without_end_come_to_an_end() {
    let mut writer = Writer::default();
    writer.add("<</Type/Catalog/Pages 2 0 R>>");
    writer.add("<</Type/Pages/Kids[2 0 R 3 0 R 2 0 R]/Parent 2 0 R>>");
    writer.add("<</Type/Pages/Kids[2 0 R]/Parent 2 0 R>>");
    assert_eq!(read(&writer.file()), Err(Fault::Broken));

    // Each form draws the next ten times: 10 to the power of 12 if nobody counts.
    let mut writer = Writer::document(HELVETICA, &["/X Do ".repeat(10)]);
    for next in 7..=20 {
        let dict = format!("/Subtype/Form/Resources<</XObject<</X {next} 0 R>>>>");
        writer.add(stream("/X Do ".repeat(10).as_bytes(), &dict));
    }
    let pages = String::from_utf8(writer.objects[1].clone()).unwrap();
    writer.objects[1] = pages.replace("/Font<<", "/XObject<</X 6 0 R>>/Font<<").into_bytes();
    let file = writer.file();
    assert!(Pdf::open(&file, &|| false).unwrap().page(1).unwrap().cut);

    let mut loops = Writer::document(HELVETICA, &[lines(72, &["x"])]);
    loops.objects[2] = b"3 0 R".to_vec();
    loops.objects[3] = stream(b"BT /F 9 Tf (x) Tj", "/Length 4 0 R/Filter 4 0 R");
    assert!(read(&loops.file()).is_ok());
}

#[test]
fn nesting_is_bounded() {
    for open in ["[", "<<", "<</A", "[<</A[", "("] {
        let deep = open.repeat(200_000);
        assert_eq!(read(format!("%PDF-1.7\n1 0 obj\n{deep}").as_bytes()), Err(Fault::Broken));
        assert!(read(&with_content(deep.as_bytes())).is_ok());
    }
}

#[test]
fn a_bomb_gives_no_more_than_its_bound() {
    // 100 MB of text from 100 kB, and the same once more inside.
    let once = packed(&b"(aaaaaaaaaaaaaaaa) Tj ".repeat(100_000_000 / 22), "");
    let mut writer = Writer::document(HELVETICA, &[String::new()]);
    writer.objects[3] = once;
    let pdf = writer.file();
    let page = Pdf::open(&pdf, &|| false).unwrap().page(1).unwrap();
    assert!(page.text.len() < 3 << 20, "{}", page.text.len());
}

#[test]
fn tables_that_promise_too_much_are_not_believed() {
    for index in ["/Size 99999999999", "/Index[0 4294967295]/Size 1", "/Size -1", "/Index[1 1 1]/Size 5"] {
        for widths in ["[1 8 8]", "[0 0 0]", "[1 0 0]", "[99999999 1 1]", "[]"] {
            let mut file = b"%PDF-1.7\n1 0 obj\n".to_vec();
            file.extend(packed(&[1; 4_096], &format!("/Type/XRef/Root 1 0 R/W{widths}{index}")));
            file.extend_from_slice(b"\nendobj\nstartxref\n9\n%%EOF");
            assert_eq!(read(&file), Err(Fault::Broken), "{index} {widths}");
        }
    }
}

#[test]
fn whoever_does_not_want_it_any_more_is_heard() {
    let file = with_content(&b"q Q ".repeat(200_000));
    let asked = Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let pdf = Pdf::open(&file, &stop).unwrap();
    assert_eq!(pdf.page(1), Err(Fault::Cancelled));
}

/// Good files of every kind that the mutations start from.
fn bases() -> Vec<Vec<u8>> {
    let small = book(2);
    let mut plain = Writer::document(HELVETICA, &[String::new()]);
    plain.objects[3] = stream(lines(72, &["one", "two"]).as_bytes(), "");
    let mut cjk = Writer::document(
        "<</Type/Font/Subtype/Type0/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[<</W[1[500 600]3 9 700]>>]>>",
        &["BT /F 9 Tf <000100020003> Tj ET".to_owned()],
    );
    cjk.add(stream(b"1 beginbfrange <0001> <0009> <4e00> endbfrange", ""));
    let sealed = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reads/sealed/aes-256.pdf");
    vec![small.file(), small.modern_file(), plain.file(), cjk.file(), std::fs::read(sealed).unwrap()]
}

/// Words that mean something to a reader of PDFs.
const WORDS: [&str; 16] = [
    "endstream",
    "stream",
    "obj",
    "endobj",
    "<<",
    ">>",
    "[",
    "/Kids",
    "/Length 99",
    "/Prev 9",
    " 0 R",
    "-1",
    "99999999999",
    "/Filter/LZWDecode",
    "/DecodeParms<</Predictor 15/Columns 99>>",
    "Do",
];

#[derive(Debug, Clone)]
enum Damage {
    Flip(usize, u8),
    Cut(usize),
    Remove(usize, usize),
    Copy(usize, usize, usize),
    Word(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = 0..1_000_000_usize;
    prop_oneof![
        (at.clone(), any::<u8>()).prop_map(|(at, with)| Damage::Flip(at, with)),
        at.clone().prop_map(Damage::Cut),
        (at.clone(), 0..200_usize).prop_map(|(at, length)| Damage::Remove(at, length)),
        (at.clone(), at.clone(), 0..600_usize).prop_map(|(to, from, length)| Damage::Copy(to, from, length)),
        (at, 0..WORDS.len()).prop_map(|(at, word)| Damage::Word(at, word)),
    ]
}

fn damaged(mut file: Vec<u8>, all: &[Damage]) -> Vec<u8> {
    for damage in all {
        let size = file.len().max(1);
        let place = |at: &usize| (at % size).min(file.len());
        match damage {
            Damage::Flip(at, with) => {
                let at = place(at);
                file.get_mut(at).into_iter().for_each(|byte| *byte ^= with);
            }
            Damage::Cut(at) => file.truncate(size - at % (size / 4 + 1)),
            Damage::Remove(at, length) => {
                let at = place(at);
                file.drain(at..(at + length).min(file.len()));
            }
            Damage::Copy(to, from, length) => {
                let (to, from) = (place(to), place(from));
                let piece = file[from..(from + length).min(file.len())].to_vec();
                file.splice(to..to, piece);
            }
            Damage::Word(at, word) => {
                let at = place(at);
                file.splice(at..at, WORDS[*word].bytes());
            }
        }
    }
    file
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_never_breaks_the_reader(base in 0..5_usize, all in prop::collection::vec(damage(), 1..12)) {
        let file = damaged(bases().swap_remove(base), &all);
        if let Ok(length) = read(&file) {
            prop_assert!(length < 100_000, "{length}");
        }
    }

    #[test]
    fn any_program_can_be_run(content in prop::collection::vec(
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
        prop_assert!(read(&with_content(content.join(" ").as_bytes())).is_ok());
    }
}
