//! PTX that is a part of this program, for machines that have a driver and no NVRTC.
//!
//! Embedded are the algorithms that `auto` chooses from and what they need, binary search, the builders and
//! the relational operators: rows that say so. The algorithms of papers need NVRTC.
//!
//! There is one archive per architecture, `gpu/ptx/compute_NN.zst`. It has for each such instance the hash of
//! its input (text and definitions), a length and the PTX. It is made by NVRTC 12.0, whose PTX every driver
//! since early 2023 accepts, by
//!
//! ```text
//! PLEACH_BLESS=1 LD_LIBRARY_PATH=<folder of libnvrtc.so.12 of CUDA 12.0> cargo test -p pleach-gpu --lib embedded
//! ```
//!
//! A test rejects an archive whose hashes are not those of the sources and, with that compiler, an archive
//! whose PTX differs from the compiler's.

use super::cache;
use crate::driver::Program;
use std::sync::OnceLock;

/// Architectures, newest first: the number that follows `compute_`, and its archive.
const ARCHIVES: [(u32, &[u8]); 3] = [
    (90, include_bytes!("../../ptx/compute_90.zst")),
    (80, include_bytes!("../../ptx/compute_80.zst")),
    (75, include_bytes!("../../ptx/compute_75.zst")),
];

/// Returns the hash of a program's input: definitions, and text without comments and empty lines.
fn hash(program: &Program<'_>) -> u128 {
    let mut whole: String =
        program.defines.iter().map(|(name, number)| format!("-D{name}={number}\0")).collect();
    for line in program.text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        if !line.is_empty() {
            whole.push_str(line);
            whole.push('\n');
        }
    }
    cache::sum(whole.as_bytes())
}

