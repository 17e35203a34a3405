//! Documents that are more than text: PDFs and notebooks, through the program and through the library.

mod notebooks;
#[path = "../../../../haft-pdf/tests/it/pdf_writer.rs"]
mod pdf_writer;
mod pdfs;
mod random_notebooks;
