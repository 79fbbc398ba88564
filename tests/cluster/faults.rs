//! Nodes that are killed: answers stay right, or are errors.

use std::thread;

use verbatim_search::{
    engine::{Rendered, SearchPlan},
    model::{Hit, Request, Stop},
};

use crate::{
    database::{Cell, Content, Database, Message, Schema},
    import, new_name,
    nodes::{Killing, Nodes, nodes},
    reader,
};

const MESSAGES: usize = 1_500;

fn database(word: &str) -> Database {
    let message = |n: usize| Message {
        conversation: n % 3,
        role: "user".into(),
        content: Content::Stored(Cell::from(format!("the {word} {n}").as_str())),
        time: n % 13,
        position: Some(n as i64),
    };
    let messages: Vec<Message> = (0..MESSAGES).map(message).collect();
    Database::of(Schema::Typed, &["a".into(), "b".into(), "c".into()], &messages)
}

/// Returns how many messages have a text; `None` for an error.
fn found(nodes: &Nodes, index: &str, text: &str) -> Option<usize> {
    let request = Request { text: text.to_owned(), ..Request::default() };
    let mut count = 0;
    let mut sink = Rendered::new(
        |_: Hit<'_>| Some(()),
        |()| {
            count += 1;
            std::ops::ControlFlow::Continue(())
        },
    );
    let outcome = reader(nodes, index).search(&request, &Stop::never(), &mut sink);
    outcome.is_ok_and(|plan| matches!(plan, SearchPlan::ByCluster { .. })).then_some(count)
}

#[test]
#[ignore = "nodes that come back can take minutes"]
fn killed_nodes_lose_nothing() {
    let Some(nodes) = nodes().filter(|nodes| nodes.is_ours()) else { return };
    let _killing = Killing::begin();
    let index = new_name();
    let (first, second) = (database("thing"), database("other"));
    import(nodes, &first.path(), &index);
    nodes.wait("wait_for_status=green");
    // The node is killed during a search; then a search runs without the node.
    thread::scope(|scope| {
        scope.spawn(|| nodes.kill(2));
        for _ in 0..20 {
            let count = found(nodes, &index, "thing");
            assert!(count.is_none_or(|count| count == MESSAGES), "{count:?}");
        }
    });
    assert_eq!(found(nodes, &index, "thing"), Some(MESSAGES));
    nodes.revive(2);
    nodes.wait("wait_for_nodes=3&wait_for_status=green");
    // The node is killed during an import.
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(std::time::Duration::from_millis(400));
            nodes.kill(1);
        });
        import(nodes, &second.path(), &index);
    });
    assert_eq!(found(nodes, &index, "other"), Some(MESSAGES));
    nodes.revive(1);
    nodes.wait("wait_for_nodes=3&wait_for_status=green");
    assert_eq!(found(nodes, &index, "other"), Some(MESSAGES));
    nodes.remove(&index);
}
