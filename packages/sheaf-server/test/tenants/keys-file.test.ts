import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiKeys } from "../../dist/tenants/api-keys.js";
import { readKeysFile } from "../../dist/tenants/keys-file.js";
import { key } from "../../dist/cli/key.js";
import { collected } from "../load/streams.js";
import { entry, keysFile, sha256 } from "./keys.js";

test("a file of keys gives names, shares, lanes and bounds, with their defaults", (t) => {
  const { path } = keysFile(t, [
    entry("a"),
    { ...entry("b"), sha256: [sha256("old"), sha256("new")], share: 4, highestLane: "immediate", operator: true },
    entry("c", { itemsPerSecond: 0.5, weightPerSecond: 1000, itemsInFlight: 3 }),
  ]);
  const [a, b, c] = readKeysFile(path);
  assert.deepEqual(
    { ...a, digests: [] },
    { name: "a", digests: [], share: 1, highestLane: "interactive", isOperator: false, opens: [], bounds: {} },
  );
  assert.deepEqual([b!.digests.length, b!.share, b!.highestLane, b!.isOperator], [2, 4, "immediate", true]);
  assert.deepEqual(c!.bounds, { itemsPerSecond: 0.5, weightPerSecond: 1000, itemsInFlight: 3 });
});

test("a wrong file is an error that names the place and the expected value, and never quotes a key", (t) => {
  const file = keysFile(t, []);
  const wrong: readonly [unknown, RegExp][] = [
    ["{ sk-secret", /API_KEYS_FILE .* is not JSON\.$/],
    [[], /must be an object \{ "keys"/],
    [{ keys: {} }, /^keys in .* must be an array of keys/],
    [{ key: [], keys: [] }, /^key of .* is not known; did you mean keys\?/],
    [{ keys: [{ ...entry("a"), shares: 2 }] }, /^shares of keys\[0\] in .* is not known; did you mean share\?/],
    [{ keys: [{ ...entry(""), name: "" }] }, /^keys\[0\]\.name .* must be a text of 1 to 64/],
    [{ keys: [entry("a\nb")] }, /^keys\[0\]\.name .* without control characters/],
    [{ keys: [entry("API_KEY")] }, /must not be API_KEY/],
    [{ keys: [{ name: "a", sha256: "sk-secret" }] }, /^keys\[0\]\.sha256 .* 64 hex digits/],
    [{ keys: [{ name: "a" }] }, /^keys\[0\]\.sha256/],
    [{ keys: [{ name: "a", sha256: [] }] }, /^keys\[0\]\.sha256/],
    [{ keys: [entry("a", { share: 0 })] }, /^keys\[0\]\.share .* > 0, got 0/],
    [{ keys: [entry("a", { highestLane: "top" })] }, /highestLane .* immediate, interactive, bulk, got "top"/],
    [{ keys: [entry("a", { opens: ["/v1/models"] })] }, /opens .* an array of \/v1\/chat\/completions, /],
    [{ keys: [entry("a", { operator: "yes" })] }, /operator .* true or false/],
    [{ keys: [entry("a", { itemsInFlight: 1.5 })] }, /itemsInFlight .* an integer >= 1, got 1\.5/],
    [{ keys: [entry("a", { itemsPerSecond: -1 })] }, /itemsPerSecond .* > 0, got -1/],
    [{ keys: [entry("a"), entry("a")] }, /Two keys .* are named "a"/],
    [{ keys: [entry("a"), { ...entry("b"), sha256: sha256("sk-a") }] }, /keys\[1\]\.sha256 .* of another key/],
  ];
  for (const [content, message] of wrong) {
    file.write(content);
    assert.throws(
      () => readKeysFile(file.path),
      (error: Error) => {
        assert.equal(error.name, "ConfigError");
        assert.match(error.message, message);
        assert.doesNotMatch(error.message, /secret/);
        return true;
      },
    );
  }
  assert.throws(() => readKeysFile(`${file.path}.none`), /API_KEYS_FILE cannot be read: ENOENT/);
});

test("a key is found by its hash, an old one until the file has it no more, and others never", (t) => {
  const { path, write } = keysFile(t, [{ ...entry("a"), sha256: [sha256("old"), sha256("new")] }, entry("b")]);
  const keys = new ApiKeys("own");
  keys.replace(readKeysFile(path));
  const old = keys.find("old")!;
  const a = old.key;
  assert.equal(a.terms.name, "a");
  assert.equal(keys.find("new")?.key, a);
  assert.equal(keys.find("own")?.key.terms.name, "API_KEY");
  for (const other of ["", "ol", "oldd", "OLD", sha256("old")]) assert.equal(keys.find(other), undefined, other);
  write({ keys: [{ ...entry("a"), sha256: sha256("new"), share: 3 }] });
  const b = keys.find("sk-b")!;
  keys.replace(readKeysFile(path));
  assert.equal(keys.find("old"), undefined);
  const replaced = keys.find("new")!;
  assert.equal(replaced.key, a);
  assert.equal(a.terms.share, 3);
  // A request that is open knows which one of the keys it has sent.
  assert.deepEqual([old, replaced, b].map(({ key, digest }) => key.has(digest)), [false, true, false]); // prettier-ignore
});

test("sheaf key makes another key each time, and the entry that lets it in", async (t) => {
  const made = async (): Promise<{ key: string; entry: { name: string; sha256: string } }> => {
    const streams = collected();
    assert.equal(await key(["acme", "--json"], streams), 0);
    return JSON.parse(streams.out());
  };
  const [first, second] = [await made(), await made()];
  assert.notEqual(first.key, second.key);
  const keys = new ApiKeys(undefined);
  keys.replace(readKeysFile(keysFile(t, [first.entry]).path));
  assert.equal(keys.find(first.key)?.key.terms.name, "acme");
  assert.equal(keys.find(second.key), undefined);
  const streams = collected();
  assert.equal(await key(["acme"], streams), 0);
  assert.match(streams.out(), /^key {4}sheaf-[\w-]{43}\nentry {2}\{"name":"acme","sha256":"[0-9a-f]{64}"\}\n/);
  assert.equal(await key(["API_KEY"], collected()), 2);
});
