//! The feed, and the live texts beside it.

use haft_ledger::{EventLog, Expected, FeedItem, GcPolicy, LiveSource};
use haft_tool::{LiveOutput, json};

use crate::fixture::Fixture;

#[test]
fn an_entry_of_a_later_version_does_not_hide_the_others() {
    let fixture = Fixture::new();
    let start = fixture.ledger.feed_position().unwrap();
    fixture.tamper("INSERT INTO feed (kind, session, item) VALUES ('moon', 's', 1)");
    fixture.ledger.append(&fixture.session, Expected::Any, &json!({})).unwrap();
    let entries = fixture.ledger.feed_after(start, 10).unwrap().unwrap();
    let items: Vec<_> = entries.iter().map(|entry| entry.item.clone()).collect();
    assert_eq!(items, [FeedItem::Other, FeedItem::Event(1)]);
    assert_eq!(entries[1].position, fixture.ledger.feed_position().unwrap());
}

#[test]
fn a_running_call_that_cannot_be_read_does_not_hide_the_others() {
    let fixture = Fixture::new();
    let (damaged, id) = fixture.running();
    let (record, other) = fixture.running();
    fixture.tamper(&format!("UPDATE receipts SET body = '{{' WHERE id = {id}"));
    let running = fixture.ledger.running_calls().unwrap();
    assert_eq!(running.iter().map(|call| call.receipt.id).collect::<Vec<_>>(), [other]);
    assert_eq!(fixture.ledger.running_call_ids().unwrap(), [id, other]);
    assert_eq!(fixture.ledger.damaged_calls(), [id]);
    drop((damaged, record));
}

#[test]
fn live_texts_are_kept_for_as_long_as_their_call_or_run_however_silent_it_is() {
    let fixture = Fixture::new();
    let ledger = &fixture.ledger;
    let (record, id) = fixture.running();
    let driver = ledger.drive_run(&fixture.session).unwrap();
    let sources = [LiveSource::Call(id), LiveSource::Run(&fixture.session), LiveSource::Call(id + 1)];
    let mut writers = sources.map(|source| ledger.begin_live_text(source).unwrap());
    for writer in &mut writers {
        writer.push(0, b"silent since").unwrap();
    }
    let long_ago = std::time::SystemTime::UNIX_EPOCH;
    for file in std::fs::read_dir(fixture.home().join("live")).unwrap() {
        let file = std::fs::File::options().write(true).open(file.unwrap().path()).unwrap();
        file.set_modified(long_ago).unwrap();
    }
    ledger.gc(&GcPolicy::default()).unwrap();
    let kept = sources.map(|source| ledger.live_text(source, 0).is_some());
    assert_eq!(kept, [true, true, false]);
    drop((record, driver));
    fixture.kill_running();
}
