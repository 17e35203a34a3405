//! Draws the lines of a terminal as an SVG picture.

use std::fmt::Write as _;

const FONT_SIZE: usize = 14;
const LINE_HEIGHT: usize = 20;
const CHAR_WIDTH_TENTHS: usize = 84;
const MARGIN_PIXELS: usize = 16;
const TITLE_HEIGHT: usize = 34;

/// Draws the lines, which may have escape sequences for colours, in a terminal window.
pub(super) fn draw(lines: &[String], columns: usize, label: &str) -> String {
    let width = MARGIN_PIXELS * 2 + columns * CHAR_WIDTH_TENTHS / 10;
    let height = TITLE_HEIGHT + MARGIN_PIXELS + lines.len() * LINE_HEIGHT;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n",
        escaped(label)
    );
    for (place, colour) in [(20, "#ff5f56"), (40, "#ffbd2e"), (60, "#27c93f")] {
        let _ = writeln!(svg, "<circle cx=\"{place}\" cy=\"18\" r=\"6\" fill=\"{colour}\"/>");
    }
    let _ = writeln!(
        svg,
        "<g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" font-size=\"{FONT_SIZE}\" xml:space=\"preserve\">"
    );
    let mut style = TextStyle::default();
    for (number, line) in lines.iter().enumerate() {
        let y = TITLE_HEIGHT + (number + 1) * LINE_HEIGHT - 6;
        let _ = write!(svg, "<text x=\"{MARGIN_PIXELS}\" y=\"{y}\" fill=\"#d7dae0\">");
        for (attributes, text) in spans(line, &mut style) {
            let _ = write!(svg, "<tspan{attributes}>{}</tspan>", escaped(text));
        }
        svg.push_str("</text>\n");
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// How the terminal shows the next character; tmux carries it over from line to line.
#[derive(Default)]
struct TextStyle {
    is_bold: bool,
    is_dim: bool,
    colour: Option<&'static str>,
}

impl TextStyle {
    fn apply(&mut self, code: &str) {
        match code {
            "" | "0" => *self = Self::default(),
            "1" => self.is_bold = true,
            "2" => self.is_dim = true,
            "22" => (self.is_bold, self.is_dim) = (false, false),
            "31" => self.colour = Some("#ff7b72"),
            "32" => self.colour = Some("#7ee787"),
            "33" => self.colour = Some("#e3b341"),
            "36" => self.colour = Some("#76d9e6"),
            "39" => self.colour = None,
            _ => {}
        }
    }

    fn attributes(&self) -> String {
        let weight = if self.is_bold { " font-weight=\"bold\"" } else { "" };
        let colour = self.colour.or(self.is_dim.then_some("#8a919e"));
        let fill = colour.map(|colour| format!(" fill=\"{colour}\"")).unwrap_or_default();
        format!("{weight}{fill}")
    }
}

/// Splits a line at its SGR escape sequences; each part has the SVG attributes of its style.
fn spans<'a>(line: &'a str, style: &mut TextStyle) -> Vec<(String, &'a str)> {
    let mut all = Vec::new();
    let mut rest = line;
    while let Some(start) = rest.find("\u{1b}[") {
        if start > 0 {
            all.push((style.attributes(), &rest[..start]));
        }
        let Some(end) = rest[start..].find('m') else { break };
        rest[start + 2..start + end].split(';').for_each(|code| style.apply(code));
        rest = &rest[start + end + 1..];
    }
    if !rest.is_empty() {
        all.push((style.attributes(), rest));
    }
    all
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
