//! Compressed input, decompressed beside the reader of its content.
//!
//! A table of codecs says their names, first bytes and extensions. [`unpacked`] gives the content of a compressed
//! stream as a stream. A thread of its own decompresses, a few pieces ahead of the reader, so that both work at the
//! same time. All parts of a stream are read (members of gzip, frames of zstd and lz4, streams of bzip2 and xz).
//!
//! An error of a decoder names the codec and the byte of the compressed stream up to which it came. The end of the
//! content is said by the decoder, never concluded from a thread that is gone: a stream that is cut off is no short
//! table. Decoders hold at most their window: 128 MiB for zstd and xz, 16 MiB for brotli, less for the others.

use crate::guard::caught;
use crate::problem::fault;
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState, StandardAlloc};
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use lzma_rust2::XzReader;
use std::io::{self, BufRead, BufReader, Chain, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// Bytes of compressed data read at a time.
const PACKED_BYTES: usize = 128 << 10;
/// Bytes of content in a piece.
const PIECE_BYTES: usize = 256 << 10;
/// Pieces that wait for the reader.
const PIECES: usize = 4;
/// Memory of a decoder of xz, in KiB.
const XZ_KIB: u32 = 128 << 10;

/// A way of compression that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zstd,
    Bzip2,
    Xz,
    Lz4,
    Brotli,
}

/// Properties of a codec.
#[derive(Debug)]
pub(crate) struct CodecRow {
    pub(crate) codec: Codec,
    /// Name, also of the program that unpacks it.
    pub(crate) name: &'static str,
    /// First bytes of a stream. Zero stands for the level of bzip2.
    pub(crate) marks: &'static [&'static [u8]],
    /// Extensions of file names, in lower case.
    pub(crate) extensions: &'static [&'static str],
}

/// All codecs, in the order of [`Codec`].
pub(crate) const CODECS: [CodecRow; 6] = [
    CodecRow { codec: Codec::Gzip, name: "gzip", marks: &[b"\x1f\x8b"], extensions: &["gz", "gzip", "bgz"] },
    CodecRow {
        codec: Codec::Zstd,
        name: "zstd",
        marks: &[b"\x28\xb5\x2f\xfd"],
        extensions: &["zst", "zstd"],
    },
    CodecRow {
        codec: Codec::Bzip2,
        name: "bzip2",
        marks: &[b"BZh\x001AY&SY", b"BZh\x00\x17\x72\x45\x38\x50\x90"],
        extensions: &["bz2"],
    },
    CodecRow { codec: Codec::Xz, name: "xz", marks: &[b"\xfd7zXZ\0"], extensions: &["xz"] },
    CodecRow { codec: Codec::Lz4, name: "lz4", marks: &[b"\x04\x22\x4d\x18"], extensions: &["lz4"] },
    // Its streams have no mark.
    CodecRow { codec: Codec::Brotli, name: "brotli", marks: &[], extensions: &["br"] },
];

const _: () = {
    let mut row = 0;
    while row < CODECS.len() {
        assert!(CODECS[row].codec as usize == row, "rows are in the order of the variants");
        row += 1;
    }
};

impl Codec {
    /// Returns the properties of the codec.
    pub(crate) const fn row(self) -> &'static CodecRow {
        &CODECS[self as usize]
    }
}

/// The number of compressed bytes that were used so far.
#[derive(Clone, Debug)]
pub(crate) struct Used(Arc<State>);

impl Used {
    /// Returns the number.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.used.load(Ordering::Relaxed)
    }
}

/// Returns the content of a stream compressed with `codec`, whose first bytes are `head`, and how much of it is used.
/// An error of the stream is returned as it is; an error of the decoder is a [`Fault`](crate::problem::Fault) with the
/// byte.
pub(crate) fn unpacked(
    codec: Codec,
    head: Vec<u8>,
    rest: Box<dyn Read + Send>,
) -> io::Result<(Box<dyn Read + Send>, Used)> {
    let state = Arc::new(State::default());
    let used = Used(Arc::clone(&state));
    let bytes = BufReader::with_capacity(PACKED_BYTES, Cursor::new(head).chain(rest));
    let packed = Consumed { bytes, state: Arc::clone(&state), met_end: false };
    let decoder: Box<dyn Read + Send> = match codec {
        Codec::Gzip => Box::new(MultiGzDecoder::new(packed)),
        Codec::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        Codec::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
        Codec::Xz => Box::new(XzReader::new_mem_limit(packed, true, XZ_KIB)),
        Codec::Lz4 => Box::new(Lz4 { decoder: FrameDecoder::new(packed), in_frame: false }),
        Codec::Brotli => Box::new(Brotli::new(packed)),
    };
    Ok((Box::new(Beside::start(Explained { codec, decoder, state })), used))
}

