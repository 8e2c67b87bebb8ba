//! An open file ([`Index`]) and the options to open it with ([`OpenOptions`]).

use crate::arch::Isa;
use crate::bytes::{Storage, read_at_most};
use crate::classic::Layout;
use crate::error::{OpenError, ReadError};
use crate::fetch::{Remote, index_part};
use crate::identity::Identity;
use crate::search::plan::Plan;
use crate::search::tree_plan::TreePlan;
use crate::sigbus::Watch;
use crate::structure::Structure;
use crate::touched::{Touched, Verified};
use pleach_format::Record;
use pleach_format::approximate::{self, Approximate};
use pleach_format::classic::Geometry;
use pleach_format::interval::Ends;
use pleach_format::meta::Meta;
use pleach_format::section::Tag;
use pleach_format::text::{PAGE_KEYS, SYMBOLS_BYTES, Symbols};
use pleach_format::view::{HEAD_BYTES, Section};
use pleach_format::{FormatError, Header, KeyType, Mask, Meaning, Rule, ValueType};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Extent of verification: which bytes of a file are checked, and when.
///
/// The superblock and the section table are checked in every mode, because the bounds of all searches rest on
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing else; the default of the library. Damage elsewhere can cause wrong answers, but nothing worse.
    #[default]
    Header,
    /// Also each 8 KiB block that a query reads, when it is first read.
    Touched,
    /// Also the whole file, when it is opened.
    Full,
}

impl Verify {
    /// All modes, weakest first.
    pub const ALL: [Verify; 3] = [Self::Header, Self::Touched, Self::Full];
    /// Returns the lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Touched => "touched",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Verify {
    type Err = String;
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|verify| verify.name() == name)
            .ok_or_else(|| format!("unknown verification `{name}`: use header, touched or full"))
    }
}

/// Place where the bytes of an open file are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residence {
    /// In a shared mapping of the file: opens at once and shares the page cache with all processes.
    #[default]
    Mapped,
    /// In a sealed copy in memory: opening reads the whole file, and truncation cannot affect it.
    Resident,
}

/// Options to open a file with.
///
/// ```
/// use pleach::{Index, Map, Residence, Verify};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("t.pleach");
/// # pleach::Builder::new().build(&path, [(1u64, 2u64)])?;
/// // A copy in memory, of which every byte was checked.
/// let options = Index::options().residence(Residence::Resident).verify(Verify::Full);
/// let map: Map<u64, u64> = Map::with_options(&path, options)?;
/// assert_eq!(map.get(1)?, Some(2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    verify: Verify,
    residence: Residence,
    isa: Option<Isa>,
    structure: Structure,
}

impl OpenOptions {
    /// Sets how much is verified.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }
    pub(crate) fn is_verify(self, verify: Verify) -> bool {
        self.verify == verify
    }
    /// Sets where the bytes are kept.
    #[must_use]
    pub fn residence(mut self, residence: Residence) -> Self {
        self.residence = residence;
        self
    }
    /// Sets the structure by which look-ups find a tuple line.
    #[must_use]
    pub fn structure(mut self, structure: Structure) -> Self {
        self.structure = structure;
        self
    }
    /// Sets the instruction set; `None` selects the best one of this CPU.
    #[must_use]
    pub fn isa(mut self, isa: Option<Isa>) -> Self {
        self.isa = isa;
        self
    }

