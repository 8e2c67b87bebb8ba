//! A real table of addresses and countries: Pleach's intervals beside `maxminddb`, which reads the table's
//! sibling in MaxMind's format.
//!
//! `tests/addresses` fetches the table, builds the files and runs this program: the folder has the CSV and the
//! MMDB of both families, `geo-whois-asn-country-ipv4.csv` and so on, and the files that Pleach built from the
//! CSV, `ipv4.pleach` and `ipv6.pleach`. A second argument is the number of rounds, 7 if there is none.
//!
//! First every answer is compared, "none" too: each row's first and last address, the ones before and behind
//! it, and a million random addresses of each kind. Then both are timed on one thread each: addresses are
//! numbers for Pleach, `IpAddr` for `maxminddb`, and both give the country as a text. Rounds alternate; medians
//! are printed.

use maxminddb::Reader;
use pleach::{Index, Intervals, Key};
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::process::ExitCode;
use std::str::{FromStr, from_utf8};
use std::time::Instant;

/// Random addresses of each kind.
const RANDOM: usize = 1_000_000;
/// Differences that are shown.
const SHOWN: usize = 10;

type Fallible<T> = Result<T, Box<dyn Error>>;
type Code = [u8; 2];

/// A record of the MMDB.
#[derive(serde::Deserialize)]
struct Record<'a> {
    country_code: &'a str,
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }
}

/// An address as a number.
trait Address: Key {
    const NAME: &'static str;
    const BITS: u32;
    fn of(text: &str) -> Fallible<Self>;
    fn narrow(wide: u128) -> Self;
    fn widen(self) -> u128;
    fn ip(self) -> IpAddr;
}

fn parsed<T: FromStr<Err: Error + 'static>>(text: &str) -> Fallible<T> {
    Ok(text.parse::<T>()?)
}

impl Address for u32 {
    const NAME: &'static str = "ipv4";
    const BITS: u32 = 32;
    fn of(text: &str) -> Fallible<Self> {
        Ok(parsed::<Ipv4Addr>(text)?.to_bits())
    }
    fn narrow(wide: u128) -> Self {
        wide as Self
    }
    fn widen(self) -> u128 {
        self.into()
    }
    fn ip(self) -> IpAddr {
        Ipv4Addr::from_bits(self).into()
    }
}

impl Address for u128 {
    const NAME: &'static str = "ipv6";
    const BITS: u32 = 128;
    fn of(text: &str) -> Fallible<Self> {
        Ok(parsed::<Ipv6Addr>(text)?.to_bits())
    }
    fn narrow(wide: u128) -> Self {
        wide
    }
    fn widen(self) -> u128 {
        self
    }
    fn ip(self) -> IpAddr {
        Ipv6Addr::from_bits(self).into()
    }
}

/// Reads the first and last addresses of the rows of a table.
fn rows<A: Address>(path: &Path) -> Fallible<Vec<(A, A)>> {
    let row = |line: &str| {
        let mut fields = line.split(',');
        let mut field = || fields.next().ok_or_else(|| format!("a row without two addresses: {line}"));
        Ok((A::of(field()?)?, A::of(field()?)?))
    };
    std::fs::read_to_string(path)?.lines().map(row).collect()
}

/// The borders of rows and their neighbours, as far as there are any.
fn borders<A: Address>(rows: &[(A, A)]) -> Vec<A> {
    let last = u128::MAX >> (128 - A::BITS);
    let mut addresses = Vec::with_capacity(rows.len() * 4);
    for &(first, end) in rows {
        addresses.extend([first, end]);
        addresses.extend(first.widen().checked_sub(1).map(A::narrow));
        addresses.extend(Some(end).filter(|end| end.widen() < last).map(|end| A::narrow(end.widen() + 1)));
    }
    addresses
}

/// Kinds of random addresses, with names.
fn random<A: Address>(rows: &[(A, A)]) -> Vec<(&'static str, Vec<A>)> {
    let mut random = Random(20_261_128);
    let mut kind = |name, make: &dyn Fn(&mut Random) -> u128| {
        (name, (0..RANDOM).map(|_| A::narrow(make(&mut random))).collect::<Vec<A>>())
    };
    let mut kinds = vec![kind("uniform", &Random::wide)];
    if A::BITS == 128 {
        kinds.push(kind("in 2000::/3", &|random| random.wide() >> 3 | 1 << 125));
    }
    kinds.push(kind("in a random row", &|random| {
        let (first, last) = rows[(random.next() % rows.len() as u64) as usize];
        let span = last.widen().saturating_sub(first.widen());
        first.widen() + random.wide() % span.saturating_add(1)
    }));
    kinds
}

