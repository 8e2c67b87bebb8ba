//! The table of kernels: sources, their entries, and a typed launch function for each.
//!
//! To add a kernel, add its text in `kernels/`, a variant of [`Source`], its argument structs here or beside
//! its algorithm (`#[repr(C)]`, plain numbers, no holes) and a line in `launches!`. The macro makes `unsafe
//! fn entry(stream, instance, shape, &arguments...)`, which is the only way to launch it. Sizes of argument
//! structs become definitions `BYTES_OF_...`, which the text asserts, so that both sides agree or nothing
//! compiles.

use super::Instance;
use crate::driver::LaunchShape;
use crate::image::Lowest;
use crate::{GpuError, Stream};
use std::ffi::c_void;

/// Threads per block of the spine search, where shared memory allows.
pub(crate) const THREADS: u16 = 1024;
/// Threads per block where it does not.
pub(crate) const THREADS_SMALL: u16 = 512;

/// A batch of queries and the addresses of its answers: `Batch` of common.cuh. An address of 0 means that
/// this answer is not requested.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Batch {
    /// Address of the queries: words, or keys of the type in `kind`.
    pub(crate) queries: u64,
    /// Number of queries.
    pub(crate) count: u64,
    /// Address of the values.
    pub(crate) values: u64,
    /// Address of the presence bitmap, in words of 32 bits.
    pub(crate) present: u64,
    /// Address of the ranks.
    pub(crate) ranks: u64,
    /// Encoding of a query as a word: 0 it is a word, 1 the sign bit is flipped, 2 it is a float.
    pub(crate) kind: u32,
    /// Bytes per rank, 4 or 8.
    pub(crate) rank_bytes: u16,
    /// Bytes per value: 0, 4 or 8.
    pub(crate) value_bytes: u16,
}

/// Sorted keys and values on a device: `Columns` of common.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Columns {
    /// Address of the words.
    pub(crate) keys: u64,
    /// Address of the values; 0 if there are none.
    pub(crate) values: u64,
    /// Number of tuples.
    pub(crate) tuples: u64,
}

macro_rules! sources {
    ($($(#[$doc:meta])* $source:ident $file:literal $entries:expr;)*) => {
        /// A kernel file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub(crate) enum Source { $($(#[$doc])* $source,)* }

        impl Source {
            /// All sources.
            pub(crate) const ALL: &'static [Self] = &[$(Self::$source,)*];

            /// Returns the name of the file.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$source => $file,)* }
            }

            /// Returns the text of the file.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$source => include_str!(concat!("../kernels/", $file)),)* }
            }

            /// Returns the entries of an instance.
            pub(crate) fn entries(self, instance: Instance) -> &'static [&'static str] {
                match self {
                    $(Self::$source => {
                        let entries: fn(Instance) -> &'static [&'static str] = $entries;
                        entries(instance)
                    })*
                }
            }
        }
    };
}

