//! FASTA and FASTQ: k-mers as a naive counter finds them, whatever the pieces; truncated and odd input.

use pleach_builder::source::{Chunk, Column};
use pleach_builder::{BuildOptions, Silent, build};
use pleach_format::view::{self, HEAD_BYTES};
use pleach_format::{Header, Logical, ValueType};
use pleach_input::{InputOptions, open, open_stream};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

/// Yields a few bytes at a time, so that every border of a read is met.
struct Drip(Cursor<Vec<u8>>, usize);

impl Read for Drip {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let bytes = self.1.min(out.len());
        self.0.read(&mut out[..bytes])
    }
}

fn options(bases: usize, is_canonical: bool) -> InputOptions {
    let key_logical = Logical::of_name(if is_canonical { "dna2:canonical" } else { "dna2" });
    InputOptions { kmers: Some(bases), key_logical, ..InputOptions::default() }
}

/// Counts the k-mers of a text, and the windows left out.
fn read(text: &[u8], step: usize, options: &InputOptions) -> Result<(BTreeMap<u128, u64>, u64), String> {
    let options = InputOptions { null_counts: Default::default(), ..options.clone() };
    let stream = Box::new(Drip(Cursor::new(text.to_vec()), step));
    let mut source = open_stream("t", stream, &options).map_err(|error| error.to_string())?;
    let (mut chunk, mut all) = (Chunk::default(), BTreeMap::new());
    loop {
        source.next_chunk(&mut chunk, 7).map_err(|error| error.to_string())?;
        let Column::U128(keys) = &chunk.keys else { panic!("keys of 16 bytes") };
        if keys.is_empty() {
            return Ok((all, options.null_counts.windows()));
        }
        keys.iter().for_each(|&key| *all.entry(key).or_default() += 1);
    }
}

/// The same, from the sequences, by their texts.
fn naive(sequences: &[&str], bases: usize, is_canonical: bool) -> (BTreeMap<u128, u64>, u64) {
    let (mut all, mut left) = (BTreeMap::new(), 0);
    for sequence in sequences {
        for window in sequence.to_uppercase().as_bytes().windows(bases) {
            if window.iter().any(|letter| !b"ACGT".contains(letter)) {
                left += 1;
                continue;
            }
            let word = |text: &[u8]| {
                let codes = text.iter().map(|letter| b"ACGT".iter().position(|base| base == letter));
                let bits = codes.fold(0_u128, |bits, code| bits << 2 | code.expect("a base") as u128);
                bits << (128 - 2 * bases) | bases as u128
            };
            let other: Vec<u8> = window
                .iter()
                .rev()
                .map(|letter| b"TGCA"[b"ACGT".iter().position(|base| base == letter).expect("a base")])
                .collect();
            let key = if is_canonical { word(window).min(word(&other)) } else { word(window) };
            *all.entry(key).or_default() += 1;
        }
    }
    (all, left)
}

/// Sequences drawn from a counter, some of them with other letters and in lower case.
fn sequences() -> Vec<String> {
    let mut state = 1_u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    };
    let letter = |draw: u64| match draw % 29 {
        0 => 'N',
        1 => 'g',
        2 => '-',
        other => ['A', 'C', 'G', 'T'][other as usize % 4],
    };
    (0..12).map(|at| (0..at * 17).map(|_| letter(draw())).collect()).collect()
}

#[test]
fn kmers_are_those_of_a_naive_counter() {
    let sequences = sequences();
    let all: Vec<&str> = sequences.iter().map(String::as_str).collect();
    let wrapped = |end: &str| {
        let lines = |text: &str| {
            let lines =
                text.as_bytes().chunks(10).map(|line| String::from_utf8_lossy(line).into_owned() + end);
            lines.collect::<String>()
        };
        all.iter().map(|text| format!(">a > b{end}{}", lines(text))).collect::<String>()
    };
    let fastq = |end: &str| {
        let record = |text: &&str| format!("@r{end}{text}{end}+r{end}{}{end}", "@".repeat(text.len()));
        all.iter().map(record).collect::<String>()
    };
    for text in [wrapped("\n"), wrapped("\r\n"), wrapped("\n\n"), fastq("\n"), fastq("\r\n")] {
        for (bases, is_canonical) in [(1, false), (2, true), (5, true), (31, false), (61, true)] {
            let wanted = naive(&all, bases, is_canonical);
            for step in [1, 3, 1 << 20] {
                let found = read(text.as_bytes(), step, &options(bases, is_canonical)).expect("reads");
                assert_eq!(found, wanted, "{bases} {is_canonical} {step}");
            }
        }
    }
}

