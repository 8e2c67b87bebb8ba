//! What object stores say when they fail, in one line and without secrets.

use crate::location::{Kind, Remote, shown};
use crate::options::StoreOptions;
use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use pleach_set::StoreError;
use std::error::Error as StdError;
use std::io;

/// Why a request failed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// What the client of the store says.
    Store(Error),
    /// The object is another one than before.
    Replaced,
    /// The object or the answer has a wrong length, or other wrong bytes.
    Wrong(String),
    /// The object ends before these bytes.
    End,
    /// What was asked for is not allowed.
    Refused(String),
    /// A local file failed, or the threads of requests.
    Local(io::Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        if is_replaced(&error) { Self::Replaced } else { Self::Store(error) }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Local(error)
    }
}

/// Returns true if the store says that the object is not the one with the tag. While a body is read again the
/// error is inside of another one.
fn is_replaced(error: &Error) -> bool {
    match error {
        Error::Precondition { .. } => true,
        Error::Generic { source, .. } => source.downcast_ref::<Error>().is_some_and(is_replaced),
        _ => false,
    }
}

/// Texts that no message may have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    pub(crate) fn of(remote: &Remote, options: &StoreOptions) -> Self {
        let names = ["KEY", "TOKEN", "SECRET", "SAS", "PASSWORD", "SIGNATURE", "ACCOUNT"];
        let is_secret = |name: &str| {
            ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix))
                && names.iter().any(|part| name.contains(part))
        };
        let mut all: Vec<String> = options
            .environment
            .iter()
            .filter(|(name, _)| is_secret(name))
            .map(|(_, value)| value.clone())
            .collect();
        let url = remote.url();
        all.extend(url.password().map(str::to_owned));
        all.extend(url.query().map(str::to_owned));
        all.extend(url.query_pairs().map(|(_, value)| value.into_owned()));
        all.retain(|text| text.len() >= 6);
        // A longer one may hold a shorter one.
        all.sort_by_key(|text| std::cmp::Reverse(text.len()));
        Self(all)
    }

    /// Returns a text without them, without queries of URLs, and on one line of moderate length.
    fn hide(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.0 {
            text = text.replace(secret, "***");
        }
        let words: Vec<String> = text
            .split_whitespace()
            .map(|word| if word.contains("://") { shown(word) } else { word.to_owned() })
            .collect();
        words.join(" ").chars().take(300).collect()
    }
}

/// Makes the error of a request.
pub(crate) fn failed(
    operation: &'static str,
    name: String,
    fault: Fault,
    (kind, secrets): (Kind, &Secrets),
) -> StoreError {
    let source = match fault {
        Fault::Store(error) => said(&error, kind, secrets),
        Fault::Replaced => io::Error::other("it was replaced while it was read: open it again"),
        Fault::Wrong(text) => io::Error::new(io::ErrorKind::InvalidData, text),
        Fault::End => {
            io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before the bytes that were asked for")
        }
        Fault::Refused(text) => io::Error::new(io::ErrorKind::InvalidInput, text),
        Fault::Local(error) => error,
    };
    StoreError { operation, name, source }
}

fn said(error: &Error, kind: Kind, secrets: &Secrets) -> io::Error {
    let says = || answer(error).unwrap_or_else(|| secrets.hide(&innermost(error).to_string()));
    let is_denied =
        || status(error).is_some_and(|status| status.starts_with("401") || status.starts_with("403"));
    match error {
        Error::NotFound { .. } => io::Error::new(io::ErrorKind::NotFound, "there is no such object"),
        Error::AlreadyExists { .. } => {
            io::Error::new(io::ErrorKind::AlreadyExists, "there is an object of this name")
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => denied(&says(), kind),
        Error::NotImplemented { .. } | Error::NotSupported { .. } => {
            let text = format!("the store cannot do that: {}", says());
            io::Error::new(io::ErrorKind::Unsupported, text)
        }
        // Lists are refused by an error of no kind.
        _ if is_denied() => denied(&says(), kind),
        _ => match find::<HttpError>(error).map(HttpError::kind) {
            Some(HttpErrorKind::Timeout) => {
                io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time")
            }
            Some(HttpErrorKind::Connect) => {
                io::Error::new(io::ErrorKind::NotConnected, "no connection to the server")
            }
            Some(HttpErrorKind::Request | HttpErrorKind::Interrupted | HttpErrorKind::Decode) => {
                io::Error::new(io::ErrorKind::ConnectionAborted, "the answer of the server broke off")
            }
            Some(_) | None => io::Error::other(says()),
        },
    }
}

fn denied(says: &str, kind: Kind) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("{says}: {}", advice(kind)))
}