    /// Opens a file. O(1): reads 8 KiB and maps the file. O(file / 16 MiB) with [`Verify::Touched`], O(file)
    /// with [`Verify::Full`] or [`Residence::Resident`].
    ///
    /// # Errors
    /// [`OpenError::Io`] if the file cannot be opened, read or mapped; [`OpenError::Format`] if its header,
    /// its mask or (with [`Verify::Touched`]) its list of sums is not valid; [`OpenError::Damaged`] if
    /// [`Verify::Full`] finds damage; [`OpenError::Isa`] if this CPU does not have the instruction set.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Index, OpenError> {
        let path = path.as_ref();
        let opened = File::open(path);
        let failed = |source| OpenError::Io { operation: "open", path: path.to_owned(), source };
        self.open_file(&opened.map_err(failed)?, path)
    }

    /// Opens an index from an open `file`, which may be closed afterwards; messages name it `path`. O(1), as
    /// [`OpenOptions::open`].
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`].
    pub fn open_file(self, file: &File, path: impl AsRef<Path>) -> Result<Index, OpenError> {
        let path = path.as_ref();
        let failed = |operation| move |source| OpenError::Io { operation, path: path.to_owned(), source };
        let metadata = file.metadata().map_err(failed("read"))?;
        if metadata.is_dir() {
            return Err(failed("open")(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        let mut head = [0; HEAD_BYTES];
        let there = read_at_most(file, &mut head, 0).map_err(failed("read"))?;
        let refused = |source| OpenError::Format { path: path.to_owned(), source };
        let header = Header::parse(&head[..there], metadata.len()).map_err(refused)?;
        let storage = match self.residence {
            Residence::Mapped => Storage::map(file, metadata.len()),
            Residence::Resident => Storage::resident(file, metadata.len()),
        };
        let mut index = self.finish(path.to_owned(), header, storage.map_err(failed("map"))?)?;
        index.identity = Some(Identity::of(&metadata));
        Ok(index)
    }

    /// Opens a file held in memory. Moves the bytes once if they do not begin on a cache line.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`] except [`OpenError::Io`].
    pub fn from_bytes(self, bytes: Vec<u8>) -> Result<Index, OpenError> {
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        let header = Header::parse(head, bytes.len() as u64)
            .map_err(|source| OpenError::Format { path: PathBuf::new(), source })?;
        self.finish(PathBuf::new(), header, Storage::owned(bytes))
    }

    pub(crate) fn finish(self, path: PathBuf, header: Header, storage: Storage) -> Result<Index, OpenError> {
        let isa = self.isa.unwrap_or_else(Isa::best);
        if !isa.is_available() {
            return Err(OpenError::Isa(isa));
        }
        if !self.structure.is_in(&header) {
            return Err(OpenError::Structure { path, structure: self.structure });
        }
        let fast = header.fast.and_then(|(_, shape)| Layout::new(&shape.geometry, shape.form));
        // A file that is truncated while it is opened is not reported as damaged.
        let lost = |storage: &Storage, path: &Path| {
            let source = io::Error::other("the file was truncated while it was opened");
            storage.is_lost().then(|| OpenError::Io { operation: "read", path: path.to_owned(), source })
        };
        let refused =
            |source| lost(&storage, &path).unwrap_or(OpenError::Format { path: path.clone(), source });
        let mut touched = None;
        match self.verify {
            Verify::Header => {}
            Verify::Touched => {
                let made = Touched::new(&header, storage.bytes()).map_err(refused)?;
                if storage.source().is_some() {
                    // What was fetched of a remote file is verified before anything is read of it.
                    for part in index_part(&header) {
                        check(&header, (part.start, part.end - part.start), storage.bytes(), Some(&made))
                            .map_err(refused)?;
                    }
                }
                touched = Some(made);
            }
            Verify::Full => {
                let mut findings = pleach_fsck::check_bytes(storage.bytes());
                if !findings.is_empty() {
                    if let Some(lost) = lost(&storage, &path) {
                        return Err(lost);
                    }
                    let (count, first) = (findings.len(), Box::new(findings.swap_remove(0)));
                    return Err(OpenError::Damaged { path, first, findings: count });
                }
            }
        }
        let mask = match header.mask {
            None => None,
            Some(section) => {
                Some(read_mask(&header, &section, storage.bytes(), touched.as_ref()).map_err(refused)?)
            }
        };
        let symbols = match header.text {
            None => None,
            Some((offset, _)) => {
                read_symbols(&header, offset, storage.bytes(), touched.as_ref()).map_err(refused)?
            }
        };
        read_meta(&header, storage.bytes(), touched.as_ref())
            .and_then(|meta| approximate::check(&header, &meta))
            .map_err(refused)?;
        if let Some(lost) = lost(&storage, &path) {
            return Err(lost);
        }
        let is_trusted = AtomicBool::new(false);
        let structure = self.structure.in_file(&header);
        Ok(Index {
            header,
            storage,
            touched,
            is_trusted,
            isa,
            structure,
            fast,
            mask,
            symbols,
            ends: OnceLock::new(),
            options: self,
            path,
            identity: None,
        })
    }
}

