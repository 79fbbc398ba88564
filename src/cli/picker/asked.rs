//! What the picker is asked: the typed text with its filters, and whether it is a question.

use std::sync::Arc;

use crate::cli::commands::filters::in_working_folder;
use crate::cli::settings::environment::Environment;
use verbatim_answer::{filters::FilterError, typed::TypedQuery};
use verbatim_base::call::Call;
use verbatim_engine::{Engine, Mode};

/// What the picker searches, and how it shows times.
pub(super) struct PickerContext {
    pub(super) engine: Arc<Engine>,
    pub(super) environment: Environment,
}

/// The typed text, and the way in which it is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TypedText {
    pub(super) typed: String,
    /// Whether the text is a question, and the messages that answer it best are shown.
    pub(super) is_ranked: bool,
}

impl TypedText {
    /// Returns the way in which the text is searched.
    pub(super) fn mode_name(&self) -> &'static str {
        if self.is_ranked { "best by words and meaning" } else { "exact" }
    }

    /// Reads the text with its filters.
    pub(super) fn read(
        &self,
        context: &PickerContext,
        call: &Call,
    ) -> Result<TypedQuery, FilterError> {
        let PickerContext { engine, environment } = context;
        let mode = self.is_ranked.then_some(Mode::Both);
        TypedQuery::read(&self.typed, mode, engine, environment.clock(), call, in_working_folder)
    }
}
