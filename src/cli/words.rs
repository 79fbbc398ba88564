//! The words of a question.

pub(super) use crate::tools::words::{Words, quoted};