/// Returns what to do when credentials are missing or not enough.
pub(crate) fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::S3 => "give credentials by the environment, as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        Kind::Google => "give credentials by the environment, as GOOGLE_SERVICE_ACCOUNT",
        Kind::Azure => {
            "give credentials by the environment, as AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
        }
        Kind::Http => "the server asks for a user and a password, or the URL is no longer valid",
    }
}

/// Returns the status of the answer of a server, and its text.
fn parts(error: &Error) -> Option<(String, String)> {
    const STATUS: &str = "status code: ";
    let text = error.to_string();
    let status = &text[text.find(STATUS)? + STATUS.len()..];
    let (status, body) = status.split_once(':').unwrap_or((status, ""));
    let is_status = status.len() <= 60 && status.starts_with(|digit: char| digit.is_ascii_digit());
    is_status.then(|| (status.to_owned(), body.to_owned()))
}

fn status(error: &Error) -> Option<String> {
    parts(error).map(|(status, _)| status)
}

/// Returns the status and the code of the answer of a server, but not its text, which may repeat what was sent.
fn answer(error: &Error) -> Option<String> {
    let (status, body) = parts(error)?;
    let code = ["<Code>", "\"reason\": \"", "\"reason\":\""].iter().find_map(|mark| {
        let rest = &body[body.find(mark)? + mark.len()..];
        let code = &rest[..rest.find(['<', '"'])?];
        (code.len() <= 60 && code.chars().all(|letter| letter.is_ascii_alphanumeric())).then_some(code)
    });
    Some(match code {
        Some(code) => format!("the server answers {status} ({code})"),
        None => format!("the server answers {status}"),
    })
}

/// Returns the status of the answer of a server, if it is one.
pub(crate) fn is_answer(fault: &Fault) -> bool {
    matches!(fault, Fault::Store(error) if answer(error).is_some())
}

/// Returns true if a fault may be gone at the next try, and the client did not try again.
pub(crate) fn is_broken_off(fault: &Fault) -> bool {
    matches!(fault, Fault::Store(error @ Error::Generic { .. }) if find::<HttpError>(error).is_some())
}

fn find<E: StdError + 'static>(error: &Error) -> Option<&E> {
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<E>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

fn innermost(error: &Error) -> &(dyn StdError + 'static) {
    let mut last: &(dyn StdError + 'static) = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn answers_are_short() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>AKIA</AWSAccessKeyId></Error>";
        let error = generic(&format!("Server returned non-2xx status code: 403 Forbidden: {body}"));
        assert_eq!(
            answer(&error).as_deref(),
            Some("the server answers 403 Forbidden (SignatureDoesNotMatch)")
        );
        assert_eq!(answer(&generic("no answer")), None);
        let plain = generic("Server returned non-2xx status code: 500 Internal Server Error: ");
        assert_eq!(answer(&plain).as_deref(), Some("the server answers 500 Internal Server Error"));
    }

    #[test]
    fn secrets_are_hidden() {
        let secrets = Secrets(vec!["hidden-key".to_owned()]);
        let text = secrets.hide("bad\n key hidden-key at http://user:word@host/a?sig=1");
        assert_eq!(text, "bad key *** at http://host/a");
    }

    #[test]
    fn a_replaced_object_is_found_in_another_error() {
        let inner = Error::Precondition { path: "a".to_owned(), source: "412".into() };
        let outer = Error::Generic { store: "S3", source: Box::new(inner) };
        assert!(matches!(Fault::from(outer), Fault::Replaced));
    }
}
