//! The paths of the routes.

pub(super) const MCP: &str = "/mcp";
/// The same with a slash at its end, as some programs write it.
pub(super) const MCP_SLASH: &str = "/mcp/";
pub(super) const SEARCH_PATH: &str = "/search";
pub(super) const HEALTH: &str = "/healthz";
