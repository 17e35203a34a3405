//! Mutated requests to the proxy, over real sockets.

use super::*;

/// Sends `request`, then EOF, and returns the response.
fn exchange_raw(proxy: &RunningProxy, request: &[u8]) -> Vec<u8> {
    let mut client = proxy.client();
    // The proxy may close the connection before it has read everything.
    let _ = client.write_all(request).and_then(|()| client.shutdown(Shutdown::Write));
    let mut response = Vec::new();
    let _ = client.read_to_end(&mut response);
    response
}

#[test]
fn mutated_requests_reach_only_the_listed_host() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&received);
    let port = server(move |mut stream| {
        // Up to the end of a head or to EOF.
        let (mut bytes, mut buffer) = (Vec::new(), [0; 1_024]);
        while !bytes.windows(4).any(|four| four == b"\r\n\r\n") {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            }
        }
        record.lock().unwrap().push(bytes);
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    });
    let looked_up = Arc::new(Mutex::new(Vec::new()));
    let names = Arc::clone(&looked_up);
    let listed = [format!("example.test:{port}"), format!("127.0.0.1:{port}")];
    let proxy = run(&listed.each_ref().map(String::as_str), move |name| {
        names.lock().unwrap().push(name.to_owned());
        Ok(vec![LOCALHOST])
    });
    let mut socks_name = vec![5, 1, 0, 5, 1, 0, 3, 12];
    socks_name.extend_from_slice(b"example.test");
    socks_name.extend_from_slice(&port.to_be_bytes());
    let seeds = [
        format!("CONNECT example.test:{port} HTTP/1.1\r\nHost: example.test:{port}\r\n\r\n").into_bytes(),
        format!("GET http://example.test:{port}/a?b HTTP/1.1\r\nHost: other.test\r\nProxy-Connection: close\r\n\r\n")
            .into_bytes(),
        format!("POST http://example.test:{port}/ HTTP/1.0\r\nContent-Length: 3\r\nConnection: x-a\r\nX-A: 1\r\n\r\nabc")
            .into_bytes(),
        format!("PUT http://example.test:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
            .into_bytes(),
        socks_name,
        vec![5, 2, 0, 2, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80],
        vec![5, 1, 0, 5, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 80],
        vec![4, 1, 0, 80, 10, 0, 0, 1, 0],
    ];
    let seeds = seeds.each_ref().map(Vec::as_slice);
    haft_fuzz::check(&seeds, |request| {
        received.lock().unwrap().clear();
        let response = exchange_raw(&proxy, request);
        let plausible =
            response.is_empty() || response.starts_with(b"HTTP/1.1 ") || [0, 5].contains(&response[0]);
        assert!(plausible, "{}", response.escape_ascii());
        let names = std::mem::take(&mut *looked_up.lock().unwrap());
        assert!(names.iter().all(|name| name == "example.test"), "{names:?}");
        // A tunnel passes everything on; a request gets one head with the host that was checked.
        let is_tunnel = request.starts_with(b"CONNECT ") || request.first() == Some(&5);
        for head in received.lock().unwrap().iter().filter(|bytes| !is_tunnel && !bytes.is_empty()) {
            let head = String::from_utf8_lossy(head).to_lowercase();
            let head = head.split("\r\n\r\n").next().unwrap();
            let hosts: Vec<&str> = head.split("\r\n").filter(|line| line.starts_with("host:")).collect();
            let [host] = hosts[..] else { panic!("{head}") };
            assert!(listed.iter().any(|listed| host == format!("host: {listed}")), "{head}");
        }
    });
    let request = format!("GET http://example.test:{port}/ HTTP/1.1\r\n\r\n");
    assert!(exchange_raw(&proxy, request.as_bytes()).starts_with(b"HTTP/1.1 204 "), "the proxy still works");
}