/// Verifies a part of the file before it is opened, if what is touched is verified.
fn check(
    header: &Header,
    (offset, length): (u64, u64),
    bytes: &[u8],
    touched: Option<&Touched>,
) -> Result<(), FormatError> {
    let Some(touched) = touched else { return Ok(()) };
    let verified = Verified { header, bytes, touched, storage: None };
    verified.check_range(offset, length).map_err(|error| match error {
        ReadError::Format(error) => error,
        _ => FormatError::Truncated { expected: header.file_bytes, found: offset },
    })
}

/// Reads the table of symbols of the TEXT section, which begins at `offset`. O(1).
fn read_symbols(
    header: &Header,
    offset: u64,
    bytes: &[u8],
    touched: Option<&Touched>,
) -> Result<Option<Box<Symbols>>, FormatError> {
    check(header, (offset, SYMBOLS_BYTES as u64), bytes, touched)?;
    let section = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
    Ok(section.and_then(<[u8]>::first_chunk).map(|table| Box::new(Symbols::parse(table))))
}

/// Reads META; the default if there is none. O(META).
fn read_meta(header: &Header, bytes: &[u8], touched: Option<&Touched>) -> Result<Meta, FormatError> {
    let Some(section) = header.section(Tag::META) else { return Ok(Meta::default()) };
    let (offset, length) = (section.offset(), section.entry.length.get());
    check(header, (offset, length), bytes, touched)?;
    let found = bytes.len() as u64;
    let bytes = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.get(..length as usize));
    let bytes = bytes.ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found })?;
    // Decode a copy: mapped bytes may change while texts are made of them.
    let bytes: Vec<u8> = bytes.to_vec();
    Ok(Meta::decode(&bytes))
}

/// Parses the MASK section, which maps byte keys to words. O(longest key).
fn read_mask(
    header: &Header,
    section: &Section,
    bytes: &[u8],
    touched: Option<&Touched>,
) -> Result<Mask, FormatError> {
    let (offset, length) = (section.offset(), section.entry.length.get());
    check(header, (offset, length), bytes, touched)?;
    let found = bytes.len() as u64;
    let bytes = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.get(..length as usize));
    let bytes = bytes.ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found })?;
    // Parse a copy: the bounds of accesses to keys are derived from the mask.
    let bytes: Vec<u8> = bytes.to_vec();
    let mask = Mask::parse(&bytes, header.geometry.key_bytes, offset)?;
    let fixed = header.key_type.fixed_bytes();
    let corrupt = |rule| {
        let found = mask.key_bytes_max() as u64;
        Err(FormatError::Corrupt { what: "MASK", offset, rule, found })
    };
    if mask.is_fixed() != fixed.is_some() || fixed.is_some_and(|bytes| bytes != mask.key_bytes_max()) {
        return corrupt(Rule::Mask.broken("keys must have the length of their type"));
    }
    let tails_fit = match (mask.tail(), header.tails) {
        (Some(tail), Some(place)) => place.shape.element_bytes == tail.bytes() as u64,
        (tail, place) => tail.is_none() && place.is_none(),
    };
    if !tails_fit {
        return corrupt(Rule::Tail.broken("tails must have the length that the mask gives them"));
    }
    let is_elsewhere = mask.tail().is_some() || header.keys.is_some() || header.text.is_some();
    if !mask.is_lossless() && !is_elsewhere {
        let text = "there must be a TAIL, KEYS or TEXT section if words are not whole keys";
        return corrupt(Rule::KeysMissing.broken(text));
    }
    Ok(mask)
}

