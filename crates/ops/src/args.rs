//! Arguments that several operations share.

use crate::error::OpError;
use danube_core::catalog::DEFAULT_NAMESPACE;
use danube_core::{NamespaceName, SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};

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
