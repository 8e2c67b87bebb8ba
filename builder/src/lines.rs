//! Writing of the LINE section: tuples in, 2 MiB pieces out.
//!
//! Every thread packs pieces, sums their blocks while these are still in the first-level cache, makes their
//! part of the spine and writes them, in one step. Only after 32 MiB it is certain that the section is a
//! large one, whose place is another, so that much is held back. Piece `i` has the bytes of the file from
//! `i * 2 MiB` on: ext4 backs a file by huge pages where it was written so. The first one is shorter by what comes
//! before the section.

use crate::error::BuildError;
use crate::external::{Spill, Spills};
use crate::observe::Watch;
use crate::overflow::Overflow;
use crate::pack::{KeyLane, Rows, Take, Tuple, ValueLane, pack, per_line, unpack};
use crate::parallel;
use crate::plan::{HELD_PIECES, PIECE_LINES, PIECES_IN_FLIGHT, Plan};
use crate::publish::Output;
use crate::spine::{Bottom, Part, Spine};
use pleach_format::Short;
use pleach_format::checksum::{SUM_BLOCK_BYTES, crc32};
use pleach_format::layout::LINE_BYTES;
use pleach_format::line::{self, Line};
use pleach_format::section::LARGE_ALIGN;
use pleach_format::view::HEAD_BYTES;

/// Number of tuple lines per sum.
const BLOCK_LINES: usize = SUM_BLOCK_BYTES / LINE_BYTES;

/// The last key of each tuple line, in order.
pub(crate) type Lasts<W> = Overflow<W>;

/// Up to 2 MiB of tuple lines.
struct Piece {
    lines: Vec<Line>,
    used: usize,
    sums: Vec<u32>,
}

impl Piece {
    fn new() -> Self {
        Self {
            lines: vec![[0; LINE_BYTES]; PIECE_LINES],
            used: 0,
            sums: Vec::with_capacity(PIECE_LINES / BLOCK_LINES),
        }
    }

    fn bytes(&self) -> &[u8] {
        self.lines[..self.used].as_flattened()
    }

    /// Packs full lines after those present, and sums the blocks that become full.
    fn fill<W: KeyLane, B: ValueLane, R: Rows<W, B>>(&mut self, rows: R) {
        let n = per_line::<W, B>();
        let mut from = 0;
        while from < rows.len() {
            let block = self.used / BLOCK_LINES * BLOCK_LINES;
            let lines = (block + BLOCK_LINES - self.used).min((rows.len() - from) / n);
            pack(rows.slice(from, from + lines * n), &mut self.lines[self.used..self.used + lines]);
            from += lines * n;
            self.used += lines;
            if self.used == block + BLOCK_LINES {
                self.sums.push(crc32(self.lines[block..self.used].as_flattened()));
            }
        }
    }

    fn clear(&mut self) {
        self.used = 0;
        self.sums.clear();
    }
}

/// Places of the pieces of a LINE section that is large.
#[derive(Clone, Copy)]
pub(crate) struct Places {
    /// Start of the section: less than 2 MiB, and a multiple of what large sections begin on.
    start: u64,
}

impl Places {
    /// Returns the places of a section that follows a META section of so many bytes.
    pub(crate) fn after(meta_bytes: u64) -> Self {
        // META has at most 1 MiB.
        Self { start: (HEAD_BYTES as u64 + meta_bytes).next_multiple_of(LARGE_ALIGN) }
    }

    /// Returns the number of lines of a full piece.
    fn lines(self, at: u64) -> usize {
        PIECE_LINES - if at == 0 { self.start as usize / LINE_BYTES } else { 0 }
    }

    /// Returns the number of lines before a piece.
    fn first_line(self, at: u64) -> u64 {
        (at * PIECE_LINES as u64).saturating_sub(self.start / LINE_BYTES as u64)
    }

    /// Returns the offset of a piece in the file.
    pub(crate) fn offset(self, at: u64) -> u64 {
        self.start + self.first_line(at) * LINE_BYTES as u64
    }

