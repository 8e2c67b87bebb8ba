//! A service that keeps a table open, answers batches, and takes the next generation while it runs.

use pleach::{Builder, Live, Map, Result};

struct Prices {
    table: Live<Map<u64, (f64, u32)>>,
}

impl Prices {
    fn total(&self, products: &[u64]) -> Result<f64> {
        let found = self.table.current().get_many(products)?;
        Ok(found.into_iter().flatten().map(|(price, _)| price).sum())
    }
    fn in_stock(&self, first: u64, last: u64) -> Result<u32> {
        let table = self.table.current();
        table.range(first..=last)?.map(|tuple| tuple.map(|(_, (_, stock))| stock)).sum()
    }
}

pub(crate) fn main() -> Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("prices.pleach");
    let builder = Builder::new().fields(["price", "stock"]);
    builder.build(&path, (1..=1000u64).map(|product| (product, (product as f64, 2u32))))?;

    let prices = Prices { table: Live::open(&path)? };
    assert_eq!(prices.total(&[1, 2, 2000])?, 3.0);
    assert_eq!(prices.in_stock(10, 19)?, 20);
    builder.build(&path, (1..=1000u64).map(|product| (product, (product as f64 / 2.0, 3u32))))?;
    assert!(prices.table.refresh()?);
    println!("{} {}", prices.total(&[1, 2, 2000])?, prices.in_stock(10, 19)?);
    Ok(())
}
