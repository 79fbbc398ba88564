//! The paths of the routes.

pub(super) const MCP: &str = "/mcp";
pub(super) const SEARCH_PATH: &str = "/search";
pub(super) const METRICS: &str = "/metrics";
pub(super) const HEALTH: &str = "/healthz";
