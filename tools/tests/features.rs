//! The table of formats and features in `docs/INPUT.md` says what the command does: each cell is tried.
//! `PLEACH_BLESS=1` writes it anew.

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array};
use arrow_ipc::writer::FileWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use parquet::arrow::ArrowWriter;
use pleach_input::{FORMATS, Format, FormatRow, Types};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Rows of `id`, `w` and `v`, of which the last is null.
const ROWS: [(u32, u32, Option<u32>); 4] =
    [(10, 15, Some(1)), (20, 25, Some(2)), (30, 35, Some(3)), (40, 45, None)];

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .expect("a batch")
}

fn typed(format: Format, columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let (batch, mut bytes) = (batch(columns), Vec::new());
    if format == Format::Parquet {
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("begins");
        writer.write(&batch).expect("writes");
        writer.close().expect("ends");
    } else {
        let mut writer = FileWriter::try_new(&mut bytes, &batch.schema()).expect("begins");
        writer.write(&batch).expect("writes");
        writer.finish().expect("ends");
    }
    bytes
}

fn number(numbers: impl Iterator<Item = Option<u32>>) -> ArrayRef {
    Arc::new(UInt32Array::from(numbers.collect::<Vec<_>>()))
}

/// The table in a format; what has no nulls has 4 in their place.
fn sample(format: Format) -> Vec<u8> {
    let text = |comma: &str| {
        let cell = |number: Option<u32>| number.map_or(String::new(), |number| number.to_string());
        let rows = ROWS.map(|(id, w, v)| format!("{id}{comma}{w}{comma}{}\n", cell(v)));
        format!("id{comma}w{comma}v\n{}", rows.concat()).into_bytes()
    };
    let words = || {
        ROWS.iter()
            .flat_map(|(id, w, v)| [*id, *w, v.unwrap_or(4)])
            .flat_map(u32::to_le_bytes)
            .collect::<Vec<u8>>()
    };
    match format {
        Format::Csv => text(","),
        Format::Tsv => text("\t"),
        Format::Ndjson => {
            let cell = |number: Option<u32>| number.map_or("null".to_owned(), |number| number.to_string());
            let row = |(id, w, v)| format!("{{\"id\":{id},\"w\":{w},\"v\":{}}}\n", cell(v));
            ROWS.map(row).concat().into_bytes()
        }
        Format::Parquet | Format::Arrow => typed(
            format,
            vec![
                ("id", number(ROWS.iter().map(|row| Some(row.0)))),
                ("w", number(ROWS.iter().map(|row| Some(row.1)))),
                ("v", number(ROWS.iter().map(|row| row.2))),
            ],
        ),
        Format::Npy => {
            let fields = "[('id', '<u4'), ('w', '<u4'), ('v', '<u4')]";
            let header = format!("{{'descr': {fields}, 'fortran_order': False, 'shape': (4,)}}");
            let header = format!("{header:<117}\n");
            let length = (header.len() as u16).to_le_bytes();
            [b"\x93NUMPY\x01\x00".as_slice(), &length, header.as_bytes(), &words()].concat()
        }
        // Keys and values alone.
        Format::Raw => ROWS.iter().flat_map(|(id, w, _)| [*id, *w]).flat_map(u32::to_le_bytes).collect(),
        Format::Fasta => ROWS.map(|(id, ..)| format!(">{id}\nACGTACGN\n")).concat().into_bytes(),
        Format::Fastq => ROWS.map(|(id, ..)| format!("@{id}\nACGTACGN\n+\n!!!!!!!!\n")).concat().into_bytes(),
    }
}

/// A table of changes of a file of `id` and `w`.
fn changes(format: Format) -> Vec<u8> {
    match format {
        Format::Csv => b"op,id,w\nput,10,7\n".to_vec(),
        Format::Tsv => b"op\tid\tw\nput\t10\t7\n".to_vec(),
        Format::Ndjson => b"{\"op\":\"put\",\"id\":10,\"w\":7}\n".to_vec(),
        Format::Parquet | Format::Arrow => {
            let one = |value| number(std::iter::once(Some(value)));
            typed(
                format,
                vec![("op", Arc::new(StringArray::from(vec!["put"]))), ("id", one(10)), ("w", one(7))],
            )
        }
        Format::Npy | Format::Raw | Format::Fasta | Format::Fastq => sample(format),
    }
}

