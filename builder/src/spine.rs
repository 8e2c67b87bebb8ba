//! Building of the spine: each level in the narrowest encoding that the cost rule accepts.
//!
//! The bottom level is built while tuple lines are packed. The thread that packs lines encodes the whole
//! groups of them that share a spine line; groups across a boundary of pieces are completed in order. If the
//! cost rule finally refuses the level, it is built again from the tuple lines, with the next encoding. Three
//! keys of each group stay in memory (about 1.5% of the file): they are the children of the next level.
//!
//! Where a grid leads to the line, the spine is *sparse*: a child of its bottom level is a group of 16 tuple lines.

use crate::error::BuildError;
use crate::external::Spills;
use crate::overflow::Overflow;
use crate::pack::KeyLane;
use crate::parallel;
use crate::plan::{GRID_LINES_MIN, PIECE_LINES};
use pleach_format::layout::{LINE_BYTES, SpineGeometry};
use pleach_format::line::{self, Line};
use pleach_format::spine::{Border, Cost, Encoding, TRIAL_LINES, acceptable, candidates, encode};

/// Maximum number of separators of a line: 8-bit codes over keys of four bytes.
const SEPARATORS_MAX: usize = 58;

/// First and last key of a child, and the first key of its second child, if it is not a tuple line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends<W> {
    pub first: W,
    pub second: W,
    pub last: W,
}

impl<W: Copy> Ends<W> {
    /// Returns the ends of a line above some children.
    fn over(children: usize, child: impl Fn(usize) -> Self) -> Self {
        let first = child(0).first;
        Self {
            first,
            second: if children > 1 { child(1).first } else { first },
            last: child(children - 1).last,
        }
    }
}

/// Tuple lines in a child of the bottom level of a sparse spine. They are a kibibyte, in which a search bisects; with
/// more of them the spine would hardly be smaller, since 16 leave an eighth of a byte of it for a tuple, or less.
const SPARSE_CHILD_LINES: usize = 16;
/// Pieces and their tasks have whole children.
const _: () =
    assert!(PIECE_LINES.is_multiple_of(TASK_LINES) && TASK_LINES.is_multiple_of(SPARSE_CHILD_LINES));
/// Tuple lines of a task when a level is built again: a few groups, so that one piece keeps all threads busy.
const TASK_LINES: usize = PIECE_LINES / 8;

/// Returns the ends of the tuple lines of a child.
fn ends_of<W: KeyLane>(lines: &[Line], per_line: usize) -> Ends<W> {
    let (first, second) = (line::key(&lines[0], 0), line::key(&lines[lines.len().min(2) - 1], 0));
    Ends { first, second, last: line::key(&lines[lines.len() - 1], per_line - 1) }
}

/// Encodes one spine line over up to `fanout` children; returns its cost.
fn encode_children<W: KeyLane>(
    encoding: Encoding,
    children: usize,
    child: impl Fn(usize) -> Ends<W>,
    line: &mut Line,
) -> Cost {
    let mut borders =
        [Border { last: W::default(), first: W::default(), second: W::default() }; SEPARATORS_MAX];
    let count = children - 1;
    for (at, border) in borders[..count].iter_mut().enumerate() {
        let right = child(at + 1);
        *border = Border { last: child(at).last, first: right.first, second: right.second };
    }
    encode(encoding, &borders[..count], line)
}

/// Contribution of consecutive children to the bottom level.
pub(crate) struct Part<W> {
    /// Children before the first whole group.
    head: Vec<Ends<W>>,
    /// Spine lines of the whole groups.
    lines: Vec<Line>,
    /// Their ends.
    groups: Vec<Ends<W>>,
    /// Children after the last whole group.
    tail: Vec<Ends<W>>,
    cost: Cost,
}

/// Tuples in a line, and tuple lines in a child.
#[derive(Clone, Copy)]
struct Shape {
    per_line: usize,
    child_lines: usize,
}

impl<W: KeyLane> Part<W> {
    /// Makes the part of the level that covers `lines`. The first of them is line `at` of the file, from 0, and the
    /// first of a child.
    fn new(encoding: Encoding, lines: &[Line], at: u64, Shape { per_line, child_lines }: Shape) -> Self {
        debug_assert!(at.is_multiple_of(child_lines as u64), "a part has whole children");
        let fanout = encoding.separators(W::BYTES) + 1;
        let at = at / child_lines as u64;
        let before = (at.next_multiple_of(fanout as u64) - at) as usize * child_lines;
        let (head, rest) = lines.split_at(before.min(lines.len()));
        let group_lines = fanout * child_lines;
        let (groups, tail) = rest.split_at(rest.len() / group_lines * group_lines);
        let collect =
            |lines: &[Line]| lines.chunks(child_lines).map(|child| ends_of(child, per_line)).collect();
        let mut part = Self {
            head: collect(head),
            lines: Vec::with_capacity(groups.len() / group_lines),
            groups: Vec::with_capacity(groups.len() / group_lines),
            tail: collect(tail),
            cost: Cost::default(),
        };
        for group in groups.chunks_exact(group_lines) {
            let mut line = [0; LINE_BYTES];
            let ends = |child: usize| ends_of::<W>(&group[child * child_lines..][..child_lines], per_line);
            part.cost.add(encode_children(encoding, fanout, ends, &mut line));
            part.lines.push(line);
            part.groups.push(Ends::over(fanout, ends));
        }
        part
    }
}