/// An open Pleach file. `Send + Sync`; look-ups take no lock and allocate nothing.
///
/// An `Index` does not know the types of its keys and values at compile time. It reports them
/// ([`Index::key_type`], [`Index::value_type`]) and provides typed views that borrow it ([`Index::typed`],
/// [`Index::strings`]). Most programs use a [`crate::Map`], which owns an index.
///
/// ```
/// use pleach::{Index, KeyType};
///
/// # let bytes = pleach::Builder::new().names("order", "customer").to_bytes([(5u64, 7u32)])?;
/// let index = Index::from_bytes(bytes)?;
/// assert_eq!((index.key_type(), index.len(), index.meta()?.key_name.as_str()), (KeyType::U64, 1, "order"));
/// let view = index.typed::<u64, u32>()?;
/// assert_eq!(view.get(5)?, Some(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Index {
    header: Header,
    storage: Storage,
    touched: Option<Touched>,
    /// True if blocks are no longer checked against their sums ([`Index::trust`]).
    is_trusted: AtomicBool,
    isa: Isa,
    /// Structure that look-ups use.
    structure: Structure,
    /// Layout of the FAST tree, if there is one.
    fast: Option<Layout>,
    mask: Option<Mask>,
    /// Symbols of byte keys by page, if there are any.
    symbols: Option<Box<Symbols>>,
    /// Where intervals end, once it was asked for: look-ups one by one do not read META again.
    ends: OnceLock<Option<Ends>>,
    options: OpenOptions,
    path: PathBuf,
    /// Identity of the file that was opened; `None` for bytes in memory.
    identity: Option<Identity>,
}

