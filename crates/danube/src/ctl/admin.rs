//! The services of the admin port, and the arguments that several verbs share.

use crate::channel;
use crate::failure::Failure;
use danube_core::{NamespaceName, SubscriptionName, TopicName};
use danube_wire::proto::control::control_client::ControlClient;
use danube_wire::proto::danube_admin::broker_admin_client::BrokerAdminClient;
use danube_wire::proto::danube_admin::namespace_admin_client::NamespaceAdminClient;
use danube_wire::proto::danube_admin::topic_admin_client::TopicAdminClient;
use tonic::transport::Channel;

/// A broker's admin port.
#[derive(Debug)]
pub struct Admin {
    endpoint: String,
}

impl Admin {
    /// An admin port at `endpoint`; nothing is connected yet.
    pub fn new(endpoint: String) -> Admin {
        Admin { endpoint }
    }

    async fn connect(&self) -> Result<Channel, Failure> {
        channel::connect(&self.endpoint).await
    }

    /// The product's own operators' service.
    ///
    /// # Errors
    /// As [`channel::connect`]; so for the other three.
    pub async fn control(&self) -> Result<ControlClient<Channel>, Failure> {
        Ok(ControlClient::new(self.connect().await?))
    }

    /// The compatible topic service.
    pub async fn topics(&self) -> Result<TopicAdminClient<Channel>, Failure> {
        Ok(TopicAdminClient::new(self.connect().await?))
    }

    /// The compatible namespace service.
    pub async fn namespaces(&self) -> Result<NamespaceAdminClient<Channel>, Failure> {
        Ok(NamespaceAdminClient::new(self.connect().await?))
    }

    /// The compatible broker service.
    pub async fn brokers(&self) -> Result<BrokerAdminClient<Channel>, Failure> {
        Ok(BrokerAdminClient::new(self.connect().await?))
    }
}

/// The topic a verb is about.
#[derive(Debug, clap::Args)]
pub struct TopicArgument {
    /// The topic: `/namespace/topic`, `namespace/topic` or, in --namespace, `topic`
    #[arg(value_name = "TOPIC")]
    topic: String,
    /// The namespace of a topic that names none
    #[arg(long, value_name = "NAMESPACE", default_value = "default")]
    namespace: String,
}

impl TopicArgument {
    /// The whole name.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::failure::Exit::Usage), saying what is wrong with it.
    pub fn name(&self) -> Result<TopicName, Failure> {
        let namespace = NamespaceName::parse(&self.namespace)?;
        let whole = match (self.topic.starts_with('/'), self.topic.contains('/')) {
            (true, _) => self.topic.clone(),
            (false, true) => format!("/{}", self.topic),
            (false, false) => format!("/{namespace}/{}", self.topic),
        };
        Ok(TopicName::parse(&whole)?)
    }
}

/// The subscription a verb is about.
#[derive(Debug, clap::Args)]
pub struct SubscriptionArgument {
    #[command(flatten)]
    topic: TopicArgument,
    /// The subscription
    #[arg(short, long, value_name = "NAME")]
    subscription: String,
}

impl SubscriptionArgument {
    /// Topic and subscription.
    ///
    /// # Errors
    /// [`Exit::Usage`](crate::failure::Exit::Usage), saying what is wrong with them.
    pub fn names(&self) -> Result<(TopicName, SubscriptionName), Failure> {
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
            let argument = TopicArgument { topic: topic.into(), namespace: namespace.into() };
            assert_eq!(argument.name().expect(topic).as_str(), whole);
        }
        let argument = TopicArgument { topic: "a/b/c".into(), namespace: "default".into() };
        assert!(argument.name().is_err());
    }
}
