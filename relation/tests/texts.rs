//! Operators on records with texts: joins write the texts of both sides, and conditions ask for them.

use pleach::{Datum, Index};
use pleach_builder::{BuildOptions, Builder, Silent};
use pleach_relation::expr::Predicate;
use pleach_relation::{How, Relation, StreamOptions, join, select_where};

/// Both sides are records, one with texts and one without, of different lengths, with keys of both.
#[test]
fn records_with_texts_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right, path) =
        (folder.path().join("l.pleach"), folder.path().join("r.pleach"), folder.path().join("j.pleach"));
    let names = |count: usize| vec![format!("a{count}"), String::new(), "é".repeat(count)];
    let lefts: Vec<(i32, (u8, String, Vec<u8>))> = (0..40)
        .map(|at| (at * 2, (at as u8, names(at as usize)[at as usize % 3].clone(), vec![7; at as usize])))
        .collect();
    let rights: Vec<(i32, (f64, u16))> = (0..40).map(|at| (at * 3, (f64::from(at), at as u16))).collect();
    Builder::new().fields(["n", "name", "blob"]).build(&left, lefts.clone()).unwrap();
    Builder::new().fields(["x", "y"]).build(&right, rights.clone()).unwrap();
    let (left, right) = (Index::open(&left).unwrap(), Index::open(&right).unwrap());
    let (l, r) = (Relation::from_index(&left), Relation::from_index(&right));
    for how in [How::Inner, How::Left, How::Right, How::Full] {
        for is_swapped in [false, true] {
            let (one, other) = if is_swapped { (r, l) } else { (l, r) };
            let answer = join(how, one, other, StreamOptions::default()).unwrap();
            answer.to_index(&path, &BuildOptions::default(), &Silent).unwrap();
            let file = Index::open(&path).unwrap();
            let record = file.record().unwrap().expect("a record");
            let (text, number) = if is_swapped { ("right", "left") } else { ("left", "right") };
            let find = |side: &str, name: &str| record.find(&format!("{side}_{name}")).expect("a field");
            let mut keys = Vec::new();
            for rank in 0..file.len() {
                let (key, packed) = file.tuple(rank).unwrap().unwrap();
                let (Datum::I32(key), packed) = (key, packed.packed().into_owned()) else { panic!("i32") };
                keys.push(key);
                assert_eq!(record.check(&packed), Ok(()));
                let wanted = lefts.iter().find(|tuple| tuple.0 == key).map(|tuple| tuple.1.clone());
                let wanted = wanted.unwrap_or_default();
                assert_eq!(record.get_typed(find(text, "n"), &packed), Some(wanted.0));
                assert_eq!(record.get_typed(find(text, "name"), &packed), Some(wanted.1));
                assert_eq!(record.get_typed(find(text, "blob"), &packed), Some(wanted.2));
                let wanted = rights.iter().find(|tuple| tuple.0 == key).map(|tuple| tuple.1);
                assert_eq!(record.get_typed(find(number, "x"), &packed), Some(wanted.unwrap_or_default().0));
                assert_eq!(record.get_typed(find(number, "y"), &packed), Some(wanted.unwrap_or_default().1));
            }
            let is_in = |keys: &[i32], key: i32| keys.contains(&key);
            let (ours, theirs): (Vec<i32>, Vec<i32>) =
                (lefts.iter().map(|tuple| tuple.0).collect(), rights.iter().map(|tuple| tuple.0).collect());
            let (ours, theirs) = if is_swapped { (theirs, ours) } else { (ours, theirs) };
            let wanted: Vec<i32> = (0..120)
                .filter(|&key| match how {
                    How::Inner => is_in(&ours, key) && is_in(&theirs, key),
                    How::Left => is_in(&ours, key),
                    How::Right => is_in(&theirs, key),
                    _ => is_in(&ours, key) || is_in(&theirs, key),
                })
                .collect();
            assert_eq!(keys, wanted);
        }
    }
    // Fields of records with texts are what conditions ask for.
    let schema = l.expr_schema().unwrap();
    for (condition, count) in [("name = ''", 13), ("n < 10 and name < 'b'", 8), ("name like 'a1%'", 6)] {
        let condition = Predicate::parse(condition, &schema).unwrap_or_else(|error| panic!("{error}"));
        let found = select_where(l, &condition, StreamOptions::default()).unwrap();
        assert_eq!(found.collect().unwrap().keys.len(), count);
    }
}
