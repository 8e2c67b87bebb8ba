//! A server of HTTP that offers the files of a folder.

use super::Body;
use super::rules::{self, Asked, Rules};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What the server can do.
#[derive(Clone, Copy)]
pub struct Style {
    /// It sends tags, and compares them.
    pub tags: bool,
    /// It answers ranges.
    pub ranges: bool,
    /// It answers HEAD.
    pub heads: bool,
    /// It asks for this header `Authorization`.
    pub authorization: Option<&'static str>,
    /// It asks for this query.
    pub query: Option<&'static str>,
}

pub const COMMON: Style = Style { tags: true, ranges: true, heads: true, authorization: None, query: None };

pub async fn answer(
    folder: PathBuf,
    rules: Arc<Rules>,
    style: Style,
    request: Request<Incoming>,
) -> io::Result<Response<Body>> {
    let action = rules.find(&Asked::of(&request));
    if let Some(answer) = rules::before(action.as_ref()).await {
        return answer;
    }
    let (status, headers, body) = found(&folder, style, &request);
    let (mut parts, ()) = Response::new(()).into_parts();
    (parts.status, parts.headers) = (status, headers);
    rules::after(action, parts, body).await
}

fn found(
    folder: &std::path::Path,
    style: Style,
    request: &Request<Incoming>,
) -> (StatusCode, HeaderMap, Bytes) {
    let only = |status| (status, HeaderMap::new(), Bytes::new());
    let given = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
    if style.authorization.is_some() && given(header::AUTHORIZATION) != style.authorization {
        return only(StatusCode::UNAUTHORIZED);
    }
    if style.query.is_some() && request.uri().query() != style.query {
        return only(StatusCode::FORBIDDEN);
    }
    let is_head = request.method() == Method::HEAD;
    if !(request.method() == Method::GET || is_head) || is_head && !style.heads {
        return only(if is_head { StatusCode::FORBIDDEN } else { StatusCode::METHOD_NOT_ALLOWED });
    }
    let path = folder.join(request.uri().path().trim_start_matches('/'));
    let Ok(bytes) = std::fs::read(&path) else { return only(StatusCode::NOT_FOUND) };
    let modified = path.metadata().and_then(|metadata| metadata.modified()).expect("a time");
    let seconds = modified.duration_since(UNIX_EPOCH).expect("a time").as_secs();
    let tag = format!("\"{:x}-{:x}\"", bytes.len(), bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>());
    let mut headers = HeaderMap::new();
    headers.insert(header::LAST_MODIFIED, date(seconds).parse().expect("a date"));
    headers.insert(header::DATE, date(now()).parse().expect("a date"));
    if style.tags {
        headers.insert(header::ETAG, tag.parse().expect("a tag"));
        if given(header::IF_MATCH).is_some_and(|other| other != tag) {
            return only(StatusCode::PRECONDITION_FAILED);
        }
    } else if given(header::IF_UNMODIFIED_SINCE).is_some_and(|time| time != date(seconds)) {
        return only(StatusCode::PRECONDITION_FAILED);
    }
    let range = given(header::RANGE).filter(|_| style.ranges).and_then(|range| {
        let (start, end) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some(start.parse::<usize>().ok()?..bytes.len().min(end.parse::<usize>().ok()? + 1))
    });
    let (status, body) = match range {
        Some(range) if range.start >= bytes.len() => return only(StatusCode::RANGE_NOT_SATISFIABLE),
        Some(range) => {
            let text = format!("bytes {}-{}/{}", range.start, range.end - 1, bytes.len());
            headers.insert(header::CONTENT_RANGE, text.parse().expect("a range"));
            (StatusCode::PARTIAL_CONTENT, Bytes::copy_from_slice(&bytes[range]))
        }
        None => (StatusCode::OK, Bytes::from(bytes)),
    };
    headers.insert(header::CONTENT_LENGTH, body.len().into());
    (status, headers, if is_head { Bytes::new() } else { body })
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_secs()
}

fn date(seconds: u64) -> String {
    let time = chrono::DateTime::from_timestamp(seconds as i64, 0).expect("a time");
    time.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
