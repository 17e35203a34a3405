//! `Read` on PDFs and pictures.

use haft::json;
use serde_json::Value;

use crate::fixture::cli::CliFixture;
use crate::pdf_notebook::pdf_writer::{HELVETICA, PdfWriter, decompression_bomb, numbered_pages, stream};

fn written(cli: &CliFixture, name: &str, bytes: &[u8]) -> String {
    std::fs::write(cli.path(name), bytes).unwrap();
    cli.path(name).to_str().unwrap().to_owned()
}

#[test]
fn pages_come_as_numbered_lines_under_a_heading_each() {
    let cli = CliFixture::new();
    let path = written(&cli, "book.pdf", &numbered_pages(3).to_bytes());
    let ran = cli.call("Read", &json!({"file_path": path, "pages": "3,1"}));
    let expected = "     1\t--- page 3 of 3 ---
     2\tThis is page 3.
     3\tIt has a second line.
     4\t
     5\t--- page 1 of 3 ---
     6\tThis is page 1.
     7\tIt has a second line.
";
    assert_eq!((ran.code, ran.stdout.as_str()), (0, expected), "{}", ran.stderr);
    for (pages, shown) in
        [(json!("1-2"), vec![1, 2]), (json!("2-3"), vec![2, 3]), (json!(null), vec![1, 2, 3])]
    {
        let mut arguments = json!({"file_path": path});
        if !pages.is_null() {
            arguments["pages"] = pages.clone();
        }
        let text = cli.call("Read", &arguments).stdout;
        let found: Vec<i32> =
            (1..=3).filter(|page| text.contains(&format!("This is page {page}."))).collect();
        assert_eq!(found, shown, "{pages}: {text}");
    }
    let ran = cli.call("Read", &json!({"file_path": path, "pages": "3", "offset": 2, "limit": 1}));
    assert_eq!(ran.stdout, "     2\tThis is page 3.\n(lines 2 to 2 of 3; read on with offset 3)\n");
}

#[test]
fn without_pages_a_long_document_gives_its_first_twenty_and_says_so() {
    let cli = CliFixture::new();
    let path = written(&cli, "book.pdf", &numbered_pages(45).to_bytes_with_object_streams());
    let ran = cli.haft(&["call", "Read", &json!({"file_path": path}).to_string(), "--json"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = value["content"].as_str().unwrap();
    assert!(text.contains("This is page 20.") && !text.contains("This is page 21."), "{text}");
    assert!(text.ends_with("(pages 1 to 20 of 45; read on with pages \"21-40\")\n"), "{text}");
    let file = &value["structured"]["file"];
    assert_eq!(value["structured"]["type"], "pdf");
    assert_eq!((&file["totalPages"], file["pages"].as_array().unwrap().len()), (&json!(45), 20));
}

#[test]
fn what_cannot_be_read_is_told_apart() {
    let cli = CliFixture::new();
    let sealed = concat!(env!("CARGO_MANIFEST_DIR"), "/../haft-pdf/tests/it/encrypted/aes-256-password.pdf");
    let sealed = written(&cli, "sealed.pdf", &std::fs::read(sealed).unwrap());
    let broken = written(&cli, "broken.pdf", b"%PDF-1.7\n1 0 obj <<>> endobj");
    let other = written(&cli, "other.pdf", b"\x7fELF\0\0\0\0");
    let good = written(&cli, "good.pdf", &numbered_pages(3).to_bytes());
    let text = written(&cli, "text.txt", b"%PDF is how PDFs begin");
    let cases = [
        (json!({"file_path": sealed}), 1, "opens only with a password"),
        (json!({"file_path": broken}), 1, "is a broken PDF without any page that can be found"),
        (json!({"file_path": other}), 1, "is not a PDF in spite of its name"),
        (json!({"file_path": good, "pages": "4"}), 2, "has 3 pages, 1 to 3; 4 is not among them"),
        (json!({"file_path": good, "pages": "one"}), 2, "expected page numbers like"),
        (json!({"file_path": text, "pages": "1"}), 2, "is not a PDF"),
    ];
    for (arguments, code, told) in cases {
        let ran = cli.call("Read", &arguments);
        assert_eq!(ran.code, code, "{arguments}: {}", ran.stdout);
        assert!((ran.stdout + &ran.stderr).contains(told), "{arguments}: {told}");
    }
    let ran = cli.call("Read", &json!({"file_path": text}));
    assert_eq!(ran.stdout, "     1\t%PDF is how PDFs begin\n");
}

#[test]
fn a_scanned_page_comes_as_its_picture() {
    let cli = CliFixture::new();
    let mut writer = PdfWriter::with_pages(HELVETICA, &["/P Do".to_owned(), String::new()]);
    let picture = writer.add(stream(b"\xff\xd8\xff\xe0 a scan", "/Subtype/Image/Filter/DCTDecode"));
    let pages = String::from_utf8(writer.objects[1].clone()).unwrap();
    writer.objects[1] =
        pages.replace("/Font<<", &format!("/XObject<</P {picture} 0 R>>/Font<<")).into_bytes();
    let path = written(&cli, "scan.pdf", &writer.to_bytes());
    let ran = cli.haft(&["call", "Read", &json!({"file_path": path}).to_string(), "--json"]);
    assert!(ran.stdout.contains("no text: the page is a scan, shown as image 1"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the page is empty"), "{}", ran.stdout);
    assert!(ran.stdout.contains("image/jpeg"), "{}", ran.stdout);
}

#[test]
fn one_page_of_many_costs_little_memory_and_a_bomb_no_more() {
    let cli = CliFixture::new();
    let path = written(&cli, "book.pdf", &numbered_pages(300).to_bytes());
    let arguments = json!({"file_path": path, "pages": "200"}).to_string();
    let (ran, peak) = cli.peak(&["call", "Read", &arguments]);
    assert!(ran.stdout.contains("This is page 200."), "{}", ran.stderr);
    assert!(peak < 128 << 10, "{peak} KiB");

    let mut writer = PdfWriter::with_pages(HELVETICA, &[String::new()]);
    writer.objects[3] = decompression_bomb(300);
    let path = written(&cli, "bomb.pdf", &writer.to_bytes());
    let (ran, peak) = cli.peak(&["call", "Read", &json!({"file_path": path}).to_string()]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(peak < 256 << 10, "{peak} KiB");
}

#[test]
fn a_picture_goes_by_its_content_and_up_to_a_size() {
    let cli = CliFixture::new();
    let png = b"\x89PNG\r\n\x1a\n".to_vec();
    let small = written(&cli, "not-a.txt", &png);
    let ran = cli.haft(&["call", "Read", &json!({"file_path": small}).to_string(), "--json"]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["structured"]["type"], "image");
    assert_eq!(value["structured"]["file"]["type"], "image/png");
    let large = written(&cli, "large.png", &png);
    std::fs::File::options().write(true).open(&large).unwrap().set_len(50 << 20).unwrap();
    let ran = cli.call("Read", &json!({"file_path": large}));
    assert_eq!(ran.code, 1);
    assert!((ran.stdout + &ran.stderr).contains("is an image of 52428800 bytes; images up to 5242880 bytes"));
}
