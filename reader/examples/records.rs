//! Values of several fields: records.

use pleach::{Builder, ErrorKind, Map, Row};

struct Customer {
    id: u64,
    nation: u8,
    balance: f64,
}

pub(crate) fn main() -> pleach::Result<()> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("customers.pleach");
    let customers =
        (1..=1000u64).map(|id| Customer { id, nation: (id % 25) as u8, balance: id as f64 / 4.0 });

    // A record is built of a tuple, and its fields get names.
    let tuples = customers.map(|customer| (customer.id, (customer.nation, customer.balance)));
    Builder::new().fields(["nation", "balance"]).build(&path, tuples)?;

    // The fields are known at compile time: a tuple again.
    let customers: Map<u64, (u8, f64)> = Map::open(&path)?;
    assert_eq!(customers.get(30)?, Some((5, 7.5)));
    assert_eq!(customers.get_many(&[1, 0])?, [Some((1, 0.25)), None]);

    // They are known at run time: a row, with fields by name.
    let customers: Map<u64, Row> = Map::open(&path)?;
    let row = customers.get(30)?.expect("is there");
    assert_eq!(row.get::<f64>("balance")?, 7.5);
    let shown: Vec<String> = row.iter().map(|(name, value)| format!("{name} {value:?}")).collect();
    assert_eq!(shown, ["nation U8(5)", "balance F64(7.5)"]);

    // One field of one key, or of many: the name is looked up once.
    assert_eq!(customers.get_field::<u8>(26, "nation")?, Some(1));
    let balances = customers.get_field_many::<f64>(&[4, 8, 2000], "balance")?;
    assert_eq!(balances, [Some(1.0), Some(2.0), None]);

    // Names and types are checked.
    let error = customers.get_field::<f32>(26, "balance").expect_err("another type");
    assert_eq!((error.kind(), error.code()), (ErrorKind::Usage, "usage"));
    let error = Map::<u64, (u8, f32)>::open(&path).expect_err("another type");
    assert_eq!(error.kind(), ErrorKind::TypesDiffer);
    println!("{error}");
    Ok(())
}
