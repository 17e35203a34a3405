//! Descriptors that a command passes to another one.

use haft::{Reversible, json};

use crate::fixture::tasks::TaskFixture;

/// Receives a descriptor and writes to it when the test says so.
const RECEIVER: &str = "python3 -c \"
import os, socket, time
s = socket.socket(socket.AF_UNIX); s.bind('sock'); s.listen()
print('up', flush=True)
c, _ = s.accept()
_, fds, _, _ = socket.recv_fds(c, 1, 1)
c.send(b'x')
while not os.path.exists('go'): time.sleep(0.01)
os.write(fds[0], b'late')
\"";
/// Opens a file, passes the descriptor and ends.
const SENDER: &str = "python3 -c \"
import os, socket, sys
os.makedirs(os.path.dirname(sys.argv[1]), exist_ok=True)
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
c = socket.socket(socket.AF_UNIX); c.connect('sock')
socket.send_fds(c, [b'x'], [fd])
c.recv(1)
\"";

#[tokio::test]
async fn e23_file_that_another_command_can_still_write_is_on_the_receipt() {
    for name in ["./existing", "new_directory/f"] {
        let fixture = TaskFixture::new();
        fixture.cli.write("existing", "old");
        fixture.cli.write("other", "old");
        let task = fixture.start(RECEIVER).await;
        fixture.until(&task, 3).await;
        let plain = fixture.haft.call("Bash", json!({"command": "echo new > other"})).await;
        assert_eq!(plain.receipt.reversible, Reversible::Yes);
        let sent = fixture.haft.call("Bash", json!({"command": format!("{SENDER} {name}")})).await;
        assert!(!sent.output.is_error(), "{}", sent.output.as_text());
        let why = sent.receipt.reversible.why().unwrap_or_default();
        assert!(why.contains("open for writing in another command"), "{name}: {:?}", sent.receipt.reversible);
        fixture.cli.write("go", "");
        fixture.end(&task).await;
        let plain = fixture.haft.call("Bash", json!({"command": "echo newer > other"})).await;
        assert_eq!(plain.receipt.reversible, Reversible::Yes);
    }
}
