//! A document as a tree whose every node knows where it was written.

use std::fmt;
use std::sync::Arc;

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// The file, as the user called it.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Where.
    pub at: Mark,
    /// What.
    pub value: NodeValue,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeValue {
    /// Nothing, `null` or `~`.
    Null,
    /// A word or number without quotes, as it was written.
    Plain(String),
    /// Text in quotes or in a block.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// Keys and values, in the order in which they were written.
    Map(Vec<(Node, Node)>),
}

impl NodeValue {
    /// What it is, for sentences.
    pub fn kind(&self) -> &'static str {
        match self {
            NodeValue::Null => "nothing",
            NodeValue::Plain(_) => "a word",
            NodeValue::Text(_) => "a text",
            NodeValue::List(_) => "a list",
            NodeValue::Map(_) => "a map",
        }
    }
}
