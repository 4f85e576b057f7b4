//! Producers and consumers of values instead of bytes, by serde.
//!
//! A producer that was opened with a schema writes values by it, and a message that names a schema
//! is read and checked by that version of it; each is fetched once. Without a schema values are
//! JSON.
//!
//! Law: a payload that is no value of the type is still a message that can be acked or nacked.

use crate::consumer::{Ack, Consumer, Message};
use crate::error::Error;
use crate::message::{MessageId, NewMessage};
use crate::producer::{Producer, Receipt};
use crate::schema::{self, Schema};
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
    /// The value does not fit the schema; otherwise as [`Producer::send`].
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
    /// The value does not fit the schema; otherwise as [`Producer::enqueue`].
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
        let schema = self.producer.schema().await?;
        let payload = schema::write(self.producer.topic(), schema.as_deref(), value)?;
        let message = dress(NewMessage::new(payload));
        // The one it was written by, also if the producer has come to know a newer one meanwhile.
        let message = match &schema {
            Some(schema) => message.of_schema(schema.id(), schema.version()),
            None => message,
        };
        self.producer.enqueue(message).await
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
                let read = schema::read(message.topic(), schema.as_deref(), &message.payload());
                (schema, read)
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
