//! What a failure says, in parts: `what: where: what to do`.

use std::error::Error;
use std::fmt::{self, Display};

/// A message of one line. Its parts are printed with `: ` between them, or as fields of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    what: String,
    /// The parts between `what` and the advice, each after `: `.
    between: String,
    /// The place, if it is known for certain.
    place: Option<String>,
    advice: Option<String>,
}

impl Message {
    /// Makes a message that says only what is wrong.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), between: String::new(), place: None, advice: None }
    }

    /// Takes over the text of a library, which is `what: where: what to do`, or the first and last of these.
    /// This is the only place that takes a text apart: what is wrong and what to do must be fixed sentences.
    /// A text of the user, such as a name, may hold `: `: it must be between them. Errors whose first or last
    /// part quotes one have their parts as fields: see `errors.rs`.
    pub fn of(text: &impl Display) -> Self {
        let text = text.to_string();
        let (text, advice) = match text.trim().rsplit_once(": ") {
            Some((text, advice)) => (text, Some(advice.to_owned())),
            None => (text.trim(), None),
        };
        let end = text.find(": ").unwrap_or(text.len());
        Self { what: text[..end].to_owned(), between: text[end..].to_owned(), place: None, advice }
    }

    /// Adds the place after the parts that are there, before the advice.
    pub fn at(self, place: impl Display) -> Self {
        let place = place.to_string();
        self.more(&place).known(place)
    }

    /// Adds the place directly after what is wrong.
    pub fn first_at(mut self, place: impl Display) -> Self {
        self.between.insert_str(0, &format!(": {place}"));
        self.known(place)
    }

    /// Sets the place, which the text names already.
    pub fn known(mut self, place: impl Display) -> Self {
        self.place = Some(place.to_string());
        self
    }

    /// Adds a detail before the advice.
    pub fn more(mut self, detail: impl Display) -> Self {
        self.between += &format!(": {detail}");
        self
    }

    /// Adds what to do.
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// Changes what to do, if the message says so.
    pub fn map_advice(mut self, change: impl Fn(String) -> String) -> Self {
        self.advice = self.advice.map(change);
        self
    }

    /// Adds the message of the cause, and takes over its advice, which is all of it if it has no other part.
    pub fn because(self, cause: Self) -> Self {
        match cause.advice {
            Some(advice) => self.more(cause.what + &cause.between).advise(advice),
            None => self.advise(cause.what + &cause.between),
        }
    }

    /// Returns what is wrong.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Returns the place, or what stands where places do.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref().or_else(|| self.between.strip_prefix(": "))
    }

    /// Returns what to do.
    pub fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }
}

impl Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.what, self.between)?;
        self.advice.iter().try_for_each(|advice| write!(f, ": {advice}"))
    }
}

/// Parsers of arguments return messages, which clap passes on as errors.
impl Error for Message {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_printed_in_order() {
        let own = Message::new("bad").at("file").more("line 3").advise("mend it");
        assert_eq!(own.to_string(), "bad: file: line 3: mend it");
        assert_eq!((own.what(), own.place(), own.advice()), ("bad", Some("file"), Some("mend it")));
        let theirs = Message::of(&"bad: line 3: mend it");
        assert_eq!(
            (theirs.what(), theirs.place(), theirs.advice()),
            ("bad", Some("line 3"), Some("mend it"))
        );
        assert_eq!(theirs.clone().at("file").to_string(), "bad: line 3: file: mend it");
        assert_eq!(theirs.clone().first_at("file").to_string(), "bad: file: line 3: mend it");
        assert_eq!(
            Message::new("cannot read").because(theirs).to_string(),
            "cannot read: bad: line 3: mend it"
        );
        assert_eq!((Message::of(&"bad").place(), Message::of(&"bad: mend it").place()), (None, None));
        // Own parts are never taken apart.
        assert_eq!(Message::new("'a: b' is not a key").at("c: d").what(), "'a: b' is not a key");
    }
}
