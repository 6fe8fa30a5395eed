//! Another machine by `ssh`, played by a test server on loopback. The tests assert that programs
//! there end when they should, whichever side ends first.

mod lab;
mod memory;
mod server;

use fwdlab_bench::BenchError;
use fwdlab_bench::host::{Host, SshHost, SshSettings, facts};
use server::{PATIENCE, Server, free_port, long_time, naming, signal, sleeps, until};
use std::fs;
use std::time::{Duration, Instant};

/// Returns the error's text; it must be an environment error.
fn environment_error<T: std::fmt::Debug>(result: Result<T, BenchError>) -> String {
    match result {
        Err(error @ BenchError::Environment { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// Returns the error's text; it must be a program error.
fn program_error<T: std::fmt::Debug>(result: Result<T, BenchError>) -> String {
    match result {
        Err(error @ BenchError::Program { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn programs_get_their_arguments_and_input_untouched() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    assert_eq!(host.name(), "dut");
    let words =
        ["", "a b", "'\"\\", "!! !$", "$(exit 3)`x`", "~ * ?", "a\nb\n", "-n", "ü🦀", "\u{1b}"];
    let argv = [&["printf", "%s|"], words.as_slice()].concat();
    assert_eq!(host.run(&argv, "").expect("printf"), words.map(|word| format!("{word}|")).concat());
    // Longer than any pipe, without a final line end, with lines that look like commands to the
    // guard.
    let text = "i\nt\n!'\\ünix\n".repeat(50_000) + "end";
    assert_eq!(host.run(&["cat"], &text).expect("cat"), text);
    assert_eq!(host.run(&["cat"], "").expect("cat"), "");
    // Input that the program does not read must not block.
    assert_eq!(host.run(&["echo", "done"], &text).expect("echo"), "done\n");
    assert_eq!(host.run(&["sh", "-c", "echo $LC_ALL"], "").expect("sh"), "C\n");
    let error = host.run(&["-x"], "").expect_err("an option").to_string();
    assert!(error.contains("-x on dut"), "{error}");
    let facts = facts(&host).expect("facts");
    assert_eq!((facts.system.as_str(), facts.cpus > 0), ("Linux", true));
}

#[test]
fn one_shell_runs_commands_like_separate_sessions() {
    let Some(server) = Server::start("") else { return };
    let deadline = Duration::from_secs(6);
    let settings = SshSettings { one_shell: true, deadline, ..server.settings() };
    let host = SshHost::connect("dut", settings).expect("a connection");
    let run = |script: &str, input: &str| host.run(&["sh", "-c", script], input);
    let words = ["", "a b", "'\"\\", "!! !$", "$(exit 3)`x`", "~ * ?", "a\nb\n", "-n", "ü🦀"];
    let argv = [&["printf", "%s|"], words.as_slice()].concat();
    assert_eq!(host.run(&argv, "").expect("printf"), words.map(|word| format!("{word}|")).concat());
    for text in ["i\nt\n!'\\ünix\n", "no end", "\n\n", "", &"long\n".repeat(10_000)] {
        assert_eq!(host.run(&["cat"], text).expect("cat"), text);
        assert_eq!(host.run(&["echo", "unread"], text).expect("echo"), "unread\n");
    }
    // Commands are independent of each other, and each has its own errors.
    let shell = run("echo $PPID", "").expect("a shell");
    assert_eq!(run("echo said >&2; echo $PPID; cd /; exit 0", "").expect("the same"), shell);
    let error = program_error(run("echo out; echo line >&2; exit 3", ""));
    assert!(error.ends_with("exit status 3: line"), "{error}");
    assert!(program_error(run("echo out; exit 4", "")).ends_with("exit status 4: out"));
    assert!(program_error(host.run(&["no-such-program"], "")).ends_with("is not installed"));
    assert!(program_error(run("kill -KILL $$", "")).contains("exit status 137"));
    let missing = host.get("/no/such/file").expect_err("no file").to_string();
    assert!(missing.contains("No such file"), "{missing}");
    assert!(host.run(&["x\0"], "").expect_err("a NUL").to_string().contains("NUL"));
    assert_eq!(run("echo $PPID", "").expect("a shell"), shell, "one for all");
    // A hanging command is ended with its shell, and so is one that kills the shell. The next
    // command gets another shell.
    let time = long_time();
    let error = program_error(run(&format!("echo before >&2; sleep {time}"), ""));
    assert!(error.ends_with("killed after 6 s: before"), "{error}");
    assert!(until(PATIENCE, || naming(&time).is_empty()), "it goes on");
    let next = run("echo $PPID", "").expect("another");
    assert_ne!(next, shell);
    let error = environment_error(run(&format!("kill -KILL {}", next.trim()), ""));
    assert!(error.contains("(during `sh -c kill -KILL"), "{error}");
    assert_eq!(host.run(&["echo", "next"], "").expect("echo"), "next\n");
    assert_eq!(server.logins(), 1);
}

#[test]
fn failures_are_quoted_with_their_last_lines() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    let script = "for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; exit 3";
    let error = program_error(host.run(&["sh", "-c", script], ""));
    assert!(error.starts_with("sh -c for i in") && error.contains(" on dut failed: "), "{error}");
    assert!(error.ends_with("exit status 3: line 3; line 4; line 5; line 6; line 7"), "{error}");
    // Without errors, the last output.
    let error = program_error(host.run(&["sh", "-c", "echo out; exit 1"], ""));
    assert!(error.ends_with("exit status 1: out"), "{error}");
    // A program's own 255 and 127 are distinguished from those of ssh and of the shell.
    let error = program_error(host.run(&["sh", "-c", "exit 255"], ""));
    assert!(error.ends_with("exit status 255"), "{error}");
    let error = program_error(host.run(&["sh", "-c", "exit 127"], ""));
    assert!(error.ends_with("exit status 127"), "{error}");
    let error = program_error(host.run(&["no-such-program", "x"], ""));
    assert!(error.ends_with("no-such-program is not installed"), "{error}");
    assert!(
        program_error(host.spawn(&["no-such-program"]).map(|_| ())).ends_with("is not installed")
    );
    let error = program_error(host.run(&["sh", "-c", "kill -TERM $$"], ""));
    assert!(error.contains("exit status 143"), "{error}");
}

#[test]
fn files_are_copied_both_ways_byte_for_byte() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    let bytes: Vec<u8> =
        (0..3_000_017u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let local = server.directory.join("binary");
    fs::write(&local, &bytes).expect("a file");
    let remote = server.directory.join("it's a \"file\" $(of) *; ünix!");
    let remote = remote.to_str().expect("text");
    host.send_file(&local, remote).expect("sent");
    assert!(fs::read(remote).expect("there") == bytes, "sent bytes differ");
    let back = server.directory.join("back");
    host.fetch_file(remote, &back).expect("fetched");
    assert!(fs::read(&back).expect("here") == bytes, "fetched bytes differ");
    let fed = format!("of={remote}.fed");
    host.feed(&["dd", &fed], &local).expect("fed");
    assert!(fs::read(format!("{remote}.fed")).expect("there") == bytes, "fed bytes differ");
    fs::write(&local, "").expect("an empty file");
    host.send_file(&local, remote).expect("sent");
    assert_eq!(fs::read(remote).expect("there"), b"");

    // The error names the obstacle.
    let directory = server.directory.join("directory");
    fs::create_dir_all(directory.join("directory.part")).expect("a directory");
    let error = host.send_file(&local, directory.join("directory").to_str().expect("text"));
    assert!(program_error(error).contains("directory.part"));
    let missing = server.directory.join("no/such/file");
    let error = host.send_file(&local, missing.to_str().expect("text")).expect_err("no directory");
    assert!(error.to_string().contains("on dut failed"), "{error}");
    let error = host.fetch_file(missing.to_str().expect("text"), &back).expect_err("no file");
    assert!(error.to_string().contains("No such file"), "{error}");
    assert!(fs::read(&back).expect("as before") == bytes);
    assert!(!server.directory.join("back.part").exists());
}

#[test]
fn settings_are_written_and_read_where_they_exist() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    let file = server.directory.join("a setting");
    fs::write(&file, "old value\n").expect("a file");
    let path = file.to_str().expect("text");
    assert_eq!(host.get(path).expect("read"), "old value");
    host.put(path, "new").expect("written");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "new value\n");
    let none = server.directory.join("none");
    for result in [
        host.get(none.to_str().expect("text")).map(|_| ()),
        host.put(none.to_str().expect("text"), "x"),
    ] {
        let Err(BenchError::File { source, host, .. }) = &result else { panic!("{result:?}") };
        assert_eq!((source.kind(), host.as_str()), (std::io::ErrorKind::NotFound, "dut"));
    }
    assert!(!none.exists());
    assert_eq!(host.get("/proc/sys/kernel/ostype").expect("a sysctl"), "Linux");
}

#[test]
fn hanging_command_ends_at_the_deadline_on_both_sides() {
    let Some(server) = Server::start("") else { return };
    let settings = SshSettings { deadline: Duration::from_secs(6), ..server.settings() };
    let host = SshHost::connect("dut", settings).expect("a connection");
    let time = long_time();
    let begin = Instant::now();
    // It reads nothing of an input that is longer than any pipe.
    let script = format!("echo before >&2; sleep {time}; echo after");
    let error = program_error(host.run(&["sh", "-c", &script], &"x".repeat(300_000)));
    assert!(error.ends_with("killed after 6 s: before"), "{error}");
    assert!(begin.elapsed() < PATIENCE, "{:?}", begin.elapsed());
    assert!(until(PATIENCE, || naming(&time).is_empty()), "it goes on");
    assert_eq!(host.run(&["echo", "next"], "").expect("echo"), "next\n");
    assert_eq!(server.logins(), 1);
}

#[test]
fn program_receives_lines_and_ends_after_an_interrupt() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    let mut cat = host.spawn(&["cat"]).expect("cat");
    for line in ["one", "i", "t", "", " two\\n ", "drei\nvier"] {
        cat.tell(line).expect("told");
        for part in line.split('\n') {
            assert_eq!(cat.hear(PATIENCE).as_deref(), Some(part));
        }
    }
    assert_eq!(cat.hear(Duration::from_millis(20)), None);
    cat.interrupt();
    let ended = cat.wait(PATIENCE);
    assert_eq!((ended.well, ended.status.as_str()), (false, "exit status: 130"));
    assert_eq!(cat.wait(PATIENCE), ended);

    // A program that handles the interrupt: like Ctrl-C, it reaches the whole group.
    let time = long_time();
    let script =
        format!("trap 'echo caught; echo why >&2; exit 0' INT; echo up; sleep {time}; exit 9");
    let mut sh = host.spawn(&["sh", "-c", &script]).expect("sh");
    assert_eq!(sh.hear(PATIENCE).as_deref(), Some("up"));
    assert!(until(PATIENCE, || sleeps(&time)));
    sh.interrupt();
    assert_eq!(sh.hear(PATIENCE).as_deref(), Some("caught"));
    let ended = sh.wait(PATIENCE);
    assert_eq!((ended.well, ended.errors.as_str()), (true, "why\n"), "{ended:?}");
    assert!(until(PATIENCE, || naming(&time).is_empty()), "it goes on");

    // A program that ignores the interrupt.
    let time = long_time();
    let script = format!("trap '' INT; echo up; sleep {time}");
    let mut stubborn = host.spawn(&["sh", "-c", &script]).expect("sh");
    assert_eq!(stubborn.hear(PATIENCE).as_deref(), Some("up"));
    stubborn.interrupt();
    let ended = stubborn.wait(Duration::from_millis(300));
    assert!(!ended.well && ended.status.contains("was killed"), "{ended:?}");
    assert!(until(PATIENCE, || naming(&time).is_empty()), "it goes on");
}

#[test]
fn program_does_not_outlive_its_parent() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    let start = |host: &SshHost| {
        let time = long_time();
        let script = format!("nohup sleep {time} >/dev/null 2>&1 & sleep {time}");
        let program = host.spawn(&["sh", "-c", &script]).expect("sleep");
        assert!(until(PATIENCE, || sleeps(&time)));
        (program, time)
    };
    let (program, time) = start(&host);
    drop(program);
    assert!(until(PATIENCE, || naming(&time).is_empty()), "it outlives its handle");
    // A program that ends takes its children with it.
    let time = long_time();
    host.run(&["sh", "-c", &format!("sleep {time} & exit 0")], "").expect("sh");
    assert!(until(PATIENCE, || naming(&time).is_empty()), "a child outlives it");
    let (program, time) = start(&host);
    host.close();
    assert!(until(PATIENCE, || naming(&time).len() < 2), "it outlives the connection");
    drop(program);
    assert_eq!(host.run(&["echo", "again"], "").expect("echo"), "again\n");
    assert_eq!(server.logins(), 2);
    let (program, time) = start(&host);
    drop(host);
    drop(program);
    assert!(until(PATIENCE, || naming(&time).is_empty()), "it outlives the host");
    assert!(until(PATIENCE, || server.children().is_empty()), "the connection is open");
}

#[test]
fn many_commands_share_one_connection() {
    let Some(server) = Server::start("") else { return };
    let host = server.host();
    for number in 0..40 {
        let text = number.to_string();
        assert_eq!(host.run(&["echo", &text], "").expect("echo").trim(), text);
    }
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(host.run(&["cat"], "x").expect("cat"), "x"));
        }
    });
    assert_eq!(server.logins(), 1);
    // A killed master is noticed once.
    let config = server.directory.join("config").display().to_string();
    let masters = naming("ControlPersist=").into_iter().filter(|pid| naming(&config).contains(pid));
    masters.for_each(|pid| signal("KILL", pid));
    assert!(until(PATIENCE, || server.children().is_empty()), "the connection is open");
    for _ in 0..3 {
        assert_eq!(host.run(&["echo", "again"], "").expect("echo"), "again\n");
    }
    assert_eq!(server.logins(), 2);
}

