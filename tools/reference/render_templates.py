"""Render the chat templates of tests/fixtures/text with Jinja2, set up as transformers sets it up.

Usage: python render_templates.py tests/fixtures/text
Writes template_cases.json there: for each case the template, the input, and the text or the error message.
"""
import datetime
import json
import pathlib
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

LOCAL_TIME = 1753500305  # 2025-07-26 03:25:05


class Generation(Extension):
    """transformers' {% generation %}, which renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(lineno)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(pattern):
    return datetime.datetime.fromtimestamp(LOCAL_TIME, datetime.timezone.utc).strftime(pattern)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Today's weather in <city> & around \u2014 \u00b0C",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
                "required": ["city"],
            },
        },
    }
]
CALL = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2}}}
PLAIN = [
    {"role": "system", "content": "  You are terse. "},
    {"role": "user", "content": " Hi \n"},
    {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello!"},
    {"role": "user", "content": "日本語 🇯🇵?"},
]
CONVERSATIONS = {
    "user": [{"role": "user", "content": "Hello"}],
    "plain": PLAIN,
    "tool": PLAIN
    + [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "content": '{"c": 21}', "tool_call_id": "c1"},
        {"role": "assistant", "content": "21 degrees", "reasoning_content": "easy"},
    ],
    "two-calls": PLAIN + [{"role": "assistant", "content": "ok", "tool_calls": [CALL, CALL]}],
}
TOKENS = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end|>"}
VARIANTS = [
    {"add_generation_prompt": True},
    {"add_generation_prompt": False},
    {"add_generation_prompt": True, "tools": TOOLS, "enable_thinking": False},
]


def render(env, source, messages, variant):
    variables = {"tools": None, "documents": None, **TOKENS, **variant, "messages": messages}
    try:
        return {"text": env.from_string(source).render(**variables)}
    except jinja2.exceptions.TemplateError as error:
        return {"error": str(error)}


def main(folder):
    env = environment()
    cases = []
    for path in sorted(folder.glob("*.jinja")):
        for name, messages in CONVERSATIONS.items():
            for variant in VARIANTS:
                result = render(env, path.read_text(), messages, variant)
                cases.append({"template": path.name, "conversation": name, "variant": variant, **result})
    document = {"local_time": LOCAL_TIME, "tokens": TOKENS, "conversations": CONVERSATIONS, "cases": cases}
    (folder / "template_cases.json").write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n")
    print(len(cases), "cases", sum("error" in case for case in cases), "errors")


main(pathlib.Path(sys.argv[1]))
