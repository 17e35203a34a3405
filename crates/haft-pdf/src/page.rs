//! Reads one page: its content streams, then its annotations, then the layout of what they show.

use std::rc::Rc;

use crate::PdfError;
use crate::content::{ContentInterpreter, FontCache};
use crate::file::PdfFile;
use crate::filter;
use crate::matrix::Matrix;
use crate::object::{Dict, Object};
use crate::page_tree::inherited;

/// Bound on all content streams of one page together.
const MAX_CONTENT_BYTES: usize = filter::MAX_OUTPUT_BYTES;
const MAX_CONTENT_STREAMS: usize = 4_096;
const MAX_ANNOTATIONS: usize = 2_000;

/// What one page shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PdfPage {
    /// The text in reading order.
    pub text: String,
    /// The number of images.
    pub image_count: usize,
    /// The JPEG file that a page without text consists of, such as a scan.
    pub scan: Option<Vec<u8>>,
    /// Whether the fonts do not say which characters most of the glyphs are, so that `text` is of no use.
    pub unreadable: bool,
    /// Whether a limit was reached, so that text is missing.
    pub truncated: bool,
}

pub(crate) fn read(file: &PdfFile<'_>, fonts: &mut FontCache, page: &Object) -> Result<PdfPage, PdfError> {
    let page = file.resolve(page)?.dict().unwrap_or_default();
    let rotation = inherited(file, &page, "Rotate")?.number().unwrap_or(0.0) as i64;
    let ctm = match rotation.rem_euclid(360) {
        90 => Matrix([0.0, -1.0, 1.0, 0.0, 0.0, 0.0]),
        180 => Matrix([-1.0, 0.0, 0.0, -1.0, 0.0, 0.0]),
        270 => Matrix([0.0, 1.0, -1.0, 0.0, 0.0, 0.0]),
        _ => Matrix::IDENTITY,
    };
    let mut interpreter = ContentInterpreter::new(file, fonts, ctm);
    let interpreted = interpret(file, &page, &mut interpreter);
    if interpreted == Err(PdfError::Cancelled) {
        return Err(PdfError::Cancelled);
    }
    let ContentInterpreter { layout, image_count, last_image, .. } = interpreter;
    let mut truncated = interpreted.is_err() || layout.is_full();
    let unreadable = layout.unknown_glyphs() * 2 > layout.glyphs();
    let text = match layout.into_text(&file.budget) {
        Ok(text) => text,
        Err(PdfError::LimitExceeded) => {
            truncated = true;
            String::new()
        }
        Err(error) => return Err(error),
    };
    let scan = match last_image {
        Some(stream) if text.is_empty() && image_count == 1 => file.jpeg(&stream).ok().flatten(),
        _ => None,
    };
    Ok(PdfPage { text, image_count, scan, unreadable, truncated })
}

fn interpret(
    file: &PdfFile<'_>,
    page: &Rc<Dict>,
    interpreter: &mut ContentInterpreter<'_, '_>,
) -> Result<(), PdfError> {
    let resources = inherited(file, page, "Resources")?.dict().unwrap_or_default();
    let streams = match file.get(page, "Contents")? {
        Object::Array(streams) => streams,
        stream => [stream].into(),
    };
    let mut content = Vec::new();
    for stream in streams.iter().take(MAX_CONTENT_STREAMS) {
        let Some(stream) = file.resolve(stream)?.stream() else { continue };
        content.extend(file.decode(&stream)?);
        content.push(b'\n');
        if content.len() > MAX_CONTENT_BYTES {
            break;
        }
    }
    interpreter.run(&content, &resources)?;
    drop(content);
    for annotation in file.get(page, "Annots")?.array().iter().take(MAX_ANNOTATIONS) {
        file.budget.spend(1)?;
        let Some(annotation) = file.resolve(annotation)?.dict() else { continue };
        interpreter.show_annotation(&annotation)?;
    }
    Ok(())
}
