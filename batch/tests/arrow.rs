//! Arrow arrays as keys and answers, and relational operators on tables.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Int16Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray,
};
use arrow_schema::{Field, Schema};
use pleach_batch::arrow::{ArrowKeys, Tuples};
use pleach_batch::relation::{Job, Operation, in_memory};
use pleach_batch::{BatchError, Pool, Table};
use pleach_builder::{BuildOptions, Silent};
use pleach_input::InputOptions;
use pleach_relation::{How, Kept, Reduction, SetOperation, SetRule};
use std::sync::Arc;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length")
}

fn index(batches: Vec<RecordBatch>) -> Arc<pleach::Index> {
    let schema = batches[0].schema();
    let reader = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    in_memory("table", Box::new(reader), &InputOptions::default(), 2, &Silent).expect("builds")
}

fn numbers(keys: &[i64], values: &[i64]) -> Arc<pleach::Index> {
    let column = |numbers: &[i64]| Arc::new(Int64Array::from(numbers.to_vec())) as ArrayRef;
    index(vec![batch(vec![("k", column(keys)), ("v", column(values))])])
}

#[test]
fn arrays_are_keys_and_answers() {
    let table = Table::of(numbers(&[3, 1, 2], &[30, 10, 20])).expect("a table");
    let keys: ArrayRef = Arc::new(Int16Array::from(vec![Some(2), None, Some(9), Some(1)]));
    let keys = ArrowKeys::new(&table, keys.slice(0, 4)).expect("numbers");
    let values = table.get_array(&keys, &Pool::of(2)).expect("answers");
    let values = values.as_primitive::<Int64Type>();
    assert_eq!(values.iter().collect::<Vec<_>>(), [Some(20), None, None, Some(10)]);
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    assert!(matches!(
        table.get_array(&ArrowKeys::new(&table, texts).expect("strings"), &Pool::current()),
        Err(BatchError::Keys { .. })
    ));
    let rows: Vec<RecordBatch> =
        Tuples::new(&table, 0..9, 2, 1).expect("names").map(|batch| batch.expect("tuples")).collect();
    assert_eq!(rows.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(rows[1].column_by_name("v").expect("named").as_primitive::<Int64Type>().value(0), 30);
}

#[test]
fn strings_and_dictionaries() {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["b", "a", "c"]));
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["two", "one", ""]));
    let table = Table::of(index(vec![batch(vec![("name", names), ("text", texts)])])).expect("a table");
    let asked: DictionaryArray<arrow_array::types::Int8Type> = vec!["c", "x", "b", "c"].into_iter().collect();
    let keys = ArrowKeys::new(&table, Arc::new(asked)).expect("a dictionary of strings");
    let values = table.get_array(&keys, &Pool::of(2)).expect("answers");
    let values: Vec<Option<&str>> = values.as_string::<i64>().iter().collect();
    assert_eq!(values, [Some(""), None, Some("two"), Some("")]);
}

#[test]
fn operators_take_tables() {
    let (left, right) = (numbers(&[5, 1, 3, 3], &[50, 10, 30, 31]), numbers(&[3, 4, 5], &[300, 400, 500]));
    let run = |operation: Operation, inputs: &[&Arc<pleach::Index>]| {
        let inputs = inputs.iter().map(|&index| Arc::clone(index)).collect();
        Job::new(operation, inputs, 2).and_then(|job| job.collect(&Silent))
    };
    let keys = |answer: &(Arc<Schema>, Vec<RecordBatch>)| -> Vec<i64> {
        answer
            .1
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
            .collect()
    };
    let full = run(Operation::Join(How::Full), &[&left, &right]).expect("joins");
    assert_eq!(keys(&full), [1, 3, 3, 4, 5]);
    assert_eq!(full.1[0].column_by_name("right").expect("named").null_count(), 1);
    let set = |operation, rule| Operation::Set(operation, rule);
    let union = run(set(SetOperation::Union, SetRule::Set), &[&left, &right, &left]).expect("unites");
    assert_eq!(keys(&union), [1, 3, 4, 5]);
    let difference =
        run(set(SetOperation::Difference, SetRule::Multiset), &[&left, &right]).expect("differs");
    assert_eq!(keys(&difference), [1, 3]);
    assert_eq!(keys(&run(Operation::Select("v > 30".to_owned()), &[&left]).expect("selects")), [3, 5]);
    assert_eq!(
        keys(&run(Operation::Reduce(vec![Reduction::Count.into()]), &[&left]).expect("reduces")),
        [1, 3, 5]
    );
    // Another key order: the answer is in the order of the new keys.
    let low = run(Operation::Project("low=v[0:3], k".to_owned()), &[&left]).expect("projects");
    assert!(low.1[0].column(0).as_primitive::<UInt32Type>().values().is_sorted());
    assert_eq!(run(Operation::Product(Kept::Left), &[&left, &right]).expect("pairs").0.fields().len(), 2);
    for (operation, inputs) in [
        (Operation::Join(How::Inner), vec![&left]),
        (Operation::Select("v >".to_owned()), vec![&left]),
        (set(SetOperation::Union, SetRule::Set), vec![&left]),
    ] {
        assert!(matches!(run(operation, &inputs), Err(BatchError::Expression(_))));
    }
}

