//! Text ↔ token ids of one model: its tokenizer and its chat template, either of which a checkpoint may lack.

use crate::Result;
use crate::checkpoint::Checkpoint;
use crate::error::unsupported;
use crate::text::{ChatTemplate, Message, RenderOptions, Tokenizer, resolve_template};

pub struct TextTools {
    tokenizer: Option<Tokenizer>,
    template: Option<ChatTemplate>,
    bos_token: Option<String>,
    eos_token: Option<String>,
}

impl TextTools {
    /// # Errors
    /// `corrupt_file` when the tokenizer does not fit the model.
    pub fn new(checkpoint: &Checkpoint) -> Result<Self> {
        let special = &checkpoint.special;
        let mut tokenizer = checkpoint.tokenizer.as_ref().map(Tokenizer::from_source).transpose()?;
        if let (Some(bos), Some(add)) = (special.bos, special.add_bos) {
            tokenizer = tokenizer.map(|tokenizer| tokenizer.with_bos(bos, add)).transpose()?;
        }
        if let Some(tokenizer) = &tokenizer {
            tokenizer.check_vocab(checkpoint.config.vocab_size)?;
        }
        let spelled = |id: Option<u32>| tokenizer.as_ref()?.token_text(id?);
        let template = &checkpoint.template;
        let bos_token = template.bos_token.clone().or_else(|| spelled(special.bos));
        let eos_token = template.eos_token.clone().or_else(|| spelled(special.eos.first().copied()));
        let has_token = |text: &str| tokenizer.as_ref().is_some_and(|t| t.token_id(text).is_some());
        let source = resolve_template(&checkpoint.config.architecture, template.jinja.as_deref(), has_token);
        let template = source.map(ChatTemplate::new).transpose()?;
        Ok(Self { tokenizer, template, bos_token, eos_token })
    }

    pub fn has_tokenizer(&self) -> bool {
        self.tokenizer.is_some()
    }

    pub fn has_chat_template(&self) -> bool {
        self.template.is_some()
    }

    /// # Errors
    /// `unsupported_format` when the checkpoint has no tokenizer.
    pub fn tokenizer(&self) -> Result<&Tokenizer> {
        self.tokenizer.as_ref().ok_or_else(|| {
            unsupported!(
                "this checkpoint came without a tokenizer: add its tokenizer.json, or work with token ids"
            )
        })
    }

    /// Renders messages with the model's chat template. The texts of the start and end tokens are
    /// filled in.
    ///
    /// # Errors
    /// `unsupported_format` when there is no template, `invalid_argument` when it rejects the messages.
    pub fn apply_chat_template(&self, messages: &[Message], options: RenderOptions) -> Result<String> {
        let template = self.template.as_ref().ok_or_else(|| {
            unsupported!(
                "this checkpoint has no chat template (it is a base model): use generate() with plain text, \
                 or add a chat_template.jinja"
            )
        })?;
        let tokens = |given: Option<String>, ours: &Option<String>| given.or_else(|| ours.clone());
        let options = RenderOptions {
            bos_token: tokens(options.bos_token, &self.bos_token),
            eos_token: tokens(options.eos_token, &self.eos_token),
            ..options
        };
        template.render(messages, &options)
    }

    /// Token ids of a conversation.
    ///
    /// # Errors
    /// As [`Self::apply_chat_template`] and [`Self::tokenizer`].
    pub fn encode_chat(&self, messages: &[Message], options: RenderOptions) -> Result<Vec<u32>> {
        let text = self.apply_chat_template(messages, options)?;
        self.tokenizer()?.encode_chat(&text)
    }
}