    /// Passes the lines of the first `count` pieces on, in order.
    fn read(
        self,
        output: Output<'_>,
        watch: &Watch<'_>,
        count: u64,
        take: &mut dyn FnMut(&[Line]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        let mut buffer = vec![[0; LINE_BYTES]; PIECE_LINES];
        for at in 0..count {
            watch.check()?;
            let lines = &mut buffer[..self.lines(at)];
            output.read(lines.as_flattened_mut(), self.offset(at))?;
            take(lines)?;
        }
        Ok(())
    }
}

/// A piece and the rows to be packed into it.
struct Job<W> {
    piece: Piece,
    at: u64,
    from: usize,
    to: usize,
    part: Option<Part<W>>,
    lasts: Vec<W>,
}

/// Writer that packs sorted tuples into lines.
pub(crate) struct LineWriter<'a, W, B> {
    output: Output<'a>,
    spills: Spills<'a>,
    watch: &'a Watch<'a>,
    /// Places of the pieces, once they are written.
    places: Places,
    /// Full pieces held in memory until the section is large.
    held: Vec<Piece>,
    /// The piece that is being filled.
    current: Option<Piece>,
    free: Vec<Piece>,
    /// Number of full pieces so far, held or written.
    pieces: u64,
    large: bool,
    carry: Vec<Tuple<W, B>>,
    sums: Vec<u32>,
    bottom: Bottom<W>,
    /// Gather `lasts` for a grid.
    grid: bool,
    lasts: Lasts<W>,
    tuples: u64,
    min: Option<W>,
    max: Option<W>,
}

impl<'a, W: KeyLane, B: ValueLane> LineWriter<'a, W, B> {
    /// Creates a writer of a section that starts at `places` if it is large.
    pub(crate) fn new(
        output: Output<'a>,
        spills: Spills<'a>,
        watch: &'a Watch<'a>,
        plan: &Plan,
        (masked, grid, places): (bool, bool, Places),
    ) -> Self {
        let grid = grid && W::BYTES <= 8;
        Self {
            output,
            spills,
            watch,
            places,
            held: Vec::new(),
            current: None,
            free: Vec::new(),
            pieces: 0,
            large: false,
            carry: Vec::new(),
            sums: Vec::new(),
            bottom: Bottom::new(per_line::<W, B>(), plan.spine_lines, (masked, grid)),
            grid,
            lasts: Lasts::new(plan.lasts_bytes / W::BYTES),
            tuples: 0,
            min: None,
            max: None,
        }
    }

