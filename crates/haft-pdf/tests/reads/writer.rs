//! A small writer of PDFs, so that tests say themselves what they read.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// Objects with the numbers 1, 2, 3, …; the first is the catalog.
#[derive(Default, Clone)]
pub(crate) struct Writer {
    pub(crate) objects: Vec<Vec<u8>>,
}

impl Writer {
    /// Adds an object and gives its number.
    pub(crate) fn add(&mut self, object: impl AsRef<[u8]>) -> usize {
        self.objects.push(object.as_ref().to_vec());
        self.objects.len()
    }

    /// A document with these pages, all with the font `F` of this dictionary.
    pub(crate) fn document(font: &str, pages: &[String]) -> Self {
        let mut writer = Self::default();
        writer.add("<</Type/Catalog/Pages 2 0 R>>");
        writer.add("");
        writer.add(font);
        let mut kids = String::new();
        for page in pages {
            let content = writer.add(packed(page.as_bytes(), ""));
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
        let mut places = Vec::new();
        for (index, object) in self.objects.iter().enumerate() {
            places.push(file.len());
            writeln!(file, "{} 0 obj", index + 1).unwrap();
            file.extend_from_slice(object);
            file.extend_from_slice(b"\nendobj\n");
        }
        (file, places)
    }

    /// The file with a table in text.
    pub(crate) fn file(&self) -> Vec<u8> {
        let (mut file, places) = self.body();
        let table = file.len();
        let size = places.len() + 1;
        write!(file, "xref\n0 {size}\n0000000000 65535 f \n").unwrap();
        for place in places {
            writeln!(file, "{place:010} 00000 n ").unwrap();
        }
        write!(file, "trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n").unwrap();
        file
    }

    /// The file without any table.
    pub(crate) fn without_table(&self) -> Vec<u8> {
        self.body().0
    }

    /// The file with all that is no stream in one stream of objects, and a compressed table with a predictor.
    pub(crate) fn modern_file(&self) -> Vec<u8> {
        let mut file = b"%PDF-1.7\n".to_vec();
        let mut records: Vec<[u8; 5]> = vec![[0, 0, 0, 0, 0]; self.objects.len() + 3];
        let (mut index, mut inner, mut count) = (String::new(), Vec::new(), 0_u8);
        let pack = self.objects.len() + 1;
        let at = |kind: u8, place: usize, more: u8| {
            let place = u32::try_from(place).unwrap().to_be_bytes();
            [kind, place[1], place[2], place[3], more]
        };
        for (place, object) in self.objects.iter().enumerate() {
            let id = place + 1;
            if object.ends_with(b"endstream") {
                records[id] = at(1, file.len(), 0);
                writeln!(file, "{id} 0 obj").unwrap();
                file.extend_from_slice(object);
                file.extend_from_slice(b"\nendobj\n");
            } else {
                index += &format!("{id} {} ", inner.len());
                inner.extend_from_slice(object);
                inner.push(b' ');
                records[id] = at(2, pack, count);
                count += 1;
            }
        }
        let mut all = index.clone().into_bytes();
        all.extend(inner);
        records[pack] = at(1, file.len(), 0);
        writeln!(file, "{pack} 0 obj").unwrap();
        file.extend(packed(&all, &format!("/Type/ObjStm/N {count}/First {}", index.len())));
        file.extend_from_slice(b"\nendobj\n");
        let table = file.len();
        records[pack + 1] = at(1, table, 0);
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
        writeln!(file, "{} 0 obj", pack + 1).unwrap();
        file.extend(packed(&rows, &dict));
        write!(file, "\nendobj\nstartxref\n{table}\n%%EOF\n").unwrap();
        file
    }
}

/// A compressed stream.
pub(crate) fn packed(bytes: &[u8], dict: &str) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).unwrap();
    stream(&packer.finish().unwrap(), &format!("/Filter/FlateDecode{dict}"))
}

/// A small stream that holds this many MiB of blanks. A test's own memory would count as that of its children.
pub(crate) fn bomb(mebibytes: usize) -> Vec<u8> {
    let mut packer = ZlibEncoder::new(Vec::new(), Compression::best());
    for _ in 0..mebibytes {
        packer.write_all(&vec![b' '; 1 << 20]).unwrap();
    }
    stream(&packer.finish().unwrap(), "/Filter/FlateDecode")
}

pub(crate) fn stream(bytes: &[u8], dict: &str) -> Vec<u8> {
    let mut made = format!("<<{dict}/Length {}>>\nstream\n", bytes.len()).into_bytes();
    made.extend_from_slice(bytes);
    made.extend_from_slice(b"\nendstream");
    made
}

/// A page's program that writes lines from the top, 14 points apart, from `left` on.
pub(crate) fn lines(left: u32, lines: &[&str]) -> String {
    let mut program = format!("BT /F 10 Tf 14 TL {left} 750 Td\n");
    for line in lines {
        program += &format!("({line}) Tj T*\n");
    }
    program + "ET\n"
}

pub(crate) const HELVETICA: &str = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>";

/// A document of `count` pages that say which they are.
pub(crate) fn book(count: usize) -> Writer {
    let pages: Vec<String> = (1..=count)
        .map(|page| lines(72, &[&format!("This is page {page}."), "It has a second line."]))
        .collect();
    Writer::document(HELVETICA, &pages)
}
