//! The program of a page: what it writes, and where.

use std::collections::HashMap;
use std::rc::Rc;

use crate::Fault;
use crate::file::File;
use crate::font::Font;
use crate::layout::{Glyph, Sheet};
use crate::lexer::{Lexer, Token};
use crate::matrix::Matrix;
use crate::object::{Dict, Id, Object, Stream};

/// How deep forms may lie in each other.
const MOST_FORMS: u32 = 12;
/// What starting a form costs.
const FORM_STEPS: u64 = 16;
const MOST_SAVED: usize = 256;
const MOST_OPERANDS: usize = 512;
const MOST_FONTS: usize = 512;

#[derive(Debug, Clone)]
struct State {
    ctm: Matrix,
    font: Option<Rc<Font>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    stretch: f64,
    leading: f64,
    rise: f64,
}

/// Fonts that were loaded for this document.
pub(crate) type Fonts = HashMap<Id, Rc<Font>>;

pub(crate) struct Interpreter<'a, 'f> {
    file: &'a File<'f>,
    fonts: &'a mut Fonts,
    pub(crate) sheet: Sheet,
    /// How many pictures were drawn, and the last.
    pub(crate) pictures: usize,
    pub(crate) picture: Option<Rc<Stream>>,
    /// How the page lies.
    page: Matrix,
    state: State,
    saved: Vec<State>,
    text: Matrix,
    line: Matrix,
    forms: u32,
    /// The text that a marked part stands for: at which depth it was marked, and what is still to be written.
    marks: u32,
    actual: Option<(u32, Option<Rc<str>>)>,
}

impl<'a, 'f> Interpreter<'a, 'f> {
    pub(crate) fn new(file: &'a File<'f>, fonts: &'a mut Fonts, ctm: Matrix) -> Self {
        let state = State {
            ctm,
            font: None,
            size: 0.0,
            char_space: 0.0,
            word_space: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
        };
        Self {
            file,
            fonts,
            sheet: Sheet::default(),
            pictures: 0,
            picture: None,
            page: ctm,
            state,
            saved: Vec::new(),
            text: Matrix::SAME,
            line: Matrix::SAME,
            forms: 0,
            marks: 0,
            actual: None,
        }
    }

    pub(crate) fn run(&mut self, content: &[u8], resources: &Dict) -> Result<(), Fault> {
        let mut lexer = Lexer::content(content);
        let mut operands: Vec<Object> = Vec::new();
        loop {
            let before = lexer.at;
            match lexer.next() {
                Token::Value(value) => {
                    if operands.len() < MOST_OPERANDS {
                        operands.push(value);
                    }
                }
                Token::Word(b"BI") => {
                    lexer.at = after_picture(content, lexer.at);
                    self.pictures += 1;
                    operands.clear();
                }
                Token::Word(word) => {
                    self.operator(word, &operands, resources)?;
                    operands.clear();
                }
                Token::End => return Ok(()),
            }
            self.file.budget.steps(1 + (lexer.at - before) as u64 / 16)?;
            if self.sheet.is_full() {
                return Ok(());
            }
        }
    }

    fn operator(&mut self, word: &[u8], operands: &[Object], resources: &Dict) -> Result<(), Fault> {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        match word {
            b"q" if self.saved.len() < MOST_SAVED => self.saved.push(self.state.clone()),
            b"Q" => {
                if let Some(state) = self.saved.pop() {
                    self.state = state;
                }
            }
            b"cm" => {
                if let Some(matrix) = Matrix::from(operands) {
                    self.state.ctm = matrix.then(self.state.ctm);
                }
            }
            b"BT" => self.place(Matrix::SAME),
            b"Tc" => self.state.char_space = number(0),
            b"Tw" => self.state.word_space = number(0),
            b"Tz" => self.state.stretch = number(0) / 100.0,
            b"TL" => self.state.leading = number(0),
            b"Ts" => self.state.rise = number(0),
            b"Tf" => {
                let name = operands.first().and_then(Object::name).unwrap_or_default();
                self.state.font = Some(self.font(name, resources)?);
                self.state.size = number(1);
            }
            b"Td" => self.place(Matrix::moved(number(0), number(1)).then(self.line)),
            b"TD" => {
                self.state.leading = -number(1);
                self.place(Matrix::moved(number(0), number(1)).then(self.line));
            }
            b"Tm" => {
                if let Some(matrix) = Matrix::from(operands) {
                    self.place(matrix);
                }
            }
            b"T*" => self.new_line(),
            b"Tj" => self.show(operands)?,
            b"'" => {
                self.new_line();
                self.show(operands)?;
            }
            b"\"" => {
                (self.state.word_space, self.state.char_space) = (number(0), number(1));
                self.new_line();
                self.show(operands.get(2..).unwrap_or_default())?;
            }
            b"TJ" => self.show(operands.first().map(Object::array).unwrap_or_default())?,
            b"Do" => {
                let name = operands.first().and_then(Object::name).unwrap_or_default();
                self.draw(name, resources)?;
            }
            b"BDC" => {
                self.marks += 1;
                self.mark(operands, resources)?;
            }
            b"BMC" => self.marks += 1,
            b"EMC" => {
                if self.actual.as_ref().is_some_and(|(depth, _)| *depth == self.marks) {
                    self.actual = None;
                }
                self.marks = self.marks.saturating_sub(1);
            }
            _ => {}
        }
        Ok(())
    }

