//! Writes small PDF files for tests.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Objects numbered from 1; the first is the catalog.
#[derive(Default, Clone)]
pub(crate) struct PdfWriter {
    pub(crate) objects: Vec<Vec<u8>>,
}

impl PdfWriter {
    /// Adds an object and returns its number.
    pub(crate) fn add(&mut self, object: impl AsRef<[u8]>) -> usize {
        self.objects.push(object.as_ref().to_vec());
        self.objects.len()
    }

    /// Creates a document from the content streams of its pages. The font `F` has the dictionary `font`.
    pub(crate) fn with_pages(font: &str, pages: &[String]) -> Self {
        let mut writer = Self::default();
        writer.add("<</Type/Catalog/Pages 2 0 R>>");
        writer.add("");
        writer.add(font);
        let mut kids = String::new();
        for page in pages {
            let content = writer.add(compressed_stream(page.as_bytes(), ""));
            let page = writer.add(format!("<</Type/Page/Parent 2 0 R/Contents {content} 0 R>>"));
            kids += &format!("{page} 0 R ");
        }
        let count = pages.len();
        writer.objects[1] = format!(
            "<</Type/Pages/Count {count}/Kids[{kids}]/Resources<</Font<</F 3 0 R>>>>/MediaBox[0 0 600 800]>>"
        )
        .into_bytes();
        writer
    }

    fn body(&self) -> (Vec<u8>, Vec<usize>) {
        let mut file = b"%PDF-1.7\n".to_vec();
        let mut offsets = Vec::new();
        for (index, object) in self.objects.iter().enumerate() {
            offsets.push(file.len());
            writeln!(file, "{} 0 obj", index + 1).unwrap();
            file.extend_from_slice(object);
            file.extend_from_slice(b"\nendobj\n");
        }
        (file, offsets)
    }

    /// Returns the file with a cross-reference table.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (mut file, offsets) = self.body();
        let table = file.len();
        let size = offsets.len() + 1;
        write!(file, "xref\n0 {size}\n0000000000 65535 f \n").unwrap();
        for offset in offsets {
            writeln!(file, "{offset:010} 00000 n ").unwrap();
        }
        write!(file, "trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n").unwrap();
        file
    }

    /// Returns the file without cross-reference table and trailer.
    pub(crate) fn to_bytes_without_xref(&self) -> Vec<u8> {
        self.body().0
    }

    /// Returns the file with an object stream and a compressed cross-reference stream with a predictor.
    pub(crate) fn to_bytes_with_object_streams(&self) -> Vec<u8> {
        let mut file = b"%PDF-1.7\n".to_vec();
        let mut records: Vec<[u8; 5]> = vec![[0, 0, 0, 0, 0]; self.objects.len() + 3];
        let (mut index, mut inner, mut count) = (String::new(), Vec::new(), 0_u8);
        let stream_id = self.objects.len() + 1;
        let at = |kind: u8, offset: usize, last: u8| {
            let offset = u32::try_from(offset).unwrap().to_be_bytes();
            [kind, offset[1], offset[2], offset[3], last]
        };
        for (index_in_file, object) in self.objects.iter().enumerate() {
            let id = index_in_file + 1;
            if object.ends_with(b"endstream") {
                records[id] = at(1, file.len(), 0);
                writeln!(file, "{id} 0 obj").unwrap();
                file.extend_from_slice(object);
                file.extend_from_slice(b"\nendobj\n");
            } else {
                index += &format!("{id} {} ", inner.len());
                inner.extend_from_slice(object);
                inner.push(b' ');
                records[id] = at(2, stream_id, count);
                count += 1;
            }
        }
        let mut all = index.clone().into_bytes();
        all.extend(inner);
        records[stream_id] = at(1, file.len(), 0);
        writeln!(file, "{stream_id} 0 obj").unwrap();
        file.extend(compressed_stream(&all, &format!("/Type/ObjStm/N {count}/First {}", index.len())));
        file.extend_from_slice(b"\nendobj\n");
        let table = file.len();
        records[stream_id + 1] = at(1, table, 0);
        let mut rows = Vec::new();
        let mut above = [0; 5];
        for record in &records {
            rows.push(2);
            rows.extend(record.iter().zip(above).map(|(now, above)| now.wrapping_sub(above)));
            above = *record;
        }
        let dict = format!(
            "/Type/XRef/W[1 3 1]/Size {}/Root 1 0 R/DecodeParms<</Predictor 12/Columns 5>>",
            records.len()
        );
        writeln!(file, "{} 0 obj", stream_id + 1).unwrap();
        file.extend(compressed_stream(&rows, &dict));
        write!(file, "\nendobj\nstartxref\n{table}\n%%EOF\n").unwrap();
        file
    }
}

/// Returns a Flate stream object.
pub(crate) fn compressed_stream(bytes: &[u8], dict: &str) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    stream(&encoder.finish().unwrap(), &format!("/Filter/FlateDecode{dict}"))
}

/// Returns a small stream object that decodes to this many MiB of spaces. It is compressed in pieces, as the test's own
/// memory would count in measurements of its children.
pub(crate) fn decompression_bomb(mebibytes: usize) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for _ in 0..mebibytes {
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    stream(&encoder.finish().unwrap(), "/Filter/FlateDecode")
}

pub(crate) fn stream(bytes: &[u8], dict: &str) -> Vec<u8> {
    let mut object = format!("<<{dict}/Length {}>>\nstream\n", bytes.len()).into_bytes();
    object.extend_from_slice(bytes);
    object.extend_from_slice(b"\nendstream");
    object
}

/// Returns a content stream that shows lines from the top down, 14 points apart.
pub(crate) fn text_lines(left: u32, lines: &[&str]) -> String {
    let mut content = format!("BT /F 10 Tf 14 TL {left} 750 Td\n");
    for line in lines {
        content += &format!("({line}) Tj T*\n");
    }
    content + "ET\n"
}

pub(crate) const HELVETICA: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

/// Creates a document whose pages contain their numbers.
pub(crate) fn numbered_pages(count: usize) -> PdfWriter {
    let pages: Vec<String> = (1..=count)
        .map(|page| text_lines(72, &[&format!("This is page {page}."), "It has a second line."]))
        .collect();
    PdfWriter::with_pages(HELVETICA, &pages)
}