/// Makes a typed launch function for each entry.
macro_rules! launches {
    ($($(#[$doc:meta])* $source:ident $entry:ident($($name:ident: $type:ty),*);)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// The arguments must describe arrays that the kernel's text requires and that stay alive until the
        /// work on `stream` is done; `instance` must be made for them.
        #[allow(clippy::too_many_arguments, reason = "those of the kernel")]
        pub(crate) unsafe fn $entry(
            stream: &Stream,
            instance: Instance,
            shape: LaunchShape,
            $($name: &$type),*
        ) -> Result<(), GpuError> {
            debug_assert_eq!(instance.source, Source::$source);
            let mut arguments: [*mut c_void; 0 $(+ launches!(@one $name))*] =
                [$(std::ptr::from_ref::<$type>($name).cast_mut().cast()),*];
            // SAFETY: these are the types of the entry's parameters; the caller guarantees the arrays and the
            // instance.
            unsafe { stream.gpu().launch(stream.handle(), instance, stringify!($entry), shape, &mut arguments) }
        }
    )*};
    (@one $name:ident) => { 1 };
}

sources! {
    /// Look-ups through the device image.
    Spine "spine.cu" |instance| match instance.lowest {
        Lowest::Codes16 => {
            &["spine_values", "spine_ranks", "spine_few", "hybrid_lines", "hybrid_fetch", "hybrid_answer"]
        }
        Lowest::Codes8 => &["spine_values", "spine_ranks", "spine_few"],
    };
    /// The device image, from the tuple lines.
    Image "image.cu" |_| &["image_bits", "image_top", "image_buckets", "image_level"];
    /// Ascending queries merged with the tuple lines.
    Sweep "sweep.cu" |_| &["sweep", "sample_order"];
    /// Sorted columns, from the tuple lines.
    Columns "columns.cu" |_| &["columns_from_lines"];
    /// All values of each key.
    All "all.cu" |_| &["all_count", "all_tiles", "all_sums", "all_add", "all_fill"];
    /// Binary search of the sorted keys, and of strings of 16 characters.
    Binary "binary.cu" |instance| match instance.word_bytes {
        16 => &["binary", "binary_top", "binary_bytes", "binary_swap", "binary_cached", "swap_keys"],
        _ => &["binary", "binary_top"],
    };
    /// P-ary search of the sorted keys.
    PAry "pary.cu" |instance| match instance.option {
        0..=32 => &["pary_list", "pary_ballot"],
        _ => &["pary_list"],
    };
    /// The contiguous B+tree: its builder, and its search by one or by several threads per query.
    Btree "btree.cu" |instance| match instance.option {
        0 => &["btree", "btree_build"],
        _ => &["btree_pary"],
    };
    /// Joins and set operations.
    Merge "merge.cu" |_| &["merge_cuts", "merge_one", "merge_pairs"];
    /// Expansion of rows of ranks to pairs.
    Expand "expand.cu" |_| &["expand_count", "expand_fill", "expand_swap_sides", "find_repeats"];
    /// Harmonia's B+tree and the regular one: search and builder.
    Harmonia "harmonia.cu" |_| {
        &["harmonia_constant", "harmonia_shared", "harmonia_ldg", "harmonia_regular", "harmonia_build"]
    };
    /// Queries sorted by some of their bits.
    Sort "sort.cu" |_| &["sort_count", "sort_pass"];
    /// The FAST tree.
    Fast "fast.cu" |_| &["fast_paper", "fast_ballot"];
    /// Builders of classic trees.
    Classic "classic.cu" |_| &["classic_paper", "classic_build"];
    /// Builders of tuple lines and spine.
    Build "build.cu" |_| &["build_lines", "build_begin", "build_level"];
    /// Limits of a device, and batches whose answers are known.
    Measure "measure.cu" |instance| match instance.option {
        0 => &["make_queries", "make_ascending", "compare_answers", "sum_values"],
        _ => &["random_words", "random_lines", "copy_words", "nothing"],
    };
    /// Stages of the paper on relational algebra.
    Paper "relation_paper.cu" |_| {
        &[
            "paper_partition",
            "paper_bounds",
            "paper_scan",
            "paper_gather",
            "paper_select",
            "paper_project",
            "paper_product",
        ]
    };
    /// The paper's lists of pages.
    PaperPages "relation_paper_pages.cu" |_| {
        &["paper_chains", "paper_directory", "paper_link", "paper_to_dense", "paper_to_pages", "paper_in_order"]
    };
    /// The paper's block streaming, and UNION.
    PaperStream "relation_paper_stream.cu" |_| &["paper_stream", "paper_union"];
    /// The paper's CTA-joins, and the operators made of them.
    PaperJoin "relation_paper_join.cu" |_| &["paper_merge", "paper_cta_join"];
    /// SELECT in one pass.
    Sift "sift.cu" |instance| match instance.value_bytes {
        0 => &["sift_keys", "sift_firsts", "sift_program"],
        _ => &["sift_keys", "sift_firsts", "sift_program", "sift_values"],
    };
    /// Segmented reduction in one pass.
    Reduce "reduce.cu" |instance| match instance.value_bytes {
        0 => &["reduce_sum"],
        4 => &["reduce_sum", "reduce_float", "reduce_least"],
        _ => &["reduce_sum", "reduce_float", "reduce_least", "reduce_checked", "reduce_join"],
    };
    /// Segmented reduction in one pass, where runs are not short.
    ReduceFew "reduce_few.cu" |instance| match instance.value_bytes {
        0 => &["few_sum"],
        4 => &["few_sum", "few_float", "few_least"],
        _ => &["few_sum", "few_float", "few_least", "few_checked"],
    };
    /// PROJECT and PRODUCT.
    Project "project.cu" |instance| match (instance.word_bytes, instance.value_bytes) {
        (4, 0 | 4) => &["project_two", "project_four", "product", "pick"],
        _ => &["project_two", "product", "pick"],
    };
}

impl Source {
    /// Returns the name of the number that this source is compiled for, in addition to the bytes of words and
    /// values.
    pub(crate) fn option_name(self) -> Option<&'static str> {
        match self {
            Self::Spine | Self::Sweep => Some("THREADS"),
            Self::Image | Self::Columns | Self::All => None,
            Self::Binary => None,
            Self::PAry => Some("P_ARY"),
            Self::Btree => Some("P_ARY"),
            Self::Harmonia | Self::Sort => None,
            Self::Measure => Some("IN_FLIGHT"),
            Self::Fast => Some("SIMULTANEOUS"),
            Self::Classic => None,
            Self::Build => Some("THREADS"),
            Self::Paper | Self::PaperPages | Self::PaperStream => None,
            Self::PaperJoin => Some("CTA_JOIN"),
            Self::Merge | Self::Expand => None,
            Self::Sift | Self::Reduce | Self::ReduceFew | Self::Project => None,
        }
    }

    /// Returns the valid values of that number.
    pub(crate) fn options(self) -> &'static [u16] {
        match self {
            Self::Spine => &[THREADS, THREADS_SMALL],
            Self::Sweep => &[crate::algorithm::sweep::THREADS],
            Self::Image | Self::Columns | Self::All => &[0],
            Self::Binary => &[0],
            Self::PAry => &crate::algorithm::pary::P_ARY,
            Self::Btree => &crate::algorithm::btree::OPTIONS,
            Self::Harmonia | Self::Sort => &[0],
            Self::Measure => &[0, 1, 2, 4, 8, 16],
            Self::Fast => &crate::algorithm::fast::SIMULTANEOUS,
            Self::Classic => &[0],
            Self::Build => &[crate::build::lines::THREADS],
            Self::Paper | Self::PaperPages | Self::PaperStream => &[0],
            Self::PaperJoin => &[0, 1, 2, 3, 4],
            Self::Merge | Self::Expand => &[0],
            Self::Sift | Self::Reduce | Self::ReduceFew | Self::Project => &[0],
        }
    }

    /// Returns true if the source is compiled for each width of values; a source that answers from columns
    /// takes it from the batch.
    pub(crate) fn has_value_width(self) -> bool {
        use Source::{Binary, Btree, Classic, Expand, Fast, Harmonia, Merge, PAry, Sort};
        !matches!(self, Binary | PAry | Btree | Fast | Classic | Harmonia | Sort | Merge | Expand)
            && !self.is_of_paper()
    }

    /// Returns true if the source works on columns of relations, with words up to 8 bytes.
    fn is_of_relations(self) -> bool {
        self.is_of_paper() || matches!(self, Self::Sift | Self::Reduce | Self::ReduceFew | Self::Project)
    }

    /// Returns true if the source belongs to the paper's operators, which take values of any width.
    fn is_of_paper(self) -> bool {
        matches!(self, Self::Paper | Self::PaperPages | Self::PaperStream | Self::PaperJoin)
    }

    /// Returns the other text that precedes the source, after common.cuh.
    pub(super) fn shared_text(self) -> &'static str {
        match self {
            Self::Spine | Self::Image | Self::Sweep => include_str!("../kernels/image.cuh"),
            Self::PaperPages => include_str!("../kernels/relation_paper.cuh"),
            Self::Paper | Self::PaperStream | Self::PaperJoin => concat!(
                include_str!("../kernels/relation_paper.cuh"),
                include_str!("../kernels/relation_paper_stream.cuh")
            ),
            Self::Reduce | Self::ReduceFew => {
                concat!(include_str!("../kernels/onepass.cuh"), include_str!("../kernels/reduce.cuh"))
            }
            Self::Merge | Self::Sift | Self::Project => include_str!("../kernels/onepass.cuh"),
            _ => "",
        }
    }

    /// Returns true if there is such an instance.
    pub(crate) fn has(self, instance: Instance) -> bool {
        let has_widths = match self {
            // Values have the keys' type; reads are of 8 bytes.
            Self::Measure if instance.option == 0 => {
                instance.word_bytes == instance.value_bytes && instance.word_bytes <= 8
            }
            Self::Measure => (instance.word_bytes, instance.value_bytes) == (8, 8),
            _ if self.is_of_relations() && instance.word_bytes > 8 => false,
            _ => instance.value_bytes == 0 || self.has_value_width(),
        };
        // Other sources get the form from their arguments. Devices with little shared memory per block have
        // no large tables.
        let has_lowest = self == Self::Spine && instance.option == THREADS;
        has_widths && (instance.lowest == Lowest::Codes16 || has_lowest)
    }

    /// Returns the sizes of argument structs that the text asserts.
    pub(crate) fn sizes(self, word_bytes: u8, lowest: Lowest) -> Vec<(&'static str, u64)> {
        let mut sizes = vec![
            ("BYTES_OF_BATCH", size_of::<Batch>() as u64),
            ("BYTES_OF_COLUMNS", size_of::<Columns>() as u64),
        ];
        match self {
            Self::All => sizes.push(("BYTES_OF_ALL", size_of::<crate::all::All>() as u64)),
            Self::Columns => sizes.push(("BYTES_OF_LINES", size_of::<crate::resident::Lines>() as u64)),
            Self::Spine | Self::Image => {
                sizes.push(("BYTES_OF_SPINE", size_of::<crate::algorithm::spine::Arguments>() as u64));
                sizes.push(("BYTES_OF_PART", size_of::<crate::algorithm::hybrid::Part>() as u64));
                sizes.push(("BYTES_OF_FEW", crate::algorithm::spine::few_bytes(lowest).into()));
                if self == Self::Spine {
                    sizes.push(("LOW_BITS", lowest.code_bits(0).into()));
                }
            }
            Self::Sweep => {
                sizes.push(("BYTES_OF_SPINE", size_of::<crate::algorithm::spine::Arguments>() as u64));
                sizes.push(("BYTES_OF_SWEEP", size_of::<crate::algorithm::sweep::Arguments>() as u64));
            }
            Self::Binary => {
                sizes
                    .push(("BYTES_OF_TOP_COLUMNS", size_of::<crate::algorithm::binary::TopColumns>() as u64));
                sizes.push(("BYTES_OF_SWAP", size_of::<crate::algorithm::binary::Swap>() as u64));
            }
            Self::PAry => {}
            Self::Fast => sizes.extend(crate::algorithm::fast::numbers()),
            Self::Classic => sizes.extend(crate::build::classic::numbers()),
            Self::Build => sizes.extend(crate::build::lines::numbers()),
            Self::Btree => {
                sizes.push(("BYTES_OF_BTREE", size_of::<crate::algorithm::btree::Tree>() as u64));
                sizes.push(("BYTES_OF_BTREE_BUILD", size_of::<crate::algorithm::btree::Build>() as u64));
            }
            Self::Harmonia => sizes.extend(crate::algorithm::harmonia::numbers()),
            Self::Sort => sizes.extend(crate::algorithm::psa::numbers(word_bytes)),
            Self::Merge => sizes.extend(crate::relation::merge::numbers(word_bytes)),
            Self::Expand => sizes.extend(crate::relation::expand::numbers()),
            Self::Measure => {
                sizes.push(("BYTES_OF_READS", size_of::<crate::measure::Reads>() as u64));
                sizes.push(("BYTES_OF_MOVE", size_of::<crate::measure::Move>() as u64));
                sizes.push(("BYTES_OF_DRAW", size_of::<crate::measure::Draw>() as u64));
                sizes.push(("BYTES_OF_COMPARE", size_of::<crate::measure::Compare>() as u64));
            }
            Self::Paper | Self::PaperPages | Self::PaperStream | Self::PaperJoin => {
                sizes.extend(crate::relation_paper::numbers());
            }
            Self::Sift | Self::Reduce | Self::ReduceFew | Self::Project => {
                sizes.extend(crate::relation::numbers())
            }
        }
        sizes
    }
}

