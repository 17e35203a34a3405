//! Reasons why a document or a page cannot be read.

use std::fmt;

/// Why a document or a page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PdfError {
    /// The file has neither the header of a PDF nor pages.
    NotPdf,
    /// The file can be opened only with a password.
    NeedsPassword,
    /// The file is encrypted with a method that the PDF standard does not define.
    UnsupportedEncryption,
    /// The file is a PDF, but no page can be found in it.
    NoPages,
    /// The document has no page with the requested number.
    NoSuchPage,
    /// Reading takes more work than [`PdfOptions`](crate::PdfOptions) allow.
    LimitExceeded,
    /// [`PdfOptions::is_cancelled`](crate::PdfOptions::is_cancelled) returned true.
    Cancelled,
}

impl fmt::Display for PdfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPdf => "not a PDF",
            Self::NeedsPassword => "the PDF needs a password",
            Self::UnsupportedEncryption => "the encryption of the PDF is not supported",
            Self::NoPages => "no page can be found in the PDF",
            Self::NoSuchPage => "the PDF has no page with this number",
            Self::LimitExceeded => "reading the PDF takes more work than allowed",
            Self::Cancelled => "reading the PDF was cancelled",
        })
    }
}

impl std::error::Error for PdfError {}
