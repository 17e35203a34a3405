//! The pages of a file in their order.

use std::collections::HashSet;
use std::rc::Rc;

use crate::Fault;
use crate::file::File;
use crate::object::{Dict, Object};

/// More pages than this are not counted.
const MOST_PAGES: usize = 100_000;
const MOST_DEPTH: usize = 64;
const MOST_PARENTS: usize = 64;

/// The pages as the tree has them, or, if it has none, as they lie in the file.
pub(crate) fn pages(file: &File<'_>) -> Result<Vec<Object>, Fault> {
    let mut found = tree(file)?;
    if found.is_empty() && file.recover()? {
        found = tree(file)?;
    }
    if found.is_empty() {
        for id in file.ids() {
            let object = Object::Ref(id);
            if file.resolve(&object)?.dict().is_some_and(|dict| dict.is("Type", "Page")) {
                found.push(object);
            }
            if found.len() >= MOST_PAGES {
                break;
            }
        }
    }
    Ok(found)
}

fn tree(file: &File<'_>) -> Result<Vec<Object>, Fault> {
    let Some(catalog) = file.catalog()? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting = vec![(catalog.get("Pages"), 0)];
    while let Some((node, depth)) = waiting.pop() {
        file.budget.steps(1)?;
        if let Object::Ref(id) = node
            && !seen.insert(id)
        {
            continue;
        }
        let Some(dict) = file.resolve(&node)?.dict() else { continue };
        if !dict.has("Kids") {
            found.push(node);
            if found.len() >= MOST_PAGES {
                break;
            }
            continue;
        }
        let kids = file.get(&dict, "Kids")?;
        // Kids that are not references could only be endless by being large.
        if depth < MOST_DEPTH && waiting.len() < MOST_PAGES {
            waiting.extend(kids.array().iter().take(MOST_PAGES).rev().map(|kid| (kid.clone(), depth + 1)));
        }
    }
    Ok(found)
}

/// What a page has, or else the nodes above it.
pub(crate) fn inherited(file: &File<'_>, page: &Rc<Dict>, key: &str) -> Result<Object, Fault> {
    let mut node = Rc::clone(page);
    for _ in 0..MOST_PARENTS {
        let value = file.get(&node, key)?;
        if !matches!(value, Object::Null) {
            return Ok(value);
        }
        let Some(parent) = file.get(&node, "Parent")?.dict() else { break };
        node = parent;
    }
    Ok(Object::Null)
}
