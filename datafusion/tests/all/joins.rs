//! Joins with a few keys become look-ups unasked: by the filters that the engine makes while it runs.

use crate::kit;
use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// Rows with every third number from 0 on: some are keys of the table.
fn few(rows: u32) -> RecordBatch {
    kit::batch(Arc::new(UInt32Array::from_iter_values((0..rows).map(|row| row * 61 % 9000))))
}

#[tokio::test]
async fn a_few_keys_become_look_ups() {
    let case = &kit::cases()[0];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (file, set) = (folder.path().join("t.pleach"), folder.path().join("set"));
    kit::build_file(&file, &case.batch, true);
    kit::build_set(&set, &case.batch, true, 250);
    for rows in [0, 1, 100, 150] {
        for partitions in [1, 3] {
            let session = kit::session(partitions, 64);
            kit::register(&session, "f", &file);
            kit::register(&session, "s", &set);
            kit::register_rows(&session, "rows", &case.batch);
            kit::register_rows(&session, "few", &few(rows));
            for table in ["f", "s"] {
                let query = format!("SELECT few.n, t.k, t.s FROM few JOIN {table} t ON few.k = t.k");
                let plan = kit::plan(&session, &query).await;
                let text = kit::text(&plan);
                let mut found = kit::run(&session, &plan).await.expect("it answers");
                let oracle = query.replace(&format!(" {table} t"), " rows t");
                let mut expected = kit::rows(&session, &oracle).await.expect("the oracle answers");
                found.sort();
                expected.sort();
                assert_eq!(found, expected, "{query}");
                assert!(text.contains("filter=DynamicFilter"), "{text}");
                // No row is read that is not in the answer.
                assert_eq!(
                    kit::metric(&plan, "output_rows"),
                    expected.len(),
                    "{rows} in {partitions}: {text}"
                );
            }
        }
    }
}

#[tokio::test]
async fn many_keys_are_a_range() {
    let case = &kit::cases()[0];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let set = folder.path().join("set");
    kit::build_set(&set, &case.batch, true, 250);
    let session = kit::session(1, 64);
    kit::register(&session, "s", &set);
    let keys = UInt32Array::from_iter_values(3000..3700);
    kit::register_rows(&session, "many", &kit::batch(Arc::new(keys)));
    let plan = kit::plan(&session, "SELECT many.n, t.k, t.s FROM many JOIN s t ON many.k = t.k").await;
    let found = kit::run(&session, &plan).await.expect("it answers");
    assert_eq!(found.len(), 700 / 3 + 1);
    assert_eq!(kit::metric(&plan, "files_opened"), 1, "{}", kit::text(&plan));
    assert_eq!(kit::metric(&plan, "output_rows"), found.len());
}