#[test]
fn streams_end_early_and_late() {
    let all: Vec<i64> = (0..1 << 18).collect();
    let (one, few) = (numbers(&all, &all), numbers(&[1, 2, 3], &[0, 0, 0]));
    let job =
        |operation| Job::new(operation, vec![Arc::clone(&one), Arc::clone(&few)], 2).expect("two inputs");
    let stream = job(Operation::Join(How::Left)).stream().expect("begins");
    let rows: usize = stream.map(|batch| batch.expect("tuples").num_rows()).sum();
    assert_eq!(rows, all.len());
    let mut stream = job(Operation::Product(Kept::Both)).stream().expect("begins");
    assert!(stream.next().expect("a batch").is_ok());
    drop(stream);
    let refused =
        Job::new(Operation::Select("nothing = 1".to_owned()), vec![Arc::clone(&one)], 1).expect("one");
    assert!(matches!(refused.stream(), Err(BatchError::Expression(_))));
}

#[test]
fn answers_become_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("j.pleach");
    let inputs = vec![numbers(&[1, 2], &[10, 20]), numbers(&[2], &[200])];
    let job = Job::new(Operation::Join(How::Left), inputs, 1).expect("two inputs");
    let summary = job.build(&path, &BuildOptions::default(), &Silent).expect("builds");
    assert_eq!(summary.tuples, 2);
    let table = Table::open(&path).expect("opens");
    assert_eq!(table.record().expect("records").fields().len(), 3);
    let floats: ArrayRef = Arc::new(arrow_array::PrimitiveArray::<Float64Type>::from(vec![1.0]));
    assert!(table.get_array(&ArrowKeys::new(&table, floats).expect("numbers"), &Pool::current()).is_err());
}

/// Records with texts and booleans are structs, also where nothing was found; booleans alone are an array.
#[test]
fn texts_and_booleans_are_arrays() {
    let texts = ["one", "", "zwei é"];
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("k", Arc::new(Int64Array::from(vec![1, 2, 3]))),
        ("name", Arc::new(StringArray::from(texts.to_vec()))),
        ("flag", Arc::new(BooleanArray::from(vec![true, false, true]))),
        ("blob", Arc::new(BinaryArray::from(vec![&b"\xff\0"[..], b"", b"x"]))),
    ];
    let table = batch(columns.clone());
    let open = |value: &str| {
        let reader = RecordBatchIterator::new([Ok(table.clone())], table.schema());
        let options = InputOptions { value: Some(value.to_owned()), ..InputOptions::default() };
        let index = in_memory("table", Box::new(reader), &options, 2, &Silent).expect("builds");
        Table::of(index).expect("a table")
    };
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![3, 9, 2]));
    let find = |table: &Table| {
        let keys = ArrowKeys::new(table, Arc::clone(&keys)).expect("keys");
        table.get_array(&keys, &Pool::current()).expect("reads")
    };
    let found = find(&open("name,flag,blob"));
    let rows = found.as_struct();
    assert_eq!((rows.len(), rows.null_count()), (3, 1));
    let names = rows.column(0).as_string::<i64>();
    assert_eq!((names.value(0), names.value(1), names.value(2)), ("zwei é", "", ""));
    let flags = rows.column(1).as_boolean();
    assert_eq!((flags.value(0), flags.value(1), flags.value(2)), (true, false, false));
    assert_eq!(rows.column(2).as_binary::<i64>().value(0), b"x");
    let flags = find(&open("flag"));
    assert_eq!(flags.as_boolean(), &BooleanArray::from(vec![Some(true), None, Some(false)]));
    // Tuples of a range, and an answer of a join, too.
    let table = open("name,flag");
    let all = Tuples::new(&table, 0..9, 2, 1).expect("begins");
    let rows: Vec<RecordBatch> = all.collect::<Result<_, _>>().expect("reads");
    assert_eq!(rows.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(rows[1].column(1).as_struct().column(0).as_string::<i64>().value(0), "zwei é");
    let flagged = open("flag");
    let inputs = vec![Arc::clone(table.index()), Arc::clone(flagged.index())];
    let joined = Job::new(Operation::Join(How::Inner), inputs, 1).expect("two").stream().expect("begins");
    let joined: Vec<RecordBatch> = joined.collect::<Result<_, _>>().expect("reads");
    assert_eq!(joined[0].column(1).as_struct().column(1).as_boolean().true_count(), 2);
    assert_eq!(joined[0].column(2).as_boolean().true_count(), 2);
}