#[test]
fn compressed_and_several_inputs_are_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(b">a\nACGTT\nGA\n").expect("written");
    let (one, two) = (folder.path().join("one.fa.gz"), folder.path().join("two.fq"));
    std::fs::write(&one, packed.finish().expect("written")).expect("written");
    std::fs::write(&two, "@a\nTTTACG\n+\n!!!!!!\n").expect("written");
    let options = InputOptions { kmers: Some(3), ..InputOptions::default() };
    let mut source = open(&[one.clone(), two], &options).expect("opens");
    let (mut chunk, mut all) = (Chunk::default(), BTreeMap::new());
    loop {
        source.next_chunk(&mut chunk, 2).expect("reads");
        let Column::U128(keys) = &chunk.keys else { panic!("keys of 16 bytes") };
        if keys.is_empty() {
            break;
        }
        keys.iter().for_each(|&key| *all.entry(key).or_insert(0) += 1);
    }
    assert_eq!(all, naive(&["ACGTTGA", "TTTACG"], 3, true).0);
    // A cut stream is an error, not fewer k-mers.
    let cut = std::fs::read(&one).expect("reads");
    std::fs::write(&one, &cut[..cut.len() - 9]).expect("written");
    let mut source = open(&[one], &options).expect("opens");
    let error = loop {
        match source.next_chunk(&mut chunk, 100) {
            Ok(()) => assert!(!chunk.is_empty(), "a short list"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("one.fa.gz"), "{error}");
}

#[test]
fn truncated_and_odd_input_is_refused() {
    let options = options(3, false);
    let whole = "@a\nACGTA\n+\n!!!!!\n";
    // A cut within a record is an error wherever it is; the last line feed may be missing.
    for end in 1..whole.len() - 1 {
        let error = read(&whole.as_bytes()[..end], 2, &options).expect_err(&whole[..end]);
        assert!(error.contains("truncated"), "{error}");
        assert!(error.contains("record 1"), "{error}");
    }
    assert!(read(&whole.as_bytes()[..whole.len() - 1], 2, &options).is_ok());
    for (text, wanted) in [
        ("", "it has no records"),
        ("ACGT\n", "neither FASTA nor FASTQ"),
        (">a", "line 1, record 1: it ends within a record"),
        (">a\nAC\0GT\n", "line 2, record 1: '\\u{0}' is no letter"),
        (">a\nAC GT\n", "line 2, record 1: ' ' is no letter"),
        ("@a\nACGT\nACGT\n+\n!!!!!!!!\n", "line 3, record 1: a line with + should follow"),
        ("@a\nACGT\n+\n!!!\n@b\n", "line 4, record 1: 4 letters, but 3 scores"),
        ("@a\nA\n+\n!\n>b\nA\n", "line 5, record 1: a record should begin with @"),
    ] {
        for step in [1, 100] {
            let error = read(text.as_bytes(), step, &options).expect_err(text);
            assert!(error.contains(wanted), "{text:?}: {error}");
        }
    }
    let none = InputOptions { kmers: Some(62), ..options.clone() };
    assert!(read(b">a\nA\n", 1, &none).expect_err("too long").contains("give 1 to 61"));
    let other = InputOptions { value: Some("score".into()), ..options };
    assert!(
        read(b">a\nA\n", 1, &other).expect_err("no such value").contains("the value of a k-mer is its count")
    );
}

/// Encoded keys and value bits of a file of keys of 16 bytes.
fn tuples(bytes: &[u8], header: &Header) -> Vec<(u128, u64)> {
    let lines = view::Bytes(bytes);
    let tuple = |rank| view::tuple::<u128, _>(header, &lines, rank).expect("whole").expect("a tuple");
    (0..header.tuples).map(tuple).collect()
}

#[test]
fn files_have_each_kmer_once_with_its_count() {
    let folder = tempfile::tempdir().expect("a folder");
    let sequences = sequences();
    let all: Vec<&str> = sequences.iter().map(String::as_str).collect();
    let text: String = all.iter().map(|text| format!(">a\n{text}\n")).collect();
    for counts in [true, false] {
        let wanted = naive(&all, 4, true).0;
        let value_type = (!counts).then_some(ValueType::None);
        // Canonical k-mers are the default.
        let options = InputOptions { value_type, key_logical: None, ..options(4, true) };
        let stream = Box::new(Cursor::new(text.clone().into_bytes()));
        let mut source = open_stream("t", stream, &options).expect("opens");
        let target = folder.path().join("t.pleach");
        let made = build(&mut *source, &target, &BuildOptions::default(), &Silent).expect("builds");
        assert!(made.unique);
        let bytes = std::fs::read(&target).expect("reads");
        let header =
            Header::parse(&bytes[..bytes.len().min(HEAD_BYTES)], bytes.len() as u64).expect("a file");
        let found = tuples(&bytes, &header);
        let wanted: Vec<(u128, u64)> =
            wanted.iter().map(|(&key, &count)| (key, if counts { count } else { 0 })).collect();
        assert_eq!(found, wanted);
    }
}
