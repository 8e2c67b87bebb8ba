//! An operator runs.

use super::columns::Columns;
use super::operation::Operation;
use crate::error::{BatchError, Result};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pleach::Index;
use pleach_builder::{BuildOptions, Observer, Summary};
use pleach_relation::expr::{ExprError, Predicate, Projection};
use pleach_relation::{self as relation, Answer, Relation, SetOperation, StreamOptions};
use std::path::Path;
use std::sync::Arc;

/// An operator and its inputs, ready to run. The inputs are read and verified when it runs.
#[derive(Clone, Debug)]
pub struct Job {
    operation: Operation,
    inputs: Vec<Arc<Index>>,
    threads: usize,
    approximate: bool,
}

impl Job {
    /// Prepares an operator for open files, on so many threads (0 for all).
    ///
    /// # Errors
    /// [`BatchError::Expression`] if it has another number of inputs.
    pub fn new(operation: Operation, inputs: Vec<Arc<Index>>, threads: usize) -> Result<Self> {
        operation.check(inputs.len())?;
        Ok(Self { operation, inputs, threads, approximate: false })
    }

    /// Permits keys that are shorter than those they stand for.
    #[must_use]
    pub fn approximate(self, is_permitted: bool) -> Self {
        Self { approximate: is_permitted, ..self }
    }

    fn options(&self) -> StreamOptions<'static> {
        StreamOptions { approximate: self.approximate, ..StreamOptions::default() }
    }

    /// Writes the answer into a file: see [`Answer::to_index`].
    ///
    /// # Errors
    /// [`BatchError::Relation`] if the inputs do not fit together, are damaged, or the file cannot be written;
    /// [`BatchError::Expression`] for an expression that is not one.
    pub fn build(&self, path: &Path, options: &BuildOptions, observer: &dyn Observer) -> Result<Summary> {
        let mut options = options.clone();
        options.inputs.extend(self.inputs.iter().map(|index| index.path().to_owned()));
        self.run(observer, |answer| Ok(answer.to_index(path, &options, observer)?))
    }

    /// Returns the answer as record batches, in the order of keys.
    ///
    /// # Errors
    /// Those of [`Job::build`].
    pub fn collect(&self, observer: &dyn Observer) -> Result<(SchemaRef, Vec<RecordBatch>)> {
        let (mut schema, mut batches) = (None, Vec::new());
        self.each(
            observer,
            |found| schema = Some(Arc::clone(found)),
            |batch| {
                batches.push(batch);
                true
            },
        )?;
        let schema = schema.unwrap_or_else(|| unreachable!("`each` begins with the schema"));
        Ok((schema, batches))
    }

    /// Calls `begin` with the schema and `each` with each record batch, until that returns false.
    pub(super) fn each(
        &self,
        observer: &dyn Observer,
        begin: impl FnOnce(&SchemaRef) + Send,
        mut each: impl FnMut(RecordBatch) -> bool + Send,
    ) -> Result<()> {
        self.run(observer, |answer| {
            if answer.schema().is_sorted {
                return batches(answer, begin, &mut each);
            }
            // A projection may have changed the keys.
            let index = self.between(answer, observer)?;
            let input = Relation::from_index(&index);
            let schema = input.expr_schema()?;
            let all = Predicate::parse("true", &schema).map_err(|error| refused(&error))?;
            batches(relation::select_where(input, &all, StreamOptions::default())?, begin, &mut each)
        })
    }

    /// Runs the operator, on threads of its own: a child of `fork` has none of its parent's.
    fn run<T: Send>(
        &self,
        observer: &dyn Observer,
        finish: impl FnOnce(Answer<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let threads = threads.map_err(|_| BatchError::Threads)?;
        threads.install(|| self.answer(observer, finish))
    }

    fn answer<T>(&self, observer: &dyn Observer, finish: impl FnOnce(Answer<'_>) -> Result<T>) -> Result<T> {
        let options = self.options();
        let relations: Vec<Relation<'_>> =
            self.inputs.iter().map(|index| Relation::from_index(index)).collect();
        let left = relations[0];
        // `check` made sure that there are two where an operator has a right input.
        let right = relations[relations.len() - 1];
        match &self.operation {
            Operation::Select(condition) => {
                let condition =
                    Predicate::parse(condition, &left.expr_schema()?).map_err(|error| refused(&error))?;
                finish(relation::select_where(left, &condition, options)?.watched(observer))
            }
            Operation::Project(columns) => {
                let columns =
                    Projection::parse(columns, &left.expr_schema()?).map_err(|error| refused(&error))?;
                finish(relation::project(left, &columns, options)?.watched(observer))
            }
            Operation::Reduce(aggregates) => {
                finish(relation::aggregate(left, aggregates, options)?.watched(observer))
            }
            Operation::Join(how) => finish(relation::join(*how, left, right, options)?.watched(observer)),
            Operation::AsOf(how, asof, tolerance) => {
                let answer = relation::asof(*asof, tolerance.as_ref(), *how, left, right, options)?;
                finish(answer.watched(observer))
            }
            Operation::Band(how, distance) => {
                finish(relation::band(distance, *how, left, right, options)?.watched(observer))
            }
            Operation::Product(kept) => {
                finish(relation::product(left, right, options)?.keep(*kept).watched(observer))
            }
            Operation::Set(operation, rule) => self.sets(*operation, *rule, &relations, observer, finish),
        }
    }

    /// Combines two inputs at a time, from the left.
    fn sets<T>(
        &self,
        operation: SetOperation,
        rule: relation::SetRule,
        relations: &[Relation<'_>],
        observer: &dyn Observer,
        finish: impl FnOnce(Answer<'_>) -> Result<T>,
    ) -> Result<T> {
        let options = self.options();
        let (first, rest) = (relations[0], &relations[1..]);
        // Inputs that do not fit together are refused before anything is read.
        for &right in rest {
            relation::set(operation, rule, first, right, options)?;
        }
        let mut between: Option<Index> = None;
        for &right in &rest[..rest.len() - 1] {
            let left = between.as_ref().map_or(first, Relation::from_index);
            let answer = relation::set(operation, rule, left, right, options)?.watched(observer);
            let made = self.between(answer, observer)?;
            between = Some(made);
        }
        let left = between.as_ref().map_or(first, Relation::from_index);
        finish(relation::set(operation, rule, left, rest[rest.len() - 1], options)?.watched(observer))
    }

    /// Makes a file in memory of an answer.
    fn between(&self, answer: Answer<'_>, observer: &dyn Observer) -> Result<Index> {
        let options = BuildOptions { memory_bytes: u64::MAX / 4, ..BuildOptions::default() };
        let bytes = answer.to_bytes(&options, observer)?;
        Ok(Index::from_bytes(bytes).map_err(pleach::Error::from)?)
    }
}

/// Makes record batches of an answer.
fn batches(
    mut answer: Answer<'_>,
    begin: impl FnOnce(&SchemaRef),
    each: &mut impl FnMut(RecordBatch) -> bool,
) -> Result<()> {
    let unfit = |error: arrow_schema::ArrowError| BatchError::Damaged {
        path: "the answer".to_owned(),
        what: error.to_string(),
    };
    let columns = Columns::new(answer.schema()).map_err(unfit)?;
    begin(columns.schema());
    while let Some(chunk) = answer.next_chunk()? {
        if !each(columns.batch(&chunk).map_err(unfit)?) {
            return Ok(());
        }
    }
    Ok(())
}

fn refused(error: &ExprError) -> BatchError {
    BatchError::Expression(format!("{}: {}: {}", error.what, error.location(), error.advice()))
}
