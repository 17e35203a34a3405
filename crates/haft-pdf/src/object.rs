//! The values that a PDF is made of. Cloning one is cheap.

use std::collections::BTreeMap;
use std::rc::Rc;

/// The number by which others refer to an object.
pub(crate) type ObjectId = u32;

/// Numbers from here on are not exact as `f64` and no sensible count.
const MAX_UNSIGNED: f64 = 1e15;

#[derive(Debug, Clone, Default)]
pub(crate) enum Object {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    String(Rc<[u8]>),
    Name(Rc<str>),
    Array(Rc<[Object]>),
    Dict(Rc<Dict>),
    Stream(Rc<PdfStream>),
    Reference(ObjectId),
}

#[derive(Debug, Default)]
pub(crate) struct Dict(pub(crate) BTreeMap<Rc<str>, Object>);

/// A dictionary followed by bytes.
#[derive(Debug)]
pub(crate) struct PdfStream {
    pub(crate) dict: Rc<Dict>,
    /// Offset of its bytes in the file.
    pub(crate) start: usize,
    /// Its object number, which decryption needs.
    pub(crate) id: ObjectId,
    pub(crate) generation: u16,
}

impl Dict {
    /// Returns the value as stored, which may be a reference.
    pub(crate) fn get(&self, key: &str) -> Object {
        self.0.get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether the value of `key` is the name `name`.
    pub(crate) fn has_name(&self, key: &str, name: &str) -> bool {
        matches!(self.0.get(key), Some(Object::Name(found)) if &**found == name)
    }
}

impl Object {
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns a number that is not negative, rounded down.
    pub(crate) fn unsigned(&self) -> Option<usize> {
        match self {
            Self::Number(number) if (0.0..MAX_UNSIGNED).contains(number) => Some(*number as usize),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn string(&self) -> Option<&[u8]> {
        match self {
            Self::String(string) => Some(string),
            _ => None,
        }
    }

    /// Returns the items of an array, and nothing for other objects.
    pub(crate) fn array(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// Returns the dictionary, also that of a stream.
    pub(crate) fn dict(&self) -> Option<Rc<Dict>> {
        match self {
            Self::Dict(dict) => Some(Rc::clone(dict)),
            Self::Stream(stream) => Some(Rc::clone(&stream.dict)),
            _ => None,
        }
    }

    pub(crate) fn stream(&self) -> Option<Rc<PdfStream>> {
        match self {
            Self::Stream(stream) => Some(Rc::clone(stream)),
            _ => None,
        }
    }
}
