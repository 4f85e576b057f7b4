//! Client library of Danube: durable queues and streams.
//!
//! A [`Client`] opens [`Producer`]s and [`Consumer`]s. They speak the native streams
//! (`danube.stream.v1`), mend broken connections by themselves, follow a topic to another broker,
//! and tell about it with `tracing` events. What this crate leaves to others: administration
//! (`danube ctl`), and every decision about a message, which is the broker's.
//!
//! ```no_run
//! use danube_sdk::{Client, Position};
//!
//! # async fn example() -> Result<(), danube_sdk::Error> {
//! let client = Client::connect("http://127.0.0.1:6650").await?;
//!
//! let producer = client.producer("/default/orders").name("till-4").open().await?;
//! let id = producer.send("two teas", None).await?;
//! println!("stored as {id}");
//!
//! let consumer = client
//!     .consumer("/default/orders", "kitchen")
//!     .start(Position::Earliest)
//!     .subscribe()
//!     .await?;
//! let message = consumer.next().await?;
//! println!("{}", String::from_utf8_lossy(&message.payload()));
//! consumer.ack(&message).await?;
//! consumer.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What is promised
//!
//! - A message is stored when its [`Receipt`] (or [`Producer::send`]) says so, as durably as its
//!   topic promises, and once: what is sent again after a broken connection is recognised.
//! - Messages of one producer to one partition are stored in the order in which they were
//!   published.
//! - A message that the application never saw burns no attempt: its lease is kept while it waits,
//!   and given back when the consumer is closed.
//! - Every call ends within the time limits of its [`Client`], with an error that says what to do.
//!   Only [`Consumer::next`] waits for as long as it takes.
//!
//! Law: everything that waits in memory is bounded, by the windows of the broker for producers and
//! by the prefetch for consumers.

mod client;
mod cluster;
mod connection;
mod consumer;
mod error;
#[doc(hidden)]
pub mod measured;
mod message;
mod producer;
mod schema;
mod trace_context;
mod typed;

pub use client::{Client, ClientBuilder};
pub use consumer::{Ack, Consumer, ConsumerBuilder, Extension, Message, Position};
pub use danube_core::FaultKind;
pub use error::Error;
pub use message::{Attributes, MessageId, NewMessage};
pub use producer::{Producer, ProducerBuilder, Receipt, Receipts, SchemaChoice};
pub use schema::Schema;
pub use typed::{TypedConsumer, TypedMessage, TypedProducer};

/// The programs of the guide compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/clients/rust-sdk.md")]
struct Guide;
