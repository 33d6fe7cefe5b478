//! Chat templates: a list of messages → the text that the model was trained on.
//!
//! Models publish theirs as a Jinja template written for transformers, so the environment here is the
//! one that transformers sets up: whitespace options, Python's string and dict methods, `tojson`,
//! `raise_exception`, `strftime_now`. Templates come from the network: what one render may compute and
//! produce is bounded.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error as JinjaError, ErrorKind, Value, context};
use minijinja_contrib::pycompat::unknown_method_callback;
use serde_json::Map;

use super::{MAX_TEXT_BYTES, Message, python, template_depth};
use crate::error::{Error, Result, corrupt, invalid, unsupported};

/// Steps that one render may take: minijinja charges one for each instruction and for each 64 bytes of
/// data. Published templates need about a hundred for each message, so an endless loop ends within
/// milliseconds. The budget is tight for a second reason: values that a template nests cost a few steps
/// a level to build, and are freed recursively.
const FUEL_BASE: u64 = 20_000;
const FUEL_PER_MESSAGE: u64 = 1_000;
const FUEL_PER_BYTE: u64 = 1;
/// Macro calls cost ten levels each. The stack of a WebAssembly module is one MiB.
const RECURSION_LIMIT: usize = 200;
const NAME: &str = "chat_template";

/// A compiled chat template.
#[derive(Debug, Clone)]
pub struct ChatTemplate {
    environment: Environment<'static>,
}

/// What a template can see besides the messages.
#[derive(Debug, Clone, Default)]
pub struct RenderOptions {
    /// Ends the text where the assistant's answer begins.
    pub add_generation_prompt: bool,
    /// Text of the start-of-text token.
    pub bos_token: Option<String>,
    /// Text of the end-of-text token.
    pub eos_token: Option<String>,
    /// Tool definitions, a list of JSON schemas.
    pub tools: Option<serde_json::Value>,
    /// Further variables (`enable_thinking`, `documents` …).
    pub extra: Map<String, serde_json::Value>,
    /// The local date and time for `strftime_now`, in seconds since 1970-01-01 00:00 local time. With
    /// `None` the function is undefined, which templates test for.
    pub local_time: Option<i64>,
}

impl ChatTemplate {
    /// Compiles a Jinja template.
    ///
    /// # Errors
    /// `unsupported_format` when it does not parse.
    pub fn new(source: &str) -> Result<Self> {
        template_depth::check(source)?;
        let mut environment = Environment::new();
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()
            .map_err(|error| unsupported!("The chat template's syntax is not supported: {error}."))?;
        environment.set_syntax(syntax);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.set_recursion_limit(RECURSION_LIMIT);
        environment.add_filter("tojson", python::to_json);
        environment.add_function("raise_exception", raise_exception);
        environment.add_template_owned(NAME, without_generation_tags(source)).map_err(|error| {
            unsupported!(
                "The model's chat template does not parse ({}): correct chat_template.jinja or tokenizer_config.json.",
                describe(&error)
            )
        })?;
        Ok(ChatTemplate { environment })
    }

    /// The text of `messages`.
    ///
    /// # Errors
    /// `invalid_argument` when there are no messages, when the template rejects the messages (`raise_exception`: its message is in
    /// the error) or the text exceeds [`MAX_TEXT_BYTES`]; `corrupt_file` when the template does not
    /// finish; `unsupported_format` when it uses something that does not exist here.
    pub fn render(&self, messages: &[Message], options: &RenderOptions) -> Result<String> {
        if messages.is_empty() {
            return Err(invalid!("A chat needs at least one message."));
        }
        let variables = variables(messages, options);
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel(messages.len(), &variables)));
        let template = environment.get_template(NAME).map_err(|error| failure(&error))?;
        let mut text = LimitedText::default();
        template.render_captured_to(with_functions(variables, options), &mut text).map_err(|error| {
            if text.overflowed {
                return invalid!(
                    "The chat template produces more than {MAX_TEXT_BYTES} bytes of text; shorten the conversation."
                );
            }
            failure(&error)
        })?;
        String::from_utf8(text.bytes)
            .map_err(|error| corrupt!("The chat template produced text that is not UTF-8: {error}."))
    }
}