impl Index {
    /// Opens a file with the default options: mapped, header verified. O(1).
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        OpenOptions::default().open(path)
    }
    /// Returns the default options, to open a file with.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }
    /// Opens a file held in memory, with the default options.
    ///
    /// # Errors
    /// Those of [`OpenOptions::from_bytes`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        OpenOptions::default().from_bytes(bytes)
    }

    /// Returns the path that was opened; empty for bytes in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches to the next generation if the file's name now leads to one, and reports whether it did. O(1);
    /// one system call if there is none. Views borrow the index, so none outlives its generation; threads
    /// that share an index or a map use [`crate::Live`].
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`], and [`OpenError::Types`] if the next generation has other types. The
    /// index is then unchanged.
    pub fn refresh(&mut self) -> Result<bool, OpenError> {
        let Some(next) = self.next_generation()? else { return Ok(false) };
        let is_new = !next.is_same_generation(self);
        *self = next;
        Ok(is_new)
    }

    /// Opens the file now under the name of this one, if it is a different file.
    pub(crate) fn next_generation(&self) -> Result<Option<Self>, OpenError> {
        let Some(identity) = self.identity else { return Ok(None) };
        let failed = |source| OpenError::Io { operation: "look at", path: self.path.clone(), source };
        let metadata = std::fs::metadata(&self.path).map_err(failed)?;
        if Identity::of(&metadata) == identity {
            return Ok(None);
        }
        let next = self.options.open(&self.path)?;
        let (holds, found) = [self, &next].map(|index| (index.key_type(), index.value_type())).into();
        if holds != found {
            return Err(OpenError::Types { path: self.path.clone(), holds, found });
        }
        Ok(Some(next))
    }

    /// Returns true if both have the same contents and generation number.
    pub(crate) fn is_same_generation(&self, other: &Self) -> bool {
        (self.generation(), self.file_id()) == (other.generation(), other.file_id())
    }

    /// Returns the mask that maps byte keys to words, if keys are byte strings.
    #[must_use]
    pub fn mask(&self) -> Option<&Mask> {
        self.mask.as_ref()
    }

    /// Returns the header, which was checked when the file was opened.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns how often keys that are not in the file are found in it, if its keys are shorter than those they stand
    /// for; `None` if answers are exact.
    ///
    /// # Errors
    /// Those of [`Index::meta`].
    pub fn approximate(&self) -> Result<Option<Approximate>, ReadError> {
        let meta = self.meta()?;
        let logical = Meaning::new(self.key_type(), &meta.key_logical).logical;
        Ok(Approximate::of(&logical, &meta.approximate, self.len()))
    }

    pub(crate) fn known_ends(&self) -> &OnceLock<Option<Ends>> {
        &self.ends
    }

    /// Returns column names and logical types; the default if the file has no META section.
    ///
    /// # Errors
    /// [`ReadError::Format`] if the section is not inside the file, or if a block of it does not match its
    /// sum, which only [`Verify::Touched`] checks; [`ReadError::MappingLost`] if the file was truncated while
    /// it was mapped.
    pub fn meta(&self) -> Result<Meta, ReadError> {
        let Some(section) = self.header.section(Tag::META) else { return Ok(Meta::default()) };
        let (offset, length) = (section.offset(), section.entry.length.get());
        if let Some(verified) = self.verified() {
            verified.check_range(offset, length)?;
        }
        let bytes = self.bytes();
        let found = bytes.len() as u64;
        let meta = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.get(offset..)?.get(..usize::try_from(length).ok()?))
            .ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found })?;
        // Decode a copy: mapped bytes may change while texts are made of them.
        let meta = self.shown(meta);
        self.check_mapping()?;
        Ok(Meta::decode(&meta))
    }
    /// Returns the fields of a value, if values are records. Reads META; O(fields).
    ///
    /// # Errors
    /// Those of [`Index::meta`]. A malformed record definition is treated as absent.
    pub fn record(&self) -> Result<Option<Record>, ReadError> {
        Ok(Record::of(self.value_type(), &self.meta()?.value_logical))
    }
    /// Returns the number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.header.tuples
    }
    /// Returns true if there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Returns the type of the keys.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }
    /// Returns the type of the values.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        self.header.value_type
    }
    /// Returns true if the build refused or removed duplicate keys.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.header.is_unique()
    }
    /// Returns the generation: 1 for a new build, and one more after each rebuild.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.header.superblock.generation.get()
    }
    /// Returns a hash of types, options and contents; it is equal for files of the same tuples and options.
    #[must_use]
    pub fn file_id(&self) -> [u8; 16] {
        self.header.superblock.file_id
    }
    /// Returns the size of the file in bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.header.file_bytes
    }
    /// Returns the structure by which look-ups find a tuple line: that of the options, or the one that
    /// [`Structure::Auto`] selects; still [`Structure::Auto`] if there is none.
    #[must_use]
    pub fn structure(&self) -> Structure {
        self.structure
    }

    /// Returns the symbols of byte keys by page, if the file has any.
    pub(crate) fn symbols(&self) -> Option<&Symbols> {
        self.symbols.as_deref()
    }

    /// Returns the parts of the file that searches use; `None` if it is empty.
    pub(crate) fn plan(&self) -> Option<Plan<'_>> {
        let (header, bytes, structure) = (&self.header, self.bytes(), self.structure());
        let tree = match structure {
            Structure::Fast => self.fast.as_ref().and_then(|it| TreePlan::fast(header, bytes, it, self.isa)),
            Structure::Harmonia => TreePlan::harmonia(header, bytes, self.isa),
            Structure::Btree => TreePlan::btree(header, bytes, self.isa),
            Structure::Auto | Structure::Spine | Structure::Grid => None,
        };
        Plan::new(header, bytes, structure == Structure::Grid, tree)
    }
    /// Returns the instruction set that searches use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }
    /// Describes residence, verification, instruction set and the shape of the descent in one line.
    #[must_use]
    pub fn describe(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{}, verify {}, {}: ", self.storage.name(), self.options.verify, self.isa);
        let header = &self.header;
        match (self.structure(), header.fast, &header.harmonia, &header.btree) {
            _ if header.text.is_some() => text.push_str(&self.describe_pages()),
            (Structure::Fast, Some((_, shape)), ..) => {
                let Geometry { d_k, d_l, d_p, .. } = shape.geometry;
                let (form, bytes) = (shape.form.name(), shape.bytes);
                let _ = write!(text, "FAST tree, {form}, d_K {d_k}, d_L {d_l}, d_P {d_p}, {bytes} bytes > ");
            }
            (Structure::Harmonia, _, Some((_, shape)), _) => {
                let (levels, fanout) = (shape.levels.len(), shape.fanout);
                let _ = write!(text, "Harmonia's tree, {levels} levels, fanout {fanout} > ");
            }
            (Structure::Btree, _, _, Some((_, shape))) => {
                let (levels, order) = (shape.shape.levels().len(), shape.shape.order());
                let _ = write!(text, "B+tree, {levels} levels, order {order} > ");
            }
            (Structure::Auto, ..) => text.push_str("bisection > "),
            _ => {
                for level in header.spine.levels.iter().rev() {
                    let _ = write!(text, "{} x{} > ", level.encoding.name(), level.lines);
                }
            }
        }
        let _ = write!(
            text,
            "{} tuple lines of {} tuples",
            self.header.lines,
            self.header.geometry.tuples_per_line()
        );
        text
    }

    /// Describes the search of byte keys by page.
    fn describe_pages(&self) -> String {
        let way = match self.header.trie {
            Some((_, trie)) => format!("trie, {} nodes, {} levels", trie.nodes, trie.levels),
            None => "bisection".to_owned(),
        };
        let pages = self.header.text.map_or(0, |(_, shape)| shape.pages);
        format!("{way} > {pages} pages of {PAGE_KEYS} keys > ")
    }

    /// Returns all bytes of the file, unverified. For measurements and for tools that know the format; use
    /// [`Index::typed`] for look-ups. O(file) and a copy if the file is mapped or remote. Bytes of a remote file
    /// that were not brought ([`Index::bring`]) are 0.
    #[must_use]
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.shown(self.bytes())
    }

    /// Returns all bytes of the file in place, unverified.
    ///
    /// # Safety
    /// Other processes may change the bytes of a mapped file at any time, even while they are read. The
    /// caller guarantees that its code is sound whatever the bytes become: a `str` is made only of a copy, and
    /// a length or an offset is read once, then checked, and not read again. Bytes of a remote file are those of the
    /// file once [`Index::bring`] has brought them, and arbitrary before. After reading, the caller calls
    /// [`Index::check_mapping`], which fails if the file was truncated meanwhile and the bytes are not its own.
    #[must_use]
    pub unsafe fn bytes_in_place(&self) -> &[u8] {
        self.bytes()
    }

    /// Returns bytes of the file in a form that callers may keep: a copy, if others can change them.
    pub(crate) fn shown<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.storage.lies_still() { Cow::Borrowed(bytes) } else { Cow::Owned(bytes.to_vec()) }
    }

    /// Returns true if nobody else can change the bytes.
    #[cfg(feature = "arrow")]
    pub(crate) fn lies_still(&self) -> bool {
        self.storage.lies_still()
    }
    #[cfg(feature = "arrow")]
    pub(crate) fn verify(&self) -> Verify {
        self.options.verify
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.storage.bytes()
    }

    /// Ends [`Verify::Touched`]: from now on blocks are accepted unverified, as with [`Verify::Header`], also
    /// in existing views. For long batches that need not be verified to their end. Bytes and answers remain
    /// those of the file that was opened, whatever its name leads to by now. A remote file is always verified: the
    /// call then does nothing.
    pub fn trust(&self) {
        self.is_trusted.store(self.source().is_none(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn verified(&self) -> Option<Verified<'_>> {
        let touched = self.touched.as_ref().filter(|_| !self.is_trusted.load(Ordering::Relaxed))?;
        Some(Verified { header: &self.header, bytes: self.bytes(), touched, storage: Some(&self.storage) })
    }

    /// Returns the source of blocks, if the file is remote.
    #[inline]
    pub(crate) fn source(&self) -> Option<&Remote> {
        self.storage.source()
    }

    /// Returns the watch that detects truncation of the mapping, if there is one.
    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.storage.watch()
    }

    /// Checks that the file was not truncated while it was mapped.
    ///
    /// # Errors
    /// [`ReadError::MappingLost`] if it was; only after a call of [`crate::contain_sigbus`].
    #[inline]
    pub fn check_mapping(&self) -> Result<(), ReadError> {
        if self.storage.is_lost() { Err(ReadError::MappingLost) } else { Ok(()) }
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("key_type", &self.key_type())
            .field("value_type", &self.value_type())
            .field("tuples", &self.len())
            .field("describe", &self.describe())
            .finish_non_exhaustive()
    }
}
