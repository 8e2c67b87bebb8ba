//! Looks up single keys: their values, their ranks and their neighbours.

use pleach::{Builder, Index, Map, Residence, Verify};

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("temperatures.pleach");
    // Degrees at the seconds of some measurements; one second has two of them.
    Builder::new().build(&path, [(10i64, 20.5f64), (70, 21.0), (70, 21.5), (-50, 19.0)])?;

    let degrees: Map<i64, f64> = Map::open(&path)?;
    assert_eq!(degrees.len(), 4);
    assert_eq!(degrees.get(10)?, Some(20.5));
    assert_eq!(degrees.get(11)?, None);
    assert!(degrees.contains(-50)?);

    // The last measurement up to a time, and the first one from it on.
    assert_eq!(degrees.floor(60)?, Some((10, 20.5)));
    assert_eq!(degrees.ceiling(60)?, Some((70, 21.0)));
    assert_eq!(degrees.floor(-51)?, None);
    assert_eq!(degrees.first()?, Some((-50, 19.0)));
    assert_eq!(degrees.last()?, Some((70, 21.5)));

    // All of one key, in the order in which they were built.
    let all: Vec<(i64, f64)> = degrees.get_all(70)?.collect::<Result<_, _>>()?;
    assert_eq!(all, [(70, 21.0), (70, 21.5)]);

    // Ranks count from 0.
    assert_eq!(degrees.rank(70)?, Some(2));
    assert_eq!((degrees.lower_bound(70)?, degrees.upper_bound(70)?), (2, 4));
    assert_eq!(degrees.select(1)?, Some((10, 20.5)));

    // A copy in memory, of which every byte was verified.
    let options = Index::options().verify(Verify::Full).residence(Residence::Resident);
    let copy: Map<i64, f64> = Map::with_options(&path, options)?;
    assert_eq!(copy.get(10)?, Some(20.5));
    println!("{degrees:?}");
    Ok(())
}
