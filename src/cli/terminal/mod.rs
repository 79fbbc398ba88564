//! What the user sees on a terminal: output and notes, the lines of hits, progress and the pager.

pub(super) mod echo;
pub(super) mod hit_groups;
pub(super) mod hit_lines;
pub(super) mod interrupt;
pub(super) mod layout;
pub(super) mod markdown;
pub(super) mod notes;
pub(super) mod output;
pub(super) mod pager;
pub(super) mod progress;
pub(super) mod waiting;
pub(super) mod wrap;
