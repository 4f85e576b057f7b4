//! Where a topic is served, and the connection to it.
//!
//! A lookup that fails is no error: the broker that was asked may well make the topic. Where the
//! answer says `proxy`, every call names the broker it is meant for in a header.

use crate::channel;
use crate::failure::Failure;
use danube_wire::proto::danube as proto;
use proto::discovery_client::DiscoveryClient;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// Names the broker a call is meant for, where something stands between.
const BROKER_HEADER: &str = "x-danube-broker-url";

/// The brokers behind one service address. Cheap to clone; all clones share connections.
#[derive(Debug, Clone)]
pub struct Cluster {
    service_url: Arc<str>,
    service: Channel,
    /// By the URL that was dialled.
    channels: Arc<Mutex<HashMap<String, Channel>>>,
}

/// The broker that serves one topic partition.
#[derive(Debug, Clone)]
pub struct Route {
    /// The connection to it.
    pub channel: Channel,
    /// Who it is, as messages name it.
    pub broker_url: String,
    header: Option<tonic::metadata::MetadataValue<tonic::metadata::Ascii>>,
}

impl Cluster {
    /// Connects to the service address.
    ///
    /// # Errors
    /// As [`channel::connect`].
    pub async fn connect(service_url: &str) -> Result<Cluster, Failure> {
        let service = channel::connect(service_url).await?;
        Ok(Cluster { service_url: service_url.into(), service, channels: Arc::default() })
    }

    /// The partitions of `topic`, by index; the topic itself when it is plain, nothing when no
    /// broker knows it.
    ///
    /// # Errors
    /// The status of the broker.
    pub async fn partitions(&self, topic: &str) -> Result<Vec<String>, Status> {
        let request = proto::TopicLookupRequest { request_id: 0, topic: topic.into() };
        let mut discovery = DiscoveryClient::new(self.service.clone());
        Ok(channel::call(discovery.topic_partitions(request)).await?.partitions)
    }

    /// The broker that serves `topic`, or else the service address.
    ///
    /// # Errors
    /// UNAVAILABLE when the broker named by the lookup cannot be reached.
    pub async fn route(&self, topic: &str) -> Result<Route, Status> {
        let request = proto::TopicLookupRequest { request_id: 0, topic: topic.into() };
        let mut discovery = DiscoveryClient::new(self.service.clone());
        let Ok(found) = channel::call(discovery.topic_lookup(request)).await else {
            return Ok(self.service_route());
        };
        if found.connect_url.is_empty()
            || found.response_type() == proto::topic_lookup_response::LookupType::Failed
        {
            return Ok(self.service_route());
        }
        let header = found.proxy.then(|| found.broker_url.parse().ok()).flatten();
        let channel = self.channel(&found.connect_url).await?;
        Ok(Route { channel, broker_url: found.broker_url, header })
    }

    fn service_route(&self) -> Route {
        let broker_url = self.service_url.to_string();
        Route { channel: self.service.clone(), broker_url, header: None }
    }

    async fn channel(&self, url: &str) -> Result<Channel, Status> {
        let mut channels = self.channels.lock().await;
        if let Some(channel) = channels.get(url) {
            return Ok(channel.clone());
        }
        let channel = match url == self.service_url.as_ref() {
            true => self.service.clone(),
            false => channel::connect(url).await.map_err(|failure| {
                Status::unavailable(format!("{}, where the lookup sent us", failure.message))
            })?,
        };
        channels.insert(url.to_owned(), channel.clone());
        Ok(channel)
    }
}

impl Route {
    /// A request to the broker of this route.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(header) = &self.header {
            request.metadata_mut().insert(BROKER_HEADER, header.clone());
        }
        request
    }
}
