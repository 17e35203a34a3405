//! The objects of one file, loaded when they are asked for.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::Fault;
use crate::budget::Budget;
use crate::crypt::Crypt;
use crate::filter::{self, Predictor};
use crate::lexer::Lexer;
use crate::object::{Dict, Id, Object, Stream};
use crate::recover::recover;
use crate::xref::{Entry, Xref};

/// How often loading one object may need another first.
const MOST_DEPTH: u32 = 6;
/// How long a chain of references may be.
const MOST_HOPS: usize = 16;
/// Loaded objects are forgotten when they came from this many bytes of the file.
const MOST_CACHED: usize = 4 << 20;
/// Opened object streams are forgotten when they are larger than this together.
const MOST_OPENED: usize = 48 << 20;
/// How many objects one stream may hold.
const MOST_PACKED: usize = 200_000;
const MOST_FILTERS: usize = 6;

pub(crate) struct File<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) budget: Budget<'a>,
    xref: RefCell<Xref>,
    recovered: Cell<bool>,
    crypt: RefCell<Option<Crypt>>,
    depth: Cell<u32>,
    cache: RefCell<Cache<Object>>,
    opened: RefCell<Cache<Rc<Opened>>>,
}

/// Bytes, and the filter that was not applied to them.
type Decoded<'a> = (Cow<'a, [u8]>, Option<Rc<str>>);

/// Values by object number, with a bound on what they weigh together.
struct Cache<T> {
    values: HashMap<Id, T>,
    weight: usize,
    most: usize,
}

impl<T: Clone> Cache<T> {
    fn new(most: usize) -> RefCell<Self> {
        RefCell::new(Self { values: HashMap::new(), weight: 0, most })
    }

    fn put(&mut self, id: Id, value: T, weight: usize) {
        self.weight += weight;
        if self.weight > self.most {
            self.values.clear();
            self.weight = weight;
        }
        self.values.insert(id, value);
    }

    fn clear(&mut self) {
        self.values.clear();
        self.weight = 0;
    }
}

/// A stream that holds objects.
struct Opened {
    bytes: Vec<u8>,
    /// Each object's number and where it starts.
    index: Vec<(Id, usize)>,
}

impl<'a> File<'a> {
    pub(crate) fn open(bytes: &'a [u8], budget: Budget<'a>) -> Result<Self, Fault> {
        let file = Self {
            bytes,
            budget,
            xref: RefCell::default(),
            recovered: Cell::new(false),
            crypt: RefCell::default(),
            depth: Cell::new(0),
            cache: Cache::new(MOST_CACHED),
            opened: Cache::new(MOST_OPENED),
        };
        let xref = Xref::read(&file)?;
        file.xref.replace(xref);
        file.unlock()?;
        if file.catalog()?.is_none() {
            file.recover()?;
        }
        Ok(file)
    }

    /// The catalog, if there is one with pages.
    pub(crate) fn catalog(&self) -> Result<Option<Rc<Dict>>, Fault> {
        let root = self.trailer("Root");
        let catalog = self.resolve(&root)?.dict();
        Ok(catalog.filter(|catalog| catalog.has("Pages")))
    }

    pub(crate) fn trailer(&self, key: &str) -> Object {
        self.xref.borrow().trailer.get(key)
    }

