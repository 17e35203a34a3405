//! The objects of one file, loaded on demand.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::PdfError;
use crate::budget::WorkBudget;
use crate::decrypt::Decryptor;
use crate::lexer::Lexer;
use crate::object::{Dict, Object, ObjectId, PdfStream};
use crate::object_scan;
use crate::xref::{ObjectLocation, XrefTable};

/// Nesting of objects that must be loaded to load another.
const MAX_LOAD_DEPTH: u32 = 6;
/// Length of a chain of references.
const MAX_REFERENCES: usize = 16;
/// Source bytes of the objects in the cache; beyond this it is cleared.
const MAX_CACHED_BYTES: usize = 4 << 20;
/// What an object in the cache costs beside its source bytes.
const CACHED_OBJECT_BYTES: usize = 64;
/// Bytes of the object streams in the cache; beyond this it is cleared.
const MAX_CACHED_STREAM_BYTES: usize = 48 << 20;
/// Objects in one object stream.
const MAX_STREAM_OBJECTS: usize = 200_000;

pub(crate) struct PdfFile<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) budget: WorkBudget<'a>,
    xref: RefCell<XrefTable>,
    xref_rebuilt: Cell<bool>,
    pub(crate) decryptor: RefCell<Option<Decryptor>>,
    load_depth: Cell<u32>,
    objects: RefCell<ObjectCache<Object>>,
    object_streams: RefCell<ObjectCache<Rc<ObjectStream>>>,
}

/// Values by object number, with a bound on their total size.
struct ObjectCache<T> {
    values: HashMap<ObjectId, T>,
    bytes: usize,
    max_bytes: usize,
}

impl<T: Clone> ObjectCache<T> {
    fn new(max_bytes: usize) -> RefCell<Self> {
        RefCell::new(Self { values: HashMap::new(), bytes: 0, max_bytes })
    }

    fn insert(&mut self, id: ObjectId, value: T, bytes: usize) {
        if self.bytes + bytes > self.max_bytes {
            self.clear();
        }
        self.bytes += bytes;
        self.values.insert(id, value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.bytes = 0;
    }
}

/// A decoded stream that holds objects.
struct ObjectStream {
    bytes: Vec<u8>,
    /// The number and offset of each object.
    index: Vec<(ObjectId, usize)>,
}

impl<'a> PdfFile<'a> {
    pub(crate) fn open(bytes: &'a [u8], budget: WorkBudget<'a>) -> Result<Self, PdfError> {
        let file = Self {
            bytes,
            budget,
            xref: RefCell::default(),
            xref_rebuilt: Cell::new(false),
            decryptor: RefCell::default(),
            load_depth: Cell::new(0),
            objects: ObjectCache::new(MAX_CACHED_BYTES),
            object_streams: ObjectCache::new(MAX_CACHED_STREAM_BYTES),
        };
        let xref = XrefTable::read(&file)?;
        file.xref.replace(xref);
        file.init_decryption()?;
        if file.catalog()?.is_none() {
            file.rebuild_xref()?;
        }
        Ok(file)
    }

    /// Returns the catalog if there is one with pages.
    pub(crate) fn catalog(&self) -> Result<Option<Rc<Dict>>, PdfError> {
        let root = self.trailer("Root");
        let catalog = self.resolve(&root)?.dict();
        Ok(catalog.filter(|catalog| catalog.contains("Pages")))
    }

    fn trailer(&self, key: &str) -> Object {
        self.xref.borrow().trailer.get(key)
    }

