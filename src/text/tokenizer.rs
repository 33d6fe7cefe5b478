//! Text ↔ token ids, over the `tokenizers` crate.

use std::sync::Arc;

use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, TokenizerImpl,
};

use super::blueprint::Blueprint;
use super::token_table::TokenTable;
use super::{Detokenizer, TokenizerSource, gguf, json};
use crate::error::{Result, corrupt, invalid};

/// The longest text that is encoded in one call, in bytes. Encoding needs up to about 200 bytes of
/// memory for each byte of text, and no model that Sterna runs reads a text of this length.
pub const MAX_TEXT_BYTES: usize = 4 << 20;

/// The longest run of white space that is encoded. The regular expressions that split text look
/// ahead at the end of such a run, and their engine gives up (silently) after a million steps.
const MAX_WHITESPACE_RUN: usize = 200_000;

type Encoder =
    TokenizerImpl<BPE, NormalizerWrapper, PreTokenizerWrapper, PostProcessorWrapper, DecoderWrapper>;

/// A byte-pair tokenizer (byte-level or SentencePiece) with its special tokens.
#[derive(Debug)]
pub struct Tokenizer {
    encoder: Encoder,
    table: Arc<TokenTable>,
    prefix: Vec<u32>,
    suffix: Vec<u32>,
}

impl Tokenizer {
    /// Builds the tokenizer that a checkpoint describes.
    ///
    /// # Errors
    /// `unsupported_format` for a kind of tokenizer that is not a byte-pair encoding, or a
    /// pre-tokenizer that is not known by name; `corrupt_file` for a description that contradicts
    /// itself.
    pub fn from_source(source: &TokenizerSource) -> Result<Self> {
        let blueprint = match source {
            TokenizerSource::Json(bytes) => json::read(bytes)?,
            TokenizerSource::Gguf(vocab) => gguf::read(vocab)?,
        };
        Self::build(blueprint)
    }

    fn build(mut blueprint: Blueprint) -> Result<Self> {
        blueprint.check_ids()?;
        let mut encoder = Encoder::new(blueprint.build_bpe()?);
        encoder.with_normalizer(blueprint.normalizer);
        encoder.with_pre_tokenizer(blueprint.pre_tokenizer);
        encoder.add_tokens(&blueprint.added);
        let table = TokenTable::new(&blueprint.pieces, &blueprint.spelling, blueprint.leading_space);
        Ok(Tokenizer { encoder, table: Arc::new(table), prefix: blueprint.prefix, suffix: blueprint.suffix })
    }

    /// The same tokenizer with `bos` in front of every text that is encoded with special tokens
    /// (`add`), or without it. This is `add_bos_token` of tokenizer_config.json, which overrules what
    /// the tokenizer itself says.
    ///
    /// # Errors
    /// `corrupt_file` when `bos` is not in the vocabulary.
    pub fn with_bos(mut self, bos: u32, add: bool) -> Result<Self> {
        if self.table.spelled(bos).is_none() {
            return Err(corrupt!("The start-of-text token {bos} is not in the tokenizer's vocabulary."));
        }
        self.prefix.retain(|id| *id != bos);
        if add {
            self.prefix.insert(0, bos);
        }
        Ok(self)
    }

    /// The ids of `text`. Text that spells a special token becomes that token, as in transformers.
    /// With `add_special`, the tokens that the tokenizer puts around a text (start of text) are added.
    ///
    /// # Errors
    /// `invalid_argument` when `text` is longer than [`MAX_TEXT_BYTES`] or has a run of more than
    /// 200,000 white-space characters.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>> {
        check_text(text)?;
        let encoding = self
            .encoder
            .encode_fast(text, false)
            .map_err(|error| invalid!("The text could not be tokenized: {error}."))?;
        if !add_special {
            return Ok(encoding.get_ids().to_vec());
        }
        Ok([&self.prefix, encoding.get_ids(), &self.suffix].concat())
    }

    /// The ids of a rendered chat template. The template writes every special token itself, so none
    /// is added and the start-of-text token is never doubled.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_chat(&self, templated: &str) -> Result<Vec<u32>> {
        self.encode(templated, false)
    }

    /// The text of `ids`, without the special tokens if `skip_special`. Bytes that form no character
    /// become U+FFFD.
    ///
    /// # Errors
    /// `invalid_argument` for an id that is not in the vocabulary.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        let mut detokenizer = Detokenizer::with_table(self.table(), skip_special);
        let mut text = String::new();
        for id in ids {
            if *id as usize >= self.vocab_size() {
                return Err(invalid!(
                    "Token {id} is not in the vocabulary; ids go from 0 to {}.",
                    self.vocab_size() - 1
                ));
            }
            detokenizer.push_into(*id, &mut text);
        }
        text.push_str(&detokenizer.finish());
        Ok(text)
    }

    /// One more than the largest token id.
    pub fn vocab_size(&self) -> usize {
        self.table.len()
    }

    /// The id of the token that the vocabulary spells `text`.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.encoder.token_to_id(text)
    }

    /// The token as the vocabulary spells it (`Ġhello`, `▁hello`), not as it reads.
    pub fn token_text(&self, id: u32) -> Option<String> {
        self.table.spelled(id).map(str::to_owned)
    }

    /// The bytes that the token adds to a text. They need not be whole characters.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        self.table.output(id)
    }

    /// Whether the token is a control token, such as the end of a turn.
    pub fn is_special(&self, id: u32) -> bool {
        self.table.is_special(id)
    }

    /// Checks that a model with `model_vocab` embeddings understands every token. A model may have
    /// more embeddings than the tokenizer has tokens: that is padding.
    ///
    /// # Errors
    /// `corrupt_file` when the tokenizer has ids that the model has no embedding for.
    pub fn check_vocab(&self, model_vocab: usize) -> Result<()> {
        if self.vocab_size() <= model_vocab {
            return Ok(());
        }
        Err(corrupt!(
            "The tokenizer does not belong to this model: it has {} tokens, the model has {model_vocab}. \
             Load the tokenizer that was published with the model.",
            self.vocab_size()
        ))
    }

    pub(super) fn table(&self) -> Arc<TokenTable> {
        Arc::clone(&self.table)
    }
}

fn check_text(text: &str) -> Result<()> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(invalid!(
            "The text has {} bytes; at most {MAX_TEXT_BYTES} can be tokenized in one call. Split it.",
            text.len()
        ));
    }
    let mut run = 0;
    for character in text.chars() {
        run = if character.is_whitespace() { run + 1 } else { 0 };
        if run > MAX_WHITESPACE_RUN {
            return Err(invalid!(
                "The text has more than {MAX_WHITESPACE_RUN} white-space characters in a row. Shorten the run."
            ));
        }
    }
    Ok(())
}
