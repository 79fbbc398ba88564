//! Every integration test in one binary: linking tantivy once is enough.

mod corpus;
mod open;
