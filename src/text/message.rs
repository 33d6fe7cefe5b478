//! One turn of a conversation, in the shape of the OpenAI chat API.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A message of a chat. `content` may arrive as a string, as `null` (an assistant turn that only calls
/// tools) or as a list of content parts of type `text`, which are joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// `system`, `user`, `assistant`, `tool` or what else the model's template knows.
    pub role: String,
    #[serde(default, deserialize_with = "content")]
    pub content: String,
    /// Everything else (`name`, `tool_calls`, `tool_call_id` …), handed to the template as it is.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Message {
    /// A message with nothing but a role and text.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Message { role: role.into(), content: content.into(), extra: Map::new() }
    }

    /// The message as a template sees it. The arguments of tool calls become objects: the OpenAI API
    /// sends them as JSON text, templates are written for objects.
    pub(super) fn for_template(&self) -> Value {
        let mut fields = Map::new();
        fields.insert("role".to_owned(), Value::from(self.role.as_str()));
        fields.insert("content".to_owned(), Value::from(self.content.as_str()));
        fields.extend(self.extra.iter().map(|(name, value)| (name.clone(), value.clone())));
        let calls = fields.get_mut("tool_calls").and_then(Value::as_array_mut);
        for arguments in
            calls.into_iter().flatten().filter_map(|call| call.pointer_mut("/function/arguments"))
        {
            let parsed = arguments.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
            if let Some(object) = parsed.filter(Value::is_object) {
                *arguments = object;
            }
        }
        Value::Object(fields)
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let parts = match Option::<Content>::deserialize(deserializer)? {
        None => return Ok(String::new()),
        Some(Content::Text(text)) => return Ok(text),
        Some(Content::Parts(parts)) => parts,
    };
    parts
        .into_iter()
        .map(|part| match part.text {
            Some(text) if part.kind == "text" => Ok(text),
            _ => Err(D::Error::custom(format!(
                "content parts of type {:?} are not supported; the models read text only",
                part.kind
            ))),
        })
        .collect()
}
