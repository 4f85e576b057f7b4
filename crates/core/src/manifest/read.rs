//! YAML, and JSON as a part of it, into trees of nodes.
//!
//! Law: hostile text costs at most what its length costs: aliases, which can multiply, are refused,
//! and so is nesting deeper than any manifest has.

use super::Problem;
use super::node::{Mark, Node, NodeValue};
use saphyr_parser::{Event, Parser, ScalarStyle, Span, StrInput};
use std::sync::Arc;

/// Deepest nesting.
const DEPTH_MAX: usize = 32;

/// The documents of a file.
///
/// # Errors
/// [`Problem`] with the line, for text that is not YAML and for what manifests do not use of it.
pub fn read(file: &str, text: &str) -> Result<Vec<Node>, Problem> {
    let file: Arc<str> = file.into();
    let mut reader = Reader { parser: Parser::new_from_str(text), file };
    let mut documents = Vec::new();
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => return Ok(documents),
            Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
            event => documents.push(reader.node(event, span, 0)?),
        }
    }
}

struct Reader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    file: Arc<str>,
}

impl<'a> Reader<'a> {
    fn mark(&self, line: usize) -> Mark {
        Mark { file: Arc::clone(&self.file), line: u32::try_from(line).unwrap_or(u32::MAX) }
    }

    fn problem(&self, line: usize, why: impl Into<String>) -> Problem {
        Problem { at: Some(self.mark(line)), entry: String::new(), why: why.into() }
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(next)) => Ok(next),
            Some(Err(error)) => {
                let why = format!("this is not YAML: {}", error.info());
                Err(self.problem(error.marker().line(), why))
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Problem> {
        let line = span.start.line();
        let at = self.mark(line);
        if depth > DEPTH_MAX {
            return Err(self.problem(line, format!("nested deeper than {DEPTH_MAX} levels")));
        }
        let tagged = |tag: bool| match tag {
            true => Err(self.problem(line, "tags such as `!name` mean nothing here; leave it out")),
            false => Ok(()),
        };
        let value = match event {
            Event::Scalar(text, style, _, tag) => {
                tagged(tag.is_some())?;
                match style {
                    ScalarStyle::Plain if matches!(&*text, "" | "~" | "null" | "Null" | "NULL") => {
                        NodeValue::Null
                    }
                    ScalarStyle::Plain => NodeValue::Plain(text.into_owned()),
                    _ => NodeValue::Text(text.into_owned()),
                }
            }
            Event::SequenceStart(_, tag) => {
                tagged(tag.is_some())?;
                let mut nodes = Vec::new();
                loop {
                    match self.next()? {
                        (Event::SequenceEnd, _) => break NodeValue::List(nodes),
                        (event, span) => nodes.push(self.node(event, span, depth + 1)?),
                    }
                }
            }
            Event::MappingStart(_, tag) => {
                tagged(tag.is_some())?;
                let mut pairs = Vec::new();
                loop {
                    let key = match self.next()? {
                        (Event::MappingEnd, _) => break NodeValue::Map(pairs),
                        (event, span) => self.node(event, span, depth + 1)?,
                    };
                    let (event, span) = self.next()?;
                    pairs.push((key, self.node(event, span, depth + 1)?));
                }
            }
            Event::Alias(_) => {
                return Err(self.problem(line, "aliases are not taken; write the value out"));
            }
            _ => return Err(self.problem(line, "the document ends in the middle of a value")),
        };
        Ok(Node { at, value })
    }
}
