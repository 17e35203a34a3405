//! Real pages, and malicious ones.

use super::*;

fn md(html: &str) -> String {
    markdown(html, &Url::parse("https://example.com/a/page").unwrap(), 1 << 20)
}

#[test]
fn common_elements_are_converted() {
    assert_eq!(
        md(
            "<html><head><title>T</title><style>x{}</style></head><body><h1>One  &amp; two</h1>\n<p>Some <b>bold</b>, \
            <em>slanted </em>and <code>a_b*c</code> words.<p>Next<br>line</body>"
        ),
        "# One & two\n\nSome **bold**, *slanted* and `a_b*c` words.\n\nNext\nline"
    );
    assert_eq!(
        md("<ul><li>a<li>b<ol start=3><li>c</li><li>d<p>e</ol></li><li>f</ul><p>g"),
        "- a\n- b\n  3. c\n  4. d\n\n    e\n- f\n\ng"
    );
    assert_eq!(md("<blockquote><p>a<p>b</blockquote>c"), "> a\n>\n> b\n\nc");
    assert_eq!(md("a<hr>b"), "a\n\n---\n\nb");
    assert_eq!(md("<dl><dt>term<dd>meaning</dl>"), "term\n: meaning");
}

#[test]
fn links_are_absolute() {
    assert_eq!(
        md(
            "<a href='/x'>X</a> <a href='y?z'> Y\n y </a><a href='#here'>here</a> <a href='javascript:x()'>j</a> <a \
            href='/empty'><img src=a.png></a><a href='https://e.org/'>https://e.org/</a> <img alt='A cat' src='c.png'>"
        ),
        "[X](https://example.com/x) [Y y](https://example.com/a/y?z) here j https://e.org/ \
         ![A cat](https://example.com/a/c.png)"
    );
    assert_eq!(md("<base href='https://other.example/d/'><a href=e>f</a>"), "[f](https://other.example/d/e)");
}

#[test]
fn code_is_verbatim() {
    assert_eq!(
        md(
            "<p>See:<pre><code class='hljs language-rust'>\nfn main() {\n    let a = &quot;*b*&quot;;\n}\n</code></pre>End"
        ),
        "See:\n\n```rust\nfn main() {\n    let a = \"*b*\";\n}\n```\n\nEnd"
    );
    assert_eq!(md("<pre>a\n```\nb</pre>"), "````\na\n```\nb\n````");
}

#[test]
fn tables_have_rows_and_no_padding() {
    assert_eq!(
        md(
            "<table><thead><tr><th>Name<th>Size</tr></thead><tr><td><p>a|b</p><td><b>1</b><tr><td>c</td><td></td></tr></table>x"
        ),
        "| Name | Size |\n|---|---|\n| a\\|b | **1** |\n| c | |\n\nx"
    );
    assert_eq!(
        md("<table><tr><td><table><tr><td>1<td>2</table><td>side</table>"),
        "| 1 | 2 |\n|---|---|\n\nside"
    );
}

#[test]
fn boilerplate_scripts_and_hidden_text_are_skipped() {
    let page = "<header>Logo</header><nav><ul><li>Home</nav><div hidden>ignore all</div><span style='display: none'>x</span>\
                <main><article><header><h2>Title</h2></header><p>Words.<script>if (a<b) {}</script><svg><title>s</title></svg>\
                <button>Buy</button></article></main><aside>Ads</aside><footer>Imprint</footer>";
    assert_eq!(md(&format!("{page}{}", "<p>tail")).lines().next(), Some("## Title"));
    let text = md(&page.replace("Words.", &"Words. ".repeat(60)));
    for gone in ["Logo", "Home", "ignore", "if (a", "Buy", "Ads", "Imprint"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    assert!(md("<nav>All of this page is called navigation.").contains("All of this page"));
    let unclosed = format!("<nav>menu<main>{}", "content ".repeat(50));
    assert!(md(&unclosed).starts_with("content"));
}

#[test]
fn link_ends_before_a_code_block() {
    assert_eq!(md("<a href=/x>y<pre>z</a></pre>"), "[y](https://example.com/x)\n\n```\nz\n```");
    assert_eq!(md("<a href=/x>y<pre>z"), "[y](https://example.com/x)\n\n```\nz\n```");
}

#[test]
fn title_replaces_a_missing_heading() {
    assert_eq!(md("<title>A\n page</title><p>b"), "# A page\n\nb");
}

#[test]
fn malicious_page_has_bounded_output() {
    for piece in [
        "<div>",
        "<b><i>",
        "<ul><li>",
        "<blockquote>",
        "<table><tr><td>",
        "<a href=x>",
        "<pre>",
        "<p><b>x",
        "</div>",
        "<svg>",
        "<h1>",
        "&amp;",
        "<td>|",
        "<a href=x>y<a>",
    ] {
        let size = if piece == "<div>" { 1 << 20 } else { 1 << 18 };
        let html = format!("{}end", piece.repeat(size / piece.len()));
        let text = md(&html);
        assert!(text.len() < 3 * size, "{piece}: {}", text.len());
    }
    let one = format!("<p {}>x", "a=b ".repeat(200_000));
    assert_eq!(md(&one), "x");
    let many_quoted = format!("<p {}>x", "a=\"b\" ".repeat(100_000));
    assert_eq!(md(&many_quoted), "x");
    assert!(markdown(&"word ".repeat(1 << 20), &Url::parse("http://e.org").unwrap(), 10_000).len() < 11_000);
}

proptest::proptest! {
    #[test]
    fn random_tags_do_not_panic(pieces in proptest::collection::vec("(</?)?(p|b|a|a href=x|pre|code|table|tr|td|ul|li|nav|main|h1|blockquote|svg|title|br|img alt=i)?>?|[ \n|`*ä]|word", 0..60)) {
        let _ = md(&pieces.concat());
    }
}
