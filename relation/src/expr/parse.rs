//! Parses tokens into a tree, by recursive descent.
//!
//! ```text
//! or       and ("or" and)*
//! and      not ("and" not)*
//! not      "not" not | test
//! test     bits [ == != < <= > >= bits | ["not"] between bits "and" bits | ["not"] in "(" bits, ... ")"
//!               | ["not"] like text | ["not"] starts with text ]
//! bits     "|" over "^" over "&" over "<<" ">>" over "+" "-" over "*" "/" "%" over "-"
//! operand  number | text | name | value.name | "(" or ")"
//! ```
//! The parser does not check types. Chains of operators are loops, and nesting is limited, so that no text
//! overflows the stack.

use super::error::ExprError;
use super::lex::{Token, tokens};
use super::operator::{Arithmetic, Comparison, LEVELS};
use std::ops::Range;

/// A node of the tree, with its place in the text.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) what: What,
    /// Bytes of the text.
    pub(super) place: Range<usize>,
    /// Levels below it.
    depth: usize,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Integer(u128),
    Float(f64),
    Text(String),
    Truth(bool),
    /// A name; true if it must be that of a field: after `value.` or between backquotes.
    Name(String, bool),
    Negative(Box<Node>),
    Arithmetic(Arithmetic, Box<Node>, Box<Node>),
    Compare(Comparison, Box<Node>, Box<Node>),
    Between(Box<Node>, Box<Node>, Box<Node>),
    In(Box<Node>, Vec<Node>),
    /// The operand begins with the text.
    Prefix(Box<Node>, String),
    Not(Box<Node>),
    All(Vec<Node>),
    Any(Vec<Node>),
}

/// Deepest tree.
const DEPTH_MAX: usize = 200;

/// Words that are not names of fields, unless they are between backquotes.
const WORDS: [&str; 11] =
    ["and", "or", "not", "between", "in", "like", "starts", "with", "true", "false", "is"];

/// Parses an expression into its tree.
pub(super) fn parse(text: &str) -> Result<Node, ExprError> {
    let mut parser = Parser::new(text)?;
    let node = parser.or()?;
    match parser.peek() {
        Token::End => Ok(node),
        other => {
            let what = format!("{} after a complete expression", other.shown());
            Err(parser.refused(what, "and, or, or the end"))
        }
    }
}

