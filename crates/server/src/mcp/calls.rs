//! Tool calls. They run off the async threads, stop when the client no longer waits, and report progress.

use std::{sync::Arc, time::Duration};

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock,
    ProgressNotificationParam,
};
use rmcp::{ErrorData, RoleServer, service::RequestContext};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::session::ClientSession;
use crate::tools::{Options, REQUEST_LOCK_WAIT};
use verbatim_base::call::{Call, StopOnDrop};
use verbatim_engine::Engine;
use verbatim_text::snippet;

/// The time before the first progress notification, and between two notifications.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

impl ClientSession {
    pub(super) async fn call(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = self.tools(Some(&context));
        let Some(tool) = tools.iter().copied().find(|tool| tool.name == request.name) else {
            let known: Vec<&str> = tools.iter().map(|tool| tool.name).collect();
            let name = snippet::echo(&request.name);
            let message = format!("Unknown tool: {name} (there is {})", known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let start = Instant::now();
        let arguments = Arc::new(request.arguments.unwrap_or_default());
        let work = async {
            let mut permit = None;
            loop {
                let arguments = Arc::clone(&arguments);
                let may_scan = permit.is_some();
                // The answer is `None` if the call needs a scan, and scans are not allowed.
                let answer = self.work(&context, tool.name, move |engine, options, call| {
                    if may_scan {
                        Some(tool.call(engine, options, &arguments, call))
                    } else {
                        tool.call_by_index(engine, options, &arguments, call)
                    }
                });
                if let Some(answer) = answer.await? {
                    return Ok::<_, ErrorData>(answer);
                }
                // A call that waits for this permit holds no permit that other calls need.
                permit = Some(self.shared.scans.acquire().await);
            }
        };
        let answer = with_progress(&context, tool.name, work).await?;
        if let Some(message) = &answer.log {
            self.log.report(&context, message).await;
        }
        let took = format!("{}: {} ms", tool.name, start.elapsed().as_millis());
        self.log.debug(&context, &took).await;
        let content = vec![ContentBlock::text(answer.text)];
        let mut result = if answer.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        result.structured_content = answer.structured;
        Ok(result.into())
    }

    /// Runs work for a request off the async threads. The work must stop when the session is over, or
    /// when rmcp cancels the request's token: after the client's cancellation, or after the answer.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        name: &str,
        work: impl FnOnce(&Engine, &Options, &Call) -> T + Send + 'static,
    ) -> Result<T, ErrorData> {
        let call = Call::default().waiting_for_locks(REQUEST_LOCK_WAIT);
        // If this future is dropped, the client no longer waits, and the work must stop.
        let abandoned = StopOnDrop(call.stop.clone());
        let shared = self.shared.clone();
        let permit = shared.permits.clone().acquire_owned().await;
        let mut work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work(&shared.engine, &shared.options, &call)
        });
        let done = tokio::select! {
            biased;
            done = &mut work => Some(done),
            () = context.ct.cancelled() => None,
            () = self.is_over.cancelled() => None,
        };
        let done = match done {
            Some(done) => done,
            None => {
                drop(abandoned);
                work.await
            }
        };
        match done {
            Ok(done) => Ok(done),
            Err(error) => {
                self.log.report(context, &format!("{name}: {error}")).await;
                let message = format!("{name} failed; see the server's log");
                Err(ErrorData::internal_error(message, None))
            }
        }
    }
}

/// Waits for work. Sends a progress notification each second if the client asked for progress.
async fn with_progress<T>(
    context: &RequestContext<RoleServer>,
    name: &str,
    work: impl Future<Output = T>,
) -> T {
    let Some(token) = context.meta.get_progress_token() else { return work.await };
    let mut work = std::pin::pin!(work);
    let mut ticks = interval_at(Instant::now() + PROGRESS_INTERVAL, PROGRESS_INTERVAL);
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
                // If the notification is lost, the client still gets its answer.
                tokio::select! {
                    biased;
                    done = &mut work => return done,
                    _ = context.peer.notify_progress(note) => {}
                }
            }
        }
    }
}
