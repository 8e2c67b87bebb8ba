//! Joins two files by their keys, in memory that does not depend on their size.

use pleach::{Builder, Map, Row};
use pleach_builder::{BuildOptions, Silent};
use pleach_relation::{How, Relation, StreamOptions, join};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let at = |name: &str| folder.path().join(name);
    // Orders by their customer, and customers with their nation. Customer 4 has no order; customer 9 is unknown.
    Builder::new().build(at("orders.pleach"), [(1u64, 10.0f64), (1, 5.0), (2, 7.5), (9, 1.0)])?;
    Builder::new().build(at("customers.pleach"), [(1u64, 7u32), (2, 7), (4, 3)])?;
    let orders: Map<u64, f64> = Map::open(at("orders.pleach"))?;
    let customers: Map<u64, u32> = Map::open(at("customers.pleach"))?;

    // An answer is evaluated when its chunks are requested, or counted, or written.
    let sides = || (Relation::from_index(orders.index()), Relation::from_index(customers.index()));
    let answer = |how| {
        let (left, right) = sides();
        join(how, left, right, StreamOptions::default())
    };
    assert_eq!(answer(How::Inner)?.count()?, 3);
    assert_eq!(answer(How::Left)?.count()?, 4);
    assert_eq!(answer(How::Anti)?.count()?, 1);

    // As a file, whose values are records of both sides.
    let path = at("joined.pleach");
    answer(How::Inner)?.to_index(&path, &BuildOptions::default(), &Silent)?;
    let joined: Map<u64, Row> = Map::open(&path)?;
    let row = joined.get(2)?.expect("has an order and a nation");
    assert_eq!((row.get::<f64>("left")?, row.get::<u32>("right")?), (7.5, 7));

    let mut income = 0.0;
    for tuple in &joined {
        let (_, row) = tuple?;
        income += if row.get::<u32>("right")? == 7 { row.get::<f64>("left")? } else { 0.0 };
    }
    assert_eq!(income, 22.5);
    println!("nation 7 spent {income}");
    Ok(())
}
