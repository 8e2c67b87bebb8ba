//! An open file, and how it is opened.

use crate::arch::Isa;
use crate::bytes::{Storage, read_at_most};
use crate::classic::Classic;
use crate::column::Column;
use crate::error::{OpenError, ReadError, TypeError};
use crate::harmonia::Harmonia;
use crate::live::Identity;
use crate::packed::Packed;
use crate::sigbus::Watch;
use crate::strings::Strings;
use crate::touched::{Touched, Verified};
use crate::typed::Typed;
use pleach_format::Record;
use pleach_format::classic::packed::Form;
use pleach_format::classic::{Geometry, TreeWord, section};
use pleach_format::line;
use pleach_format::meta::Meta;
use pleach_format::section::Tag;
use pleach_format::view::{HEAD_BYTES, Section};
use pleach_format::{FormatError, Header, Key, KeyType, Mask, Value, ValueType, Word};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much of a file is verified, and when.
///
/// The superblock and the section table are checked in every mode: they are what a search's bounds
/// rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing but superblock and section table.
    None,
    /// The same; the default of the library. Damage elsewhere may give wrong answers, and nothing
    /// worse.
    #[default]
    Header,
    /// Also each 8 KiB block that a query reads, at its first use.
    Touched,
    /// Also the whole file, when it is opened.
    Full,
}

impl Verify {
    /// All modes, weakest first.
    pub const ALL: [Verify; 4] = [Self::None, Self::Header, Self::Touched, Self::Full];
    /// Lower-case name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
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
            .ok_or_else(|| format!("unknown verification `{name}`: none, header, touched or full"))
    }
}

/// Where the bytes of an open file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Residence {
    /// In a shared mapping of the file: opens at once, shares the page cache with all processes.
    #[default]
    Mapped,
    /// In a sealed copy in memory: opening reads the whole file; no truncation can reach it.
    Resident,
}

/// How to open a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    verify: Verify,
    residence: Residence,
    isa: Option<Isa>,
}

impl OpenOptions {
    /// Sets how much is verified.
    #[must_use]
    pub fn verify(mut self, verify: Verify) -> Self {
        self.verify = verify;
        self
    }
    /// Sets where the bytes are kept.
    #[must_use]
    pub fn residence(mut self, residence: Residence) -> Self {
        self.residence = residence;
        self
    }
    /// Sets the instruction set; `None` takes the best there is.
    #[must_use]
    pub fn isa(mut self, isa: Option<Isa>) -> Self {
        self.isa = isa;
        self
    }

