//! The tools over the Model Context Protocol, on standard input and output.
//!
//! Invariant: nothing but protocol messages goes to standard output.
//! Invariant: work runs off the async threads, and ends when its call is cancelled.

mod lines;

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
        CustomResult, ErrorCode, Implementation, ListToolsResult, PaginatedRequestParams,
        ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
    },
    service::{RequestContext, ServerInitializeError, serve_server},
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::Engine,
    model::Stop,
    tools::{self, Effect, Options},
};

/// Calls that run at one time; more wait their turn.
const CALLS: usize = 8;

/// How long calls that were told to end may take to do so before the program ends without them.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// What can go wrong with serving.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The threads could not be started.
    #[error("cannot start the server: {0}")]
    Start(#[source] io::Error),
    /// The client said something that no session begins with.
    #[error("the client began no session: {0}")]
    Session(String),
}

/// Serves tools on standard input and output until the input ends.
pub fn serve(
    engine: Arc<Engine>,
    options: Options,
    tools: Vec<&'static tools::Tool>,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(CALLS)
        .enable_time()
        .build()
        .map_err(Error::Start)?;
    let permits = Arc::new(Semaphore::new(CALLS));
    let over = CancellationToken::new();
    let (transport, writer) = lines::standard(over.clone());
    let server = Server { engine, options: Arc::new(options), tools, permits, over };
    let outcome = runtime.block_on(async {
        match serve_server(server, transport).await {
            Ok(running) => {
                if let Err(error) = running.waiting().await {
                    log(&format!("the session broke: {error}"));
                }
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(Error::Session(error.to_string())),
        }
    });
    runtime.shutdown_timeout(LAST_WORDS);
    writer.finish(LAST_WORDS);
    outcome
}

struct Server {
    engine: Arc<Engine>,
    options: Arc<Options>,
    tools: Vec<&'static tools::Tool>,
    permits: Arc<Semaphore>,
    /// Cancelled when the client is gone and calls have had their time.
    over: CancellationToken,
}

impl Server {
    fn tool(&self, name: &str) -> Option<&'static tools::Tool> {
        self.tools.iter().copied().find(|tool| tool.name == name)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("verbatim", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.iter().map(|tool| described(tool)).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tool(name).map(described)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tool(&request.name) else {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
            let message = format!("Unknown tool: {} (there is {})", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let stop = Stop::never();
        // The token is cancelled with the call, with the session, and when the answer is sent.
        let (asked, cancelled, over) = (stop.clone(), context.ct.clone(), self.over.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = cancelled.cancelled() => {}
                () = over.cancelled() => {}
            }
            asked.request();
        });
        let permit = self.permits.clone().acquire_owned().await;
        let (engine, options) = (self.engine.clone(), self.options.clone());
        let arguments = request.arguments.unwrap_or_default();
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            (tool.run)(&engine, &options, &arguments, &stop)
        });
        let answer = work.await.map_err(|error| {
            log(&format!("{}: {error}", tool.name));
            ErrorData::internal_error(format!("{} failed; see the server's log", tool.name), None)
        })?;
        if let Some(message) = &answer.log {
            log(message);
        }
        let content = vec![ContentBlock::text(answer.text)];
        let mut result = if answer.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = answer.structured;
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A known method comes here too when its parameters have another shape than the protocol's.
        Err(match request.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "tools/call takes {\"name\": string, \"arguments\": object}",
                None,
            ),
            "tools/list" | "ping" | "initialize" => ErrorData::invalid_params(
                format!("{}: the parameters are not those of the protocol", request.method),
                None,
            ),
            method => ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                format!("there is no method {method:?}"),
                None,
            ),
        })
    }
}

fn described(tool: &'static tools::Tool) -> Tool {
    let hints = ToolAnnotations::with_title(tool.title)
        .read_only(tool.effect == Effect::Reads)
        .destructive(tool.effect == Effect::Removes)
        .idempotent(tool.effect != Effect::Adds)
        .open_world(false);
    let mut described = Tool::new(tool.name, tool.description, Arc::new((tool.schema)()))
        .with_title(tool.title)
        .with_annotations(hints);
    described.output_schema = tool.output_schema.map(|schema| Arc::new(schema()));
    described
}

/// Writes a line to the log, which is standard error; a log that is gone is not missed.
fn log(message: &str) {
    let _ = writeln!(io::stderr(), "verbatim: {message}");
}
