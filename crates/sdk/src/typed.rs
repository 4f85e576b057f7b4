//! Producers and consumers of values instead of bytes: JSON, by serde.
//!
//! A message that names a schema is read as that version of it says; the schema is fetched once.
//!
//! Law: a payload that is no value of the type is still a message that can be acked or nacked.

use crate::consumer::{Ack, Consumer, Message};
use crate::error::Error;
use crate::message::{MessageId, NewMessage};
use crate::producer::{Producer, Receipt};
use crate::schema::{Schema, read_json};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Publishes values of `T`; made with [`Producer::typed`].
///
/// ```no_run
/// # async fn example(producer: danube_sdk::Producer) -> Result<(), danube_sdk::Error> {
/// let prices = producer.typed::<Vec<f64>>();
/// prices.send(&vec![9.5, 12.0]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TypedProducer<T> {
    producer: Producer,
    of: PhantomData<fn(&T)>,
}

impl<T: Serialize> TypedProducer<T> {
    pub(crate) fn new(producer: Producer) -> TypedProducer<T> {
        TypedProducer { producer, of: PhantomData }
    }

    /// Publishes one value and waits as [`Producer::send`] does.
    ///
    /// # Errors
    /// The value cannot be written as JSON; otherwise as [`Producer::send`].
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedProducer<f64>) -> Result<(), danube_sdk::Error> {
    /// prices.send(&9.5).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn send(&self, value: &T) -> Result<MessageId, Error> {
        self.enqueue(value, |message| message).await?.await
    }

    /// Puts a value into the next batch, as [`Producer::enqueue`] does; `dress` adds a key or
    /// attributes.
    ///
    /// # Errors
    /// The value cannot be written as JSON; otherwise as [`Producer::enqueue`].
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedProducer<f64>) -> Result<(), danube_sdk::Error> {
    /// let receipt = prices.enqueue(&9.5, |message| message.key("tea")).await?;
    /// # let _ = receipt;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn enqueue(
        &self,
        value: &T,
        dress: impl FnOnce(NewMessage) -> NewMessage,
    ) -> Result<Receipt, Error> {
        let payload = serde_json::to_vec(value).map_err(|error| Error::Payload {
            topic: self.producer.topic().to_owned(),
            doing: "written",
            why: error.to_string(),
        })?;
        self.producer.enqueue(dress(NewMessage::new(payload))).await
    }

    /// The producer of bytes beneath.
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedProducer<f64>) -> Result<(), danube_sdk::Error> {
    /// prices.untyped().flush().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn untyped(&self) -> &Producer {
        &self.producer
    }

    /// As [`Producer::close`].
    ///
    /// # Errors
    /// As [`Producer::close`].
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedProducer<f64>) -> Result<(), danube_sdk::Error> {
    /// prices.close().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn close(self) -> Result<(), Error> {
        self.producer.close().await
    }
}

/// A received message, and the value that its payload is.
///
/// ```no_run
/// # async fn example(prices: danube_sdk::TypedConsumer<f64>) -> Result<(), danube_sdk::Error> {
/// let message = prices.next().await?;
/// println!("{} at offset {}", message.value()?, message.message().offset());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TypedMessage<T> {
    message: Message,
    schema: Option<Arc<Schema>>,
    value: Result<T, Error>,
}

impl<T> TypedMessage<T> {
    /// The value.
    ///
    /// # Errors
    /// [`Error::Payload`], when the payload is none; why the schema could not be fetched.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::TypedMessage<f64>) -> Result<(), danube_sdk::Error> {
    /// println!("{}", message.value()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn value(&self) -> Result<&T, Error> {
        self.value.as_ref().map_err(Clone::clone)
    }

    /// The value, leaving the message.
    ///
    /// # Errors
    /// As [`value`](Self::value).
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::TypedMessage<String>) -> Result<(), danube_sdk::Error> {
    /// let text: String = message.into_value()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_value(self) -> Result<T, Error> {
        self.value
    }

    /// The schema that it names, if it does and the registry has it.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::TypedMessage<f64>) {
    /// println!("{:?}", message.schema().map(|schema| schema.subject()));
    /// # }
    /// ```
    pub fn schema(&self) -> Option<&Schema> {
        self.schema.as_deref()
    }

    /// The message: offset, attributes, bytes and so on.
    ///
    /// ```no_run
    /// # fn example(message: danube_sdk::TypedMessage<f64>) {
    /// println!("attempt {}", message.message().attempt());
    /// # }
    /// ```
    pub fn message(&self) -> &Message {
        &self.message
    }
}

/// Receives values of `T`; made with [`Consumer::typed`].
///
/// ```no_run
/// # async fn example(consumer: danube_sdk::Consumer) -> Result<(), danube_sdk::Error> {
/// let prices = consumer.typed::<Vec<f64>>();
/// let message = prices.next().await?;
/// prices.ack(&message).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TypedConsumer<T> {
    consumer: Consumer,
    of: PhantomData<fn() -> T>,
}

impl<T: DeserializeOwned> TypedConsumer<T> {
    pub(crate) fn new(consumer: Consumer) -> TypedConsumer<T> {
        TypedConsumer { consumer, of: PhantomData }
    }

    /// Waits for the next message as [`Consumer::next`] does, and reads its payload.
    ///
    /// # Errors
    /// As [`Consumer::next`]; a payload that cannot be read is an error of
    /// [`TypedMessage::value`] only, since the message has to be settled even so.
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedConsumer<f64>) -> Result<(), danube_sdk::Error> {
    /// use std::time::Duration;
    ///
    /// let message = prices.next().await?;
    /// drop(match message.value() {
    ///     Ok(_price) => prices.ack(&message),
    ///     Err(error) => prices.nack(&message, Duration::ZERO, error.to_string()),
    /// });
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&self) -> Result<TypedMessage<T>, Error> {
        let message = self.consumer.next().await?;
        let (schema, value) = match self.consumer.schema_of(&message).await {
            Err(error) => (None, Err(error)),
            Ok(schema) => {
                let read = match &schema {
                    Some(schema) => schema.read(&message.payload()),
                    None => read_json(&message.payload()),
                };
                let topic = message.topic().to_owned();
                (schema, read.map_err(|why| Error::Payload { topic, doing: "read", why }))
            }
        };
        Ok(TypedMessage { message, schema, value })
    }

    /// As [`Consumer::ack`].
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedConsumer<f64>) -> Result<(), danube_sdk::Error> {
    /// let message = prices.next().await?;
    /// prices.ack(&message).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn ack(&self, message: &TypedMessage<T>) -> Ack {
        self.consumer.ack(&message.message)
    }

    /// As [`Consumer::nack`].
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedConsumer<f64>) -> Result<(), danube_sdk::Error> {
    /// let message = prices.next().await?;
    /// prices.nack(&message, std::time::Duration::ZERO, "not now").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn nack(
        &self,
        message: &TypedMessage<T>,
        delay: Duration,
        reason: impl Into<String>,
    ) -> Ack {
        self.consumer.nack(&message.message, delay, reason)
    }

    /// The consumer of bytes beneath.
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedConsumer<f64>) {
    /// println!("receiving from {}", prices.untyped().topic());
    /// # }
    /// ```
    pub fn untyped(&self) -> &Consumer {
        &self.consumer
    }

    /// As [`Consumer::close`].
    ///
    /// ```no_run
    /// # async fn example(prices: danube_sdk::TypedConsumer<f64>) {
    /// prices.close().await;
    /// # }
    /// ```
    pub async fn close(self) {
        self.consumer.close().await;
    }
}