#[test]
fn connection_never_prompts_for_a_password() {
    let more = "PubkeyAuthentication no\nPasswordAuthentication yes";
    let Some(server) = Server::start(more) else { return };
    let begin = Instant::now();
    let error = environment_error(SshHost::connect("dut", server.settings()));
    assert!(error.starts_with("dut: it does not let us in without a password"), "{error}");
    assert!(error.contains("Permission denied") && error.contains("ssh-copy-id dut"), "{error}");
    assert!(begin.elapsed() < PATIENCE / 2, "{:?}", begin.elapsed());
}

#[test]
fn wrong_or_unknown_host_key_is_refused() {
    let Some(server) = Server::start("") else { return };
    server.knows_hosts("other");
    let error = environment_error(SshHost::connect("dut", server.settings()));
    assert!(error.starts_with("dut: its host key is not the one that is known"), "{error}");
    assert!(error.contains("next step") && error.contains("ssh-keygen -R dut"), "{error}");
    server.knows_hosts("none");
    let error = environment_error(SshHost::connect("dut", server.settings()));
    assert!(error.starts_with("dut: its host key is unknown"), "{error}");
    assert!(error.contains("ssh-keyscan dut"), "{error}");
    assert_eq!(server.logins(), 0);
    server.knows_hosts("host");
    server.host();
}

