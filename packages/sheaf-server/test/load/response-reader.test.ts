import assert from "node:assert/strict";
import { test } from "node:test";
import { ResponseReader } from "../../dist/load/http/response-reader.js";

const replies = {
  "content-length": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
  empty: "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
  "no content": "HTTP/1.1 204 No Content\r\n\r\n",
  chunked: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nExpires: 0\r\n\r\n",
  interim: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
};

for (const [name, reply] of Object.entries(replies)) {
  test(`a ${name} reply ends at its last byte, however it is cut`, () => {
    const bytes = Buffer.from(reply);
    for (const size of [bytes.length, 1, 2, 7]) {
      const reader = new ResponseReader();
      for (let from = 0; from < bytes.length; from += size) {
        const complete = reader.push(bytes.subarray(from, from + size));
        assert.equal(complete, from + size >= bytes.length, `cut every ${size} at ${from}`);
      }
      assert.ok(reader.status === 200 || reader.status === 204);
      assert.equal(reader.body, name === "empty" || name === "no content" ? "" : "hello");
      assert.ok(reader.keepAlive);
    }
  });
}

test("without a length the reply ends with the connection", () => {
  const reader = new ResponseReader();
  assert.equal(reader.push(Buffer.from("HTTP/1.1 500 Oops\r\nConnection: close\r\n\r\nbroken")), false);
  assert.equal(reader.keepAlive, false);
  assert.equal(reader.end(), true);
  assert.equal(reader.body, "broken");
});

test("a connection that closes in the middle of a reply does not complete it", () => {
  const reader = new ResponseReader();
  reader.push(Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"));
  assert.equal(reader.end(), false);
});

test("a reader serves one reply after the other, and HTTP/1.0 closes by default", () => {
  const reader = new ResponseReader();
  reader.push(Buffer.from(replies.chunked));
  reader.reset();
  assert.equal(reader.push(Buffer.from("HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\nno")), true);
  assert.equal(reader.status, 404);
  assert.equal(reader.keepAlive, false);
  assert.equal(reader.body, "no");
});

test("what is not HTTP/1.1, an endless head and a bad chunk size are refused", () => {
  const push = (text: string) => () => new ResponseReader().push(Buffer.from(text));
  assert.throws(push("SSH-2.0-OpenSSH\r\n\r\n"), /not an HTTP\/1\.1 response/);
  assert.throws(push("x".repeat(70_000)), /headers above 65536 bytes/);
  assert.throws(push("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), /bad chunk size/);
  assert.throws(push(replies.empty + replies.empty), /more than one response/);
});

test("of a large body the first 2 KiB are kept", () => {
  const reader = new ResponseReader();
  reader.push(Buffer.from(`HTTP/1.1 400 Bad\r\nContent-Length: 100000\r\n\r\n`));
  for (let i = 0; i < 100; i++) reader.push(Buffer.alloc(1000, 97));
  assert.equal(reader.body.length, 2048);
});

test("how long a refusal asks its client to wait: in milliseconds where it says so, else in seconds", () => {
  const asked = (status: string, ...headers: string[]): number | undefined => {
    const reader = new ResponseReader();
    reader.push(Buffer.from([`HTTP/1.1 ${status}`, ...headers, "content-length: 0", "", ""].join("\r\n")));
    return reader.retryAfterMs;
  };
  assert.equal(asked("429 Too Many Requests", "Retry-After: 2", "retry-after-ms: 1500"), 1500);
  assert.equal(asked("503 Service Unavailable", "retry-after: 2"), 2000);
  assert.equal(asked("429 Too Many Requests", "retry-after: Wed, 21 Oct 2099 07:28:00 GMT"), undefined);
  assert.equal(asked("200 OK", "retry-after: 2"), undefined);
});