    /// Returns all object numbers in order.
    pub(crate) fn ids(&self) -> Vec<ObjectId> {
        let mut ids: Vec<ObjectId> = self.xref.borrow().locations.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Replaces the file's tables by a search for objects, at most once. Returns whether it was done by this call.
    pub(crate) fn rebuild_xref(&self) -> Result<bool, PdfError> {
        if self.xref_rebuilt.replace(true) {
            return Ok(false);
        }
        let old = self.xref.take();
        self.objects.borrow_mut().clear();
        self.object_streams.borrow_mut().clear();
        let (mut xref, object_streams) = object_scan::scan(self)?;
        for key in ["Root", "Encrypt", "ID"] {
            if !xref.trailer.contains(key) && old.trailer.contains(key) {
                xref.trailer.0.insert(key.into(), old.trailer.get(key));
            }
        }
        self.xref.replace(xref);
        self.init_decryption()?;
        for stream in object_streams {
            let Some(content) = self.object_stream(stream)? else { continue };
            let mut xref = self.xref.borrow_mut();
            for (index, (id, _)) in content.index.iter().enumerate() {
                xref.locations.entry(*id).or_insert(ObjectLocation::InStream { stream, index });
            }
        }
        Ok(true)
    }

    fn init_decryption(&self) -> Result<(), PdfError> {
        let encrypt = self.resolve(&self.trailer("Encrypt"))?;
        let Some(dict) = encrypt.dict() else { return Ok(()) };
        let mut resolved = Dict::default();
        for (key, value) in &dict.0 {
            resolved.0.insert(Rc::clone(key), self.resolve(value)?);
        }
        let ids = self.resolve(&self.trailer("ID"))?;
        let first_id = self.resolve(&ids.array().first().cloned().unwrap_or_default())?;
        let decryptor = Decryptor::new(&resolved, first_id.string().unwrap_or_default())?;
        self.decryptor.replace(Some(decryptor));
        self.objects.borrow_mut().clear();
        Ok(())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.decryptor.borrow().is_some()
    }

    /// Returns `object`, or what it refers to.
    pub(crate) fn resolve(&self, object: &Object) -> Result<Object, PdfError> {
        let mut object = object.clone();
        for _ in 0..MAX_REFERENCES {
            let Object::Reference(id) = object else { return Ok(object) };
            object = self.load(id)?;
        }
        Ok(Object::Null)
    }

    /// Returns the value of `key`, with references resolved.
    pub(crate) fn get(&self, dict: &Dict, key: &str) -> Result<Object, PdfError> {
        match dict.0.get(key) {
            Some(object) => self.resolve(object),
            None => Ok(Object::Null),
        }
    }

    fn load(&self, id: ObjectId) -> Result<Object, PdfError> {
        self.budget.spend(1)?;
        if let Some(object) = self.objects.borrow().values.get(&id) {
            return Ok(object.clone());
        }
        let depth = self.load_depth.get();
        if depth >= MAX_LOAD_DEPTH {
            return Ok(Object::Null);
        }
        self.load_depth.set(depth + 1);
        let loaded = self.load_uncached(id);
        self.load_depth.set(depth);
        let (object, bytes) = loaded?;
        self.objects.borrow_mut().insert(id, object.clone(), bytes + CACHED_OBJECT_BYTES);
        Ok(object)
    }

    /// Returns an object and its length in bytes.
    fn load_uncached(&self, id: ObjectId) -> Result<(Object, usize), PdfError> {
        let location = self.xref.borrow().locations.get(&id).copied();
        match location {
            None => Ok((Object::Null, 0)),
            Some(ObjectLocation::Offset(offset)) => {
                if let Some((found, object, bytes)) = self.object_at(offset)?
                    && found == id
                {
                    return Ok((object, bytes));
                }
                // The table is wrong.
                if self.rebuild_xref()? { self.load_uncached(id) } else { Ok((Object::Null, 0)) }
            }
            Some(ObjectLocation::InStream { stream, index }) => {
                let Some(stream) = self.object_stream(stream)? else { return Ok((Object::Null, 0)) };
                let mut entry = stream.index.get(index).filter(|entry| entry.0 == id);
                if entry.is_none() {
                    self.budget.spend_searched(size_of_val(&*stream.index))?;
                    entry = stream.index.iter().find(|entry| entry.0 == id);
                }
                let Some((_, offset)) = entry.copied() else { return Ok((Object::Null, 0)) };
                let mut lexer = Lexer::for_file(&stream.bytes, offset);
                let object = lexer.value().unwrap_or_default();
                let bytes = lexer.position.saturating_sub(offset);
                self.budget.spend_parsed(bytes)?;
                Ok((object, bytes))
            }
        }
    }

    /// Returns the object whose header `N G obj` is at `offset`, with its number and its length in bytes.
    pub(crate) fn object_at(&self, offset: usize) -> Result<Option<(ObjectId, Object, usize)>, PdfError> {
        let mut lexer = Lexer::for_file(self.bytes, offset);
        let header = (lexer.integer(), lexer.integer(), lexer.skip_keyword(b"obj"));
        let object = if header.2 { lexer.value().unwrap_or_default() } else { Object::Null };
        let stream_start = lexer.stream_start();
        let bytes = lexer.position.saturating_sub(offset);
        self.budget.spend_parsed(bytes)?;
        let (Some(id), Some(generation), true) = header else { return Ok(None) };
        let id = id as ObjectId;
        let object = match (&object, stream_start) {
            (Object::Dict(dict), Some(start)) => {
                let stream = PdfStream { dict: Rc::clone(dict), start, id, generation: generation as u16 };
                Object::Stream(Rc::new(stream))
            }
            _ => object,
        };
        Ok(Some((id, object, bytes)))
    }

    fn object_stream(&self, id: ObjectId) -> Result<Option<Rc<ObjectStream>>, PdfError> {
        if let Some(stream) = self.object_streams.borrow().values.get(&id) {
            return Ok(Some(Rc::clone(stream)));
        }
        let Some(stream) = self.load(id)?.stream() else { return Ok(None) };
        let bytes = self.decode(&stream)?;
        let first = self.get(&stream.dict, "First")?.unsigned().unwrap_or(0);
        let count = self.get(&stream.dict, "N")?.unsigned().unwrap_or(0);
        let mut lexer = Lexer::for_file(&bytes, 0);
        let mut index = Vec::new();
        while index.len() < count.min(MAX_STREAM_OBJECTS) {
            let (Some(id), Some(offset)) = (lexer.integer(), lexer.integer()) else { break };
            index.push((id as ObjectId, first.saturating_add(offset)));
        }
        self.budget.spend(index.len() as u64)?;
        let size = bytes.len() + size_of_val(&*index);
        let stream = Rc::new(ObjectStream { bytes, index });
        self.object_streams.borrow_mut().insert(id, Rc::clone(&stream), size);
        Ok(Some(stream))
    }
}