    fn place(&mut self, matrix: Matrix) {
        self.line = matrix;
        self.text = matrix;
    }

    fn new_line(&mut self) {
        self.place(Matrix::moved(0.0, -self.state.leading).then(self.line));
    }

    /// Shows strings; numbers between them move the pen.
    fn show(&mut self, items: &[Object]) -> Result<(), Fault> {
        let Some(font) = self.state.font.clone() else { return Ok(()) };
        let State { size, char_space, word_space, stretch, rise, ctm, .. } = self.state;
        for item in items {
            self.file.budget.steps(1)?;
            let bytes = match item {
                Object::Text(bytes) => bytes,
                Object::Number(back) => {
                    let by = -back / 1_000.0 * size;
                    let step = if font.vertical { (0.0, by) } else { (by * stretch, 0.0) };
                    self.text = Matrix::moved(step.0, step.1).then(self.text);
                    continue;
                }
                _ => continue,
            };
            font.read(bytes, |shown| {
                self.file.budget.steps(4)?;
                let space = char_space + if shown.space { word_space } else { 0.0 };
                let (dx, dy) = if font.vertical {
                    (0.0, -size.abs() - space)
                } else {
                    ((shown.width * size + space) * stretch, 0.0)
                };
                let full = self.text.then(ctm);
                let from = full.apply(0.0, rise);
                let wide = if font.vertical {
                    (0.0, -size.abs())
                } else {
                    ((shown.width * size + char_space) * stretch, 0.0)
                };
                let to = full.apply(wide.0, wide.1 + rise);
                let up = full.apply(0.0, rise + size);
                let along = if font.vertical {
                    full.apply(0.0, rise - 1.0)
                } else {
                    full.apply(size.signum() * stretch.signum(), rise)
                };
                let text = match &mut self.actual {
                    Some((_, waiting)) => Some(waiting.take().unwrap_or_else(|| "".into())),
                    None => shown.text,
                };
                let up = (up.0 - from.0, up.1 - from.1);
                self.sheet.put(&Glyph {
                    from,
                    to,
                    along: (along.0 - from.0, along.1 - from.1),
                    // Without `hypot`, for which every start of Haft would have to load a library.
                    size: (up.0 * up.0 + up.1 * up.1).sqrt(),
                    text: text.as_deref(),
                });
                self.text = Matrix::moved(dx, dy).then(self.text);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn font(&mut self, name: &str, resources: &Dict) -> Result<Rc<Font>, Fault> {
        let fonts = self.file.get(resources, "Font")?.dict().unwrap_or_default();
        let entry = fonts.get(name);
        if let Object::Ref(id) = entry
            && let Some(font) = self.fonts.get(&id)
        {
            return Ok(Rc::clone(font));
        }
        // A font that got lost is taken for an ordinary one.
        let dict = self.file.resolve(&entry)?.dict().unwrap_or_default();
        let font = Rc::new(Font::load(self.file, &dict)?);
        if let Object::Ref(id) = entry {
            if self.fonts.len() >= MOST_FONTS {
                self.fonts.clear();
            }
            self.fonts.insert(id, Rc::clone(&font));
        }
        Ok(font)
    }

    fn draw(&mut self, name: &str, resources: &Dict) -> Result<(), Fault> {
        let objects = self.file.get(resources, "XObject")?.dict().unwrap_or_default();
        let Some(stream) = self.file.get(&objects, name)?.stream() else { return Ok(()) };
        let dict = &stream.dict;
        if dict.is("Subtype", "Image") {
            self.pictures += 1;
            self.picture = Some(Rc::clone(&stream));
            return Ok(());
        }
        if dict.is("Subtype", "Form") {
            self.form(&stream, resources)?;
        }
        Ok(())
    }

    fn form(&mut self, stream: &Stream, resources: &Dict) -> Result<(), Fault> {
        let dict = &stream.dict;
        self.file.budget.steps(FORM_STEPS)?;
        if self.forms >= MOST_FORMS {
            return Ok(());
        }
        let content = self.file.decode(stream)?;
        let own = self.file.get(dict, "Resources")?.dict();
        let matrix = self.file.get(dict, "Matrix")?;
        let outer = (self.state.clone(), self.text, self.line, std::mem::take(&mut self.saved));
        if let Some(matrix) = Matrix::from(matrix.array()) {
            self.state.ctm = matrix.then(self.state.ctm);
        }
        self.forms += 1;
        let ran = self.run(&content, own.as_deref().unwrap_or(resources));
        self.forms -= 1;
        (self.state, self.text, self.line, self.saved) = outer;
        ran
    }

    /// What a note or a form field shows.
    pub(crate) fn note(&mut self, note: &Dict) -> Result<(), Fault> {
        if !note.is("Subtype", "Widget") && !note.is("Subtype", "FreeText") {
            return Ok(());
        }
        let looks = self.file.get(note, "AP")?.dict().unwrap_or_default();
        let look = match self.file.get(&looks, "N")? {
            Object::Dict(states) => {
                let state = self.file.get(note, "AS")?;
                self.file.get(&states, state.name().unwrap_or_default())?
            }
            other => other,
        };
        let Some(stream) = look.stream() else { return Ok(()) };
        let corner = |key: &str, dict: &Dict| -> Result<(f64, f64), Fault> {
            let numbers = self.file.get(dict, key)?;
            let at = |index: usize| numbers.array().get(index).and_then(Object::number).unwrap_or(0.0);
            Ok((at(0), at(1)))
        };
        let (to, from) = (corner("Rect", note)?, corner("BBox", &stream.dict)?);
        let outer = self.state.ctm;
        self.state.ctm = Matrix::moved(to.0 - from.0, to.1 - from.1).then(self.page);
        let ran = self.form(&stream, &Dict::default());
        self.state.ctm = outer;
        ran
    }

    /// A marked part may say which text it stands for.
    fn mark(&mut self, operands: &[Object], resources: &Dict) -> Result<(), Fault> {
        let dict = match operands.get(1) {
            Some(Object::Dict(dict)) => Rc::clone(dict),
            // Strings outside of content streams may be encrypted.
            Some(Object::Name(name)) if !self.file.is_encrypted() => {
                let list = self.file.get(resources, "Properties")?.dict().unwrap_or_default();
                self.file.get(&list, name)?.dict().unwrap_or_default()
            }
            _ => return Ok(()),
        };
        if let Some(text) = self.file.get(&dict, "ActualText")?.text()
            && self.actual.is_none()
        {
            self.actual = Some((self.marks, Some(words(text).into())));
        }
        Ok(())
    }
}

/// A text outside of fonts: UTF-16 or UTF-8 with a mark, or nearly Latin-1.
fn words(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => encoding_rs::UTF_16BE.decode_without_bom_handling(rest).0.into_owned(),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().map(|byte| char::from(*byte)).collect(),
    }
}

/// Where the program goes on after a picture that lies in it.
fn after_picture(content: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(found) = memchr::memmem::find(&content[at..], b"EI") {
        let (start, end) = (at + found, at + found + 2);
        let free = |byte: Option<&u8>| byte.is_none_or(|byte| crate::lexer::is_space(*byte));
        // In the picture's bytes an `EI` may stand by chance; what follows a true one is readable.
        let follows = &content[end..content.len().min(end + 16)];
        let readable =
            follows.iter().all(|byte| crate::lexer::is_space(*byte) || (0x20..0x7f).contains(byte));
        if start > from && free(content.get(start - 1)) && free(content.get(end)) && readable {
            return end;
        }
        at = end;
    }
    content.len()
}
