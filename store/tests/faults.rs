//! Servers that fail: the answer is right, or there is one error. Never a wrong answer, and no secret in a message.

use crate::kit::rules::Action;
use crate::kit::tables::{Table, compare, one_line, open, publish, table};
use crate::kit::{BUCKET, Server};
use pleach_set::{Datum, Store};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a client makes of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Right,
    Error,
}
use Outcome::{Error, Right};

fn shared(server: &Server, whole: bool) -> Arc<dyn Store> {
    Arc::new(server.set_with("orders", server.options().whole(whole)))
}

/// Faults for reads, and what becomes of one of them and of all.
fn faults() -> [(&'static str, Action, Outcome, Outcome); 6] {
    [
        ("500", Action::Status(500), Right, Error),
        ("403", Action::Status(403), Error, Error),
        ("reset", Action::Reset, Right, Error),
        ("truncated", Action::Truncate, Right, Error),
        ("flipped", Action::Flip, Error, Error),
        // Four pieces: one try takes too long.
        ("slow", Action::Slow(Duration::from_millis(600)), Right, Error),
    ]
}

fn check(server: &Server, rows: &Table, part: &str, fault: &(&str, Action, Outcome, Outcome), whole: bool) {
    let (name, action, once, always) = fault;
    for (times, expected) in [(1, once), (usize::MAX, always)] {
        // Nothing is in the cache yet.
        let _ = std::fs::remove_dir_all(server.cache.path());
        server.rules.clear();
        server.rules.add("GET", part, (0, times), action.clone());
        let done = open(&shared(server, whole)).and_then(|set| {
            assert_eq!(set.len(), rows.len() as u64);
            set.get(&Datum::U64(301))
        });
        let outcome = match &done {
            Ok(value) => {
                assert_eq!(*value, rows.get(&301).map(|value| Datum::U64(*value)), "{name} in {part}");
                Right
            }
            Err(error) => {
                one_line(error);
                Error
            }
        };
        assert_eq!(outcome, *expected, "{name} in {part}, {times} times, whole {whole}: {done:?}");
    }
    server.rules.clear();
    let set = open(&shared(server, whole)).expect("a set");
    compare(&set, rows).expect("answers");
}

#[test]
fn reads_of_whole_files_are_right_or_errors() {
    let (server, rows) = (Server::s3(), table(600, 1));
    publish(&shared(&server, true), &rows, 300).expect("a set");
    for fault in faults() {
        for part in ["manifests/", "files/"] {
            check(&server, &rows, part, &fault, true);
        }
    }
}

#[test]
fn look_ups_are_right_or_errors() {
    let (server, rows) = (Server::s3(), table(600, 1));
    publish(&shared(&server, false), &rows, 300).expect("a set");
    for fault in faults() {
        check(&server, &rows, "files/", &fault, false);
    }
}

#[test]
fn a_hint_that_fails_is_no_hint() {
    let (server, rows) = (Server::s3(), table(100, 2));
    publish(&shared(&server, false), &rows, 100).expect("a set");
    for action in [Action::Status(404), Action::Status(403), Action::Flip, Action::Truncate] {
        server.rules.clear();
        server.rules.add("GET", "latest", (0, usize::MAX), action);
        compare(&open(&shared(&server, false)).expect("a set"), &rows).expect("answers");
    }
}

#[test]
fn writes_that_fail_leave_the_old_set() {
    let (server, rows) = (Server::s3(), table(100, 3));
    publish(&shared(&server, false), &rows, 100).expect("a set");
    for part in ["files/", "manifests/", ".probe-"] {
        for (action, times, expected) in [
            (Action::Status(500), 1, Right),
            (Action::Status(500), usize::MAX, Error),
            (Action::Status(403), usize::MAX, Error),
            (Action::Reset, usize::MAX, Error),
        ] {
            server.rules.clear();
            server.rules.add("PUT", part, (0, times), action);
            let before = open(&shared(&server, false)).expect("a set").generation();
            let done = publish(&shared(&server, false), &rows, 100);
            server.rules.clear();
            let set = open(&shared(&server, false)).expect("a set");
            let outcome = match &done {
                Ok(manifest) => {
                    assert_eq!((manifest.generation(), set.generation()), (before + 1, before + 1));
                    Right
                }
                Err(error) => {
                    one_line(error);
                    assert_eq!(set.generation(), before);
                    Error
                }
            };
            assert_eq!(outcome, expected, "{part}, {times} times: {done:?}");
            compare(&set, &rows).expect("answers");
        }
    }
    // What is no error: the hint.
    server.rules.add("PUT", "latest", (0, usize::MAX), Action::Status(500));
    publish(&shared(&server, false), &rows, 100).expect("a set");
    server.rules.clear();
    compare(&open(&shared(&server, false)).expect("a set"), &rows).expect("answers");
}

#[test]
fn lists_that_fail_delete_nothing() {
    let (server, rows) = (Server::s3(), table(100, 4));
    (0..3).for_each(|_| drop(publish(&shared(&server, false), &rows, 100).expect("a set")));
    server.age_objects(Duration::from_secs(100 * 3600));
    let options = pleach_set::SweepOptions { keep: 1, ..Default::default() };
    server.rules.add("GET", "list-type", (0, usize::MAX), Action::Status(500));
    let error = pleach_set::sweep(&*shared(&server, false), &options).expect_err("no list");
    one_line(&error);
    server.rules.clear();
    compare(&open(&shared(&server, false)).expect("a set"), &rows).expect("answers");
    let swept = pleach_set::sweep(&*shared(&server, false), &options).expect("a sweep");
    assert_eq!(swept.files.len(), 2);
}

#[test]
fn an_object_that_is_replaced_midway_is_an_error() {
    let (server, rows) = (Server::s3(), table(3_000, 5));
    publish(&shared(&server, false), &rows, 10_000).expect("a set");
    let name = open(&shared(&server, false)).expect("a set").manifest().name(0).to_owned();
    let path = server.path(BUCKET).join("orders").join(&name);
    let own = std::fs::read(&path).expect("the file");
    let other = {
        let mut other = own.clone();
        // As long as before, and another tag.
        *other.last_mut().expect("bytes") ^= 1;
        other
    };
    let file = server.open(&format!("s3://{BUCKET}/orders/{name}")).expect("a file");
    let before = file.read_ranges(&[0..100, 5_000..5_100]).expect("bytes");
    assert_eq!((&before[0][..], &before[1][..]), (&own[..100], &own[5_000..5_100]));
    server.replace(&path, &other);
    let error = file.read_ranges(&[0..100]).expect_err("another object");
    assert!(error.to_string().contains("it was replaced while it was read: open it again"), "{error}");
    assert!(file.fetch().expect_err("another object").to_string().contains("it was replaced"));

    // In the middle of a body, too, which is then read again.
    let file = server.open(&format!("s3://{BUCKET}/orders/{name}")).expect("a file");
    let (folder, place) = (server.folder.path().to_owned(), path.clone());
    server.rules.add("GET", &name, (0, 1), Action::Truncate);
    let again = own.clone();
    server.rules.add(
        "GET",
        &name,
        (0, 1),
        Action::First(Arc::new(move || crate::kit::replace(&folder, &place, &again))),
    );
    let error = file.read_ranges(&[0..4_000]).expect_err("another object");
    assert!(error.to_string().contains("it was replaced"), "{error}");
}

#[test]
fn a_server_that_hangs_is_left_in_time() {
    let (server, rows) = (Server::s3(), table(100, 6));
    publish(&shared(&server, false), &rows, 100).expect("a set");
    server.rules.add("GET", "manifests/", (0, usize::MAX), Action::Slow(Duration::from_secs(60)));
    let started = Instant::now();
    let error = open(&shared(&server, false)).expect_err("a server that hangs");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    assert!(one_line(&error).contains("in time") || one_line(&error).contains("broke off"), "{error}");
}