    /// Appends the next tuples, in order.
    pub(crate) fn append<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        if rows.len() == 0 {
            return Ok(());
        }
        let n = per_line::<W, B>();
        self.min.get_or_insert(rows.key(0));
        self.max = Some(rows.key(rows.len() - 1));
        self.tuples += rows.len() as u64;
        let mut from = 0;
        if !self.carry.is_empty() {
            from = (n - self.carry.len()).min(rows.len());
            self.carry.extend((0..from).map(|at| rows.tuple(at)));
            if self.carry.len() < n {
                return Ok(());
            }
            let line = std::mem::take(&mut self.carry);
            self.append_lines(&line[..])?;
            self.carry = line;
            self.carry.clear();
        }
        let to = from + (rows.len() - from) / n * n;
        self.append_lines(rows.slice(from, to))?;
        self.carry.extend((to..rows.len()).map(|at| rows.tuple(at)));
        Ok(())
    }

    /// Appends tuples that fill whole lines.
    fn append_lines<R: Rows<W, B>>(&mut self, rows: R) -> Result<(), BuildError> {
        let n = per_line::<W, B>();
        let mut from = 0;
        while from < rows.len() {
            self.watch.check()?;
            let mut jobs = Vec::with_capacity(PIECES_IN_FLIGHT);
            // The first piece is packed alone: it decides how the spine's bottom level begins.
            let at_once = if self.pieces == 0 { 1 } else { PIECES_IN_FLIGHT };
            while from < rows.len() && jobs.len() < at_once {
                let at = self.pieces + jobs.len() as u64;
                let piece = self.current.take().or_else(|| self.free.pop()).unwrap_or_else(Piece::new);
                let to = rows.len().min(from + (self.places.lines(at) - piece.used) * n);
                jobs.push(Job { piece, at, from, to, part: None, lasts: Vec::new() });
                from = to;
            }
            let this = &*self;
            parallel::try_jobs(&mut jobs, |job| {
                job.piece.fill(rows.slice(job.from, job.to));
                if this.is_full(&job.piece, job.at) && job.at > 0 {
                    job.part = this.part(&job.piece, job.at);
                    job.lasts = this.lasts(&job.piece);
                    if this.large {
                        this.write(&job.piece, job.at)?;
                    }
                }
                Ok(())
            })?;
            for job in jobs {
                self.take_back(job)?;
            }
            if !self.large && self.held.len() >= HELD_PIECES {
                self.release()?;
            }
        }
        Ok(())
    }

    /// Makes the spine part of the first piece, which is full or the last one as well.
    fn first_part(&mut self, piece: &Piece) -> Option<Part<W>> {
        self.bottom.trial(&piece.lines[..piece.used]);
        self.part(piece, 0)
    }

    fn is_full(&self, piece: &Piece, at: u64) -> bool {
        piece.used == self.places.lines(at)
    }

    fn part(&self, piece: &Piece, at: u64) -> Option<Part<W>> {
        (!self.bottom.is_refused())
            .then(|| self.bottom.part(&piece.lines[..piece.used], self.places.first_line(at)))
    }

    /// Returns the last key of each line of a piece if a grid is requested.
    fn lasts(&self, piece: &Piece) -> Vec<W> {
        let lines = if self.grid { &piece.lines[..piece.used] } else { &[] };
        lines.iter().map(|line| line::key(line, per_line::<W, B>() - 1)).collect()
    }

    fn write(&self, piece: &Piece, at: u64) -> Result<(), BuildError> {
        self.watch.check()?;
        self.output.write(piece.bytes(), self.places.offset(at))
    }

    fn take_back(&mut self, job: Job<W>) -> Result<(), BuildError> {
        let mut piece = job.piece;
        if !self.is_full(&piece, self.pieces) {
            self.current = Some(piece);
            return Ok(());
        }
        let (part, lasts) = if self.pieces > 0 {
            (job.part, job.lasts)
        } else {
            (self.first_part(&piece), self.lasts(&piece))
        };
        if let Some(part) = part {
            self.bottom.absorb(&part, self.spills)?;
        }
        self.lasts.extend(&lasts, self.spills)?;
        self.sums.extend_from_slice(&piece.sums);
        self.pieces += 1;
        if self.large {
            piece.clear();
            self.free.push(piece);
        } else {
            self.held.push(piece);
        }
        Ok(())
    }

    /// Writes the pieces held back: the section is large.
    fn release(&mut self) -> Result<(), BuildError> {
        self.large = true;
        let held = std::mem::take(&mut self.held);
        let this = &*self;
        parallel::try_each(held.len(), &|at| this.write(&held[at], at as u64))?;
        for mut piece in held {
            if self.free.len() < PIECES_IN_FLIGHT {
                piece.clear();
                self.free.push(piece);
            }
        }
        Ok(())
    }

    /// Passes all full lines to `take` again, in order. Those that were written are read from `output`.
    fn reread(
        &self,
        output: Output<'_>,
        take: &mut dyn FnMut(&[Line]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        if self.large {
            self.places.read(output, self.watch, self.pieces, take)?;
        }
        for piece in self.held.iter().chain(&self.current) {
            self.watch.check()?;
            take(&piece.lines[..piece.used])?;
        }
        Ok(())
    }

    /// Passes all tuples to `take` again, in order.
    fn each(&self, output: Output<'_>, take: &mut Take<'_, W, B>) -> Result<(), BuildError> {
        let n = per_line::<W, B>();
        let mut tuples = Vec::new();
        self.reread(output, &mut |lines| {
            // In blocks, so that the unpacked tuples stay in the cache and use little memory.
            for lines in lines.chunks(PIECE_LINES / 8) {
                tuples.clear();
                unpack(lines, lines.len() * n, &mut tuples);
                take(&tuples)?;
            }
            Ok(())
        })?;
        take(&self.carry)
    }

    /// Copies the lines that were written to a temporary file; `None` if all are in memory.
    pub(crate) fn save(&self, spills: Spills<'_>) -> Result<Option<Spill>, BuildError> {
        if !self.large {
            return Ok(None);
        }
        let spill = spills.create()?;
        let mut offset = self.places.start;
        self.places.read(self.output, self.watch, self.pieces, &mut |lines| {
            spill.output().write(lines.as_flattened(), offset)?;
            offset += lines.as_flattened().len() as u64;
            Ok(())
        })?;
        Ok(Some(spill))
    }

    /// Cuts off what an earlier writer wrote after the lines of this one.
    pub(crate) fn trim(&self) -> Result<(), BuildError> {
        let written = if self.large { self.places.offset(self.pieces) } else { 0 };
        self.output.set_len(written)
    }

    /// Passes all tuples to `take` again, in order. Lines that were written are read where they were saved,
    /// if they were, and remain in the file.
    pub(crate) fn drain(self, saved: Option<&Spill>, take: &mut Take<'_, W, B>) -> Result<(), BuildError> {
        self.each(saved.map_or(self.output, Spill::output), take)
    }

    /// Passes all tuples to `take` again, in order, and starts anew: what was written is dropped.
    pub(crate) fn rewind(&mut self, take: &mut Take<'_, W, B>) -> Result<(), BuildError> {
        self.each(self.output, take)?;
        if self.large {
            self.output.set_len(0)?;
        }
        for mut piece in std::mem::take(&mut self.held).into_iter().chain(self.current.take()) {
            if self.free.len() < PIECES_IN_FLIGHT {
                piece.clear();
                self.free.push(piece);
            }
        }
        self.pieces = 0;
        self.large = false;
        self.carry.clear();
        self.sums.clear();
        self.bottom.clear();
        self.lasts.clear();
        self.tuples = 0;
        (self.min, self.max) = (None, None);
        Ok(())
    }

    /// Completes the last line and the spine of words that may be short.
    pub(crate) fn finish(mut self, short: Option<Short>) -> Result<Lines<W>, BuildError> {
        if !self.carry.is_empty() {
            let mut line = [0; LINE_BYTES];
            line::encode(self.carry.iter().map(|tuple| (tuple.key, tuple.value)), &mut line);
            let piece = self.current.get_or_insert_with(|| self.free.pop().unwrap_or_else(Piece::new));
            // Not `fill`: the last blocks are summed together with their padding.
            piece.lines[piece.used] = line;
            piece.used += 1;
        }
        self.free = Vec::new();
        if let Some(piece) = self.current.take() {
            let part = if self.pieces > 0 { self.part(&piece, self.pieces) } else { self.first_part(&piece) };
            if let Some(part) = part {
                self.bottom.absorb(&part, self.spills)?;
            }
            self.sums.extend_from_slice(&piece.sums);
            let mut lasts = self.lasts(&piece);
            if let (Some(last), Some(max)) = (lasts.last_mut(), self.max) {
                // The last line of the file may be padded: use the largest key.
                *last = max;
            }
            self.lasts.extend(&lasts, self.spills)?;
            self.current = Some(piece);
        }
        let last = self.current.as_ref().map_or(0, |piece| piece.used);
        let lines = self.places.first_line(self.pieces) + last as u64;
        let bottom = std::mem::replace(&mut self.bottom, Bottom::new(1, 1, (false, false)));
        let spine = bottom.finish(lines, self.spills, &mut |take| self.reread(self.output, take))?;
        let written = if self.large { self.pieces } else { 0 };
        let rest = self.held.into_iter().chain(self.current).map(|mut piece| {
            piece.lines.truncate(piece.used);
            piece.lines
        });
        Ok(Lines {
            short,
            tuples: self.tuples,
            lines,
            written,
            places: self.places,
            rest: rest.collect(),
            sums: self.sums,
            spine,
            lasts: self.lasts,
            min: self.min,
            max: self.max,
        })
    }
}

