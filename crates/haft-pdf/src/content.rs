//! Interprets content streams: what a page shows, and where.

use std::collections::HashMap;
use std::rc::Rc;

use crate::PdfError;
use crate::file::PdfFile;
use crate::font::Font;
use crate::layout::{PageLayout, PlacedGlyph};
use crate::lexer::{Lexer, Token, is_space};
use crate::matrix::Matrix;
use crate::object::{Dict, Object, ObjectId, PdfStream};

/// Nesting of forms.
const MAX_FORM_DEPTH: u32 = 12;
/// What a form costs beside its content.
const FORM_STEPS: u64 = 16;
const GLYPH_STEPS: u64 = 4;
const MAX_SAVED_STATES: usize = 256;
/// Operands of one operator. The standard has no operator with more than 33.
const MAX_OPERANDS: usize = 64;
const MAX_CACHED_FONTS: usize = 512;
/// What follows an inline image must be readable for this many bytes.
const CHECKED_BYTES_AFTER_IMAGE: usize = 16;

#[derive(Debug, Clone)]
struct GraphicsState {
    ctm: Matrix,
    font: Option<Rc<Font>>,
    font_size: f64,
    char_spacing: f64,
    word_spacing: f64,
    horizontal_scale: f64,
    leading: f64,
    rise: f64,
}

/// The text that replaces what a marked-content sequence shows.
struct ActualText {
    /// Nesting of the sequence.
    depth: u32,
    /// The first glyph takes it.
    text: Option<Rc<str>>,
}

/// Fonts of a document that have been loaded.
pub(crate) type FontCache = HashMap<ObjectId, Rc<Font>>;

pub(crate) struct ContentInterpreter<'a, 'f> {
    file: &'a PdfFile<'f>,
    fonts: &'a mut FontCache,
    pub(crate) layout: PageLayout,
    pub(crate) image_count: usize,
    pub(crate) last_image: Option<Rc<PdfStream>>,
    /// The rotation of the page.
    page_matrix: Matrix,
    state: GraphicsState,
    saved_states: Vec<GraphicsState>,
    text_matrix: Matrix,
    line_matrix: Matrix,
    form_depth: u32,
    marked_depth: u32,
    actual_text: Option<ActualText>,
}

impl<'a, 'f> ContentInterpreter<'a, 'f> {
    pub(crate) fn new(file: &'a PdfFile<'f>, fonts: &'a mut FontCache, ctm: Matrix) -> Self {
        let state = GraphicsState {
            ctm,
            font: None,
            font_size: 0.0,
            char_spacing: 0.0,
            word_spacing: 0.0,
            horizontal_scale: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        Self {
            file,
            fonts,
            layout: PageLayout::default(),
            image_count: 0,
            last_image: None,
            page_matrix: ctm,
            state,
            saved_states: Vec::new(),
            text_matrix: Matrix::IDENTITY,
            line_matrix: Matrix::IDENTITY,
            form_depth: 0,
            marked_depth: 0,
            actual_text: None,
        }
    }

    pub(crate) fn run(&mut self, content: &[u8], resources: &Dict) -> Result<(), PdfError> {
        let mut lexer = Lexer::for_content(content);
        let mut operands: Vec<Object> = Vec::new();
        loop {
            let before = lexer.position;
            match lexer.next() {
                Token::Value(value) => {
                    if operands.len() < MAX_OPERANDS {
                        operands.push(value);
                    }
                }
                Token::Keyword(b"BI") => {
                    lexer.position = inline_image_end(content, lexer.position);
                    self.image_count += 1;
                    operands.clear();
                }
                Token::Keyword(operator) => {
                    self.execute(operator, &operands, resources)?;
                    operands.clear();
                }
                Token::End => return Ok(()),
            }
            self.file.budget.spend_parsed(lexer.position - before)?;
            if self.layout.is_full() {
                return Ok(());
            }
        }
    }

    fn execute(&mut self, operator: &[u8], operands: &[Object], resources: &Dict) -> Result<(), PdfError> {
        let number = |index: usize| operands.get(index).and_then(Object::number).unwrap_or(0.0);
        let first_name = || operands.first().and_then(Object::name).unwrap_or_default();
        match operator {
            b"q" if self.saved_states.len() < MAX_SAVED_STATES => self.saved_states.push(self.state.clone()),
            b"Q" => {
                if let Some(state) = self.saved_states.pop() {
                    self.state = state;
                }
            }
            b"cm" => {
                if let Some(matrix) = Matrix::from_items(operands) {
                    self.state.ctm = matrix.then(self.state.ctm);
                }
            }
            b"BT" => self.set_text_matrix(Matrix::IDENTITY),
            b"Tc" => self.state.char_spacing = number(0),
            b"Tw" => self.state.word_spacing = number(0),
            b"Tz" => self.state.horizontal_scale = number(0) / 100.0,
            b"TL" => self.state.leading = number(0),
            b"Ts" => self.state.rise = number(0),
            b"Tf" => {
                self.state.font = Some(self.font(first_name(), resources)?);
                self.state.font_size = number(1);
            }
            b"Td" => self.move_line(number(0), number(1)),
            b"TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            b"Tm" => {
                if let Some(matrix) = Matrix::from_items(operands) {
                    self.set_text_matrix(matrix);
                }
            }
            b"T*" => self.move_line(0.0, -self.state.leading),
            b"Tj" => self.show_text(operands)?,
            b"'" => {
                self.move_line(0.0, -self.state.leading);
                self.show_text(operands)?;
            }
            b"\"" => {
                (self.state.word_spacing, self.state.char_spacing) = (number(0), number(1));
                self.move_line(0.0, -self.state.leading);
                self.show_text(operands.get(2..).unwrap_or_default())?;
            }
            b"TJ" => self.show_text(operands.first().map(Object::array).unwrap_or_default())?,
            b"Do" => self.draw_xobject(first_name(), resources)?,
            b"BDC" => {
                self.marked_depth += 1;
                self.begin_marked_content(operands, resources)?;
            }
            b"BMC" => self.marked_depth += 1,
            b"EMC" => {
                if self.actual_text.as_ref().is_some_and(|actual| actual.depth == self.marked_depth) {
                    self.actual_text = None;
                }
                self.marked_depth = self.marked_depth.saturating_sub(1);
            }
            _ => {}
        }
        Ok(())
    }