    /// Every object number there is.
    pub(crate) fn ids(&self) -> Vec<Id> {
        let mut ids: Vec<Id> = self.xref.borrow().entries.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// Gives up what the file says about itself and looks for the objects. Only once; tells whether it was done now.
    pub(crate) fn recover(&self) -> Result<bool, Fault> {
        if self.recovered.replace(true) {
            return Ok(false);
        }
        let old = self.xref.take();
        self.cache.borrow_mut().clear();
        self.opened.borrow_mut().clear();
        let mut found = recover(self)?;
        for key in ["Root", "Encrypt", "ID"] {
            if !found.trailer.has(key) && old.trailer.has(key) {
                found.trailer.0.insert(key.into(), old.trailer.get(key));
            }
        }
        let packs = std::mem::take(&mut found.packs);
        self.xref.replace(found);
        self.unlock()?;
        for pack in packs {
            let Some(opened) = self.pack(pack)? else { continue };
            let mut xref = self.xref.borrow_mut();
            for (index, (id, _)) in opened.index.iter().enumerate() {
                xref.entries.entry(*id).or_insert(Entry::In { stream: pack, index });
            }
        }
        Ok(true)
    }

    fn unlock(&self) -> Result<(), Fault> {
        let encrypt = self.resolve(&self.trailer("Encrypt"))?;
        let Some(dict) = encrypt.dict() else { return Ok(()) };
        let mut whole = Dict::default();
        for (key, value) in &dict.0 {
            whole.0.insert(Rc::clone(key), self.resolve(value)?);
        }
        let id = self.resolve(&self.trailer("ID"))?;
        let id = self.resolve(&id.array().first().cloned().unwrap_or_default())?;
        let crypt = Crypt::new(&whole, id.text().unwrap_or_default())?;
        self.crypt.replace(Some(crypt));
        self.cache.borrow_mut().clear();
        Ok(())
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.crypt.borrow().is_some()
    }

    /// The value itself, where `object` is a reference to one.
    pub(crate) fn resolve(&self, object: &Object) -> Result<Object, Fault> {
        let mut object = object.clone();
        for _ in 0..MOST_HOPS {
            let Object::Ref(id) = object else { return Ok(object) };
            object = self.load(id)?;
        }
        Ok(Object::Null)
    }

    pub(crate) fn get(&self, dict: &Dict, key: &str) -> Result<Object, Fault> {
        match dict.0.get(key) {
            Some(object) => self.resolve(object),
            None => Ok(Object::Null),
        }
    }

    fn load(&self, id: Id) -> Result<Object, Fault> {
        self.budget.steps(1)?;
        if let Some(object) = self.cache.borrow().values.get(&id) {
            return Ok(object.clone());
        }
        let depth = self.depth.get();
        if depth >= MOST_DEPTH {
            return Ok(Object::Null);
        }
        self.depth.set(depth + 1);
        let loaded = self.load_new(id);
        self.depth.set(depth);
        let (object, weight) = loaded?;
        self.cache.borrow_mut().put(id, object.clone(), weight + 64);
        Ok(object)
    }

    fn load_new(&self, id: Id) -> Result<(Object, usize), Fault> {
        let entry = self.xref.borrow().entries.get(&id).copied();
        match entry {
            None => Ok((Object::Null, 0)),
            Some(Entry::At(at)) => {
                if let Some((found, object, weight)) = self.object_at(at)?
                    && found == id
                {
                    return Ok((object, weight));
                }
                // The table is wrong; whoever asked gets what the search finds.
                if self.recover()? { self.load_new(id) } else { Ok((Object::Null, 0)) }
            }
            Some(Entry::In { stream, index }) => {
                let Some(opened) = self.pack(stream)? else { return Ok((Object::Null, 0)) };
                let at = match opened.index.get(index) {
                    Some((found, at)) if *found == id => Some(*at),
                    _ => opened.index.iter().find(|(found, _)| *found == id).map(|(_, at)| *at),
                };
                let Some(at) = at else { return Ok((Object::Null, 0)) };
                let mut lexer = Lexer::file(&opened.bytes, at);
                let object = lexer.value().unwrap_or_default();
                let weight = lexer.at.saturating_sub(at);
                self.budget.steps(1 + weight as u64 / 8)?;
                Ok((object, weight))
            }
        }
    }

    /// The object whose `N G obj` stands at `at`, with its number and its length in the file.
    pub(crate) fn object_at(&self, at: usize) -> Result<Option<(Id, Object, usize)>, Fault> {
        let mut lexer = Lexer::file(self.bytes, at);
        let header = (lexer.whole(), lexer.whole(), lexer.word(b"obj"));
        let (Some(id), Some(generation), true) = header else { return Ok(None) };
        let object = lexer.value().unwrap_or_default();
        let weight = lexer.at.saturating_sub(at);
        self.budget.steps(8 + weight as u64 / 8)?;
        let id = id as Id;
        let object = match (&object, lexer.stream_start()) {
            (Object::Dict(dict), Some(start)) => {
                let stream = Stream { dict: Rc::clone(dict), start, id, generation: generation as u16 };
                Object::Stream(Rc::new(stream))
            }
            _ => object,
        };
        Ok(Some((id, object, weight)))
    }

    /// The objects in the stream with this number.
    fn pack(&self, id: Id) -> Result<Option<Rc<Opened>>, Fault> {
        if let Some(opened) = self.opened.borrow().values.get(&id) {
            return Ok(Some(Rc::clone(opened)));
        }
        let Some(stream) = self.load(id)?.stream() else { return Ok(None) };
        let bytes = self.decode(&stream)?;
        let first = self.get(&stream.dict, "First")?.count().unwrap_or(0);
        let count = self.get(&stream.dict, "N")?.count().unwrap_or(0);
        let mut lexer = Lexer::file(&bytes, 0);
        let mut index = Vec::new();
        while index.len() < count.min(MOST_PACKED) {
            let (Some(id), Some(at)) = (lexer.whole(), lexer.whole()) else { break };
            index.push((id as Id, first.saturating_add(at)));
        }
        self.budget.steps(index.len() as u64)?;
        let weight = bytes.len() + index.len() * 16;
        let opened = Rc::new(Opened { bytes, index });
        self.opened.borrow_mut().put(id, Rc::clone(&opened), weight);
        Ok(Some(opened))
    }

    /// What a stream's bytes mean. Empty for pictures.
    pub(crate) fn decode(&self, stream: &Stream) -> Result<Vec<u8>, Fault> {
        let (bytes, left) = self.decode_far(stream)?;
        Ok(if left.is_none() { bytes.into_owned() } else { Vec::new() })
    }

    /// The JPEG that a stream is, if it is one.
    pub(crate) fn jpeg(&self, stream: &Stream) -> Result<Option<Vec<u8>>, Fault> {
        let (bytes, left) = self.decode_far(stream)?;
        Ok(left.filter(|left| matches!(&**left, "DCTDecode" | "DCT")).map(|_| bytes.into_owned()))
    }

    /// What a stream's bytes mean up to the first filter that is for pictures, and that filter's name.
    fn decode_far(&self, stream: &Stream) -> Result<Decoded<'a>, Fault> {
        let filters = list(&self.first_of(&stream.dict, ["Filter", "F"])?);
        let params = list(&self.first_of(&stream.dict, ["DecodeParms", "DP"])?);
        let mut bytes = self.raw(stream)?;
        for (index, name) in filters.iter().take(MOST_FILTERS).enumerate() {
            let name = self.resolve(name)?;
            let params = match params.get(index) {
                Some(params) => self.resolve(params)?.dict().unwrap_or_default(),
                None => Rc::default(),
            };
            let number = |key, default| -> Result<usize, Fault> {
                Ok(self.get(&params, key)?.count().unwrap_or(default))
            };
            let predictor = Predictor {
                kind: number("Predictor", 1)?,
                colors: number("Colors", 1)?,
                bits: number("BitsPerComponent", 8)?,
                columns: number("Columns", 1)?,
            };
            let early = number("EarlyChange", 1)? != 0;
            let name = name.name().unwrap_or_default();
            let Some(made) = filter::decode(name, &bytes, predictor, early) else {
                return Ok((bytes, Some(name.into())));
            };
            self.budget.bytes(made.len())?;
            bytes = Cow::Owned(made);
        }
        Ok((bytes, None))
    }

