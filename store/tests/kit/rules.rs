//! Rules by which a server fails.

use super::{Body, full};
use bytes::Bytes;
use http::{Request, Response, StatusCode, header, response::Parts};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a server does instead of its duty.
#[derive(Clone)]
pub enum Action {
    /// Answers with this status, and does nothing.
    Status(u16),
    /// Closes the connection, and does nothing.
    Reset,
    /// Does what it is told, and closes the connection without an answer.
    LoseAnswer,
    /// Sends the body in pieces with pauses.
    Slow(Duration),
    /// Ends in the middle of the body.
    Truncate,
    /// Flips a bit of the byte in the middle of the body.
    Flip,
    /// Overwrites an object that is there.
    IgnoreCondition,
    /// Does this before it answers.
    First(Arc<dyn Fn() + Send + Sync>),
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub range: Option<String>,
}

impl Asked {
    pub fn of(request: &Request<Incoming>) -> Self {
        let range = request.headers().get(header::RANGE).and_then(|range| range.to_str().ok());
        let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        Self { method: request.method().to_string(), path, range: range.map(str::to_owned) }
    }
}

struct Rule {
    method: &'static str,
    part: String,
    skip: usize,
    times: usize,
    action: Action,
}

/// The rules of a server, and the requests that it had.
#[derive(Default)]
pub struct Rules {
    rules: Mutex<Vec<Rule>>,
    asked: Mutex<Vec<Asked>>,
}

impl Rules {
    /// Adds a rule for requests with this method and this text in their path: it holds for `times` of them,
    /// after `skip` others.
    pub fn add(&self, method: &'static str, part: &str, (skip, times): (usize, usize), action: Action) {
        self.rules.lock().expect("no panic").push(Rule {
            method,
            part: part.to_owned(),
            skip,
            times,
            action,
        });
    }

    pub fn clear(&self) {
        self.rules.lock().expect("no panic").clear();
    }

    /// Returns the requests since this was called last.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("no panic"))
    }

    pub fn find(&self, asked: &Asked) -> Option<Action> {
        self.asked.lock().expect("no panic").push(asked.clone());
        let mut rules = self.rules.lock().expect("no panic");
        let rule = rules
            .iter_mut()
            .find(|rule| rule.times > 0 && rule.method == asked.method && asked.path.contains(&rule.part))?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        rule.times -= 1;
        Some(rule.action.clone())
    }
}

/// Does what comes before an answer; returns one that replaces it.
pub async fn before(action: Option<&Action>) -> Option<io::Result<Response<Body>>> {
    match action? {
        Action::Status(status) => {
            let status = StatusCode::from_u16(*status).expect("a status");
            let body = "<Error><Code>Injected</Code><Secret>secret-for-tests</Secret></Error>";
            Some(Ok(Response::builder().status(status).body(full(body.into())).expect("an answer")))
        }
        Action::Reset => Some(Err(io::ErrorKind::ConnectionReset.into())),
        Action::First(act) => {
            act();
            None
        }
        Action::LoseAnswer | Action::Slow(_) | Action::Truncate | Action::Flip | Action::IgnoreCondition => {
            None
        }
    }
}

/// Makes the answer.
pub async fn after(action: Option<Action>, mut parts: Parts, body: Bytes) -> io::Result<Response<Body>> {
    if parts.status.is_success() && !parts.headers.contains_key(header::CONTENT_LENGTH) {
        parts.headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    let middle = body.len() / 2;
    let body = match action {
        Some(Action::LoseAnswer) => return Err(io::ErrorKind::ConnectionReset.into()),
        Some(Action::Slow(pause)) => {
            let pieces: Vec<Bytes> =
                body.chunks(body.len().div_ceil(4).max(1)).map(Bytes::copy_from_slice).collect();
            let stream = futures_util::stream::unfold(pieces.into_iter(), move |mut pieces| async move {
                let piece = pieces.next()?;
                tokio::time::sleep(pause).await;
                Some((Ok::<_, io::Error>(Frame::data(piece)), pieces))
            });
            StreamBody::new(stream).boxed_unsync()
        }
        Some(Action::Truncate) => {
            let pieces: [io::Result<Frame<Bytes>>; 2] =
                [Ok(Frame::data(body.slice(..middle))), Err(io::ErrorKind::ConnectionReset.into())];
            let stream = futures_util::stream::unfold(pieces.into_iter(), |mut pieces| async move {
                let piece = pieces.next()?;
                // What comes before the end is sent.
                tokio::time::sleep(Duration::from_millis(2)).await;
                Some((piece, pieces))
            });
            StreamBody::new(stream).boxed_unsync()
        }
        Some(Action::Flip) => {
            let mut bytes = body.to_vec();
            if let Some(byte) = bytes.get_mut(middle) {
                *byte ^= 4;
            }
            full(bytes.into())
        }
        Some(Action::Status(_) | Action::Reset | Action::IgnoreCondition | Action::First(_)) | None => {
            full(body)
        }
    };
    Ok(Response::from_parts(parts, body))
}