/// A finished LINE section, whose end is still in memory.
pub(crate) struct Lines<W> {
    /// What the words are, if they are shorter than the keys.
    pub short: Option<Short>,
    pub tuples: u64,
    pub lines: u64,
    /// Places of the pieces in the file.
    pub places: Places,
    /// Number of pieces already in the file.
    pub written: u64,
    /// The lines after them.
    pub rest: Vec<Vec<Line>>,
    /// Sums of all blocks that are full of lines.
    pub sums: Vec<u32>,
    pub spine: Spine,
    /// Empty if no grid is requested.
    pub lasts: Lasts<W>,
    pub min: Option<W>,
    pub max: Option<W>,
}

impl<W: KeyLane> Lines<W> {
    /// Returns the key of a word, widened.
    pub(crate) fn key(&self, word: W) -> u128 {
        self.short.map_or(word.to_u128(), |short| short.key(word.low_u64()))
    }

    /// Passes all lines on, in order; those already written are read back.
    fn each_piece(
        &self,
        output: Output<'_>,
        watch: &Watch<'_>,
        take: &mut dyn FnMut(&[Line]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        if self.written > 0 {
            self.places.read(output, watch, self.written, take)?;
        }
        self.rest.iter().try_for_each(|lines| take(lines))
    }

    /// Passes all tuples on, in order.
    pub(crate) fn each_batch<B: ValueLane>(
        &self,
        output: Output<'_>,
        watch: &Watch<'_>,
        take: &mut Take<'_, W, B>,
    ) -> Result<(), BuildError> {
        const LINES: usize = 1 << 12;
        let n = per_line::<W, B>() as u64;
        let (mut left, mut tuples) = (self.tuples, Vec::new());
        self.each_piece(output, watch, &mut |piece| {
            for piece in piece.chunks(LINES) {
                let count = left.min(piece.len() as u64 * n);
                tuples.clear();
                unpack(piece, count as usize, &mut tuples);
                left -= count;
                take(&tuples)?;
            }
            Ok(())
        })
    }
}
