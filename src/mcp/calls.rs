//! Calls of tools: off the async threads, ended when nobody waits, with signs of life while they last.

use std::time::Duration;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
        ProgressNotificationParam,
    },
    service::RequestContext,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::Server;
use crate::{
    engine::Engine,
    model::Stop,
    tools::{Answer, Options},
};

/// How long a call works before its client hears of it, and how often after.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

impl Server {
    /// Runs a tool for a client that asks for it.
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tool(&request.name) else {
            let known: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
            let message = format!("Unknown tool: {} (there is {})", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let begun = Instant::now();
        let arguments = request.arguments.unwrap_or_default();
        let work = self.work(&context, tool.name, move |engine, options, stop| {
            tool.call(engine, options, &arguments, stop)
        });
        let answer: Answer = signs_of_life(&context, tool.name, work).await?;
        if let Some(message) = &answer.log {
            self.report(&context, message).await;
        }
        let took = format!("{}: {} ms", tool.name, begun.elapsed().as_millis());
        self.mention(&context, &took).await;
        let content = vec![ContentBlock::text(answer.text)];
        let mut result = if answer.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = answer.structured;
        Ok(result.into())
    }

    /// Does work for a request off the async threads; it is asked to stop when the request is
    /// cancelled, when the client is gone and when the answer is sent.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        name: &str,
        work: impl FnOnce(&Engine, &Options, &Stop) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let stop = Stop::never();
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
        let work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&engine, &options, &stop)
        });
        match work.await {
            Ok(done) => Ok(done),
            Err(error) => {
                self.report(context, &format!("{name}: {error}")).await;
                let message = format!("{name} failed; see the server's log");
                Err(ErrorData::internal_error(message, None))
            }
        }
    }
}

/// Waits for work, and tells a client that asked for progress each second that it goes on.
async fn signs_of_life<T>(
    context: &RequestContext<RoleServer>,
    name: &str,
    work: impl Future<Output = T>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return work.await };
    let mut work = std::pin::pin!(work);
    let mut ticks = interval_at(Instant::now() + SIGN_OF_LIFE, SIGN_OF_LIFE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seconds = 0_u32;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            _ = ticks.tick() => {
                seconds += 1;
                let message = format!("{name}: at work for {seconds} s");
                let note = ProgressNotificationParam::new(token.clone(), f64::from(seconds))
                    .with_message(message);
                // A client that does not hear it still gets the answer.
                let _ = context.peer.notify_progress(note).await;
            }
        }
    }
}
