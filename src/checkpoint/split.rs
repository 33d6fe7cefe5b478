//! GGUF models in several files, as `llama-gguf-split` writes them: every part has a header of its own with the
//! tensors that it holds, and the first one has the model's metadata.

use super::metadata::Metadata;
use crate::Result;
use crate::error::{corrupt, invalid};

/// Which part of how many a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SplitPart {
    /// From 0 on.
    pub number: u64,
    pub count: u64,
}

/// No model comes in more files.
const MAX_PARTS: u64 = 10_000;

impl SplitPart {
    /// What a file's metadata says; `None` for a model in one file.
    ///
    /// # Errors
    /// `corrupt_file` for numbers that cannot be.
    pub fn of(metadata: &Metadata) -> Result<Option<Self>> {
        let count = metadata.uint("split.count")?.unwrap_or(1);
        let number = metadata.uint("split.no")?.unwrap_or(0);
        if count <= 1 {
            return Ok(None);
        }
        if count > MAX_PARTS || number >= count {
            return Err(corrupt!("the GGUF file says that it is part {number} of {count} of a split model"));
        }
        Ok(Some(Self { number, count }))
    }

    /// The error for a part in the place of `expected`, counted from 0.
    pub fn out_of_order(self, expected: u64) -> crate::Error {
        invalid!(
            "this is part {} of {} of a split GGUF model, where part {} was expected: give all parts, in order",
            self.number + 1,
            self.count,
            expected + 1
        )
    }
}
