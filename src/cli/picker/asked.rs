//! What the picker is asked: the typed text with its filters, and whether it is a question.

use std::sync::Arc;

use crate::cli::settings::environment::Environment;
use verbatim_answer::asked::{Asked, TypedFilter, typed_filters};
use verbatim_answer::filters::FilterError;
use verbatim_base::call::Call;
use verbatim_engine::{Engine, Mode, Scope};

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

/// What the typed text means.
pub(super) struct TypedSearch {
    pub(super) asked: Asked,
    pub(super) scope: Scope,
    /// The filters as they were typed.
    pub(super) filters: Vec<String>,
    /// The reason why a filter is searched as text.
    pub(super) problem: Option<String>,
}

impl TypedText {
    /// Returns the way in which the text is searched.
    pub(super) fn mode_name(&self) -> &'static str {
        if self.is_ranked { "best by words and meaning" } else { "exact" }
    }

    /// Resolves the filters. A filter that names nothing known is text.
    pub(super) fn resolve(
        &self,
        context: &PickerContext,
        call: &Call,
    ) -> Result<TypedSearch, FilterError> {
        let filters = typed_filters(&self.typed);
        let all: Vec<&TypedFilter<'_>> = filters.iter().collect();
        let error = match self.with(&all, context, call) {
            Err(error) if !all.is_empty() => error,
            resolved => return resolved,
        };
        let mut known = all;
        known.retain(|filter| self.with(&[filter], context, call).is_ok());
        let resolved = self.with(&known, context, call);
        let resolved = resolved.or_else(|_| self.with(&[], context, call))?;
        let error = error.to_string();
        let error = error.lines().next().unwrap_or_default();
        Ok(TypedSearch { problem: Some(format!("{error}; searched as text")), ..resolved })
    }

    fn with(
        &self,
        filters: &[&TypedFilter<'_>],
        context: &PickerContext,
        call: &Call,
    ) -> Result<TypedSearch, FilterError> {
        let PickerContext { engine, environment } = context;
        let mut asked = Asked::from_typed(&self.typed, filters);
        asked.mode = self.is_ranked.then_some(Mode::Both);
        let (scope, _) = asked.filters.scope(engine, environment.clock(), call)?;
        let filters = filters.iter().map(|filter| self.typed[filter.place.clone()].to_owned());
        Ok(TypedSearch { asked, scope, filters: filters.collect(), problem: None })
    }
}