#[test]
fn unreachable_host_is_reported() {
    let Some(server) = Server::start("") else { return };
    let refused = format!("ssh://127.0.0.1:{}", free_port());
    let error = environment_error(SshHost::connect(&refused, server.settings()));
    assert!(error.contains(&refused) && error.contains("refuses connections"), "{error}");
    let error = environment_error(SshHost::connect("no-such-host.invalid", server.settings()));
    assert!(error.contains("its name is unknown"), "{error}");
    // It listens, but sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("ssh://127.0.0.1:{}", silent.local_addr().expect("its number").port());
    let settings = SshSettings { connect: Duration::from_secs(1), ..server.settings() };
    let error = environment_error(SshHost::connect(&address, settings));
    assert!(error.contains("it does not answer"), "{error}");
    for destination in ["", "-oProxyCommand=reboot", "a b", "a;b", "$(a)"] {
        let error = SshHost::connect(destination, server.settings()).expect_err("refused");
        assert!(matches!(error, BenchError::Refused(_)), "{error}");
    }
}

/// A server that dies, and one that stops responding, in the middle of a command.
#[test]
fn lost_connection_is_reported_in_time() {
    for (signal_name, what) in [("KILL", "the connection broke"), ("STOP", "it does not answer")] {
        let Some(server) = Server::start("") else { return };
        let settings =
            SshSettings { alive: Duration::from_secs(1), alive_count: 2, ..server.settings() };
        let host = SshHost::connect("dut", settings).expect("a connection");
        let time = long_time();
        let begin = Instant::now();
        let error = std::thread::scope(|scope| {
            let command = scope.spawn(|| environment_error(host.run(&["sleep", &time], "")));
            assert!(until(PATIENCE, || sleeps(&time)));
            server.children().into_iter().for_each(|pid| signal(signal_name, pid));
            command.join().expect("an error")
        });
        assert!(error.starts_with("dut: "), "{error}");
        assert!(error.contains(&format!("during `sleep {time}`")), "{error}");
        assert!(error.contains(what), "{error}");
        // Two seconds of silence, and the delay of two CPUs under other load.
        assert!(begin.elapsed() < Duration::from_secs(60), "{signal_name}: {:?}", begin.elapsed());
        if signal_name == "KILL" {
            assert!(until(PATIENCE, || naming(&time).is_empty()), "it goes on");
        } else {
            server.children().into_iter().for_each(|pid| signal("CONT", pid));
            assert!(until(PATIENCE, || naming(&time).is_empty()), "it goes on");
        }
        assert_eq!(host.run(&["echo", "again"], "").expect("echo"), "again\n");
    }
}

#[test]
fn output_of_login_files_is_not_program_output() {
    let Some(server) = Server::start("") else { return };
    // A forced command instead of ours, like a login shell's files: it prints something first, then
    // runs the original command.
    let at = server.directory.display();
    let key = fs::read_to_string(server.directory.join("user.pub")).expect("a key");
    let noisy = format!(
        "command=\"echo Welcome; echo fortune >&2; eval \\\"$SSH_ORIGINAL_COMMAND\\\"\" {key}"
    );
    fs::write(format!("{at}/user.pub"), noisy).expect("a key");
    let host = server.host();
    assert_eq!(host.run(&["echo", "a b"], "").expect("echo"), "a b\n");
    let mut cat = host.spawn(&["cat"]).expect("cat");
    cat.tell("x").expect("told");
    assert_eq!(cat.hear(PATIENCE).as_deref(), Some("x"));
    // And one that does something else.
    fs::write(format!("{at}/user.pub"), format!("command=\"echo no shell for you\" {key}"))
        .expect("a key");
    host.close();
    let error = environment_error(host.run(&["echo", "x"], ""));
    assert!(error.contains("did not carry the command out"), "{error}");
}