/// How far the compressed stream was used.
#[derive(Debug, Default)]
struct State {
    used: AtomicU64,
    failed: AtomicBool,
}

/// Its first bytes, and the rest.
type Bytes = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// The compressed stream.
struct Consumed {
    bytes: BufReader<Bytes>,
    state: Arc<State>,
    /// A decoder wanted bytes behind the last one.
    met_end: bool,
}

impl BufRead for Consumed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let state = &self.state;
        self.bytes.fill_buf().inspect_err(|error| {
            if error.kind() != ErrorKind::Interrupted {
                state.failed.store(true, Ordering::Relaxed);
            }
        })
    }

    fn consume(&mut self, bytes: usize) {
        self.state.used.fetch_add(bytes as u64, Ordering::Relaxed);
        self.bytes.consume(bytes);
    }
}

impl Read for Consumed {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut buffer = self.fill_buf()?;
        let bytes = buffer.read(out)?;
        self.met_end |= bytes == 0 && !out.is_empty();
        self.consume(bytes);
        Ok(bytes)
    }
}

/// A decoder whose errors say what is wrong, where, and what to do.
struct Explained {
    codec: Codec,
    decoder: Box<dyn Read + Send>,
    state: Arc<State>,
}

impl Explained {
    /// Reads the next bytes of the content.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // A decoder that panics has met bytes that its authors did not expect.
        let outcome = caught(|| {
            loop {
                match self.decoder.read(out) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    other => return other,
                }
            }
        });
        let error = match outcome {
            Ok(Ok(bytes)) => return Ok(bytes),
            Ok(Err(error)) if self.state.failed.load(Ordering::Relaxed) => return Err(error),
            Ok(Err(error)) => error,
            Err(reason) => io::Error::new(ErrorKind::InvalidData, reason),
        };
        let name = self.codec.row().name;
        let used = self.state.used.load(Ordering::Relaxed);
        let text = error.to_string();
        Err(io::Error::other(if error.kind() == ErrorKind::UnexpectedEof {
            fault(format!("its {name} stream is truncated after byte {used}"), "get the complete file")
        } else if text.contains("too much memory") || text.contains("mem_limit") {
            let more = if self.codec == Codec::Zstd { " --long=31" } else { "" };
            fault(
                format!("its {name} stream needs more than 128 MiB"),
                format!("decompress it first, for example with {name} -d{more}"),
            )
        } else {
            fault(format!("its {name} stream is damaged near byte {used}"), "get it again")
        }))
    }
}

/// Frames of lz4, one after the other.
///
/// The library takes the end of the bytes for that of the content, even between two blocks of a frame. So it is asked
/// for more only where bytes follow; if it then meets the end, the frame is truncated.
struct Lz4 {
    decoder: FrameDecoder<Consumed>,
    in_frame: bool,
}

impl Read for Lz4 {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if !self.in_frame && self.decoder.get_mut().fill_buf()?.is_empty() {
                return Ok(0);
            }
            match self.decoder.read(out) {
                Ok(0) if self.decoder.get_ref().met_end => return Err(ErrorKind::UnexpectedEof.into()),
                // The end of a frame, or a block without content.
                Ok(0) => self.in_frame = false,
                Err(error) => {
                    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                    let Some(&lz4_flex::frame::Error::SkippableFrame(bytes)) = inner else {
                        return Err(error);
                    };
                    let skipped = self.decoder.get_mut().take(bytes.into());
                    if io::copy(&mut { skipped }, &mut io::sink())? < u64::from(bytes) {
                        return Err(ErrorKind::UnexpectedEof.into());
                    }
                }
                other => {
                    self.in_frame = true;
                    return other;
                }
            }
        }
    }
}