    /// A stream's bytes before any filter, decrypted.
    fn raw(&self, stream: &Stream) -> Result<Cow<'a, [u8]>, Fault> {
        let bytes = self.extent(stream)?;
        let bytes = &bytes[..bytes.len().min(filter::MOST_OUTPUT)];
        self.budget.bytes(bytes.len())?;
        let plain = stream.dict.is("Type", "XRef") || self.is_plain(&stream.dict)?;
        match &*self.crypt.borrow() {
            Some(crypt) if !plain => Ok(crypt.decrypt(bytes, stream.id, stream.generation).into()),
            _ => Ok(bytes.into()),
        }
    }

    /// Whether a stream says that it is not encrypted though the file is.
    fn is_plain(&self, dict: &Dict) -> Result<bool, Fault> {
        let filters = list(&self.first_of(dict, ["Filter", "F"])?);
        let params = list(&self.first_of(dict, ["DecodeParms", "DP"])?);
        let first = filters.first().and_then(Object::name) == Some("Crypt");
        Ok(first && params.first().and_then(Object::dict).is_none_or(|dict| !dict.is("Name", "StdCF")))
    }

    /// Where a stream's bytes are: as long as it says if that is true, else up to `endstream`.
    fn extent(&self, stream: &Stream) -> Result<&'a [u8], Fault> {
        let rest = self.bytes.get(stream.start..).unwrap_or_default();
        if let Some(length) = self.get(&stream.dict, "Length")?.count()
            && length <= rest.len()
            && Lexer::file(self.bytes, stream.start + length).word(b"endstream")
        {
            return Ok(&rest[..length]);
        }
        let end = memchr::memmem::find(rest, b"endstream").unwrap_or(rest.len());
        self.budget.steps(end as u64 / 64)?;
        let bytes = &rest[..end];
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        Ok(bytes.strip_suffix(b"\r").unwrap_or(bytes))
    }

    fn first_of(&self, dict: &Dict, keys: [&str; 2]) -> Result<Object, Fault> {
        let [long, short] = keys;
        if dict.has(long) { self.get(dict, long) } else { self.get(dict, short) }
    }
}

/// One thing, or the things in a list.
fn list(object: &Object) -> Vec<Object> {
    match object {
        Object::Null => Vec::new(),
        Object::Array(items) => items.iter().take(MOST_FILTERS).cloned().collect(),
        other => vec![other.clone()],
    }
}
