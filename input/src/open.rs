//! Opening of one input: its format, and the reader of that format.

use crate::body::Body;
use crate::content::{Content, looks_like};
use crate::format::{FORMATS, Format, Types, alternatives, codec_of_name, is_packed_name};
use crate::guard::guarded;
use crate::names::Asked;
use crate::packed::{Codec, Used};
use crate::problem::{fault, problem, unreadable};
use crate::{arrow, csv, json, kmers, npy, parquet, raw};
use pleach_builder::{Chunk, Schema, Source, SourceError};
use std::fs::File;
use std::path::Path;

/// Opens one named input; returns its length, too, if it is a regular file.
pub(crate) fn open_path(path: &Path, options: &Asked) -> Result<(Box<dyn Source>, Option<u64>), SourceError> {
    let input = path.display().to_string();
    let file = File::open(path).map_err(|error| unreadable(&input, "", error))?;
    let metadata = file.metadata().map_err(|error| unreadable(&input, "", error))?;
    // The first letter says which of the two it is.
    let sequences = options.kmers.map(|_| Format::Fasta);
    let format = options.format.or_else(|| Format::from_path(path)).or(sequences).ok_or_else(|| {
        let known = FORMATS.iter().filter(|row| row.types != Types::Required);
        let known: Vec<String> = known.map(|row| format!(".{}", row.extensions[0])).collect();
        let what = format!("its extension is not one of {}", known.join(", "));
        let fault = match looks_like(path) {
            Some((found, advice)) => fault(format!("{what}: {found}"), advice),
            None => fault(what, "give the format with --format"),
        };
        problem(&input, "", fault)
    })?;
    let (mut body, bytes) = if metadata.is_file() {
        (Body::File(file, metadata.len()), Some(metadata.len()))
    } else {
        (Body::Stream(Box::new(file), None), None)
    };
    // Raw tuples may begin with any bytes, and brotli has no mark, but the extension of a compressed file is no
    // accident.
    if let Some(content) = Content::from_path(path).filter(|_| format == Format::Raw && is_packed_name(path))
    {
        let Content::Codec(codec) = content else {
            return Err(problem(&input, "", fault(format!("it is {}", content.name()), content.advice())));
        };
        body = body.unpacked(&input, codec)?;
    } else if codec_of_name(path) == Some(Codec::Brotli) {
        body = body.unpacked(&input, Codec::Brotli)?;
    }
    Ok((open_body(&input, body, format, options)?, bytes))
}

/// Opens the bytes of an input.
pub(crate) fn open_body(
    input: &str,
    body: Body,
    format: Format,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    let body = body.checked(input, format)?;
    let used = body.used();
    let source = open_content(input, body, format, options)?;
    Ok(match used {
        Some(used) => Box::new(Packed { source, used }),
        None => source,
    })
}

/// A source whose input is compressed: its progress is that of the compressed bytes.
struct Packed {
    source: Box<dyn Source>,
    used: Used,
}

impl Source for Packed {
    fn schema(&self) -> &Schema {
        self.source.schema()
    }

    fn next_chunk(&mut self, chunk: &mut Chunk, tuples_max: usize) -> Result<(), SourceError> {
        self.source.next_chunk(chunk, tuples_max)
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.used.bytes(), None)
    }
}

fn open_content(
    input: &str,
    body: Body,
    format: Format,
    options: &Asked,
) -> Result<Box<dyn Source>, SourceError> {
    if options.changes && !format.row().has_changes {
        let known = alternatives(FORMATS.iter().filter(|row| row.has_changes).map(|row| row.title));
        let text = fault("it has no column for put, add and del", format!("give changes as {known}"));
        return Err(problem(input, "", text));
    }
    if options.kmers.is_some() && format.row().types != Types::Kmers {
        let text = fault(
            format!("{} has no k-mers", format.row().title),
            "leave out --kmers, or give FASTA or FASTQ",
        );
        return Err(problem(input, "", text));
    }
    match format {
        Format::Csv => csv::open(input, body, false, options),
        Format::Tsv => csv::open(input, body, true, options),
        Format::Ndjson => json::open(input, body, options),
        Format::Parquet => guarded(input, || parquet::open(input, body, options)),
        Format::Arrow => guarded(input, || arrow::open(input, body, options)),
        Format::Npy => npy::open(input, body, options),
        Format::Raw => raw::open(input, body, options),
        Format::Fasta | Format::Fastq => kmers::open(input, body, options),
    }
}
