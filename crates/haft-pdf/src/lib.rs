//! The text of a PDF, page by page, in bounded time and memory.
//!
//! Files come from anywhere, so every loop that a file can steer pays from one [budget](budget::Budget), what filters
//! make is bounded, nesting is bounded, and broken parts are passed over: the worst file costs a known amount of work and
//! gives an error or less text. Nothing is decoded that the asked page does not need.
//!
//! What must never live here: input or output, drawing, and loops without a bound.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "numbers from files are clamped by `as`, and any value of theirs must be survived"
)]

mod budget;
mod cmap;
mod codes;
mod content;
mod crypt;
mod encoding;
mod file;
mod filter;
mod font;
mod glyphs;
mod layout;
mod lexer;
mod matrix;
mod object;
mod order;
mod pages;
mod program;
mod recover;
mod xref;

use std::cell::RefCell;
use std::rc::Rc;

use budget::Budget;
use content::{Fonts, Interpreter};
use file::File;
use matrix::Matrix;
use object::{Dict, Object};

/// How far from its beginning a file may say that it is a PDF.
const MOST_JUNK: usize = 1_024;
/// All content streams of one page together.
const MOST_CONTENT: usize = filter::MOST_OUTPUT;
const MOST_PARTS: usize = 4_096;
/// How many notes and form fields of a page are read.
const MOST_NOTES: usize = 2_000;

/// Why a document or a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Neither does it begin like a PDF nor has it pages.
    NotPdf,
    /// It opens only with a password.
    NeedsPassword,
    /// It is encrypted in a way that is not the standard's.
    UnknownEncryption,
    /// No page can be found in it.
    Broken,
    /// It has no page of that number.
    NoSuchPage,
    /// It would take more work than any honest document.
    TooMuch,
    /// The caller does not want it any more.
    Cancelled,
}

/// Whether `bytes` begin like a PDF.
pub fn is_pdf(bytes: &[u8]) -> bool {
    memchr::memmem::find(&bytes[..bytes.len().min(MOST_JUNK)], b"%PDF-").is_some()
}

/// An open document.
pub struct Pdf<'a> {
    file: File<'a>,
    pages: Vec<Object>,
    fonts: RefCell<Fonts>,
}

/// What one page says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Its text in reading order.
    pub text: String,
    /// How many pictures it shows.
    pub pictures: usize,
    /// The picture that a page without text consists of, if it is a JPEG.
    pub scan: Option<Vec<u8>>,
    /// Whether most of its glyphs have no known character, so that the text cannot be read.
    pub unreadable: bool,
    /// Whether it was too much to read all of it.
    pub cut: bool,
}

impl<'a> Pdf<'a> {
    /// Opens a document. `stop` is asked now and then whether to give up.
    pub fn open(bytes: &'a [u8], stop: &'a dyn Fn() -> bool) -> Result<Self, Fault> {
        let junk = memchr::memmem::find(&bytes[..bytes.len().min(MOST_JUNK)], b"%PDF-");
        // Offsets count from where the PDF begins; where that is not so, the objects are searched for.
        let file = File::open(&bytes[junk.unwrap_or(0)..], Budget::new(stop))?;
        let pages = pages::pages(&file)?;
        if pages.is_empty() {
            return Err(if junk.is_some() { Fault::Broken } else { Fault::NotPdf });
        }
        Ok(Self { file, pages, fonts: RefCell::default() })
    }

    /// How many pages it has.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// What the page with this number, counted from 1, says.
    pub fn page(&self, number: usize) -> Result<Page, Fault> {
        let page = number.checked_sub(1).and_then(|at| self.pages.get(at)).ok_or(Fault::NoSuchPage)?;
        let file = &self.file;
        let page = file.resolve(page)?.dict().unwrap_or_default();
        let turn = pages::inherited(file, &page, "Rotate")?.number().unwrap_or(0.0) as i64;
        let ctm = match turn.rem_euclid(360) {
            90 => Matrix([0.0, -1.0, 1.0, 0.0, 0.0, 0.0]),
            180 => Matrix([-1.0, 0.0, 0.0, -1.0, 0.0, 0.0]),
            270 => Matrix([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]),
            _ => Matrix::SAME,
        };
        let mut fonts = self.fonts.borrow_mut();
        let mut interpreter = Interpreter::new(file, &mut fonts, ctm);
        let ran = self.interpret(&page, &mut interpreter);
        if ran == Err(Fault::Cancelled) {
            return Err(Fault::Cancelled);
        }
        let mut cut = ran.is_err() || interpreter.sheet.is_full();
        let Interpreter { sheet, pictures, picture, .. } = interpreter;
        let unreadable = sheet.glyphs() > 0 && sheet.unknown * 2 > sheet.glyphs();
        let text = match sheet.text(&file.budget) {
            Ok(text) => text,
            Err(Fault::TooMuch) => {
                cut = true;
                String::new()
            }
            Err(fault) => return Err(fault),
        };
        let scan = match picture {
            Some(stream) if text.is_empty() && pictures == 1 => file.jpeg(&stream).ok().flatten(),
            _ => None,
        };
        Ok(Page { text, pictures, scan, unreadable, cut })
    }

    fn interpret(&self, page: &Rc<Dict>, interpreter: &mut Interpreter<'_, 'a>) -> Result<(), Fault> {
        let file = &self.file;
        let resources = pages::inherited(file, page, "Resources")?.dict().unwrap_or_default();
        let contents = file.get(page, "Contents")?;
        let parts = match &contents {
            Object::Array(parts) => parts.iter().take(MOST_PARTS).cloned().collect(),
            one => vec![one.clone()],
        };
        let mut content = Vec::new();
        for part in parts {
            let Some(stream) = file.resolve(&part)?.stream() else { continue };
            content.extend(file.decode(&stream)?);
            content.push(b'\n');
            if content.len() > MOST_CONTENT {
                break;
            }
        }
        interpreter.run(&content, &resources)?;
        drop(content);
        for note in file.get(page, "Annots")?.array().iter().take(MOST_NOTES) {
            file.budget.steps(1)?;
            let Some(note) = file.resolve(note)?.dict() else { continue };
            interpreter.note(&note)?;
        }
        Ok(())
    }
}
