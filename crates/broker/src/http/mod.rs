//! HTTP for probes and Prometheus: `/healthz`, `/readyz`, `/metrics`.
//!
//! Alive means that the process answers; ready means that it serves clients. Law: nothing here
//! changes anything, and nothing here waits for a topic.

use crate::context::Context;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::Arc;

/// Content type of what `/metrics` answers.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(crate) fn router(context: Arc<Context>) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(context)
}

async fn ready(State(context): State<Arc<Context>>) -> impl IntoResponse {
    if context.topics.is_stopping() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    }
    (StatusCode::OK, "ready\n")
}

async fn metrics(State(context): State<Arc<Context>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPEN_METRICS)], context.scrape())
}
