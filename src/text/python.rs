//! What chat templates expect of Python beyond Jinja itself: `json.dumps` and `strftime`.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

/// A deeper value is an error; the serializer is recursive.
const MAX_DEPTH: usize = 128;

/// The `tojson` filter as transformers defines it: `json.dumps` with `ensure_ascii=False`, without
/// escapes for HTML.
pub(super) fn to_json(
    state: &State,
    value: &Value,
    ensure_ascii: Option<bool>,
    options: Kwargs,
) -> Result<Value, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let ensure_ascii = match ensure_ascii {
        Some(ensure_ascii) => ensure_ascii,
        None => options.get::<Option<bool>>("ensure_ascii")?.unwrap_or(false),
    };
    let sort_keys = options.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    options.assert_all_used()?;
    let (item, key) = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }, ": "),
        Some([item, key]) => (item.as_str(), key.as_str()),
        Some(_) => return Err(invalid("tojson: separators must be a pair")),
    };
    let mut writer = JsonWriter { out: String::new(), indent, item, key, ensure_ascii, sort_keys, state };
    writer.value(value, 0)?;
    Ok(Value::from(writer.out))
}

/// The local date and time `seconds` after 1970 as the pattern asks (`%d %b %Y`).
pub(super) fn strftime(seconds: i64, pattern: &str) -> Result<String, Error> {
    let Some(time) = chrono::DateTime::from_timestamp(seconds, 0) else {
        return Err(invalid("strftime_now: the time is out of range"));
    };
    let mut text = String::new();
    write!(text, "{}", time.naive_utc().format(pattern))
        .map_err(|_| invalid(format!("strftime_now: {pattern:?} is not a date format")))?;
    Ok(text)
}

struct JsonWriter<'a, 'state, 'env> {
    out: String,
    /// Spaces for each level; `None` writes one line.
    indent: Option<usize>,
    item: &'a str,
    key: &'a str,
    ensure_ascii: bool,
    sort_keys: bool,
    state: &'a State<'state, 'env>,
}

impl JsonWriter<'_, '_, '_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        if depth > MAX_DEPTH {
            return Err(invalid("tojson: the value is nested too deeply"));
        }
        let start = self.out.len();
        match value.kind() {
            ValueKind::Undefined | ValueKind::None => self.out.push_str("null"),
            ValueKind::Bool => self.out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => {
                write!(self.out, "{value}").map_err(|_| unserializable(value))?
            }
            ValueKind::Number => {
                let number = f64::try_from(value.clone())?;
                self.out.push_str(&float(number));
            }
            ValueKind::String => self.string(value.as_str().unwrap_or_default())?,
            ValueKind::Seq | ValueKind::Iterable => {
                let items: Vec<Value> = value.try_iter()?.collect();
                self.list('[', ']', items.len(), depth, |writer, at| writer.value(&items[at], depth + 1))?;
            }
            ValueKind::Map => {
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                self.list('{', '}', keys.len(), depth, |writer, at| {
                    writer.string(&keys[at].to_string())?;
                    writer.out.push_str(writer.key);
                    writer.value(&value.get_item(&keys[at])?, depth + 1)
                })?;
            }
            _ => return Err(unserializable(value)),
        }
        // Output is charged as it grows, so that a template cannot ask for more than it may use.
        self.state.consume_fuel(1 + ((self.out.len() - start) / 64) as u64)
    }

    fn list(
        &mut self,
        open: char,
        close: char,
        len: usize,
        depth: usize,
        mut write_item: impl FnMut(&mut Self, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.out.push(open);
        for at in 0..len {
            if at > 0 {
                self.out.push_str(self.item);
            }
            self.new_line(depth + 1)?;
            write_item(self, at)?;
        }
        if len > 0 {
            self.new_line(depth)?;
        }
        self.out.push(close);
        Ok(())
    }

    fn new_line(&mut self, depth: usize) -> Result<(), Error> {
        let Some(indent) = self.indent else {
            return Ok(());
        };
        let width = indent.saturating_mul(depth);
        self.state.consume_fuel((width / 64) as u64)?;
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', width));
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Error> {
        let quoted = serde_json::to_string(text)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, "tojson").with_source(error))?;
        if !self.ensure_ascii {
            self.out.push_str(&quoted);
            return Ok(());
        }
        for character in quoted.chars() {
            if matches!(character, ' '..='~') {
                self.out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                self.out.push_str(&format!("\\u{unit:04x}"));
            }
        }
        Ok(())
    }
}

/// A float as Python's `repr` writes it: the shortest digits that read back as the same number.
fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let shortest = format!("{number:?}");
    let Some((digits, exponent)) = shortest.split_once('e') else {
        return shortest;
    };
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{exponent:0>2}")
}

fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

fn unserializable(value: &Value) -> Error {
    invalid(format!("tojson: a value of type {} is not JSON", value.kind()))
}
