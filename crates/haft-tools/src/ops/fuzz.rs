//! Mutated documents: web pages, notebooks, encoded text and shell commands.

use haft_tool::Value;
use url::Url;

use super::notebook::{CellChange, CellType};
use super::{charset, denylist, markdown, notebook};

const MAX_PAGE_BYTES: usize = 4_096;

#[test]
fn mutated_pages_become_bounded_markdown() {
    let seeds: [&[u8]; 5] = [
        b"<!doctype html><html><head><title>T</title><style>p{}</style></head><body><nav>menu</nav><main><h1>A</h1><p>b <b>c</b> &amp; <a href=\"/d?e#f\">g</a></p></main></body></html>",
        b"<article><ul><li>one<ol start=3><li>two</ol></ul><pre><code class=\"language-rust\">fn x() {}\n</code></pre><blockquote>q<br>r</blockquote></article>",
        b"<table><thead><tr><th>a<th>b|c</tr></thead><tr><td colspan=2><p>d</p></td></tr></table><img src=x alt='y'><hr>",
        b"<script>if (a < b) { document.write('</p>') }</script><svg><title>x</title></svg><!-- <p> --><![CDATA[z]]>",
        b"<p>&#x1F600;&lt;&nbsp;&bogus; \xc3\xa4</p><a href='javascript:alert(1)'>k</a><textarea><p></textarea><template>t</template>",
    ];
    let base = Url::parse("https://example.com/a/b").unwrap();
    haft_fuzz::check(&seeds, |bytes| {
        let html = String::from_utf8_lossy(bytes);
        let text = markdown::markdown(&html, &base, MAX_PAGE_BYTES);
        // The writer stops at a token, and escapes take more room than what they stand for.
        assert!(text.len() <= 2 * (MAX_PAGE_BYTES + html.len()), "{} bytes", text.len());
        if let Some(at) = text.find("](javascript:") {
            panic!(
                "{}",
                text[..at + 40].chars().rev().take(120).collect::<String>().chars().rev().collect::<String>()
            );
        }
    });
}

#[test]
fn notebook_edits_keep_the_other_cells() {
    let seeds: [&[u8]; 4] = [
        br#"{"cells": [{"cell_type": "code", "execution_count": 1, "id": "aa", "metadata": {}, "outputs": [{"output_type": "stream", "text": ["x\n"]}], "source": ["print(1)\n", "2"]}], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}"#,
        b"{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": \"# A\"\n  },\n  {\n   \"cell_type\": \"raw\",\n   \"source\": []\n  }\n ],\n \"nbformat\": 4,\n \"nbformat_minor\": 2\n}\n",
        br#"{"nbformat":4,"cells":[{"cell_type":"code","outputs":[{"output_type":"error","traceback":["\u001b[31mE\u001b[0m"]},{"data":{"image/png":"aGk=","text/plain":"<x>"}}],"source":"\ud83d\ude00"}],"cells":[]}"#,
        b"\xef\xbb\xbf{\"cells\":[],\"nbformat\":4}",
    ];
    haft_fuzz::check(&seeds, |bytes| {
        let read = notebook::read(bytes);
        let Some(before) = cells(bytes) else { return };
        let source = "new\n\u{e9}";
        let changes = [
            CellChange::Insert { after: None, source, kind: CellType::Code },
            CellChange::Replace { cell: "cell-0", source, to: Some(CellType::Markdown) },
            CellChange::Delete { cell: "cell-0" },
        ];
        for change in changes {
            let Ok((edited, _)) = notebook::edit(bytes, "a.ipynb", change) else { continue };
            assert!(read.is_some());
            let after = cells(&edited).unwrap_or_else(|| panic!("{change:?}: {}", edited.escape_ascii()));
            match change {
                CellChange::Insert { .. } => assert_eq!(after[1..], before[..]),
                CellChange::Delete { .. } => assert_eq!(after.len() + 1, before.len()),
                CellChange::Replace { .. } => assert_eq!(after.len(), before.len()),
            }
        }
    });
}

fn cells(bytes: &[u8]) -> Option<Vec<Value>> {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let notebook: Value = serde_json::from_slice(text).ok()?;
    Some(notebook.get("cells")?.as_array()?.clone())
}

#[test]
fn decoded_text_encodes_to_the_same_bytes() {
    let seeds: [&[u8]; 6] = [
        "a\r\nb \u{e4}\u{1f600}".as_bytes(),
        b"\xef\xbb\xbfutf-8 with a mark",
        b"\xff\xfea\0b\0\n\0\x3d\xd8\x00\xde",
        b"\xfe\xff\0a\0b\0\n",
        b"na\xefve caf\xe9 \x93quoted\x94\r\n",
        b"\x93\xfa\x96\x7b\x8c\xea\n\x83e\x83X\x83g",
    ];
    haft_fuzz::check(&seeds, |bytes| {
        if let Some(decoded) = charset::decode(bytes) {
            let encoded = charset::encode(&decoded.text, decoded.charset, decoded.bom);
            assert_eq!(encoded.as_deref(), Ok(bytes), "{decoded:?}");
        }
    });
}

#[test]
fn mutated_commands_are_checked() {
    let seeds: [&[u8]; 4] = [
        b"sudo rm -rf / --no-preserve-root; ls | grep 'a b'",
        b"env X=1 bash -c \"rm -rf \\\"$HOME\\\"\" && echo $(dd if=/dev/zero of=/dev/sda)",
        b":(){ :|:& };: # comment",
        b"cat <<EOF >> x\n`shutdown -h now`\nEOF",
    ];
    haft_fuzz::check(&seeds, |bytes| {
        let _ = denylist::denied(&String::from_utf8_lossy(bytes));
    });
}
