//! The values that a PDF is made of. Cloning one is cheap.

use std::collections::BTreeMap;
use std::rc::Rc;

/// The number of an object that others refer to.
pub(crate) type Id = u32;

#[derive(Debug, Clone, Default)]
pub(crate) enum Object {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    Text(Rc<[u8]>),
    Name(Rc<str>),
    Array(Rc<[Object]>),
    Dict(Rc<Dict>),
    Stream(Rc<Stream>),
    Ref(Id),
}

#[derive(Debug, Default)]
pub(crate) struct Dict(pub(crate) BTreeMap<Rc<str>, Object>);

/// A dictionary with bytes behind it.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) dict: Rc<Dict>,
    /// Where its bytes start in the file.
    pub(crate) start: usize,
    /// The object it is, which decryption needs.
    pub(crate) id: Id,
    pub(crate) generation: u16,
}

impl Dict {
    /// The value as it stands there: it may be a reference.
    pub(crate) fn get(&self, key: &str) -> Object {
        self.0.get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    pub(crate) fn is(&self, key: &str, name: &str) -> bool {
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

    /// A whole number that is not negative.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::Number(number) if *number >= 0.0 && *number < 1e15 => Some(*number as usize),
            _ => None,
        }
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn array(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            _ => &[],
        }
    }

    /// The dictionary, also that of a stream.
    pub(crate) fn dict(&self) -> Option<Rc<Dict>> {
        match self {
            Self::Dict(dict) => Some(Rc::clone(dict)),
            Self::Stream(stream) => Some(Rc::clone(&stream.dict)),
            _ => None,
        }
    }

    pub(crate) fn stream(&self) -> Option<Rc<Stream>> {
        match self {
            Self::Stream(stream) => Some(Rc::clone(stream)),
            _ => None,
        }
    }
}
