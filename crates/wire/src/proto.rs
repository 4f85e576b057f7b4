//! Generated messages, clients and servers, one module per package.
//!
//! Their documentation is in the `.proto` files. The server of `ConsumerService` differs from a
//! plain tonic one in a single place: its `ReceiveMessages` streams
//! [`Delivery`](crate::delivery::Delivery) instead of a decoded message.

/// Package `danube`: what the official clients speak.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod danube {
    include!(concat!(env!("OUT_DIR"), "/danube.rs"));
    // The ordinary client and our own server of `ConsumerService`.
    include!(concat!(env!("OUT_DIR"), "/consumer_service/danube.rs"));
    include!(concat!(env!("OUT_DIR"), "/consumer_service/danube.ConsumerService.rs"));
}

/// Package `danube_schema`: the schema registry.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod danube_schema {
    include!(concat!(env!("OUT_DIR"), "/danube_schema.rs"));
}

/// Package `danube_admin`: what the official admin tools speak.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod danube_admin {
    include!(concat!(env!("OUT_DIR"), "/danube_admin.rs"));
}

/// Package `danube.control.v1`: our own additions for operators.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod control {
    include!(concat!(env!("OUT_DIR"), "/danube.control.v1.rs"));
}

/// Package `danube.stream.v1`: the native streams, as any client of it would generate them.
/// [`stream`](crate::stream) has the same with messages left encoded.
#[allow(missing_docs, clippy::all, clippy::unwrap_used, rust_2018_idioms)]
pub mod stream {
    include!(concat!(env!("OUT_DIR"), "/danube.stream.v1.rs"));
}
