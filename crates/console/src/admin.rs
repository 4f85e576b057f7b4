//! How the pages ask the broker: an operation by its path, a document of arguments, an answer read
//! into what the page needs of it.
//!
//! Law: no request but through an operation, so whatever a page does can be typed as well.

use crate::problem::Problem;
use danube_ops::{OPS, Op, Reply, Session};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Noun and verb.
pub(crate) type OpPath = (&'static str, &'static str);

/// The broker's admin port.
#[derive(Debug)]
pub(crate) struct Admin {
    session: Session,
}

/// An answer, and the line that asks the same.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) data: T,
    pub(crate) line: String,
}

/// The operation of that path.
pub(crate) fn find(noun: &str, verb: &str) -> Option<&'static Op> {
    OPS.iter().find(|op| op.spec.path == (noun, verb))
}

/// An operation that the pages name.
pub(crate) fn known((noun, verb): OpPath) -> &'static Op {
    find(noun, verb).expect("a test holds the pages' operations against the list")
}

/// A document of arguments; what is null is left out.
pub(crate) fn arguments(document: Value) -> Map<String, Value> {
    let Value::Object(mut arguments) = document else { return Map::new() };
    arguments.retain(|_, value| !value.is_null());
    arguments
}

impl Admin {
    pub(crate) fn new(endpoint: String) -> Admin {
        Admin { session: Session::new(endpoint).acting_as("console") }
    }

    /// Runs an operation.
    ///
    /// # Errors
    /// Why nothing was done.
    pub(crate) async fn run(
        &self,
        op: &'static Op,
        arguments: Map<String, Value>,
    ) -> Result<Reply, Problem> {
        Ok(op.read(Value::Object(arguments))?.run(&self.session).await?)
    }

    /// Runs an operation that only reads, and takes of its answer what `T` has.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(crate) async fn read<T: DeserializeOwned>(
        &self,
        path: OpPath,
        document: Value,
    ) -> Result<Answer<T>, Problem> {
        let op = known(path);
        let arguments = arguments(document);
        let line = op.command_line(&arguments);
        let reply = self.run(op, arguments).await?;
        let data = serde_json::from_value(reply.data).map_err(|error| {
            Problem::internal(format!(
                "the answer of `{line}` is not as this page knows it: {error}"
            ))
            .next("this is a defect of the console; the line itself works in a shell")
        })?;
        Ok(Answer { data, line })
    }
}
