//! The brokers behind one service address: where a topic is served, and the connections there.
//!
//! A lookup that fails is no error: the broker that was asked may well make the topic. Where the
//! answer says `proxy`, every call names the broker it is meant for in a header.
//!
//! Law: one Publish stream to each broker carries all producers of a client.

use crate::connection::Options;
use crate::error::Error;
use crate::producer::Link;
use crate::schema;
use danube_wire::proto::danube as proto;
use parking_lot::Mutex;
use proto::discovery_client::DiscoveryClient;
use proto::topic_lookup_response::LookupType;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

/// Names the broker a call is meant for, where something stands between.
const BROKER_HEADER: &str = "x-danube-broker-url";

/// What a connection is used for. Deliveries have their own, so that they and publishes do not
/// wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Purpose {
    /// Publishing and everything small.
    Publish,
    /// Receiving.
    Consume,
}

/// The brokers, shared by a client and everything that it opened.
#[derive(Debug)]
pub(crate) struct Cluster {
    url: String,
    pub(crate) options: Options,
    channels: Mutex<HashMap<(String, Purpose), Channel>>,
    links: Mutex<HashMap<Route, Arc<Link>>>,
    pub(crate) schemas: schema::Known,
}

/// The broker that serves one topic partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// Where to connect.
    pub(crate) connect_url: String,
    /// Who it is.
    pub(crate) broker_url: String,
    proxied: bool,
}

impl Cluster {
    pub(crate) fn new(url: String, options: Options) -> Cluster {
        let (channels, links) = (Mutex::default(), Mutex::default());
        Cluster { url, options, channels, links, schemas: schema::Known::default() }
    }

    /// The service address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The connection to `url` for `purpose`, made when there is none yet. It mends itself.
    pub(crate) async fn channel(&self, url: &str, purpose: Purpose) -> Result<Channel, Error> {
        let key = (url.to_owned(), purpose);
        if let Some(channel) = self.channels.lock().get(&key) {
            return Ok(channel.clone());
        }
        let channel = self.options.connect(url).await?;
        // Two may have connected at once; the second connection is let go.
        Ok(self.channels.lock().entry(key).or_insert(channel).clone())
    }

    /// The partitions of `topic`, by index; the topic itself when it is plain, nothing when no
    /// broker knows it.
    pub(crate) async fn partitions(&self, topic: &str) -> Result<Vec<String>, Error> {
        let channel = self.channel(&self.url, Purpose::Publish).await?;
        let request = proto::TopicLookupRequest { request_id: 0, topic: topic.into() };
        let mut discovery = DiscoveryClient::new(channel);
        let answer = self.options.call(discovery.topic_partitions(request)).await;
        answer.map(|answer| answer.partitions).map_err(|status| {
            Error::from_status(&self.url, &format!("lookup of topic `{topic}`"), &status)
        })
    }

    /// [`partitions`](Self::partitions), asked again while nobody answers and a call may last.
    pub(crate) async fn partitions_persistently(&self, topic: &str) -> Result<Vec<String>, Error> {
        let give_up_at = Instant::now() + self.options.call_timeout;
        let mut failures = 0;
        loop {
            failures += 1;
            let pause = self.options.pause(failures);
            match self.partitions(topic).await {
                Err(why) if why.is_retryable() && Instant::now() + pause < give_up_at => {
                    tracing::debug!(error = %why, topic, "partitions are asked for again");
                    tokio::time::sleep(pause).await;
                }
                answer => return answer,
            }
        }
    }

    /// The broker that serves `topic`, or else the service address.
    pub(crate) async fn route(&self, topic: &str) -> Result<Route, Error> {
        let channel = self.channel(&self.url, Purpose::Publish).await?;
        let request = proto::TopicLookupRequest { request_id: 0, topic: topic.into() };
        let mut discovery = DiscoveryClient::new(channel);
        match self.options.call(discovery.topic_lookup(request)).await {
            Ok(found)
                if !found.connect_url.is_empty() && found.response_type() != LookupType::Failed =>
            {
                Ok(Route {
                    connect_url: found.connect_url,
                    broker_url: found.broker_url,
                    proxied: found.proxy,
                })
            }
            _ => Ok(Route {
                connect_url: self.url.clone(),
                broker_url: self.url.clone(),
                proxied: false,
            }),
        }
    }

    /// The Publish stream to the broker of `route`, begun when there is none.
    pub(crate) fn link(self: &Arc<Cluster>, route: &Route) -> Arc<Link> {
        let mut links = self.links.lock();
        if let Some(link) = links.get(route)
            && !link.is_ended()
        {
            return Arc::clone(link);
        }
        links.retain(|_, link| !link.is_ended());
        let link = Link::start(self, route.clone());
        links.insert(route.clone(), Arc::clone(&link));
        link
    }
}

impl Route {
    /// A request to the broker of this route.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let header = self.proxied.then(|| self.broker_url.parse().ok()).flatten();
        if let Some(header) = header {
            let header: MetadataValue<Ascii> = header;
            request.metadata_mut().insert(BROKER_HEADER, header);
        }
        request
    }
}