/// The bottom level while it grows.
pub(crate) struct Bottom<W> {
    encoding: Encoding,
    /// See [`acceptable`].
    uneven: bool,
    /// A grid is requested.
    sparse: bool,
    /// Known when the first lines are.
    shape: Shape,
    lines: Overflow<Line>,
    groups: Vec<Ends<W>>,
    edge: Vec<Ends<W>>,
    children: u64,
    cost: Cost,
}

impl<W: KeyLane> Bottom<W> {
    /// Creates the level over tuple lines of `per_line` tuples; up to `lines_max` spine lines stay in memory.
    /// `masked`: the words are those of byte keys. `sparse`: a grid is requested.
    pub(crate) fn new(per_line: usize, lines_max: usize, (masked, sparse): (bool, bool)) -> Self {
        Self {
            encoding: candidates(W::BYTES)[0],
            uneven: masked || W::BYTES == 16,
            sparse,
            shape: Shape { per_line, child_lines: 1 },
            lines: Overflow::new(lines_max),
            groups: Vec::new(),
            edge: Vec::new(),
            children: 0,
            cost: Cost::default(),
        }
    }

    fn restart(&mut self, encoding: Encoding) {
        self.encoding = encoding;
        self.lines.clear();
        self.groups.clear();
        self.edge.clear();
        self.children = 0;
        self.cost = Cost::default();
    }

    /// Removes all lines.
    pub(crate) fn clear(&mut self) {
        self.restart(candidates(W::BYTES)[0]);
    }

    /// Decides by the first tuple lines of the file whether the spine is sparse, and whether 8-bit codes are tried at
    /// all. Must be called with the lines of the first piece, or all: it looks at fewer, so that the result depends on
    /// the tuples alone.
    pub(crate) fn trial(&mut self, lines: &[Line]) {
        let has_grid = self.sparse && lines.len() as u64 >= GRID_LINES_MIN;
        self.shape.child_lines = if has_grid { SPARSE_CHILD_LINES } else { 1 };
        if let [Encoding::Delta8, next, ..] = *candidates(W::BYTES)
            && self.encoding == Encoding::Delta8
        {
            let fanout = self.encoding.separators(W::BYTES) + 1;
            let part = Part::<W>::new(
                self.encoding,
                &lines[..lines.len().min(TRIAL_LINES * fanout * self.shape.child_lines)],
                0,
                self.shape,
            );
            let borders = part.lines.len() * (fanout - 1);
            if !acceptable(self.uneven, borders as u64, part.cost) {
                self.restart(next);
            }
        }
    }

    /// Returns true if the level is refused whatever follows: then parts need not be made.
    pub(crate) fn is_refused(&self) -> bool {
        // Uneven words may have some runs: for these the share decides, in the end.
        !self.uneven && self.cost.runs > 0
    }

    /// Makes the part of the level that covers these tuple lines, which begin with line `at` of the file.
    /// Called from any thread.
    pub(crate) fn part(&self, lines: &[Line], at: u64) -> Part<W> {
        Part::new(self.encoding, lines, at, self.shape)
    }

    /// Appends the part of the next tuple lines.
    pub(crate) fn absorb(&mut self, part: &Part<W>, spills: Spills<'_>) -> Result<(), BuildError> {
        let fanout = self.encoding.separators(W::BYTES) + 1;
        let stitch = |bottom: &mut Self, ends: &[Ends<W>]| {
            for &ends in ends {
                bottom.edge.push(ends);
                if bottom.edge.len() == fanout {
                    bottom.close_edge(spills)?;
                }
            }
            Ok::<(), BuildError>(())
        };
        stitch(self, &part.head)?;
        self.lines.extend(&part.lines, spills)?;
        self.groups.extend_from_slice(&part.groups);
        stitch(self, &part.tail)?;
        self.cost.add(part.cost);
        self.children += (part.head.len() + part.lines.len() * fanout + part.tail.len()) as u64;
        Ok(())
    }

    fn close_edge(&mut self, spills: Spills<'_>) -> Result<(), BuildError> {
        if self.edge.is_empty() {
            return Ok(());
        }
        let mut line = [0; LINE_BYTES];
        let cost = encode_children(self.encoding, self.edge.len(), |child| self.edge[child], &mut line);
        self.cost.add(cost);
        self.lines.extend(&[line], spills)?;
        self.groups.push(Ends::over(self.edge.len(), |child| self.edge[child]));
        self.edge.clear();
        Ok(())
    }

