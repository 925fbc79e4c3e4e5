export interface RequestShape {
  readonly url: URL;
  readonly method: string;
  /** Sent as given, after ours; a name given here replaces ours. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** One whole HTTP/1.1 request, rendered once and sent many times. @throws {RangeError} for a header HTTP cannot carry. */
export function renderRequest({ url, method, headers, body }: RequestShape): Buffer {
  const content = Buffer.from(body ?? "", "utf8");
  const ours: Record<string, string> = { host: url.host, "user-agent": "sheaf-bench", accept: "*/*" };
  if (body !== undefined) {
    ours["content-type"] = "application/json";
    ours["content-length"] = String(content.length);
  }
  const fields = { ...ours };
  for (const [name, value] of Object.entries(headers)) fields[name.toLowerCase()] = value;
  const head = Object.entries(fields).map(([name, value]) => renderHeader(name, value));
  return Buffer.concat([
    Buffer.from(`${method} ${url.pathname}${url.search} HTTP/1.1\r\n${head.join("")}\r\n`),
    content,
  ]);
}

/** A header's line. @throws {RangeError} for one that HTTP cannot carry. */
export function renderHeader(name: string, value: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(name) && !/[\r\n\0]/.test(value)) return `${name}: ${value}\r\n`;
  throw new RangeError(`a header must be "name: value" on one line, got ${JSON.stringify(`${name}: ${value}`)}`);
}

/** A rendered request with one more header, before its others. */
export function withHeader(request: Buffer, line: Buffer): Buffer {
  const at = request.indexOf("\r\n") + 2;
  return Buffer.concat([request.subarray(0, at), line, request.subarray(at)]);
}
