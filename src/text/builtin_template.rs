//! The chat templates that Sterna brings itself: for the one official model that publishes a wrong
//! one, and for checkpoints that come without.

/// bitnet-b1.58-2B-4T as its model card and tokenizer_config.json have it. The official GGUF embeds
/// another, with the turns `Human` and `BITNETAssistant`, which the model was not trained on.
const BITNET_2B_4T: &str = include_str!("templates/bitnet-2b-4t.jinja");
const LLAMA_3: &str = include_str!("templates/llama-3.jinja");
const FALCON_3: &str = include_str!("templates/falcon-3.jinja");
const CHATML: &str = include_str!("templates/chatml.jinja");

/// What only the wrong template of 2B-4T contains.
const WRONG_2B_4T: &str = "BITNETAssistant";
/// GGUF architectures of bitnet-b1.58-2B-4T.
const ARCHITECTURES_2B_4T: [&str; 2] = ["bitnet-b1.58", "bitnet-25"];

/// The control tokens by which the turns of a template are recognised, all of them needed.
const FALLBACKS: [(&[&str], &str); 3] = [
    (&["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"], LLAMA_3),
    (&["<|im_start|>", "<|im_end|>"], CHATML),
    (&["<|system|>", "<|user|>", "<|assistant|>"], FALCON_3),
];

/// The template to use for a checkpoint: the one it embeds unless that is known to be wrong, else one
/// for the turns that its vocabulary has. `None` when nothing says how the model chats.
///
/// `architecture` is the file's own name for it, `has_token` whether the vocabulary has a token.
pub fn resolve_template<'a>(
    architecture: &str,
    embedded: Option<&'a str>,
    has_token: impl Fn(&str) -> bool,
) -> Option<&'a str> {
    if let Some(template) = embedded {
        return Some(if template.contains(WRONG_2B_4T) { BITNET_2B_4T } else { template });
    }
    if ARCHITECTURES_2B_4T.contains(&architecture) && has_token("<|eot_id|>") {
        return Some(BITNET_2B_4T);
    }
    FALLBACKS
        .iter()
        .find(|(tokens, _)| tokens.iter().all(|token| has_token(token)))
        .map(|(_, template)| *template)
}