    fn is_accepted(&self) -> bool {
        acceptable(self.uneven, self.children - self.lines.len(), self.cost)
    }

    /// Builds the levels above, after all tuple lines have been absorbed. If parts were left out since the
    /// level [is refused](Self::is_refused), `tuple_lines` is still the number of all tuple lines. `reread`
    /// yields all tuple lines again, piece by piece, if that is needed.
    pub(crate) fn finish(
        mut self,
        tuple_lines: u64,
        spills: Spills<'_>,
        reread: &mut Reread<'_>,
    ) -> Result<Spine, BuildError> {
        let child_lines = self.shape.child_lines;
        let all_children = tuple_lines.div_ceil(child_lines as u64);
        if all_children <= 1 {
            return Ok(Spine {
                child_lines,
                bottom: Overflow::new(1),
                upper: Vec::new(),
                encodings: Vec::new(),
                inexact: 0,
            });
        }
        let from = candidates(W::BYTES).iter().position(|&encoding| encoding == self.encoding);
        for &encoding in &candidates(W::BYTES)[from.unwrap_or(0)..] {
            if encoding != self.encoding {
                self.restart(encoding);
                let mut at = 0;
                reread(&mut |lines| {
                    let part = |task: usize| {
                        let from = task * TASK_LINES;
                        self.part(&lines[from..lines.len().min(from + TASK_LINES)], at + from as u64)
                    };
                    let parts = parallel::map(lines.len().div_ceil(TASK_LINES), part);
                    at += lines.len() as u64;
                    parts.iter().try_for_each(|part| self.absorb(part, spills))
                })?;
            }
            if !self.is_refused() {
                self.close_edge(spills)?;
                if self.children == all_children && self.is_accepted() {
                    break;
                }
            }
        }
        let mut spine = Spine {
            child_lines,
            bottom: self.lines,
            upper: Vec::new(),
            encodings: vec![self.encoding],
            inexact: self.cost.flagged,
        };
        let (mut children, uneven) = (self.groups, self.uneven);
        while children.len() > 1 {
            let (encoding, lines, groups, cost) = upper_level(&children, uneven);
            spine.encodings.push(encoding);
            spine.upper.push(lines);
            spine.inexact += cost.flagged;
            children = groups;
        }
        Ok(spine)
    }
}

/// Yields all tuple lines again, in order, in pieces of any size.
pub(crate) type Reread<'a> =
    dyn FnMut(&mut dyn FnMut(&[Line]) -> Result<(), BuildError>) -> Result<(), BuildError> + 'a;

fn upper_level<W: KeyLane>(children: &[Ends<W>], uneven: bool) -> (Encoding, Vec<Line>, Vec<Ends<W>>, Cost) {
    let build = |encoding: Encoding| {
        let fanout = encoding.separators(W::BYTES) + 1;
        let mut lines = Vec::with_capacity(children.len().div_ceil(fanout));
        let mut groups = Vec::with_capacity(lines.capacity());
        let mut cost = Cost::default();
        for group in children.chunks(fanout) {
            let mut line = [0; LINE_BYTES];
            cost.add(encode_children(encoding, group.len(), |child| group[child], &mut line));
            lines.push(line);
            groups.push(Ends::over(group.len(), |child| group[child]));
        }
        (encoding, lines, groups, cost)
    };
    let [narrow @ .., last] = candidates(W::BYTES) else { return build(Encoding::Raw) };
    for &encoding in narrow {
        let built = build(encoding);
        if acceptable(uneven, (children.len() - built.1.len()) as u64, built.3) {
            return built;
        }
    }
    build(*last)
}

/// A finished spine.
pub(crate) struct Spine {
    /// Tuple lines in a child of the bottom level.
    pub child_lines: usize,
    bottom: Overflow<Line>,
    /// Levels above the bottom one, lowest first.
    upper: Vec<Vec<Line>>,
    /// Encoding of each level, bottom level first.
    pub encodings: Vec<Encoding>,
    /// Number of lines flagged inexact.
    pub inexact: u64,
}

impl Spine {
    /// Passes on the section's content: root level first, each level padded to a pair of lines.
    pub(crate) fn read(
        &self,
        geometry: &SpineGeometry,
        take: &mut dyn FnMut(&[Line]) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        const PADDING: [Line; 1] = [[0; LINE_BYTES]];
        for level in geometry.levels.iter().enumerate().rev().map(|(level, _)| level) {
            let lines = match level.checked_sub(1) {
                None => {
                    self.bottom.read(take)?;
                    self.bottom.len()
                }
                Some(upper) => {
                    take(&self.upper[upper])?;
                    self.upper[upper].len() as u64
                }
            };
            debug_assert_eq!(lines, geometry.levels[level].lines);
            if lines % 2 == 1 {
                take(&PADDING)?;
            }
        }
        Ok(())
    }
}