    fn set_text_matrix(&mut self, matrix: Matrix) {
        self.line_matrix = matrix;
        self.text_matrix = matrix;
    }

    fn move_line(&mut self, x: f64, y: f64) {
        self.set_text_matrix(Matrix::translation(x, y).then(self.line_matrix));
    }

    /// Shows strings; numbers between them move the position.
    fn show_text(&mut self, items: &[Object]) -> Result<(), PdfError> {
        let Some(font) = self.state.font.clone() else { return Ok(()) };
        for item in items {
            self.file.budget.spend(1)?;
            match item {
                Object::String(string) => self.show_string(&font, string)?,
                Object::Number(thousandths) => {
                    let distance = -thousandths / 1_000.0 * self.state.font_size;
                    if font.vertical {
                        self.advance(0.0, distance);
                    } else {
                        self.advance(distance * self.state.horizontal_scale, 0.0);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn show_string(&mut self, font: &Font, string: &[u8]) -> Result<(), PdfError> {
        let GraphicsState {
            font_size: size, char_spacing, word_spacing, horizontal_scale, rise, ctm, ..
        } = self.state;
        font.decode(string, |glyph| {
            self.file.budget.spend(GLYPH_STEPS)?;
            let word_spacing = if glyph.is_space { word_spacing } else { 0.0 };
            // The extent of the glyph, and how far the position moves.
            let (extent, step) = if font.vertical {
                ((0.0, -size.abs()), (0.0, -size.abs() - char_spacing - word_spacing))
            } else {
                let width = glyph.width * size + char_spacing;
                ((width * horizontal_scale, 0.0), ((width + word_spacing) * horizontal_scale, 0.0))
            };
            let matrix = self.text_matrix.then(ctm);
            let start = matrix.apply(0.0, rise);
            let from_start = |x: f64, y: f64| {
                let point = matrix.apply(x, rise + y);
                (point.0 - start.0, point.1 - start.1)
            };
            let direction = if font.vertical {
                from_start(0.0, -1.0)
            } else {
                from_start(size.signum() * horizontal_scale.signum(), 0.0)
            };
            let up = from_start(0.0, size);
            let text = match &mut self.actual_text {
                Some(actual) => Some(actual.text.take().unwrap_or_default()),
                None => glyph.text,
            };
            self.layout.add(&PlacedGlyph {
                start,
                end: matrix.apply(extent.0, extent.1 + rise),
                direction,
                // `hypot` would make every start of the program load the math library.
                size: (up.0 * up.0 + up.1 * up.1).sqrt(),
                text: text.as_deref(),
            });
            self.advance(step.0, step.1);
            Ok(())
        })
    }

    fn advance(&mut self, x: f64, y: f64) {
        self.text_matrix = Matrix::translation(x, y).then(self.text_matrix);
    }

    fn font(&mut self, name: &str, resources: &Dict) -> Result<Rc<Font>, PdfError> {
        let fonts = self.file.get(resources, "Font")?.dict().unwrap_or_default();
        let entry = fonts.get(name);
        if let Object::Reference(id) = entry
            && let Some(font) = self.fonts.get(&id)
        {
            return Ok(Rc::clone(font));
        }
        // A missing font is replaced by a default one.
        let dict = self.file.resolve(&entry)?.dict().unwrap_or_default();
        let font = Rc::new(Font::load(self.file, &dict)?);
        if let Object::Reference(id) = entry {
            if self.fonts.len() >= MAX_CACHED_FONTS {
                self.fonts.clear();
            }
            self.fonts.insert(id, Rc::clone(&font));
        }
        Ok(font)
    }

    fn draw_xobject(&mut self, name: &str, resources: &Dict) -> Result<(), PdfError> {
        let xobjects = self.file.get(resources, "XObject")?.dict().unwrap_or_default();
        let Some(stream) = self.file.get(&xobjects, name)?.stream() else { return Ok(()) };
        if stream.dict.has_name("Subtype", "Image") {
            self.image_count += 1;
            self.last_image = Some(stream);
        } else if stream.dict.has_name("Subtype", "Form") {
            self.run_form(&stream, resources)?;
        }
        Ok(())
    }

    fn run_form(&mut self, stream: &PdfStream, resources: &Dict) -> Result<(), PdfError> {
        self.file.budget.spend(FORM_STEPS)?;
        if self.form_depth >= MAX_FORM_DEPTH {
            return Ok(());
        }
        let content = self.file.decode(stream)?;
        let form_resources = self.file.get(&stream.dict, "Resources")?.dict();
        let matrix = self.file.get(&stream.dict, "Matrix")?;
        let outer =
            (self.state.clone(), self.text_matrix, self.line_matrix, std::mem::take(&mut self.saved_states));
        if let Some(matrix) = Matrix::from_items(matrix.array()) {
            self.state.ctm = matrix.then(self.state.ctm);
        }
        self.form_depth += 1;
        let result = self.run(&content, form_resources.as_deref().unwrap_or(resources));
        self.form_depth -= 1;
        (self.state, self.text_matrix, self.line_matrix, self.saved_states) = outer;
        result
    }

    /// Shows a form field or a free text annotation by its appearance stream.
    pub(crate) fn show_annotation(&mut self, annotation: &Dict) -> Result<(), PdfError> {
        if !annotation.has_name("Subtype", "Widget") && !annotation.has_name("Subtype", "FreeText") {
            return Ok(());
        }
        let appearances = self.file.get(annotation, "AP")?.dict().unwrap_or_default();
        let appearance = match self.file.get(&appearances, "N")? {
            Object::Dict(states) => {
                let state = self.file.get(annotation, "AS")?;
                self.file.get(&states, state.name().unwrap_or_default())?
            }
            other => other,
        };
        let Some(stream) = appearance.stream() else { return Ok(()) };
        let corner = |dict: &Dict, key: &str| -> Result<(f64, f64), PdfError> {
            let rectangle = self.file.get(dict, key)?;
            let number = |index: usize| rectangle.array().get(index).and_then(Object::number).unwrap_or(0.0);
            Ok((number(0), number(1)))
        };
        let (target, source) = (corner(annotation, "Rect")?, corner(&stream.dict, "BBox")?);
        let outer = self.state.ctm;
        let translation = Matrix::translation(target.0 - source.0, target.1 - source.1);
        self.state.ctm = translation.then(self.page_matrix);
        let result = self.run_form(&stream, &Dict::default());
        self.state.ctm = outer;
        result
    }

    /// Remembers the text that a marked-content sequence declares for what it shows.
    fn begin_marked_content(&mut self, operands: &[Object], resources: &Dict) -> Result<(), PdfError> {
        let dict = match operands.get(1) {
            Some(Object::Dict(dict)) => Rc::clone(dict),
            // Strings outside of content streams are encrypted one by one, which is not supported.
            Some(Object::Name(name)) if !self.file.is_encrypted() => {
                let properties = self.file.get(resources, "Properties")?.dict().unwrap_or_default();
                self.file.get(&properties, name)?.dict().unwrap_or_default()
            }
            _ => return Ok(()),
        };
        if let Some(text) = self.file.get(&dict, "ActualText")?.string()
            && self.actual_text.is_none()
        {
            self.file.budget.spend_parsed(text.len())?;
            let text = Some(decode_text_string(text).into());
            self.actual_text = Some(ActualText { depth: self.marked_depth, text });
        }
        Ok(())
    }
}

/// Decodes a string that no font applies to: UTF-16 or UTF-8 with a byte order mark, else nearly Latin-1.
fn decode_text_string(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0.into_owned(),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Returns the offset after the `EI` that ends an inline image which begins before `start`.
fn inline_image_end(content: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(found) = memchr::memmem::find(&content[at..], b"EI") {
        let (keyword, end) = (at + found, at + found + 2);
        let is_boundary = |byte: Option<&u8>| byte.is_none_or(|byte| is_space(*byte));
        // The image's bytes may contain `EI`. What follows the true one is readable.
        let after = &content[end..content.len().min(end + CHECKED_BYTES_AFTER_IMAGE)];
        let is_readable = after.iter().all(|byte| is_space(*byte) || (0x20..0x7f).contains(byte));
        if keyword > start
            && is_boundary(content.get(keyword - 1))
            && is_boundary(content.get(end))
            && is_readable
        {
            return end;
        }
        at = end;
    }
    content.len()
}
