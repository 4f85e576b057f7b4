//! The protocol's server: tools, prompts and resources, for one client.

use super::audit::{Audit, Line};
use super::{prompts, resources};
use danube_ops::tools::{Level, Tool, tools};
use danube_ops::{Effect, OpError, Session};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    Tool as Listed, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock};

/// The server of one client.
pub(super) struct Server {
    endpoint: String,
    level: Level,
    audit: Arc<Audit>,
    /// Made at the first call, when it is known who the client is.
    session: OnceLock<Session>,
}

impl Server {
    pub(super) fn new(endpoint: String, level: Level, audit: Arc<Audit>) -> Server {
        Server { endpoint, level, audit, session: OnceLock::new() }
    }

    /// The way to the broker, whose histories say which client asked.
    fn session(&self, client: &str) -> &Session {
        self.session
            .get_or_init(|| Session::new(self.endpoint.clone()).acting_as(&format!("mcp {client}")))
    }

    fn listed(&self, tool: Tool) -> Listed {
        let effect = tool.op.spec.effect;
        let annotations = ToolAnnotations::from_raw(
            None,
            Some(effect == Effect::Read),
            Some(effect == Effect::Destructive),
            Some(effect == Effect::Read),
            Some(false),
        );
        Listed::new(tool.name(), tool.op.about(), Arc::new(tool.input_schema(self.level)))
            .with_raw_output_schema(Arc::new(tool.op.output_schema()))
            .with_annotations(annotations)
    }

    async fn call(
        &self,
        client: &str,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<CallToolResult, ErrorData> {
        let found = tools(self.level).find(|tool| tool.name() == name);
        let Some(tool) = found else {
            self.note(client, name, &arguments, "refused", Some("no such tool is offered"))?;
            let message = format!("no tool `{name}` is offered; {}", self.level.about());
            return Err(ErrorData::invalid_params(message, None));
        };
        self.note(client, name, &arguments, "asked", None)?;
        let call = match tool.call(self.level, arguments.clone()) {
            Ok(call) => call,
            Err(error) => {
                self.note(client, name, &arguments, "refused", Some(&error.message))?;
                return Ok(failed(&error));
            }
        };
        match call.run(self.session(client)).await {
            Ok(reply) => {
                let no = reply.refused.clone().or_else(|| reply.partial.clone());
                let outcome = if no.is_some() { "failed" } else { "ok" };
                self.note(client, name, &arguments, outcome, no.as_deref())?;
                let data = tool.op.structured(reply.data);
                let mut text = data.to_string();
                for note in reply.notes.iter().chain(&no) {
                    text += &format!("\nnote: {note}");
                }
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(data);
                Ok(result)
            }
            Err(error) => {
                self.note(client, name, &arguments, "failed", Some(&error.message))?;
                Ok(failed(&error))
            }
        }
    }

    fn note(
        &self,
        client: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        outcome: &str,
        why: Option<&str>,
    ) -> Result<(), ErrorData> {
        self.audit.write(&Line { client, tool, arguments, outcome, why }).map_err(|error| {
            ErrorData::internal_error(format!("the audit line cannot be written: {error}"), None)
        })
    }
}

fn failed(error: &OpError) -> CallToolResult {
    let help = error.help.as_ref().map(|help| format!("\nhelp: {help}")).unwrap_or_default();
    CallToolResult::error(vec![ContentBlock::text(format!("{}{help}", error.message))])
}

/// The client as it calls itself.
fn client(context: &RequestContext<RoleServer>) -> String {
    let known = context.peer.peer_info().map(|info| info.client_info.name.clone());
    known.unwrap_or_else(|| "unknown".to_owned())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("danube", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(format!(
            "Operates a Danube message broker: topics, subscriptions, schemas, manifests. {} Topic \
             names look like /namespace/topic. Every call is written to an audit log.",
            self.level.about()
        ));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let listed = tools(self.level).map(|tool| self.listed(tool)).collect();
        Ok(ListToolsResult::with_all_items(listed))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let result = self.call(&client(&context), &request.name, arguments).await?;
        Ok(result.into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request.name, &request.arguments.unwrap_or_default()).map(Into::into)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.session(&client(&context));
        Ok(ListResourcesResult::with_all_items(resources::list(session).await?))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session(&client(&context));
        resources::read(session, &request.uri).await.map(Into::into)
    }
}
