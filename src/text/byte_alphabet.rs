//! GPT-2's byte alphabet: each byte as one printable character, so that a vocabulary of byte strings
//! can be written as text. Printable Latin-1 stands for itself; the other 68 bytes get the characters
//! from U+0100 on, in order (<https://github.com/openai/gpt-2/blob/master/src/encoder.py>).

/// Whether a byte stands for itself.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The byte of each character from U+0100 on.
const SHIFTED: [u8; 68] = {
    let mut shifted = [0; 68];
    let (mut byte, mut next) = (0, 0);
    while byte < 256 {
        if !is_printable(byte as u8) {
            shifted[next] = byte as u8;
            next += 1;
        }
        byte += 1;
    }
    shifted
};

/// The byte that `character` stands for, `None` outside the alphabet.
pub(super) fn byte_of(character: char) -> Option<u8> {
    let code = character as u32;
    if let Ok(byte) = u8::try_from(code) {
        return is_printable(byte).then_some(byte);
    }
    SHIFTED.get((code - 256) as usize).copied()
}

/// The bytes that `text` stands for; a text with a character outside the alphabet is literal.
pub(super) fn decode(text: &str) -> Vec<u8> {
    text.chars().map(byte_of).collect::<Option<Vec<u8>>>().unwrap_or_else(|| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;

    #[test]
    fn the_alphabet_has_one_character_for_each_byte() {
        let mut bytes: Vec<u8> = ByteLevel::alphabet().into_iter().map(|c| byte_of(c).unwrap()).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(decode("Ġhi"), b" hi");
        assert_eq!(decode("Ċ"), b"\n");
        assert_eq!(decode("Ġ ▁"), "Ġ ▁".as_bytes());
    }
}