/// A stream of brotli: one, and nothing behind it.
struct Brotli {
    packed: Consumed,
    state: Box<BrotliState<StandardAlloc, StandardAlloc, StandardAlloc>>,
    is_done: bool,
}

impl Brotli {
    fn new(packed: Consumed) -> Self {
        let memory = StandardAlloc::default;
        // Strict: windows of at most 16 MiB.
        let state = Box::new(BrotliState::new_strict(memory(), memory(), memory()));
        Self { packed, state, is_done: false }
    }
}

impl Read for Brotli {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = self.packed.fill_buf()?;
            if self.is_done {
                let is_end = input.is_empty();
                return if is_end { Ok(0) } else { Err(ErrorKind::InvalidData.into()) };
            }
            let is_end = input.is_empty();
            let (mut left, mut used) = (input.len(), 0);
            let (mut room, mut made, mut total) = (out.len(), 0, 0);
            let result = BrotliDecompressStream(
                &mut left,
                &mut used,
                input,
                &mut room,
                &mut made,
                out,
                &mut total,
                &mut self.state,
            );
            self.packed.consume(used);
            match result {
                BrotliResult::ResultFailure => return Err(ErrorKind::InvalidData.into()),
                BrotliResult::ResultSuccess => self.is_done = true,
                BrotliResult::NeedsMoreInput if is_end && made == 0 => {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => {}
            }
            if made > 0 {
                return Ok(made);
            }
        }
    }
}

/// A decoder in a thread of its own, or in this one if none can be started.
enum Beside {
    Thread {
        full: Receiver<io::Result<Vec<u8>>>,
        empty: Sender<Vec<u8>>,
        piece: Vec<u8>,
        used: usize,
        is_end: bool,
    },
    Here(Explained),
}

impl Beside {
    fn start(decoder: Explained) -> Self {
        let (give_full, full) = sync_channel(PIECES);
        let (empty, take_empty) = channel();
        let (hand, taken) = channel::<Explained>();
        let work = move || {
            // The channel ends without a decoder only if the thread that hands it over is gone.
            if let Ok(decoder) = taken.recv() {
                decode(decoder, &give_full, &take_empty);
            }
        };
        match thread::Builder::new().name("pleach-unpack".to_owned()).spawn(work) {
            Ok(_) => match hand.send(decoder) {
                Ok(()) => Self::Thread { full, empty, piece: Vec::new(), used: 0, is_end: false },
                Err(back) => Self::Here(back.0),
            },
            Err(_) => Self::Here(decoder),
        }
    }
}

/// Decodes until the content ends, which an empty piece says, or the reader is gone.
fn decode(mut decoder: Explained, full: &SyncSender<io::Result<Vec<u8>>>, empty: &Receiver<Vec<u8>>) {
    loop {
        let mut piece = empty.try_recv().unwrap_or_default();
        piece.resize(PIECE_BYTES, 0);
        let mut filled = 0;
        let mut failure = None;
        while filled < piece.len() {
            match decoder.read(&mut piece[filled..]) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
        let is_last = filled < piece.len();
        piece.truncate(filled);
        if filled > 0 && full.send(Ok(piece)).is_err() {
            return;
        }
        if let Some(error) = failure {
            // If the reader is gone, nobody wants to know.
            let _ = full.send(Err(error));
            return;
        }
        if is_last {
            let _ = full.send(Ok(Vec::new()));
            return;
        }
    }
}

impl Read for Beside {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let (full, empty, piece, used, is_end) = match self {
            Self::Here(decoder) => return decoder.read(out),
            Self::Thread { full, empty, piece, used, is_end } => (full, empty, piece, used, is_end),
        };
        if *used == piece.len() && !*is_end {
            let next = full.recv().map_err(|_| io::Error::other("its decoder has stopped"))??;
            *is_end = next.is_empty();
            // The thread may have ended meanwhile.
            let _ = empty.send(std::mem::replace(piece, next));
            *used = 0;
        }
        let bytes = (piece.len() - *used).min(out.len());
        out[..bytes].copy_from_slice(&piece[*used..*used + bytes]);
        *used += bytes;
        Ok(bytes)
    }
}