/// Returns the entries of an archive: hash, and PTX that ends in a zero byte.
fn entries(archive: &[u8]) -> impl Iterator<Item = (u128, &[u8])> {
    let mut rest = archive;
    std::iter::from_fn(move || {
        let (hash, after) = rest.split_first_chunk::<16>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let (ptx, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some((u128::from_le_bytes(*hash), ptx))
    })
}

/// Returns the PTX of a program for the newest embedded architecture that the device runs; `None` if it is
/// not embedded.
pub(crate) fn ptx(program: &Program<'_>, compute: (u32, u32)) -> Option<Vec<u8>> {
    static UNPACKED: [OnceLock<Vec<u8>>; 3] = [const { OnceLock::new() }; 3];
    let wanted = hash(program);
    for (at, (number, packed)) in ARCHIVES.into_iter().enumerate() {
        if number <= compute.0 * 10 + compute.1 {
            let archive = UNPACKED[at].get_or_init(|| zstd::decode_all(packed).unwrap_or_default());
            return entries(archive).find(|entry| entry.0 == wanted).map(|entry| entry.1.to_vec());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GpuError;
    use crate::kernel::Instance;
    use crate::kernel::compile::{Compiler, options};
    use crate::kernel::rows::limits;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns the embedded instances, in order.
    fn embedded() -> Vec<Instance> {
        let mut all = limits::all();
        all.retain(|instance| instance.source.is_embedded);
        all
    }

    /// Returns PTX without the comments that number calls: the compiler counts calls through all compilations
    /// of a process.
    fn unnumbered(ptx: &[u8]) -> Vec<u8> {
        let text = std::str::from_utf8(ptx).expect("PTX is text");
        let lines =
            text.split('\n').map(|line| line.split_once(" // callseq").map_or(line, |(code, _)| code));
        lines.collect::<Vec<_>>().join("\n").into_bytes()
    }

    /// Compiles instances for an architecture on all cores, and returns place, hash and PTX of each in order:
    /// all instances, or every third wanted one from `third` on.
    fn compile(compiler: Compiler, number: u32, third: Option<usize>) -> Vec<(usize, u128, Vec<u8>)> {
        let all = embedded();
        let wanted = limits::wanted(all.clone(), ARCHIVES[0].1);
        let turn = |at: usize| third.is_none_or(|third| at % ARCHIVES.len() == third);
        let wanted = wanted.into_iter().enumerate().filter(|pair| turn(pair.0));
        let place = |instance| all.iter().position(|one| *one == instance).expect("one of them");
        let instances: Vec<_> = wanted.map(|pair| (place(pair.1), pair.1)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut made = Vec::new();
            while let Some(&(at, instance)) = instances.get(next.fetch_add(1, Ordering::Relaxed)) {
                let entry = instance.with_program(|program| {
                    // Line numbers are left out: they would change with every comment.
                    let mut options = options(program, &format!("compute_{number}"));
                    options.retain(|option| option != "--generate-line-info");
                    let ptx = unnumbered(&compiler.compile(program, &options, false)?.code);
                    Ok::<_, GpuError>((at, hash(program), ptx))
                });
                made.push(entry.unwrap_or_else(|error| panic!("{instance:?}: {error}")));
            }
            made
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut made: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("compiles")).collect()
        });
        made.sort_unstable();
        made
    }

    #[test]
    fn embedded_ptx_is_of_these_sources() {
        if std::env::var_os("PLEACH_BLESS").is_some() {
            return;
        }
        let wanted: Vec<u128> = embedded()
            .into_iter()
            .map(|instance| instance.with_program(|program| Ok(hash(program))).expect("no compiler is asked"))
            .collect();
        for (number, packed) in ARCHIVES {
            let archive = zstd::decode_all(packed).expect("unpacks");
            let found: Vec<u128> = entries(&archive).map(|entry| entry.0).collect();
            assert!(found == wanted, "compute_{number} is stale: make it anew, see the head of embedded.rs");
        }
    }

    #[test]
    fn embedded_ptx_is_what_the_compiler_makes() {
        let compiler = match Compiler::find() {
            Some(compiler) if compiler.version() == "12.0" => compiler,
            found => {
                let found = found.map_or("none".to_owned(), Compiler::version);
                assert!(
                    std::env::var_os("PLEACH_REQUIRE_NVRTC_12_0").is_none(),
                    "NVRTC 12.0 is wanted, found {found}"
                );
                return eprintln!("SKIPPED: NVRTC 12.0 is wanted, found {found}");
            }
        };
        // One third of each archive is compared, a different third for each.
        let is_blessing = std::env::var_os("PLEACH_BLESS").is_some();
        for (third, (number, packed)) in ARCHIVES.into_iter().enumerate() {
            let made = compile(compiler, number, (!is_blessing).then_some(third));
            if is_blessing {
                let mut archive = Vec::new();
                for (_, hash, ptx) in made {
                    archive.extend(hash.to_le_bytes());
                    archive.extend(u32::try_from(ptx.len()).expect("small").to_le_bytes());
                    archive.extend(ptx);
                }
                let packed = zstd::encode_all(&archive[..], 19).expect("packs");
                let path = format!("{}/ptx/compute_{number}.zst", env!("CARGO_MANIFEST_DIR"));
                std::fs::write(path, packed).expect("written");
                continue;
            }
            let archive = zstd::decode_all(packed).expect("unpacks");
            let kept: Vec<_> = entries(&archive).map(|(hash, ptx)| (hash, unnumbered(ptx))).collect();
            assert!(!made.is_empty());
            for (at, hash, ptx) in made {
                let instance = embedded()[at];
                let is_same = kept.get(at) == Some(&(hash, ptx));
                assert!(is_same, "compute_{number}: PTX of {instance:?} differs: make it anew");
            }
        }
    }

    #[test]
    fn a_damaged_archive_has_fewer_entries() {
        let whole = [&7u128.to_le_bytes()[..], &2u32.to_le_bytes(), b"x\0"].concat();
        assert_eq!(entries(&whole).collect::<Vec<_>>(), [(7, &b"x\0"[..])]);
        for cut in 0..whole.len() {
            assert_eq!(entries(&whole[..cut]).count(), 0);
        }
    }
}
