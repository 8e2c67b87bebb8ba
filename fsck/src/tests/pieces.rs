//! Reads of a check: which bytes, how often, and which are prefetched.

use super::super::pieces::{PIECE_BYTES, Piece};
use super::super::{Check, ReadAt};
use super::Watched;
use pleach_kit::golden;
use pleach_kit::mutate::header;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Endless bytes, each a function of its place, that keep a list of the requests.
#[derive(Default)]
struct Endless {
    asked: Mutex<Vec<Range<u64>>>,
}

fn byte(at: u64) -> u8 {
    (pleach_kit::generate::mix(at / 8) >> (at % 8 * 8)) as u8
}

impl ReadAt for Endless {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (offset..).zip(buffer).for_each(|(at, it)| *it = byte(at));
        Ok(())
    }
    fn will_need(&self, offset: u64, bytes: u64) {
        self.asked.lock().expect("no panic").push(offset..offset + bytes);
    }
}

/// Every byte is returned once, with its neighbours, and requested once.
#[test]
fn pieces_are_all_of_an_extent() {
    let (offset, piece) = (1000, PIECE_BYTES);
    for extent in [0, 1, piece - 1, piece, piece + 1, 3 * piece, 3 * piece + 77, 9 * piece - 64] {
        for sides in [(0, 0), (64, 64), (64, 0), (0, 100)] {
            let source = Endless::default();
            let seen = Mutex::new(Vec::new());
            let check = Check::new(&source, offset + extent, None);
            let work = |at: u64, piece: Piece<'_>| {
                let length = piece.bytes.len() as u64;
                let before = sides.0.min(at);
                let with = at - before..(at + length + sides.1).min(extent);
                assert_eq!(piece.before as u64, before);
                let expected: Vec<u8> = with.map(|at| byte(offset + at)).collect();
                assert!(piece.with_sides == expected, "piece at {at} of {extent}");
                assert!(piece.bytes == &expected[before as usize..][..length as usize]);
                seen.lock().expect("no panic").push(at..at + length);
                Ok(())
            };
            check.pieces(offset, extent, sides, work).expect("readable");
            let in_pieces = |all: Range<u64>| {
                all.clone().step_by(piece as usize).map(move |at| at..(at + piece).min(all.end))
            };
            let mut seen = seen.into_inner().expect("no panic");
            seen.sort_unstable_by_key(|piece| piece.start);
            assert_eq!(seen, in_pieces(0..extent).collect::<Vec<_>>());
            assert_eq!(check.done.into_inner(), extent);
            let mut asked = source.asked.into_inner().expect("no panic");
            asked.sort_unstable_by_key(|range| range.start);
            // The first pieces are requested together.
            let first = offset..offset + extent.min(3 * piece);
            let rest = in_pieces(first.end..offset + extent);
            let expected: Vec<Range<u64>> =
                [first].into_iter().filter(|it| !it.is_empty()).chain(rest).collect();
            assert_eq!(asked, expected, "{extent}");
        }
    }
}

/// After an error, or where a check is cancelled, threads stop soon.
#[test]
fn threads_stop_after_an_error() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
    let pieces = 1000;
    for is_cancelled in [false, true] {
        let source = Endless::default();
        let stopped = AtomicBool::new(false);
        let progress = |_: u64, _: u64| !stopped.load(Ordering::Relaxed);
        let check = Check::new(&source, pieces * PIECE_BYTES, Some(&progress));
        let tried = AtomicU64::new(0);
        let work = |at: u64, _: Piece<'_>| {
            tried.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(1));
            match at / PIECE_BYTES {
                4 if is_cancelled => stopped.store(true, Ordering::Relaxed),
                4 => return Err(io::ErrorKind::TimedOut.into()),
                _ => {}
            }
            Ok(())
        };
        let outcome = pool.install(|| check.pieces(0, pieces * PIECE_BYTES, (0, 0), work));
        assert_eq!(outcome.is_err(), !is_cancelled);
        assert!(tried.into_inner() < pieces / 2);
    }
}

/// Reads of each section of the golden files, and their number: the costs of a check. They are stored in
/// `readings.txt`, which `PLEACH_BLESS=1 cargo test -p pleach-fsck --lib` writes anew.
#[test]
fn readings_are_those_on_record() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/readings.txt");
    let mut table = String::from("file, section, its bytes: readings, bytes read\n");
    for (name, bytes) in golden() {
        let there = header(&bytes);
        let length = bytes.len() as u64;
        let source = Watched::new(bytes);
        let report = Check::new(&source, length, None).run().expect("readable");
        assert_eq!(report.findings, [], "{name}");
        let read = source.take();
        let name = Path::new(&name).file_stem().expect("a name").display().to_string();
        for section in &there.sections {
            let extent = section.offset()..section.end;
            let of_it: Vec<_> = read.iter().filter(|it| extent.contains(&it.start)).collect();
            assert!(of_it.iter().all(|it| it.end <= extent.end), "{name}: beyond {}", section.entry.tag);
            let bytes: u64 = of_it.iter().map(|it| it.end - it.start).sum();
            let (tag, count) = (section.entry.tag, of_it.len());
            table += &format!("{name} {tag} {}: {count}, {bytes}\n", extent.end - extent.start);
        }
    }
    if std::env::var_os("PLEACH_BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &table).expect("writable");
    }
    let expected = std::fs::read_to_string(&path).expect("readable");
    let differ = table.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert_eq!(differ, None, "found, expected");
    assert!(table == expected);
}
