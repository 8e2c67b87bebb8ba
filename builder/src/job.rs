//! A build in progress: its inputs, and the writing of everything after the tuple lines.

use crate::error::BuildError;
use crate::external::Spills;
use crate::finish::{self, Head};
use crate::grid;
use crate::lines::{Lines, Places};
use crate::observe::Watch;
use crate::options::{BuildOptions, Summary};
use crate::pack::KeyLane;
use crate::plan::Plan;
use crate::publish::{Descent, Output};
use crate::section::Extra;
use crate::shorten::Setting;
use crate::source::Schema;
use pleach_format::Mask;
use pleach_format::approximate::Approximate;
use pleach_format::classic::paged::Form;
use pleach_format::key::Word;
use pleach_format::meta::Meta;

/// Sections after the spine, which depend on what was built.
pub(crate) struct Extras<'a> {
    pub sections: Vec<Extra<'a>>,
    /// Smallest and largest key, if they are byte strings.
    pub byte_ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl Extras<'_> {
    /// Returns no sections.
    pub(crate) fn none(_: u128, _: u128) -> Self {
        Self { sections: Vec::new(), byte_ends: None }
    }
}

/// Makes the extra sections from the smallest and largest word (0 if there are none).
pub(crate) type MakeExtras<'a> = dyn Fn(u128, u128) -> Extras<'a> + 'a;

/// Calls a method that is generic over the types of words and values, for words of the given width (4, 8 or
/// 16 bytes) and values of the given width in a line (0, 4 or 8 bytes).
macro_rules! with_lanes {
    ($word_bytes:expr, $value_bytes:expr => $object:ident.$method:ident($($argument:expr),*)) => {
        match ($word_bytes, $value_bytes) {
            (4, 0) => $object.$method::<u32, ()>($($argument),*),
            (4, 4) => $object.$method::<u32, u32>($($argument),*),
            (4, _) => $object.$method::<u32, u64>($($argument),*),
            (8, 0) => $object.$method::<u64, ()>($($argument),*),
            (8, 4) => $object.$method::<u64, u32>($($argument),*),
            (8, _) => $object.$method::<u64, u64>($($argument),*),
            (_, 0) => $object.$method::<u128, ()>($($argument),*),
            (_, 4) => $object.$method::<u128, u32>($($argument),*),
            (_, _) => $object.$method::<u128, u64>($($argument),*),
        }
    };
}
pub(crate) use with_lanes;

/// Inputs of a build.
pub(crate) struct Job<'a> {
    pub options: &'a BuildOptions,
    pub watch: &'a Watch<'a>,
    pub schema: &'a Schema,
    pub spills: Spills<'a>,
    pub output: Output<'a>,
    pub descent: Descent,
    pub meta: &'a Meta,
    /// The mask that maps the words back to byte keys.
    pub mask: Option<&'a Mask>,
    /// True if words are searched: else there is no use for a spine or a grid.
    pub searches_words: bool,
}

impl<'a> Job<'a> {
    /// Returns what the writers of lines need; `masked` if the words are those of byte keys.
    pub(crate) fn setting(&self, plan: Plan, masked: bool) -> Setting<'a> {
        let (output, spills, watch) = (self.output, self.spills, self.watch);
        // Partial keys need words of 8 bytes.
        let is_partial = self.options.fast.is_some_and(|fast| fast.form == Form::Partial);
        let shortens = !self.options.wide && !masked && !is_partial;
        let grid = self.options.grid && self.searches_words;
        let places = Places::after(self.meta.encode().len() as u64);
        Setting { output, spills, watch, plan, masked, grid, shortens, places }
    }

    /// Writes everything after the tuple lines.
    pub(crate) fn finish<W: KeyLane>(
        &self,
        lines: &Lines<W>,
        extras: Extras<'_>,
        rows: u64,
        sorted_input: bool,
        runs: u64,
    ) -> Result<Summary, BuildError> {
        let head = Head {
            key_type: self.schema.key_type,
            value_type: self.schema.value_type,
            unique: self.options.unique.is_some(),
            spine: self.options.spine && self.searches_words,
            descent: self.descent,
            meta: self.meta,
            byte_ends: extras.byte_ends,
        };
        let tuples = lines.tuples;
        let mut sections = extras.sections;
        // Directly after the spine.
        sections.splice(..0, grid::of_lasts(&lines.lasts, self.spills)?);
        let finished = finish::finish(self.output, self.watch, lines, &head, &sections)?;
        let levels = finished.spine.levels.iter();
        Ok(Summary {
            rows,
            tuples,
            file_bytes: finished.file_bytes,
            file_id: finished.file_id,
            generation: head.descent.generation,
            key_type: head.key_type,
            value_type: head.value_type,
            key_logical: self.meta.key_logical.clone(),
            approximate: Approximate::of(&self.schema.key_meaning().logical, &self.meta.approximate, tuples),
            unique: head.unique,
            sorted_input,
            runs,
            spine: levels.map(|level| (level.encoding.name().to_owned(), level.lines)).collect(),
            kept: None,
            left: None,
        })
    }

    /// Formats a key for messages.
    pub(crate) fn key_text<W: Word>(&self, key: W) -> String {
        match self.mask {
            Some(mask) => {
                let mut bytes = Vec::new();
                mask.unpack(key.to_u128(), &mut bytes);
                self.schema.key_text().bytes(&bytes)
            }
            None => self.schema.key_text().word(key.to_u128()),
        }
    }
}