/// Every value that a template can name. `tools` and `documents` are always defined, as in
/// transformers.
fn variables(messages: &[Message], options: &RenderOptions) -> Map<String, serde_json::Value> {
    let messages: Vec<serde_json::Value> = messages.iter().map(Message::for_template).collect();
    let mut variables = Map::new();
    variables.insert("documents".to_owned(), serde_json::Value::Null);
    variables.extend(options.extra.clone());
    variables.insert("messages".to_owned(), serde_json::Value::Array(messages));
    variables.insert("tools".to_owned(), options.tools.clone().unwrap_or_default());
    variables.insert("add_generation_prompt".to_owned(), options.add_generation_prompt.into());
    for (name, token) in [("bos_token", &options.bos_token), ("eos_token", &options.eos_token)] {
        if let Some(token) = token {
            variables.insert(name.to_owned(), token.as_str().into());
        }
    }
    variables
}

fn with_functions(variables: Map<String, serde_json::Value>, options: &RenderOptions) -> Value {
    let variables = Value::from(Serde(variables));
    let Some(now) = options.local_time else {
        return variables;
    };
    let strftime_now = move |pattern: String| python::strftime(now, &pattern);
    context! { strftime_now => Value::from_function(strftime_now), ..variables }
}

/// What a render of these variables may cost.
fn fuel(messages: usize, variables: &Map<String, serde_json::Value>) -> u64 {
    let bytes = serde_json::to_string(variables).map_or(0, |text| text.len());
    FUEL_BASE + FUEL_PER_MESSAGE * messages as u64 + FUEL_PER_BYTE * bytes as u64
}

/// The error that a template raises about its input.
#[derive(Debug)]
struct Raised(String);

impl fmt::Display for Raised {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl StdError for Raised {}

fn raise_exception(message: String) -> std::result::Result<Value, JinjaError> {
    Err(JinjaError::new(ErrorKind::InvalidOperation, "raise_exception").with_source(Raised(message)))
}

fn failure(error: &JinjaError) -> Error {
    let mut source: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(cause) = source {
        if let Some(Raised(message)) = cause.downcast_ref() {
            return invalid!("The model's chat template rejects the messages: {message}");
        }
        if cause.downcast_ref::<JinjaError>().is_some_and(|cause| cause.kind() == ErrorKind::OutOfFuel) {
            return corrupt!(
                "The model's chat template does not finish: correct chat_template.jinja or tokenizer_config.json."
            );
        }
        source = cause.source();
    }
    unsupported!(
        "The model's chat template failed ({}): correct chat_template.jinja or tokenizer_config.json.",
        describe(error)
    )
}

/// Kind, detail and line of a template error, without the source listing.
fn describe(error: &JinjaError) -> String {
    let mut text = error.kind().to_string();
    if let Some(detail) = error.detail() {
        text.push_str(": ");
        text.push_str(detail);
    }
    if let Some(line) = error.line() {
        text.push_str(&format!(", line {line}"));
    }
    text
}

/// Collects output up to [`MAX_TEXT_BYTES`].
#[derive(Default)]
struct LimitedText {
    bytes: Vec<u8>,
    overflowed: bool,
}

impl io::Write for LimitedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > MAX_TEXT_BYTES {
            self.overflowed = true;
            return Err(io::Error::other("the text is too long"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// transformers' `{% generation %}` marks the assistant's text for training and renders what it
/// contains; as `{% if true %}` it does the same and keeps the tag's whitespace control.
fn without_generation_tags(source: &str) -> String {
    let mut result = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let Some(length) = rest[start..].find("%}") else {
            break;
        };
        let inner = &rest[start + 2..start + length];
        let control = |character| matches!(character, '-' | '+');
        let word = inner.trim_start_matches(control).trim_end_matches(control).trim();
        let replacement = match word {
            "generation" => "if true",
            "endgeneration" => "endif",
            other => other,
        };
        result.push_str(&rest[..start + 2]);
        result.push_str(&inner.replacen(word, replacement, 1));
        rest = &rest[start + length..];
    }
    result.push_str(rest);
    result
}
