//! Tokens of an expression: words, numbers, texts and signs, each with its place.

use super::error::ExprError;
use std::ops::Range;

/// A token of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// A name or a word of the language.
    Name(String),
    /// A name between backquotes; never a word of the language.
    Quoted(String),
    /// A whole number; a sign before it is an operator.
    Integer(u128),
    /// A number with a point or an exponent.
    Float(f64),
    /// A text between quotes.
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
    /// End of the text.
    End,
}

impl Token {
    /// Returns the token as messages show it.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Name(name) | Self::Quoted(name) => format!("'{name}'"),
            Self::Integer(number) => format!("'{number}'"),
            Self::Float(number) => format!("'{number}'"),
            Self::Text(text) => format!("the text {text:?}"),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Signs, longer ones before those that they begin with.
const SIGNS: [&str; 25] = [
    "<=", ">=", "==", "!=", "<>", "<<", ">>", "<", ">", "=", "&", "|", "^", "+", "-", "*", "/", "%", "(",
    ")", "[", "]", ",", ":", ".",
];

/// Signs of other languages, and the words for them in this one.
const FOREIGN: [(&str, &str); 3] = [("&&", "and"), ("||", "or"), ("!", "not")];

/// Splits `text` into tokens; the last one is [`Token::End`]. O(length).
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, ExprError> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter.is_whitespace() {
            at += letter.len_utf8();
            continue;
        }
        let (token, length) = match letter {
            '0'..='9' => number(text, at)?,
            '\'' | '"' => quoted(text, at, letter).map(|(text, length)| (Token::Text(text), length))?,
            '`' => quoted(text, at, letter).map(|(text, length)| (Token::Quoted(text), length))?,
            _ if letter.is_alphabetic() || letter == '_' => {
                let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
                let name = &rest[..end.unwrap_or(rest.len())];
                (Token::Name(name.to_owned()), name.len())
            }
            '@' if rest.starts_with("@row") => {
                return Err(ExprError::new(text, at..at + 4, "'@row' is for build", "rank"));
            }
            _ => sign(text, at, letter)?,
        };
        found.push((token, at..at + length));
        at += length;
    }
    found.push((Token::End, text.len()..text.len()));
    Ok(found)
}

fn sign(text: &str, at: usize, letter: char) -> Result<(Token, usize), ExprError> {
    let rest = &text[at..];
    let known = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
    if let Some((foreign, ours)) = FOREIGN.into_iter().find(|(foreign, _)| rest.starts_with(foreign))
        && known != Some("!=")
    {
        let what = format!("unknown operator '{foreign}'");
        return Err(ExprError::new(text, at..at + foreign.len(), what, ours));
    }
    match known {
        Some(sign) => Ok((Token::Sign(sign), sign.len())),
        None => {
            let what = format!("unexpected character '{}'", letter.escape_debug());
            let allowed = "a name, a number, a text or an operator";
            Err(ExprError::new(text, at..at + letter.len_utf8(), what, allowed))
        }
    }
}

/// Returns the text at `at` between `quote`s, which are doubled inside, and its length in the expression.
fn quoted(text: &str, at: usize, quote: char) -> Result<(String, usize), ExprError> {
    let mut plain = String::new();
    let mut letters = text[at + 1..].char_indices().peekable();
    while let Some((offset, letter)) = letters.next() {
        if letter == quote {
            if letters.peek().is_none_or(|&(_, next)| next != quote) {
                return Ok((plain, offset + 2));
            }
            letters.next();
        }
        plain.push(letter);
    }
    Err(ExprError::new(text, at..text.len(), "missing closing quote", format!("{quote} at its end")))
}

/// Returns the number at `at`, and its length.
fn number(text: &str, at: usize) -> Result<(Token, usize), ExprError> {
    let rest = &text[at..];
    let (radix, prefix) = match rest.get(..2) {
        Some("0x" | "0X") => (16, 2),
        Some("0b" | "0B") => (2, 2),
        _ => (10, 0),
    };
    let part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut end = rest.find(|letter| !part(letter)).unwrap_or(rest.len());
    if radix == 10 {
        // A point needs a digit after it; an exponent may have a sign.
        let is_digit = |at: usize| rest.as_bytes().get(at).is_some_and(u8::is_ascii_digit);
        if rest[end..].starts_with('.') && is_digit(end + 1) {
            end = rest[end + 1..].find(|letter| !part(letter)).map_or(rest.len(), |more| end + 1 + more);
        }
        if rest[..end].ends_with(['e', 'E']) && rest[end..].starts_with(['+', '-']) && is_digit(end + 1) {
            end = rest[end + 1..].find(|letter| !part(letter)).map_or(rest.len(), |more| end + 1 + more);
        }
    }
    let place = at..at + end;
    let digits: String = rest[prefix..end].chars().filter(|&letter| letter != '_').collect();
    let allowed = "a whole number such as 1000, 1_000 or 0xff, or a number such as 0.5 or 1e9";
    let refused = |what: String| ExprError::new(text, place.clone(), what, allowed);
    if radix == 10 && digits.contains(['.', 'e', 'E']) {
        let number = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        return match number {
            Some(number) => Ok((Token::Float(number), end)),
            None => Err(refused(format!("invalid number '{}'", &rest[..end]))),
        };
    }
    let all_digits = !digits.is_empty() && digits.chars().all(|letter| letter.is_digit(radix));
    if !all_digits {
        return Err(refused(format!("invalid number '{}'", &rest[..end])));
    }
    match u128::from_str_radix(&digits, radix) {
        Ok(number) => Ok((Token::Integer(number), end)),
        Err(_) => Err(refused(format!("'{}' is larger than any key", &rest[..end]))),
    }
}
