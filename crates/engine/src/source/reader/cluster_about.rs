//! Reads descriptions from the list of conversations in a cluster.

use super::catalogue::Origins;
use crate::source::kind::SourceKind;
use crate::source::scope::{About, Scope};
use verbatim_base::model::Origin;
use verbatim_chats::db::Outline;
#[cfg(feature = "cluster")]
use verbatim_cluster::{ClusterConversation, View};

pub(crate) const KIND: SourceKind = SourceKind::Export;

/// Returns the places of the conversations that are in a scope, latest activity first.
pub(crate) fn within(view: &View, scope: &Scope) -> Vec<usize> {
    let mut places: Vec<usize> = (0..view.conversations().len()).collect();
    places.retain(|place| {
        let it = &view.conversations()[*place];
        scope.covers(it.begun, it.last)
            && scope.accepts_id(KIND, &it.stored.id)
            && (!scope.has_origin() || scope.accepts_origin(KIND, it.stored.origin.as_ref()))
            && (scope.roles.is_empty() || scope.roles.iter().any(|role| it.roles.contains(role)))
    });
    places
}

pub(crate) fn origins(view: &View) -> Origins {
    let all = view.conversations().iter();
    all.filter_map(|it| Some((it.stored.id.clone(), it.stored.origin.clone()?))).collect()
}

/// Returns the description of a conversation. As for exports in databases, it has no origin.
pub(crate) fn about(it: &ClusterConversation) -> About {
    let is_title_made = !it.made.is_empty();
    let outline = Outline {
        id: it.stored.id.clone(),
        title: if is_title_made { it.made.clone() } else { it.title.clone() },
        turns: u32::try_from(it.turns).unwrap_or(u32::MAX),
        begun: it.begun,
        last: it.last,
    };
    let summary = it.summary.clone();
    About { is_title_made, summary, ..About::of_outline(KIND, outline, Origin::default()) }
}
