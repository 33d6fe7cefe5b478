//! Chat templates against Jinja2 (tools/reference/render_templates.py), and templates that misbehave.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sterna::text::{ChatTemplate, MAX_TEXT_BYTES, Message, RenderOptions, resolve_template};

const CASES: &str = include_str!("../fixtures/text/template_cases.json");
const WRONG_2B_4T: &str = "{% for message in messages %}{% if message['role'] == 'user' %}\
    {{ 'Human: ' + message['content'] + '\\n\\nBITNETAssistant: ' }}{% endif %}{% endfor %}";

/// The templates in tests/fixtures/text.
const TEMPLATES: [(&str, &str); 6] = [
    ("bitnet-2b-4t-style.jinja", include_str!("../fixtures/text/bitnet-2b-4t-style.jinja")),
    ("falcon3-style.jinja", include_str!("../fixtures/text/falcon3-style.jinja")),
    ("llama3-style.jinja", include_str!("../fixtures/text/llama3-style.jinja")),
    ("python-features.jinja", include_str!("../fixtures/text/python-features.jinja")),
    ("qwen3-style.jinja", include_str!("../fixtures/text/qwen3-style.jinja")),
    ("smollm2-style.jinja", include_str!("../fixtures/text/smollm2-style.jinja")),
];

#[derive(Deserialize)]
struct Reference {
    local_time: i64,
    tokens: Tokens,
    conversations: Map<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Tokens {
    bos_token: String,
    eos_token: String,
}

#[derive(Deserialize)]
struct Case {
    template: String,
    conversation: String,
    variant: Variant,
    text: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Variant {
    add_generation_prompt: bool,
    tools: Option<Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// Every template with every conversation gives the text, or raises the error, that Jinja2 does.
pub fn templates_render_as_in_transformers() {
    let reference: Reference = serde_json::from_str(CASES).unwrap();
    assert_eq!(reference.cases.len(), 72);
    for case in reference.cases {
        let (_, source) = TEMPLATES.iter().find(|(name, _)| *name == case.template).unwrap();
        let messages: Vec<Message> =
            serde_json::from_value(reference.conversations[&case.conversation].clone()).unwrap();
        let options = RenderOptions {
            add_generation_prompt: case.variant.add_generation_prompt,
            bos_token: Some(reference.tokens.bos_token.clone()),
            eos_token: Some(reference.tokens.eos_token.clone()),
            tools: case.variant.tools,
            extra: case.variant.extra,
            local_time: Some(reference.local_time),
        };
        let rendered = ChatTemplate::new(source).unwrap().render(&messages, &options);
        let name = format!("{} {}", case.template, case.conversation);
        match (case.text, case.error) {
            (Some(text), _) => {
                assert_eq!(rendered.unwrap_or_else(|error| panic!("{name}: {error}")), text, "{name}")
            }
            (None, Some(message)) => {
                let error = rendered.unwrap_err();
                assert_eq!(error.code(), "invalid_argument");
                assert!(error.to_string().contains(&message), "{error}");
            }
            (None, None) => panic!("a case has a text or an error"),
        }
    }
}

fn render(source: &str) -> sterna::Result<String> {
    ChatTemplate::new(source)?.render(&[Message::new("user", "Hi")], &RenderOptions::default())
}

/// A template can neither hang nor fill the memory nor crash.
pub fn hostile_templates_are_errors() {
    let many = "{% for a in range(99999) %}".repeat(3);
    let ends = "{% endfor %}".repeat(3);
    let cases = [
        ("{% for", "unsupported_format"),
        ("{{ unclosed", "unsupported_format"),
        ("{{ nothing.attribute }}", "unsupported_format"),
        ("{{ 'x' | no_such_filter }}", "unsupported_format"),
        ("{{ 'x'.no_such_method() }}", "unsupported_format"),
        ("{{ raise_exception('no ' + messages[0].role) }}", "invalid_argument"),
        ("{% macro m() %}{{ raise_exception('inside') }}{% endmacro %}{{ m() }}", "invalid_argument"),
        (&format!("{many}x{ends}"), "corrupt_file"),
        (&format!("{many}{ends}"), "corrupt_file"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "unsupported_format"),
        ("{{ 'x' * 1000000000 }}", "corrupt_file"),
        (
            "{% set n = namespace(x='x') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
            "corrupt_file",
        ),
        ("{{ [1] | tojson(indent=1000000000) }}", "corrupt_file"),
        ("{{ 'x' | indent(1000000000, true) }}", "corrupt_file"),
        ("{{ strftime_now('%Y') }}", "unsupported_format"),
    ];
    for (source, code) in cases {
        let error = render(source).expect_err(source);
        assert_eq!(error.code(), code, "{source:.80}: {error}");
    }
    // As deep as a tag may be, and deeper.
    for operator in ["not ", "- ", "1 + ", "1 ~ ", "1 ** ", "1 and ", "1 if 0 else "] {
        let size = operator.replace(' ', "").len();
        let _ = render(&format!("{{{{ {}1 }}}}", operator.repeat(990 / size)));
        let error = render(&format!("{{{{ {}1 }}}}", operator.repeat(50_000))).unwrap_err();
        assert_eq!(error.code(), "unsupported_format");
    }
    for suffix in [".a", "|lower", "[0]"] {
        let _ = render(&format!("{{{{ messages{} }}}}", suffix.repeat(980 / suffix.len())));
    }
    let _ = render(&format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(200)));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(render(&format!("{{{{ {deep} }}}}")).is_err());
    let nested = "{% set n = namespace(x=[]) %}{% for i in range(400) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x | tojson }}";
    assert_eq!(render(nested).unwrap_err().code(), "unsupported_format");
    let deeper = "{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% for j in range(30) %}{% set n.x = [n.x] %}{% endfor %}{% endfor %}{{ n.x }}";
    assert!(render(deeper).is_err());
    let long = [
        Message::new("user", "x".repeat(MAX_TEXT_BYTES / 2)),
        Message::new("user", "y".repeat(MAX_TEXT_BYTES / 2)),
    ];
    let template = ChatTemplate::new("{% for m in messages %}{{ m.content | trim }}{% endfor %}").unwrap();
    let text = template.render(&long, &RenderOptions::default()).unwrap();
    assert_eq!(text.len(), MAX_TEXT_BYTES);
    let template =
        ChatTemplate::new("{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}").unwrap();
    let error = template.render(&long, &RenderOptions::default()).unwrap_err();
    assert_eq!(error.code(), "invalid_argument");
}

/// The message of `raise_exception` and the line of a syntax error reach the user.
pub fn errors_say_what_is_wrong() {
    let raised = render("{{ raise_exception('System role not supported') }}").unwrap_err().to_string();
    assert!(raised.ends_with("System role not supported"), "{raised}");
    let template = ChatTemplate::new("{{ messages[0].content }}").unwrap();
    let empty = template.render(&[], &RenderOptions::default()).unwrap_err();
    assert_eq!(empty.code(), "invalid_argument");
    let syntax = render("fine\n{% if %}").unwrap_err().to_string();
    assert!(syntax.contains("line 2"), "{syntax}");
}

/// The wrong template of the official 2B-4T GGUF gives way to the right one.
pub fn bitnet_2b_4t_gets_its_own_template() {
    let messages = [
        Message::new("system", "Be brief."),
        Message::new("user", " Hi "),
        Message::new("assistant", "Hello."),
        Message::new("user", "Bye"),
    ];
    let expected = "<|begin_of_text|>System: Be brief.<|eot_id|>User: Hi<|eot_id|>Assistant: Hello.<|eot_id|>\
                    User: Bye<|eot_id|>Assistant: ";
    let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
    let has_token = |token: &str| token == "<|eot_id|>" || token.contains("header_id");
    for embedded in [Some(WRONG_2B_4T), None] {
        let source = resolve_template("bitnet-b1.58", embedded, has_token).unwrap();
        assert_eq!(ChatTemplate::new(source).unwrap().render(&messages, &options).unwrap(), expected);
    }
    // A published template is kept, and nothing is invented for a vocabulary without turns.
    assert_eq!(resolve_template("bitnet-b1.58", Some("{{ 1 }}"), has_token), Some("{{ 1 }}"));
    assert_eq!(resolve_template("llama", None, |_| false), None);
}

/// The templates for checkpoints that bring none.
pub fn fallback_templates_follow_the_vocabulary() {
    let messages = [Message::new("user", "Hi"), Message::new("assistant", "Yo"), Message::new("user", "Bye")];
    let options = RenderOptions { add_generation_prompt: true, ..RenderOptions::default() };
    let cases = [
        (
            ["<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"].as_slice(),
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>\
             <|start_header_id|>assistant<|end_header_id|>\n\nYo<|eot_id|>\
             <|start_header_id|>user<|end_header_id|>\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
        ),
        (
            ["<|im_start|>", "<|im_end|>"].as_slice(),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nYo<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n\
             <|im_start|>assistant\n",
        ),
        (
            ["<|system|>", "<|user|>", "<|assistant|>"].as_slice(),
            "<|user|>\nHi\n<|assistant|>\nYo<|endoftext|>\n<|user|>\nBye\n<|assistant|>\n",
        ),
    ];
    for (tokens, expected) in cases {
        let source = resolve_template("llama", None, |token| tokens.contains(&token)).unwrap();
        assert_eq!(ChatTemplate::new(source).unwrap().render(&messages, &options).unwrap(), expected);
    }
}

/// What clients of the OpenAI API send as a message.
pub fn messages_accept_openai_shapes() {
    let parts =
        json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]});
    assert_eq!(serde_json::from_value::<Message>(parts).unwrap(), Message::new("user", "ab"));
    let calls = json!({"role": "assistant", "content": null, "tool_calls": [
        {"function": {"name": "f", "arguments": "{\"x\": 1}"}}, {"function": {"name": "g", "arguments": "not json"}}
    ]});
    let message: Message = serde_json::from_value(calls.clone()).unwrap();
    assert_eq!(message.content, "");
    assert_eq!(serde_json::to_value(&message).unwrap()["tool_calls"], calls["tool_calls"]);
    let template = ChatTemplate::new(
        "{% for c in messages[0].tool_calls %}{{ c.function.arguments | tojson }};{% endfor %}",
    );
    let text = template.unwrap().render(&[message], &RenderOptions::default()).unwrap();
    assert_eq!(text, "{\"x\": 1};\"not json\";");
    let image = json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]});
    let error = serde_json::from_value::<Message>(image).unwrap_err().to_string();
    assert!(error.contains("image_url"), "{error}");
    assert!(serde_json::from_value::<Message>(json!({"content": "no role"})).is_err());
    assert!(serde_json::from_value::<Message>(json!({"role": "user", "content": 3})).is_err());
}
