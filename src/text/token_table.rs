//! What each token id stands for, laid out for decoding: one block of bytes, indexed by id.

use super::blueprint::{LeadingSpace, Piece, PieceKind, Spelling};
use super::byte_alphabet;

/// Byte strings by index, without an allocation for each.
#[derive(Debug, Default)]
struct ByteStrings {
    bytes: Vec<u8>,
    /// End of string `i` in `bytes`; it starts where the previous one ends.
    ends: Vec<usize>,
}

impl ByteStrings {
    fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start..end])
    }
}

/// The decoding half of a tokenizer.
#[derive(Debug)]
pub(super) struct TokenTable {
    /// What a token adds to generated text.
    output: ByteStrings,
    /// The token as the vocabulary spells it.
    spelled: ByteStrings,
    special: Vec<bool>,
    pub leading_space: LeadingSpace,
}

impl TokenTable {
    pub fn new(pieces: &[Piece], spelling: &Spelling, leading_space: LeadingSpace) -> Self {
        let mut table = TokenTable {
            output: ByteStrings::default(),
            spelled: ByteStrings::default(),
            special: Vec::with_capacity(pieces.len()),
            leading_space,
        };
        for piece in pieces {
            table.spelled.push(piece.text.as_bytes());
            table.special.push(piece.kind == PieceKind::Special);
            match piece.kind {
                PieceKind::Text => table.output.push(&spell(&piece.text, spelling)),
                PieceKind::Literal | PieceKind::Special => table.output.push(piece.text.as_bytes()),
                PieceKind::Byte(byte) => table.output.push(&[byte]),
                PieceKind::Unused => table.output.push(&[]),
            }
        }
        table
    }

    /// Number of ids, gaps included.
    pub fn len(&self) -> usize {
        self.special.len()
    }

    /// What `id` adds to a text; nothing for an id outside the vocabulary, which a model whose
    /// embeddings are padded can produce.
    pub fn output(&self, id: u32) -> &[u8] {
        self.output.get(id as usize).unwrap_or_default()
    }

    /// `None` for an id that no token has.
    pub fn spelled(&self, id: u32) -> Option<&str> {
        let bytes = self.spelled.get(id as usize).filter(|bytes| !bytes.is_empty())?;
        std::str::from_utf8(bytes).ok()
    }

    pub fn is_special(&self, id: u32) -> bool {
        self.special.get(id as usize).copied().unwrap_or(false)
    }
}

fn spell(text: &str, spelling: &Spelling) -> Vec<u8> {
    match spelling {
        Spelling::ByteLevel => byte_alphabet::decode(text),
        Spelling::Plain { replacements } => {
            replacements.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to)).into_bytes()
        }
    }
}