/// Features, with the commands that use them: FILE is the table, X its extension.
const FEATURES: [(&str, &str); 12] = [
    ("standard input", "build - --format NAME -o o.pleach"),
    ("compressed", "build t.X.gz -o o.pleach"),
    ("several files", "build FILE u.X -o o.pleach"),
    ("columns by name", "build FILE -o o.pleach --key w --value id"),
    ("`@row`", "build FILE -o o.pleach --value @row"),
    ("composite keys", "build FILE -o o.pleach --key id,w --value-type none"),
    ("records", "build FILE -o o.pleach --value w,id"),
    ("intervals", "build FILE -o o.pleach --interval w --value-type none"),
    ("`--nulls skip`", "build FILE -o o.pleach --value v --nulls skip"),
    ("columns of folders", "build year=2024 -o o.pleach --key id --value year"),
    ("`rebuild`", "rebuild base.pleach --apply changes.X"),
    ("other commands", "reduce FILE --op count"),
];

fn run(folder: &Path, line: &str, input: &str) -> bool {
    let stdin = File::open(folder.join(input)).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_pleach"))
        .args(line.split(' '))
        .current_dir(folder)
        .stdin(Stdio::from(stdin))
        .output()
        .expect("runs");
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        assert!(told.starts_with("error: ") && told.lines().count() == 1, "{line}: {told}");
    }
    output.status.success()
}

/// Tries every feature; returns the line of the table.
fn line(row: &FormatRow) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (extension, bytes) = (row.extensions[0], sample(row.format));
    let file = format!("t.{extension}");
    for name in [file.clone(), format!("u.{extension}")] {
        fs::write(folder.join(name), &bytes).expect("written");
    }
    fs::create_dir(folder.join("year=2024")).expect("a folder");
    fs::write(folder.join("year=2024").join(&file), &bytes).expect("written");
    fs::write(folder.join(format!("changes.{extension}")), changes(row.format)).expect("written");
    let packed = File::create(folder.join(format!("{file}.gz"))).expect("a file");
    let mut packed = GzEncoder::new(packed, Compression::fast());
    packed.write_all(&bytes).expect("written");
    packed.finish().expect("written");
    fs::write(folder.join("base.csv"), "id,w\n10,15\n").expect("written");
    assert!(run(folder, "build base.csv -o base.pleach --key-type u32 --value-type u32 -q", &file));
    let options = match row.types {
        Types::Required => " --raw u32,u32",
        Types::Kmers => " --kmers 4",
        Types::Own | Types::Requested | Types::Shown => "",
    };
    let cells = FEATURES.map(|(_, command)| {
        let command = command.replace("FILE", &file).replace('X', extension).replace("NAME", row.name);
        let options = if command.starts_with("rebuild") { "" } else { options };
        if run(folder, &format!("{command}{options} -q"), &file) { "yes" } else { "no" }
    });
    let is_written = run(folder, &format!("export base.pleach -o out --format {} -q", row.name), &file);
    let is_written = if is_written { "yes" } else { "no" };
    format!("| `{}` | {} | {is_written} |", row.name, cells.join(" | "))
}

#[test]
fn each_feature_of_each_format_is_as_documented() {
    let heads = FEATURES.map(|(name, _)| name).join(" | ");
    let head = format!("| `--format` | {heads} | written |");
    let mut lines = vec![head.clone(), format!("|{}", "---|".repeat(FEATURES.len() + 2))];
    lines.extend(FORMATS.iter().map(line));
    let table = lines.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/INPUT.md");
    let text = fs::read_to_string(&path).expect("docs/INPUT.md");
    let start = text.find("| `--format` | standard input").expect("the table of features");
    let end = text[start..].find("\n\n").map_or(text.len(), |end| start + end);
    if std::env::var_os("PLEACH_BLESS").is_some() {
        fs::write(&path, format!("{}{table}{}", &text[..start], &text[end..])).expect("written");
        return;
    }
    assert_eq!(&text[start..end], table, "PLEACH_BLESS=1 writes the table anew");
}
