//! The pre-tokenizers that GGUF files name in `tokenizer.ggml.pre`: how text is cut into words before
//! the words are merged into tokens. Each is what the tokenizer.json of the model family says; the
//! names are llama.cpp's (`llama-vocab.cpp`).

use tokenizers::normalizers::NFC;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{NormalizerWrapper, PreTokenizerWrapper, SplitDelimiterBehavior};

use crate::error::{Result, corrupt, unsupported};

const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const QWEN_2: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";
/// What llama.cpp does with files that name `default`, one rule after the other.
const DEFAULT: [&str; 4] = [r"[\p{P}\$\+<=>\^~\|]+", GPT_2, r"\p{N}+", "[0-9][0-9][0-9]"];

/// How one family cuts text.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    pub normalizer: Option<NormalizerWrapper>,
    pub splitter: PreTokenizerWrapper,
    /// See [`Blueprint::ignore_merges`](super::blueprint::Blueprint::ignore_merges).
    pub ignore_merges: bool,
    /// Whether a file that does not say gets a start-of-text token.
    pub add_bos: bool,
}

type Build = fn() -> Result<PreTokenizer>;

/// The families by the names that files use.
const FAMILIES: [(&[&str], Build); 6] = [
    (&["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon_e", "falcon-e"], llama_3),
    (&["smollm"], smollm),
    (&["qwen2"], qwen_2),
    (&["gpt-2", "gpt2"], gpt_2),
    (&["olmo"], olmo),
    (&["default"], llama_cpp_default),
];

/// The pre-tokenizer called `name`.
///
/// # Errors
/// `unsupported_format`, with the list of known names: a wrong one gives wrong tokens without any
/// other sign of it.
pub(super) fn by_name(name: &str) -> Result<PreTokenizer> {
    let family = FAMILIES.iter().find(|(names, _)| names.contains(&name));
    let Some((_, build)) = family else {
        let known: Vec<&str> = FAMILIES.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        return Err(unsupported!(
            "The file's pre-tokenizer {name:?} (tokenizer.ggml.pre) is not supported; supported are {}.",
            known.join(", ")
        ));
    };
    build()
}

/// The pre-tokenizer of a file that names none: Llama 3's if the vocabulary is Llama 3's (the official
/// bitnet-b1.58-2B-4T file), else GPT-2's, which byte-level vocabularies had before the key existed.
pub(super) fn for_unnamed(is_llama_3: bool) -> Result<PreTokenizer> {
    if is_llama_3 { llama_3() } else { gpt_2() }
}

fn llama_3() -> Result<PreTokenizer> {
    Ok(PreTokenizer {
        normalizer: None,
        splitter: sequence(vec![split(LLAMA_3)?, byte_level(false)]),
        ignore_merges: true,
        add_bos: true,
    })
}

/// Qwen's tokenizer composes characters (NFC). llama.cpp leaves that out; here the same model gives
/// the same ids from GGUF as from tokenizer.json.
fn qwen_2() -> Result<PreTokenizer> {
    Ok(plain(Some(NFC.into()), sequence(vec![split(QWEN_2)?, byte_level(false)])))
}

fn smollm() -> Result<PreTokenizer> {
    Ok(plain(None, sequence(vec![Digits::new(true).into(), byte_level(true)])))
}

fn gpt_2() -> Result<PreTokenizer> {
    Ok(plain(None, byte_level(true)))
}

/// GPT-NeoX's tokenizer, which OLMo and TriLM share.
fn olmo() -> Result<PreTokenizer> {
    Ok(plain(Some(NFC.into()), byte_level(true)))
}

fn llama_cpp_default() -> Result<PreTokenizer> {
    let mut steps = DEFAULT.iter().map(|rule| split(rule)).collect::<Result<Vec<_>>>()?;
    steps.push(byte_level(false));
    Ok(plain(None, sequence(steps)))
}

fn plain(normalizer: Option<NormalizerWrapper>, splitter: PreTokenizerWrapper) -> PreTokenizer {
    PreTokenizer { normalizer, splitter, ignore_merges: false, add_bos: false }
}

fn sequence(steps: Vec<PreTokenizerWrapper>) -> PreTokenizerWrapper {
    Sequence::new(steps).into()
}

/// Spells bytes in the byte alphabet, after cutting words by GPT-2's rule if `cut`.
fn byte_level(cut: bool) -> PreTokenizerWrapper {
    ByteLevel::new(false, true, cut).into()
}

fn split(pattern: &str) -> Result<PreTokenizerWrapper> {
    Split::new(SplitPattern::Regex(pattern.to_owned()), SplitDelimiterBehavior::Isolated, false)
        .map(Into::into)
        .map_err(|error| corrupt!("The pre-tokenizer's pattern does not compile: {error}."))
}
