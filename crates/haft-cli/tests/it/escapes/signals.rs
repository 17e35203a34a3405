//! Attempts on other processes: signals, priorities, limits, tracing.

use crate::escapes::attempt::{Escape, nothing_escapes, py, sh, they_are_real};

// Signals to every process are of a kind that only the process outside reacts to; without a sandbox they
// are not sent, because those outside of other tests would notice them, too.
pub(crate) const TABLE: &[Escape] = &[
    sh("kill another", "$BIN/calls kill $VICTIM 9"),
    sh("end another", "$BIN/calls kill $VICTIM 15"),
    sh("stop another", "$BIN/calls kill $VICTIM 19; $BIN/calls kill $VICTIM 18"),
    sh("wake another", "$BIN/calls kill $VICTIM 18"),
    sh("signal another's thread", "$BIN/calls tgkill $VICTIM 10; $BIN/calls tkill $VICTIM 10"),
    sh("queue a signal", "$BIN/calls sigqueue $VICTIM 10"),
    sh("queue a signal for a thread", "$BIN/calls tgsigqueue $VICTIM 10"),
    sh("signal by a process's descriptor", "$BIN/calls pidfd_send_signal $VICTIM 9"),
    sh("signal by the owner of events", "$BIN/calls setown $VICTIM 10"),
    sh("signal everybody", "python3 -c 'import os,signal; signal.signal(signal.SIGURG, lambda *a: 0); os.kill(-1, signal.SIGURG)'").untried(),
    sh("signal another's group", "g=$(cut -d' ' -f5 /proc/$VICTIM/stat); $BIN/calls kill -${g:-$VICTIM} 23").untried(),
    sh("kill Haft's reaper", "kill -9 $REAPER && echo ESCAPED; kill -19 $REAPER && echo ESCAPED; kill -15 $REAPER").untried(),
    sh("kill Haft", "kill -9 $HAFT && echo ESCAPED; kill -19 $HAFT && echo ESCAPED; kill -2 $HAFT && echo ESCAPED; kill -15 $HAFT").untried(),
    sh("kill Haft's threads", "for t in $(ls /proc/$HAFT/task); do $BIN/calls tgkill $HAFT 9; $BIN/calls tkill $t 9; $BIN/calls kill $t 15; done").untried(),
    sh("kill Haft's group", "g=$(cut -d' ' -f5 /proc/$HAFT/stat); trap '' TERM; kill -TERM -- -$g; g=$(cut -d' ' -f5 /proc/$REAPER/stat); kill -TERM -- -$g; true").untried(),
    sh("kill Haft by its descriptor", "$BIN/calls pidfd_send_signal $HAFT 9; $BIN/calls pidfd_send_signal $REAPER 9; $BIN/calls sigqueue $HAFT 9; $BIN/calls setown $HAFT 9").untried().stays_in_session(),
    sh("kill the first process", "$BIN/calls kill 1 23; $BIN/calls pidfd_send_signal 1 23").untried().stays_in_session(),
    sh("another's priority", "$BIN/calls setpriority $VICTIM"),
    sh("everybody's priority", "$BIN/calls setpriority-user").untried(),
    sh("another's turn at the disk", "$BIN/calls ioprio_set $VICTIM"),
    sh("another's limits", "$BIN/calls prlimit $VICTIM"),
    sh("another's processors", "$BIN/calls affinity $VICTIM"),
    sh("another's schedule", "$BIN/calls scheduler $VICTIM"),
    sh("Haft's priority and limits", "for p in $HAFT $REAPER; do for w in setpriority prlimit affinity scheduler ioprio_set; do $BIN/calls $w $p; done; done").untried(),
    sh("trace another", "$BIN/calls attach $VICTIM $ADDRESS"),
    sh("seize another", "$BIN/calls seize $VICTIM $ADDRESS"),
    sh("trace Haft", "for p in $HAFT $REAPER 1; do $BIN/calls attach $p 0; $BIN/calls seize $p 0; done").untried(),
    sh("write another's memory", "$BIN/calls writev $VICTIM $ADDRESS"),
    sh("read another's memory", "$BIN/calls readv $VICTIM $HIDDEN"),
    sh("take another's descriptor", "$BIN/calls getfd $VICTIM 9"),
    sh("take Haft's descriptors", "for p in $HAFT $REAPER; do for fd in 0 3 4 5 6 7 8 9 10 11 12; do $BIN/calls getfd $p $fd; done; done").untried(),
    sh("debug another", "gdb -p $VICTIM -batch -ex 'call (int)kill((int)getpid(), 10)' 2>&1 | tail -1; strace -p $VICTIM -o s & p=$!; kill $p 2>/dev/null; wait; $BIN/calls seize $VICTIM $ADDRESS"),
    py("trace a child that traces another", "pid = os.fork()\n\
        if pid == 0: os.execv(os.environ['BIN']+'/calls', ['calls', 'seize', str(VICTIM), os.environ['ADDRESS']])\n\
        os.waitpid(pid, 0)"),
];

#[test]
fn no_other_process_is_touched() {
    nothing_escapes("signals", TABLE);
}

#[test]
fn they_would_be_without_a_sandbox() {
    they_are_real("signals", TABLE);
}