launches! {
    /// Values and presence through the device image.
    Spine spine_values(table: crate::algorithm::spine::Arguments, batch: Batch);
    /// Ranks through the device image.
    Spine spine_ranks(table: crate::algorithm::spine::Arguments, batch: Batch);
    /// All answers of short batches through the device image.
    Spine spine_few(table: crate::algorithm::spine::Arguments, batch: Batch);
    /// Writes down the line of each query.
    Spine hybrid_lines(table: crate::algorithm::spine::Arguments, batch: Batch, part: crate::algorithm::hybrid::Part);
    /// Copies the touched pieces of a part of the lines.
    Spine hybrid_fetch(table: crate::algorithm::spine::Arguments, part: crate::algorithm::hybrid::Part);
    /// Answers the queries whose lines are in a part.
    Spine hybrid_answer(table: crate::algorithm::spine::Arguments, batch: Batch, part: crate::algorithm::hybrid::Part);
    /// Finds the bits that all borders share.
    Image image_bits(table: crate::algorithm::spine::Arguments, bits: u64);
    /// Makes the top.
    Image image_top(table: crate::algorithm::spine::Arguments);
    /// Makes the top's compact form.
    Image image_buckets(table: crate::algorithm::spine::Arguments);
    /// Makes a level of nodes, after those above it.
    Image image_level(table: crate::algorithm::spine::Arguments, level: u32, astray: u64);
    /// Merges ascending queries with the lines.
    Sweep sweep(table: crate::algorithm::sweep::Arguments, batch: Batch);
    /// Samples whether queries ascend.
    Sweep sample_order(batch: Batch, places: u32, found: u64);
    /// Makes sorted columns from the tuple lines.
    Columns columns_from_lines(lines: crate::resident::Lines);
    /// Counts the tuples of each query's key.
    All all_count(all: crate::all::All, batch: Batch);
    /// Scans tiles of counts.
    All all_tiles(all: crate::all::All, count: u64);
    /// Scans the tiles' sums.
    All all_sums(all: crate::all::All, count: u64);
    /// Adds the sum of the counts before each tile.
    All all_add(all: crate::all::All, count: u64);
    /// Fills in the values.
    All all_fill(all: crate::all::All, count: u64);
    /// Binary search.
    Binary binary(columns: Columns, batch: Batch);
    /// Binary search with its upper levels in shared memory.
    Binary binary_top(table: crate::algorithm::binary::TopColumns, batch: Batch);
    /// Binary search of strings, byte by byte.
    Binary binary_bytes(columns: Columns, batch: Batch);
    /// Binary search of strings, as words whose bytes are swapped.
    Binary binary_swap(columns: Columns, batch: Batch);
    /// Binary search of strings, through shared memory.
    Binary binary_cached(columns: Columns, batch: Batch);
    /// Converts words to strings, and back.
    Binary swap_keys(swap: crate::algorithm::binary::Swap);
    /// P-ary search, boundaries in shared memory.
    PAry pary_list(columns: Columns, batch: Batch);
    /// P-ary search, by votes of a warp.
    PAry pary_ballot(columns: Columns, batch: Batch);
    /// Search of the B+tree, one thread per query.
    Btree btree(tree: crate::algorithm::btree::Tree, batch: Batch);
    /// Makes metadata and keys of the B+tree.
    Btree btree_build(build: crate::algorithm::btree::Build);
    /// Search of the B+tree, several threads per query.
    Btree btree_pary(tree: crate::algorithm::btree::Tree, batch: Batch);
    /// Search of Harmonia's tree, the top of the child region in constant memory.
    Harmonia harmonia_constant(tree: crate::algorithm::harmonia::Tree, batch: Batch);
    /// Search of Harmonia's tree, the top of the child region in shared memory.
    Harmonia harmonia_shared(tree: crate::algorithm::harmonia::Tree, batch: Batch);
    /// Search of Harmonia's tree, all of the child region through the read-only cache.
    Harmonia harmonia_ldg(tree: crate::algorithm::harmonia::Tree, batch: Batch);
    /// Search of the regular tree.
    Harmonia harmonia_regular(tree: crate::algorithm::harmonia::Tree, batch: Batch);
    /// Makes either tree.
    Harmonia harmonia_build(build: crate::algorithm::harmonia::Build);
    /// Counts the digits of queries.
    Sort sort_count(pass: crate::algorithm::psa::Pass);
    /// Sorts queries by a digit.
    Sort sort_pass(pass: crate::algorithm::psa::Pass);
    /// Cuts the merge of two relations into tiles.
    Merge merge_cuts(merge: crate::relation::merge::Arguments);
    /// Merges both relations; a result has the tuple of one side.
    Merge merge_one(merge: crate::relation::merge::Arguments);
    /// Merges both relations; a result has the tuples of both sides.
    Merge merge_pairs(merge: crate::relation::merge::Arguments);
    /// Counts the pairs of each row.
    Expand expand_count(expand: crate::relation::expand::Expand);
    /// Writes all pairs.
    Expand expand_fill(expand: crate::relation::expand::Expand);
    /// Swaps the sides of results.
    Expand expand_swap_sides(sides: u64, count: u64);
    /// Looks for equal keys.
    Expand find_repeats(keys: u64, count: u64, found: u64);
    /// Random reads of 8 bytes.
    Measure random_words(reads: crate::measure::Reads);
    /// Random reads of lines.
    Measure random_lines(reads: crate::measure::Reads);
    /// A copy.
    Measure copy_words(copy: crate::measure::Move);
    /// Does nothing.
    Measure nothing(unused: u32);
    /// Makes queries and the answers that they must get.
    Measure make_queries(draw: crate::measure::Draw);
    /// Makes ascending queries and the answers that they must get.
    Measure make_ascending(draw: crate::measure::Draw);
    /// Counts wrong answers.
    Measure compare_answers(compare: crate::measure::Compare);
    /// Adds values up.
    Measure sum_values(compare: crate::measure::Compare);
    /// Search of the FAST tree, by comparison bits in shared memory.
    Fast fast_paper(tree: crate::algorithm::fast::Arguments, batch: Batch);
    /// Search of the FAST tree, by votes of a warp.
    Fast fast_ballot(tree: crate::algorithm::fast::Arguments, batch: Batch);
    /// Makes a classic tree, one page per lane of each half-warp.
    Classic classic_paper(build: crate::build::classic::Arguments);
    /// Makes a classic tree, one slot per thread.
    Classic classic_build(build: crate::build::classic::Arguments);
    /// Makes tuple lines.
    Build build_lines(task: crate::build::lines::LinesTask);
    /// Starts a spine.
    Build build_begin(task: crate::build::lines::LevelTask);
    /// Tries an encoding for a level of the spine.
    Build build_level(task: crate::build::lines::LevelTask);
    /// Cuts both inputs at pivots.
    Paper paper_partition(cuts: crate::relation_paper::partition::Cuts);
    /// Discards tuples without a partner in each partition, and gives the expected number of results.
    Paper paper_bounds(bounds: crate::relation_paper::partition::Bounds);
    /// Computes the sum of the counts before each, and of all.
    Paper paper_scan(counts: u64, places: u64, count: u32);
    /// Closes the gaps between the results of blocks.
    Paper paper_gather(gather: crate::relation_paper::sink::Gather);
    /// Compacts the tuples that a predicate selects.
    Paper paper_select(select: crate::relation_paper::unary::Select);
    /// Shifts and drops fields.
    Paper paper_project(project: crate::relation_paper::unary::Project);
    /// Makes all pairs of tuples.
    Paper paper_product(product: crate::relation_paper::unary::Product);
    /// Counts the pages of each block.
    PaperPages paper_chains(counts: u64, pages: u64, chains: u32, page_tuples: u32);
    /// Notes the pages of each block in the directory.
    PaperPages paper_directory(chains: crate::relation_paper::pages::Chains);
    /// Links all pages in order.
    PaperPages paper_link(chains: crate::relation_paper::pages::Chains, pages: u64);
    /// Copies a column from pages.
    PaperPages paper_to_dense(task: crate::relation_paper::pages::Convert);
    /// Copies a column to pages.
    PaperPages paper_to_pages(task: crate::relation_paper::pages::Convert);
    /// Makes a directory of pages that are stored in order.
    PaperPages paper_in_order(chains: crate::relation_paper::pages::Chains, pages: u64, tuples: u64);
    /// Streams the blocks of both inputs, and checks their ranges.
    PaperStream paper_stream(merge: crate::relation_paper::merge::Merge);
    /// UNION of each partition.
    PaperStream paper_union(merge: crate::relation_paper::merge::Merge);
    /// JOIN, INTERSECTION or DIFFERENCE of each partition.
    PaperJoin paper_merge(merge: crate::relation_paper::merge::Merge);
    /// A single CTA-join, timed.
    PaperJoin paper_cta_join(task: crate::relation_paper::cta::Task);
    /// Selects the tuples whose keys pass a test.
    Sift sift_keys(sift: crate::relation::select::Sift);
    /// Selects the first tuple of each key.
    Sift sift_firsts(sift: crate::relation::select::Sift);
    /// Selects the tuples for which a program leaves 1.
    Sift sift_program(sift: crate::relation::select::Sift);
    /// Selects the tuples whose values pass a test.
    Sift sift_values(sift: crate::relation::select::Sift);
    /// Sums of the values of each key, modulo 2^64, or their counts.
    Reduce reduce_sum(reduce: crate::relation::reduce::Reduce);
    /// Sums of floats.
    Reduce reduce_float(reduce: crate::relation::reduce::Reduce);
    /// Smallest or largest values.
    Reduce reduce_least(reduce: crate::relation::reduce::Reduce);
    /// Sums, with a check that each fits.
    Reduce reduce_checked(reduce: crate::relation::reduce::Reduce);
    /// As `reduce_sum`, where runs are not short.
    ReduceFew few_sum(reduce: crate::relation::reduce::Reduce);
    /// As `reduce_float`, where runs are not short.
    ReduceFew few_float(reduce: crate::relation::reduce::Reduce);
    /// As `reduce_least`, where runs are not short.
    ReduceFew few_least(reduce: crate::relation::reduce::Reduce);
    /// As `reduce_checked`, where runs are not short.
    ReduceFew few_checked(reduce: crate::relation::reduce::Reduce);
    /// Joins sums of both halves.
    Reduce reduce_join(high: u64, low: u64, count: u32, failed: u64);
    /// Makes columns of bit fields, two tuples per thread at a time.
    Project project_two(project: crate::relation::project::Project);
    /// Makes columns of bit fields, four tuples per thread at a time.
    Project project_four(project: crate::relation::project::Project);
    /// Makes all pairs of tuples.
    Project product(product: crate::relation::project::Product);
    /// Puts values into the order of their numbers.
    Project pick(pick: crate::relation::sort::Pick);
}
