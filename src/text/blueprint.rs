//! Everything that defines a tokenizer, checked and independent of the file it was read from.

use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::{AddedToken, NormalizerWrapper, PreTokenizerWrapper};

use crate::error::{Result, corrupt};

/// The largest token id that a vocabulary may use. Ids index tables, so a file must not be able to
/// ask for a table of four billion entries; the largest public vocabularies have about 260,000.
pub(super) const MAX_TOKEN_ID: u32 = (1 << 21) - 1;

/// What a token stands for when text is generated from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    /// Part of text, spelled in the tokenizer's own alphabet.
    Text,
    /// Text that is spelled literally, matched before the tokenizer's model sees the input.
    Literal,
    /// Like [`PieceKind::Literal`], and not part of the text that a person reads.
    Special,
    /// One raw byte.
    Byte(u8),
    /// An id that no token has, or a token that never stands for text.
    Unused,
}

/// One entry of the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub text: String,
    pub kind: PieceKind,
}

/// How the spelling of [`PieceKind::Text`] tokens maps to bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spelling {
    /// GPT-2's alphabet: one printable character for each byte.
    ByteLevel,
    /// Plain text after these replacements (SentencePiece writes a space as `▁`).
    Plain { replacements: Vec<(String, String)> },
}

/// What decoding removes from the start of a text, undoing the space that encoding put there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeadingSpace {
    Keep,
    /// Up to `count` characters `content` at the start of the text.
    Strip {
        content: char,
        count: usize,
    },
    /// Every space of the first token.
    DropFromFirstToken,
}

/// A tokenizer, ready to be built.
pub(super) struct Blueprint {
    /// By token id.
    pub pieces: Vec<Piece>,
    /// Pairs of token texts, the one to apply first first.
    pub merges: Vec<(String, String)>,
    pub unknown: Option<String>,
    pub fuse_unknown: bool,
    pub byte_fallback: bool,
    /// A pre-token that is a token as a whole is not split and merged again.
    pub ignore_merges: bool,
    pub added: Vec<AddedToken>,
    pub normalizer: Option<NormalizerWrapper>,
    pub pre_tokenizer: Option<PreTokenizerWrapper>,
    pub spelling: Spelling,
    pub leading_space: LeadingSpace,
    /// Token ids around a text that is encoded with special tokens.
    pub prefix: Vec<u32>,
    pub suffix: Vec<u32>,
}

impl Blueprint {
    /// The model that merges characters into tokens.
    ///
    /// # Errors
    /// `corrupt_file` when a merge or the unknown token names a token that the vocabulary lacks.
    pub fn build_bpe(&mut self) -> Result<BPE> {
        let mut vocab = Vocab::with_capacity(self.pieces.len());
        for (id, piece) in self.pieces.iter().enumerate() {
            if !piece.text.is_empty() {
                // A text that two ids share encodes to the first of them; both decode.
                vocab.entry(piece.text.clone()).or_insert(id as u32);
            }
        }
        if vocab.is_empty() {
            return Err(corrupt!("The tokenizer has an empty vocabulary; download the model again."));
        }
        if let Some(unknown) = self.unknown.as_ref().filter(|unknown| !vocab.contains_key(*unknown)) {
            return Err(corrupt!("The tokenizer's unknown token {unknown:?} is not in its vocabulary."));
        }
        let mut builder = BPE::builder()
            .vocab_and_merges(vocab, std::mem::take(&mut self.merges))
            .fuse_unk(self.fuse_unknown)
            .byte_fallback(self.byte_fallback)
            .ignore_merges(self.ignore_merges);
        if let Some(unknown) = self.unknown.take() {
            builder = builder.unk_token(unknown);
        }
        builder
            .build()
            .map_err(|error| corrupt!("The tokenizer's merges do not fit its vocabulary: {error}."))
    }

    /// Every id that encoding can add must be in the vocabulary.
    pub fn check_ids(&self) -> Result<()> {
        for id in self.prefix.iter().chain(&self.suffix) {
            if *id as usize >= self.pieces.len() {
                return Err(corrupt!(
                    "The tokenizer adds token {id}, but its vocabulary has {} tokens.",
                    self.pieces.len()
                ));
            }
        }
        Ok(())
    }
}