pub(super) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token, Range<usize>)>,
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, ExprError> {
        Ok(Self { text, tokens: tokens(text)?, next: 0, depth: 0 })
    }

    pub(super) fn peek(&self) -> &Token {
        &self.tokens[self.next].0
    }

    fn second(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].0
    }

    /// Returns the place of the next token.
    pub(super) fn place(&self) -> Range<usize> {
        self.tokens[self.next].1.clone()
    }

    /// Returns the end of the last token.
    pub(super) fn end(&self) -> usize {
        self.next.checked_sub(1).map_or(0, |last| self.tokens[last].1.end)
    }

    pub(super) fn advance(&mut self) -> Token {
        let token = self.peek().clone();
        // The last token is not passed.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
        token
    }

    pub(super) fn refused(&self, what: impl Into<String>, allowed: impl Into<String>) -> ExprError {
        ExprError::new(self.text, self.place(), what, allowed)
    }

    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let there = matches!(self.peek(), Token::Sign(found) if *found == sign);
        if there {
            self.advance();
        }
        there
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<(), ExprError> {
        if self.accept(sign) {
            return Ok(());
        }
        let what = format!("expected '{sign}', found {}", self.peek().shown());
        Err(self.refused(what, format!("'{sign}'")))
    }

    fn is_word(token: &Token, word: &str) -> bool {
        matches!(token, Token::Name(name) if name.eq_ignore_ascii_case(word))
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let there = Self::is_word(self.peek(), word);
        if there {
            self.advance();
        }
        there
    }

    fn node(&self, what: What, start: usize, below: usize) -> Result<Node, ExprError> {
        let place = start..self.end();
        if below >= DEPTH_MAX {
            let what = format!("nested deeper than {DEPTH_MAX} levels");
            let allowed = "fewer consecutive operators or nested brackets";
            return Err(ExprError::new(self.text, place, what, allowed));
        }
        Ok(Node { what, place, depth: below + 1 })
    }

    /// Counts a level of recursion while `parse` runs.
    fn nested(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Node, ExprError>,
    ) -> Result<Node, ExprError> {
        if self.depth >= DEPTH_MAX {
            let what = format!("nested deeper than {DEPTH_MAX} levels");
            return Err(self.refused(what, "fewer nested brackets"));
        }
        self.depth += 1;
        let node = parse(self);
        self.depth -= 1;
        node
    }

    fn or(&mut self) -> Result<Node, ExprError> {
        self.chain("or", What::Any, Self::and)
    }

    fn and(&mut self) -> Result<Node, ExprError> {
        self.chain("and", What::All, Self::not)
    }

    fn chain(
        &mut self,
        word: &str,
        make: fn(Vec<Node>) -> What,
        part: fn(&mut Self) -> Result<Node, ExprError>,
    ) -> Result<Node, ExprError> {
        let start = self.place().start;
        let mut parts = vec![part(self)?];
        while self.accept_word(word) {
            parts.push(part(self)?);
        }
        let depth = parts.iter().map(|part| part.depth).max().unwrap_or(0);
        match (parts.len(), parts.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                parts.extend(last);
                self.node(make(parts), start, depth)
            }
        }
    }

    fn not(&mut self) -> Result<Node, ExprError> {
        let start = self.place().start;
        if !self.accept_word("not") {
            return self.test();
        }
        let of = self.nested(Self::not)?;
        let depth = of.depth;
        self.node(What::Not(Box::new(of)), start, depth)
    }

    fn test(&mut self) -> Result<Node, ExprError> {
        let start = self.place().start;
        let left = self.bits(0)?;
        if let Some(comparison) = self.comparison() {
            self.advance();
            let right = self.bits(0)?;
            if self.comparison().is_some() {
                let text = "a comparison of a comparison";
                return Err(self.refused(text, "a < b and b < c, or b between a and c"));
            }
            let depth = left.depth.max(right.depth);
            return self.node(What::Compare(comparison, Box::new(left), Box::new(right)), start, depth);
        }
        let words = ["between", "in", "like", "starts"];
        let negated = Self::is_word(self.peek(), "not")
            && words.into_iter().any(|word| Self::is_word(self.second(), word));
        if negated {
            self.advance();
        }
        let depth = left.depth;
        let found = if self.accept_word("between") {
            let low = self.bits(0)?;
            if !self.accept_word("and") {
                let what = format!("expected 'and', found {}", self.peek().shown());
                return Err(self.refused(what, "x between 1 and 9"));
            }
            let high = self.bits(0)?;
            let depth = depth.max(low.depth).max(high.depth);
            self.node(What::Between(Box::new(left), Box::new(low), Box::new(high)), start, depth)?
        } else if self.accept_word("in") {
            self.expect("(")?;
            let mut list = vec![self.bits(0)?];
            while self.accept(",") {
                list.push(self.bits(0)?);
            }
            self.expect(")")?;
            let depth = list.iter().map(|item| item.depth).fold(depth, usize::max);
            self.node(What::In(Box::new(left), list), start, depth)?
        } else if self.accept_word("like") {
            let place = self.place();
            let pattern = self.text()?;
            let what = match pattern.strip_suffix('%') {
                Some(prefix) if !prefix.contains(['%', '_']) => {
                    What::Prefix(Box::new(left), prefix.to_owned())
                }
                None if !pattern.contains(['%', '_']) => {
                    let text = Node { what: What::Text(pattern), place, depth: 1 };
                    What::Compare(Comparison::Equal, Box::new(left), Box::new(text))
                }
                _ => {
                    let what = format!("unsupported pattern {pattern:?}");
                    let allowed = "one % at the end, such as 'abc%'; _ and other % are not supported";
                    return Err(ExprError::new(self.text, place, what, allowed));
                }
            };
            self.node(what, start, depth)?
        } else if self.accept_word("starts") {
            self.accept_word("with");
            let prefix = self.text()?;
            self.node(What::Prefix(Box::new(left), prefix), start, depth)?
        } else if Self::is_word(self.peek(), "is") {
            return Err(self.refused("there are no null values", "a comparison"));
        } else {
            return Ok(left);
        };
        let depth = found.depth;
        if negated { self.node(What::Not(Box::new(found)), start, depth) } else { Ok(found) }
    }

    fn comparison(&self) -> Option<Comparison> {
        match self.peek() {
            Token::Sign(sign) => Comparison::from_sign(sign),
            _ => None,
        }
    }

    fn text(&mut self) -> Result<String, ExprError> {
        match self.peek() {
            Token::Text(text) => {
                let text = text.clone();
                self.advance();
                Ok(text)
            }
            other => {
                let what = format!("expected a text, found {}", other.shown());
                Err(self.refused(what, "a text in quotes, such as 'abc'"))
            }
        }
    }

    /// Parses the operators of [`LEVELS`] from `level` on.
    fn bits(&mut self, level: usize) -> Result<Node, ExprError> {
        let Some(operations) = LEVELS.get(level) else { return self.signed() };
        let start = self.place().start;
        let mut left = self.bits(level + 1)?;
        loop {
            let Token::Sign(sign) = self.peek() else { return Ok(left) };
            let Some(&(_, operation)) = operations.iter().find(|(known, _)| known == sign) else {
                return Ok(left);
            };
            self.advance();
            let right = self.bits(level + 1)?;
            let depth = left.depth.max(right.depth);
            left = self.node(What::Arithmetic(operation, Box::new(left), Box::new(right)), start, depth)?;
        }
    }

    fn signed(&mut self) -> Result<Node, ExprError> {
        let start = self.place().start;
        if !self.accept("-") {
            return self.operand();
        }
        let of = self.nested(Self::signed)?;
        let depth = of.depth;
        self.node(What::Negative(Box::new(of)), start, depth)
    }

    fn operand(&mut self) -> Result<Node, ExprError> {
        let start = self.place().start;
        let what = match self.peek().clone() {
            Token::Integer(number) => What::Integer(number),
            Token::Float(number) => What::Float(number),
            Token::Text(text) => What::Text(text),
            Token::Quoted(name) => What::Name(name, true),
            Token::Name(name) if name.eq_ignore_ascii_case("true") => What::Truth(true),
            Token::Name(name) if name.eq_ignore_ascii_case("false") => What::Truth(false),
            Token::Name(name) if !WORDS.iter().any(|word| name.eq_ignore_ascii_case(word)) => {
                return self.name();
            }
            Token::Sign("(") => {
                self.advance();
                let node = self.nested(Self::or)?;
                self.expect(")")?;
                return Ok(node);
            }
            other => {
                let what = format!("expected an operand, found {}", other.shown());
                return Err(self.refused(what, "key, value, rank, a field, a number, a text or a bracket"));
            }
        };
        self.advance();
        self.node(what, start, 0)
    }

    /// Takes a name and the `=` after it, if these come next.
    pub(super) fn rename(&mut self) -> Option<String> {
        let name = match (self.peek(), self.second()) {
            (Token::Name(name) | Token::Quoted(name), Token::Sign("=")) => name.clone(),
            _ => return None,
        };
        self.advance();
        self.advance();
        Some(name)
    }

    /// Parses a name, or `value.` and a name.
    pub(super) fn name(&mut self) -> Result<Node, ExprError> {
        let start = self.place().start;
        let (name, mut is_field) = match self.advance() {
            Token::Name(name) => (name, false),
            Token::Quoted(name) => (name, true),
            other => {
                let place = self.tokens[self.next.saturating_sub(1)].1.clone();
                let what = format!("expected a name, found {}", other.shown());
                return Err(ExprError::new(self.text, place, what, "key, value, rank or a field"));
            }
        };
        let mut name = name;
        if !is_field && name == "value" && self.accept(".") {
            match self.peek() {
                Token::Name(field) | Token::Quoted(field) => name = field.clone(),
                other => {
                    let what = format!("expected the name of a field, found {}", other.shown());
                    return Err(self.refused(what, "value.NAME"));
                }
            }
            self.advance();
            is_field = true;
        }
        self.node(What::Name(name, is_field), start, 0)
    }
}
