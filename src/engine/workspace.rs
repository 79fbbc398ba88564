//! Searching the workspaces that are configured.

use super::{Engine, Error};
pub use crate::workspace::{Dates, Error as WorkspaceError, Found, Line, Question};
use crate::{model::Stop, workspace};

impl Engine {
    /// Returns the lines of the workspaces that match, or of the folder `named` inside one.
    pub fn search_workspace(
        &self,
        question: &Question,
        named: Option<&str>,
        stop: &Stop,
    ) -> Result<Found, Error> {
        let folders = workspace::folders(&self.config.workspaces, named)?;
        Ok(workspace::search(&folders, question, stop)?)
    }
}