/// The country of an address, as `maxminddb` has it.
#[inline]
fn theirs(reader: &Reader<Vec<u8>>, address: IpAddr) -> Fallible<Option<&str>> {
    Ok(reader.lookup(address)?.decode::<Record<'_>>()?.map(|record| record.country_code))
}

/// The country in the value of an interval: what is behind the last address. `None` if that is no text.
#[inline]
fn country<A: Address>(value: &[u8]) -> Option<&str> {
    let code: &Code = value.get(size_of::<A>()..)?.first_chunk()?;
    from_utf8(code).ok()
}

/// Compares the answers, and returns how many differ.
fn compare<A: Address>(
    what: &str,
    intervals: &Intervals<'_, A>,
    reader: &Reader<Vec<u8>>,
    addresses: &[A],
) -> Fallible<usize> {
    let mut ours: Vec<Option<Code>> = vec![None; addresses.len()];
    let found = intervals.each_batch(addresses, |at, _, value| {
        ours[at] = value.get(size_of::<A>()..).and_then(<[u8]>::first_chunk).copied();
    })?;
    let mut different = 0;
    for (&address, ours) in addresses.iter().zip(&ours) {
        let theirs = theirs(reader, address.ip())?;
        if ours.as_ref().map(|code| &code[..]) != theirs.map(str::as_bytes) {
            different += 1;
            if different <= SHOWN {
                let ours = ours.map(|code| String::from_utf8_lossy(&code).into_owned());
                println!("  {}: Pleach {ours:?}, maxminddb {theirs:?}", address.ip());
            }
        }
    }
    println!("{} {what}: {} addresses, {found} have a country, {different} differ", A::NAME, addresses.len());
    Ok(different)
}

/// What a measurement does with a country, so that it has to be there.
#[inline]
fn fold(sum: u64, country: &str) -> u64 {
    country.bytes().fold(sum, |sum, byte| sum.wrapping_add(u64::from(byte)))
}

/// Nanoseconds of an address in each round, and what was found.
#[derive(Default)]
struct Timed {
    rounds: Vec<f64>,
    sum: u64,
}

impl Timed {
    fn run(&mut self, count: usize, work: impl FnOnce() -> Fallible<u64>) -> Fallible<()> {
        let start = Instant::now();
        self.sum = work()?;
        self.rounds.push(start.elapsed().as_secs_f64() * 1e9 / count as f64);
        Ok(())
    }

    fn median(&mut self) -> f64 {
        self.rounds.sort_by(f64::total_cmp);
        self.rounds[self.rounds.len() / 2]
    }
}

/// Times one kind of addresses, and returns a line of the table.
fn measure<A: Address>(
    intervals: &Intervals<'_, A>,
    reader: &Reader<Vec<u8>>,
    addresses: &[A],
    rounds: usize,
) -> Fallible<String> {
    let (mut batch, mut single, mut peer) = (Timed::default(), Timed::default(), Timed::default());
    let count = addresses.len();
    let ips: Vec<IpAddr> = addresses.iter().map(|address| address.ip()).collect();
    let ask = |addresses: &[A], sum: &mut u64| {
        intervals.each_batch(addresses, |_, _, value| {
            *sum = fold(*sum, country::<A>(value).unwrap_or("??"));
        })
    };
    for _ in 0..rounds {
        batch.run(count, || {
            let mut sum = 0;
            ask(addresses, &mut sum)?;
            Ok(sum)
        })?;
        peer.run(count, || {
            ips.iter().try_fold(0, |sum, &ip| Ok(theirs(reader, ip)?.map_or(sum, |code| fold(sum, code))))
        })?;
        single.run(count, || {
            let mut sum = 0;
            addresses.chunks(1).try_for_each(|address| ask(address, &mut sum).map(|_| ()))?;
            Ok(sum)
        })?;
    }
    assert!(batch.sum == peer.sum && single.sum == peer.sum, "countries differ");
    let (batch, single, peer) = (batch.median(), single.median(), peer.median());
    Ok(format!("{peer:>10.1} {batch:>10.2} {single:>10.1} {:>8.1} {:>8.1}", peer / batch, peer / single))
}

/// Compares and measures one family, and returns the number of differences.
fn family<A: Address>(folder: &Path, rounds: usize, table: &mut Vec<String>) -> Fallible<usize> {
    let file = |extension: &str| folder.join(format!("geo-whois-asn-country-{}.{extension}", A::NAME));
    let rows = rows::<A>(&file("csv"))?;
    let reader = Reader::open_readfile(file("mmdb"))?;
    let built = folder.join(format!("{}.pleach", A::NAME));
    let index = Index::open(&built)?;
    let intervals = index.intervals::<A>()?.ok_or("the file has no intervals")?;
    println!("{}: {} rows, {} intervals", A::NAME, rows.len(), index.len());
    let mut different = compare("borders", &intervals, &reader, &borders(&rows))?;
    for (kind, addresses) in random(&rows) {
        different += compare(kind, &intervals, &reader, &addresses)?;
        let line = measure(&intervals, &reader, &addresses, rounds)?;
        table.push(format!("{:<22} {line}", format!("{} {kind}", A::NAME)));
    }
    Ok(different)
}

fn main() -> Fallible<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("usage: addresses FOLDER [ROUNDS]")?;
    let rounds = arguments.next().map_or(Ok(7), |text| text.to_string_lossy().parse::<usize>())?.max(1);
    let mut table = Vec::new();
    let mut different = family::<u32>(folder.as_ref(), rounds, &mut table)?;
    different += family::<u128>(folder.as_ref(), rounds, &mut table)?;
    println!("\nns an address, one thread, {RANDOM} addresses, medians of {rounds} rounds");
    let head =
        format!("{:>10} {:>10} {:>10} {:>8} {:>8}", "maxminddb", "Pleach", "by one", "times", "by one");
    println!("{:<22} {head}", "");
    table.iter().for_each(|line| println!("{line}"));
    if different > 0 {
        eprintln!("{different} answers differ");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
