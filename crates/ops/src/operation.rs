//! What an operation is, and how the list holds operations of different types.
//!
//! Law: everything that a face needs of an operation is in its [`Spec`], its arguments' doc
//! comments and its [`Output`]; no face knows an operation by name.

use crate::error::OpError;
use crate::session::Session;
use clap::{ArgMatches, Command};
use schemars::{JsonSchema, SchemaGenerator, generate::SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// What a caller must be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// See what there is.
    Lookup,
    /// Read messages.
    Consume,
    /// Make, change and remove topics and their subscriptions.
    ManageTopic,
    /// Make and remove namespaces.
    ManageNamespace,
    /// Register schemas, and say how topics validate.
    ManageSchema,
    /// See everything the brokers keep.
    ManageCluster,
}

/// What an operation may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Read,
    /// It adds or sets something.
    Write,
    /// It removes or moves data, or a place in it.
    Destructive,
}

/// What there is to say about an operation besides its arguments.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Noun and verb, such as `topics create`.
    pub path: (&'static str, &'static str),
    /// What a caller must be allowed to do.
    pub permission: Permission,
    /// What it may change.
    pub effect: Effect,
    /// Arguments of a call that makes sense, as typed after noun and verb.
    pub example: &'static str,
}

/// An administrative operation; the type is its arguments, whose doc comments are its help.
pub trait Operation: clap::Args + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// What it answers.
    type Output: Output;
    /// What there is to say about it.
    const SPEC: Spec;

    /// Does it.
    ///
    /// # Errors
    /// [`OpError`]: nothing was done, and why. What was done in part is an output that says so.
    fn run(self, session: &Session) -> impl Future<Output = Result<Self::Output, OpError>> + Send;
}

/// The result of an operation: a document by its `Serialize`, and a view for people.
pub trait Output: Serialize + JsonSchema + Send {
    /// The view for people, without a line end after the last line; empty when there is nothing.
    fn text(&self) -> String;

    /// What should be known besides, such as that there was more.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether it is a dry run that would have changed something.
    fn pending(&self) -> bool {
        false
    }

    /// What was not done, where the rest was.
    fn partial(&self) -> Option<String> {
        None
    }

    /// Why the answer is no, where somebody asked whether something may be.
    fn refused(&self) -> Option<String> {
        None
    }
}

/// The result of an operation of any type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The document.
    pub data: Value,
    /// The view for people.
    pub text: String,
    /// What should be known besides.
    pub notes: Vec<String>,
    /// What was not done, where the rest was.
    pub partial: Option<String>,
    /// Whether it was a dry run that would have changed something.
    pub pending: bool,
    /// Why the answer is no.
    pub refused: Option<String>,
}

impl Reply {
    fn of(output: &impl Output) -> Reply {
        let data = serde_json::to_value(output).expect("plain data with text keys is JSON");
        Reply {
            data,
            text: output.text(),
            notes: output.notes(),
            partial: output.partial(),
            pending: output.pending(),
            refused: output.refused(),
        }
    }
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Reply, OpError>> + Send + 'a>>;

trait Run: Send {
    fn run<'a>(self: Box<Self>, session: &'a Session) -> Running<'a>;
}

impl<O: Operation> Run for O {
    fn run<'a>(self: Box<Self>, session: &'a Session) -> Running<'a> {
        Box::pin(async move { Ok(Reply::of(&O::run(*self, session).await?)) })
    }
}

/// An operation with its arguments, ready to run.
pub struct Call {
    /// The operation.
    pub op: &'static Op,
    run: Box<dyn Run>,
}

impl Call {
    /// Runs it.
    ///
    /// # Errors
    /// As [`Operation::run`].
    pub async fn run(self, session: &Session) -> Result<Reply, OpError> {
        self.run.run(session).await
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("op", self.op).finish_non_exhaustive()
    }
}

/// An operation of any type, as the list holds it.
pub struct Op {
    /// What there is to say about it.
    pub spec: Spec,
    augment: fn(Command) -> Command,
    parse: fn(&ArgMatches) -> Result<Box<dyn Run>, clap::Error>,
    read: fn(Value) -> Result<Box<dyn Run>, serde_json::Error>,
    pub(crate) output: fn() -> Value,
}

impl Op {
    /// The entry of `O`.
    pub(crate) const fn of<O: Operation>() -> Op {
        Op {
            spec: O::SPEC,
            augment: O::augment_args,
            parse: |matches| Ok(Box::new(O::from_arg_matches(matches)?)),
            read: |arguments| Ok(Box::new(serde_json::from_value::<O>(arguments)?)),
            output: || {
                let settings = SchemaSettings::draft2020_12().for_serialize();
                SchemaGenerator::new(settings).into_root_schema_for::<O::Output>().to_value()
            },
        }
    }

    /// Its command line: the verb with its arguments and their help.
    pub fn command(&self) -> Command {
        (self.augment)(Command::new(self.spec.path.1))
    }

    /// A call from a command line that [`Op::command`] has parsed.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(&'static self, matches: &ArgMatches) -> Result<Call, clap::Error> {
        Ok(Call { op: self, run: (self.parse)(matches)? })
    }

    /// A call from a document of arguments, as a program sends it.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn read(&'static self, arguments: Value) -> Result<Call, OpError> {
        let (noun, verb) = self.spec.path;
        let run = (self.read)(arguments)
            .map_err(|error| OpError::usage(format!("arguments of `{noun} {verb}`: {error}")))?;
        Ok(Call { op: self, run })
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Op").field("spec", &self.spec).finish_non_exhaustive()
    }
}
