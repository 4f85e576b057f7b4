//! A broker's admin port, for as long as one call or one program needs it.
//!
//! Law: nothing is connected before the first request is ready, so that wrong arguments are told
//! first; then one connection serves them all.

use crate::channel;
use crate::error::OpError;
use danube_wire::proto::control::control_client::ControlClient;
use danube_wire::proto::danube_admin::broker_admin_client::BrokerAdminClient;
use danube_wire::proto::danube_admin::cluster_admin_client::ClusterAdminClient;
use danube_wire::proto::danube_admin::namespace_admin_client::NamespaceAdminClient;
use danube_wire::proto::danube_admin::topic_admin_client::TopicAdminClient;
use danube_wire::proto::danube_schema::schema_registry_client::SchemaRegistryClient;
use tokio::sync::OnceCell;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

/// Bytes of one answer: a peek at messages of any size.
const ANSWER_LEN_MAX: usize = 64 << 20;

/// In which a broker reads who asks.
const ACTOR_HEADER: &str = "x-danube-actor";

/// A broker's admin port.
#[derive(Debug)]
pub struct Session {
    endpoint: String,
    /// Who uses it, for the histories that brokers keep.
    actor: Option<MetadataValue<Ascii>>,
    channel: OnceCell<Channel>,
}

impl Session {
    /// The admin port at `endpoint`; nothing is connected yet.
    pub fn new(endpoint: String) -> Session {
        Session { endpoint, actor: None, channel: OnceCell::new() }
    }

    /// Says who uses it; a name that no header can carry is left out.
    #[must_use]
    pub fn acting_as(self, name: &str) -> Session {
        Session { actor: name.parse().ok().filter(|_| !name.is_empty()), ..self }
    }

    /// A request that says who asks.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(actor) = &self.actor {
            request.metadata_mut().insert(ACTOR_HEADER, actor.clone());
        }
        request
    }

    async fn channel(&self) -> Result<Channel, OpError> {
        self.channel.get_or_try_init(|| channel::connect(&self.endpoint)).await.cloned()
    }

    /// The product's own operators' service.
    ///
    /// # Errors
    /// As [`channel::connect`]; so for the others.
    pub async fn control(&self) -> Result<ControlClient<Channel>, OpError> {
        Ok(ControlClient::new(self.channel().await?).max_decoding_message_size(ANSWER_LEN_MAX))
    }

    /// The compatible topic service.
    pub async fn topics(&self) -> Result<TopicAdminClient<Channel>, OpError> {
        Ok(TopicAdminClient::new(self.channel().await?))
    }

    /// The compatible schema registry.
    pub async fn schemas(&self) -> Result<SchemaRegistryClient<Channel>, OpError> {
        let client = SchemaRegistryClient::new(self.channel().await?);
        Ok(client.max_decoding_message_size(ANSWER_LEN_MAX))
    }

    /// The compatible namespace service.
    pub async fn namespaces(&self) -> Result<NamespaceAdminClient<Channel>, OpError> {
        Ok(NamespaceAdminClient::new(self.channel().await?))
    }

    /// The compatible cluster service.
    pub async fn cluster(&self) -> Result<ClusterAdminClient<Channel>, OpError> {
        Ok(ClusterAdminClient::new(self.channel().await?))
    }

    /// The compatible broker service.
    pub async fn brokers(&self) -> Result<BrokerAdminClient<Channel>, OpError> {
        Ok(BrokerAdminClient::new(self.channel().await?))
    }
}