    /// Opens a file. O(1): reads 8 KiB and maps the rest, unless it is asked to verify or copy it.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Index, OpenError> {
        let path = path.as_ref();
        let opened = File::open(path);
        let failed = |source| OpenError::Io { operation: "open", path: path.to_owned(), source };
        self.open_file(&opened.map_err(failed)?, path)
    }

    /// Opens a file that is open already, and that messages call `path`; it may be closed afterwards. O(1), as
    /// [`OpenOptions::open`].
    pub fn open_file(self, file: &File, path: &Path) -> Result<Index, OpenError> {
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

    /// Opens a file that is in memory. Moves the bytes once if they do not begin on a cache line.
    pub fn from_bytes(self, bytes: Vec<u8>) -> Result<Index, OpenError> {
        let head = &bytes[..bytes.len().min(HEAD_BYTES)];
        let header = Header::parse(head, bytes.len() as u64)
            .map_err(|source| OpenError::Format { path: PathBuf::new(), source })?;
        self.finish(PathBuf::new(), header, Storage::owned(bytes))
    }

    fn finish(self, path: PathBuf, header: Header, storage: Storage) -> Result<Index, OpenError> {
        let isa = self.isa.unwrap_or_else(Isa::best);
        if !isa.is_available() {
            return Err(OpenError::Isa(isa));
        }
        // What a file lacks that is cut while it is opened is no damage.
        let lost = |storage: &Storage, path: &Path| {
            let source = io::Error::other("the file was truncated while it was opened");
            storage.is_lost().then(|| OpenError::Io { operation: "read", path: path.to_owned(), source })
        };
        let refused =
            |source| lost(&storage, &path).unwrap_or(OpenError::Format { path: path.clone(), source });
        let mut touched = None;
        match self.verify {
            Verify::None | Verify::Header => {}
            Verify::Touched => {
                touched = Some(Touched::new(&header, storage.bytes()).map_err(refused)?);
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
        if let Some(lost) = lost(&storage, &path) {
            return Err(lost);
        }
        let is_trusted = AtomicBool::new(false);
        Ok(Index { header, storage, touched, is_trusted, isa, mask, options: self, path, identity: None })
    }
}

/// Reads how byte keys become words. O(longest key).
fn read_mask(
    header: &Header,
    section: &Section,
    bytes: &[u8],
    touched: Option<&Touched>,
) -> Result<Mask, FormatError> {
    let (offset, length) = (section.offset(), section.entry.length.get());
    if let Some(touched) = touched {
        let verified = Verified { header, bytes, touched, storage: None };
        verified.check_range(offset, length).map_err(|error| match error {
            ReadError::Format(error) => error,
            _ => FormatError::Truncated { expected: header.file_bytes, found: offset },
        })?;
    }
    let found = bytes.len() as u64;
    let bytes = usize::try_from(offset).ok().and_then(|at| bytes.get(at..)?.get(..length as usize));
    let bytes = bytes.ok_or(FormatError::Truncated { expected: offset.saturating_add(length), found })?;
    // A copy, since places in keys are proved by it.
    let bytes: Vec<u8> = bytes.to_vec();
    let mask = Mask::parse(&bytes, header.geometry.key_bytes, offset)?;
    let fixed = header.key_type.fixed_bytes();
    let corrupt = |rule| {
        let found = mask.key_bytes_max() as u64;
        Err(FormatError::Corrupt { what: "MASK", offset, rule, found })
    };
    if mask.is_fixed() != fixed.is_some() || fixed.is_some_and(|bytes| bytes != mask.key_bytes_max()) {
        return corrupt("keys must have the length of their type");
    }
    let tails_fit = match (mask.tail(), header.tails) {
        (Some(tail), Some(place)) => place.shape.element_bytes == tail.bytes() as u64,
        (tail, place) => tail.is_none() && place.is_none(),
    };
    if !tails_fit {
        return corrupt("tails must have the length that the mask gives them");
    }
    if !mask.is_lossless() && mask.tail().is_none() && header.keys.is_none() {
        return corrupt("there must be a TAIL or KEYS section if words are not whole keys");
    }
    Ok(mask)
}

/// An open Pleach file. `Send + Sync`; look-ups take no lock and allocate nothing.
///
/// An `Index` does not know the types of its keys and values at compile time: it says what it holds
/// ([`Index::key_type`], [`Index::value_type`]) and gives typed views ([`Index::typed`]).
pub struct Index {
    header: Header,
    storage: Storage,
    touched: Option<Touched>,
    /// What is touched from now on is believed without its sum.
    is_trusted: AtomicBool,
    isa: Isa,
    mask: Option<Mask>,
    options: OpenOptions,
    path: PathBuf,
    /// Of the file that was opened; `None` for bytes in memory.
    identity: Option<Identity>,
}

impl Index {
    /// Opens a file with the default options: mapped, header verified. O(1).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        OpenOptions::default().open(path)
    }
    /// Options to open a file with.
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::default()
    }
    /// Opens a file that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, OpenError> {
        OpenOptions::default().from_bytes(bytes)
    }

    /// Where the file was opened; empty for bytes in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Switches to the next generation, if the file's name leads to one now, and says whether it did. O(1); one
    /// system call if there is none. Views borrow the index, so that none outlives its generation; threads
    /// that share one use [`crate::Live`].
    ///
    /// # Errors
    /// What opening it says, or that it holds other types: then nothing has changed.
    pub fn refresh(&mut self) -> Result<bool, OpenError> {
        let Some(next) = self.next_generation()? else { return Ok(false) };
        let is_new = !next.is_same_generation(self);
        *self = next;
        Ok(is_new)
    }

    /// The file under our name, if it is another one.
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

    /// Whether the other is the same content under the same number.
    pub(crate) fn is_same_generation(&self, other: &Self) -> bool {
        (self.generation(), self.file_id()) == (other.generation(), other.file_id())
    }

    /// A view with compile-time types. `V = ()` is allowed whatever the values are: keys only.
    pub fn typed<K: Key, V: Value>(&self) -> Result<Typed<'_, K, V>, TypeError> {
        let holds = (self.header.key_type, self.header.value_type);
        if K::TYPE != holds.0 || (V::TYPE != holds.1 && V::TYPE != ValueType::None) {
            return Err(TypeError { asked: (K::TYPE, V::TYPE), holds });
        }
        Ok(Typed::new(self))
    }

    /// A view of a file whose keys are byte strings: `bytesN`, `bytes` or `utf8`. `V = ()` is allowed
    /// whatever the values are: keys only.
    pub fn strings<V: Value>(&self) -> Result<Strings<'_, V>, TypeError> {
        Strings::new(self)
    }

    /// The sorted column of keys, if the file has one: numbers as they are, not encoded.
    #[must_use]
    pub fn key_column(&self) -> Option<Column<'_>> {
        Column::new(self, self.header.keys)
    }
    /// What words leave out of byte keys, if the file holds that as tails.
    pub(crate) fn tails(&self) -> Option<Column<'_>> {
        Column::new(self, self.header.tails)
    }
    /// The sorted column of values: always there if they are byte strings.
    #[must_use]
    pub fn value_column(&self) -> Option<Column<'_>> {
        Column::new(self, self.header.values)
    }
    /// The compressed column of keys, if the file has one of this type.
    #[must_use]
    pub fn packed_keys<K: Key>(&self) -> Option<Packed<'_, K>> {
        Packed::new(self)
    }
    /// Harmonia's tree, if the file has one of these types. With [`Verify::Touched`] O(section), else O(levels).
    pub fn harmonia<K: Key, V: Value>(&self) -> Result<Option<Harmonia<'_, K, V>>, ReadError> {
        Harmonia::new(self)
    }
    /// The classic tree, if the file has one of words `W`, with a copy of all words, which end its
    /// searches. O(tuples): it is there to be measured.
    ///
    /// # Errors
    /// With [`Verify::Touched`], a block of the tree or of the tuples that does not match its sum; or the
    /// mapping was lost.
    pub fn classic<W: TreeWord + Word>(&self) -> Result<Option<ClassicTree<'_, W>>, ReadError> {
        if let (Some(verified), Some(section)) = (self.verified(), self.header.section(Tag::FAST)) {
            verified.check_range(section.offset(), section.entry.length.get())?;
            let lines = self.header.line_offset(self.header.lines) - self.header.lines_offset;
            verified.check_range(self.header.lines_offset, lines)?;
        }
        let tree = self.classic_tree();
        self.check_mapping()?;
        Ok(tree)
    }

    fn classic_tree<W: TreeWord + Word>(&self) -> Option<ClassicTree<'_, W>> {
        let entry = self.header.section(Tag::FAST)?.entry;
        let (geometry, form) = section::load(&entry.geometry, entry.elements.get())?;
        if self.header.geometry.key_bytes != <W as Word>::BYTES || geometry.keys != self.len() {
            return None;
        }
        let bytes = self.bytes().get(usize::try_from(entry.offset.get()).ok()?..)?;
        let bytes = bytes.get(..usize::try_from(entry.length.get()).ok()?)?;
        let lines = self.bytes().get(usize::try_from(self.header.lines_offset).ok()?..)?;
        let (lines, _) = lines.as_chunks::<64>();
        let shape = self.header.geometry;
        let words = lines.iter().take(usize::try_from(self.header.lines).ok()?).enumerate();
        let words = words.flat_map(|(number, line)| {
            (0..shape.tuples_in_line(number as u64, self.len())).map(|slot| line::key::<W>(line, slot))
        });
        Some(ClassicTree { geometry, form, bytes, words: words.collect() })
    }

    /// How byte keys become words, in files that have them.
    #[must_use]
    pub fn mask(&self) -> Option<&Mask> {
        self.mask.as_ref()
    }

    /// What was checked when the file was opened.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }
    /// Column names and logical types.
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
        // A copy, since texts are made of it.
        let meta = self.shown(meta);
        self.check_mapping()?;
        Ok(Meta::decode(&meta))
    }
    /// The fields of a value, if values are records. Reads META; O(fields).
    ///
    /// # Errors
    /// As [`Index::meta`]. A broken record is none.
    pub fn record(&self) -> Result<Option<Record>, ReadError> {
        Ok(Record::of(self.value_type(), &self.meta()?.value_logical))
    }
    /// Number of tuples.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.header.tuples
    }
    /// Whether there are no tuples.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Key type.
    #[must_use]
    pub fn key_type(&self) -> KeyType {
        self.header.key_type
    }
    /// Value type.
    #[must_use]
    pub fn value_type(&self) -> ValueType {
        self.header.value_type
    }
    /// Whether the build refused or removed duplicate keys.
    #[must_use]
    pub fn is_unique(&self) -> bool {
        self.header.is_unique()
    }
    /// 1 for a fresh build, one more at each rebuild.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.header.superblock.generation.get()
    }
    /// Hash of types, options and contents: equal for files of the same tuples and options.
    #[must_use]
    pub fn file_id(&self) -> [u8; 16] {
        self.header.superblock.file_id
    }
    /// Bytes of the file.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.header.file_bytes
    }
    /// The instruction set that searches use.
    #[must_use]
    pub fn isa(&self) -> Isa {
        self.isa
    }
    /// One line: residence, verification, instruction set and the shape of the descent.
    #[must_use]
    pub fn describe(&self) -> String {
        use std::fmt::Write;
        let mut text = format!("{}, verify {}, {}: ", self.storage.name(), self.options.verify, self.isa);
        for level in self.header.spine.levels.iter().rev() {
            let _ = write!(text, "{} x{} > ", level.encoding.name(), level.lines);
        }
        let _ = write!(
            text,
            "{} tuple lines of {} tuples",
            self.header.lines,
            self.header.geometry.tuples_per_line()
        );
        text
    }

    /// All bytes of the file. Unverified, and only for measuring and for tools that know the format: look-ups go
    /// through [`Index::typed`]. O(file) for a mapped file, of which this is a copy.
    #[must_use]
    pub fn as_bytes(&self) -> Cow<'_, [u8]> {
        self.shown(self.bytes())
    }

    /// All bytes of the file, where they lie in memory. Unverified.
    ///
    /// # Safety
    /// Of a mapped file anybody may change the bytes at any time, also while they are read. Nothing may rest on them
    /// that Rust takes for granted: no text may be made of them without a copy, no length or place may be proved and
    /// then read again. [`Index::check_mapping`] is asked behind what was read.
    #[must_use]
    pub unsafe fn bytes_in_place(&self) -> &[u8] {
        self.bytes()
    }

    /// Bytes of the file as they may be handed out: copied, if anybody else can change them.
    pub(crate) fn shown<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if self.storage.lies_still() { Cow::Borrowed(bytes) } else { Cow::Owned(bytes.to_vec()) }
    }

    /// Whether nobody else can change the bytes.
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

    /// Ends [`Verify::Touched`]: from now on blocks are believed as with [`Verify::Header`], in views that are there,
    /// too. For long batches that need not be verified to their end. Bytes and answers stay those of the file that
    /// was opened, whatever its name leads to by now.
    pub fn trust(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn verified(&self) -> Option<Verified<'_>> {
        let touched = self.touched.as_ref().filter(|_| !self.is_trusted.load(Ordering::Relaxed))?;
        Some(Verified { header: &self.header, bytes: self.bytes(), touched, storage: Some(&self.storage) })
    }

    /// What notices that the mapping is cut short, if there is one.
    pub(crate) fn watch(&self) -> Option<&Watch> {
        self.storage.watch()
    }

    /// Errors if the mapping was cut short; only ever after [`crate::contain_sigbus`].
    #[inline]
    pub fn check_mapping(&self) -> Result<(), ReadError> {
        if self.storage.is_lost() { Err(ReadError::MappingLost) } else { Ok(()) }
    }
}

/// The FAST section of a file, and its words. Its searches have no errors to give: of a mapped file that was cut
/// meanwhile, which [`Index::check_mapping`] says, ranks mean nothing.
#[derive(Clone, Debug)]
pub struct ClassicTree<'a, W> {
    geometry: Geometry,
    form: Form,
    bytes: &'a [u8],
    words: Vec<W>,
}

impl<W: TreeWord> ClassicTree<'_, W> {
    /// The tree, to be searched; `None` if the file is damaged.
    #[must_use]
    pub fn search(&self) -> Option<Classic<'_, W>> {
        Classic::new(&self.geometry, self.form, self.bytes, &self.words)
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
