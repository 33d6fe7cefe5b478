//! How deep a chat template's expressions may nest. The template engine parses, compiles and frees
//! expressions recursively and bounds brackets and blocks only, so a hostile run of operators
//! (`not not not …`) would overflow the stack, which in WebAssembly ends the whole module.

use crate::Result;
use crate::error::unsupported;

/// Characters of one tag, white space and texts in quotes not counted. Each operator takes at least one, so
/// this bounds the depth. The longest tags of published templates have about 300.
const MAX_TAG: usize = 1_000;
/// Branches of `if` chains, each of which nests in the one before.
const MAX_ELIF: usize = 200;

/// # Errors
/// `unsupported_format` for a template that nests deeper than any that was made for chatting.
pub(super) fn check(source: &str) -> Result<()> {
    if source.matches("elif").count() > MAX_ELIF {
        return Err(unsupported!(
            "The model's chat template does not parse: it has more than {MAX_ELIF} 'elif's."
        ));
    }
    let mut rest = source;
    while let Some(start) = rest.find("{{").into_iter().chain(rest.find("{%")).min() {
        let (length, after) = tag(&rest[start + 2..]);
        if length > MAX_TAG {
            return Err(unsupported!(
                "The model's chat template does not parse: one of its tags has more than {MAX_TAG} characters."
            ));
        }
        rest = after;
    }
    Ok(())
}

/// The counted characters of a tag and what follows it.
fn tag(body: &str) -> (usize, &str) {
    let mut length = 0;
    let mut quote = None;
    let mut chars = body.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        match (quote, char) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(open), _) if char == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(char),
            (None, '}' | '%') if chars.peek().is_some_and(|(_, next)| *next == '}') => {
                return (length, &body[at + 2..]);
            }
            (None, _) if char.is_whitespace() => {}
            (None, _) => length += 1,
        }
    }
    (length, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_fine_and_long_runs_of_operators_are_not() {
        let text = "x".repeat(5_000);
        check(&format!("{{{{ '{text}' + \"{text}\\\"\" }}}}{text}{{# {text} #}}")).unwrap();
        check(&"{% if a %}{{ b }}{% endif %}".repeat(1_000)).unwrap();
        for operator in ["not ", "- ", "1 + ", "1 if 0 else ", "a."] {
            let error = check(&format!("{{{{ {}1 }}}}", operator.repeat(2_000))).unwrap_err();
            assert_eq!(error.code(), "unsupported_format");
        }
        check(&format!("{{% if a %}}{}{{% endif %}}", "{% elif b %}".repeat(300))).unwrap_err();
        check(&format!("{{{{ {}", "- ".repeat(2_000))).unwrap_err();
    }
}
