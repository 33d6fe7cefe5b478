//! Tells from the first bytes what a file is, and what people get instead of a model: a web page, a JSON
//! error, a Git LFS pointer, another format.

use super::metadata::shortened;
use super::safetensors;
use crate::Result;
use crate::error::{corrupt, unsupported};

/// Enough to tell every kind of file, and to quote an error message.
pub(super) const BYTES: usize = 256;

/// A container of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Gguf,
    Safetensors,
}

/// The container that starts with `start`, the first [`BYTES`] bytes of a file or all of a shorter one.
///
/// # Errors
/// `corrupt_file` or `unsupported_format` saying what the file is instead.
pub(super) fn container(name: &str, start: &[u8]) -> Result<Container> {
    if start.starts_with(b"GGUF") {
        return Ok(Container::Gguf);
    }
    if let Some((length, rest)) = start.split_first_chunk::<8>()
        && u64::from_le_bytes(*length) <= safetensors::MAX_HEADER
        && rest.first().is_none_or(|byte| *byte == b'{')
    {
        return Ok(Container::Safetensors);
    }
    refuse_non_files(name, start)?;
    let text = start.trim_ascii_start();
    if text.starts_with(b"{") {
        return Err(corrupt!(
            "{name} is JSON instead of a model, most likely an error message of the server: {}",
            shortened(&String::from_utf8_lossy(text))
        ));
    }
    if start.starts_with(b"PK\x03\x04") || start.starts_with(b"\x80\x02") {
        return Err(unsupported!(
            "{name} is a PyTorch (pickle) or zip file: get the model as safetensors or GGUF"
        ));
    }
    if start.starts_with(&[0x1f, 0x8b]) {
        return Err(unsupported!("{name} is gzip-compressed: unpack it first"));
    }
    if start.starts_with(b"lmgg") || start.starts_with(b"tjgg") || start.starts_with(b"fmgg") {
        return Err(unsupported!("{name} is in a format that GGUF replaced in 2023: get the model as GGUF"));
    }
    Err(corrupt!(
        "{name} is neither a GGUF nor a safetensors file: it does not start like one (wrong file, or damaged)"
    ))
}

/// Refuses what servers and repositories give in place of any file.
pub(super) fn refuse_non_files(name: &str, start: &[u8]) -> Result<()> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    if text.is_empty() {
        return Err(corrupt!("{name} is empty: the download failed or the file was never filled"));
    }
    if text.starts_with(b"<") {
        return Err(corrupt!(
            "{name} is a web page instead of the file: check the URL (on Hugging Face the part after the \
             repository is /resolve/main/, not /blob/main/) and whether it asks to log in"
        ));
    }
    if text.starts_with(b"version https://git-lfs") {
        return Err(corrupt!(
            "{name} is a Git LFS pointer, not the file itself: run `git lfs pull`, or download the file from \
             its /resolve/ URL"
        ));
    }
    Ok(())
}
