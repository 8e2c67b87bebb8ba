//! A disk that remembers every write and every flush, so that any power cut can be shown afterwards.
//!
//! It is a file in a FUSE file system of our own, under a loop device: what the file system on it writes
//! comes here as writes, and its barriers as syncs. After a power cut a disk holds all that was written
//! before the last sync that it has answered, and any part of what came later, in any order:
//! [`Recorder::after_cut`] makes such a disk.

use anyhow::{Context, Result};
use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    Request, WriteFlags,
};
use pleach_tests::generate::Random;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// Size of the blocks that a disk writes as a whole: parts of a write are lost in such blocks.
const BLOCK_BYTES: usize = 4096;

/// Event on the disk.
#[derive(Clone)]
enum Event {
    Write(u64, Arc<[u8]>),
    Sync,
}

#[derive(Default)]
struct Disk {
    /// Blocks that are not zero.
    blocks: BTreeMap<u64, Box<[u8]>>,
    events: Vec<Event>,
    recording: bool,
}

impl Disk {
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let inside = at as usize % BLOCK_BYTES;
            let count = (BLOCK_BYTES - inside).min(bytes.len() - done);
            let zeros = || vec![0; BLOCK_BYTES].into_boxed_slice();
            let block = self.blocks.entry(at / BLOCK_BYTES as u64).or_insert_with(zeros);
            block[inside..inside + count].copy_from_slice(&bytes[done..done + count]);
            done += count;
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let inside = at as usize % BLOCK_BYTES;
            let count = (BLOCK_BYTES - inside).min(bytes.len() - done);
            match self.blocks.get(&(at / BLOCK_BYTES as u64)) {
                Some(block) => bytes[done..done + count].copy_from_slice(&block[inside..inside + count]),
                None => bytes[done..done + count].fill(0),
            }
            done += count;
        }
    }
}

/// The only file there is.
const FILE: INodeNo = INodeNo(2);
const NAME: &str = "disk";
const FOREVER: Duration = Duration::from_secs(1 << 30);

struct Served {
    disk: Arc<Mutex<Disk>>,
    bytes: u64,
}

impl Served {
    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let is_file = inode == FILE;
        FileAttr {
            ino: inode,
            size: if is_file { self.bytes } else { 0 },
            blocks: self.bytes / 512,
            atime: SystemTime::UNIX_EPOCH,
            mtime: SystemTime::UNIX_EPOCH,
            ctime: SystemTime::UNIX_EPOCH,
            crtime: SystemTime::UNIX_EPOCH,
            kind: if is_file { FileType::RegularFile } else { FileType::Directory },
            perm: 0o700,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: BLOCK_BYTES as u32,
        }
    }
}

impl Filesystem for Served {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == NAME {
            true => reply.entry(&FOREVER, &self.attributes(FILE), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&FOREVER, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; u64::from(size).min(self.bytes.saturating_sub(offset)) as usize];
        self.disk().read(offset, &mut bytes);
        reply.data(&bytes);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut disk = self.disk();
        disk.write(offset, bytes);
        if disk.recording {
            disk.events.push(Event::Write(offset, bytes.into()));
        }
        reply.written(bytes.len() as u32);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        let mut disk = self.disk();
        if disk.recording {
            disk.events.push(Event::Sync);
        }
        reply.ok();
    }
}

/// A disk that remembers.
pub struct Recorder {
    disk: Arc<Mutex<Disk>>,
    // Dropped before the folder it is mounted on.
    _session: BackgroundSession,
    folder: tempfile::TempDir,
    bytes: u64,
}

impl Recorder {
    /// A disk of zeros.
    pub fn new(bytes: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let disk = Arc::<Mutex<Disk>>::default();
        let served = Served { disk: Arc::clone(&disk), bytes };
        let session =
            fuser::spawn_mount(served, folder.path(), &Config::default()).context("mounting by FUSE")?;
        Ok(Self { disk, _session: session, folder, bytes })
    }

    /// The file that a loop device is made of.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(NAME)
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on writes are remembered; what is there now is the beginning.
    pub fn record(&self) -> Recording {
        let mut disk = self.disk();
        disk.recording = true;
        disk.events.clear();
        let blocks = disk.blocks.clone();
        Recording {
            base: Disk { blocks, ..Disk::default() },
            bytes: self.bytes,
            events: Vec::new(),
            applied: 0,
        }
    }

    /// Events so far.
    pub fn now(&self) -> usize {
        self.disk().events.len()
    }

    /// Ends it.
    pub fn stop(&self, recording: &mut Recording) {
        let mut disk = self.disk();
        disk.recording = false;
        recording.events = std::mem::take(&mut disk.events);
    }
}

/// Recorded events.
pub struct Recording {
    /// The disk as it was, and what was synced since, up to the last requested cut.
    base: Disk,
    bytes: u64,
    events: Vec<Event>,
    applied: usize,
}

impl Recording {
    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Makes the disk after a power cut that follows `events` events, as a new sparse file. Cuts must be
    /// requested in order.
    pub fn after_cut(&mut self, at: usize, random: &mut Random, path: &Path) -> Result<()> {
        // All before the last sync is there.
        let synced =
            self.events[..at].iter().rposition(|event| matches!(event, Event::Sync)).map_or(0, |at| at + 1);
        while self.applied < synced {
            if let Event::Write(offset, bytes) = self.events[self.applied].clone() {
                self.base.write(offset, &bytes);
            }
            self.applied += 1;
        }
        let file = File::create(path)?;
        file.set_len(self.bytes)?;
        for (number, block) in &self.base.blocks {
            file.write_all_at(block, number * BLOCK_BYTES as u64)?;
        }
        // All, none, or some blocks of later events.
        let share = [0, 1, 2, 3, 4][random.below(5) as usize];
        for event in &self.events[synced.max(self.applied)..at] {
            let Event::Write(offset, bytes) = event else { continue };
            for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
                if random.below(4) < share {
                    file.write_all_at(block, offset + (number * BLOCK_BYTES) as u64)?;
                }
            }
        }
        Ok(())
    }
}
