//! Single files: on servers of HTTP and of S3.

use crate::kit::plain::{COMMON, Style};
use crate::kit::rules::Action;
use crate::kit::{BUCKET, Server, remote};
use pleach_set::SetError;
use pleach_store::{RemoteFile, upload_file};
use std::fs;
use std::io;
use std::time::{Duration, SystemTime};

fn bytes(length: usize) -> Vec<u8> {
    (0..length as u64).map(|number| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

fn served(style: Style) -> (Server, Vec<u8>) {
    let (server, bytes) = (Server::http(style), bytes(300_000));
    fs::write(server.path("a.pleach"), &bytes).expect("a file");
    (server, bytes)
}

#[test]
fn ranges_are_read_together_where_they_are_near() {
    let (server, bytes) = served(COMMON);
    let file = server.open(&server.url("a.pleach")).expect("a file");
    assert_eq!(file.bytes(), 300_000);
    server.rules.asked();
    let ranges = [0..8, 100..200, 65_000..65_536, 250_000..258_192, 299_999..300_000];
    let read = file.read_ranges(&ranges).expect("bytes");
    for (range, read) in ranges.iter().zip(&read) {
        assert_eq!(read[..], bytes[range.start as usize..range.end as usize]);
    }
    let mut asked: Vec<_> = server.rules.asked().into_iter().filter_map(|asked| asked.range).collect();
    asked.sort();
    assert_eq!(asked, ["bytes=0-65535", "bytes=250000-299999"]);
    assert_eq!(file.read_ranges(&[]).expect("nothing").len(), 0);
    assert!(file.read_ranges(&[299_999..300_001]).is_err());
}

#[test]
fn files_that_are_replaced_are_noticed_with_and_without_tags() {
    for tags in [true, false] {
        let (server, mut bytes) = served(Style { tags, ..COMMON });
        let file = server.open(&server.url("a.pleach")).expect("a file");
        file.read_ranges(&[0..10]).expect("bytes");
        bytes[0] ^= 1;
        let path = server.path("a.pleach");
        fs::write(&path, &bytes).expect("a file");
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::options().write(true).open(&path).expect("a file").set_modified(later).expect("a time");
        for error in
            [file.read_ranges(&[0..10]).expect_err("another file"), file.fetch().expect_err("another")]
        {
            assert!(error.to_string().contains("it was replaced"), "{error}");
        }
    }
}

#[test]
fn whole_files_come_from_servers_with_and_without_ranges() {
    for ranges in [true, false] {
        let (server, bytes) = served(Style { ranges, ..COMMON });
        let file = server.open(&server.url("a.pleach")).expect("a file");
        let path = file.fetch().expect("the file");
        assert_eq!(fs::read(&path).expect("the copy"), bytes);
        // It is there now.
        server.rules.asked();
        assert_eq!(file.fetch().expect("the file"), path);
        assert_eq!(server.rules.asked(), []);
        if !ranges {
            let error = file.read_ranges(&[0..10]).expect_err("no ranges");
            assert_eq!(error.source.kind(), io::ErrorKind::Unsupported, "{error}");
        }
    }
}

#[test]
fn files_without_tags_survive_answers_that_break_off() {
    let (server, bytes) = served(Style { tags: false, ..COMMON });
    let file = server.open(&server.url("a.pleach")).expect("a file");
    server.rules.add("GET", "a.pleach", (0, 1), Action::Truncate);
    assert_eq!(file.read_ranges(&[7..70_000]).expect("bytes")[0][..], bytes[7..70_000]);
    server.rules.add("GET", "a.pleach", (0, 99), Action::Truncate);
    assert!(file.read_ranges(&[7..70_000]).is_err());
}

#[test]
fn users_passwords_and_queries_are_sent_and_not_shown() {
    let style =
        Style { authorization: Some("Basic bWU6aGlkZGVuIQ=="), query: Some("sig=hid%2Fden"), ..COMMON };
    let (server, bytes) = served(style);
    let url = format!("http://me:hidden%21@{}/a.pleach?sig=hid%2Fden", server.address);
    let file = server.open(&url).expect("a file");
    assert_eq!(file.read_ranges(&[0..9]).expect("bytes")[0][..], bytes[..9]);
    assert_eq!(file.place(), server.url("a.pleach"));
    fs::remove_file(server.path("a.pleach")).expect("the file");
    let error = file.read_ranges(&[0..9]).expect_err("no file").to_string();
    assert!(!error.contains("hid") && error.contains("there is no such object"), "{error}");
    let denied = server.open(&url.replace("hidden", "hidden-2")).expect_err("another password").to_string();
    assert!(!denied.contains("hid") && denied.contains("401"), "{denied}");
}

#[test]
fn urls_that_are_good_for_get_alone_are_opened() {
    let (server, bytes) = served(Style { heads: false, ..COMMON });
    let file = server.open(&server.url("a.pleach")).expect("a file");
    assert_eq!(file.bytes(), bytes.len() as u64);
}

#[test]
fn files_that_are_not_there_are_one_error() {
    let (server, _) = served(COMMON);
    let error = server.open(&server.url("b.pleach")).expect_err("no file");
    assert!(matches!(&error, SetError::Store(error) if error.is_missing()), "{error}");
    assert_eq!(
        error.to_string(),
        format!("cannot open: {}: there is no such object", server.url("b.pleach"))
    );
    let error = upload_file(&server.path("a.pleach"), remote(&server.url("c")), true, server.options());
    assert!(error.expect_err("a server that is only read").to_string().contains("only read"));
}

#[test]
fn files_are_sent_and_not_overwritten() {
    let server = Server::s3();
    let local = server.path("local");
    // The time of a large body depends on the machine.
    let options = || server.options().tries(2, std::time::Duration::from_secs(60));
    // One request; several parts; and both again.
    for (name, length) in [("small", 100_000), ("large", 40 << 20)] {
        let (first, second) = (bytes(length), bytes(length + 1));
        let send = |bytes: &[u8], force| {
            fs::write(&local, bytes).expect("a file");
            upload_file(&local, remote(&format!("s3://{BUCKET}/x/{name}")), force, options())
        };
        let there = server.path(BUCKET).join("x").join(name);
        send(&first, false).expect("a new file");
        assert!(fs::read(&there).expect("an object") == first, "{name}");
        let error = send(&second, false).expect_err("an object that is there");
        assert!(error.to_string().contains("there is an object of this name"), "{error}");
        assert!(fs::read(&there).expect("an object") == first, "{name}");
        send(&second, true).expect("by force");
        assert!(fs::read(&there).expect("an object") == second, "{name}");
        let url = remote(&format!("s3://{BUCKET}/x/{name}"));
        let file = RemoteFile::open(url, options()).expect("a file");
        assert_eq!(fs::read(file.fetch().expect("a copy")).expect("a copy"), second);
    }
}

#[test]
fn larger_files_than_the_limit_are_refused_before_they_come() {
    let (server, bytes) = served(COMMON);
    let options = server.options().download_bytes_max(bytes.len() as u64 - 1);
    let file = RemoteFile::open(remote(&server.url("a.pleach")), options).expect("a file");
    server.rules.asked();
    let error = file.fetch().expect_err("a large file").to_string();
    assert!(error.contains("it has 300000 bytes") && error.contains("--max-download"), "{error}");
    assert_eq!(server.rules.asked(), []);
}
