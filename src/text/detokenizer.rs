//! Token ids → text while a model is still generating. A character that is split over tokens is held
//! back until its last byte has come, so every piece of text that leaves here is whole.

use std::sync::Arc;

use super::Tokenizer;
use super::blueprint::LeadingSpace;
use super::token_table::TokenTable;

/// A streaming decoder. The concatenation of everything that [`push`](Self::push) and
/// [`finish`](Self::finish) return is what [`Tokenizer::decode`] returns for the same ids, and each
/// token costs time in proportion to its own length only.
#[derive(Debug, Clone)]
pub struct Detokenizer {
    table: Arc<TokenTable>,
    skip_special: bool,
    leading: LeadingSpace,
    /// The first bytes of a character whose last bytes have not come: at most three.
    pending: Vec<u8>,
}

impl Detokenizer {
    /// A decoder at the start of a text. Special tokens produce no text.
    pub fn new(tokenizer: &Tokenizer) -> Self {
        Self::with_table(tokenizer.table(), true)
    }

    /// A decoder for text that continues other text: the space at its start belongs to it.
    ///
    /// SentencePiece tokenizers put a space in front of a text and drop it when they decode. The
    /// continuation of a prompt begins in the middle of a text, where a space is a space.
    pub fn continuing(tokenizer: &Tokenizer) -> Self {
        Detokenizer { leading: LeadingSpace::Keep, ..Self::new(tokenizer) }
    }

    pub(super) fn with_table(table: Arc<TokenTable>, skip_special: bool) -> Self {
        let leading = table.leading_space;
        Detokenizer { table, skip_special, leading, pending: Vec::new() }
    }

    /// The text that `id` completes: empty for a special token, for an id outside the vocabulary, and
    /// while a character is incomplete. Bytes that can never become a character give U+FFFD.
    pub fn push(&mut self, id: u32) -> String {
        let mut text = String::new();
        self.push_into(id, &mut text);
        text
    }

    /// What is left: U+FFFD if the last character was never completed, else nothing. The decoder is
    /// then at the start of a new text.
    pub fn finish(&mut self) -> String {
        let rest = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        self.leading = self.table.leading_space;
        rest
    }

    pub(super) fn push_into(&mut self, id: u32, text: &mut String) {
        let table = Arc::clone(&self.table);
        if self.skip_special && table.is_special(id) {
            return;
        }
        let bytes = table.output(id);
        match self.leading {
            LeadingSpace::Keep => self.push_bytes(bytes, text),
            LeadingSpace::Strip { content, count } => {
                let rest = self.strip(bytes, content, count);
                self.push_bytes(rest, text);
            }
            LeadingSpace::DropFromFirstToken => {
                if table.spelled(id).is_some() {
                    self.leading = LeadingSpace::Keep;
                }
                let rest: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b' ').collect();
                self.push_bytes(&rest, text);
            }
        }
    }

    /// Removes what is still to be stripped from the start of the text and remembers how much that
    /// leaves. `content` is one whole token or the start of one, never split over tokens.
    fn strip<'bytes>(&mut self, mut bytes: &'bytes [u8], content: char, mut count: usize) -> &'bytes [u8] {
        let mut buffer = [0; 4];
        let content_bytes = content.encode_utf8(&mut buffer).as_bytes();
        while count > 0
            && let Some(rest) = bytes.strip_prefix(content_bytes)
        {
            bytes = rest;
            count -= 1;
        }
        let done = count == 0 || !bytes.is_empty();
        self.leading = if done { LeadingSpace::Keep } else { LeadingSpace::Strip { content, count } };
        bytes
    }

    fn push_bytes(&mut self, bytes: &[u8], text: &mut String) {
        if self.pending.is_empty() {
            let kept = append_complete(bytes, text);
            self.pending.extend_from_slice(&bytes[kept..]);
            return;
        }
        self.pending.extend_from_slice(bytes);
        let kept = append_complete(&self.pending, text);
        self.pending.drain(..kept);
    }
}

/// Appends the characters of `bytes` to `text`, U+FFFD for each maximal invalid part, and returns
/// where an incomplete last character starts (the length of `bytes` if there is none).
fn append_complete(bytes: &[u8], text: &mut String) -> usize {
    let mut start = 0;
    loop {
        let error = match std::str::from_utf8(&bytes[start..]) {
            Ok(valid) => {
                text.push_str(valid);
                return bytes.len();
            }
            Err(error) => error,
        };
        let valid_end = start + error.valid_up_to();
        // The bytes before `valid_end` are valid, so the lossy conversion copies them.
        text.push_str(&String::from_utf8_lossy(&bytes[start..valid_end]));
        let Some(invalid) = error.error_len() else {
            return valid_end;
        };
        text.push(char::REPLACEMENT_CHARACTER);
        start = valid_end + invalid;
    }
}
