//! The wire format of protocol buffers.

/// How a field is written, by its number in the format.
#[derive(Clone, Copy)]
enum WireType {
    Varint = 0,
    Fixed64 = 1,
    LengthDelimited = 2,
    Fixed32 = 5,
}

/// Writes the fields of one message. Default values are left out, as the format requires.
#[derive(Debug, Default)]
pub(crate) struct ProtoWriter {
    bytes: Vec<u8>,
}

impl ProtoWriter {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.bytes.push(value.to_le_bytes()[0]);
    }

    fn tag(&mut self, field: u32, wire_type: WireType) {
        self.raw_varint(u64::from(field << 3 | wire_type as u32));
    }

    pub(crate) fn varint(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint_of_choice(field, value);
        }
    }

    /// Writes the value even if it is zero, for a field whose presence matters.
    pub(crate) fn varint_of_choice(&mut self, field: u32, value: u64) {
        self.tag(field, WireType::Varint);
        self.raw_varint(value);
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.fixed64_of_choice(field, value);
        }
    }

    fn fixed64_of_choice(&mut self, field: u32, value: u64) {
        self.tag(field, WireType::Fixed64);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn fixed32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.tag(field, WireType::Fixed32);
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Writes a double even if it is zero, for a field whose presence matters.
    pub(crate) fn double_of_choice(&mut self, field: u32, value: f64) {
        self.fixed64_of_choice(field, value.to_bits());
    }

    pub(crate) fn bytes(&mut self, field: u32, value: &[u8]) {
        if !value.is_empty() {
            self.bytes_of_choice(field, value);
        }
    }

    /// Writes the bytes even if there are none, for a field whose presence matters.
    pub(crate) fn bytes_of_choice(&mut self, field: u32, value: &[u8]) {
        self.tag(field, WireType::LengthDelimited);
        self.raw_varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    pub(crate) fn text(&mut self, field: u32, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(crate) fn packed_fixed64(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let packed: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &packed);
    }

    /// A message in a message, even if it is empty.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes_of_choice(field, &inner.bytes);
    }
}
