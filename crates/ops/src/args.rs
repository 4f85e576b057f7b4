//! Arguments that several operations share.

use crate::error::OpError;
use danube_core::catalog::DEFAULT_NAMESPACE;
use danube_core::settings::Limit;
use danube_core::{NamespaceName, SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The topic a verb is about.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct TopicArg {
    /// The topic: `/namespace/topic`, `namespace/topic` or, in --namespace, `topic`
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// The namespace of a topic that names none
    #[arg(long, value_name = "NAMESPACE", default_value = DEFAULT_NAMESPACE)]
    #[serde(default = "default_namespace")]
    namespace: String,
}

impl TopicArg {
    /// The whole name.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), saying what is wrong with it.
    pub fn name(&self) -> Result<TopicName, OpError> {
        let namespace = NamespaceName::parse(&self.namespace)?;
        let whole = match (self.topic.starts_with('/'), self.topic.contains('/')) {
            (true, _) => self.topic.clone(),
            (false, true) => format!("/{}", self.topic),
            (false, false) => format!("/{namespace}/{}", self.topic),
        };
        Ok(TopicName::parse(&whole)?)
    }
}

/// The whole name of a topic that stands beside others, where no namespace is given.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage), saying what is wrong with it.
pub fn topic_name(text: &str) -> Result<TopicName, OpError> {
    TopicArg { topic: text.to_owned(), namespace: default_namespace() }.name()
}

fn default_namespace() -> String {
    DEFAULT_NAMESPACE.to_owned()
}

/// The subscription a verb is about.
#[derive(Debug, Clone, clap::Args, Serialize, Deserialize)]
pub struct SubscriptionArg {
    #[command(flatten)]
    #[serde(flatten)]
    topic: TopicArg,
    /// The subscription
    #[arg(short, long, value_name = "NAME")]
    subscription: String,
}

impl SubscriptionArg {
    /// Topic and subscription.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](crate::ErrorKind::Usage), saying what is wrong with them.
    pub fn names(&self) -> Result<(TopicName, SubscriptionName), OpError> {
        Ok((self.topic.name()?, SubscriptionName::parse(&self.subscription)?))
    }
}

/// `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pair {
    /// What is before the first `=`.
    pub key: String,
    /// What is behind it.
    pub value: String,
}

impl std::str::FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Pair, String> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Pair { key: key.to_owned(), value: value.to_owned() })
            }
            _ => Err("say what has which value, as KEY=VALUE".to_owned()),
        }
    }
}

impl TryFrom<String> for Pair {
    type Error = String;

    fn try_from(text: String) -> Result<Pair, String> {
        text.parse()
    }
}

impl From<Pair> for String {
    fn from(pair: Pair) -> String {
        format!("{}={}", pair.key, pair.value)
    }
}

/// Pairs by key.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage), naming a key that is there twice.
pub fn pairs(pairs: &[Pair]) -> Result<HashMap<String, String>, OpError> {
    let mut found = HashMap::new();
    for Pair { key, value } in pairs {
        if found.insert(key.clone(), value.clone()).is_some() {
            return Err(OpError::usage(format!("`{}` is given twice", key.escape_debug())));
        }
    }
    Ok(found)
}

/// Pairs as limits by name.
///
/// # Errors
/// [`ErrorKind::Usage`](crate::ErrorKind::Usage), naming what is no limit or no number.
pub fn limits(given: &[Pair]) -> Result<HashMap<String, u32>, OpError> {
    let limit = |(name, value): (String, String)| {
        let name = Limit::parse(&name)?.as_str().to_owned();
        let value = value.parse::<u32>().map_err(|_| {
            OpError::usage(format!(
                "limit {name}: `{}` is not a number from 0 to {}",
                value.escape_debug(),
                u32::MAX
            ))
        })?;
        Ok((name, value))
    };
    pairs(given)?.into_iter().map(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_may_be_named_in_three_ways() {
        for (topic, namespace, whole) in [
            ("/a/t", "default", "/a/t"),
            ("a/t", "default", "/a/t"),
            ("t", "default", "/default/t"),
            ("t", "/agents", "/agents/t"),
        ] {
            let argument = TopicArg { topic: topic.into(), namespace: namespace.into() };
            assert_eq!(argument.name().expect(topic).as_str(), whole);
        }
        let argument = TopicArg { topic: "a/b/c".into(), namespace: "default".into() };
        assert!(argument.name().is_err());
    }
}
