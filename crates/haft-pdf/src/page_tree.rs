//! The pages of a file in order, and the attributes they inherit.

use std::collections::HashSet;
use std::rc::Rc;

use crate::PdfError;
use crate::file::PdfFile;
use crate::object::{Dict, Object};

/// Pages beyond this number are ignored.
const MAX_PAGES: usize = 100_000;
const MAX_TREE_DEPTH: usize = 64;

/// Returns the pages of the page tree, or in a file without one all objects that are pages.
pub(crate) fn pages(file: &PdfFile<'_>) -> Result<Vec<Object>, PdfError> {
    let mut pages = walk_tree(file)?;
    if pages.is_empty() && file.rebuild_xref()? {
        pages = walk_tree(file)?;
    }
    if pages.is_empty() {
        for id in file.ids() {
            let object = Object::Reference(id);
            if file.resolve(&object)?.dict().is_some_and(|dict| dict.has_name("Type", "Page")) {
                pages.push(object);
            }
            if pages.len() >= MAX_PAGES {
                break;
            }
        }
    }
    Ok(pages)
}

fn walk_tree(file: &PdfFile<'_>) -> Result<Vec<Object>, PdfError> {
    let Some(catalog) = file.catalog()? else { return Ok(Vec::new()) };
    let mut pages = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![(catalog.get("Pages"), 0)];
    while let Some((node, depth)) = pending.pop() {
        file.budget.spend(1)?;
        if let Object::Reference(id) = node
            && !seen.insert(id)
        {
            continue;
        }
        let Some(dict) = file.resolve(&node)?.dict() else { continue };
        if !dict.contains("Kids") {
            pages.push(node);
            if pages.len() >= MAX_PAGES {
                break;
            }
            continue;
        }
        let kids = file.get(&dict, "Kids")?;
        if depth < MAX_TREE_DEPTH && pending.len() < MAX_PAGES {
            pending.extend(kids.array().iter().take(MAX_PAGES).rev().map(|kid| (kid.clone(), depth + 1)));
        }
    }
    Ok(pages)
}

/// Returns the attribute `key` of a page or of its nearest ancestor that has it.
pub(crate) fn inherited(file: &PdfFile<'_>, page: &Rc<Dict>, key: &str) -> Result<Object, PdfError> {
    let mut node = Rc::clone(page);
    for _ in 0..MAX_TREE_DEPTH {
        let value = file.get(&node, key)?;
        if !matches!(value, Object::Null) {
            return Ok(value);
        }
        let Some(parent) = file.get(&node, "Parent")?.dict() else { break };
        node = parent;
    }
    Ok(Object::Null)
}
