//! Tokenizers, detokenizer and chat templates. The same file runs natively and, through wasm-pack, in a
//! browser.

#[path = "suite/text.rs"]
mod suite;

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

use suite::{detokenizer, hostile, sentencepiece, template, tokenizer};

/// The Llama-3 vocabulary, which is fetched rather than committed (its licence is not ours).
fn llama_3_tokenizer() -> Option<Vec<u8>> {
    let Some(path) = std::env::var_os("STERNA_LLAMA3_TOKENIZER") else {
        eprintln!(
            "skipped: set STERNA_LLAMA3_TOKENIZER to the file that scripts/fetch-llama3-tokenizer.mjs writes"
        );
        return None;
    };
    Some(std::fs::read(path).expect("STERNA_LLAMA3_TOKENIZER names a readable file"))
}

#[test]
fn llama_3_from_json() {
    if let Some(json) = llama_3_tokenizer() {
        tokenizer::llama_3_from_json(&json);
    }
}

#[test]
fn llama_3_from_gguf() {
    if let Some(json) = llama_3_tokenizer() {
        tokenizer::llama_3_from_gguf(&json);
    }
}

/// `#[test]` functions that call functions of the suite.
macro_rules! tests {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(#[test] fn $name() { $module::$name(); })*
    };
}

tests! {
    tokenizer::bit_7m,
    tokenizer::named_pre_tokenizers_cut_words,
    sentencepiece::merges_follow_the_scores,
    sentencepiece::special_tokens_are_matched,
    sentencepiece::leading_space_depends_on_what_came_before,
    sentencepiece::converted_vocabulary_agrees_with_the_reference,
    detokenizer::streaming_equals_decoding,
    detokenizer::any_ids_decode_as_in_the_reference,
    detokenizer::characters_arrive_whole,
    detokenizer::long_streams_stay_fast,
    hostile::added_tokens_keep_their_ids,
    hostile::the_models_id_of_an_added_token_wins,
    hostile::wrong_json_fields_are_errors,
    hostile::truncated_json_is_corrupt,
    hostile::damaged_json_never_panics,
    hostile::replaced_json_values_never_panic,
    hostile::arbitrary_gguf_never_panics,
    hostile::wrong_gguf_fields_are_errors,
    hostile::odd_gguf_fields_work,
    hostile::extreme_texts,
    template::templates_render_as_in_transformers,
    template::hostile_templates_are_errors,
    template::errors_say_what_is_wrong,
    template::bitnet_2b_4t_gets_its_own_template,
    template::fallback_templates_follow_the_vocabulary,
    template::messages_accept_openai_shapes,
}
