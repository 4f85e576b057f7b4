//! A client: where the brokers are, and what everything opened through it shares.

use crate::cluster::{Cluster, Purpose};
use crate::connection::Options;
use crate::consumer::ConsumerBuilder;
use crate::error::Error;
use crate::producer::ProducerBuilder;
use crate::schema::Schema;
use std::sync::Arc;
use std::time::Duration;

/// The way to a broker, or to a cluster of them. Cheap to clone; all clones share connections.
///
/// ```no_run
/// # async fn example() -> Result<(), danube_sdk::Error> {
/// use danube_sdk::Client;
///
/// let client = Client::connect("http://127.0.0.1:6650").await?;
/// let producer = client.producer("/default/orders").open().await?;
/// producer.send("hello", None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    cluster: Arc<Cluster>,
}

/// Time limits of a client; made with [`Client::builder`].
///
/// ```no_run
/// # fn example() -> Result<(), danube_sdk::Error> {
/// use danube_sdk::Client;
/// use std::time::Duration;
///
/// let client = Client::builder("http://127.0.0.1:6650")
///     .call_timeout(Duration::from_secs(10))
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing happens before `build`"]
pub struct ClientBuilder {
    url: String,
    options: Options,
}

impl Client {
    /// Connects to a broker with the default time limits; `http://` may be left out.
    ///
    /// # Errors
    /// [`Error::Address`] and [`Error::Unreachable`].
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), danube_sdk::Error> {
    /// let client = danube_sdk::Client::connect("127.0.0.1:6650").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn connect(url: impl Into<String>) -> Result<Client, Error> {
        let client = Client::builder(url).build()?;
        client.cluster.channel(client.cluster.url(), Purpose::Publish).await?;
        Ok(client)
    }

    /// One version of a schema, from the registry or from memory; the latest when none is named.
    ///
    /// # Errors
    /// What the registry said, or that it cannot be reached.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// let schema = client.schema(17, 3).await?;
    /// println!("{}", String::from_utf8_lossy(schema.definition()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schema(
        &self,
        id: u64,
        version: impl Into<Option<u32>>,
    ) -> Result<Arc<Schema>, Error> {
        match version.into() {
            Some(version) => self.cluster.schema(id, version).await,
            None => self.cluster.latest_schema(id).await,
        }
    }

    /// A version of a schema subject, the latest when none is named, from the registry.
    ///
    /// # Errors
    /// What the registry said, or that it cannot be reached.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// let orders = client.schema_of_subject("orders", None).await?;
    /// println!("the latest version is {}", orders.version());
    /// # Ok(())
    /// # }
    /// ```
    pub async fn schema_of_subject(
        &self,
        subject: &str,
        version: Option<u32>,
    ) -> Result<Arc<Schema>, Error> {
        self.cluster.schema_of_subject(subject, version).await
    }

    /// A connection with the settings of this library, for measuring what it costs by itself.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    #[doc(hidden)]
    pub async fn raw_channel(url: &str) -> Result<tonic::transport::Channel, Error> {
        Options::default().connect(url).await
    }

    /// Begins a client with time limits of its own.
    ///
    /// ```no_run
    /// # fn example() -> Result<(), danube_sdk::Error> {
    /// let client = danube_sdk::Client::builder("127.0.0.1:6650").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder { url: url.into(), options: Options::default() }
    }

    /// Begins a producer on `topic`, such as `/default/orders`.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// let producer = client.producer("/default/orders").name("till-4").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn producer(&self, topic: &str) -> ProducerBuilder {
        ProducerBuilder::new(Arc::clone(&self.cluster), topic)
    }

    /// Begins a consumer of `subscription` on `topic`.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// let consumer = client.consumer("/default/orders", "billing").subscribe().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn consumer(&self, topic: &str, subscription: &str) -> ConsumerBuilder {
        ConsumerBuilder::new(Arc::clone(&self.cluster), topic, subscription)
    }

    /// The partitions of `topic`, by index; the topic itself when it is plain, nothing when no
    /// broker knows it.
    ///
    /// # Errors
    /// What the broker said, or that it cannot be reached.
    ///
    /// ```no_run
    /// # async fn example(client: danube_sdk::Client) -> Result<(), danube_sdk::Error> {
    /// for partition in client.partitions("/default/orders").await? {
    ///     println!("{partition}");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn partitions(&self, topic: &str) -> Result<Vec<String>, Error> {
        self.cluster.partitions(topic).await
    }
}

impl ClientBuilder {
    /// How long making a connection may take (default 5 s).
    pub fn connect_timeout(mut self, limit: Duration) -> ClientBuilder {
        self.options.connect_timeout = limit;
        self
    }

    /// How long any call may take, and a message from its publish to its answer (default 30 s).
    /// Broken connections are mended meanwhile.
    pub fn call_timeout(mut self, limit: Duration) -> ClientBuilder {
        self.options.call_timeout = limit;
        self
    }

    /// How often an idle connection is probed (default 20 s).
    pub fn keep_alive(mut self, interval: Duration) -> ClientBuilder {
        self.options.keep_alive = interval;
        self
    }

    /// The pause after the first failure in a row, and the longest that doubling makes of it
    /// (defaults 50 ms and 2 s).
    pub fn retry_pauses(mut self, first: Duration, max: Duration) -> ClientBuilder {
        (self.options.pause_first, self.options.pause_max) = (first, max);
        self
    }

    /// Makes the client; it connects when something needs a connection.
    ///
    /// # Errors
    /// [`Error::Address`].
    ///
    /// ```no_run
    /// # fn example() -> Result<(), danube_sdk::Error> {
    /// let client = danube_sdk::Client::builder("127.0.0.1:6650").build()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<Client, Error> {
        self.options.endpoint(&self.url)?;
        Ok(Client { cluster: Arc::new(Cluster::new(self.url, self.options)) })
    }
}
