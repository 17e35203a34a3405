#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! Files are hostile: every loop whose length a file controls spends from one budget, the output
//! of filters and the depth of nesting are bounded, and broken parts are skipped. Only what a requested page needs is
//! decoded.
//!
//! Never here: input or output, rendering, and loops without a bound.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "numbers from files are clamped by `as`; every value must be survived"
)]

mod budget;
mod char_codes;
mod cmap;
mod content;
mod decrypt;
mod encoding;
mod error;
mod file;
mod filter;
mod font;
mod font_program;
mod glyph_names;
mod layout;
mod lexer;
mod matrix;
mod object;
mod object_scan;
mod page;
mod page_tree;
mod reading_order;
mod stream;
mod xref;

use std::cell::RefCell;

use budget::WorkBudget;
use content::FontCache;
use file::PdfFile;
use object::Object;

pub use error::PdfError;
pub use page::PdfPage;

/// The PDF header must begin within this distance of the start of the file.
const MAX_HEADER_OFFSET: usize = 1_024;

/// How much work reading a document may take, and how to stop it.
///
/// The limits hold for one [`Pdf`], over all its pages. The defaults suffice for several hundred dense pages.
#[derive(Clone, Copy)]
pub struct PdfOptions<'a> {
    /// Steps of parsing, interpreting and layout. Roughly, a token is one step and a glyph four.
    pub max_steps: u64,
    /// Bytes that come out of decompression.
    pub max_decoded_bytes: u64,
    /// Called every few thousand steps; once it returns true, reading ends with [`PdfError::Cancelled`].
    pub is_cancelled: &'a dyn Fn() -> bool,
}

impl Default for PdfOptions<'_> {
    fn default() -> Self {
        Self { max_steps: 8_000_000, max_decoded_bytes: 128 << 20, is_cancelled: &|| false }
    }
}

/// An open document.
pub struct Pdf<'a> {
    file: PdfFile<'a>,
    pages: Vec<Object>,
    fonts: RefCell<FontCache>,
}

impl<'a> Pdf<'a> {
    /// Opens the document in `bytes` with the default options.
    pub fn open(bytes: &'a [u8]) -> Result<Self, PdfError> {
        Self::open_with(bytes, PdfOptions::default())
    }

    /// Opens the document in `bytes`.
    pub fn open_with(bytes: &'a [u8], options: PdfOptions<'a>) -> Result<Self, PdfError> {
        let header = memchr::memmem::find(&bytes[..bytes.len().min(MAX_HEADER_OFFSET)], b"%PDF-");
        // Offsets count from the header. In a file where they do not, the objects are searched for.
        let file = PdfFile::open(&bytes[header.unwrap_or(0)..], WorkBudget::new(options))?;
        let pages = page_tree::pages(&file)?;
        if pages.is_empty() {
            return Err(if header.is_some() { PdfError::NoPages } else { PdfError::NotPdf });
        }
        Ok(Self { file, pages, fonts: RefCell::default() })
    }

    /// The number of pages.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Reads the page with this number, counted from 1.
    pub fn page(&self, number: usize) -> Result<PdfPage, PdfError> {
        let page =
            number.checked_sub(1).and_then(|index| self.pages.get(index)).ok_or(PdfError::NoSuchPage)?;
        page::read(&self.file, &mut self.fonts.borrow_mut(), page)
    }
}
